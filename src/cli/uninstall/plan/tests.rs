use serde_json::json;

use super::super::found::{Found, Part};
use super::super::trust::{Trust, is_held};
use super::*;

fn part(object: Value) -> Part {
    Part { path: format!("/{}", text(&object, "/metadata/name")), object, always_ours: false, edited: false }
}

fn options(crds: bool) -> Options {
    Options { operator_namespace: "own".to_owned(), crds, keep_policies: false, keep_pods: false }
}

fn ours(kind: &str, name: &str) -> Part {
    part(
        json!({"kind": kind, "metadata": {"name": name, "uid": "u", "labels": {"app.kubernetes.io/managed-by": "drawbridge"}}}),
    )
}

fn deployment(fields: Value, strategy: Value) -> Part {
    part(json!({
        "apiVersion": "apps/v1", "kind": "Deployment", "spec": strategy,
        "metadata": {"name": "w", "namespace": "team1", "uid": "u",
            "managedFields": [{"manager": "kubectl"}, {"manager": "drawbridge/enrolment", "fieldsV1": fields}]},
    }))
}

#[test]
fn the_order_is_policies_webhooks_operator_workloads_finalizers_and_what_pods_need_last() {
    let found = Found {
        parts: ["Lease", "ClusterRoleBinding", "MutatingWebhookConfiguration", "ValidatingAdmissionPolicy"]
            .map(|kind| ours(kind, kind))
            .into(),
        trust: Trust { policies: vec![ours("NetworkPolicy", "drawbridge-default-deny")], ..Trust::default() },
        workloads: vec![deployment(json!({"f:kagenti.io/type": {}}), json!({}))],
        agent_runtimes: vec![part(
            json!({"kind": "AgentRuntime", "metadata": {"name": "a", "finalizers": ["kagenti.io/cleanup"]}}),
        )],
        belongings: vec![part(
            json!({"kind": "ConfigMap", "metadata": {"name": "envoy-config", "namespace": "team1"}}),
        )],
        pods: vec![part(json!({"kind": "Pod", "metadata": {"name": "p", "ownerReferences": [{"controller": true}]},
            "spec": {"schedulingGates": [{"name": "drawbridge/injection"}]}}))],
        ..Found::default()
    };
    let workload = Workload { kind: WorkloadKind::Deployment, name: "labelled".to_owned() };
    let labelled = json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "labelled", "namespace": "team1", "uid": "u"}});
    let found = Found {
        workloads: found.workloads.iter().cloned().chain([part(labelled)]).collect(),
        injected: [(("team1".to_owned(), workload), 2)].into(),
        ..found
    };
    let plan = plan(&found, &options(false));
    let phases: Vec<Phase> = plan.steps.iter().map(|step| step.phase).collect();
    assert_eq!(phases, Phase::ALL);
    assert!(plan.stays.is_empty() && plan.later.is_empty());
}

#[test]
fn a_network_policy_of_the_operator_goes_with_the_operator() {
    let phase =
        |kind| plan(&Found { parts: vec![ours(kind, "p")], ..Found::default() }, &options(false)).steps[0].phase;
    assert_eq!(phase("NetworkPolicy"), Phase::Operator);
    assert_eq!(phase("MutatingAdmissionPolicyBinding"), Phase::Policies);
}

/// What the command prints with these words.
fn printed(words: &[&str]) -> Vec<Value> {
    use crate::cli::io::Io;
    use clap::Parser as _;
    let words = ["drawbridge"].iter().chain(words).chain(&["-n", "own", "-o", "json"]);
    let (mut stdin, mut out, mut err) = (&b""[..], Vec::new(), Vec::new());
    let mut io = Io { stdin: &mut stdin, out: &mut out, err: &mut err, colour: false };
    crate::cli::Cli::try_parse_from(words).unwrap().command.run(&mut io).unwrap();
    let printed: Value = serde_json::from_slice(&out).unwrap();
    printed["items"].as_array().cloned().unwrap_or_else(|| vec![printed])
}

