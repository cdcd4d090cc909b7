//! The numbered cases from 56 on: proxy mode, runtime configuration, managed credentials.
//! A case that a row of docs/deviations.md overrides asserts that row's outcome and names it.

use std::sync::Arc;

use super::*;
use crate::config::resolved::NativeSidecars;
use crate::domain::keys;

fn layout(pod: &Value) -> (u64, u64, u64) {
    let seen = injected(pod, &fixtures::snapshot());
    let listener = runtime_config(&seen)["listener"].clone();
    let port = |key: &str| listener[key].as_str().unwrap().rsplit(':').next().unwrap().parse().unwrap();
    let layout = (port("reverse_proxy_addr"), port("reverse_proxy_backend"), port("forward_proxy_addr"));
    let proxy = named(&seen["spec"]["containers"], "authbridge-proxy");
    assert_eq!(named(&proxy["ports"], "reverse-proxy")["containerPort"], layout.0);
    assert_eq!(named(&proxy["ports"], "forward-proxy")["containerPort"], layout.2);
    layout
}

#[test]
fn case_056_and_060_the_port_table() {
    // Ports of our own: 8082 and 9090–9094 are reserved, so rows 3 and 4 get 8083.
    let with_ports = |containers: &[&[u64]]| {
        let mut pod = proxy_mode();
        pod["spec"]["containers"] = containers
            .iter()
            .enumerate()
            .map(|(index, ports)| {
                let ports: Vec<_> = ports.iter().map(|port| json!({"containerPort": port})).collect();
                json!({"name": format!("c{index}"), "image": "x", "ports": ports})
            })
            .collect();
        pod
    };
    assert_eq!(layout(&with_ports(&[&[8000]])), (8000, 8001, 8081));
    assert_eq!(layout(&with_ports(&[&[8000], &[8001]])), (8000, 8002, 8081));
    assert_eq!(layout(&with_ports(&[&[8000], &[8081]])), (8000, 8001, 8083));
    assert_eq!(layout(&with_ports(&[&[8080, 9000]])), (8080, 8081, 8083));
    assert_eq!(layout(&with_ports(&[&[]])), (8000, 8001, 8081));
    assert_eq!(layout(&with_ports(&[&[9089]])), (9089, 9092, 8081));
    let denial = refusal(&with_ports(&[&[65535]]), &fixtures::snapshot());
    assert_eq!((denial.code, denial.reason), (500, Reason::NoFreePort));
    assert_eq!(denial.field.as_deref(), Some("spec.containers[0].ports[0].containerPort"));
}

#[test]
fn case_057_port_variable() {
    let mut pod = proxy_mode();
    let field = json!({"name": "PORT", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}});
    pod["spec"]["containers"][0]["env"] = json!([{"name": "A", "value": "1"}, field, {"name": "B", "value": "2"}]);
    let seen = injected(&pod, &fixtures::snapshot());
    assert_eq!(seen["spec"]["containers"][0]["env"][1], json!({"name": "PORT", "value": "8001"}));
    pod["spec"]["containers"][0].as_object_mut().unwrap().remove("env");
    let seen = injected(&pod, &fixtures::snapshot());
    assert_eq!(seen["spec"]["containers"][0]["env"][0], json!({"name": "PORT", "value": "8001"}));
}

#[test]
fn case_058_a_proxy_variable_of_the_users_own_stays() {
    let mut pod = proxy_mode();
    pod["spec"]["containers"][0]["env"] = json!([{"name": "HTTP_PROXY", "value": "http://corp:3128"}]);
    let seen = injected(&pod, &fixtures::snapshot());
    let agent = &seen["spec"]["containers"][0];
    assert_eq!(
        names(&agent["env"]),
        ["HTTP_PROXY", "PORT", "HTTPS_PROXY", "NO_PROXY", "http_proxy", "https_proxy", "no_proxy"]
    );
    assert_eq!(agent["env"][0]["value"], "http://corp:3128");
    assert_eq!(named(&seen["spec"]["containers"], "authbridge-proxy").get("env"), None);
    assert_eq!(warned(&pod, &fixtures::snapshot()), [Reason::ProxyEnvironmentKept]);
}

#[test]
fn case_059_the_first_container_with_a_port_is_moved() {
    let mut pod = proxy_mode();
    let agent = pod["spec"]["containers"][0].clone();
    pod["spec"]["containers"] = json!([{"name": "logger", "image": "x"}, agent]);
    let seen = injected(&pod, &fixtures::snapshot());
    assert_eq!(named(&seen["spec"]["containers"], "agent")["ports"][0]["containerPort"], 8001);
    for container in ["logger", "agent"] {
        assert_eq!(env(&seen, "containers", container, "HTTP_PROXY")["value"], "http://127.0.0.1:8081");
    }
    assert_eq!(env(&seen, "containers", "logger", "PORT"), &Value::Null);
}

