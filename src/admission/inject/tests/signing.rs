//! Pods that sign their agent's card when they start.

use super::*;
use crate::config::layers::{Field, Layer};
use crate::config::resolved::{NativeSidecars, SpireSwitch};
use crate::domain::workload::{Workload, WorkloadKind};

const TOKEN_PATH: &str = "/var/run/secrets/kubernetes.io/serviceaccount";

fn asking() -> Value {
    annotated(&[(keys::ANNOTATION_SIGN, "true")])
}

fn set<T>(value: T) -> Field<T> {
    Field { value, layer: Layer::PlatformFile, shadowed: vec![] }
}

#[test]
fn the_signer_comes_before_what_redirects_its_traffic_and_has_the_parts_of_the_page() {
    for native in [NativeSidecars::Disabled, NativeSidecars::Auto] {
        let snapshot = with(|resolved| resolved.native_sidecars = set(native));
        let seen = injected(&asking(), &snapshot);
        let inits = names(&seen["spec"]["initContainers"]);
        assert_eq!(&inits[..2], ["sign-agentcard", "proxy-init"], "{native:?}");
        let signer = named(&seen["spec"]["initContainers"], "sign-agentcard");
        assert_eq!(signer["image"], "REG/drawbridge:latest");
        assert_eq!(signer["args"], json!(["card", "sign", "--in-pod", "--if-present"]));
        assert!(signer.get("command").is_none() && signer.get("restartPolicy").is_none(), "{signer}");
        let security = &signer["securityContext"];
        assert_eq!(security["runAsNonRoot"], true);
        assert_eq!(security["readOnlyRootFilesystem"], true);
        assert_eq!(security["allowPrivilegeEscalation"], false);
        assert_eq!(security["capabilities"], json!({"drop": ["ALL"]}));
        let value = |name: &str| env(&seen, "initContainers", "sign-agentcard", name)["value"].clone();
        assert_eq!(value("SPIFFE_ENDPOINT_SOCKET"), "unix:///run/spire/agent-sockets/spire-agent.sock");
        assert_eq!(value("UNSIGNED_CARD_PATH"), "/etc/agentcard/agent.json");
        assert_eq!(value("AGENT_CARD_PATH"), "/app/.well-known/agent-card.json");
        assert_eq!((value("SIGN_TIMEOUT"), value("AGENT_NAME")), (json!("30s"), json!("weather-agent")));
        let field = &env(&seen, "initContainers", "sign-agentcard", "POD_NAMESPACE")["valueFrom"];
        assert_eq!(field["fieldRef"]["fieldPath"], "metadata.namespace");
        let volume = |name: &str| named(&seen["spec"]["volumes"], name).clone();
        assert_eq!(
            volume("unsigned-card")["configMap"],
            json!({"name": "weather-agent-card-unsigned", "optional": true})
        );
        assert_eq!(volume("signed-card")["emptyDir"], json!({"medium": "Memory", "sizeLimit": "1Mi"}));
        assert_eq!(volume("spire-agent-socket")["csi"]["driver"], "csi.spiffe.io");
        assert_eq!(volume("sign-agentcard-token")["projected"]["sources"][0]["serviceAccountToken"]["path"], "token");
    }
}

fn staying() -> Value {
    annotated(&[(keys::ANNOTATION_SIGN, keys::SIGN_SIDECAR)])
}

/// What is different from an init container that signs once, and nothing else is.
#[test]
fn a_sidecar_stays_and_is_the_init_container_in_all_else() {
    let snapshot = with(|resolved| resolved.native_sidecars = set(NativeSidecars::Auto));
    let seen = injected(&staying(), &snapshot);
    let inits = names(&seen["spec"]["initContainers"]);
    assert_eq!(&inits[..2], ["sign-agentcard", "proxy-init"]);
    let mut sidecar = named(&seen["spec"]["initContainers"], "sign-agentcard").clone();
    assert_eq!(sidecar["restartPolicy"], "Always");
    assert_eq!(sidecar["args"], json!(["card", "sign", "--in-pod", "--if-present", "--stay"]));
    let probe = &sidecar["startupProbe"];
    assert_eq!(probe["exec"]["command"], json!(["/drawbridge", "card", "sign", "--in-pod", "--has-started"]));
    assert_eq!(probe.as_object().unwrap().keys().filter(|key| *key != "exec").count(), 3, "no port: {probe}");
    let seconds = |key: &str| probe[key].as_u64().unwrap();
    assert!(seconds("periodSeconds") * seconds("failureThreshold") > 30, "longer than the program's own patience");
    let once = injected(&asking(), &snapshot);
    let once = named(&once["spec"]["initContainers"], "sign-agentcard");
    for member in ["restartPolicy", "startupProbe", "args"] {
        sidecar.as_object_mut().unwrap().remove(member);
    }
    sidecar["args"] = once["args"].clone();
    assert_eq!(&sidecar, once);
    assert_eq!(fixtures::review_pod(&seen, &snapshot).operations(), Vec::new(), "a second call changes nothing");
}

