//! What a Pod may say to cost more than its size, or to lead traffic and files elsewhere.

use super::*;
use crate::admission::inject::pod::PodView;
use crate::admission::inject::status::Status;
use crate::api::review::{Operation, Phase};
use crate::domain::workload::{Workload, WorkloadKind};

/// The Pod of the fixtures with that status annotation.
fn claims(status: &Value) -> Value {
    annotated(&[(keys::ANNOTATION_STATUS, &status.to_string())])
}

/// Of a container no more edits count than one of ours may have, and of a part one record: the work follows from the length of the text alone.
#[test]
fn a_status_that_claims_thousands_of_changes_is_cut() {
    let variable = |name: usize| json!({"edit": "env", "container": "agent", "name": format!("v{name}"), "value": ""});
    let record = json!({"name": "shared-data", "digest": "d"});
    let edits: Vec<Value> = (0..5_000).map(variable).collect();
    let pod = claims(&json!({"version": 1, "edits": edits, "volumes": vec![record; 5_000],
        "portless": (0..5_000).map(|name| format!("c{name}")).collect::<Vec<_>>()}));
    let status = Status::read(PodView::new(&pod).unwrap()).unwrap();
    assert_eq!((status.edits.len(), status.volumes.len()), (64, 1));
    assert_eq!(status.portless.len(), keys::CONTAINERS_MOST);
    let after = injected(&pod, &fixtures::snapshot());
    assert_eq!(skipped(&after, &fixtures::snapshot()), Reason::AlreadyInjected);
}

/// What we write ourselves is far below that.
#[test]
fn no_status_of_ours_is_cut() {
    let mut pod = proxy_mode();
    let probe = json!({"httpGet": {"port": "http"}, "tcpSocket": {"port": 8000}, "grpc": {"port": 8000}});
    for handler in ["livenessProbe", "readinessProbe", "startupProbe"] {
        pod["spec"]["containers"][0][handler] = probe.clone();
    }
    pod["spec"]["containers"][0]["lifecycle"] = json!({"postStart": probe, "preStop": probe});
    let after = injected(&pod, &fixtures::snapshot());
    let status = Status::read(PodView::new(&after).unwrap()).unwrap();
    let written: Value =
        serde_json::from_str(text(&after["metadata"]["annotations"], keys::ANNOTATION_STATUS)).unwrap();
    assert!(status.edits.len() > 5, "{written}");
    assert_eq!(Some(status.edits.len()), written["edits"].as_array().map(Vec::len));
}

/// Of several parts of one name the first is taken out; the others are the sender's, and refused where the name is ours.
#[test]
fn parts_of_one_name_are_taken_out_once() {
    let mut pod =
        claims(&json!({"version": 1, "init": [{"name": "proxy-init"}], "volumes": [{"name": "shared-data"}]}));
    pod["spec"]["initContainers"] = json!(vec![json!({"name": "proxy-init", "image": "i"}); 3]);
    pod["spec"]["volumes"] = json!(vec![json!({"name": "shared-data", "emptyDir": {}}); 3]);
    let operations = uninject(&pod);
    let mut out = pod.clone();
    json_patch::patch(&mut out, &operations).unwrap();
    assert_eq!(names(&out["spec"]["initContainers"]), ["proxy-init"; 2]);
    assert_eq!(names(&out["spec"]["volumes"]), ["shared-data"; 2]);
    assert_eq!(refusal(&pod, &fixtures::snapshot()).reason, Reason::ContainerNameCollision);
}

/// The gate goes with one operation, however often it stands there.
#[test]
fn a_gate_that_is_repeated_goes_at_once() {
    let ours = json!({"name": keys::SCHEDULING_GATE});
    let other = json!({"name": "other"});
    for (gates, left) in [
        (json!([other, ours, other, ours, ours]), json!([other, other])),
        (json!([other, ours]), json!([other])),
        (json!([ours, ours]), Value::Null),
    ] {
        let mut pod = fixtures::pod();
        pod["spec"]["schedulingGates"] = gates;
        let verdict = fixtures::review_pod(&pod, &fixtures::snapshot());
        let about =
            verdict.operations().iter().filter(|one| one.path().to_string().contains("schedulingGates")).count();
        assert_eq!(about, 1, "{pod}");
        assert_eq!(fixtures::applied(&pod, &verdict)["spec"]["schedulingGates"], left);
    }
}

