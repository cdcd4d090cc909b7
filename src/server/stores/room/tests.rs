//! Who is read, who is left out, and what that takes.

use serde_json::{Value, json};

use super::account::ALL_KEPT;
use super::*;
use crate::api::agent_kagenti_dev::provenance::{
    BEFORE, EARLIER, ENTRIES, INPUTS, LARGEST, MADE, Provenance, STEPS, StepSource, TEXT,
};
use crate::domain::bounds::LARGEST_KAOS;
use crate::store::change_of;
use crate::store::{Trust, Via};

fn agent(namespace: &str, name: &str, spec: &Value) -> Change {
    let metadata = json!({"namespace": namespace, "name": name, "uid": name, "resourceVersion": "1"});
    change_of(Kind::Agent, &json!({"metadata": metadata, "spec": spec}).to_string()).unwrap()
}

fn over(room: &mut Room, change: &Change) -> Option<Over> {
    let (change, _) = room.admit(change.clone());
    let now = change.now.unwrap();
    let seen = now.what.custom().unwrap();
    assert_eq!(seen.over.is_some(), *seen.spec == json!({}), "what is over a bound is slim");
    seen.over
}

fn gone(change: &Change) -> Change {
    Change { now: None, ..change.clone() }
}

#[test]
fn mend_02_a_namespace_holds_so_many_and_the_next_comes_when_one_goes() {
    let mut room = Room::default();
    let all: Vec<_> = (0..=OBJECTS).map(|at| agent("team", &format!("a{at}"), &json!({"image": "x"}))).collect();
    let found: Vec<_> = all.iter().map(|one| over(&mut room, one)).collect();
    assert!(found[..OBJECTS].iter().all(Option::is_none));
    assert_eq!((found[OBJECTS], room.count(Over::Count)), (Some(Over::Count), 1));
    assert_eq!(over(&mut room, &agent("other", "a", &json!({"image": "x"}))), None, "another namespace");
    assert_eq!(over(&mut room, &all[3]), None, "who was read stays read");
    let (_, again) = room.admit(gone(&all[3]));
    assert!(again, "those without room are to be read anew");
    assert_eq!((over(&mut room, &all[OBJECTS]), room.count(Over::Count)), (None, 0));
    for one in &all {
        room.admit(gone(one));
    }
    let (_, again) = room.admit(gone(&agent("other", "a", &json!({}))));
    assert!(!again, "nobody waits");
    assert_eq!((room.held(), room.spaces.len()), (0, 0), "nothing is left behind");
}

/// After an outage everything is listed again: what others have filled meanwhile takes away nothing that was read.
#[test]
fn who_was_read_stays_read_however_full_it_has_become() {
    // Less than 64 KiB of text, and some megabytes of a tree.
    let wide = |items: usize| json!({"a": (0..items).map(|_| json!({"b": 1})).collect::<Vec<_>>()});
    let (mut room, mut read) = (Room::default(), Vec::new());
    for namespace in ["one", "other", "third", "fourth"] {
        for at in 0..100 {
            let one = agent(namespace, &format!("{namespace}-{at}"), &wide(3_000));
            if over(&mut room, &one).is_some() {
                room.admit(gone(&one));
                break;
            }
            read.push(one);
        }
    }
    assert!(read.iter().any(|one| &*one.key.namespace == "fourth"), "whoever comes new finds room");
    let held = room.held();
    for one in read.iter().chain(read.iter().rev()) {
        assert_eq!(over(&mut room, one), None, "{}", one.key.name);
    }
    assert_eq!((room.held(), room.count(Over::Total), room.count(Over::Count)), (held, 0, 0));
    let grown = agent("one", "one-0", &wide(6_000));
    assert_eq!(over(&mut room, &grown), Some(Over::Total), "what grows finds what is left");
}

/// What cuts off agents has a selection of its own, and that of all others says of each change of it that it is none of theirs.
#[test]
fn what_one_selection_leaves_out_counts_as_long_as_another_delivers_it() {
    let (of_deny, of_others) = (SelectionId::new(1), SelectionId::new(2));
    let metadata = json!({"namespace": "team", "name": keys::DEFAULT_DENY, "uid": "d", "resourceVersion": "1"});
    let policy = json!({"metadata": metadata, "spec": {"podSelector": {}}});
    let deny = change_of(Kind::NetworkPolicy, &policy.to_string()).unwrap();
    let has = |via: Via| Change { via, ..deny.clone() };
    let lacks = |via: Via| Change { now: None, ..has(via) };
    let mut room = Room::default();
    room.admit(has(Via::List(of_deny)));
    let held = room.held();
    assert!(held >= POLICY);
    // Somebody waits for room, and is to be read anew only once there is some.
    for at in 0..=OBJECTS {
        room.admit(agent("team", &format!("a{at}"), &json!({"image": "x"})));
    }
    assert_eq!(room.count(Over::Count), 2);
    let (before, made) = (room.held(), room.made());
    for via in [Via::Watch(of_others), Via::List(of_others)] {
        assert!(!room.admit(lacks(via)).1);
    }
    room.admit(has(Via::Watch(of_deny)));
    assert_eq!((room.held(), room.made()), (before, made));
    // It goes over to another selection, and is gone with that one.
    room.admit(has(Via::Watch(of_others)));
    assert!(!room.admit(lacks(Via::Watch(of_deny))).1);
    assert_eq!((room.held(), room.made()), (before, made));
    assert!(room.admit(lacks(Via::Watch(of_others))).1, "those without room are to be read anew");
    assert_eq!(room.held(), before - held);
}

