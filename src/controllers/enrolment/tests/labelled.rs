//! The type label on the workload itself: enrolled as by an AgentRuntime, and left as it was.

use serde_json::{Value, json};

use super::bench::{Bench, WEB, deployment, pod, template};
use super::rolling::{applied, roll_out};
use crate::config::enrolment::WorkloadLabels;
use crate::controllers::enrolment::wave::SLOW;
use crate::controllers::scaffold::plan::Op;
use crate::domain::keys;
use crate::domain::reason::Reason;
use crate::store::{Kind, Reach};

const OLD: &str = "2026-05-01T00:00:00Z";
const INSTALLED: &str = "2026-05-02T00:00:00Z";
const NEW: &str = "2026-05-03T00:00:00Z";

/// `kubectl label`, at that time; without a value the label goes.
fn label(bench: &mut Bench, (kind, name): (Kind, &str), value: Option<&str>, time: &str) {
    let mut object = bench.object(kind, name).clone();
    let entries = object["metadata"]["managedFields"].as_array().cloned().unwrap_or_default();
    let mut entries: Vec<Value> = entries.into_iter().filter(|entry| entry["manager"] != "kubectl-label").collect();
    let mut labels = object["metadata"]["labels"].as_object().cloned().unwrap_or_default();
    match value {
        Some(value) => {
            labels.insert(keys::LABEL_TYPE.to_owned(), json!(value));
            entries.push(json!({"manager": "kubectl-label", "operation": "Update", "time": time,
                "fieldsV1": {"f:metadata": {"f:labels": {"f:kagenti.io/type": {}}}}}));
        }
        None => drop(labels.remove(keys::LABEL_TYPE)),
    }
    object["metadata"]["labels"] = labels.into();
    object["metadata"]["managedFields"] = entries.into();
    bench.put(kind, object);
}

/// The ConfigMap of the manifests says when.
fn installed(bench: &mut Bench) {
    let mut snapshot = (*bench.cluster.facts.snapshot).clone();
    snapshot.labels = snapshot.labels.installed(Some(INSTALLED.into()));
    bench.cluster.facts.snapshot = snapshot.into();
    bench.cluster.facts.settled = bench.cluster.facts.snapshot.clone();
}

fn bench() -> Bench {
    let mut bench = Bench::new();
    installed(&mut bench);
    bench
}

/// Web, labelled after the installation.
fn labelled() -> Bench {
    let mut bench = bench();
    label(&mut bench, WEB, Some("agent"), NEW);
    bench.converge();
    bench
}

/// `count` Deployments whose label is that old.
fn many(count: usize, time: &str) -> Bench {
    let mut bench = bench();
    bench.remove(Kind::Deployment, "web");
    for number in 0..count {
        let name = format!("d{number:03}");
        bench.put(Kind::Deployment, deployment(&name));
        label(&mut bench, (Kind::Deployment, &name), Some("agent"), time);
    }
    bench
}

fn restart(bench: &mut Bench) {
    bench.cluster.forget();
    bench.cluster.memory.surveyed = true;
}

/// Labels and annotations of web.
fn people_see(bench: &Bench) -> Value {
    let metadata = &bench.object(Kind::Deployment, "web")["metadata"];
    json!([metadata["labels"], metadata["annotations"]])
}

fn is_plain(bench: &Bench, name: &str) -> bool {
    bench.object(Kind::Deployment, name)["spec"] == deployment(name)["spec"]
}