/// The proxy has to be there when they start, and what others put in finds its own way.
#[test]
fn a_native_sidecar_of_the_users_own_calls_through_the_proxy_that_starts_ahead_of_it() {
    let auto = with(|resolved| resolved.native_sidecars.value = NativeSidecars::Auto);
    let mut pod = proxy_mode();
    pod["spec"]["initContainers"] =
        json!([{"name": "once", "image": "x"}, {"name": "cache", "image": "x", "restartPolicy": "Always"}]);
    let has_env = |pod: &Value, name: &str| named(&pod["spec"]["initContainers"], name).get("env").is_some();
    let seen = injected(&pod, &auto);
    for variable in ["HTTP_PROXY", "https_proxy"] {
        assert_eq!(env(&seen, "initContainers", "cache", variable)["value"], "http://127.0.0.1:8081");
    }
    assert!(!has_env(&seen, "once"), "it ends before the agent starts");
    assert_eq!(fixtures::review_pod(&seen, &auto).operations(), Vec::new(), "a second call changes nothing");
    let mut without = seen.clone();
    json_patch::patch(&mut without, &uninject(&seen)).unwrap();
    assert!(!has_env(&without, "cache"));
    // A setting of its own is kept and told, as that of any container.
    let mut own = pod.clone();
    own["spec"]["initContainers"][1]["env"] = json!([{"name": "HTTP_PROXY", "value": "http://corp:3128"}]);
    assert_eq!(env(&injected(&own, &auto), "initContainers", "cache", "http_proxy")["value"], "http://corp:3128");
    assert_eq!(warned(&own, &auto), [Reason::ProxyEnvironmentKept]);
    // Without native sidecars, and with a port of the node, the proxy is a regular container: it starts behind them.
    assert!(!has_env(&injected(&pod, &fixtures::snapshot()), "cache"));
    let mut on_node = pod.clone();
    on_node["spec"]["containers"][0]["ports"][0]["hostPort"] = json!(8000);
    assert!(!has_env(&injected(&on_node, &auto), "cache"));
    // The requester sent the agent alone.
    let mut meshed = pod;
    meshed["metadata"]["managedFields"] = json!([{"manager": "kube-controller-manager", "operation": "Update", "fieldsType": "FieldsV1",
        "fieldsV1": {"f:spec": {"f:containers": {"k:{\"name\":\"agent\"}": {"f:name": {}}}}}}]);
    assert!(!has_env(&injected(&meshed, &auto), "cache"));
}

fn with_base(base: Value) -> Value {
    runtime_config(&injected(&proxy_mode(), &with(|resolved| resolved.runtime_base = base)))
}

#[test]
fn case_081_a_pipeline_is_made_where_there_is_none() {
    let snapshot = observing(|view| {
        view.authbridge_config =
            Some(Arc::new([("ISSUER".to_owned(), "i".to_owned()), ("KEYCLOAK_URL".to_owned(), String::new())].into()));
    });
    assert_eq!(
        runtime_config(&injected(&fixtures::pod(), &snapshot))["pipeline"],
        json!({"inbound": {"plugins": [{"name": "jwt-validation", "config": {"issuer": "i"}}]},
               "outbound": {"plugins": [{"name": "token-exchange", "config": {}}]}})
    );
}

#[test]
fn case_082_a_pipeline_of_the_namespace_stays() {
    let base = json!({"mode": "waypoint", "pipeline": {"inbound": 1}, "egressEnforcement": "none", "stats": {"address": ":1"}});
    let seen = with_base(base);
    assert_eq!((&seen["pipeline"], &seen["mode"]), (&json!({"inbound": 1}), &json!("proxy-sidecar")));
    assert_eq!((&seen["egressEnforcement"], &seen["stats"]), (&json!("none"), &json!({"address": ":1"})));
}

#[test]
fn case_083_other_listener_keys_survive() {
    let seen = with_base(json!({"listener": {"session_api_addr": ":1", "forward_proxy_addr": ":2"}}));
    assert_eq!(
        seen["listener"],
        json!({"session_api_addr": ":1", "reverse_proxy_addr": ":8000",
               "reverse_proxy_backend": "http://127.0.0.1:8001", "forward_proxy_addr": ":8081"})
    );
    assert_eq!(with_base(json!({"listener": "text"}))["listener"]["forward_proxy_addr"], ":8081");
}

