//! What is said of those that wait for a turn, and whose rollouts are of a wave.

use serde_json::json;

use super::{
    AGENT_ROW, IMAGES, Key, Kind, Op, TEAM, agent, another_leads, bench, come_up, condition, converge, fail, fleet,
    image, made, running, says, status, variable, with,
};
use crate::controllers::agent::tests::bench::{Bench, owns};

/// Writes of the status of that Agent.
fn statuses(ops: &[Op], name: &str) -> usize {
    let is = |op: &&Op| matches!(op, Op::Status { kind: Kind::KaosAgent, key, .. } if *key.name == *name);
    ops.iter().filter(is).count()
}

fn waiting(bench: &Bench) -> Vec<String> {
    let names = (0..8).map(|number| format!("a{number}"));
    names.filter(|name| condition(bench, Kind::KaosAgent, name, "Reconciling") == "True/RolloutPending").collect()
}

/// Whoever asks why an Agent does not roll reads it on the Agent. It is written once for each that waits, whatever becomes of those that roll.
#[test]
fn ruling_10_who_waits_for_a_turn_says_so_once_and_serves_on() {
    let mut bench = fleet();
    let events = bench.told.len();
    image(&mut bench, "agent:2");
    let ops = converge(&mut bench);
    let wait = waiting(&bench);
    assert_eq!((wait.len(), with(&bench, "agent:2")), (3, 5));
    for name in &wait {
        assert_eq!(statuses(&ops, name), 1, "{name}");
        let all = status(&bench, Kind::KaosAgent, name)["conditions"].as_array().cloned().unwrap();
        let said = all.iter().find(|one| one["type"] == "Reconciling").unwrap();
        let text = said["message"].as_str().unwrap();
        assert!(text.starts_with(&format!("Deployment agent-{name} waits for its turn")), "{text}");
        assert!(says(&bench, Kind::KaosAgent, name).1, "it is as ready as it was");
        assert_eq!(condition(&bench, Kind::KaosAgent, name, "Ready"), "True/DeploymentReady");
    }
    assert_eq!(bench.told.len(), events + 5, "an Event for each that rolls, and none for those that wait");
    let quiet = |ops: &[Op]| wait.iter().all(|name| statuses(ops, name) == 0);
    // Two fail, so that nobody goes on; and another one leads, which does not know at first who rolls.
    fail(&mut bench, 0..2);
    let ops = converge(&mut bench);
    assert!(quiet(&ops), "{ops:#?}");
    bench.cluster.forget();
    let ops = converge(&mut bench);
    assert!(quiet(&ops), "{ops:#?}");
    bench.cluster.memory.surveyed = true;
    let ops = converge(&mut bench);
    assert!(quiet(&ops), "{ops:#?}");
    assert_eq!(waiting(&bench), wait);
    for _ in 0..2 {
        come_up(&mut bench, 0..8);
        converge(&mut bench);
    }
    assert_eq!((waiting(&bench).len(), with(&bench, "agent:2")), (0, 8));
    assert_eq!(condition(&bench, Kind::KaosAgent, &wait[0], "Reconciling"), "");
}

/// A process that has just begun does not say of all that they wait: most may roll a moment later.
#[test]
fn ruling_10_nobody_says_that_it_waits_before_it_is_known_who_rolls() {
    let mut bench = fleet();
    bench.cluster.forget();
    image(&mut bench, "agent:2");
    let ops = converge(&mut bench);
    assert_eq!((ops, waiting(&bench).len()), (Vec::new(), 0));
    bench.cluster.memory.surveyed = true;
    converge(&mut bench);
    assert_eq!(waiting(&bench).len(), 3);
}

/// The mark of a turn stays on a Deployment for long. What rolls it afterwards, a Secret that has changed or a restart by hand, is its user's.
#[test]
fn ruling_10_what_rolls_after_its_turn_is_over_takes_no_place_and_halts_nobody() {
    let mut bench = fleet();
    image(&mut bench, "agent:2");
    for _ in 0..3 {
        converge(&mut bench);
        come_up(&mut bench, 0..8);
    }
    converge(&mut bench);
    assert_eq!(with(&bench, "agent:2"), 8);
    let restarted = json!({"metadata": {"annotations": {"kubectl.kubernetes.io/restartedAt": "now"}}});
    for number in 0..6 {
        bench.edit(Kind::Deployment, &format!("agent-a{number}"), json!({"spec": {"template": restarted}}));
    }
    fail(&mut bench, 0..3);
    converge(&mut bench);
    let taken = |bench: &Bench| (bench.cluster.memory.rolling(), bench.cluster.memory.failed());
    assert_eq!(taken(&bench), (0, 0));
    another_leads(&mut bench);
    assert_eq!(taken(&bench), (0, 0), "nor for whoever leads next");
}

/// Whether the configuration of a proxy sends traces, and whether its template has the variables for that.
fn traced(bench: &Bench, name: &str) -> (bool, bool) {
    let map = bench.object(Kind::ConfigMap, &format!("litellm-config-{name}"));
    let text = map["data"]["config.yaml"].as_str().unwrap_or_default();
    let variable = variable(bench, &format!("modelapi-{name}"), "OTEL_SERVICE_NAME");
    (text.contains("success_callback"), variable.is_some())
}