#[test]
fn a_pod_that_cannot_have_a_sidecar_signs_when_it_starts_and_is_told_why() {
    let auto = || with(|resolved| resolved.native_sidecars = set(NativeSidecars::Auto));
    let old = || {
        let mut snapshot = auto();
        snapshot.view.server_version = (1, 28);
        snapshot
    };
    let ends = |policy: &str| {
        let mut pod = staying();
        pod["spec"]["restartPolicy"] = json!(policy);
        pod
    };
    let disabled =
        annotated(&[(keys::ANNOTATION_SIGN, keys::SIGN_SIDECAR), (keys::ANNOTATION_NATIVE_SIDECARS, "disabled")]);
    for (pod, snapshot, says) in [
        (staying(), old(), Some("the API server is 1.28")),
        (staying(), with(|resolved| resolved.native_sidecars = set(NativeSidecars::Disabled)), Some("disabled")),
        (disabled, auto(), Some("nativeSidecars is disabled")),
        (ends("Never"), auto(), Some("restartPolicy: Never")),
        (ends("OnFailure"), old(), Some("restartPolicy: OnFailure")),
        (ends("Always"), auto(), None),
        (asking(), old(), None),
    ] {
        let verdict = fixtures::review_pod(&pod, &snapshot);
        let told: Vec<_> = verdict.warnings.iter().filter(|one| one.reason == Reason::SignsAtStart).collect();
        assert_eq!(told.len(), usize::from(says.is_some()), "{says:?}: {:?}", verdict.warnings);
        assert!(told.iter().all(|one| one.text.contains(says.unwrap_or_default())), "{told:?}");
        let seen = fixtures::applied(&pod, &verdict);
        let signer = named(&seen["spec"]["initContainers"], "sign-agentcard");
        if says.is_some() {
            assert!(signer.get("restartPolicy").is_none() && signer.get("startupProbe").is_none(), "{signer}");
            assert_eq!(signer["args"], json!(["card", "sign", "--in-pod", "--if-present"]));
        }
    }
}

/// Its own volume, in the signer alone; what the API server mounts by itself stands in for nothing.
#[test]
fn the_token_of_the_signer_is_seen_by_nobody_else() {
    let mut pod = asking();
    pod["spec"]["volumes"] = json!([{"name": "kube-api-access-x", "projected": {"sources": []}}]);
    pod["spec"]["containers"][0]["volumeMounts"] =
        json!([{"name": "kube-api-access-x", "mountPath": TOKEN_PATH, "readOnly": true}]);
    let seen = injected(&pod, &fixtures::snapshot());
    for list in ["initContainers", "containers"] {
        for container in seen["spec"][list].as_array().unwrap() {
            let name = text(container, "name");
            let mounts = items(container, "volumeMounts");
            let tokens: Vec<_> = mounts.iter().filter(|mount| mount["mountPath"] == TOKEN_PATH).collect();
            assert_eq!(tokens.len(), 1, "{name}");
            let own = name == "sign-agentcard";
            assert_eq!(tokens[0]["name"] == "sign-agentcard-token", own, "{name}");
            assert_eq!(mounts.iter().any(|mount| mount["name"] == "sign-agentcard-token"), own, "{name}");
        }
    }
}