/// An object as it was printed is ours, whichever labels its kind carries: nothing that was installed is taken for somebody else's and runs on.
#[test]
fn everything_that_is_printed_is_a_step_but_what_people_keep() {
    for words in [
        &["render", "--failure-mode=fail"][..],
        &["render", "--failure-mode=gate", "--pod-monitor", "--with-catalogue", "--with-spire", "--openshift"],
        &["render", "--kinds=kaos", "--gateway-class=class"],
        &["render", "--kinds=beeai", "--no-aggregation"],
        &["render", "--watch-namespaces=team1,own"],
        &["render", "--beeai-compat"],
        &["render", "--beeai-compat", "--failure-mode=gate", "--watch-namespaces=team1"],
        &["alerts", "--prometheus-rule"],
    ] {
        for object in printed(words) {
            let what = title(&object);
            let path = super::super::found::path(&object).unwrap_or_else(|| panic!("{what} has no path"));
            let keeps = ["Namespace", "CustomResourceDefinition", "Gateway"].contains(&text(&object, "/kind"));
            let part = Part { path, object, always_ours: false, edited: false };
            let plan = plan(&Found { parts: vec![part], ..Found::default() }, &options(false));
            let counts = (plan.steps.len(), plan.stays.len());
            assert_eq!(counts, (usize::from(!keeps), usize::from(keeps)), "{what}: {plan:?}");
        }
    }
}

/// The processes go with the rights; and what only bears our name is somebody else's where somebody else says that he looks after it.
#[test]
fn deployments_and_the_service_are_ours_by_their_name_alone() {
    let of = |kind: &str, labels: Value| {
        let object = json!({"kind": kind, "metadata": {"name": "n", "namespace": "own", "uid": "u", "labels": labels}});
        plan(&Found { parts: vec![part(object)], ..Found::default() }, &options(false))
    };
    let name = json!({"app.kubernetes.io/name": "drawbridge"});
    for kind in ["Deployment", "Service"] {
        assert_eq!(of(kind, name.clone()).steps[0].phase, Phase::Operator, "{kind}");
        for (labels, says) in [
            (json!({}), "neither app.kubernetes.io/managed-by=drawbridge nor app.kubernetes.io/name=drawbridge"),
            (json!({"app.kubernetes.io/name": "other"}), "neither"),
            (
                json!({"app.kubernetes.io/name": "drawbridge", "app.kubernetes.io/managed-by": "Helm"}),
                "it carries app.kubernetes.io/managed-by=Helm",
            ),
        ] {
            let plan = of(kind, labels);
            assert!(plan.steps.is_empty() && plan.stays[0].why.contains(says), "{plan:?}");
        }
    }
    let secret = of("Secret", name);
    assert!(secret.steps.is_empty() && secret.stays[0].why.starts_with("it does not carry"), "{secret:?}");
}

#[test]
fn what_is_beside_the_installation_goes_last_or_is_named() {
    let labels = json!({"app.kubernetes.io/managed-by": "drawbridge"});
    let object = |kind: &str, namespace: &str, labels: &Value| {
        part(json!({"kind": kind, "metadata": {"name": "n", "namespace": namespace, "uid": "u", "labels": labels}}))
    };
    let owner =
        json!({"apiVersion": "kaos.tools/v1alpha1", "kind": "ModelAPI", "name": "m", "uid": "m", "controller": true});
    let mut policy = object("NetworkPolicy", "team", &labels);
    policy.object["metadata"]["ownerReferences"] = json!([owner]);
    let found = Found {
        parts: vec![
            object("PodMonitor", "own", &labels),
            object("PodMonitor", "other", &labels),
            object("PrometheusRule", "monitoring", &labels),
            object("Gateway", "own", &json!({})),
            ours("CustomResourceDefinition", "modelapis.kaos.tools"),
        ],
        restricting: vec![policy],
        ..Found::default()
    };
    let kept = plan(&found, &options(false));
    let steps: Vec<_> = kept.steps.iter().map(|step| (step.phase, step.object.as_str())).collect();
    assert_eq!(steps, [(Phase::Rest, "PodMonitor own/n"), (Phase::Rest, "PrometheusRule monitoring/n")]);
    let stays = |object: &str| {
        let kept = kept.stays.iter().find(|kept| kept.object == object);
        kept.unwrap_or_else(|| panic!("{object}: {:?}", plan(&found, &options(false)).stays)).why.clone()
    };
    assert!(stays("PodMonitor other/n").contains("kubectl -n other delete podmonitor n"));
    assert!(stays("Gateway own/n").contains("kubectl -n own delete gateways.gateway.networking.k8s.io n"));
    let why = stays("NetworkPolicy team/n");
    assert!(why.contains("ModelAPI m") && why.contains("kubectl -n team delete networkpolicy n"), "{why}");
    let with_its_owner = plan(&found, &options(true));
    assert!(with_its_owner.stays.iter().all(|kept| kept.object != "NetworkPolicy team/n"), "{with_its_owner:?}");
}

