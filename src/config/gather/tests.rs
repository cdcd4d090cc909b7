use std::time::Duration;

use serde_json::{Value, json};

use super::*;
use crate::domain::workload::WorkloadKind;
use crate::store::{UsedBy, Via, change_of};

fn change(kind: Kind, object: &Value) -> Change {
    Change { via: Via::File, ..change_of(kind, &object.to_string()).unwrap() }
}

/// What a change touches, which is taken then; a store of slim objects is told the same.
struct Trial {
    whole: Store,
    slim: Store,
}

impl Trial {
    fn new() -> Self {
        Self { whole: Store::new("own"), slim: Store::new("own") }
    }

    fn takes(&mut self, change: &Change) -> Touched {
        let touches = touched(&self.whole, change);
        assert_eq!(touched(&self.slim, change), touches, "{change:?}");
        self.whole.apply(change, Duration::ZERO);
        self.slim.apply(&change.slim(), Duration::ZERO);
        touches
    }

    fn inputs(&self, namespace: &str) -> NamespaceInputs {
        let inputs = NamespaceInputs::of(&self.whole, namespace);
        assert_eq!(NamespaceInputs::of(&self.slim, namespace), inputs);
        inputs
    }
}

fn gone(change: &Change) -> Change {
    Change { now: None, ..change.clone() }
}

/// (who is among the owners, label, whose it is)
#[test]
fn whose_a_service_account_is() {
    let owner = |version: &str, kind: &str, controls: bool| json!({"ownerReferences": [{"apiVersion": version, "kind": kind, "name": "a", "uid": "1", "controller": controls}]});
    let table = [
        (json!({}), Ownership::Foreign),
        (json!({"labels": {"kagenti.io/managed-by": "webhook"}}), Ownership::Ours),
        (json!({"labels": {"kagenti.io/managed-by": "me"}}), Ownership::Foreign),
        (owner("agent.kagenti.dev/v1alpha1", "Agent", true), Ownership::Ours),
        (owner("agent.kagenti.dev/v1alpha1", "Agent", false), Ownership::Foreign),
        (owner("apps/v1", "Deployment", true), Ownership::Foreign),
        (owner("example.com/v1", "Agent", true), Ownership::Foreign),
    ];
    for (mut metadata, whose) in table {
        let mut trial = Trial::new();
        (metadata["name"], metadata["namespace"]) = (json!("a"), json!("n"));
        let account = change(Kind::ServiceAccount, &json!({"metadata": metadata}));
        assert_eq!(trial.takes(&account), Touched::Namespace("n".into()));
        assert_eq!(trial.takes(&account), Touched::Nothing, "the same again is no news");
        assert_eq!(trial.inputs("n").service_accounts["a"], whose, "{metadata}");
    }
}

#[test]
fn what_is_gone_says_nothing_any_more() {
    let mut trial = Trial::new();
    let metadata = |mut more: Value| {
        (more["name"], more["namespace"], more["uid"]) = (json!("n"), json!("n"), json!("7"));
        more
    };
    let ours = json!({"managed-by": "drawbridge", "app.kubernetes.io/managed-by": "drawbridge"});
    let deny = json!({"name": "drawbridge-default-deny", "namespace": "n", "labels": ours});
    let target = json!({"apiVersion": "apps/v1", "kind": "Deployment", "name": "w"});
    for (kind, object) in [
        (Kind::Namespace, json!({"metadata": {"name": "n", "labels": {"kagenti-enabled": "true"}}})),
        (Kind::ServiceAccount, json!({"metadata": metadata(json!({}))})),
        (Kind::Job, json!({"metadata": metadata(json!({}))})),
        (Kind::AgentRuntime, json!({"metadata": metadata(json!({})), "spec": {}})),
        (Kind::AgentCard, json!({"metadata": metadata(json!({})), "spec": {"targetRef": target}})),
        (Kind::NetworkPolicy, json!({"metadata": deny})),
    ] {
        let there = change(kind, &object);
        assert_eq!(trial.takes(&there), Touched::Namespace("n".into()), "{kind:?}");
        assert_ne!(trial.inputs("n"), NamespaceInputs::default(), "{kind:?}");
        assert_eq!(gather(&trial.whole, "n").exists(), kind == Kind::Namespace);
        assert_eq!(trial.takes(&gone(&there)), Touched::Namespace("n".into()), "{kind:?}");
        assert_eq!(trial.inputs("n"), NamespaceInputs::default(), "{kind:?}");
        assert_eq!(trial.takes(&gone(&there)), Touched::Nothing, "{kind:?}: gone already");
    }
    assert_eq!(
        trial.takes(&change(Kind::Deployment, &json!({"metadata": metadata(json!({})), "spec": {}}))),
        Touched::Nothing
    );
    assert_eq!(trial.takes(&change(Kind::NetworkPolicy, &json!({"metadata": metadata(json!({}))}))), Touched::Nothing);
}

