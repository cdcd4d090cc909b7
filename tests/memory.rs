//! What is kept costs, as resident memory of this process: 1,000 agents with 10,000 Pods in the controllers' store, and
//! the ConfigMaps of tenants who fill every bound.
//!
//! The whole process may take 64 MiB; the objects may take three eighths of it. The objects are as a cluster has them, long
//! names, managed fields and a full status included, and are decoded one by one, as a watch does.

use std::collections::BTreeMap;
use std::process::Command;
use std::sync::Arc;
use std::time::Duration;

use drawbridge::config::agent_runtime::AgentRuntimeInput;
use drawbridge::config::bounds::{KEPT, OBJECTS_KEPT, RUNTIME};
use drawbridge::config::inputs::NamespaceInputs;
use drawbridge::config::reading;
use drawbridge::config::schema::Platform;
use drawbridge::config::view::namespace_view;
use drawbridge::pipelines::templates::{self, ConfigMapText};
use drawbridge::store::decode::Decoded as _;
use drawbridge::store::decode::wire::Raw;
use drawbridge::store::{Kind, Pool, Store, What};
use serde_json::{Value, json};

const MIB: usize = 1 << 20;
/// Tells this program that it is the process of one test.
const ALONE: &str = "DRAWBRIDGE_TEST_ALONE";

/// Whether this process is the test's own. Otherwise the test `name` is run in one, since what another has freed would be used again
/// and not be counted.
#[allow(clippy::print_stderr, reason = "what is taken is a result, shown with --nocapture")]
fn alone(name: &str) -> bool {
    if std::env::var_os(ALONE).is_some() {
        return true;
    }
    let me = std::env::current_exe().expect("this program has a path");
    let run = Command::new(me).args(["--exact", name, "--nocapture"]).env(ALONE, "1").output().expect("it runs again");
    let said = [run.stdout, run.stderr].map(|bytes| String::from_utf8_lossy(&bytes).into_owned()).concat();
    eprintln!("{said}");
    assert!(run.status.success() && said.contains("1 passed"), "{said}");
    false
}

fn resident() -> usize {
    let statm = std::fs::read_to_string("/proc/self/statm").expect("Linux tells the memory of a process");
    let pages: usize = statm.split(' ').nth(1).and_then(|pages| pages.parse().ok()).expect("a number of pages");
    pages * 4096
}

/// What the keeper has, and what a watch shares between objects.
struct Kept {
    store: Store,
    pool: Pool,
    version: u64,
}

impl Kept {
    fn see(&mut self, kind: Kind, mut object: Value) {
        self.version += 1;
        object["metadata"]["namespace"] = json!("weather-team-production");
        object["metadata"]["resourceVersion"] = json!(self.version.to_string());
        let raw: Raw = serde_json::from_str(&object.to_string()).expect("an object");
        let mut change = raw.into_change(kind);
        self.pool.share(&mut change);
        assert!(self.store.apply(&change, Duration::ZERO));
    }
}

fn uid(prefix: &str, number: usize) -> String {
    format!("{prefix}{number:07}-89ab-4def-8123-456789abcdef")
}

fn owner(kind: &str, name: &str, uid: &str) -> Value {
    json!([{"apiVersion": "apps/v1", "kind": kind, "name": name, "uid": uid, "controller": true, "blockOwnerDeletion": true}])
}

fn template(hash: &str) -> Value {
    let environment: Vec<_> = (0..30).map(|at| json!({"name": format!("KEY_{at}"), "value": "x".repeat(60)})).collect();
    json!({
        "metadata": {"labels": {"app": "weather", "kagenti.io/type": "agent", "pod-template-hash": "6d5f7c9b8"},
            "annotations": {"kagenti.io/config-hash": hash, "checksum/config": hash}},
        "spec": {"serviceAccountName": "weather", "containers": [
            {"name": "agent", "image": "registry.example.org/weather:1.2.3", "env": environment},
            {"name": "metrics", "image": "registry.example.org/metrics:1.2.3", "env": environment}]},
    })
}