#[test]
fn mend_17_a_labelled_workload_is_enrolled_in_one_apply_and_left_as_it_was() {
    let mut bench = bench();
    assert_eq!(bench.converge(), []);
    let before = bench.object(Kind::Deployment, "web").clone();
    label(&mut bench, WEB, Some("agent"), NEW);
    let ops = bench.converge();
    assert!(matches!(&ops[..], [Op::Apply { .. }]), "{ops:?}");
    let web = bench.object(Kind::Deployment, "web");
    assert_eq!(web.pointer("/spec/template/metadata/labels"), Some(&json!({"app": "web", keys::LABEL_TYPE: "agent"})));
    assert_eq!(bench.hash(Kind::Deployment, "web").map(str::len), Some(64));
    assert_eq!(
        web["metadata"]["labels"],
        json!({"app": "web", keys::LABEL_TYPE: "agent"}),
        "no marker: the label says it"
    );
    let ours = web["metadata"]["managedFields"].as_array().unwrap();
    let ours = ours.iter().find(|entry| entry["manager"] == keys::MANAGER_ENROLMENT).unwrap();
    assert_eq!(ours["fieldsV1"].pointer("/f:metadata/f:labels"), None, "the label stays its user's");
    assert_eq!(bench.converge(), [], "settled");
    restart(&mut bench);
    assert_eq!(bench.converge(), [], "a restart writes nothing");

    label(&mut bench, WEB, None, NEW);
    let ops = bench.converge();
    assert!(matches!(&ops[..], [Op::Apply { .. }]), "{ops:?}");
    let web = bench.object(Kind::Deployment, "web");
    assert_eq!((&web["spec"], &web["metadata"]["labels"]), (&before["spec"], &before["metadata"]["labels"]));
    let annotations = web["metadata"]["annotations"].as_object();
    assert!(annotations.is_none_or(serde_json::Map::is_empty), "{annotations:?}");
    assert_eq!(bench.converge(), []);
}

#[test]
fn mend_17_every_kind_is_enrolled_where_it_keeps_its_template() {
    for kind in [Kind::StatefulSet, Kind::DaemonSet, Kind::CronJob, Kind::Sandbox] {
        let mut bench = bench();
        bench.cluster.store.set_reach(Kind::Sandbox, Reach::Listed);
        let mut object = json!({"metadata": {"name": "it", "generation": 1}});
        let inner = json!({"metadata": {"labels": {"app": "it"}}, "spec": {"containers": [{"name": "app"}]}});
        let path: Vec<&str> = template(kind).split('/').skip(1).collect();
        json_patch::merge(&mut object, &path.into_iter().rev().fold(inner, |inner, part| json!({part: inner})));
        bench.put(kind, object);
        label(&mut bench, (kind, "it"), Some("agent"), NEW);
        bench.converge();
        let labels = bench.object(kind, "it").pointer(template(kind)).unwrap()["metadata"]["labels"].clone();
        assert_eq!(labels, json!({"app": "it", keys::LABEL_TYPE: "agent"}), "{kind:?}");
        assert!(bench.hash(kind, "it").is_some(), "{kind:?}");
    }
}

#[test]
fn mend_17_a_template_with_a_label_of_its_own_stays_as_it_is() {
    for value in ["agent", "tool"] {
        let mut bench = bench();
        let own = json!({"spec": {"template": {"metadata": {"labels": {keys::LABEL_TYPE: value}}}}});
        bench.change(Kind::Deployment, "web", own);
        label(&mut bench, WEB, Some("agent"), NEW);
        assert_eq!(bench.converge(), [], "{value}: no second ReplicaSet");
        label(&mut bench, WEB, None, NEW);
        assert_eq!(bench.converge(), [], "{value}");
    }
}

#[test]
fn mend_17_an_agent_runtime_governs_and_gives_back_to_the_label() {
    let mut bench = labelled();
    roll_out(&mut bench, "web");
    bench.converge();
    let template = bench.object(Kind::Deployment, "web")["spec"]["template"].clone();
    let metadata = people_see(&bench);
    bench.runtime("art", WEB, json!({}));
    let ops = bench.converge();
    assert_eq!(applied(&ops), ["web"]);
    let web = bench.object(Kind::Deployment, "web");
    assert_eq!(web["metadata"]["labels"][keys::LABEL_MANAGED_BY], "drawbridge");
    assert_eq!(
        (&web["spec"]["template"], &*bench.condition("art", "Ready")),
        (&template, "True/Configured"),
        "no rollout"
    );

    // Its deletion waits for no place among those that roll, and rolls nothing.
    bench.cluster.memory.surveyed = false;
    bench.change(Kind::AgentRuntime, "art", json!({"metadata": {"deletionTimestamp": "2026-05-04T00:00:00Z"}}));
    assert_eq!(applied(&bench.converge()), ["web"]);
    assert!(!bench.objects.contains_key(&(Kind::AgentRuntime, "art".to_owned())));
    let web = bench.object(Kind::Deployment, "web");
    assert_eq!(web["metadata"]["labels"], json!({"app": "web", keys::LABEL_TYPE: "agent"}));
    assert_eq!(web["spec"]["template"], template, "the label keeps it");
    assert_eq!(people_see(&bench), metadata, "what it was rolled for is told on");
    label(&mut bench, WEB, None, NEW);
    bench.converge();
    assert!(is_plain(&bench, "web"));
}

