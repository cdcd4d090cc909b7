//! What runs an MCPServer.

use serde_json::json;

use super::*;
use crate::api::kaos_tools::shape::{McpServer, Runtime};
use crate::workloads::kaos::compose::ComposeFault;
use crate::workloads::kaos::mcp_server;
use crate::workloads::kaos::registry::{Registry, RuntimeFault};

const RUNTIMES: &str = "
runtimes:
  python-string: {image: 'example/tools:1', paramsEnvVar: MCP_TOOLS_STRING}
  kubernetes: {image: 'example/kubernetes:1', args: [--port, '8000']}
  bare: {args: [--port, '8000']}
";

fn registry() -> Result<Registry, RuntimeFault> {
    Registry::read(RUNTIMES)
}

fn server(runtime: Runtime) -> McpServer {
    McpServer {
        runtime,
        params: None,
        service_account: None,
        telemetry: None,
        container: Container::default(),
        timeout: None,
        pod_spec: None,
    }
}

fn registered(name: &str, params: Option<&str>) -> McpServer {
    McpServer { params: params.map(str::to_owned), ..server(Runtime::Registered(name.to_owned())) }
}

fn compose(server: &McpServer, settings: &Settings) -> Result<Composed, ComposeFault> {
    mcp_server::compose(&identity("t"), (server, false), &registry(), settings)
}

fn built(server: &McpServer) -> Composed {
    compose(server, &settings()).unwrap()
}

#[test]
fn case_112_names_labels_port_and_probes() {
    let composed = built(&registered("python-string", Some("def f(): pass")));
    let made = made(&composed);
    assert_eq!(made.deployment["metadata"]["name"], "mcpserver-t");
    assert_eq!(made.deployment["spec"]["selector"]["matchLabels"], json!({"app": "mcpserver", "mcpserver": "t"}));
    let container = &made.deployment["spec"]["template"]["spec"]["containers"][0];
    assert_eq!((&container["name"], &container["ports"][0]["containerPort"]), (&json!("mcp-server"), &json!(8000)));
    let probe = |delay: i64, period: i64, failures: i64| json!({"tcpSocket": {"port": 8000}, "initialDelaySeconds": delay, "periodSeconds": period, "timeoutSeconds": 3, "failureThreshold": failures});
    assert_eq!((&container["livenessProbe"], &container["readinessProbe"]), (&probe(20, 10, 3), &probe(15, 5, 2)));
    assert_eq!(made.service.unwrap()["metadata"]["name"], "mcpserver-t");
}

#[test]
fn cases_115_116_and_120_runtimes_of_the_registry() {
    let mut text = registered("python-string", Some("def f(): pass"));
    text.container.env = env(&[json!({"name": "A", "value": "1"})]);
    let container = main(&built(&text));
    assert_eq!(container["image"], "example/tools:1");
    assert_eq!(names(&container), ["MCP_TOOLS_STRING", "A", "LOG_LEVEL"]);
    let mut kubernetes = registered("kubernetes", Some("ignored"));
    kubernetes.service_account = Some("sa".to_owned());
    let pod = pod(&built(&kubernetes));
    assert_eq!((&pod["serviceAccountName"], &pod["containers"][0]["args"]), (&json!("sa"), &json!(["--port", "8000"])));
    assert_eq!(names(&pod["containers"][0]), ["LOG_LEVEL"]);
}

#[test]
fn cases_117_and_118_what_cannot_be_run_says_why() {
    let fault = |server: &McpServer| compose(server, &settings()).unwrap_err().to_string();
    assert_eq!(fault(&registered("nope", None)), "unknown runtime: nope (not found in registry)");
    assert_eq!(fault(&server(Runtime::Custom)), "custom runtime requires container.image to be set");
    let absent = Err(RuntimeFault::NoRegistry("sys".to_owned()));
    let without = |server: &McpServer| mcp_server::compose(&identity("t"), (server, false), &absent, &settings());
    let fault = without(&registered("python-string", None)).unwrap_err();
    assert!(fault.to_string().starts_with("failed to get runtime registry: "), "{fault}");
    let mut custom = server(Runtime::Custom);
    custom.container.image = Some("mine:1".to_owned());
    let container = main(&without(&custom).unwrap());
    assert_eq!((&container["image"], names(&container)), (&json!("mine:1"), strings(&["LOG_LEVEL"])));
}

#[test]
fn case_119_the_container_overrides_the_runtime() {
    let mut own = registered("kubernetes", None);
    own.container.image = Some("mine:1".to_owned());
    own.container.command = Some(strings(&["run"]));
    own.container.args = Some(strings(&["x"]));
    own.container.resources = Some(json!({"limits": {"cpu": "1"}}));
    let container = main(&built(&own));
    assert_eq!(
        (&container["image"], &container["command"], &container["args"], &container["resources"]),
        (&json!("mine:1"), &json!(["run"]), &json!(["x"]), &json!({"limits": {"cpu": "1"}}))
    );
}