#[test]
fn what_is_a_persons_stays_with_the_reason() {
    let mut edited = ours("ConfigMap", "kagenti-platform-config");
    edited.edited = true;
    let foreign = part(json!({"kind": "Service", "metadata": {"name": "drawbridge-webhook"}}));
    let definition = ours("CustomResourceDefinition", "agentruntimes.agent.kagenti.dev");
    let found = Found { parts: vec![edited, foreign, ours("Namespace", "own"), definition], ..Found::default() };
    let kept = plan(&found, &options(false));
    assert!(kept.steps.is_empty());
    let whys: Vec<&str> = kept.stays.iter().map(|one| one.why.as_str()).collect();
    for (why, says) in whys.iter().zip([
        "not as `drawbridge render` wrote it",
        "somebody else's",
        "kubectl delete namespace own",
        "--crds",
    ]) {
        assert!(why.contains(says), "{why}");
    }
    let taken = plan(&found, &options(true));
    assert_eq!(taken.steps.len(), 1);
    assert!(taken.steps[0].effect.contains("every object"));
}

#[test]
fn a_workload_is_released_and_told_what_becomes_of_its_pods() {
    let released = |part: Part| {
        let plan = plan(&Found { workloads: vec![part], ..Found::default() }, &options(false));
        let [step] = &plan.steps[..] else { panic!("{plan:?}") };
        let Action::Release { identity, manager } = &step.action else { panic!("{step:?}") };
        assert_eq!(manager, "drawbridge/enrolment");
        assert_eq!(
            identity,
            &json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "w", "namespace": "team1", "uid": "u"}})
        );
        step.effect.clone()
    };
    let all = json!({"f:spec": {"f:kagenti.io/type": {}}});
    assert!(released(deployment(all.clone(), json!({}))).contains("label and hash are taken off; its Pods roll once"));
    assert!(released(deployment(all, json!({"paused": true}))).contains("keep their sidecars"));
    assert!(released(deployment(json!({}), json!({}))).contains("the label is yours; its Pods roll once"));
}

#[test]
fn a_job_that_we_suspended_is_resumed() {
    let job = part(json!({"kind": "Job", "metadata": {"name": "j", "uid": "u", "annotations": {
        "kagenti.io/suspended-for-gate": "x", "kagenti.io/retry-for": "y", "mine": "z"}}}));
    let plan = plan(&Found { workloads: vec![job], ..Found::default() }, &options(false));
    let Action::Merge { patch } = &plan.steps[0].action else { panic!("{plan:?}") };
    let gone = json!({"kagenti.io/suspended-for-gate": null, "kagenti.io/retry-for": null});
    assert_eq!(patch, &json!({"metadata": {"uid": "u", "annotations": gone}, "spec": {"suspend": false}}));
}

/// To delete the Pod of a Job would cost a try, and with `backoffLimit: 0` the Job.
#[test]
fn a_job_whose_pod_waits_behind_the_gate_is_suspended_and_resumed_and_its_pod_never_deleted() {
    let job = |name: &str, suspend: bool| {
        part(json!({"apiVersion": "batch/v1", "kind": "Job", "spec": {"suspend": suspend},
            "metadata": {"name": name, "namespace": "team", "uid": format!("uid-of-{name}")}}))
    };
    let pod = |name: &str, (version, kind, owner): (&str, &str, &str)| {
        let owner = json!({"apiVersion": version, "kind": kind, "name": owner, "uid": format!("uid-of-{owner}"), "controller": true});
        part(json!({"kind": "Pod", "spec": {"schedulingGates": [{"name": "drawbridge/injection"}]},
            "metadata": {"name": name, "namespace": "team", "uid": name, "ownerReferences": [owner]}}))
    };
    let batch = |name| ("batch/v1", "Job", name);
    let found = Found {
        jobs: vec![job("a", false), job("b", false), job("held", true)],
        pods: vec![
            pod("a-1", batch("a")),
            pod("a-2", batch("a")),
            pod("b-1", batch("b")),
            pod("held-1", batch("held")),
            pod("hidden-1", batch("hidden")),
            pod("web-1", ("apps/v1", "ReplicaSet", "web")),
            pod("of-another-group", ("example.com/v1", "Job", "a")),
        ],
        ..Found::default()
    };
    let planned = plan(&found, &options(false));
    let steps: Vec<_> = planned.steps.iter().map(|step| (step.object.as_str(), &step.action)).collect();
    let merge = |name: &str, mark: Value, suspend: bool| {
        let metadata = json!({"uid": format!("uid-of-{name}"), "annotations": {"kagenti.io/suspended-for-gate": mark}});
        Action::Merge { patch: json!({"metadata": metadata, "spec": {"suspend": suspend}}) }
    };
    let delete = |uid: &str| Action::Delete { uid: uid.to_owned() };
    assert_eq!(
        steps,
        [
            ("Job team/a", &merge("a", json!("a-1"), true)),
            ("Job team/b", &merge("b", json!("b-1"), true)),
            ("Pod team/web-1", &delete("web-1")),
            ("Pod team/of-another-group", &delete("of-another-group")),
            ("Job team/a", &merge("a", Value::Null, false)),
            ("Job team/b", &merge("b", Value::Null, false)),
        ],
        "all are suspended before one is waited for; one that a person suspended stays so"
    );
    assert!(planned.steps.iter().all(|step| step.phase == Phase::GatedPods));
    let [hidden] = &planned.later[..] else { panic!("{:?}", planned.later) };
    assert_eq!(hidden.object, "Pod team/hidden-1");
    assert!(hidden.why.contains("kubectl -n team patch job hidden"), "{}", hidden.why);
    // What is left of both steps is told once.
    let left = left(&planned, &[]);
    let undone = left.iter().map(|kept| kept.object.as_str());
    let jobs: Vec<_> = undone.filter(|object| object.starts_with("Job ")).collect();
    assert_eq!(jobs, ["Job team/a", "Job team/b"]);
}