/// The proxy takes the agent's port and its name. A Service that names it is led by Kubernetes to the first container that has the name: to the
/// proxy, or the Pod is refused.
#[test]
fn a_port_name_that_another_container_has_too_leads_nobody_round_the_proxy() {
    let other = |name: &str, more: Value| {
        let mut container = json!({"name": name, "image": "y", "ports": [{"name": "http", "containerPort": 3000}]});
        json_patch::merge(&mut container, &more);
        container
    };
    let beside = |list: &str, container: Value| {
        let mut pod = proxy_mode();
        let list = &mut pod["spec"][list];
        if !list.is_array() {
            *list = json!([]);
        }
        list.as_array_mut().unwrap().push(container);
        pod
    };
    let snapshot = fixtures::snapshot();
    let collides = |pod: &Value| {
        let denial = refusal(pod, &snapshot);
        assert_eq!(denial.reason, Reason::PortCollision, "{denial:?}");
        denial.sentence.contains("targetPort http")
    };
    assert!(collides(&beside("containers", other("ui", json!({})))), "the proxy is no regular container");
    let sidecar = other("ui", json!({"restartPolicy": "Always"}));
    assert!(collides(&beside("initContainers", sidecar)));
    for allowed in [
        beside("containers", other("ui", json!({"ports": [{"name": "web", "containerPort": 3000}]}))),
        beside(
            "containers",
            other("ui", json!({"ports": [{"name": "http", "containerPort": 3000, "protocol": "UDP"}]})),
        ),
        beside("initContainers", other("setup", json!({}))),
    ] {
        let verdict = fixtures::review_pod(&allowed, &snapshot);
        assert!(verdict.allowed(), "{:?} {allowed}", verdict.outcome);
    }
}

/// A file cannot be put below a mount that is read-only: the container would not start.
#[test]
fn credentials_are_not_mounted_below_a_read_only_mount() {
    for (path, read_only, mounted) in [
        ("/shared", true, false),
        ("/shared/", true, false),
        ("/", true, false),
        ("/shared", false, true),
        ("/data", true, true),
        ("/share", true, true),
    ] {
        let mut pod = annotated(&[(keys::ANNOTATION_CREDENTIALS, "creds")]);
        pod["spec"]["containers"][0]["volumeMounts"] =
            json!([{"name": "shared-data", "mountPath": path, "readOnly": read_only}]);
        let after = injected(&pod, &fixtures::snapshot());
        let mounts = after["spec"]["containers"][0]["volumeMounts"].as_array().unwrap();
        let count = mounts.iter().filter(|mount| mount["name"] == "kagenti-credentials").count();
        assert_eq!(count, if mounted { 2 } else { 0 }, "{path} {read_only}: {mounts:?}");
        assert!(warned(&pod, &fixtures::snapshot()).contains(&Reason::SharedDataMounted));
    }
}

/// What says something else to the agent than its port cannot tell it that.
#[test]
fn a_variable_of_ours_is_no_port_variable() {
    for (variable, allowed) in [("PORT", true), ("LISTEN", true), ("HTTP_PROXY", false), ("no_proxy", false)] {
        let mut pod = proxy_mode();
        pod["metadata"]["annotations"][keys::ANNOTATION_PORT_VARIABLE] = json!(variable);
        let verdict = fixtures::review_pod(&pod, &fixtures::snapshot());
        assert_eq!(verdict.allowed(), allowed, "{variable}: {:?}", verdict.outcome);
        assert!(allowed || verdict.reason == Reason::PortFixed, "{variable}");
    }
}

/// The Pod with the note that its status annotation came with it.
fn brought(mut pod: Value) -> Value {
    pod["metadata"]["managedFields"] = json!([{"manager": "operator", "operation": "Update", "fieldsV1": {
        "f:metadata": {"f:annotations": {format!("f:{}", keys::ANNOTATION_STATUS): {}}}}}]);
    pod
}

/// A Pod of that mode, and the same with an annotation alone that claims what was never done to it.
fn forged(mode: &str) -> (Value, Value) {
    let status = json!({"version": 1, "fsGroup": true, "init": [{"name": "sign-agentcard"}], "volumes": [{"name": "svid-output"}], "edits": [
        {"edit": "env", "container": "agent", "name": "MODEL_URL", "value": "https://model", "was": {"value": "https://evil"}},
        {"edit": "env", "container": "agent", "name": "CHECKS", "value": "on"},
        {"edit": "mount", "container": "agent", "volume": "policy", "path": "/policy", "subPath": ""},
        {"edit": "port", "container": "ui", "index": 0, "from": 3001, "to": 3000, "moved": {}}]});
    let mut pod = annotated(&[(keys::ANNOTATION_MODE, mode)]);
    pod["spec"]["securityContext"] = json!({"fsGroup": 0});
    pod["spec"]["initContainers"] = json!([{"name": "sign-agentcard", "image": "own"}]);
    pod["spec"]["volumes"] = json!([{"name": "svid-output", "emptyDir": {}}]);
    let agent = &mut pod["spec"]["containers"][0];
    let more = [json!({"name": "MODEL_URL", "value": "https://model"}), json!({"name": "CHECKS", "value": "on"})];
    agent["env"].as_array_mut().unwrap().extend(more);
    agent["volumeMounts"] = json!([{"name": "policy", "mountPath": "/policy"}]);
    let ui = json!({"name": "ui", "image": "y", "ports": [{"containerPort": 3000}]});
    pod["spec"]["containers"].as_array_mut().unwrap().push(ui);
    let plain = pod.clone();
    pod["metadata"]["annotations"][keys::ANNOTATION_STATUS] = status.to_string().into();
    (plain, pod)
}

