//! What is in the Secrets of builds appears nowhere; and case F7 (docs/cases.md):
//! the values of parameters, which objects must carry, are in no log of ours either.
//!
//! One canary for each layout of 14.2, 14.3 and 14.4, in builds that end well and builds that fail; then everything that
//! was said is searched: the API server's audit log with all bodies but those of Secrets, the logs of every process,
//! Events, and metrics. Each canary is looked for raw and base64 at every alignment, URL- and JSON-escaped. Parameters
//! have canaries of their own: in builds that are accepted, in one that our webhook refuses, and in two whose run or
//! workspace the API server refuses in words that quote them.

use std::fmt::Write as _;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD_NO_PAD;
use serde_json::{Value, json};
use webhook_tests::tekton::{Part, kubelet};
use webhook_tests::{
    AuditLevel, ControlPlane, Drawbridge, Installation, Installing, Options, Tekton, TestNamespace, dial,
};

use super::beeai;
use super::stage::{DIGEST, build, ended, reason, saying, wait, within};

/// A text that looks different in every escaping.
fn canary(name: &str) -> String {
    format!("canary \"{name}\"/+é")
}

/// Every form in which a canary is looked for.
fn forms(canary: &str) -> Vec<String> {
    let json = Value::from(canary).to_string();
    let url = canary.bytes().fold(String::new(), |mut url, byte| {
        if byte.is_ascii_alphanumeric() {
            url.push(char::from(byte));
        } else {
            let _ = write!(url, "%{byte:02X}");
        }
        url
    });
    let mut forms = vec![canary.to_owned(), json.trim_matches('"').to_owned(), url.clone(), url.replace("%20", "+")];
    for shift in 0..3 {
        // What stands before it in a longer text moves the alignment; the letters that depend on neighbours are left out.
        let shifted = STANDARD_NO_PAD.encode(format!("{}{canary}", "x".repeat(shift)));
        let start = if shift == 0 { 0 } else { 4 };
        forms.push(shifted[start..shifted.len() - 4].to_owned());
    }
    forms
}

struct Layout {
    name: &'static str,
    kind: &'static str,
    data: Value,
    /// Where the build names it.
    place: &'static str,
}

fn layouts() -> Vec<Layout> {
    let registry =
        json!({ "auths": { "registry.cr-system.svc:5000": { "username": "octo", "password": canary("registry") } } });
    let (git, push) = ("/spec/source/sourceCredentials", "/spec/buildOutput/imageRepoCredentials");
    vec![
        Layout {
            name: "ssh",
            kind: "Opaque",
            data: json!({ "ssh-privatekey": canary("ssh"), "known_hosts": "github.com ssh-ed25519 AAAA" }),
            place: git,
        },
        Layout {
            name: "password",
            kind: "Opaque",
            data: json!({ "username": "octo", "password": canary("password") }),
            place: git,
        },
        Layout {
            name: "user-token",
            kind: "Opaque",
            data: json!({ "user": "octo", "token": canary("user-token") }),
            place: git,
        },
        Layout { name: "token", kind: "Opaque", data: json!({ "token": canary("token") }), place: git },
        Layout {
            name: "registry",
            kind: "kubernetes.io/dockerconfigjson",
            data: json!({ ".dockerconfigjson": registry.to_string() }),
            place: push,
        },
        Layout {
            name: "config",
            kind: "Opaque",
            data: json!({ "config.json": json!({ "auths": { "r": { "auth": canary("config") } } }).to_string() }),
            place: push,
        },
        Layout {
            name: "signing",
            kind: "Opaque",
            data: json!({ "cosign.key": canary("signing"), "cosign.password": canary("signing-password") }),
            place: "",
        },
    ]
}

/// The build that uses a layout.
fn using(layout: &Layout, name: &str) -> Value {
    let mut object = build(name);
    object["spec"]["buildArgs"] = json!([{ "name": "GREETING", "value": canary("argument") }]);
    let mut parameters = vec![json!({ "name": "NOTE", "value": canary("parameter") })];
    if let Some((parent, member)) = layout.place.rsplit_once('/') {
        object.pointer_mut(parent).unwrap()[member] = json!({ "name": layout.name });
        object["spec"]["pipeline"] = json!({ "parameters": parameters });
        return object;
    }
    object["spec"]["mode"] = json!("prod");
    parameters.push(json!({ "name": "test-command", "value": "true" }));
    parameters.push(json!({ "name": "signing-secret", "value": layout.name }));
    object["spec"]["pipeline"] = json!({ "parameters": parameters });
    let image = "registry.cr-system.svc:5000/weather";
    let pushed = [
        ("IMAGE_URL", format!("{image}:v0.0.1")),
        ("IMAGE_DIGEST", DIGEST.to_owned()),
        ("IMAGE_REF", format!("{image}@{DIGEST}")),
    ];
    let pushed: Vec<_> = pushed.iter().map(|(key, value)| (*key, value.as_str())).collect();
    let object = saying(object, kubelet::results("image-reference", &pushed));
    saying(
        saying(object, kubelet::results("sbom", &[("sbom-sha256", &"5".repeat(64))])),
        kubelet::results("promote", &pushed[..2]),
    )
}