/// Kubernetes ends every Pod of a Job that is suspended, also those that run.
#[test]
fn a_job_of_which_other_pods_run_is_not_suspended_and_named() {
    let owner = json!({"apiVersion": "batch/v1", "kind": "Job", "name": "j", "uid": "u", "controller": true});
    let pod = |name: &str, gates: Value, phase: &str| {
        part(json!({"kind": "Pod", "spec": {"schedulingGates": gates}, "status": {"phase": phase},
            "metadata": {"name": name, "namespace": "team", "uid": name, "ownerReferences": [owner]}}))
    };
    let gated = |name: &str| pod(name, json!([{"name": "drawbridge/injection"}]), "Pending");
    let of = |active: i64, pods: Vec<Part>| {
        let job = json!({"apiVersion": "batch/v1", "kind": "Job", "status": {"active": active},
            "metadata": {"name": "j", "namespace": "team", "uid": "u"}});
        let plan = plan(&Found { jobs: vec![part(job)], pods, ..Found::default() }, &options(false));
        (plan.steps.len(), plan.later)
    };
    let (steps, later) = of(3, vec![gated("a")]);
    let [kept] = &later[..] else { panic!("{later:?}") };
    assert_eq!((steps, &*kept.object, kept.planned), (0, "Job team/j", true));
    assert!(kept.why.starts_with("2 Pods of it run") && kept.why.contains("patch job j"), "{}", kept.why);
    // Its status may be late.
    let (steps, later) = of(1, vec![gated("a"), gated("b"), pod("c", json!([]), "Running")]);
    assert!(steps == 0 && later.len() == 1 && later[0].why.starts_with("1 Pod of it runs"), "told once: {later:?}");
    assert_eq!(of(2, vec![gated("a"), gated("b"), pod("over", json!([]), "Succeeded")]), (2, Vec::new()));
}

#[test]
fn a_sandbox_in_the_middle_of_a_restart_comes_back() {
    let sandbox = |replicas: i64| {
        part(
            json!({"kind": "Sandbox", "spec": {"replicas": replicas}, "metadata": {"name": "s", "uid": "u", "annotations": {
            "kagenti.io/restart-pending": "true", "kagenti.io/restart-replicas": "2", "agents.x-k8s.io/pod-name": "s"}}}),
        )
    };
    let patch = |replicas| {
        let plan = plan(&Found { workloads: vec![sandbox(replicas)], ..Found::default() }, &options(false));
        let Action::Merge { patch } = &plan.steps[0].action else { panic!("{plan:?}") };
        patch.clone()
    };
    assert_eq!(patch(0)["spec"], json!({"replicas": 2}));
    assert_eq!(patch(3)["spec"], Value::Null, "somebody else's number stays");
    for gone in ["kagenti.io/restart-pending", "kagenti.io/restart-replicas", "agents.x-k8s.io/pod-name"] {
        assert_eq!(patch(0)["metadata"]["annotations"][gone], Value::Null);
    }
}

#[test]
fn only_our_finalizer_goes() {
    let with = |finalizers: Value| {
        let object = json!({"kind": "AgentRuntime", "metadata": {"name": "a", "uid": "u", "resourceVersion": "7", "finalizers": finalizers}});
        plan(&Found { agent_runtimes: vec![part(object)], ..Found::default() }, &options(false)).steps
    };
    assert!(with(json!(["theirs"])).is_empty());
    assert!(with(Value::Null).is_empty());
    for (before, after) in
        [(json!(["kagenti.io/cleanup"]), Value::Null), (json!(["a", "kagenti.io/cleanup"]), json!(["a"]))]
    {
        let steps = with(before);
        let Action::Merge { patch } = &steps[0].action else { panic!("{steps:?}") };
        assert_eq!(patch["metadata"], json!({"uid": "u", "resourceVersion": "7", "finalizers": after}));
    }
}