fn managed() -> Value {
    let keys = json!({"f:labels": {"f:kagenti.io/type": {}}, "f:annotations": {"f:kagenti.io/config-hash": {}}});
    json!([{"manager": "drawbridge/enrolment", "operation": "Apply",
        "fieldsV1": {"f:metadata": keys, "f:spec": {"f:template": {"f:metadata": keys}}}}])
}

fn conditions() -> Value {
    let one = |kind: &str| {
        json!({"type": kind, "status": "True", "reason": "Configured", "observedGeneration": 1,
            "message": "the workload runs with configuration 57de3ab75a7e", "lastTransitionTime": "2026-01-02T03:04:05Z"})
    };
    json!([one("TargetResolved"), one("ConfigResolved"), one("Ready")])
}

fn agent(kept: &mut Kept, number: usize, pods: usize) {
    let name = format!("weather-forecast-agent-{number:04}");
    let (deployment, replica_set) = (uid("d", number), uid("r", number));
    let hash = format!("{number:064x}");
    kept.see(
        Kind::ServiceAccount,
        json!({"metadata": {"name": name, "uid": uid("s", number),
        "labels": {"kagenti.io/managed-by": "webhook"}, "ownerReferences": owner("Deployment", &name, &deployment)}}),
    );
    kept.see(Kind::AgentRuntime, json!({
        "metadata": {"name": name, "uid": uid("a", number), "generation": 1, "creationTimestamp": "2026-01-02T03:04:05Z",
            "finalizers": ["kagenti.io/cleanup"]},
        "spec": {"type": "agent", "targetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": name}},
        "status": {"observedGeneration": 1, "phase": "Active", "configuredPods": pods, "configHash": hash,
            "conditions": conditions(), "effective": {"mode": "envoy-sidecar"}, "appliedTarget": {"apiVersion": "apps/v1",
                "kind": "Deployment", "name": name, "uid": deployment}},
    }));
    kept.see(
        Kind::Deployment,
        json!({
            "metadata": {"name": name, "uid": deployment, "generation": 2, "labels": {"kagenti.io/type": "agent"},
                "annotations": {"kubectl.kubernetes.io/last-applied-configuration": "y".repeat(4000)},
                "managedFields": managed()},
            "spec": {"replicas": pods, "template": template(&hash)},
            "status": {"observedGeneration": 2, "replicas": pods, "updatedReplicas": pods, "availableReplicas": pods},
        }),
    );
    let set = format!("{name}-6d5f7c9b8");
    kept.see(
        Kind::ReplicaSet,
        json!({
            "metadata": {"name": set, "uid": replica_set, "ownerReferences": owner("Deployment", &name, &deployment)},
            "spec": {"replicas": pods, "template": template(&hash)}, "status": {"replicas": pods},
        }),
    );
    for pod in 0..pods {
        let mut object = template(&hash);
        object["metadata"]["name"] = json!(format!("{set}-{pod:05}"));
        object["metadata"]["uid"] = json!(uid("p", number * pods + pod));
        object["metadata"]["creationTimestamp"] = json!("2026-01-02T03:04:05Z");
        object["metadata"]["annotations"]["kagenti.io/authbridge-status"] = json!("{}");
        object["spec"]["initContainers"] = json!([{"name": "proxy-init"}, {"name": "envoy-proxy"}]);
        object["metadata"]["ownerReferences"] = owner("ReplicaSet", &set, &replica_set);
        object["status"] = json!({"phase": "Running"});
        kept.see(Kind::Pod, object);
    }
}

