mod one_way;

use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};

use super::documents;
use super::review;
use super::runtimes::{self, Workloads};
use super::workload::{Subject, UnknownType, unread};
use super::world::{Facts, World};
use crate::admission::inject;
use crate::admission::verdict::Verdict;
use crate::cli::io::Io;
use crate::domain::keys;
use crate::domain::reason::Reason;
use crate::domain::workload::WorkloadKind;
use crate::store::{Change, Kind, Store, Via, change_of};

#[test]
fn a_name_of_a_manifest_never_becomes_a_line_of_a_report() {
    let metadata = json!({"name": "x\n\u{1b}[32mPod team/y", "namespace": "team"});
    let object = json!({"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": {}});
    assert_eq!(Subject::of(&object, "default").unwrap().title(), "Pod team/x\\n\\u{1b}[32mPod team/y");
}

#[test]
fn every_kind_that_makes_pods_has_its_template_found_and_put_back() {
    let template = json!({"metadata": {"labels": {"a": "b"}}, "spec": {"containers": []}});
    for (api, kind) in [
        ("apps/v1", "Deployment"),
        ("apps/v1", "StatefulSet"),
        ("apps/v1", "DaemonSet"),
        ("apps/v1", "ReplicaSet"),
        ("batch/v1", "Job"),
        ("batch/v1", "CronJob"),
    ] {
        let spec = match kind {
            "CronJob" => json!({"jobTemplate": {"spec": {"template": template}}}),
            _ => json!({"template": template}),
        };
        let object =
            json!({"apiVersion": api, "kind": kind, "metadata": {"name": "x", "namespace": "team"}, "spec": spec});
        let subject = Subject::of(&object, "default").unwrap();
        assert_eq!(subject.title(), format!("{kind} team/x"));
        let mut pod = subject.pod(&object);
        assert_eq!(pod["metadata"]["labels"], json!({"a": "b"}));
        assert_eq!(pod["metadata"]["ownerReferences"][0]["controller"], true);
        assert_eq!(subject.with_pod(&object, &pod), object, "nothing synthesised comes back");
        pod["metadata"]["annotations"] = json!({"k": "v"});
        pod["spec"]["containers"] = json!([{"name": "new"}]);
        let changed = subject.with_pod(&object, &pod);
        let put_back = subject.template(&changed).unwrap();
        assert_eq!(put_back["metadata"], json!({"labels": {"a": "b"}, "annotations": {"k": "v"}}));
        assert_eq!(put_back["spec"]["containers"], json!([{"name": "new"}]));
    }
}

#[test]
fn other_kinds_and_other_groups_are_not_ours() {
    for object in [
        json!({"apiVersion": "v1", "kind": "Service", "metadata": {"name": "x"}}),
        json!({"apiVersion": "example.com/v1", "kind": "Deployment", "spec": {"template": {}}}),
        json!({"apiVersion": "apps/v1", "kind": "Deployment", "spec": {}}),
        json!({"kind": "Deployment"}),
        json!([1]),
        json!("text"),
    ] {
        assert_eq!(Subject::of(&object, "default"), None, "{object}");
    }
    let pod = json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"generateName": "x-"}, "spec": {}});
    assert_eq!(Subject::of(&pod, "default").unwrap().workload.kind, WorkloadKind::Pod);
}