/// Case 138: no finalizer of a card is left, ours or the Go operator's; a person's card stays his.
#[test]
fn case_138_cards_that_we_made_go_and_those_of_persons_are_freed() {
    let card = |labels: Value| {
        part(json!({"kind": "AgentCard", "metadata": {"name": "c", "namespace": "team1", "uid": "u", "labels": labels,
            "finalizers": ["theirs", "agentcard.kagenti.dev/finalizer", "agentcard.kagenti.dev/network-policy"]}}))
    };
    let steps = |labels| plan(&Found { agents: vec![card(labels)], ..Found::default() }, &options(false)).steps;
    for (labels, goes) in [
        (json!({"app.kubernetes.io/managed-by": "drawbridge"}), true),
        (json!({"app.kubernetes.io/managed-by": "kagenti-operator"}), false),
        (json!({}), false),
    ] {
        let steps = steps(labels.clone());
        let Action::Merge { patch } = &steps[0].action else { panic!("{steps:?}") };
        assert_eq!(patch["metadata"]["finalizers"], json!(["theirs"]));
        let deleted = steps.iter().any(|step| step.action == Action::Delete { uid: "u".to_owned() });
        assert_eq!((deleted, steps.len()), (goes, 1 + usize::from(goes)), "{labels}: {steps:?}");
    }
}

#[test]
fn agents_and_builds_can_be_deleted_without_an_operator() {
    for kind in ["Agent", "AgentBuild"] {
        let metadata = json!({"name": "a", "uid": "u", "resourceVersion": "7", "finalizers": ["agent.kagenti.dev/finalizer", "theirs"]});
        let agents = vec![part(json!({"kind": kind, "metadata": metadata}))];
        let steps = plan(&Found { agents, ..Found::default() }, &options(false)).steps;
        let Action::Merge { patch } = &steps[0].action else { panic!("{steps:?}") };
        assert_eq!((steps.len(), &patch["metadata"]["finalizers"]), (1, &json!(["theirs"])));
    }
}

#[test]
fn objects_of_kaos_can_be_deleted_without_an_operator() {
    for (kind, finalizer) in [
        ("Agent", "kaos.tools/agent-finalizer"),
        ("ModelAPI", "kaos.tools/modelapi-finalizer"),
        ("MCPServer", "kaos.tools/mcpserver-finalizer"),
    ] {
        let metadata = json!({"name": "a", "uid": "u", "resourceVersion": "7", "finalizers": ["theirs", finalizer]});
        let agents = vec![part(json!({"kind": kind, "metadata": metadata}))];
        let steps = plan(&Found { agents, ..Found::default() }, &options(false)).steps;
        let Action::Merge { patch } = &steps[0].action else { panic!("{steps:?}") };
        assert_eq!((steps.len(), &patch["metadata"]["finalizers"]), (1, &json!(["theirs"])), "{kind}");
    }
}

#[test]
fn what_pods_need_waits_and_what_was_edited_stays() {
    let config_map = part(json!({"kind": "ConfigMap", "metadata": {"name": "envoy-config", "namespace": "team1"}}));
    let mut edited = config_map.clone();
    edited.edited = true;
    let users = [(
        ("ConfigMap".to_owned(), "team1".to_owned(), "envoy-config".to_owned()),
        ["Pod a".to_owned(), "Pod b".to_owned()].into(),
    )];
    let used = Found { belongings: vec![config_map], users: users.into(), ..Found::default() };
    let planned = plan(&used, &options(false));
    assert!(planned.steps.is_empty());
    assert!(planned.later[0].why.starts_with("Pod a and 1 more"), "{planned:?}");
    let planned = plan(&Found { belongings: vec![edited], ..used }, &options(false));
    assert!(planned.steps.is_empty() && planned.later.is_empty());
    assert_eq!(planned.stays[0].object, "ConfigMap team1/envoy-config");
}