#[test]
fn mend_17_an_old_label_is_not_what_ends_with_an_agent_runtime() {
    let mut bench = bench();
    label(&mut bench, WEB, Some("agent"), OLD);
    bench.runtime("art", WEB, json!({}));
    bench.converge();
    assert!(bench.hash(Kind::Deployment, "web").is_some());
    bench.change(Kind::AgentRuntime, "art", json!({"metadata": {"deletionTimestamp": "2026-05-04T00:00:00Z"}}));
    bench.converge();
    assert!(is_plain(&bench, "web"), "as before the AgentRuntime");
    assert!(!bench.objects.contains_key(&(Kind::AgentRuntime, "art".to_owned())));
}

#[test]
fn mend_17_a_label_from_before_the_installation_rolls_nobody_until_it_is_touched() {
    let mut bench = many(7, OLD);
    assert_eq!(bench.converge(), [], "an upgrade rolls nobody");
    restart(&mut bench);
    assert_eq!(bench.converge(), [], "nor does a restart");
    label(&mut bench, (Kind::Deployment, "d003"), Some("agent"), INSTALLED);
    assert_eq!(applied(&bench.converge()), ["d003"], "touched, in the second of the installation at the latest");
    // Whatever becomes of the record, what is enrolled stays so.
    for since in [None, Some("2027-01-01T00:00:00Z".into())] {
        let mut snapshot = (*bench.cluster.facts.snapshot).clone();
        snapshot.labels = WorkloadLabels::Since(since);
        bench.cluster.facts.snapshot = snapshot.into();
        bench.cluster.facts.settled = bench.cluster.facts.snapshot.clone();
        assert_eq!(bench.converge(), []);
    }
}

#[test]
fn mend_17_the_key_enrols_all_in_waves_and_releases_them_in_waves() {
    let mut bench = many(12, OLD);
    bench.converge();
    let wave_by_wave = |bench: &mut Bench| {
        let mut sizes = Vec::new();
        for round in 0.. {
            assert!(round < 12, "no end");
            let names = applied(&bench.converge());
            if names.is_empty() {
                return sizes;
            }
            sizes.push(names.len());
            names.iter().for_each(|name| roll_out(bench, name));
        }
        sizes
    };
    bench.cluster.configure("enrolment: {byWorkloadLabel: true}\n");
    installed(&mut bench);
    assert_eq!(wave_by_wave(&mut bench), [5, 5, 2]);
    assert!((0..12).all(|number| bench.hash(Kind::Deployment, &format!("d{number:03}")).is_some()));
    bench.cluster.configure("enrolment: {byWorkloadLabel: false}\n");
    assert_eq!(wave_by_wave(&mut bench), [5, 5, 2]);
    assert!((0..12).all(|number| is_plain(&bench, &format!("d{number:03}"))));
}

/// Every workload is enrolled for the key, and what the key enrolled is to be released.
fn enrolled_by_the_key(bench: &mut Bench) {
    bench.converge();
    bench.cluster.configure("enrolment: {byWorkloadLabel: true}\n");
    installed(bench);
    for round in 0.. {
        assert!(round < 12, "no end");
        let names = applied(&bench.converge());
        if names.is_empty() {
            break;
        }
        for name in names {
            if bench.objects.contains_key(&(Kind::Deployment, name.clone())) {
                roll_out(bench, &name);
            }
        }
    }
    bench.cluster.configure("enrolment: {byWorkloadLabel: false}\n");
}