#[test]
fn case_084_the_old_schema_keeps_its_keys() {
    let seen = with_base(json!({"inbound": {"issuer": "old"}, "pipeline": null}));
    assert_eq!(seen["inbound"], json!({"issuer": "old"}));
    assert!(seen["pipeline"]["inbound"].is_object());
}

#[test]
fn case_085_identity_by_client_auth_type() {
    for (kind, expected) in [
        ("federated-jwt", json!({"type": "spiffe"})),
        ("client-secret", json!({"type": "client-secret"})),
        ("other", json!({"type": "other"})),
        ("", Value::Null),
    ] {
        let snapshot = observing(|view| {
            Arc::make_mut(view.authbridge_config.as_mut().unwrap())
                .insert("CLIENT_AUTH_TYPE".to_owned(), kind.to_owned());
        });
        let seen = runtime_config(&injected(&fixtures::pod(), &snapshot));
        assert_eq!(seen["pipeline"]["outbound"]["plugins"][0]["config"]["identity"], expected, "{kind}");
    }
}

#[test]
fn case_092_and_093_managed_credentials() {
    // docs/deviations.md, credentials: our containers mount a projected volume, user containers keep two subPath mounts.
    let mut pod = annotated(&[(keys::ANNOTATION_CREDENTIALS, " my.secret ")]);
    pod["spec"]["containers"][0]["volumeMounts"] = json!([{"name": "shared-data", "mountPath": "/creds"}]);
    for mode in ["envoy-sidecar", "proxy-sidecar"] {
        pod["metadata"]["annotations"][keys::ANNOTATION_MODE] = json!(mode);
        let seen = injected(&pod, &fixtures::snapshot());
        assert_eq!(seen["metadata"]["annotations"][keys::ANNOTATION_CREDENTIALS], " my.secret ");
        for container in seen["spec"]["containers"].as_array().unwrap().iter().filter(|c| c["name"] != "agent") {
            let shared: Vec<_> =
                items(container, "volumeMounts").iter().filter(|m| m["mountPath"] == "/shared").collect();
            assert_eq!(shared, [&json!({"name": "kagenti-credentials", "mountPath": "/shared", "readOnly": true})]);
        }
        let source = &named(&seen["spec"]["volumes"], "kagenti-credentials")["projected"]["sources"][0]["secret"];
        assert_eq!((&source["name"], &source["optional"]), (&json!("my.secret"), &json!(false)));
        assert_eq!(names_of(&source["items"], "path"), ["client-id.txt", "client-secret.txt"]);
        let file = |name: &str| json!({"name": "kagenti-credentials", "mountPath": format!("/shared/{name}"), "subPath": name, "readOnly": true});
        assert_eq!(
            seen["spec"]["containers"][0]["volumeMounts"],
            json!([{"name": "shared-data", "mountPath": "/creds"}, file("client-secret.txt"), file("client-id.txt")])
        );
        assert!(warned(&pod, &fixtures::snapshot()).contains(&Reason::SharedDataMounted));
    }
    pod["metadata"]["labels"][keys::LABEL_CLIENT_REGISTRATION] = json!("true");
    let seen = injected(&pod, &fixtures::snapshot());
    assert!(!names(&seen["spec"]["containers"]).contains(&"kagenti-client-registration"));
    assert!(warned(&pod, &fixtures::snapshot()).contains(&Reason::RegistrationSuperseded));
}

fn names_of<'v>(list: &'v Value, key: &str) -> Vec<&'v str> {
    list.as_array().unwrap().iter().map(|item| text(item, key)).collect()
}

#[test]
fn case_094_missing_credential_parts_are_put_back() {
    let mut pod = annotated(&[(keys::ANNOTATION_CREDENTIALS, "s")]);
    pod["spec"]["containers"][0]["volumeMounts"] = json!([{"name": "shared-data", "mountPath": "/creds"}]);
    let whole = injected(&pod, &fixtures::snapshot());
    assert_eq!(skipped(&whole, &fixtures::snapshot()), Reason::AlreadyInjected);
    let mut damaged = whole.clone();
    damaged["spec"]["volumes"].as_array_mut().unwrap().retain(|volume| volume["name"] != "kagenti-credentials");
    damaged["spec"]["containers"][0]["volumeMounts"].as_array_mut().unwrap().truncate(1);
    named_mut(&mut damaged["spec"]["containers"], "envoy-proxy")["volumeMounts"]
        .as_array_mut()
        .unwrap()
        .retain(|mount| mount["mountPath"] != "/shared");
    let repaired = injected(&damaged, &fixtures::snapshot());
    assert_eq!(sorted(&repaired["spec"]["volumes"]), sorted(&whole["spec"]["volumes"]));
    assert_eq!(repaired["spec"]["containers"][0], whole["spec"]["containers"][0]);
    assert_eq!(skipped(&repaired, &fixtures::snapshot()), Reason::AlreadyInjected);
}