/// Users of an operator who write annotations of its Pods and nothing else cannot have anything "taken back" that was never there: where no
/// container of ours came with the Pod, nothing was changed for its sake.
#[test]
fn whoever_writes_the_annotation_alone_changes_nothing_else_of_the_pod() {
    let snapshot = fixtures::snapshot();
    for mode in ["envoy-sidecar", "proxy-sidecar", "waypoint"] {
        let (plain, pod) = forged(mode);
        let plain = injected(&plain, &snapshot);
        let pod = brought(pod);
        let verdict = fixtures::review_sent(&pod, &snapshot);
        assert!(verdict.allowed(), "{mode}: {:?}", verdict.outcome);
        assert_eq!(fixtures::applied(&pod, &verdict)["spec"], plain["spec"], "{mode}");
    }
}

/// Whoever explains a Pod takes back of it what the webhook takes back, and no more: of a manifest as of one that carries the API server's note.
#[test]
fn what_is_taken_back_to_explain_is_what_the_webhook_takes_back() {
    let snapshot = fixtures::snapshot();
    let without = |pod: &Value, sent: bool| {
        let mut before = pod.clone();
        json_patch::patch(&mut before, &taken_back(pod, sent, "team1", &snapshot)).unwrap();
        before
    };
    for mode in ["envoy-sidecar", "proxy-sidecar", "waypoint"] {
        let (plain, pod) = forged(mode);
        let noted = brought(pod.clone());
        assert_eq!(without(&pod, true)["spec"], plain["spec"], "{mode}");
        assert_eq!(without(&noted, false)["spec"], plain["spec"], "{mode}");
        let webhook = fixtures::review_sent(&noted, &snapshot);
        let explained = injected(&without(&pod, true), &snapshot);
        assert_eq!(fixtures::applied(&noted, &webhook)["spec"], explained["spec"], "{mode}");
        let raw = serde_json::value::to_raw_value(&noted).unwrap();
        let (_, of_noted) = crate::admission::explain(&fixtures::request(&raw), &snapshot);
        let raw = serde_json::value::to_raw_value(&plain).unwrap();
        let (_, of_plain) = crate::admission::explain(&fixtures::request(&raw), &snapshot);
        assert_eq!((of_noted.edits, of_noted.fields), (of_plain.edits, of_plain.fields), "{mode}");
    }
    // What is really ours goes, from a manifest that was injected beforehand as from a Pod that is stored.
    for pod in [fixtures::pod(), proxy_mode()] {
        let whole = injected(&pod, &snapshot);
        assert_eq!(without(&whole, false), pod);
        assert_eq!(without(&whole, true), pod);
    }
}

/// A template with what an injected Pod has, and with that account: named, and recorded as the one that we gave it.
fn copied(account: &str, is_beside_ours: bool) -> Value {
    let whole = injected(&fixtures::pod(), &fixtures::snapshot());
    let mut annotations = whole["metadata"]["annotations"].clone();
    let mut record: Value = serde_json::from_str(text(&annotations, keys::ANNOTATION_STATUS)).unwrap();
    record["serviceAccount"] = json!({"now": account});
    annotations[keys::ANNOTATION_STATUS] = record.to_string().into();
    let spec = if is_beside_ours { whole["spec"].clone() } else { fixtures::pod()["spec"].clone() };
    let metadata = json!({"labels": {keys::LABEL_TYPE: "agent"}, "annotations": annotations});
    let mut template = json!({"metadata": metadata, "spec": spec});
    template["spec"]["serviceAccountName"] = json!(account);
    template
}