#[test]
fn who_asks_and_gets_none_is_told_why() {
    let ask = |more: &[(&str, &str)]| {
        let mut pod = asking();
        for (key, value) in more {
            let member = if key.contains("mode") || key.contains("sign") { "annotations" } else { "labels" };
            pod["metadata"][member][*key] = json!(value);
        }
        pod
    };
    let own = {
        let mut pod = asking();
        pod["spec"]["initContainers"] = json!([{"name": "sign-agentcard", "image": "signer"}]);
        pod
    };
    let off = || with(|resolved| resolved.spire = set(SpireSwitch::Disabled));
    let auto = || {
        let mut snapshot = with(|resolved| resolved.spire = set(SpireSwitch::Auto));
        snapshot.view.spiffe_driver = false;
        snapshot
    };
    for (pod, snapshot, reason, says) in [
        (
            ask(&[(keys::ANNOTATION_SIGN, "yes")]),
            fixtures::snapshot(),
            Reason::UnknownValue,
            "use true, sidecar or false",
        ),
        (ask(&[(keys::LABEL_TYPE, "tool")]), fixtures::snapshot(), Reason::LabelIgnored, "only agents"),
        (own, fixtures::snapshot(), Reason::LabelIgnored, "its own container"),
        (ask(&[(keys::ANNOTATION_MODE, "waypoint")]), fixtures::snapshot(), Reason::LabelIgnored, "waypoint"),
        (ask(&[(keys::LABEL_SPIFFE_HELPER, "false")]), fixtures::snapshot(), Reason::LabelIgnored, "workload-label"),
        (asking(), off(), Reason::LabelIgnored, "spire: disabled"),
        (asking(), auto(), Reason::SpireUnavailable, "install SPIRE"),
    ] {
        let mut snapshot = snapshot;
        snapshot.gates.inject_tools = true;
        let verdict = fixtures::review_pod(&pod, &snapshot);
        assert!(verdict.allowed(), "{:?}", verdict.outcome);
        let told = verdict.warnings.iter().find(|warning| warning.reason == reason && warning.text.contains(says));
        let before = names(&pod["spec"]["initContainers"]).len();
        let seen = fixtures::applied(&pod, &verdict);
        let ours = names(&seen["spec"]["initContainers"]).iter().filter(|name| **name == "sign-agentcard").count();
        assert_eq!(ours, before, "{says}");
        if reason != Reason::LabelIgnored || !says.contains("waypoint") {
            assert!(told.is_some(), "{says}: {:?}", verdict.warnings);
        }
    }
}

#[test]
fn without_an_image_it_is_refused_and_only_where_it_is_asked_for() {
    let snapshot = with(|resolved| resolved.images.card_signer = Field::built_in(None));
    let denial = refusal(&asking(), &snapshot);
    assert_eq!(denial.reason, Reason::ImageMissing);
    assert!(denial.sentence.contains("images.cardSigner"), "{}", denial.sentence);
    let seen = injected(&fixtures::pod(), &snapshot);
    assert!(!names(&seen["spec"]["initContainers"]).contains(&"sign-agentcard"));
}

#[test]
fn a_second_call_changes_nothing_and_what_is_taken_out_leaves_the_pod_as_it_was() {
    let pod = annotated(&[(keys::ANNOTATION_SIGN, "true"), (keys::ANNOTATION_MOUNT_SIGNED, "true")]);
    let mut seen = injected(&pod, &fixtures::snapshot());
    let mount = |pod: &Value| {
        let agent = named(&pod["spec"]["containers"], "agent");
        items(agent, "volumeMounts").iter().find(|mount| mount["name"] == "signed-card").cloned().unwrap_or_default()
    };
    assert_eq!(mount(&seen), json!({"name": "signed-card", "mountPath": "/app/.well-known", "readOnly": true}));
    let again = fixtures::review_pod(&seen, &fixtures::snapshot());
    assert_eq!(again.operations(), Vec::new());
    let taken_back = uninject(&seen);
    json_patch::patch(&mut seen, &taken_back).unwrap();
    assert_eq!(seen["spec"].get("initContainers"), None);
    assert_eq!(mount(&seen), Value::Null);
    // Who takes the annotation off gets a Pod without it at the next call.
    let mut plain = injected(&pod, &fixtures::snapshot());
    plain["metadata"]["annotations"][keys::ANNOTATION_SIGN] = json!("false");
    let plain = injected(&plain, &fixtures::snapshot());
    assert!(!names(&plain["spec"]["initContainers"]).contains(&"sign-agentcard"));
    assert_eq!(mount(&plain), Value::Null);
}