#[test]
fn what_did_not_change_is_not_read_again_for_the_next_snapshot() {
    let facts = Facts {
        platform_file: None,
        feature_gates_path: None,
        server_version: (1, 34),
        spire_driver: false,
        operator_namespace: "own".to_owned(),
    };
    let mut world = World::new(&facts).unwrap();
    ["team1", "team2"].into_iter().for_each(|name| world.know_namespace(name));
    let first = world.snapshot().unwrap();
    assert!(world.make_service_account("team1", "weather"));
    let second = world.snapshot().unwrap();
    assert!(Arc::ptr_eq(&first.builds, &second.builds));
    let same = |name: &str| Arc::ptr_eq(first.namespace(name).unwrap(), second.namespace(name).unwrap());
    assert!(same("team2") && !same("team1"));
    let defaults = json!({"apiVersion": "v1", "kind": "ConfigMap",
        "metadata": {"name": "d", "namespace": "own"}, "data": {"a": "b"}});
    world.observe(&defaults, "own");
    assert!(!Arc::ptr_eq(&world.snapshot().unwrap().builds, &first.builds));
    world.gates.text = "globalEnabled: false".to_owned();
    assert_ne!(world.snapshot().unwrap().gates, first.gates);
    world.gates.text = "globalEnabled: maybe".to_owned();
    assert!(world.snapshot().is_err() && world.snapshot().is_err());
}

/// A busy API server refuses to tell its version: that is no API server of version 0, to which no sidecar would be native.
#[test]
fn where_no_version_is_told_that_of_the_flags_stays() {
    let facts = Facts {
        platform_file: None,
        feature_gates_path: None,
        server_version: (1, 34),
        spire_driver: false,
        operator_namespace: "own".to_owned(),
    };
    let mut world = World::new(&facts).unwrap();
    assert_eq!(world.keep_server_version(), (1, 34));
    assert_eq!(world.snapshot().unwrap().view.server_version, (1, 34));
}

/// The reasons of what is in the way of an AgentRuntime of type `agent` in namespace `team` that points at the Deployment of that name.
fn in_the_way(target: &str, objects: &[Value]) -> Vec<Reason> {
    let facts = Facts {
        platform_file: None,
        feature_gates_path: None,
        server_version: (1, 34),
        spire_driver: false,
        operator_namespace: "own".to_owned(),
    };
    let runtime = json!({
        "apiVersion": "agent.kagenti.dev/v1alpha1", "kind": "AgentRuntime", "metadata": {"name": "r", "namespace": "team"},
        "spec": {"type": "agent", "targetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": target}},
    });
    let mut world = World::new(&facts).unwrap();
    objects.iter().chain([&runtime]).for_each(|object| world.observe(object, "team"));
    world.know_namespace("team");
    let fate = runtimes::fate(&runtime, "team", &Workloads::of(objects, "team"), &world.snapshot().unwrap());
    assert_eq!(fate.target, Some(format!("Deployment team/{target}")));
    fate.obstacles.iter().map(|obstacle| obstacle.reason).collect()
}

#[test]
fn an_agent_runtime_may_point_at_the_deployment_that_is_made_of_an_object_of_kaos() {
    let object = |api: &str, kind: &str, metadata: Value| json!({"apiVersion": api, "kind": kind, "metadata": metadata, "spec": {}});
    let now = "kaos.tools/v1alpha1";
    for (target, kind) in [("agent-x", "Agent"), ("modelapi-x", "ModelAPI"), ("mcpserver-x", "MCPServer")] {
        for (what, object, reason) in [
            ("of no namespace", object(now, kind, json!({"name": "x"})), None),
            ("of the type", object(now, kind, json!({"name": "x", "labels": {"kagenti.io/type": "agent"}})), None),
            (
                "of another type",
                object(now, kind, json!({"name": "x", "labels": {"kagenti.io/type": "tool"}})),
                Some(Reason::LabelConflict),
            ),
            ("elsewhere", object(now, kind, json!({"name": "x", "namespace": "other"})), Some(Reason::TargetNotFound)),
            ("of another name", object(now, kind, json!({"name": "y"})), Some(Reason::TargetNotFound)),
            ("without a name", object(now, kind, json!({"generateName": "x"})), Some(Reason::TargetNotFound)),
            ("of no version", object("kaos.tools/v9", kind, json!({"name": "x"})), Some(Reason::TargetNotFound)),
            ("of broken metadata", object(now, kind, json!("x")), Some(Reason::TargetNotFound)),
        ] {
            assert_eq!(in_the_way(target, &[object]), Vec::from_iter(reason), "{kind} {what}");
        }
        // Its object's own name is none of a Deployment's.
        assert_eq!(in_the_way("x", &[object(now, kind, json!({"name": "x"}))]), [Reason::TargetNotFound]);
    }
    // What the input has itself is what the cluster would have.
    let labels = json!({"labels": {"kagenti.io/type": "tool"}});
    let there = json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "agent-x"}, "spec": {"template": {"metadata": labels}}});
    let both = [object(now, "Agent", json!({"name": "x"})), there];
    assert_eq!(in_the_way("agent-x", &both), [Reason::LabelConflict]);
}

