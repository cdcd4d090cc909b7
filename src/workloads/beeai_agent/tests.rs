//! What becomes of an Agent of BeeAI: cases of BeeAI (Z; docs/cases.md) that need no cluster.

use serde_json::{Value, json};

use super::{validate, workload};
use crate::api::findings::Findings;
use crate::domain::keys;
use crate::domain::reason::Reason;
use crate::workloads::settings::Settings;
use crate::workloads::workload::{Workload, render};

fn agent(spec: Value) -> Value {
    let mut object = json!({
        "metadata": {"name": "sample-agent", "namespace": "team", "uid": "u"},
        "spec": {"image": "ghcr.io/beeai/agents/hello-world-agent:v1"},
    });
    json_patch::merge(&mut object, &json!({"spec": spec}));
    object
}

fn annotated(value: &str) -> Value {
    let mut object = agent(json!({}));
    object["metadata"]["annotations"] = json!({keys::ANNOTATION_SECURITY_PROFILE: value});
    object
}

fn made(object: &Value) -> Workload {
    let request = workload(object, keys::GROUP_BEEAI);
    render(&request, request.image.as_deref().unwrap(), false)
}

fn container(made: &Workload) -> &Value {
    &made.deployment["spec"]["template"]["spec"]["containers"][0]
}

fn judged(object: &Value) -> Findings {
    validate(object, None, &Settings::default())
}

/// The sample of the original project's documentation.
fn sample() -> Value {
    agent(json!({
        "description": "A sample BeeAI agent for demonstration",
        "env": [
            {"name": "LLM_MODEL", "value": "llama3.2:1b-instruct-fp16"},
            {"name": "LLM_URL", "value": "http://localhost:11434"},
        ],
        "resources": {"limits": {"cpu": "1", "memory": "2Gi"}, "requests": {"cpu": "500m", "memory": "1Gi"}},
    }))
}

#[test]
fn case_z01_and_z02_the_sample_is_a_deployment_and_a_service_with_its_environment_in_order() {
    let made = made(&sample());
    let container = container(&made);
    let selector = json!({"app": "sample-agent", "controller": "agent-operator"});
    assert_eq!((&container["name"], &container["imagePullPolicy"]), (&json!("agent"), &json!("IfNotPresent")));
    assert_eq!(container["image"], "ghcr.io/beeai/agents/hello-world-agent:v1");
    assert_eq!(
        container["env"],
        json!([
            {"name": "LLM_MODEL", "value": "llama3.2:1b-instruct-fp16"},
            {"name": "LLM_URL", "value": "http://localhost:11434"},
            {"name": "PORT", "value": "8000"},
        ])
    );
    assert_eq!(container["resources"], sample()["spec"]["resources"]);
    assert_eq!(container["ports"], json!([{"name": "http", "containerPort": 8000, "protocol": "TCP"}]));
    let deployment = &made.deployment;
    assert_eq!(
        (&deployment["spec"]["replicas"], &deployment["spec"]["selector"]["matchLabels"]),
        (&json!(1), &selector)
    );
    assert_eq!(deployment["spec"]["template"]["metadata"]["labels"], selector);
    assert_eq!(deployment["metadata"]["labels"]["beeai.dev/group"], "beeai.dev");
    let owner = &deployment["metadata"]["ownerReferences"][0];
    assert_eq!(
        (&owner["apiVersion"], &owner["kind"], &owner["uid"]),
        (&json!("beeai.dev/v1"), &json!("Agent"), &json!("u"))
    );
    let service = made.service.unwrap();
    assert_eq!(service["metadata"]["name"], "sample-agent");
    assert_eq!(service["spec"]["selector"], selector);
    assert_eq!(
        service["spec"]["ports"],
        json!([{"name": "http", "port": 8000, "targetPort": "http", "protocol": "TCP"}])
    );
    assert_eq!(made.account, None, "it runs under the namespace's default account, without its token");
    assert!(deployment["spec"]["template"]["spec"].get("serviceAccountName").is_none());
    assert_eq!(judged(&sample()), Findings::default());
}

#[test]
fn case_z03_a_literal_port_is_the_container_s_and_the_service_still_answers_on_8000() {
    for (env, port) in [
        (json!([{"name": "PORT", "value": "9001"}]), 9001),
        (json!([{"name": "PORT", "valueFrom": {"configMapKeyRef": {"name": "c", "key": "k"}}}]), 8000),
        (json!([{"name": "PORT", "value": "9001"}, {"name": "PORT", "value": "9002"}]), 9002),
        (Value::Null, 8000),
    ] {
        let made = made(&agent(json!({"env": env})));
        assert_eq!(container(&made)["ports"][0]["containerPort"], port, "{env}");
        assert_eq!(made.service.as_ref().unwrap()["spec"]["ports"][0]["port"], 8000);
        let named = container(&made)["env"].as_array().unwrap().iter().filter(|one| one["name"] == "PORT").count();
        assert_eq!(named, 1, "{env}");
    }
}