/// Nothing of ours stands on a workload that its Pods' own label enrols, so nothing that is taken off replaces its Pods.
#[test]
fn answers_11_a_workload_that_only_its_label_enrols_is_restarted_or_named() {
    let object = |kind: &str, spec: Value| {
        part(
            json!({"apiVersion": "apps/v1", "kind": kind, "spec": spec, "metadata": {"name": "w", "namespace": "team1", "uid": "u"}}),
        )
    };
    let of = |kind: &str, part: Part, injected: usize, keep_pods: bool| {
        let kind = WorkloadKind::WITH_TEMPLATE.into_iter().find(|known| known.as_str() == kind).unwrap();
        let workload = Workload { kind, name: "w".to_owned() };
        let injected = [(("team1".to_owned(), workload), injected)].into();
        let found = Found { workloads: vec![part], injected, ..Found::default() };
        let plan = plan(&found, &Options { keep_pods, ..options(false) });
        let steps: Vec<_> = plan.steps.iter().map(|step| step.effect.clone()).collect();
        let later: Vec<_> = plan.later.iter().map(|kept| kept.why.clone()).collect();
        assert!(plan.later.iter().all(|kept| kept.planned));
        (steps.join("; "), later.join("; "))
    };
    let none = String::new;
    let deployment_of = |spec: Value| object("Deployment", spec);
    assert_eq!(of("Deployment", deployment_of(json!({})), 0, false), (none(), none()));
    assert_eq!(
        of("Deployment", deployment_of(json!({})), 2, false),
        ("restarted; 2 Pods come back without sidecars".to_owned(), none())
    );
    for (part, kind, keep, says) in [
        (deployment_of(json!({})), "Deployment", true, "kubectl -n team1 rollout restart deployment/w"),
        (deployment_of(json!({"paused": true})), "Deployment", false, "1 Pod of it keeps its sidecars"),
        (object("Job", json!({})), "Job", false, "delete job/w and create it again"),
    ] {
        let (steps, later) = of(kind, part, 1, keep);
        assert!(steps.is_empty() && later.contains(says), "{steps} {later}");
    }
    // What un-enrolment rolls is not restarted besides.
    let enrolled = Part { path: "/w".to_owned(), ..deployment(json!({}), json!({})) };
    let (steps, later) = of("Deployment", enrolled, 1, false);
    assert!(!steps.contains("restarted") && later.is_empty(), "{steps} {later}");
}

#[test]
fn what_is_left_names_the_refusal_it_met() {
    let steps = plan(&Found { parts: vec![ours("Deployment", "d")], ..Found::default() }, &options(false)).steps;
    let done = [super::super::Done {
        step: steps[0].clone(),
        outcome: "refused",
        message: Some("refused (403): no".to_owned()),
    }];
    let rest = Plan { steps, ..Plan::default() };
    let undone = Kept { object: "Deployment d".to_owned(), why: "refused (403): no".to_owned(), planned: false };
    assert_eq!(left(&rest, &done), [undone]);
    assert!(left(&rest, &[])[0].why.contains("once more"));
    assert!(left(&Plan::default(), &done).is_empty());
}

/// Whoever is told that it exists again looks for somebody who makes it.
#[test]
fn what_was_not_tried_because_a_step_before_it_was_refused_says_so() {
    let found = Found { parts: vec![ours("ClusterRoleBinding", "b"), ours("Lease", "l")], ..Found::default() };
    let steps = plan(&found, &options(false)).steps;
    assert_eq!(steps.iter().map(|step| step.phase).collect::<Vec<_>>(), [Phase::Operator, Phase::Rest]);
    let ended = |outcome: &'static str, step: &Step| super::super::Done {
        step: step.clone(),
        outcome,
        message: (outcome == "refused").then(|| "refused (403): no".to_owned()),
    };
    let why = |done: &[super::super::Done]| {
        let rest = Plan { steps: steps.clone(), ..Plan::default() };
        left(&rest, done).into_iter().map(|kept| kept.why).collect::<Vec<_>>()
    };
    let early = why(&[ended("refused", &steps[0])]);
    assert_eq!(early[0], "refused (403): no");
    assert!(early[1].starts_with("not tried, because a step before it was refused"), "{early:?}");
    let late = why(&[ended("done", &steps[0]), ended("refused", &steps[1])]);
    assert!(late[0].starts_with("it exists again, or still") && late[1] == "refused (403): no", "{late:?}");
}

