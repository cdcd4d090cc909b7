//! Point 5 of the issue: what is in the Secrets of builds appears nowhere.
//!
//! One canary for each layout of 14.2, 14.3 and 14.4, in builds that end well and builds that fail; then everything that
//! was said is searched: the API server's audit log with all bodies but those of Secrets, the logs of every process,
//! Events, and metrics. Each canary is looked for raw and base64 at every alignment, URL- and JSON-escaped.

use std::fmt::Write as _;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD_NO_PAD;
use serde_json::{Value, json};
use webhook_tests::tekton::{Part, kubelet};
use webhook_tests::{AuditLevel, ControlPlane, Drawbridge, Installation, Installing, Options, Tekton, dial};

use crate::stage::{DIGEST, build, ended, saying};

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
    if let Some((parent, member)) = layout.place.rsplit_once('/') {
        object.pointer_mut(parent).unwrap()[member] = json!({ "name": layout.name });
        return object;
    }
    object["spec"]["mode"] = json!("prod");
    object["spec"]["pipeline"] = json!({ "parameters": [
        { "name": "test-command", "value": "true" }, { "name": "signing-secret", "value": layout.name },
    ] });
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
async fn no_credential_of_a_build_is_ever_repeated() {
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
    for (name, phase) in names {
        let (seen, why, status) = ended(&ns, &name).await;
        assert_eq!((seen.as_str(), why != "PrerequisitesMissing"), (phase, true), "{name}: {status:#}");
    }
    let mut said = vec![
        ("audit log", cp.audit().text().unwrap()),
        ("log of Tekton's webhook", tekton.log(Part::Webhook)),
        ("log of Tekton's controller", tekton.log(Part::Controller)),
    ];
    for process in installation.controllers.iter().chain(&installation.webhooks) {
        said.push(("log of drawbridge", process.log()));
        said.push(("metrics of drawbridge", metrics(process).await));
    }
    assert!(said.iter().all(|(_, text)| !text.is_empty()), "nothing to search");
    // Events and status are objects: the audit log has every write of them. It is the right log, with bodies:
    assert!(said[0].1.contains("a2a/weather") && said[0].1.contains("\"BuildSucceeded\""));
    for name in ["ssh", "password", "user-token", "token", "registry", "config", "signing", "signing-password"] {
        for form in forms(&canary(name)) {
            for (place, text) in &said {
                assert!(!text.contains(&form), "canary {name} as {form} in the {place}");
            }
        }
    }
}