#[test]
fn a_thousand_agents_with_ten_thousand_pods_take_three_eighths_of_what_the_process_may() {
    if !alone("a_thousand_agents_with_ten_thousand_pods_take_three_eighths_of_what_the_process_may") {
        return;
    }
    let mut kept = Kept { store: Store::new("kagenti-system"), pool: Pool::default(), version: 0 };
    agent(&mut kept, 9_999, 10);
    let before = resident();
    for number in 0..1_000 {
        agent(&mut kept, number, 10);
    }
    let taken = resident().saturating_sub(before);
    let workload = kept.store.workload(Kind::Deployment, "weather-team-production", "weather-forecast-agent-0007");
    let workload = workload.expect("it was seen");
    assert_eq!(kept.store.pods_of("weather-team-production", &workload).count(), 10, "what is measured is in use");
    assert_eq!(kept.store.enrolled().count(), 1_001);
    eprintln!("1,000 agents with 10,000 Pods take {} KiB", taken / 1024);
    assert!(taken < 24 * MIB, "{} KiB", taken / 1024);
}

/// 100 ConfigMaps of 950 KiB and 400 of 60 KiB, with every label and name that is watched: the controllers keep their digests.
#[test]
fn mend_02_the_largest_config_maps_cost_the_controllers_what_the_smallest_do() {
    if !alone("mend_02_the_largest_config_maps_cost_the_controllers_what_the_smallest_do") {
        return;
    }
    let mut kept = Kept { store: Store::new("kagenti-system"), pool: Pool::default(), version: 0 };
    let config_map = |name: String, bytes: usize| {
        json!({"metadata": {"name": name, "uid": name, "creationTimestamp": "2026-01-02T03:04:05Z",
                "labels": {"kagenti.io/defaults": "true", "kagenti.operator.dev/tekton": "step",
                    "app.kubernetes.io/managed-by": "drawbridge"}},
            "data": {"config.yaml": "x".repeat(bytes)}})
    };
    kept.see(Kind::ConfigMap, config_map("first".to_owned(), 950 * 1024));
    let before = resident();
    for number in 0..500 {
        let bytes = if number < 100 { 950 * 1024 } else { 60 * 1024 };
        kept.see(Kind::ConfigMap, config_map(format!("large-{number}"), bytes));
    }
    let taken = resident().saturating_sub(before);
    let (seen, _) = kept.store.config_map("weather-team-production", "large-7").expect("it was seen");
    assert_eq!(seen.size, 950 * 1024 + "config.yaml".len(), "what is measured is known");
    eprintln!("500 ConfigMaps of 119 MiB take {} KiB", taken / 1024);
    assert!(taken < 8 * MIB, "{} KiB", taken / 1024);
}

