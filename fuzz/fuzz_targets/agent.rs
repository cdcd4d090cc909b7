//! Reviews of Agents, and the workload made of them. In: a byte that chooses the world, then the body of a review. Laws: equal requests give
//! equal verdicts; judging changes nothing, and never refuses what is left alone or on its way out; what is found is told once, of the spec or
//! the metadata; the workload is the same twice, keeps every member of the Pod template that is not its own to set, is closed so far that closing
//! it again changes nothing, and is something that the API server can decode where the template was.
#![no_main]

use drawbridge::admission::verdict::{Outcome, Verdict};
use drawbridge::admission::{evaluate, explain};
use drawbridge::store::{Kind, change_of};
use drawbridge::api::review::{self, Operation, Phase, Request};
use drawbridge::workloads::agent::workload;
use drawbridge::workloads::workload::render;
use drawbridge::config::snapshot::Snapshot;
use drawbridge::domain::keys;
use drawbridge_fuzz::answers::{encoded, short, with_objects};
use drawbridge_fuzz::{builds, mutate, words};
use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::{PodTemplateSpec, Service};
use libfuzzer_sys::{fuzz_mutator, fuzz_target};
use serde_json::{Map, Value};

/// Members of a Pod that the workload may set or add to.
const OF_POD: [&str; 7] = [
    "serviceAccountName",
    "automountServiceAccountToken",
    "securityContext",
    "containers",
    "initContainers",
    "volumes",
    "serviceAccount",
];
/// Members of a container that it may set or add to.
const OF_CONTAINER: [&str; 4] = ["image", "ports", "securityContext", "volumeMounts"];

fuzz_mutator!(|data: &mut [u8], size: usize, max_size: usize, seed: u32| {
    mutate::behind_selector(data, (size, max_size), (seed, 8), &words::BUILDS)
});

fuzz_target!(|data: &[u8]| {
    let Some((selector, body)) = data.split_first() else { return };
    let Ok(request) = review::parse(body, Phase::Validate) else { return };
    if request.kind.group != keys::GROUP_AGENT || request.kind.kind != "Agent" {
        return;
    }
    let snapshot = builds::world(*selector);
    decided(&request, snapshot);
    let Some(object) =
        request.object.as_ref().and_then(|raw| serde_json::from_str::<Value>(raw.get()).ok()).filter(Value::is_object)
    else {
        return;
    };
    if !matches!(request.operation, Operation::Create | Operation::Update) {
        return;
    }
    let created = with_objects(&request, &object, None, |request| decided(request, snapshot));
    let alone = with_objects(&request, &object, Some(&object), |request| decided(request, snapshot));
    assert!(alone.allowed(), "what is left alone is refused");
    let deleting = object.pointer("/metadata/deletionTimestamp").is_some_and(|time| !time.is_null());
    assert!(!deleting || created.allowed(), "something on its way out is refused");
    runs(&object, created.allowed() && !deleting, snapshot);
});

fn decided(request: &Request<'_>, snapshot: &Snapshot) -> Verdict {
    let verdict = evaluate(request, snapshot);
    assert_eq!(verdict, evaluate(request, snapshot), "equal requests, different verdicts");
    assert_eq!(verdict, explain(request, snapshot).0, "explained and decided differ");
    assert!(verdict.operations().is_empty(), "a validating review changes something");
    encoded(request, &verdict);
    short(&verdict);
    if let Outcome::Deny(denial) = &verdict.outcome {
        for (index, fault) in denial.faults.iter().enumerate() {
            assert!(fault.path.starts_with("spec") || fault.path.starts_with("metadata"), "{}", fault.path);
            assert!(!denial.faults[..index].contains(fault), "told twice: {fault}");
        }
    }
    verdict
}

fn runs(object: &Value, accepted: bool, snapshot: &Snapshot) {
    let openshift = snapshot.builds.settings.pipelines.openshift;
    let request = workload(object, Some("registry.example/built:v1"));
    let image = request.image.clone().unwrap_or_default();
    let made = render(&request, &image, openshift);
    assert_eq!(
        made,
        render(&workload(object, Some("registry.example/built:v1")), &image, openshift),
        "rendered twice, differently"
    );
    let template = &made.deployment["spec"]["template"];
    keeps(&request.pod_template, template);

    let mut closed = request.clone();
    closed.pod_template = template.clone();
    assert_eq!(
        render(&closed, &image, openshift).deployment["spec"]["template"],
        *template,
        "closing again changes something"
    );

    let decodes = serde_json::from_value::<PodTemplateSpec>(request.pod_template.clone()).is_ok();
    // The schema bounds them, which the API server has asked before.
    let bounded =
        [request.replicas.unwrap_or(0), request.container_port].iter().all(|number| i32::try_from(*number).is_ok());
    if accepted && decodes && bounded && request.pod_template.is_object() {
        let decoded = serde_json::from_value::<Deployment>(made.deployment.clone());
        assert!(decoded.is_ok(), "{:?}: {}", decoded.err(), made.deployment);
        let ports = request
            .service_ports
            .iter()
            .all(|port| serde_json::from_value::<k8s_openapi::api::core::v1::ServicePort>(port.clone()).is_ok());
        let service = made.service.clone().filter(|_| ports).map(serde_json::from_value::<Service>);
        assert!(service.is_none_or(|service| service.is_ok()), "{:?}", made.service);
        let name = object.pointer("/metadata/name").and_then(Value::as_str).unwrap_or("");
        assert!(name.len() <= 63, "an Agent whose Service cannot be made was accepted");
        assert!(change_of(Kind::Deployment, &made.deployment.to_string()).is_ok());
    }
}

/// Everything in the template that the workload does not set itself is as it was written.
fn keeps(written: &Value, made: &Value) {
    let nothing = Map::new();
    let members = |value: &Value| value.as_object().cloned().unwrap_or_default();
    for (key, value) in &members(written) {
        assert!(
            ["metadata", "spec"].contains(&key.as_str()) || made.get(key) == Some(value),
            "{key} of the template is lost"
        );
    }
    let (before, after) = (members(&written["spec"]), members(&made["spec"]));
    for (key, value) in before.iter().filter(|(key, _)| !OF_POD.contains(&key.as_str())) {
        assert_eq!(after.get(key), Some(value), "{key} of the Pod is changed");
    }
    for kind in ["containers", "initContainers"] {
        let list = |of: &Map<String, Value>| of.get(kind).and_then(Value::as_array).cloned().unwrap_or_default();
        let (before, after) = (list(&before), list(&after));
        assert_eq!(before.len(), after.len(), "{kind} come or go");
        for (written, made) in before.iter().zip(&after) {
            for (key, value) in written.as_object().unwrap_or(&nothing) {
                assert!(
                    OF_CONTAINER.contains(&key.as_str()) || made.get(key) == Some(value),
                    "{key} of a container is changed"
                );
            }
        }
    }
}