/// A label of a Pod goes; what a person said of a Namespace stays, and is named.
fn of_trust(row: &crate::domain::written::Written) {
    use crate::domain::written::Off;
    let (kind, map) = if row.off == Off::Said { ("Namespace", "annotations") } else { ("Pod", "labels") };
    // The record of a quarantine stands beside what it records.
    let marks = json!({row.key: "x", keys::ANNOTATION_QUARANTINE: "x"});
    let carrier = part(json!({"apiVersion": "v1", "kind": kind, "metadata": {"name": "w", "uid": "u", map: marks}}));
    let trust = match row.off {
        Off::Said => Trust { held: vec![carrier], ..Trust::default() },
        _ => Trust { verified: vec![carrier], ..Trust::default() },
    };
    let plan = plan(&Found { trust, ..Found::default() }, &options(false));
    if row.off == Off::Said {
        let [kept] = &plan.stays[..] else { panic!("{row:?}: {plan:?}") };
        // One of the two keys is the beginning of the other.
        let names = |key: &str| kept.why.split([' ', ':', ')']).any(|word| word == key);
        assert!(plan.steps.is_empty() && names(row.key), "{row:?}: {plan:?}");
        return;
    }
    let [Step { action: Action::Merge { patch }, .. }] = &plan.steps[..] else { panic!("{row:?}: {plan:?}") };
    assert_eq!(patch["metadata"]["labels"].get(row.key), Some(&Value::Null), "{row:?}");
}

/// An object that carries one row of the table, whichever, and a plan that takes it off.
#[test]
fn mend_10_uninstall_takes_off_every_row_of_the_table() {
    use crate::domain::written::{At, Off, On, WRITTEN};
    for row in WRITTEN.iter().filter(|row| row.off != Off::Gone && row.at != At::Field) {
        if matches!(row.on, On::Pod | On::Namespace) {
            of_trust(row);
            continue;
        }
        let mut object = json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "w", "namespace": "n", "uid": "u"}});
        if row.at == At::Finalizer {
            object["metadata"]["finalizers"] = json!([row.key]);
            let found = Found { agent_runtimes: vec![part(object)], ..Found::default() };
            let steps = plan(&found, &options(false)).steps;
            assert!(matches!(&steps[..], [Step { phase: Phase::Finalizers, .. }]), "{row:?}: {steps:?}");
            continue;
        }
        if row.on == On::Custom && row.at == At::Label {
            object["metadata"]["labels"] = json!({row.key: "true", "of": "others"});
            let steps = plan(&Found { agents: vec![part(object)], ..Found::default() }, &options(false)).steps;
            let [Step { phase: Phase::Finalizers, action: Action::Merge { patch }, .. }] = &steps[..] else {
                panic!("{row:?}: {steps:?}")
            };
            assert_eq!(patch["metadata"]["labels"], json!({row.key: null}), "{row:?}");
            assert!(patch["metadata"].get("finalizers").is_none(), "{patch}");
            continue;
        }
        let map = if matches!(row.at, At::Label | At::TemplateLabel) { "labels" } else { "annotations" };
        let owned = json!({"f:metadata": {format!("f:{map}"): {format!("f:{}", row.key): {}}}});
        object["metadata"][map] = json!({row.key: "x"});
        if row.off == Off::Released {
            object["metadata"]["managedFields"] = json!([{"manager": row.by, "operation": "Apply", "fieldsV1": owned}]);
        }
        let found = Found { workloads: vec![part(object)], ..Found::default() };
        let steps = plan(&found, &options(false)).steps;
        let takes = |step: &Step| match &step.action {
            Action::Release { manager, .. } => row.off == Off::Released && manager == row.by,
            Action::Merge { patch } => patch["metadata"]["annotations"].get(row.key) == Some(&Value::Null),
            Action::Delete { .. } | Action::Restart { .. } => false,
        };
        assert!(steps.iter().any(takes), "{row:?}: {steps:?}");
    }
    // What others have copied of what was applied is in nobody's set.
    let copy = json!({"kind": "ReplicaSet", "metadata": {"name": "s", "uid": "u", "annotations": {"kagenti.io/rolled-for": "h"}}});
    let steps = plan(&Found { workloads: vec![part(copy)], ..Found::default() }, &options(false)).steps;
    let Action::Merge { patch } = &steps[0].action else { panic!("{steps:?}") };
    assert_eq!(patch["metadata"]["annotations"], json!({"kagenti.io/rolled-for": null}));
}