/// A size that the API server says as it was written.
const SIZE: &str = "7919Mi";

/// What makes the API server quote parameters: a policy of the house that repeats what it does not like, and a limit for
/// claims. Waits until both are in force.
async fn quoting(ns: &TestNamespace) {
    let name = "quoting-house";
    let policy = json!({
        "apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingAdmissionPolicy", "metadata": { "name": name },
        "spec": {
            "matchConstraints": { "resourceRules": [{ "apiGroups": ["tekton.dev"], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["pipelineruns"] }] },
            "validations": [{
                "expression": "!has(object.spec.params) || object.spec.params.all(p, p.name != 'HOUSE')",
                "messageExpression": "'this house has no ' + string(object.spec.params.filter(p, p.name == 'HOUSE')[0].value)",
            }],
        },
    });
    let binding = json!({
        "apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingAdmissionPolicyBinding", "metadata": { "name": name },
        "spec": { "policyName": name, "validationActions": ["Deny"] },
    });
    let limit = json!({
        "apiVersion": "v1", "kind": "LimitRange", "metadata": { "name": "claims" },
        "spec": { "limits": [{ "type": "PersistentVolumeClaim", "max": { "storage": "5Gi" } }] },
    });
    for object in [policy, binding, limit] {
        ns.accepts(&object).await.unwrap();
    }
    let run = json!({
        "apiVersion": "tekton.dev/v1", "kind": "PipelineRun", "metadata": { "name": "probe" },
        "spec": { "params": [{ "name": "HOUSE", "value": "x" }], "pipelineRef": { "name": "none" } },
    });
    let claim = json!({
        "apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": { "name": "probe" },
        "spec": { "accessModes": ["ReadWriteOnce"], "resources": { "requests": { "storage": SIZE } } },
    });
    for (probe, quoted) in [(run, "no x"), (claim, SIZE)] {
        let refused = async {
            while let Ok(object) = ns.create(&probe, true).await.unwrap().result {
                // Not read yet by the API server's own admission.
                assert_eq!(object.metadata.name.as_deref(), Some("probe"));
                tokio::task::yield_now().await;
            }
            ns.create(&probe, true).await.unwrap().result.unwrap_err().message
        };
        let told = tokio::time::timeout(within(), refused).await.expect("it is refused");
        assert!(told.contains(quoted), "{told}");
    }
}

/// Builds that the API server refuses, each with the text that it quotes.
fn quoted() -> Vec<(Value, String)> {
    let with = |name: &str, parameter: &str, value: String| {
        let mut object = build(name);
        object["spec"]["pipeline"] = json!({ "parameters": [{ "name": parameter, "value": value }] });
        (object, value)
    };
    vec![with("house", "HOUSE", canary("house")), with("large", "workspace-size", SIZE.to_owned())]
}

async fn metrics(process: &Drawbridge) -> String {
    let mut all = String::new();
    for port in [&process.ports().metrics, &process.ports().health] {
        if let Ok((_, text)) = dial::get(port.address(), "/metrics").await {
            all.push_str(&text);
        }
    }
    all
}