#[test]
fn case_z04_and_z05_a_pull_secret_is_there_when_a_literal_names_one() {
    let secrets = |env: Value| {
        let made = made(&agent(json!({"env": env})));
        made.deployment["spec"]["template"]["spec"].get("imagePullSecrets").cloned()
    };
    assert_eq!(secrets(json!([{"name": "A", "value": "b"}])), None);
    assert_eq!(secrets(json!([{"name": "IMAGE_REPO_SECRET", "value": ""}])), None);
    assert_eq!(
        secrets(json!([{"name": "IMAGE_REPO_SECRET", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}}])),
        None
    );
    assert_eq!(secrets(json!([{"name": "IMAGE_REPO_SECRET", "value": "pull"}])), Some(json!([{"name": "pull"}])));
}

#[test]
fn case_z07_nothing_is_left_open() {
    let made = made(&sample());
    let pod = &made.deployment["spec"]["template"]["spec"];
    assert_eq!(pod["automountServiceAccountToken"], false);
    assert_eq!(pod["securityContext"]["runAsNonRoot"], true);
    assert_eq!(pod["securityContext"]["seccompProfile"]["type"], "RuntimeDefault");
    let context = &container(&made)["securityContext"];
    assert_eq!(
        (&context["readOnlyRootFilesystem"], &context["allowPrivilegeEscalation"]),
        (&json!(true), &json!(false))
    );
    assert_eq!(context["capabilities"]["drop"], json!(["ALL"]));
    let mounts: Vec<_> =
        container(&made)["volumeMounts"].as_array().unwrap().iter().map(|one| &one["mountPath"]).collect();
    assert_eq!(mounts, ["/app/.cache", "/tmp"]);
}

#[test]
fn case_z08_baseline_takes_the_platform_s_leave() {
    let mut settings = Settings::default();
    let refused = validate(&annotated("baseline"), None, &settings);
    assert_eq!(refused.faults.len(), 1);
    assert!(refused.faults[0].to_string().contains("beeai.allowBaseline"), "{}", refused.faults[0]);
    settings.beeai_baseline = true;
    let allowed = validate(&annotated("baseline"), None, &settings);
    assert_eq!((allowed.faults.len(), allowed.notes[0].reason), (0, Reason::LockdownRelaxed));
    let made = made(&annotated("baseline"));
    assert!(made.deployment["spec"]["template"]["spec"]["securityContext"].get("runAsNonRoot").is_none());
    assert!(container(&made)["securityContext"].get("readOnlyRootFilesystem").is_none());
    assert_eq!(container(&made)["securityContext"]["capabilities"]["drop"], json!(["ALL"]));
    let other = validate(&annotated("privileged"), None, &settings);
    assert_eq!(other.faults[0].seen.as_deref(), Some("\"privileged\""));
}

#[test]
fn faults_name_the_field_and_never_a_value() {
    for (spec, path) in [
        (json!({"image": ""}), "spec.image"),
        (json!({"image": "ghcr.io/Beeai/Agent:v1"}), "spec.image"),
        (json!({"env": [{"name": "PORT", "value": "s3cret"}]}), "spec.env[0].value"),
        (json!({"env": [{"name": "PORT", "value": "0"}]}), "spec.env[0].value"),
        (json!({"env": [{"name": "PORT", "value": "65536"}]}), "spec.env[0].value"),
        (json!({"env": [{"name": "IMAGE_REPO_SECRET", "value": "s3cret_Token"}]}), "spec.env[0].value"),
        (json!({"env": [{"name": "A", "value": "b"}, {"value": "s3cret"}]}), "spec.env[1].name"),
    ] {
        let findings = judged(&agent(spec.clone()));
        assert_eq!(findings.faults.iter().map(|fault| &*fault.path).collect::<Vec<_>>(), [path], "{spec}");
        assert!(!findings.faults[0].to_string().contains("s3cret"), "{}", findings.faults[0]);
    }
    for (name, allowed) in
        [("a".repeat(63), true), ("a".repeat(64), false), ("1a".into(), false), ("a.b".into(), false)]
    {
        let mut object = agent(json!({}));
        object["metadata"]["name"] = json!(name);
        assert_eq!(judged(&object).faults.is_empty(), allowed, "{name}");
    }
}