/// A world that knows nothing but namespace `team`.
fn fresh() -> World {
    let facts = Facts {
        platform_file: None,
        feature_gates_path: None,
        server_version: (1, 34),
        spire_driver: true,
        operator_namespace: "own".to_owned(),
    };
    let mut world = World::new(&facts).unwrap();
    world.know_namespace("team");
    world
}

/// Deployment `weather`: the account that its template names, what the record of our parts claims to have been given, and whether a container of ours
/// stands beside it.
fn recorded(account: Option<&str>, claims: Option<&str>, is_beside_ours: bool) -> Value {
    let mut template = json!({"metadata": {"labels": {"kagenti.io/type": "agent"}, "annotations": {"team": "a"}},
        "spec": {"containers": [{"name": "agent", "image": "a:1", "ports": [{"containerPort": 8000}]}]}});
    if let Some(account) = account {
        template["spec"]["serviceAccountName"] = json!(account);
    }
    if is_beside_ours {
        template["spec"]["initContainers"] = json!([{"name": keys::CONTAINER_PROXY_INIT, "image": "p:1"}]);
    }
    if let Some(now) = claims {
        let record =
            json!({"version": 1, "init": [{"name": keys::CONTAINER_PROXY_INIT}], "serviceAccount": {"now": now}});
        template["metadata"]["annotations"][keys::ANNOTATION_STATUS] = json!(record.to_string());
    }
    json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "weather"}, "spec": {"template": template}})
}

/// Whoever writes the record of our parts on a template would else have an account told of that no Pod runs under.
#[test]
fn a_forged_record_on_a_template_has_no_account_made_and_a_true_one_the_workloads_own() {
    let made = |object: &Value| review::prepare(&mut fresh(), &Subject::of(object, "team").unwrap(), object).unwrap();
    let own = Some("weather".to_owned());
    for (account, claims, is_beside_ours, wanted) in [
        (None, None, false, own.clone()),
        (Some("strong"), None, false, None),
        (Some("strong"), Some("strong"), false, None),
        (Some("weather"), Some("weather"), false, None),
        (None, Some("strong"), false, own.clone()),
        (Some("strong"), Some("strong"), true, None),
        (Some("weather"), Some("weather"), true, own.clone()),
    ] {
        let object = recorded(account, claims, is_beside_ours);
        assert_eq!(made(&object), wanted, "{account:?} {claims:?} {is_beside_ours}");
    }
    let (plain, mut world) = (recorded(None, None, false), fresh());
    let subject = Subject::of(&plain, "team").unwrap();
    review::prepare(&mut world, &subject, &plain).unwrap();
    let mut pod = subject.pod(&plain);
    let verdict = review::evaluate(&subject, &pod, &world.snapshot().unwrap()).unwrap();
    json_patch::patch(&mut pod, &verdict.operations()).unwrap();
    let injected = subject.with_pod(&plain, &pod);
    assert_eq!(injected["spec"]["template"]["spec"]["serviceAccountName"], "weather");
    assert_eq!(made(&injected), own, "what was injected beforehand keeps its account");
    let again = review::evaluate(&subject, &subject.pod(&injected), &world.snapshot().unwrap()).unwrap();
    assert_eq!(again.operations(), [], "and a second time nothing is left to do");
}