/// 1,000 namespaces that fill what is kept of each, with values that take much for few bytes of text: they take no more than is counted.
#[test]
fn mend_02_what_is_kept_of_a_full_namespace_takes_no_more_than_is_counted() {
    if !alone("mend_02_what_is_kept_of_a_full_namespace_takes_no_more_than_is_counted") {
        return;
    }
    const NAMESPACES: usize = 1_000;
    type Shape = (&'static str, fn(usize) -> String);
    let shapes: [Shape; 4] = [
        ("numbers by name", |at| format!("k{at}: 1\n")),
        ("lists in lists", |at| format!("k{at}: [[[[1]]], [2]]\n")),
        ("texts", |at| format!("k{at}: {}\n", "x".repeat(100))),
        ("mappings in mappings", |at| format!("k{at}: {{a: {{b: {{c: d}}}}}}\n")),
    ];
    // Kept to the end, so that nothing is used again.
    let mut all = Vec::new();
    for (what, line) in shapes {
        let lines = |line: fn(usize) -> String, count: usize| (0..count).map(line).collect::<String>();
        let weigh = |count: usize| {
            let text = lines(line, count);
            reading::read("authbridge-runtime-config", (false, false), &data("config.yaml", &text)).weight()
        };
        let per = (weigh(120) - weigh(60)) / 60;
        let mut kept = Vec::new();
        let before = resident();
        let mut counted = 0;
        let read =
            reading::read("authbridge-runtime-config", (false, false), &data("config.yaml", &lines(line, KEPT / per)));
        let Some(Ok(good)) = &read.config else { unreachable!("{what}: it was read") };
        for _ in 0..NAMESPACES {
            counted += read.weight();
            // As it was read, and merged over the layers below, as a namespace's view keeps it.
            kept.push(((**good).clone(), (**good).clone()));
        }
        let taken = resident().saturating_sub(before);
        eprintln!(
            "{what}: {NAMESPACES} namespaces take {} KiB of {} KiB that are counted",
            taken / 1024,
            counted / 1024
        );
        assert_eq!(kept.len(), NAMESPACES);
        assert!(counted > NAMESPACES * KEPT / 2 && counted <= NAMESPACES * KEPT * 5 / 4, "{what}: {counted}");
        assert!(taken < counted + 4 * MIB, "{what}: {} KiB of {}", taken / 1024, counted / 1024);
        assert!(taken > counted / 4, "{what}: what is measured is there");
        all.push(kept);
    }
}

fn data(key: &str, text: &str) -> BTreeMap<String, String> {
    BTreeMap::from([(key.to_owned(), text.to_owned())])
}

/// The same of steps.
#[test]
fn mend_02_steps_take_no_more_than_is_counted() {
    if !alone("mend_02_steps_take_no_more_than_is_counted") {
        return;
    }
    let container = |at: usize| {
        format!("  - name: s{at}\n    image: alpine:3.22\n    env: [{{name: A, value: b}}]\n    script: 'true'\n")
    };
    let text = format!("steps:\n{}", (0..20).map(container).collect::<String>());
    let (mut kept, mut counted) = (Vec::new(), 0);
    let map = ConfigMapText {
        namespace: "team".to_owned(),
        name: "step".to_owned(),
        labels: BTreeMap::from([("kagenti.operator.dev/tekton".to_owned(), "step".to_owned())]),
        data: data("task-spec.yaml", &text),
    };
    let entry = templates::read(&map, "kagenti-system").expect("a step");
    let templates::Entry::Step { strict, .. } = &entry else { unreachable!("a step") };
    // One was read already: the program's own pages, which reading brings into memory, are not what is kept.
    let before = resident();
    for _ in 0..4_000 {
        counted += entry.weight(reading::weight, reading::block);
        kept.push((**strict).clone());
    }
    let taken = resident().saturating_sub(before);
    eprintln!("4,000 steps take {} KiB of {} KiB that are counted", taken / 1024, counted / 1024);
    assert!(kept.iter().all(|entry| entry.step.is_ok()));
    assert!(taken < counted + 4 * MIB, "{} KiB of {}", taken / 1024, counted / 1024);
}

/// What a process without controllers keeps of the objects of a namespace, and its view of it.
#[test]
fn what_admission_reads_of_small_objects_takes_no_more_than_768_bytes_each() {
    if !alone("what_admission_reads_of_small_objects_takes_no_more_than_768_bytes_each") {
        return;
    }
    const EACH: usize = 10_000;
    let mut store = Store::new("kagenti-system");
    let mut see = |kind: Kind, at: usize, mut object: Value| {
        object["metadata"]["namespace"] = json!("weather-team-production");
        object["metadata"]["resourceVersion"] = json!("1");
        object["metadata"]["uid"] = json!(uid(kind.plural(), at));
        let raw: Raw = serde_json::from_str(&object.to_string()).expect("an object");
        assert!(store.apply(&raw.into_change(kind).slim(), Duration::ZERO));
    };
    let name = |at: usize| format!("weather-forecast-agent-{at:05}");
    let before = resident();
    for at in 0..EACH {
        let labels = if at % 2 == 0 { json!({"kagenti.io/managed-by": "webhook"}) } else { json!({}) };
        see(Kind::ServiceAccount, at, json!({"metadata": {"name": name(at), "labels": labels}}));
        let owner = json!([{"apiVersion": "batch/v1", "kind": "CronJob", "name": name(at / 10), "uid": "c", "controller": true}]);
        let mut job =
            json!({"metadata": {"name": format!("{}-29384756", name(at)), "ownerReferences": owner}, "spec": {}});
        job["spec"]["template"] = template("h");
        see(Kind::Job, at, job);
    }
    let platform = Platform::built_in();
    let inputs = NamespaceInputs::of(&store, "weather-team-production");
    let view = namespace_view(&platform, "weather-team-production", &inputs, None);
    drop(inputs);
    let taken = resident().saturating_sub(before);
    assert_eq!((view.service_accounts.len(), view.jobs.len()), (EACH, EACH), "what is measured is in use");
    eprintln!("{EACH} ServiceAccounts and {EACH} Jobs take {} KiB", taken / 1024);
    assert!(taken < 2 * EACH * 768, "{} KiB", taken / 1024);
    drop((store, view));
}

/// What a webhook replica keeps of AgentRuntimes that fill the room there is for them, beside what is counted: the memory that is left for the rest
/// (docs/limits.md) is reckoned with it.
#[test]
fn mend_02_agent_runtimes_take_a_webhook_no_more_than_five_eighths_of_what_is_counted() {
    if !alone("mend_02_agent_runtimes_take_a_webhook_no_more_than_five_eighths_of_what_is_counted") {
        return;
    }
    type Shape = (&'static str, fn() -> Value);
    let shapes: [Shape; 3] = [
        ("small ones", || json!({"type": "agent"})),
        ("long addresses", || json!({"type": "agent", "trace": {"endpoint": format!("http://{}", "x".repeat(2_000))}})),
        ("fields that are wrong", || {
            json!({"type": "x".repeat(4_000), "authBridgeMode": "y".repeat(4_000), "trace": {"endpoint": 1,
                "protocol": "z".repeat(4_000), "sampling": {"rate": 7}}, "identity": {"spiffe": {"trustDomain": "A b"}}})
        }),
    ];
    let mut all = Vec::new();
    for (what, spec) in shapes {
        let (mut kept, mut counted) = (BTreeMap::new(), 0);
        let mut before = resident();
        for at in 0.. {
            let name: Arc<str> = format!("weather-forecast-agent-{at:05}").into();
            let mut spec = spec();
            spec["targetRef"] = json!({"apiVersion": "apps/v1", "kind": "Deployment", "name": &*name});
            let object = json!({"metadata": {"name": &*name, "namespace": "team", "uid": uid("a", at), "resourceVersion": "1"}, "spec": spec});
            let raw: Raw = serde_json::from_str(&object.to_string()).expect("an object");
            let change = raw.into_change(Kind::AgentRuntime);
            let Some(What::AgentRuntime(seen)) = change.now.as_deref().map(|now| &now.what) else {
                unreachable!("{what}")
            };
            counted += RUNTIME + reading::weight(&seen.spec);
            // A quarter shows what all would take.
            if counted > OBJECTS_KEPT / 4 {
                break;
            }
            let uid = change.now.as_deref().map(|now| Arc::from(&*now.uid)).expect("it is there");
            // The first brings the program's own pages into memory, which are not what is kept.
            if at == 0 {
                before = resident();
            }
            kept.insert(name, Arc::new(AgentRuntimeInput { uid, ..AgentRuntimeInput::of_seen(seen) }));
        }
        let taken = resident().saturating_sub(before);
        eprintln!(
            "{} AgentRuntimes, {what}: {} KiB of {} KiB that are counted",
            kept.len(),
            taken / 1024,
            counted / 1024
        );
        assert!(kept.values().all(|one| one.target.is_some() && one.over.is_none()), "{what}");
        assert!(taken < counted / 8 * 5 + MIB, "{what}: {} KiB of {}", taken / 1024, counted / 1024);
        all.push(kept);
    }
}