#[test]
fn a_status_that_is_large_takes_room() {
    let of = |status: &Value| {
        let metadata = json!({"namespace": "n", "name": "a", "uid": "a", "resourceVersion": "1"});
        let object = json!({"metadata": metadata, "spec": {"image": "x"}, "status": status});
        let change = change_of(Kind::KaosAgent, &object.to_string()).unwrap();
        measured(change.now.as_deref().unwrap()).unwrap().bytes
    };
    let (none, small) = (of(&json!({})), of(&json!({"phase": "Ready", "message": "Deployment ready replicas: 1/1"})));
    assert_eq!(none, small, "one of every day frees no room when it changes");
    let large = of(&json!({"message": "x".repeat(350 * 1024)}));
    assert!(large > none + 300 * 1024, "{large}");
}

/// What is over a bound costs nothing here: whoever writes statuses, or under the name of a manager of ours, fills no memory by it.
#[test]
fn of_what_is_over_a_bound_nothing_large_is_left() {
    let condition = json!({"type": "Ready", "status": "False", "reason": "InvalidSpec", "message": "m",
        "lastTransitionTime": "2026-01-01T00:00:00Z"});
    let small = json!({"conditions": [condition], "observedGeneration": 3, "phase": "Failed"});
    let status = |member: &str, value: &Value| {
        let mut status = small.clone();
        status[member] = value.clone();
        status
    };
    let change = |kind: Kind, spec: &Value, status: &Value| {
        let metadata = json!({"namespace": "team", "name": "a", "uid": "a", "resourceVersion": "1"});
        change_of(kind, &json!({"metadata": metadata, "spec": spec, "status": status}).to_string()).unwrap()
    };
    let kept = |what: &What| match what {
        What::AgentRuntime(seen) => seen.status.value(),
        What::AgentCard(seen) => Value::clone(&seen.status),
        what => Value::clone(&what.custom().unwrap().status),
    };
    let long = json!("x".repeat(350 * 1024));
    let large = json!({"image": "x".repeat(LARGEST_KAOS + 1)});
    let mut room = Room::default();
    let (admitted, _) = room.admit(change(Kind::KaosAgent, &large, &status("message", &long)));
    let what = &admitted.now.as_ref().unwrap().what;
    assert_eq!((what.over(), room.held(), kept(what)), (Some(Over::Size), 0, small.clone()));
    // Less than 12 KiB of text, and some hundred of a tree.
    let wide: Value = (0..1_000).map(|at| json!({"a": at})).collect();
    let slim = |kind: Kind, status: &Value| {
        let now = change(kind, &json!({"image": "x"}), status).now.unwrap();
        now.what.slim(Over::Count).unwrap()
    };
    for kind in [Kind::Agent, Kind::AgentBuild, Kind::McpServer, Kind::AgentRuntime, Kind::AgentCard] {
        assert_eq!(kept(&slim(kind, &small)), small, "{kind:?}: what is there is not written anew");
        assert_eq!(kept(&slim(kind, &status("effective", &wide))), small, "{kind:?}");
    }
    let without = kept(&slim(Kind::Agent, &status("conditions", &wide)));
    assert_eq!(without, json!({"observedGeneration": 3, "phase": "Failed"}), "conditions that nobody of ours writes");
    let build = slim(Kind::AgentBuild, &status(INPUTS, &long));
    assert!(build.custom().unwrap().records.is_empty() && kept(&build) == small);
    // A name of one letter takes fifty times its text.
    let metadata =
        json!({"namespace": "team", "name": "f", "uid": "f", "resourceVersion": "1", "finalizers": vec!["a"; 8_000]});
    for kind in [Kind::Agent, Kind::AgentRuntime] {
        let (admitted, _) = room.admit(change_of(kind, &json!({"metadata": metadata}).to_string()).unwrap());
        assert_eq!(admitted.now.unwrap().what.over(), Some(Over::Size), "{kind:?}");
    }
}