/// What stands on a template comes with its Pods, so controllers believe of it what the webhook believes of them: who writes a record beside a
/// container that is named like one of ours would else be told to be somebody that his Pods are not, and his card would be held against that.
#[test]
fn what_a_template_records_counts_as_much_as_in_its_pods() {
    let workload = Workload { kind: WorkloadKind::Deployment, name: "weather-agent".to_owned() };
    let (ours, foreign) = (Some(Ownership::Ours), Some(Ownership::Foreign));
    // (what is known of the workload's own account, the account that is recorded, whether beside a container of ours, whether the own one is given)
    for (own, account, is_beside_ours, is_given) in [
        (ours, "weather-agent", true, true),
        // Its Pods wait until it is made.
        (None, "weather-agent", true, true),
        (ours, "of-another", true, true),
        (ours, "strong", true, false),
        (ours, "absent", true, false),
        (None, "strong", true, false),
        (foreign, "weather-agent", true, false),
        (ours, "strong", false, false),
        (None, "weather-agent", false, false),
    ] {
        let at = format!("{own:?} {account} {is_beside_ours}");
        let snapshot = observing(|view| {
            let others = [("of-another", Ownership::Ours), ("strong", Ownership::Foreign)];
            let known = own.into_iter().map(|own| ("weather-agent", own)).chain(others);
            view.service_accounts = known.map(|(name, ownership)| (name.into(), ownership)).collect();
        });
        let template = copied(account, is_beside_ours);
        let runs = if is_given { "weather-agent" } else { account };
        let needs = needs("team1", &workload, &template, &snapshot);
        assert_eq!(needs.service_account.as_deref(), is_given.then_some("weather-agent"), "{at}: {:?}", needs.reason);
        assert_eq!(runs_as("team1", &workload, &template, &snapshot).unwrap().account, runs, "{at}");
        let status = in_force("team1", &workload, &template, &snapshot).unwrap();
        assert!(status.spiffe_id.unwrap().ends_with(&format!("/sa/{runs}")), "{at}");
        let object = json!({"metadata": {"name": "weather-agent"}, "spec": {"template": template}});
        let heard =
            fixtures::review(Phase::Validate, Operation::Create, ("apps", "Deployment"), &object, &snapshot).audit;
        let told = heard.iter().any(|(_, text)| text.contains("; ServiceAccount weather-agent"));
        assert_eq!(told, is_given, "{at}: {heard:?}");
        // Until the account is there, no Pod of the template is admitted at all.
        if own.is_some() || !is_given {
            let mut pod = fixtures::pod();
            pod["metadata"]["annotations"] = template["metadata"]["annotations"].clone();
            pod["spec"] = template["spec"].clone();
            assert_eq!(injected(&brought(pod), &snapshot)["spec"]["serviceAccountName"], runs, "{at}");
        }
    }
}

/// A manifest that was injected beforehand keeps containers of ours only as we would make them, and is then left alone.
#[test]
fn a_container_that_came_with_the_pod_is_ours_in_every_member() {
    const TOKEN_PATH: &str = "/var/run/secrets/kubernetes.io/serviceaccount";
    let snapshot = fixtures::snapshot();
    let whole = brought(injected(&annotated(&[(keys::ANNOTATION_SIGN, "true")]), &snapshot));
    assert_eq!(names(&whole["spec"]["initContainers"]), ["sign-agentcard", "proxy-init"]);
    assert_eq!(skipped(&whole, &snapshot), Reason::AlreadyInjected);
    let changes: [fn(&mut Value); 5] = [
        // The kubelet would lay an empty file over the program that redirects.
        |pod| named_mut(&mut pod["spec"]["initContainers"], "proxy-init")["terminationMessagePath"] = json!("/init.sh"),
        |pod| {
            let envoy = named_mut(&mut pod["spec"]["containers"], "envoy-proxy");
            envoy["terminationMessagePolicy"] = json!("FallbackToLogsOnError");
        },
        |pod| {
            let envoy = named_mut(&mut pod["spec"]["containers"], "envoy-proxy");
            named_mut(&mut envoy["ports"], "envoy-admin")["hostPort"] = json!(9901);
        },
        |pod| {
            let envoy = named_mut(&mut pod["spec"]["containers"], "envoy-proxy");
            envoy["volumeMounts"].as_array_mut().unwrap().push(json!({"name": "evil", "mountPath": TOKEN_PATH}));
        },
        |pod| {
            let signer = named_mut(&mut pod["spec"]["initContainers"], "sign-agentcard");
            named_mut(&mut signer["volumeMounts"], "sign-agentcard-token")["name"] = json!("evil");
        },
    ];
    for (index, change) in changes.into_iter().enumerate() {
        let mut pod = whole.clone();
        change(&mut pod);
        let seen = injected(&pod, &snapshot);
        assert_eq!(seen["spec"], whole["spec"], "{index}");
        assert_eq!(skipped(&seen, &snapshot), Reason::AlreadyInjected, "{index}");
    }
}