/// The place of the first apply of that object.
fn applied(ops: &[Op], kind: Kind, name: &str) -> Option<usize> {
    ops.iter().position(|op| matches!(op, Op::Own { kind: its, key, .. } if *its == kind && *key.name == *name))
}

/// The kubelet renews what a running Pod mounts: a container that is started again before its turn would read a configuration of which its variables
/// know nothing.
#[test]
fn ruling_10_the_configuration_of_a_proxy_takes_its_turn_with_the_template() {
    let mut bench = bench(IMAGES);
    let names: Vec<String> = (0..8).map(|number| format!("p{number}")).collect();
    let come_up = |bench: &mut Bench| names.iter().for_each(|name| bench.rolled_out(&format!("modelapi-{name}")));
    for name in &names {
        made(&mut bench, Kind::ModelApi, name, json!({"mode": "Proxy", "proxyConfig": {"models": ["*"]}}));
    }
    converge(&mut bench);
    come_up(&mut bench);
    converge(&mut bench);
    assert!(names.iter().all(|name| traced(&bench, name) == (false, false)));
    bench.cluster.configure(&format!("{IMAGES}kaos: {{telemetry: {{enabled: true, endpoint: 'http://otel:4317'}}}}\n"));
    let ops = converge(&mut bench);
    let (rolls, waits): (Vec<&String>, Vec<&String>) = names.iter().partition(|name| traced(&bench, name).1);
    assert_eq!((rolls.len(), waits.len()), (5, 3));
    for name in rolls {
        assert_eq!(traced(&bench, name), (true, true), "{name}");
        let map = applied(&ops, Kind::ConfigMap, &format!("litellm-config-{name}"));
        let deployment = applied(&ops, Kind::Deployment, &format!("modelapi-{name}"));
        assert!(map.is_some() && map < deployment, "what Pods mount is there before them: {name}");
    }
    for name in &waits {
        assert_eq!(traced(&bench, name), (false, false), "{name}");
        assert_eq!(condition(&bench, Kind::ModelApi, name, "Reconciling"), "True/RolloutPending", "{name}");
    }
    assert_eq!(converge(&mut bench), [], "nothing of it is tried meanwhile");
    // What others have changed or taken away is put back at once, as it is wanted now.
    bench.edit(Kind::ConfigMap, &format!("litellm-config-{}", waits[0]), json!({"data": {"config.yaml": "theirs"}}));
    bench.remove(Kind::ConfigMap, &format!("litellm-config-{}", waits[1]));
    assert_eq!(owns(&converge(&mut bench)), [Kind::ConfigMap, Kind::ConfigMap]);
    assert_eq!([0, 1].map(|at| traced(&bench, waits[at])), [(true, false); 2]);
    // A change of its user waits for nobody.
    bench.edit(Kind::ModelApi, waits[2], json!({"spec": {"proxyConfig": {"models": ["x"]}}}));
    assert_eq!(owns(&converge(&mut bench)), [Kind::ConfigMap, Kind::Deployment]);
    assert_eq!(traced(&bench, waits[2]), (true, true));
    come_up(&mut bench);
    converge(&mut bench);
    assert!(names.iter().all(|name| traced(&bench, name) == (true, true)), "nothing waits for ever");
}

/// Deleted and made again at once, an object comes before the garbage collector has taken what the one before had.
#[test]
fn cases_88_and_134_what_an_object_of_before_left_is_waited_for_and_is_no_conflict() {
    let mut bench = running();
    let owner = |kind: &str, uid: &str| {
        let api = "kaos.tools/v1alpha1";
        let owner = json!({"apiVersion": api, "kind": kind, "name": "z", "controller": true, "uid": uid});
        json!({"metadata": {"labels": {"app": "agent", "agent": "z"}, "ownerReferences": [owner]}})
    };
    for kind in [Kind::Deployment, Kind::Service] {
        bench.edit(kind, "agent-z", owner("Agent", "before"));
    }
    agent(&mut bench, "z", json!({}));
    assert_eq!(owns(&converge(&mut bench)), [], "it is left alone");
    let (phase, _, message) = says(&bench, Kind::KaosAgent, "z");
    assert_eq!(phase, "Pending", "{message}");
    assert!(message.starts_with("Deployment agent-z of before is being deleted"), "{message}");
    let conflicts = |bench: &Bench| bench.reasons().contains(&"NameConflict");
    assert!(!conflicts(&bench), "{:?}", bench.told);
    for kind in [Kind::Deployment, Kind::Service] {
        bench.remove(kind, "agent-z");
        let touched = bench.cluster.touched(AGENT_ROW, kind, &Key::new(TEAM, "agent-z"));
        assert_eq!(touched, [Key::new(TEAM, "z")]);
    }
    assert_eq!(owns(&converge(&mut bench)), [Kind::Service, Kind::Deployment]);
    // What another kind's object has is no such thing.
    bench.edit(Kind::Deployment, "agent-y", owner("ModelAPI", "before"));
    agent(&mut bench, "y", json!({}));
    converge(&mut bench);
    assert_eq!(condition(&bench, Kind::KaosAgent, "y", "Ready"), "False/NameConflict");
}