/// The webhook does not believe it, so whoever asks beforehand hears of no account that nobody makes.
#[test]
fn pods_of_a_template_with_a_forged_record_are_judged_as_the_webhook_judges_them() {
    for (account, is_beside_ours) in [("strong", false), ("weather", false), ("strong", true)] {
        let (object, mut world) = (recorded(Some(account), Some(account), is_beside_ours), fresh());
        let subject = Subject::of(&object, "team").unwrap();
        review::prepare(&mut world, &subject, &object).unwrap();
        let (mut pod, snapshot) = (subject.pod(&object), world.snapshot().unwrap());
        let verdict = review::evaluate(&subject, &pod, &snapshot).unwrap();
        assert_eq!(verdict.reason, Reason::Injected, "{account} {is_beside_ours}: {:?}", verdict.outcome);
        assert_eq!(review::explain(&subject, &pod, &snapshot).unwrap().0, verdict);
        json_patch::patch(&mut pod, &verdict.operations()).unwrap();
        assert_eq!(pod["spec"]["serviceAccountName"], account, "{is_beside_ours}");
        assert_eq!(pod["metadata"].get("managedFields"), None, "what only the API server writes is written nowhere");
    }
}

/// The configuration hash of an answer.
fn hash(verdict: &Verdict) -> Option<&str> {
    verdict.audit.iter().find(|(name, _)| *name == "config-hash").map(|(_, hash)| hash.as_str())
}

/// The variables of tracing stand in the copy, so that to the API server they are the requester's own: controllers, who keep no values of variables,
/// and the webhook leave them out of the hash.
#[test]
fn a_template_that_was_copied_from_an_injected_pod_is_explained_with_the_hash_of_the_controllers() {
    let mut world = fresh();
    world.platform.text.push_str("trace: {endpoint: 'http://otel:4317'}\n");
    let mut plain = recorded(None, None, false);
    plain["metadata"]["namespace"] = json!("team");
    let subject = Subject::of(&plain, "team").unwrap();
    review::prepare(&mut world, &subject, &plain).unwrap();
    let snapshot = world.snapshot().unwrap();
    let mut pod = subject.pod(&plain);
    let verdict = review::evaluate(&subject, &pod, &snapshot).unwrap();
    json_patch::patch(&mut pod, &verdict.operations()).unwrap();
    let copy = subject.with_pod(&plain, &pod);
    assert!(copy.to_string().contains("OTEL_EXPORTER_OTLP_ENDPOINT"), "{copy}");

    let mut store = Store::new("own");
    let change = change_of(Kind::Deployment, &copy.to_string()).unwrap();
    store.apply(&Change { via: Via::File, ..change }, Duration::ZERO);
    let kept = store.workload(Kind::Deployment, "team", "weather").unwrap();
    let template = kept.governed_template(&snapshot.labels).unwrap();
    let wanted = inject::needs("team", &subject.workload, &template, &snapshot).config_hash;
    let pod = subject.pod(&copy);
    let (told, _) = review::explain_as_sent(&subject, (&pod, &pod), &snapshot).unwrap();
    assert!(wanted.is_some() && wanted.as_deref() != hash(&verdict), "{wanted:?}");
    assert_eq!(hash(&told), wanted.as_deref());
    // What `inject` wrote it finds as it left it.
    assert_eq!(review::evaluate(&subject, &pod, &snapshot).unwrap().operations(), []);
    let (told, _) = review::explain_as_sent(&subject, (&subject.pod(&plain), &subject.pod(&plain)), &snapshot).unwrap();
    assert_eq!(hash(&told), hash(&verdict), "of a template that was copied from nowhere it is the same");
}