/// Anybody may write under the name of a manager, and the marks of ours.
#[test]
fn of_a_network_policy_that_is_too_large_no_fields_and_no_declarations_are_left() {
    let policy = |key: &str| {
        let fields = json!({"f:metadata": {"f:labels": {"f:app": {}}, "f:annotations": {format!("f:{key}"): {}}}});
        let metadata = json!({"namespace": "team", "name": "modelapi-x", "uid": "x", "resourceVersion": "1",
            "labels": {"managed-by": "drawbridge"},
            "annotations": {keys::ANNOTATION_DECLARED: "d".repeat(10 * 1024)},
            "ownerReferences": [{"apiVersion": "kaos.tools/v1alpha1", "kind": "ModelAPI", "name": "x", "uid": "m", "controller": true}],
            "managedFields": [{"manager": keys::MANAGER_MODEL_API, "operation": "Apply", "fieldsV1": fields}]});
        let spec = json!({"podSelector": {}, "ingress": vec![json!({}); 6_000]});
        let (change, _) = Room::default()
            .admit(change_of(Kind::NetworkPolicy, &json!({"metadata": metadata, "spec": spec}).to_string()).unwrap());
        let What::NetworkPolicy(seen) = &change.now.as_ref().unwrap().what else { panic!("another kind") };
        (**seen).clone()
    };
    let ours = policy("kagenti.io/content-digest");
    assert!(
        ours.claim.unwrap().fields.is_some_and(|fields| fields.contains("f:app")),
        "what we apply is some hundred bytes"
    );
    let theirs = policy(&"x".repeat(200 * 1024));
    let claim = theirs.claim.unwrap();
    assert_eq!((theirs.over, theirs.declared, claim.fields), (Some(Over::Size), None, None));
    assert!(claim.controller.is_some_and(|owner| owner.uid == "m"), "whose it is stays known");
}

/// Of a workload it stays known that it is governed: dropping the AgentRuntime would un-enrol it.
#[test]
fn mend_02_an_agent_runtime_without_room_keeps_its_target_and_its_marks() {
    let runtime = |name: &str| {
        let spec = json!({"type": "agent", "targetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": name},
            "trace": {"endpoint": "http://x:4317"}});
        let metadata = json!({"namespace": "team", "name": name, "uid": name, "resourceVersion": "1",
            "finalizers": ["a"]});
        change_of(Kind::AgentRuntime, &json!({"metadata": metadata, "spec": spec}).to_string()).unwrap()
    };
    let mut room = Room::default();
    for at in 0..OBJECTS {
        let (change, _) = room.admit(runtime(&format!("r{at}")));
        let what = &change.now.as_ref().unwrap().what;
        assert!(matches!(what, What::AgentRuntime(seen) if seen.over.is_none()), "{at}");
    }
    assert!(room.held() > 1024 * OBJECTS, "they are counted: {}", room.held());
    let (change, _) = room.admit(runtime("more"));
    let What::AgentRuntime(seen) = &change.now.as_ref().unwrap().what else { panic!("another kind") };
    assert_eq!((seen.over, room.count(Over::Count)), (Some(Over::Count), 1));
    assert_eq!((&*seen.target.as_ref().unwrap().name, seen.finalizers.len()), ("more", 1));
    assert_eq!(*seen.spec, json!({}));
    let (_, again) = room.admit(Change { key: Key::new("team", "r7"), ..gone(&change) });
    assert!(again, "those without room are to be read anew");
    let (change, _) = room.admit(runtime("more"));
    assert!(matches!(&change.now.as_ref().unwrap().what, What::AgentRuntime(seen) if seen.over.is_none()));
}

/// Whoever may write statuses fills no memory that nobody counts; an ordinary one takes no room from others.
#[test]
fn a_large_status_of_an_agent_runtime_is_counted() {
    let held = |message: usize| {
        let status = json!({"conditions": [{"type": "Ready", "status": "True", "message": "x".repeat(message)}]});
        let metadata = json!({"namespace": "team", "name": "r", "uid": "r", "resourceVersion": "1"});
        let object = json!({"metadata": metadata, "spec": {"type": "agent"}, "status": status});
        let mut room = Room::default();
        room.admit(change_of(Kind::AgentRuntime, &object.to_string()).unwrap());
        room.held()
    };
    assert_eq!(held(100), held(1_000));
    assert!(held(20_000) >= held(100) + 17_000, "{}", held(20_000));
}

/// What a card is of stays known, so that nobody makes a second one; what it proved does not count.
#[test]
fn mend_02_a_card_without_room_proves_nothing_and_keeps_what_it_is_of() {
    let card = |name: &str| {
        let metadata = json!({"namespace": "team", "name": name, "uid": name, "resourceVersion": "1", "generation": 1,
            "finalizers": ["a"]});
        let spec =
            json!({"syncPeriod": "1m", "targetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": name}});
        let status = json!({"targetUID": "w", "trustedAccount": "web",
            "conditions": [{"type": "Verified", "status": "True", "observedGeneration": 1}]});
        change_of(Kind::AgentCard, &json!({"metadata": metadata, "spec": spec, "status": status}).to_string()).unwrap()
    };
    let seen = |change: &Change| match &change.now.as_ref().unwrap().what {
        What::AgentCard(seen) => (**seen).clone(),
        _ => panic!("another kind"),
    };
    let mut room = Room::default();
    for at in 0..OBJECTS {
        let (change, _) = room.admit(card(&format!("c{at}")));
        assert_eq!((seen(&change).over, seen(&change).trust("w")), (None, Trust::Account("web")), "{at}");
    }
    let (change, _) = room.admit(card("more"));
    let more = seen(&change);
    assert_eq!((more.over, more.trust("w"), room.count(Over::Count)), (Some(Over::Count), Trust::None, 1));
    assert_eq!((&*more.spec.target.as_ref().unwrap().name, more.spec.sync_period.as_deref()), ("more", None));
    assert!(more.finalizers.is_empty() && more.status.get("conditions").is_some());
    let (_, again) = room.admit(Change { key: Key::new("team", "c7"), ..gone(&change) });
    assert!(again, "those without room are to be read anew");
    let (change, _) = room.admit(card("more"));
    assert_eq!(seen(&change).trust("w"), Trust::Account("web"));
}