/// A Sandbox keeps its Pod, so that no rollout of it is ever over.
#[test]
fn sandboxes_that_the_key_releases_keep_no_place_in_the_wave() {
    let mut bench = many(0, OLD);
    bench.cluster.store.set_reach(Kind::Sandbox, Reach::Listed);
    let names: Vec<_> = (0..12).map(|number| format!("b{number:03}")).collect();
    for name in &names {
        bench.put(
            Kind::Sandbox,
            json!({"metadata": {"name": name, "generation": 1}, "spec": {"replicas": 1, "podTemplate": {
                "metadata": {"labels": {"app": name}}, "spec": {"containers": [{"name": "app", "image": "i"}]}}}}),
        );
        label(&mut bench, (Kind::Sandbox, name), Some("agent"), OLD);
    }
    enrolled_by_the_key(&mut bench);
    assert!(names.iter().all(|name| bench.hash(Kind::Sandbox, name).is_some()));
    assert_eq!(applied(&bench.converge()).len(), 12);
    assert!(names.iter().all(|name| bench.hash(Kind::Sandbox, name).is_none()));
    assert_eq!(bench.cluster.memory.rolling(), 0);
}

/// Nor does what is stuck without its sidecars: rollouts that failed are no reason to go on injecting.
#[test]
fn what_is_stuck_after_its_release_holds_no_other_release_up() {
    let mut bench = many(7, OLD);
    enrolled_by_the_key(&mut bench);
    let first = applied(&bench.converge());
    assert_eq!(first.len(), 5);
    let stuck = json!([{"type": "Progressing", "status": "False", "reason": "ProgressDeadlineExceeded"}]);
    for name in &first {
        roll_out(&mut bench, name);
        bench.change(Kind::Deployment, name, json!({"status": {"updatedReplicas": 0, "conditions": stuck}}));
    }
    assert_eq!(applied(&bench.converge()).len(), 2);
    assert!((0..7).all(|number| is_plain(&bench, &format!("d{number:03}"))));
}

#[test]
fn mend_17_many_labels_at_once_roll_in_waves_and_what_is_stuck_holds_nobody_up() {
    let mut bench = many(12, NEW);
    let first = applied(&bench.converge());
    assert_eq!(first.len(), 5);
    restart(&mut bench);
    // Who rolls is known again once each has been looked at.
    bench.cluster.memory.surveyed = false;
    assert_eq!(bench.converge(), []);
    bench.cluster.memory.surveyed = true;
    assert_eq!(bench.converge(), [], "those that roll are told by the cluster");
    let stuck = json!([{"type": "Progressing", "status": "False", "reason": "ProgressDeadlineExceeded"}]);
    for name in &first[..3] {
        roll_out(&mut bench, name);
        bench.change(Kind::Deployment, name, json!({"status": {"updatedReplicas": 0, "conditions": stuck}}));
    }
    assert_eq!(applied(&bench.converge()).len(), 3, "one that fails is its user's matter");
    assert_eq!((bench.cluster.memory.failed(), bench.cluster.memory.rolling()), (0, 0), "nor the fleet's");
    bench.now += SLOW;
    assert_eq!(applied(&bench.converge()).len(), 4, "nor does one that takes for ever");
}

#[test]
fn mend_17_without_injection_nothing_is_rolled() {
    let mut bench = bench();
    label(&mut bench, WEB, Some("tool"), NEW);
    assert_eq!(bench.converge(), [], "gate injectTools is off");
    let mut snapshot = (*bench.cluster.facts.snapshot).clone();
    snapshot.gates.inject_tools = true;
    bench.cluster.facts.snapshot = snapshot.into();
    bench.cluster.facts.settled = bench.cluster.facts.snapshot.clone();
    bench.converge();
    let web = bench.object(Kind::Deployment, "web");
    assert_eq!(web.pointer("/spec/template/metadata/labels").unwrap()[keys::LABEL_TYPE], "tool");
}