fn sorted(list: &Value) -> Vec<String> {
    let mut texts: Vec<_> = list.as_array().unwrap().iter().map(Value::to_string).collect();
    texts.sort();
    texts
}

/// Found by the fuzz target: of two containers of one name, whom the API server refuses later, the first has no such port.
#[test]
fn a_port_entry_without_a_number_stays_as_it_is() {
    let mut pod = proxy_mode();
    pod["spec"]["containers"] = json!([
        {"name": "agent", "image": "x", "ports": [{"name": "http"}]},
        {"name": "agent", "image": "x", "ports": [{"name": "http", "containerPort": 8000}]},
    ]);
    let seen = injected(&pod, &fixtures::snapshot());
    assert_eq!(seen["spec"]["containers"][0]["ports"], json!([{"name": "http"}]));
}

#[test]
fn a_host_port_of_nought_is_none() {
    let mut pod = proxy_mode();
    pod["spec"]["containers"][0]["ports"] = json!([{"containerPort": 8000, "hostPort": 0, "hostIP": "", "name": ""}]);
    let seen = injected(&pod, &fixtures::snapshot());
    let proxy = named(&seen["spec"]["containers"], "authbridge-proxy");
    assert_eq!(names(&proxy["ports"]), ["reverse-proxy", "forward-proxy"]);
}

#[test]
fn a_port_that_is_no_number_is_told_as_what_it_is() {
    for (port, expected) in [(json!("8000"), "a string"), (json!(8000.5), "a number"), (json!([8000]), "a list")] {
        let mut pod = proxy_mode();
        pod["spec"]["containers"][0]["ports"][0]["containerPort"] = port;
        let denial = refusal(&pod, &fixtures::snapshot());
        assert_eq!((denial.code, denial.reason), (400, Reason::Undecodable));
        assert_eq!(denial.field.as_deref(), Some("spec.containers[0].ports[0].containerPort"));
        assert_eq!(denial.seen.as_deref(), Some(expected));
    }
    for (entry, seen) in [
        (json!({"containerPort": 70000}), "containerPort is 70000)"),
        (json!({"containerPort": 0}), "containerPort is 0)"),
        (json!({"containerPort": -1}), "containerPort is -1)"),
        (json!({"name": "http"}), "containerPort is absent)"),
        (json!({"containerPort": 53, "protocol": "UDP"}), "declares a TCP port, so"),
    ] {
        let mut pod = proxy_mode();
        pod["spec"]["containers"][0]["ports"] = json!([entry]);
        let verdict = fixtures::review_pod(&pod, &fixtures::snapshot());
        let told: Vec<_> = verdict.warnings.iter().map(ToString::to_string).collect();
        assert!(told.len() == 1 && told[0].starts_with("NoDeclaredPort: ") && told[0].contains(seen), "{told:?}");
    }
}

#[test]
fn nobody_beside_the_proxy_may_have_its_port() {
    let declares = |name: &str, port: u16| json!({"name": name, "image": "x", "ports": [{"containerPort": port}]});
    let with_init = |container: Value, agent: bool| {
        let mut pod = proxy_mode();
        pod["spec"]["initContainers"] = json!([container]);
        if !agent {
            pod["spec"]["containers"][0].as_object_mut().unwrap().remove("ports");
        }
        pod
    };
    let mut native = declares("dapr", 8000);
    native["restartPolicy"] = json!("Always");
    for (agent, says) in [(true, "over from container agent"), (false, "no other container declares a TCP port")] {
        let denial = refusal(&with_init(native.clone(), agent), &fixtures::snapshot());
        assert_eq!(denial.reason, Reason::PortCollision);
        assert_eq!(denial.field.as_deref(), Some("spec.initContainers[0].ports[0].containerPort"));
        assert!(denial.sentence.contains(says), "{denial}");
    }
    let mut pod = proxy_mode();
    pod["spec"]["containers"].as_array_mut().unwrap().push(declares("twin", 8000));
    let denial = refusal(&pod, &fixtures::snapshot());
    assert_eq!(denial.field.as_deref(), Some("spec.containers[1].ports[0].containerPort"));

    // One that is over before the agent starts is in nobody's way, and neither is a second name of the agent's own port.
    let mut pod = with_init(declares("migrate", 8000), true);
    pod["spec"]["containers"][0]["ports"] = json!([{"containerPort": 8000}, {"name": "http", "containerPort": 8000}]);
    assert_eq!(fixtures::review_pod(&pod, &fixtures::snapshot()).reason, Reason::Injected);
    let mut datagrams = native;
    datagrams["ports"][0]["protocol"] = json!("UDP");
    assert_eq!(fixtures::review_pod(&with_init(datagrams, true), &fixtures::snapshot()).reason, Reason::Injected);
}