#[test]
fn an_environment_that_is_null_or_says_a_name_twice_works() {
    assert_eq!(judged(&agent(json!({"env": null}))), Findings::default());
    let twice =
        agent(json!({"env": [{"name": "A", "value": "1"}, {"name": "B", "value": "2"}, {"name": "A", "value": "3"}]}));
    let findings = judged(&twice);
    assert_eq!((findings.faults.len(), findings.notes[0].reason), (0, Reason::ValueShadowed));
    let made = made(&twice);
    let names: Vec<_> =
        container(&made)["env"].as_array().unwrap().iter().map(|one| one["name"].as_str().unwrap()).collect();
    assert_eq!(names, ["B", "A", "PORT"], "the last one is what a container would get");
    assert_eq!(container(&made)["env"][1]["value"], "3");
}

/// What this thread has worked so far. Time that the machine gave to others is not in it.
fn worked() -> u64 {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap();
    text.split(' ').next().unwrap().parse().unwrap()
}

/// A review, every reconcile and every command make it anew.
#[test]
fn a_long_environment_costs_as_much_as_there_is_of_it() {
    let mut spent = Vec::new();
    for count in [1_000_usize, 8_000] {
        let entry = |number: usize| json!({"name": format!("V{}", number % (count - 1)), "value": number.to_string()});
        let object = agent(json!({"env": (0..count).map(entry).collect::<Vec<Value>>()}));
        // The best of five: caches are shared with whatever else runs.
        let best = (0..5).map(|_| {
            let begun = worked();
            // As many entries in all, since the system counts in steps of milliseconds.
            let requests: Vec<_> = (0..32_000 / count).map(|_| workload(&object, keys::GROUP_BEEAI)).collect();
            let took = worked() - begun;
            let request = requests.first().unwrap();
            let env = request.pod_template["spec"]["containers"][0]["env"].as_array().unwrap();
            assert_eq!(env.len(), count, "one that is there twice counts once, and the port is added");
            assert_eq!((&env[0]["name"], &env[count - 2]["name"]), (&json!("V1"), &json!("V0")));
            took
        });
        spent.push(best.min().unwrap().max(1));
    }
    assert!(
        spent[1] < spent[0] * 3,
        "as many entries in lists that are eight times as long, quadratic would be eight: {spent:?}"
    );
}

#[test]
fn labels_reach_deployment_and_pods_and_never_the_selector() {
    let mut object = sample();
    object["metadata"]["labels"] = json!({
        "kagenti.io/type": "agent", "team": "a", "app": "other", "controller": "other", "beeai.dev/group": "x",
        "app.kubernetes.io/managed-by": "agent-build-controller", "app.kubernetes.io/part-of": "agent-operator",
        "agent.kagenti.dev/policy-parameter": "true",
    });
    let made = made(&object);
    let pods = &made.deployment["spec"]["template"]["metadata"]["labels"];
    assert_eq!(
        (&pods["kagenti.io/type"], &pods["team"], &pods["app"]),
        (&json!("agent"), &json!("a"), &json!("sample-agent"))
    );
    assert_eq!(pods["app.kubernetes.io/part-of"], "agent-operator");
    // Our own mark comes and goes: Pods that carried it would be replaced for that.
    assert!(pods.get("agent.kagenti.dev/policy-parameter").is_none());
    assert!(pods.get("beeai.dev/group").is_none() && pods.get("app.kubernetes.io/managed-by").is_none());
    assert_eq!(made.deployment["metadata"]["labels"]["beeai.dev/group"], "beeai.dev");
    assert_eq!(made.deployment["metadata"]["labels"]["app.kubernetes.io/managed-by"], "drawbridge");
    assert_eq!(made.deployment["spec"]["selector"]["matchLabels"].as_object().unwrap().len(), 2);
}

#[test]
fn what_does_not_change_is_not_judged_again() {
    let broken = agent(json!({"image": "NO"}));
    let settings = Settings::default();
    assert!(!validate(&broken, None, &settings).faults.is_empty());
    assert!(validate(&broken, Some(&broken), &settings).faults.is_empty());
    let mut leaving = broken.clone();
    leaving["metadata"]["deletionTimestamp"] = json!("2026-05-01T00:00:00Z");
    assert!(validate(&leaving, Some(&agent(json!({}))), &settings).faults.is_empty());
    assert!(
        !validate(&annotated("baseline"), Some(&agent(json!({}))), &settings).faults.is_empty(),
        "the profile is judged"
    );
}

#[test]
fn the_secrets_that_it_refers_to_are_known() {
    let object = agent(json!({"env": [
        {"name": "A", "valueFrom": {"secretKeyRef": {"name": "one", "key": "k"}}},
        {"name": "IMAGE_REPO_SECRET", "value": "pull"},
        {"name": "B", "value": "not-one"},
    ]}));
    let names: Vec<_> = crate::api::secrets::of_beeai_agent(&object).into_iter().collect();
    assert_eq!(names, ["one", "pull"]);
}