/// The figures of docs/limits.md: what the status of an AgentBuild takes whose records are the largest that there can be, while it is built anew.
#[test]
fn records_of_a_build_take_no_more_than_the_limits_say() {
    let texts = |count: usize, length: usize| vec!["x".repeat(length); count];
    let step = |arguments: Vec<String>, images: Vec<String>, ran: Vec<String>| StepSource {
        name: "x".repeat(63),
        content_hash: Some("0".repeat(64)),
        build_arguments: arguments,
        images,
        ran_images: ran,
        ..StepSource::default()
    };
    let of = |steps: Vec<StepSource>| Provenance {
        build_hash: Some("0".repeat(64)),
        attempt: Some(i32::MAX),
        rebuild: Some("x".repeat(TEXT)),
        recipe: Some("0".repeat(64)),
        repository: Some("x".repeat(TEXT)),
        revision: Some("x".repeat(TEXT)),
        subfolder: Some("x".repeat(TEXT)),
        commit: Some("0".repeat(64)),
        pipeline_run: Some("x".repeat(253)),
        pipeline_run_uid: Some("0".repeat(36)),
        image: Some("x".repeat(TEXT)),
        image_tag: Some("x".repeat(TEXT)),
        digest: Some("0".repeat(71)),
        steps,
        ..Provenance::default()
    };
    let status = |record: &Provenance| {
        let text = serde_json::to_vec(record).unwrap();
        assert!(text.len() <= LARGEST && *record == record.clone().bounded(), "{} bytes", text.len());
        let earlier = Provenance { steps: Vec::new(), ..record.clone() };
        let status = json!({INPUTS: record, MADE: record, BEFORE: vec![earlier; EARLIER]});
        let metadata = json!({"namespace": "team", "name": "b", "uid": "b", "resourceVersion": "1"});
        let object = json!({"metadata": metadata, "status": status}).to_string();
        let kept = change_of(Kind::AgentBuild, &object).unwrap().now.unwrap();
        let What::AgentBuild(seen) = &kept.what else { panic!("another kind") };
        let records = seen.records.iter().map(|(_, kept)| block(kept.text().len())).sum::<usize>();
        (text.len(), (weight(&seen.status) + records).div_ceil(1024))
    };
    // As few texts as fill it, and as many as it may have.
    let long = of(vec![step(texts(1, 450), Vec::new(), Vec::new()); STEPS]);
    let short = of(vec![step(texts(ENTRIES, 1), texts(ENTRIES, 1), texts(ENTRIES, 1)); STEPS]);
    let (long, short) = (status(&long), status(&short));
    assert!(long.0 > LARGEST * 9 / 10, "{long:?} {short:?}");
    assert!(long.1 <= 65 && short.1 <= 65, "{long:?} {short:?}");
}

/// Whose a right is stays known, so that it can be taken away; what it gives is not.
#[test]
fn a_right_without_room_is_known_by_its_owner_alone() {
    for kind in [Kind::Role, Kind::RoleBinding] {
        let right = |name: &str| {
            let metadata = json!({"namespace": "team", "name": name, "uid": name, "resourceVersion": "1",
                "ownerReferences": [{"apiVersion": "apps/v1", "kind": "Deployment", "name": "w", "uid": "w", "controller": true}]});
            let given = json!({"metadata": metadata, "rules": [{"apiGroups": [""], "resources": ["configmaps"], "verbs": ["get"]}],
                "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": name}});
            change_of(kind, &given.to_string()).unwrap()
        };
        let seen = |change: &Change| match &change.now.as_ref().unwrap().what {
            What::Right(seen) => (**seen).clone(),
            _ => panic!("another kind"),
        };
        let mut room = Room::default();
        for at in 0..OBJECTS {
            let (change, _) = room.admit(right(&format!("r{at}-card-signed")));
            assert!(seen(&change).over.is_none() && seen(&change).gives != Value::Null, "{at}");
        }
        assert!(room.held() > RIGHT * OBJECTS, "they are counted: {}", room.held());
        let (change, _) = room.admit(right("more-card-signed"));
        assert_eq!((seen(&change).over, room.count(Over::Count)), (Some(Over::Count), 1));
        assert_eq!((seen(&change).owner.as_deref(), seen(&change).gives), (Some("w"), Value::Null));
        let (_, again) = room.admit(Change { key: Key::new("team", "r7-card-signed"), ..gone(&change) });
        assert!(again, "those without room are to be read anew");
        let (change, _) = room.admit(right("more-card-signed"));
        assert_eq!(seen(&change).over, None);
    }
}