/// What cuts off goes before what opens, and the label last; each deny says how many Pods it opens.
#[test]
fn the_deny_goes_first_then_openings_then_labels_and_all_of_it_stays_where_that_is_asked_for() {
    let policy = |name: &str| {
        part(json!({"kind": "NetworkPolicy", "metadata": {"name": name, "namespace": "team", "uid": "u"},
            "spec": {"podSelector": {"matchLabels": {"kagenti.io/type": "agent"}}}}))
    };
    let pod = |name: &str, phase: &str, labels: Value| {
        part(
            json!({"kind": "Pod", "metadata": {"name": name, "namespace": "team", "uid": name, "labels": labels}, "status": {"phase": phase}}),
        )
    };
    let verified = json!({"kagenti.io/type": "agent", "agent.kagenti.dev/signature-verified": "true"});
    let found = Found {
        trust: Trust {
            policies: vec![policy("a-signature-policy"), policy("drawbridge-default-deny")],
            verified: vec![pod("a", "Running", verified.clone())],
            ..Trust::default()
        },
        pods: vec![
            pod("a", "Running", verified),
            pod("b", "Running", json!({"kagenti.io/type": "agent"})),
            pod("over", "Succeeded", json!({"kagenti.io/type": "agent"})),
            pod("other", "Running", json!({})),
        ],
        ..Found::default()
    };
    let steps = plan(&found, &options(false)).steps;
    let objects: Vec<_> = steps.iter().map(|step| step.object.as_str()).collect();
    assert_eq!(
        objects,
        ["NetworkPolicy team/drawbridge-default-deny", "NetworkPolicy team/a-signature-policy", "Pod team/a"]
    );
    assert!(steps[0].effect.starts_with("deleted: 2 Pods"), "{}", steps[0].effect);
    assert_eq!(
        steps[2].action,
        Action::Merge {
            patch: json!({"metadata": {"uid": "a", "labels": {"agent.kagenti.dev/signature-verified": null,
                "agent.kagenti.dev/quarantined": null}}})
        }
    );
    let kept = plan(&found, &Options { keep_policies: true, ..options(false) });
    assert!(kept.steps.is_empty() && kept.stays.len() == 3, "{kept:?}");
}

/// Its `Deny` would still cut off those from whom the label was taken, and nobody would let them through.
#[test]
fn the_tier_of_administrators_goes_ahead_of_network_policies_and_stays_with_them() {
    let policy = |kind: &str, name: &str| part(json!({"kind": kind, "metadata": {"name": name, "uid": "u"}}));
    let found = Found {
        trust: Trust {
            policies: vec![policy("NetworkPolicy", "drawbridge-default-deny")],
            cluster: ["drawbridge-deny-team", "drawbridge-quarantine-team"]
                .map(|name| policy("ClusterNetworkPolicy", name))
                .into(),
            verified: vec![policy("Pod", "a")],
            ..Trust::default()
        },
        ..Found::default()
    };
    let steps = plan(&found, &options(false)).steps;
    let objects: Vec<_> = steps.iter().map(|step| step.object.as_str()).collect();
    assert_eq!(
        objects,
        [
            "ClusterNetworkPolicy drawbridge-deny-team",
            "ClusterNetworkPolicy drawbridge-quarantine-team",
            "NetworkPolicy drawbridge-default-deny",
            "Pod a"
        ]
    );
    let kept = plan(&found, &Options { keep_policies: true, ..options(false) });
    assert!(kept.steps.is_empty() && kept.stays.len() == 4, "{kept:?}");
}

/// A RoleBinding would hold the account that it names.
#[test]
fn what_pods_publish_their_card_by_goes_first_of_all() {
    let of = |kind: &str| {
        part(json!({"kind": kind, "metadata": {"name": "w-card-signed", "namespace": "team", "uid": kind,
            "labels": {"app.kubernetes.io/managed-by": "drawbridge"}}}))
    };
    let signing = ["RoleBinding", "Role", "ConfigMap"].map(of).into();
    let found = Found { trust: Trust { signing, ..Trust::default() }, ..Found::default() };
    for keep_policies in [false, true] {
        let steps = plan(&found, &Options { keep_policies, ..options(false) }).steps;
        let objects: Vec<_> = steps.iter().map(|step| step.object.as_str()).collect();
        assert_eq!(
            objects,
            ["RoleBinding team/w-card-signed", "Role team/w-card-signed", "ConfigMap team/w-card-signed"]
        );
    }
}

#[test]
fn who_is_in_quarantine_is_told_and_the_word_of_people_stays() {
    let held = part(json!({"kind": "Namespace", "metadata": {"name": "team", "uid": "n",
        "annotations": {"agent.kagenti.dev/quarantine": "weather"}}}));
    let other =
        json!({"kind": "Namespace", "metadata": {"name": "other", "annotations": {"agent.kagenti.dev/x": "weather"}}});
    assert!(is_held(&held.object) && !is_held(&other));
    let found = Found { trust: Trust { held: vec![held], ..Trust::default() }, ..Found::default() };
    let planned = plan(&found, &options(false));
    assert_eq!(planned.steps, []);
    let [kept] = &planned.stays[..] else { panic!("{:?}", planned.stays) };
    assert_eq!(kept.object, "Namespace team");
    assert!(kept.why.contains("quarantine: weather") && kept.why.contains("drawbridge release"), "{}", kept.why);
    assert!(!kept.why.contains(keys::ANNOTATION_QUARANTINE_RECORD), "a record that is not there: {}", kept.why);
}