#[test]
fn a_change_touches_its_namespace_only_when_it_changes_what_admission_reads() {
    let mut trial = Trial::new();
    let touches = |name: &str| Touched::Namespace(name.into());
    let namespace = |enabled: &str, other: &str| {
        change(Kind::Namespace, &json!({"metadata": {"name": "a", "labels": {"kagenti-enabled": enabled, "x": other}}}))
    };
    assert_eq!(trial.takes(&namespace("true", "y")), touches("a"));
    assert_eq!(trial.takes(&namespace("true", "z")), Touched::Nothing, "a label that nobody reads");
    assert_eq!(trial.takes(&namespace("false", "z")), touches("a"));
    let job = |name: &str, group: &str, retried: &str| {
        let owner =
            json!([{"apiVersion": group, "kind": "CronJob", "name": "nightly", "uid": "c", "controller": true}]);
        change(
            Kind::Job,
            &json!({"metadata": {"name": name, "namespace": "a", "uid": format!("uid-{name}"), "ownerReferences": owner,
                "annotations": {"kagenti.io/retried": retried}}, "status": {"active": retried.len()}}),
        )
    };
    assert_eq!(trial.takes(&job("j", "batch/v1", "")), touches("a"));
    assert_eq!(trial.takes(&job("j", "batch/v1", "again")), Touched::Nothing, "how far it is");
    assert_eq!(trial.takes(&job("k", "example.org/v1", "")), touches("a"));
    let runtime = |phase: &str, kind: &str| {
        change(
            Kind::AgentRuntime,
            &json!({"metadata": {"name": "r", "namespace": "a", "uid": "u", "creationTimestamp": "2026-01-01T00:00:00Z"},
                "spec": {"type": kind, "targetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "w"}},
                "status": {"phase": phase}}),
        )
    };
    assert_eq!(trial.takes(&runtime("Pending", "tool")), touches("a"));
    assert_eq!(trial.takes(&runtime("Active", "tool")), Touched::Nothing, "our own status write");
    assert_eq!(trial.takes(&runtime("Active", "agent")), touches("a"));
    let card = |name: &str, label: &str, number: u64| {
        change(
            Kind::AgentCard,
            &json!({"metadata": {"name": name, "namespace": "a", "labels": {"app.kubernetes.io/managed-by": label},
                "generation": number}, "spec": {"targetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "w"}}}),
        )
    };
    assert_eq!(trial.takes(&card("ours", "drawbridge", 1)), Touched::Nothing, "it stands in nobody's way");
    assert_eq!(trial.takes(&card("ours", "drawbridge", 2)), Touched::Nothing);
    assert_eq!(trial.takes(&card("theirs", "me", 1)), touches("a"));
    let seen = trial.inputs("a");
    assert_eq!(seen.labels["kagenti-enabled"], "false");
    let workload = |name: &str| (seen.jobs[name].workload.kind, seen.jobs[name].workload.name.as_str());
    assert_eq!(workload("j"), (WorkloadKind::CronJob, "nightly"));
    assert_eq!(workload("k"), (WorkloadKind::Job, "k"), "a CronJob of another group is none");
    assert_eq!(&*seen.jobs["j"].uid, "uid-j");
    assert_eq!(seen.agent_cards.keys().map(|name| &**name).collect::<Vec<_>>(), ["theirs"]);
    let input = &seen.agent_runtimes["r"];
    let target = input.target.clone().unwrap();
    assert_eq!((target.kind, &*target.name), (WorkloadKind::Deployment, "w"));
    assert_eq!((&*input.uid, &*input.created, input.deleting), ("u", "2026-01-01T00:00:00Z", false));
}

#[test]
fn what_is_of_the_cluster_is_read_from_the_store_as_well() {
    let mut trial = Trial::new();
    let driver = change(Kind::CsiDriver, &json!({"metadata": {"name": "csi.spiffe.io"}}));
    assert_eq!(trial.takes(&driver), Touched::Cluster);
    assert_eq!(trial.takes(&driver), Touched::Nothing);
    let made = |namespace: &str, at: &str, data: &str| {
        let metadata = json!({"name": CONFIG_MAP_ENROLMENT, "namespace": namespace, "creationTimestamp": at});
        change(Kind::ConfigMap, &json!({"metadata": metadata, "data": {"a": data}}))
    };
    assert_eq!(trial.takes(&made("own", "2026-01-01T00:00:00Z", "x")), Touched::Cluster);
    assert_eq!(trial.takes(&made("own", "2026-01-01T00:00:00Z", "y")), Touched::Nothing, "its age counts");
    assert_eq!(trial.takes(&made("other", "2026-01-02T00:00:00Z", "x")), Touched::Nothing, "of no installation");
    for store in [&trial.whole, &trial.slim] {
        let installed = Some("2026-01-01T00:00:00Z".into());
        assert_eq!(cluster(store), ClusterInputs { spiffe_driver: true, installed });
    }
    assert_eq!(trial.takes(&gone(&driver)), Touched::Cluster);
    let build =
        |name: &str| change(Kind::AgentBuild, &json!({"metadata": {"name": name, "namespace": "team"}, "spec": {}}));
    assert_eq!(trial.takes(&build("a")), Touched::Builds("team".into()));
    assert_eq!(trial.takes(&build("a")), Touched::Nothing, "its spec is not read");
    assert_eq!(trial.takes(&build("b")), Touched::Builds("team".into()));
    assert_eq!(trial.takes(&gone(&build("a"))), Touched::Builds("team".into()));
    for store in [&trial.whole, &trial.slim] {
        assert_eq!(builds(store, "team"), BTreeSet::from(["b".to_owned()]));
        assert!(!cluster(store).spiffe_driver && builds(store, "other").is_empty());
    }
}

/// What admission needs is gathered, and nothing that it does not need.
#[test]
fn every_kind_that_admission_watches_is_gathered() {
    let elsewhere = [Kind::CsiDriver, Kind::ConfigMap, Kind::AgentBuild];
    for kind in Kind::ALL {
        let is_watched = kind.descriptor().selections.iter().any(|one| one.used_by == UsedBy::Every || one.names);
        assert_eq!(KINDS.contains(kind) || elsewhere.contains(kind), is_watched, "{kind:?}");
    }
}

/// What is run has a name that another may want; what it says is read by whoever runs it.
#[test]
fn of_agents_model_apis_and_servers_the_names_are_read_and_nothing_else() {
    for kind in namesakes::KINDS {
        let mut trial = Trial::new();
        let object = |name: &str, says: &str| {
            change(kind, &json!({"metadata": {"name": name, "namespace": "team"}, "spec": {"description": says}}))
        };
        assert_eq!(trial.takes(&object("a", "x")), Touched::Namespace("team".into()), "{kind:?}");
        assert_eq!(trial.takes(&object("a", "y")), Touched::Nothing, "{kind:?}");
        let mut wanted = namesakes::Named::default();
        wanted.set(kind, &"a".into(), true);
        assert_eq!(trial.inputs("team").named, wanted, "{kind:?}");
        assert_eq!(trial.takes(&gone(&object("a", "y"))), Touched::Namespace("team".into()), "{kind:?}");
        assert!(trial.inputs("team").named.is_empty(), "{kind:?}");
    }
}