/// Whose a NetworkPolicy is stays known, so that it is never taken for one that is not there; what it allows is not.
#[test]
fn a_network_policy_without_room_is_known_by_its_marks_and_the_one_that_cuts_off_always_has_room() {
    let policy = |name: &str| {
        let ours = json!({"managed-by": "drawbridge", "app.kubernetes.io/managed-by": "drawbridge"});
        let metadata = json!({"namespace": "team", "name": name, "uid": name, "resourceVersion": "1", "labels": ours});
        let spec = json!({"podSelector": {"matchLabels": {"app": name}}, "policyTypes": ["Ingress"]});
        change_of(Kind::NetworkPolicy, &json!({"metadata": metadata, "spec": spec}).to_string()).unwrap()
    };
    let seen = |change: &Change| match &change.now.as_ref().unwrap().what {
        What::NetworkPolicy(seen) => (**seen).clone(),
        _ => panic!("another kind"),
    };
    let mut room = Room::default();
    for at in 0..OBJECTS {
        let (change, _) = room.admit(policy(&format!("p{at}")));
        assert!(seen(&change).over.is_none() && seen(&change).spec.is_some(), "{at}");
    }
    assert!(room.held() > POLICY * OBJECTS, "they are counted: {}", room.held());
    let (change, _) = room.admit(policy("w-signature-policy"));
    assert_eq!((seen(&change).over, room.count(Over::Count)), (Some(Over::Count), 1));
    assert!(seen(&change).is_ours() && seen(&change).spec.is_none());
    for name in [keys::DEFAULT_DENY, keys::QUARANTINE_POLICY] {
        let (change, _) = room.admit(policy(name));
        assert!(seen(&change).over.is_none() && seen(&change).spec.is_some(), "{name}");
        room.admit(gone(&change));
    }
    let (_, again) = room.admit(Change { key: Key::new("team", "p7"), ..gone(&change) });
    assert!(again, "those without room are to be read anew");
    let (change, _) = room.admit(policy("w-signature-policy"));
    assert!(seen(&change).over.is_none() && seen(&change).spec.is_some());
}

/// What is too large costs nothing and takes nobody's place, and is counted.
#[test]
fn a_network_policy_of_somebody_else_that_is_too_large_is_counted_by_its_size() {
    let policy = |name: &str, labels: Value, blocks: usize| {
        let from: Vec<_> =
            (0..blocks).map(|at| json!({"ipBlock": {"cidr": format!("10.0.{}.{}/32", at / 250, at % 250)}})).collect();
        let metadata =
            json!({"namespace": "team", "name": name, "uid": name, "resourceVersion": "1", "labels": labels});
        let spec = json!({"podSelector": {}, "policyTypes": ["Ingress"], "ingress": [{}, {"from": from}]});
        change_of(Kind::NetworkPolicy, &json!({"metadata": metadata, "spec": spec}).to_string()).unwrap()
    };
    let ours = json!({"managed-by": "drawbridge", "app.kubernetes.io/managed-by": "drawbridge"});
    let mut room = Room::default();
    for (name, labels, blocks, over) in [
        ("small", json!({}), 10, None),
        ("large", json!({}), 600, Some(Over::Size)),
        ("half-marked", json!({"managed-by": "drawbridge"}), 600, Some(Over::Size)),
        ("w-signature-policy", ours, 600, None),
    ] {
        let (change, _) = room.admit(policy(name, labels, blocks));
        let What::NetworkPolicy(seen) = &change.now.as_ref().unwrap().what else { panic!("another kind") };
        assert_eq!((seen.over, seen.spec.is_some()), (over, blocks == 10), "{name}");
    }
    assert_eq!((room.count(Over::Size), room.count(Over::Count)), (2, 0));
    let large = policy("large", json!({}), 600);
    room.admit(gone(&large));
    assert_eq!(room.count(Over::Size), 1, "and no more when it goes");
}

/// That a signed card is there, and whose, stays known, so that nobody makes a second one; in which version is not, so nobody reads it.
#[test]
fn a_signed_card_without_room_is_known_to_be_there_alone() {
    let card = |name: &str| {
        let metadata = json!({"namespace": "team", "name": name, "uid": name, "resourceVersion": "1",
            "labels": {"app.kubernetes.io/managed-by": "drawbridge"},
            "ownerReferences": [{"apiVersion": "apps/v1", "kind": "Deployment", "name": "w", "uid": "w", "controller": true}]});
        change_of(Kind::SignedCard, &json!({"metadata": metadata}).to_string()).unwrap()
    };
    let seen = |change: &Change| match &change.now.as_ref().unwrap().what {
        What::SignedCard(seen) => seen.clone(),
        _ => panic!("another kind"),
    };
    let mut room = Room::default();
    for at in 0..OBJECTS {
        let (change, _) = room.admit(card(&format!("c{at}-card-signed")));
        assert_eq!((seen(&change).over, &*seen(&change).version), (None, "1"), "{at}");
    }
    assert!(room.held() > SIGNED * OBJECTS, "they are counted: {}", room.held());
    let (change, _) = room.admit(card("more-card-signed"));
    assert_eq!((seen(&change).over, room.count(Over::Count)), (Some(Over::Count), 1));
    assert_eq!((seen(&change).ours, seen(&change).owner.as_deref(), &*seen(&change).version), (true, Some("w"), ""));
    let (_, again) = room.admit(Change { key: Key::new("team", "c7-card-signed"), ..gone(&change) });
    assert!(again, "those without room are to be read anew");
    let (change, _) = room.admit(card("more-card-signed"));
    assert_eq!((seen(&change).over, &*seen(&change).version), (None, "1"));
}