#[tokio::test(flavor = "multi_thread")]
async fn g2_g10_case_f7_no_credential_of_a_build_is_ever_repeated_nor_a_parameter_in_a_log() {
    let cp = ControlPlane::start(Options { audit: AuditLevel::RequestResponse, ..Options::default() }).await.unwrap();
    let flags = ["--drain-delay=500ms".to_owned(), "--log-level=debug".to_owned()];
    let installing = Installing { flags: flags.to_vec(), ..Installing::default() };
    let installation = Installation::start(&cp, &installing).await.unwrap();
    let tekton = Tekton::start(&cp).await.unwrap();
    let ns = cp.namespace("team").await.unwrap();
    let mut names = Vec::new();
    for layout in layouts() {
        let secret = json!({ "apiVersion": "v1", "kind": "Secret", "metadata": { "name": layout.name }, "type": layout.kind, "stringData": layout.data });
        ns.accepts(&secret).await.unwrap();
        let fails = saying(using(&layout, &format!("{}-fails", layout.name)), kubelet::exit("github-clone", 128));
        for (object, phase) in [(using(&layout, layout.name), "Succeeded"), (fails, "Failed")] {
            ns.accepts(&object).await.unwrap();
            names.push((object["metadata"]["name"].as_str().unwrap().to_owned(), phase));
        }
    }
    let mut wrong = build("wrong");
    wrong["spec"]["pipeline"] =
        json!({ "parameters": [{ "name": "NOTE", "value": format!("$(tasks.a.results.b) {}", canary("refused")) }] });
    let refusal = ns.rejects(&wrong).await.unwrap();
    assert!(refusal.message.contains("spec.pipeline.parameters[0].value"), "{}", refusal.message);
    quoting(&ns).await;
    for (object, text) in quoted() {
        ns.accepts(&object).await.unwrap();
        let name = object["metadata"]["name"].as_str().unwrap();
        let quotes = |status: &Value| status["message"].as_str().is_some_and(|words| words.contains(&text));
        let status = wait(&ns, name, quotes).await;
        assert_eq!(reason(&status, "Ready"), "RunRefused", "{status:#}");
    }
    beeai(&ns).await;
    for (name, phase) in names {
        let (seen, why, status) = ended(&ns, &name).await;
        assert_eq!((seen.as_str(), why != "PrerequisitesMissing"), (phase, true), "{name}: {status:#}");
    }
    let others = [
        ("audit log", cp.audit().text().unwrap()),
        ("log of Tekton's webhook", tekton.log(Part::Webhook)),
        ("log of Tekton's controller", tekton.log(Part::Controller)),
    ];
    let mut ours = Vec::new();
    for process in installation.controllers.iter().chain(&installation.webhooks) {
        ours.push(("log of drawbridge", process.log()));
        ours.push(("metrics of drawbridge", metrics(process).await));
    }
    assert!(others.iter().chain(&ours).all(|(_, text)| !text.is_empty()), "nothing to search");
    assert!(ours.iter().any(|(_, text)| text.contains("DEBUG")), "not at level debug");
    // Events and status are objects: the audit log has every write of them. It is the right log, with bodies:
    assert!(others[0].1.contains("a2a/weather") && others[0].1.contains("\"BuildSucceeded\""));
    for name in [
        "ssh",
        "password",
        "user-token",
        "token",
        "registry",
        "config",
        "signing",
        "signing-password",
        "beeai-git",
        "beeai-registry",
    ] {
        is_nowhere(&canary(name), others.iter().chain(&ours));
    }
    // What is looked for was there to be found: runs carry their parameters.
    for name in ["parameter", "argument", "refused", "house"] {
        let carried = forms(&canary(name)).iter().any(|form| others[0].1.contains(form.as_str()));
        assert!(carried, "{name} is not in the audit log");
        is_nowhere(&canary(name), &ours);
    }
    assert!(others[0].1.contains(SIZE) && ours.iter().all(|(_, text)| !text.contains(SIZE)), "the size is in a log");
    // What may be said is said.
    let told = |words: &str| ours.iter().any(|(_, text)| text.contains(words));
    assert!(told("refused by ValidatingAdmissionPolicy quoting-house") && told("403 Forbidden"));
}

/// Builds of BeeAI with both of their tokens, one that ends well and one that fails: each token is in the Secret that was given, and that of
/// the registry in the login that is made of it.
async fn beeai(ns: &TestNamespace) {
    for name in ["beeai-git", "beeai-registry"] {
        beeai::token(ns, name, &canary(name)).await;
    }
    let reference = |name: &str, secret: &str| json!({ "name": name, "valueFrom": { "secretKeyRef": { "name": secret, "key": "token" } } });
    for (name, says) in [("beeai-well", None), ("beeai-fails", Some(kubelet::exit("push", 1)))] {
        let object = json!({
            "apiVersion": "beeai.dev/v1", "kind": "AgentBuild", "metadata": { "name": name },
            "spec": {
                "repoUrl": "github.com/acme/agents.git", "revision": "v1.4.2", "imageRegistry": "registry.cr-system.svc:5000",
                "image": "weather", "imageTag": "v0.0.1",
                "env": [reference("GITHUB_TOKEN", "beeai-git"), reference("IMAGE_REPO_TOKEN", "beeai-registry")],
            },
        });
        ns.accepts(&object).await.unwrap();
        let image = "registry.cr-system.svc:5000/weather:v0.0.1";
        let well = || kubelet::results("push", &[("IMAGE_URL", image), ("IMAGE_DIGEST", DIGEST)]);
        let wanted = if says.is_none() { "Completed" } else { "Failed" };
        beeai::starts(ns, name, &[says.unwrap_or_else(well)]).await;
        let status = beeai::wait(ns, name, |status| status["buildStatus"] == wanted).await;
        assert_eq!(status["attempts"], 1, "{status:#}");
        let login = ns.api::<k8s_openapi::api::core::v1::Secret>().get(&format!("{name}-docker")).await.unwrap();
        let config = String::from_utf8(login.data.unwrap()[".dockerconfigjson"].0.clone()).unwrap();
        assert!(
            forms(&canary("beeai-registry")).iter().any(|form| config.contains(form.as_str())),
            "the login is there"
        );
    }
}

fn is_nowhere<'s>(canary: &str, said: impl IntoIterator<Item = &'s (&'static str, String)>) {
    let forms = forms(canary);
    for (place, text) in said {
        for form in &forms {
            assert!(!text.contains(form.as_str()), "{canary} as {form} in the {place}");
        }
    }
}