/// An entry of the registry may leave the image to whoever uses it.
#[test]
fn case_119_a_runtime_without_an_image_runs_that_of_the_container() {
    let mut own = registered("bare", None);
    assert_eq!(
        compose(&own, &settings()).unwrap_err().to_string(),
        "runtime bare of the registry: names no image",
        "nobody names one"
    );
    own.container.image = Some("mine:1".to_owned());
    let container = main(&built(&own));
    assert_eq!((&container["image"], &container["args"]), (&json!("mine:1"), &json!(["--port", "8000"])));
}

/// Old spellings (docs/tasks/kaos-spellings.md): case 19 holds where the platform names that image.
#[test]
fn case_19_text_of_an_old_spelling() {
    let text = registered("python-string", Some("def f(): pass"));
    let of = |old: bool, settings: &Settings| {
        main(&mcp_server::compose(&identity("t"), (&text, old), &registry(), settings).unwrap())
    };
    let container = of(true, &settings());
    assert_eq!((&container["image"], container.get("command")), (&json!("example/tools:1"), None));
    assert_eq!(variable(&container, "MCP_TOOLS_STRING").as_deref(), Some("def f(): pass"));
    let old = Settings { image_mcp_server: Some("example/kaos-agent:1".to_owned()), ..settings() };
    assert_eq!(of(false, &old)["image"], "example/tools:1", "a runtime that is named is the registry's");
    let container = of(true, &old);
    assert_eq!(
        (&container["image"], &container["command"]),
        (&json!("example/kaos-agent:1"), &json!(["python", "-m", "mcptools.server"]))
    );
}

#[test]
fn case_113_text_in_a_secret_is_referred_to_and_copied_nowhere() {
    let entry = json!({"name": "MCP_TOOLS_STRING", "valueFrom": {"secretKeyRef": {"name": "s", "key": "k"}}});
    let mut secret = registered("python-string", None);
    secret.container.env = env(std::slice::from_ref(&entry));
    assert_eq!(main(&built(&secret))["env"][0], entry);
}

#[test]
fn case_18_a_package_is_an_argument_of_a_fixed_script() {
    for (package, program, module) in [
        ("mcp-server-calculator", "mcp-server-calculator", "mcp_server_calculator"),
        ("mcp-server-x[all]==1.2", "mcp-server-x", "mcp_server_x"),
        ("acme.tools-mcp==1.2", "acme.tools-mcp", "acme.tools_mcp"),
        ("x; reboot", "x", "x"),
    ] {
        let container = main(&built(&server(Runtime::Package(package.to_owned()))));
        assert_eq!(container["image"], "example/python:3.12");
        let command = container["command"].as_array().unwrap();
        assert_eq!(command[..2], [json!("/bin/sh"), json!("-c")]);
        let script = command[2].as_str().unwrap();
        assert!(
            script.contains("pip install") && !script.contains("reboot") && !script.contains("calculator"),
            "{script}"
        );
        assert_eq!(command[4..], [json!(package), json!(program), json!(module)]);
        assert_eq!(names(&container), ["LOG_LEVEL"]);
    }
    let none = Settings { image_python: None, ..settings() };
    let fault = compose(&server(Runtime::Package("p".to_owned())), &none).unwrap_err();
    assert_eq!(fault, ComposeFault::NoImage("images.kaosPython"));
}

/// Without them the script is what it was, so that nothing is made anew; with them they are the program's, and not the shell's.
#[test]
fn arguments_of_the_container_are_those_of_the_package() {
    let made_with = |container: Container, pod_spec: Option<Raw>| {
        let package = McpServer { container, pod_spec, ..server(Runtime::Package("p".to_owned())) };
        let made = main(&built(&package));
        (made["command"][2].as_str().unwrap().contains("\"$@\""), made["args"].clone())
    };
    let args = json!(["--port", "8000"]);
    let said = Container { args: Some(strings(&["--port", "8000"])), ..Container::default() };
    assert_eq!(made_with(said, None), (true, args.clone()));
    let patch = json!({"containers": [{"name": "mcp-server", "args": args}]});
    assert_eq!(made_with(Container::default(), Some(Raw(patch))), (true, args));
    let beside = json!({"containers": [{"name": "beside", "image": "b", "args": ["x"]}]});
    assert_eq!(made_with(Container::default(), Some(Raw(beside))), (false, Value::Null));
    let none = Container { args: Some(Vec::new()), ..Container::default() };
    assert!(!made_with(none, None).0);
}