#[test]
fn mend_02_whoever_comes_new_finds_room_however_many_fill_theirs() {
    let mut room = Room::default();
    // 64 KiB of text, and some megabytes of a tree.
    let wide = json!({"a": (0..6_000).map(|_| json!({"b": 1})).collect::<Vec<_>>()});
    let one = measured(agent("n", "a", &wide).now.as_deref().unwrap()).unwrap().bytes;
    assert!(one > 2 << 20, "{one}");
    let mut most = Vec::new();
    for namespace in 0..20 {
        let name = format!("n{namespace}");
        let taken = (0..100).take_while(|at| over(&mut room, &agent(&name, &format!("a{at}"), &wide)).is_none());
        most.push(taken.count());
    }
    assert!(most[0] * one <= OBJECTS_KEPT / 2 && most[0] > 1, "{most:?}");
    assert!(room.held() <= OBJECTS_KEPT, "{}", room.held());
    assert_eq!(over(&mut room, &agent("new", "a", &json!({"image": "x"}))), None, "{most:?}");
    let held = room.held();
    let leaving = leaving(Kind::Agent, ("n0", "z"), &[keys::FINALIZER_AGENT], &wide);
    assert_eq!(over(&mut room, &leaving), Some(Over::Total), "what is being deleted may never go");
    assert_eq!(room.held(), held, "and takes no room that nobody else has");
}

/// An object of that kind that is being deleted.
fn leaving(kind: Kind, (namespace, name): (&str, &str), finalizers: &[&str], spec: &Value) -> Change {
    let metadata = json!({"namespace": namespace, "name": name, "uid": name, "resourceVersion": "1",
        "deletionTimestamp": "2026-01-01T00:00:00Z", "finalizers": finalizers});
    change_of(kind, &json!({"metadata": metadata, "spec": spec}).to_string()).unwrap()
}