#[test]
fn mend_17_another_value_enrols_nothing_and_ends_what_there_was() {
    let mut bench = bench();
    label(&mut bench, WEB, Some("Agent"), NEW);
    assert_eq!(bench.converge(), []);
    label(&mut bench, WEB, Some("agent"), NEW);
    bench.converge();
    assert!(!is_plain(&bench, "web"));
    label(&mut bench, WEB, Some("service"), NEW);
    bench.converge();
    assert!(is_plain(&bench, "web"));
}

#[test]
fn mend_17_pods_that_would_be_refused_are_not_rolled_and_the_workload_says_why() {
    let mut bench = bench();
    bench.change(Kind::Deployment, "web", json!({"spec": {"template": {"spec": {"hostNetwork": true}}}}));
    label(&mut bench, WEB, Some("agent"), NEW);
    assert_eq!(applied(&bench.converge()), Vec::<String>::new());
    let told: Vec<_> = bench.told.iter().map(|report| (report.kind, &*report.about.name, report.reason)).collect();
    assert_eq!(told, [(Kind::Deployment, "web", Reason::HostNetwork)]);
}

#[test]
fn mend_17_what_somebody_takes_off_the_template_comes_back() {
    let mut bench = labelled();
    roll_out(&mut bench, "web");
    bench.converge();
    let template = bench.object(Kind::Deployment, "web")["spec"]["template"].clone();
    bench.change(
        Kind::Deployment,
        "web",
        json!({"spec": {"template": {"metadata": {"labels": {keys::LABEL_TYPE: null}}}}}),
    );
    assert_eq!(applied(&bench.converge()), ["web"]);
    assert_eq!(bench.object(Kind::Deployment, "web")["spec"]["template"], template);
}

#[test]
fn mend_17_unprotected_pods_are_seen_like_those_of_any_enrolled_workload() {
    let mut bench = bench();
    bench.put(
        Kind::StatefulSet,
        json!({"metadata": {"name": "db", "generation": 1}, "spec": {"replicas": 1, "template": {
        "metadata": {"labels": {"app": "db"}}, "spec": {"containers": [{"name": "app"}]}}},
        "status": {"observedGeneration": 9, "replicas": 1, "updatedReplicas": 1, "availableReplicas": 1}}),
    );
    label(&mut bench, (Kind::StatefulSet, "db"), Some("agent"), NEW);
    bench.converge();
    bench.put(Kind::Pod, pod("db-0", (Kind::StatefulSet, "db"), None));
    bench.converge();
    assert_eq!(bench.remembered().drift().0, 1);
    assert!(bench.told.iter().any(|report| report.reason == Reason::UnprotectedPods), "{:?}", bench.told);
}

#[test]
fn mend_17_nothing_is_concluded_while_agent_runtimes_cannot_be_read() {
    let mut bench = bench();
    bench.cluster.store.set_reach(Kind::AgentRuntime, Reach::Unknown);
    label(&mut bench, WEB, Some("agent"), NEW);
    assert_eq!(bench.converge(), []);
    bench.cluster.store.set_reach(Kind::AgentRuntime, Reach::Listed);
    assert_eq!(applied(&bench.converge()), ["web"]);
}

/// What `kubectl rollout undo` brought back from a ReplicaSet of the time of an enrolment.
#[test]
fn mend_10_an_annotation_that_came_back_after_the_enrolment_goes() {
    let mut bench = bench();
    bench.change(
        Kind::Deployment,
        "web",
        json!({"metadata": {"annotations": {keys::ANNOTATION_ROLLED_FOR: "h", "mine": "x"}}}),
    );
    let ops = bench.converge();
    assert!(matches!(&ops[..], [Op::Merge { .. }]), "{ops:?}");
    assert_eq!(bench.object(Kind::Deployment, "web")["metadata"]["annotations"], json!({"mine": "x"}));
}