#[test]
fn a_port_below_1024_is_warned_of_unless_the_pod_opens_it() {
    let with_port = |port: u16, sysctls: Value| {
        let mut pod = proxy_mode();
        pod["spec"]["containers"][0]["ports"][0]["containerPort"] = json!(port);
        pod["spec"]["securityContext"] = json!({"sysctls": sysctls});
        warned(&pod, &fixtures::snapshot())
    };
    let opened = |from: &str| json!([{"name": "net.ipv4.ip_unprivileged_port_start", "value": from}]);
    assert_eq!(with_port(80, json!([])), [Reason::PrivilegedPort]);
    assert_eq!(with_port(1023, json!(null)), [Reason::PrivilegedPort]);
    assert_eq!(with_port(80, opened("81")), [Reason::PrivilegedPort]);
    assert_eq!(with_port(80, opened("80")), []);
    assert_eq!(with_port(80, opened("0")), []);
    assert_eq!(with_port(1024, json!([])), []);
}

#[test]
fn the_tree_says_whether_a_probe_follows_the_port_or_keeps_its_number() {
    let mut pod = proxy_mode();
    pod["spec"]["containers"][0]["livenessProbe"] = json!({"httpGet": {"port": "http", "host": "10.0.0.9"}});
    pod["spec"]["containers"][0]["readinessProbe"] = json!({"httpGet": {"port": "http"}});
    let raw = serde_json::value::to_raw_value(&pod).unwrap();
    let (_, tree) = crate::admission::explain(&fixtures::request(&raw), &fixtures::snapshot());
    let told = |at: &str| tree.edits.iter().find(|edit| edit.contains(at)).unwrap().clone();
    assert!(told("livenessProbe").contains("asks another host for port 8000"), "{:?}", tree.edits);
    assert!(told("readinessProbe").ends_with("follows to port 8001"), "{:?}", tree.edits);
}

/// The kubelet has no token: asked for at the port that the proxy has taken over, a container beside the agent would be restarted for ever.
#[test]
fn probes_beside_the_agent_that_ask_for_its_port_follow_it() {
    let mut pod = proxy_mode();
    let watcher = json!({"name": "watcher", "image": "x",
        "livenessProbe": {"httpGet": {"path": "/health", "port": 8000}},
        "readinessProbe": {"tcpSocket": {"port": 9000}},
        "startupProbe": {"httpGet": {"host": "10.0.0.9", "port": 8000}},
        "lifecycle": {"preStop": {"httpGet": {"path": "/drain", "port": 8000}}}});
    pod["spec"]["containers"].as_array_mut().unwrap().insert(0, watcher);
    pod["spec"]["initContainers"] = json!([
        {"name": "beside", "image": "x", "restartPolicy": "Always", "livenessProbe": {"grpc": {"port": 8000}}}]);
    let mut seen = injected(&pod, &fixtures::snapshot());
    let watcher = named(&seen["spec"]["containers"], "watcher");
    for (pointer, port) in [
        ("/livenessProbe/httpGet/port", 8001),
        ("/readinessProbe/tcpSocket/port", 9000),
        ("/startupProbe/httpGet/port", 8000),
        ("/lifecycle/preStop/httpGet/port", 8001),
    ] {
        assert_eq!(watcher.pointer(pointer), Some(&json!(port)), "{pointer}");
    }
    assert_eq!(named(&seen["spec"]["initContainers"], "beside")["livenessProbe"]["grpc"]["port"], 8001);
    assert_eq!(skipped(&seen, &fixtures::snapshot()), Reason::AlreadyInjected);
    let taken_back = uninject(&seen);
    json_patch::patch(&mut seen, &taken_back).unwrap();
    assert_eq!(seen, pod);
}