/// A place for it cannot be made there, and the container would not start.
#[test]
fn a_container_that_has_no_room_for_the_card_starts_without_it_and_is_told() {
    let asked = annotated(&[(keys::ANNOTATION_SIGN, "true"), (keys::ANNOTATION_MOUNT_SIGNED, "true")]);
    let mount = |path: &str, read_only: bool| json!({"name": "own", "mountPath": path, "readOnly": read_only});
    let (empty, files) = (json!({"emptyDir": {}}), json!({"configMap": {"name": "code"}}));
    for (volume, mounts, says) in [
        (&empty, vec![mount("/app", false)], None),
        (&empty, vec![mount("/app", true)], Some("at /app, where no folder")),
        (&empty, vec![mount("/app/", true)], Some("at /app/, where no folder")),
        (&files, vec![mount("/app", false)], Some("at /app, where no folder")),
        (&files, vec![mount("/app/main.py", true), mount("/application", true)], None),
        (&empty, vec![mount("/app/.well-known", false)], Some("where the card would be")),
        (&empty, vec![mount("/app/.well-known/agent.json", false)], Some("where the card would be")),
        (&empty, vec![mount("/app/.well-known-other", true)], None),
    ] {
        let mut pod = asked.clone();
        pod["spec"]["volumes"] = json!([volume]);
        pod["spec"]["volumes"][0]["name"] = json!("own");
        pod["spec"]["containers"][0]["volumeMounts"] = json!(mounts);
        let verdict = fixtures::review_pod(&pod, &fixtures::snapshot());
        let told: Vec<_> = verdict.warnings.iter().filter(|one| one.reason == Reason::LabelIgnored).collect();
        assert_eq!(told.len(), usize::from(says.is_some()), "{mounts:?}: {:?}", verdict.warnings);
        assert!(told.iter().all(|one| one.text.contains(says.unwrap_or_default())), "{told:?}");
        let seen = fixtures::applied(&pod, &verdict);
        let has_it = names(&named(&seen["spec"]["containers"], "agent")["volumeMounts"]).contains(&"signed-card");
        assert_eq!(has_it, says.is_none(), "{mounts:?}");
    }
    // The nearest one above counts: of this one it can be made.
    let mut pod = asked;
    pod["spec"]["volumes"] = json!([{"name": "own", "configMap": {"name": "code"}}, {"name": "room", "emptyDir": {}}]);
    pod["spec"]["containers"][0]["volumeMounts"] =
        json!([{"name": "own", "mountPath": "/"}, {"name": "room", "mountPath": "/app"}]);
    assert!(!warned(&pod, &fixtures::snapshot()).contains(&Reason::LabelIgnored));
}

#[test]
fn the_parts_are_in_the_hash_and_the_account_is_the_one_that_the_card_is_held_against() {
    let workload = Workload { kind: WorkloadKind::Deployment, name: "weather-agent".to_owned() };
    let needs = |pod: &Value, snapshot: &Snapshot| needs("team1", &workload, pod, snapshot);
    let plain = needs(&fixtures::pod(), &fixtures::snapshot());
    let signs = needs(&asking(), &fixtures::snapshot());
    let other = needs(&asking(), &with(|resolved| resolved.images.card_signer = set(Some("other".to_owned()))));
    let image = needs(&fixtures::pod(), &with(|resolved| resolved.images.card_signer = set(Some("other".to_owned()))));
    assert_eq!((plain.signs_as.as_deref(), signs.signs_as.as_deref()), (None, Some("weather-agent")));
    assert_ne!(plain.config_hash, signs.config_hash);
    assert_ne!(signs.config_hash, other.config_hash);
    assert_eq!(plain.config_hash, image.config_hash, "who does not sign does not roll");
    let auto = with(|resolved| resolved.native_sidecars = set(NativeSidecars::Auto));
    let (once, anew) = (needs(&asking(), &auto), needs(&staying(), &auto));
    assert_eq!((once.signs_anew, anew.signs_anew, anew.signs_as.as_deref()), (false, true, Some("weather-agent")));
    assert_ne!(once.config_hash, anew.config_hash);
    let mut ends = staying();
    ends["spec"]["restartPolicy"] = json!("Never");
    let ends = needs(&ends, &auto);
    assert!(!ends.signs_anew && ends.signs_as.is_some() && ends.config_hash == once.config_hash, "{ends:?}");
    let mut named = asking();
    named["spec"]["serviceAccountName"] = json!("mine");
    assert_eq!(needs(&named, &fixtures::snapshot()).signs_as.as_deref(), Some("mine"));
    let id = runs_as("team1", &workload, &named, &fixtures::snapshot()).unwrap();
    assert_eq!(id.account, "mine");
}