/// (apiVersion, kind, the field that is wrong and what is said of it)
#[test]
fn types_of_pods_and_what_makes_them_that_no_api_server_knows_are_told_with_the_right_one() {
    for (version, kind, says) in [
        ("v1", "Deployment", Some("apiVersion: the API server knows no Deployment of v1; write apiVersion: apps/v1")),
        (
            "apps/v1beta2",
            "DaemonSet",
            Some("apiVersion: the API server knows no DaemonSet of apps/v1beta2; write apiVersion: apps/v1"),
        ),
        (
            "batch/v1beta1",
            "CronJob",
            Some("apiVersion: the API server knows no CronJob of batch/v1beta1; write apiVersion: batch/v1"),
        ),
        ("apps/v1", "Pod", Some("apiVersion: the API server knows no Pod of apps/v1; write apiVersion: v1")),
        ("", "StatefulSet", Some("apiVersion: is missing; write apiVersion: apps/v1")),
        (
            "apps/v1",
            "statefulset",
            Some("kind: the API server knows no statefulset of apps/v1; write kind: StatefulSet"),
        ),
        ("apps", "replicaset", Some("write apiVersion: apps/v1, and kind: ReplicaSet")),
        ("apps/v1", "ReplicationController", Some("write apiVersion: v1")),
        ("apps/v1", "Deployment", None),
        ("v1", "Pod", None),
        ("v1", "ReplicationController", None),
        ("example.com/v1", "Deployment", None),
        ("agents.x-k8s.io/v1", "Sandbox", None),
        ("v1", "Service", None),
        ("", "", None),
    ] {
        let object = json!({"apiVersion": version, "kind": kind});
        let told = UnknownType::of(&object).map(|unknown| format!("{}: {}", unknown.field(), unknown.words()));
        assert_eq!(told.is_some(), says.is_some(), "{version} {kind}: {told:?}");
        assert!(told.unwrap_or_default().ends_with(says.unwrap_or_default()), "{version} {kind}");
    }
    for other in [json!("text"), json!([1]), json!({"kind": 1, "apiVersion": ["v1"]}), Value::Null] {
        assert_eq!(UnknownType::of(&other), None, "{other}");
        assert_eq!(unread(&other, "team"), None, "{other}");
    }
}

#[test]
fn what_makes_no_pods_for_want_of_a_template_is_told() {
    let of = |kind: &str, spec: Value| {
        unread(&json!({"apiVersion": "batch/v1", "kind": kind, "metadata": {"name": "x"}, "spec": spec}), "team")
    };
    let told = of("CronJob", json!({"jobTemplate": {"spec": {}}})).unwrap();
    assert!(told.starts_with("CronJob team/x: spec.jobTemplate.spec.template is missing or no mapping"), "{told}");
    assert!(of("Job", json!({"template": "text"})).is_some_and(|told| told.contains("spec.template is missing")));
    assert_eq!(of("Job", json!({"template": {}})), None);
}

/// Whatever follows the first finds nothing there, and was told to be in order.
#[test]
fn standard_input_is_read_once() {
    let read = |paths: &[&str]| {
        let paths: Vec<String> = paths.iter().map(|path| (*path).to_owned()).collect();
        let (mut stdin, mut out, mut err) = (&b"a: 1\n"[..], Vec::new(), Vec::new());
        let mut io = Io { stdin: &mut stdin, out: &mut out, err: &mut err, colour: false };
        documents::read(&paths, &mut io).map(|sources| sources.len()).map_err(|error| error.to_string())
    };
    assert_eq!(read(&["-"]), Ok(1));
    assert!(read(&["-", "-"]).is_err_and(|error| error.contains("named twice")));
}

#[test]
fn a_text_in_another_encoding_is_refused_with_its_line_and_the_way_out() {
    let (mut stdin, mut out, mut err) = (&b"a: 1\nb: gr\xfc\xdfe\n"[..], Vec::new(), Vec::new());
    let mut io = Io { stdin: &mut stdin, out: &mut out, err: &mut err, colour: false };
    let error = documents::read(&["-".to_owned()], &mut io).unwrap_err().to_string();
    assert!(error.starts_with("standard input is not UTF-8 text: line 2 ") && error.contains("iconv -f"), "{error}");
}