/// Whoever holds back what he deletes fills no memory by it, and our finalizer is known wherever it is all that keeps an object.
#[test]
fn what_is_being_deleted_is_bounded_and_its_finalizers_stay_known() {
    let target = json!({"targetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "w"}, "a": ["b"]});
    let marks = |what: &What| match what {
        What::AgentRuntime(seen) => (seen.deleting, seen.finalizers.clone()),
        What::AgentCard(seen) => (seen.deleting, seen.finalizers.clone()),
        what => what.custom().map(|seen| (seen.deleting, seen.finalizers.clone())).unwrap(),
    };
    let long = "example.com/".to_owned() + &"x".repeat(50);
    let many: Vec<&str> = std::iter::once("ours").chain(vec![&*long; 60]).collect();
    for kind in [Kind::Agent, Kind::AgentBuild, Kind::KaosAgent, Kind::AgentRuntime, Kind::AgentCard] {
        let mut room = Room::default();
        for at in 0..OBJECTS {
            let (change, _) = room.admit(leaving(kind, ("team", &format!("a{at}")), &["theirs", "ours"], &target));
            assert_eq!(change.now.unwrap().what.over(), None, "{kind:?} {at}");
        }
        let held = room.held();
        let (change, _) = room.admit(leaving(kind, ("team", "more"), &["theirs", "ours"], &target));
        let what = &change.now.as_ref().unwrap().what;
        let (deleting, finalizers) = marks(what);
        assert_eq!((what.over(), deleting, room.held()), (Some(Over::Count), true, held), "{kind:?}");
        assert_eq!(finalizers.iter().map(|name| &**name).collect::<Vec<_>>(), ["theirs", "ours"], "{kind:?}: in order");
        // The whole list or none: nobody writes one of which he knows a part.
        let (change, _) = room.admit(leaving(kind, ("team", "more"), &many, &target));
        let what = &change.now.as_ref().unwrap().what;
        assert_eq!((what.over(), marks(what)), (Some(Over::Count), (true, Box::default())), "{kind:?}");
    }
    let bytes = |finalizers: &[&str]| {
        let change = leaving(Kind::Agent, ("team", "a"), finalizers, &target);
        measured(change.now.as_deref().unwrap()).unwrap().bytes
    };
    assert_eq!(bytes(&[]), bytes(&["theirs", "ours"]), "that ours is put on takes nobody's place");
    assert!(bytes(&many) > bytes(&[]) + 60 * long.len(), "of one that is read they are counted");
}

/// Whatever people write under that name, no namespace takes more by it than ours takes; of a larger one ours is put back without being read.
#[test]
fn of_what_cuts_off_agents_a_large_one_takes_room_like_any_other() {
    let policy = |namespace: &str, name: &str, rules: usize| {
        let ours = json!({"managed-by": "drawbridge", "app.kubernetes.io/managed-by": "drawbridge"});
        let metadata =
            json!({"namespace": namespace, "name": name, "uid": name, "resourceVersion": "1", "labels": ours});
        let from =
            json!({"from": [{"ipBlock": {"cidr": "10.0.0.1/32"}}], "ports": [{"port": 6443, "protocol": "TCP"}]});
        let spec = json!({"podSelector": {}, "ingress": vec![from; rules]});
        change_of(Kind::NetworkPolicy, &json!({"metadata": metadata, "spec": spec}).to_string()).unwrap()
    };
    let bytes = |change: &Change| measured(change.now.as_deref().unwrap()).unwrap().bytes;
    let (ours, large) = (policy("n", keys::DEFAULT_DENY, 64), policy("n", keys::DEFAULT_DENY, 150));
    assert!(bytes(&ours) <= CUTS_OFF && bytes(&large) > CUTS_OFF, "{} {}", bytes(&ours), bytes(&large));
    let mut room = Room::default();
    let mut left = 0;
    for at in 0..400 {
        let key = Key::new(&format!("n{at}"), keys::DEFAULT_DENY);
        let (change, _) = room.admit(Change { key, ..large.clone() });
        let What::NetworkPolicy(seen) = &change.now.as_ref().unwrap().what else { panic!("another kind") };
        assert!(seen.is_ours() && seen.spec.is_some() == seen.over.is_none());
        left += usize::from(seen.over.is_some());
    }
    assert!(left > 0 && room.held() <= OBJECTS_KEPT, "{left} {}", room.held());
    let (change, _) = room.admit(Change { key: Key::new("n399", keys::DEFAULT_DENY), ..ours });
    assert_eq!(change.now.unwrap().what.over(), None, "as we write it, it is always read");
}

/// The kinds of which one namespace can have objects of any size, each with its room, and one account for all of them.
fn sharing() -> (Vec<(Kind, Room)>, Arc<Mutex<Account>>) {
    let account = Arc::<Mutex<Account>>::default();
    let kinds = [Kind::Agent, Kind::AgentBuild, Kind::BeeaiAgent, Kind::KaosAgent, Kind::ModelApi, Kind::McpServer];
    (kinds.into_iter().map(|kind| (kind, Room::sharing(account.clone()))).collect(), account)
}

fn of_kind(kind: Kind, spec: &Value) -> Change {
    let metadata = json!({"namespace": "n", "name": "a", "uid": "a", "resourceVersion": "1"});
    change_of(kind, &json!({"metadata": metadata, "spec": spec}).to_string()).unwrap()
}

fn over_at(room: &mut Room, change: &Change, (namespace, name): (&str, &str)) -> Option<Over> {
    let (change, _) = room.admit(Change { key: Key::new(namespace, name), ..change.clone() });
    change.now.unwrap().what.over()
}

/// Fifteen kinds that each fill what one kind may take would be three times what the container has.
#[test]
fn the_objects_of_all_kinds_together_have_a_bound_and_whoever_comes_new_finds_room_in_each() {
    let kinds = Kind::ALL.iter().filter(|kind| kind.descriptor().bounded).count();
    let configured = crate::config::bounds::KEPT_IN_ALL;
    assert!(ALL_KEPT + kinds * FLOOR + configured + (20 << 20) <= 256 << 20, "more than a container may take");
    const { assert!(ALL_KEPT >= 2 * OBJECTS_KEPT, "two kinds may fill what one kind may take") };
    let wide = json!({"a": (0..6_000).map(|_| json!({"b": 1})).collect::<Vec<_>>()});
    let (mut rooms, account) = sharing();
    for (kind, room) in &mut rooms {
        let large = of_kind(*kind, &wide);
        for namespace in 0..12 {
            let name = format!("n{namespace}");
            let is_full = (0..100).any(|at| over_at(room, &large, (&name, &format!("a{at}"))).is_some());
            assert!(is_full, "{kind:?}: there is a bound");
        }
    }
    let held: usize = rooms.iter().map(|(_, room)| room.held()).sum();
    assert_eq!(held, account.lock().held().0);
    assert!(held > ALL_KEPT * 3 / 4 && held <= ALL_KEPT, "{held}");
    let (_, last) = rooms.last_mut().unwrap();
    assert!(last.held() < OBJECTS_KEPT / 4 && last.count(Over::Total) > 0, "beside the others: {}", last.held());
    for (kind, room) in &mut rooms {
        let usual = of_kind(*kind, &json!({"image": "x"}));
        assert_eq!(over_at(room, &usual, ("new", "a")), None, "{kind:?}");
    }
    for (kind, room) in &mut rooms {
        let none = Change { key: Key::new("new", "a"), now: None, ..of_kind(*kind, &json!({})) };
        for namespace in 0..12 {
            for at in 0..100 {
                room.admit(Change { key: Key::new(&format!("n{namespace}"), &format!("a{at}")), ..none.clone() });
            }
        }
        room.admit(none);
        assert_eq!((room.held(), room.count(Over::Total), room.spaces.len()), (0, 0, 0), "{kind:?}");
    }
    assert_eq!(account.lock().held(), (0, 0), "nothing is left behind");
}

/// Who has filled what all kinds share has room for little in a kind of which little is kept, and none for more.
#[test]
fn each_kind_has_a_floor_and_what_another_kind_leaves_is_for_those_that_wait() {
    let wide = json!({"a": (0..6_000).map(|_| json!({"b": 1})).collect::<Vec<_>>()});
    let (mut rooms, account) = sharing();
    for namespace in ["n", "m"] {
        for (kind, room) in &mut rooms[..5] {
            let large = of_kind(*kind, &wide);
            assert!((0..100).any(|at| over_at(room, &large, (namespace, &format!("a{at}"))).is_some()), "{kind:?}");
        }
    }
    assert!(!account.lock().has_room("n", 0), "it has more than is left for all others");
    let (kind, last) = &mut rooms[5];
    let (large, usual) = (of_kind(*kind, &wide), of_kind(*kind, &json!({"image": "x"})));
    assert_eq!(over_at(last, &usual, ("n", "small")), None, "the floor of the kind");
    assert_eq!(over_at(last, &large, ("n", "large")), Some(Over::Total));
    assert_eq!(over_at(last, &large, ("other", "a")), None, "whoever has taken less");
    let before = last.made();
    // What is not kept makes no room.
    let nobodys = Change { key: Key::new("n", "a99"), now: None, ..of_kind(Kind::Agent, &json!({})) };
    let (_, again) = rooms[0].1.admit(nobodys);
    assert!(!again);
    assert_eq!(rooms[5].1.made(), before);
    for at in 0..100 {
        let leaves = Change { key: Key::new("n", &format!("a{at}")), now: None, ..of_kind(Kind::Agent, &json!({})) };
        rooms[0].1.admit(leaves);
    }
    let (_, last) = &mut rooms[5];
    assert!(last.made()[0] == before[0] && last.made()[1] > before[1], "{:?} {before:?}", last.made());
    assert_eq!(over_at(last, &large, ("n", "large")), None);
    assert_eq!(last.made()[1], 0, "nobody of the kind waits any more");
}

/// An object of that kind of an Agent; of the fields that a manager of ours has applied so many bytes are written down.
fn owned(kind: Kind, (namespace, name): (&str, &str), bytes: usize) -> Change {
    let owner = json!({"apiVersion": "agent.kagenti.dev/v1alpha1", "kind": "Agent", "name": "x", "uid": "a", "controller": true});
    let fields = json!({"f:metadata": {"f:labels": {format!("f:{}", "x".repeat(bytes)): {}}}});
    let metadata = json!({"namespace": namespace, "name": name, "uid": name, "resourceVersion": "1",
        "labels": {"kagenti.io/managed-by": "webhook"}, "ownerReferences": [owner],
        "managedFields": [{"manager": keys::MANAGER_AGENT, "operation": "Apply", "fieldsV1": fields}]});
    let object = json!({"metadata": metadata, "spec": {"template": {"spec": {"containers": []}}}});
    change_of(kind, &object.to_string()).unwrap()
}

/// A kind that is bounded and counted nowhere would have no bound.
#[test]
fn every_kind_that_is_bounded_is_counted() {
    for kind in Kind::ALL {
        let now = owned(*kind, ("team", "x-card-signed"), 2 * ORDINARY).now;
        let counted = now.as_deref().and_then(measured).is_some();
        assert_eq!(counted, kind.descriptor().bounded, "{kind:?}");
    }
}

/// Anybody may write under the name of a manager: a thousand of such objects would fill a process.
#[test]
fn what_says_who_owns_which_field_is_bounded_and_the_usual_of_it_depends_on_nobody() {
    let fields = |what: &What| match what {
        What::Workload(seen) => seen.agent.as_ref().unwrap().fields.is_some(),
        What::Service(seen) => seen.claim.fields.is_some(),
        What::ServiceAccount(seen) => {
            assert_eq!(seen.ours, !seen.owners.is_empty(), "nobody writes a list that is not known");
            seen.claim.as_ref().is_some_and(|claim| claim.fields.is_some())
        }
        other => panic!("{other:?}"),
    };
    for kind in [Kind::Deployment, Kind::Service, Kind::ServiceAccount] {
        let (mut room, mut read) = (Room::default(), Vec::new());
        let large = owned(kind, ("n", "x"), 200 * 1024);
        for namespace in 0..20 {
            for name in 0..100 {
                let one = Change { key: Key::new(&format!("n{namespace}"), &format!("x{name}")), ..large.clone() };
                let (change, _) = room.admit(one.clone());
                let what = &change.now.as_ref().unwrap().what;
                assert_eq!(fields(what), what.over().is_none(), "{kind:?}");
                if what.over() == Some(Over::Total) {
                    break;
                }
                read.push(one);
            }
        }
        assert!(room.held() > OWNERSHIP_KEPT / 2 && room.held() <= OWNERSHIP_KEPT, "{kind:?}: {}", room.held());
        let held = room.held();
        let (usual, _) = room.admit(owned(kind, ("new", "a"), ORDINARY / 2));
        assert!(fields(&usual.now.as_ref().unwrap().what) && room.held() == held, "{kind:?}");
        let (_, again) = room.admit(gone(&read[0]));
        assert!(again && room.held() < held, "{kind:?}: those without room are to be read anew");
        let small = Change { key: read[1].key.clone(), ..owned(kind, ("n", "x"), 100) };
        let (change, _) = room.admit(small);
        assert!(fields(&change.now.as_ref().unwrap().what) && room.held() < held - 200 * 1024, "{kind:?}");
    }
}
