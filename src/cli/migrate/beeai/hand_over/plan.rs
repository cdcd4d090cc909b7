//! What is left to do under one name, in order, and what stands in the way; pure.
//!
//! ```text
//! over: old held still ─► new made, held still, with a mark ─► Deployment, Service: new owner ─► old deleted, orphaning ─► new goes on
//! back: new held still ─► old made from the mark, held still ─► Deployment, Service: old owner ─► new deleted, orphaning ─► old goes on
//! ```
//!
//! In: what stands. Out: all steps, each with whether it is done already, and the write of the first that is not. Promises: the plan follows from
//! the objects alone, so that it goes on from wherever it was interrupted; a step that is done is not written again; neither Agent acts while the
//! owner is swapped; each write names the uid, and each swap and deletion the version, of the object that was looked at.

use serde_json::{Value, json};

use super::mark::Mark;
use super::scene::{Scene, group, is_paused, leaves, uid};
use crate::cli::migrate::beeai::{Remark, agent};
use crate::cli::survey::{annotation, controller, text};
use crate::domain::keys;
use crate::store::Kind;

/// Which way.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Direction {
    /// To the Agent of `agent.kagenti.dev`.
    Over,
    /// To the Agent of BeeAI that had it before.
    Back,
}

/// One write.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Action {
    Create { path: String, body: Value },
    Merge { path: String, patch: Value },
    Orphan { path: String, uid: String, version: String },
}

/// One step.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Step {
    pub(super) what: String,
    /// It has been carried out before; else its write, where it is this step's turn.
    pub(super) state: Result<(), Option<Action>>,
}

/// What is left to do under one name.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct Plan {
    /// What stands in the way.
    pub(super) obstacles: Vec<String>,
    pub(super) steps: Vec<Step>,
    /// What means something else under the new Agent.
    pub(super) remarks: Vec<Remark>,
}

impl Plan {
    /// The first write that is not done.
    pub(super) fn next(&self) -> Option<&Action> {
        self.steps.iter().find_map(|step| step.state.as_ref().err())?.as_ref()
    }

    /// Whether nothing is left.
    pub(super) fn is_done(&self) -> bool {
        self.steps.iter().all(|step| step.state.is_ok())
    }
}

impl Direction {
    /// What is left to do.
    pub(super) fn plan(self, scene: &Scene) -> Plan {
        let mut plan = match self {
            Direction::Over => over(scene),
            Direction::Back => back(scene),
        };
        plan.obstacles.extend(scene.refused.iter().cloned());
        plan
    }

    /// Where the Agent is made that takes what runs, and what it is; `None` once it is there.
    pub(super) fn makes(self, scene: &Scene) -> Option<(String, Value)> {
        match (self, &scene.old, &scene.new) {
            (Direction::Over, Some(old), None) => {
                let body = successor(scene, old, &mut Vec::new());
                Some((Kind::Agent.path(&scene.namespace), body?))
            }
            (Direction::Back, None, Some(new)) => Some((scene.kind.path(&scene.namespace), former(scene, new)?)),
            _ => None,
        }
    }
}

/// The Agent that takes over, held still and marked; `None` where there is too much to remember.
fn successor(scene: &Scene, old: &Value, remarks: &mut Vec<Remark>) -> Option<Value> {
    let mut body = agent::of(old, remarks);
    let parts: Vec<_> = scene.parts.iter().filter_map(|(kind, part)| Some((*kind, part.as_ref()?))).collect();
    let annotations = &mut body["metadata"]["annotations"];
    if let Some(annotations) = annotations.as_object_mut() {
        annotations.remove(keys::ANNOTATION_HAND_OVER);
    }
    annotations[keys::ANNOTATION_PAUSED] = "true".into();
    annotations[keys::ANNOTATION_HANDED_OVER] = "1".into();
    annotations[keys::ANNOTATION_HANDED_OVER_FROM] = Mark::of(old, &parts).text()?.into();
    Some(body)
}

/// The Agent that had it before, held still.
fn former(scene: &Scene, new: &Value) -> Option<Value> {
    Some(Mark::on(new)?.agent((&scene.namespace, &scene.name), uid(Some(new))))
}

/// An Agent that may own what runs.
struct Owner<'a> {
    kind: Kind,
    /// Empty while it is not there.
    uid: &'a str,
}

fn over(scene: &Scene) -> Plan {
    let Scene { name, kind, old, new, .. } = scene;
    let mark = scene.mark();
    let mut plan = Plan::default();
    let mut bodies = None;
    let known = mark.as_ref().map_or("", |mark| mark.uid.as_str());
    let from = Owner { kind: *kind, uid: old.as_ref().map_or(known, |old| uid(Some(old))) };
    // An Agent of the name that was not made to take this one's place is somebody else.
    let made = mark.as_ref().is_some_and(|mark| mark.uid == from.uid);
    let to = Owner { kind: Kind::Agent, uid: if made { uid(new.as_ref()) } else { "" } };
    if let Some(old) = old {
        plan.obstacles.extend(holds_old(scene, old, mark.as_ref()));
        bodies = successor(scene, old, &mut plan.remarks);
        if bodies.is_none() && new.is_none() {
            plan.obstacles.push(format!(
                "Agent {name} is too large to be remembered in an annotation, so it could not be given back; apply what drawbridge migrate \
                 beeai prints instead"
            ));
        }
    }
    match (new, &mark) {
        (Some(new), _) if leaves(new) => plan.obstacles.push(leaving(new)),
        (Some(_), Some(mark)) if mark.uid == from.uid => {}
        (Some(new), _) => plan.obstacles.push(format!(
            "Agent {name} of {} exists already, and was not made to take this one's place. What to do: delete it, or give one of the two \
             another name",
            group(new)
        )),
        (None, _) => {}
    }
    let finished = old.is_none() && new.as_ref().is_some_and(|new| !is_paused(new));
    if !finished {
        plan.obstacles.extend(parts_in_the_way(scene, (&from, &to)));
    }
    let group_of_old = kind.group();
    let held = old.as_ref().is_none_or(|old| leaves(old) || is_held(old));
    let hold = old.as_ref().map(|old| {
        let annotations = json!({keys::ANNOTATION_PAUSED: "true", keys::ANNOTATION_HAND_OVER: keys::HAND_OVER_BEGUN});
        annotate(scene, (*kind, old), annotations)
    });
    plan.step(format!("hold Agent {name} of {group_of_old} still"), held, hold);
    let create = bodies.map(|body| Action::Create { path: Kind::Agent.path(&scene.namespace), body });
    plan.step(format!("make Agent {name} of {}, held still", keys::GROUP_AGENT), made, create);
    plan.swaps(scene, (&from, &to), |_| Value::Null);
    plan.step(
        format!("delete Agent {name} of {group_of_old}, and nothing that it made"),
        old.as_ref().is_none_or(leaves),
        old.as_ref().map(|old| orphan(scene, (*kind, old))),
    );
    let goes_on = new.as_ref().map(|new| annotate(scene, (Kind::Agent, new), json!({keys::ANNOTATION_PAUSED: null})));
    plan.step(
        format!("let Agent {name} of {} go on", keys::GROUP_AGENT),
        made && new.as_ref().is_some_and(|new| !is_paused(new)),
        goes_on,
    );
    plan
}

fn back(scene: &Scene) -> Plan {
    let Scene { name, kind, old, new, .. } = scene;
    let mark = scene.mark();
    let mut plan = Plan::default();
    let from = Owner { kind: Kind::Agent, uid: uid(new.as_ref()) };
    let to = Owner { kind: *kind, uid: uid(old.as_ref()) };
    if let Some(new) = new {
        plan.obstacles.extend(changed(scene, new, mark.as_ref()));
    }
    if let Some(old) = old {
        let is_it = match &mark {
            Some(mark) => mark.uid == to.uid || annotation(old, keys::ANNOTATION_HAND_OVER) == Some(from.uid),
            None => true,
        };
        if leaves(old) {
            plan.obstacles.push(leaving(old));
        } else if !is_it {
            plan.obstacles.push(format!(
                "Agent {name} of {} was made since, and is not the one that had the Deployment. What to do: delete it, and try again",
                group(old)
            ));
        }
    }
    plan.obstacles.extend(parts_in_the_way(scene, (&from, &to)));
    let pause = new.as_ref().map(|new| annotate(scene, (Kind::Agent, new), json!({keys::ANNOTATION_PAUSED: "true"})));
    let held = new.as_ref().is_none_or(|new| leaves(new) || is_paused(new));
    plan.step(format!("hold Agent {name} of {} still", keys::GROUP_AGENT), held, pause);
    let body = new.as_ref().and_then(|new| former(scene, new));
    let create = body.map(|body| Action::Create { path: kind.path(&scene.namespace), body });
    plan.step(format!("make Agent {name} of {} as it was, held still", kind.group()), old.is_some(), create);
    plan.swaps(scene, (&from, &to), |part| mark.as_ref().map_or(Value::Null, |mark| mark.label(part)));
    plan.step(
        format!("delete Agent {name} of {}, and nothing that it has", keys::GROUP_AGENT),
        new.as_ref().is_none_or(leaves),
        new.as_ref().map(|new| orphan(scene, (Kind::Agent, new))),
    );
    let goes_on = old.as_ref().map(|old| {
        annotate(scene, (*kind, old), json!({keys::ANNOTATION_PAUSED: null, keys::ANNOTATION_HAND_OVER: null}))
    });
    let free = old.as_ref().is_some_and(|old| !is_held(old));
    plan.step(format!("let Agent {name} of {} go on", kind.group()), free, goes_on);
    plan
}

impl Plan {
    fn step(&mut self, what: String, done: bool, action: Option<Action>) {
        self.steps.push(Step { what, state: if done { Ok(()) } else { Err(action) } });
    }

    /// One swap for each part; `label`: what becomes of the label of BeeAI's group.
    fn swaps(&mut self, scene: &Scene, (from, to): (&Owner<'_>, &Owner<'_>), label: impl Fn(Kind) -> Value) {
        for (part, object) in &scene.parts {
            let name = &scene.name;
            let what = format!(
                "give {} {name} to Agent {name} of {}; its Pods and its selector stay",
                part.as_str(),
                to.kind.group()
            );
            let Some(object) = object else { continue };
            // Without an Agent to give it up it belongs to the other, or to somebody who stands in the way.
            let done = from.uid.is_empty()
                || (!to.uid.is_empty() && uid(controller(object)) == to.uid)
                || owned(object, to.uid);
            self.step(what, done, Some(swap(scene, (*part, object), (from, to), &label(*part))));
        }
    }
}

fn owned(object: &Value, by: &str) -> bool {
    !by.is_empty() && owners(object).iter().any(|owner| owner["uid"] == by)
}

fn owners(object: &Value) -> Vec<Value> {
    object.pointer("/metadata/ownerReferences").and_then(Value::as_array).cloned().unwrap_or_default()
}

/// The owner as the object is now; other owners stay.
fn swap(scene: &Scene, (part, object): (Kind, &Value), (from, to): (&Owner<'_>, &Owner<'_>), label: &Value) -> Action {
    let mut owners = owners(object);
    for owner in owners.iter_mut().filter(|owner| owner["uid"] == from.uid) {
        *owner = json!({
            "apiVersion": to.kind.api_version(), "kind": to.kind.as_str(), "name": scene.name, "uid": to.uid,
            "controller": true, "blockOwnerDeletion": true,
        });
    }
    let metadata = json!({
        "uid": object["metadata"]["uid"], "resourceVersion": object["metadata"]["resourceVersion"], "ownerReferences": owners,
        "labels": {keys::LABEL_BEEAI_GROUP: label},
    });
    Action::Merge { path: path(scene, part), patch: json!({"metadata": metadata}) }
}

fn annotate(scene: &Scene, (kind, object): (Kind, &Value), annotations: Value) -> Action {
    let patch = json!({"metadata": {"uid": uid(Some(object)), "annotations": annotations}});
    Action::Merge { path: path(scene, kind), patch }
}

fn orphan(scene: &Scene, (kind, object): (Kind, &Value)) -> Action {
    let version = text(object, "/metadata/resourceVersion").to_owned();
    Action::Orphan { path: path(scene, kind), uid: uid(Some(object)).to_owned(), version }
}

fn path(scene: &Scene, kind: Kind) -> String {
    format!("{}/{}", kind.path(&scene.namespace), scene.name)
}

/// Whether an Agent of BeeAI is held still by a hand-over.
fn is_held(old: &Value) -> bool {
    is_paused(old) && annotation(old, keys::ANNOTATION_HAND_OVER).is_some()
}

fn leaving(object: &Value) -> String {
    let finalizers = object.pointer("/metadata/finalizers").and_then(Value::as_array).into_iter().flatten();
    let finalizers: Vec<_> = finalizers.filter_map(Value::as_str).collect();
    let holds = if finalizers.is_empty() { String::new() } else { format!("; {} hold it", finalizers.join(", ")) };
    format!(
        "Agent {} of {} is being deleted{holds}. What to do: wait until it is gone, and run this again",
        text(object, "/metadata/name"),
        group(object)
    )
}

/// What about the Agent of BeeAI stands in the way of giving up what it has.
fn holds_old(scene: &Scene, old: &Value, mark: Option<&Mark>) -> Vec<String> {
    let name = &scene.name;
    let begun = mark.is_some_and(|mark| mark.uid == uid(Some(old)));
    let mut found = Vec::new();
    if leaves(old) {
        // What is being deleted after it has given everything up is a step that was carried out.
        if !begun {
            found.push(leaving(old));
        }
        return found;
    }
    match annotation(old, keys::ANNOTATION_HAND_OVER) {
        None if is_paused(old) => found.push(format!(
            "Agent {name} is held still by somebody. What to do: take annotation {} off once that is over",
            keys::ANNOTATION_PAUSED
        )),
        Some(by) if by != keys::HAND_OVER_BEGUN => found.push(format!(
            "Agent {name} is being given back. What to do: drawbridge migrate beeai --hand-over --undo --yes ends that first"
        )),
        _ => {}
    }
    if begun && mark.is_some_and(|mark| mark.spec != old["spec"]) {
        found.push(format!(
            "Agent {name} was changed while it was handed over, and what runs does not know that change. What to do: drawbridge migrate beeai \
             --hand-over --undo --yes --name {name} lets it follow the change; then hand it over again"
        ));
    }
    found.extend(scene.keepers.iter().cloned());
    found
}

/// What keeps the Deployment and the Service from changing hands.
fn parts_in_the_way(scene: &Scene, (from, to): (&Owner<'_>, &Owner<'_>)) -> Vec<String> {
    let mut found = Vec::new();
    for (part, object) in &scene.parts {
        let (part, name) = (part.as_str(), &scene.name);
        let Some(object) = object else {
            found.push(format!(
                "{part} {name} does not exist, so there is nothing to give without a restart. What to do: apply what drawbridge migrate beeai \
                 prints instead"
            ));
            continue;
        };
        let owner = controller(object);
        let of = owner.map_or("", |owner| text(owner, "/uid"));
        if leaves(object) {
            found
                .push(format!("{part} {name} is being deleted. What to do: wait until it is gone, and run this again"));
        } else if of.is_empty() || (of != from.uid && of != to.uid) {
            let whose = owner.map_or_else(
                || "nobody".to_owned(),
                |owner| format!("{} {} of {}", text(owner, "/kind"), text(owner, "/name"), text(owner, "/apiVersion")),
            );
            found.push(format!(
                "{part} {name} belongs to {whose} and not to this Agent; it is left alone. What to do: give one of the two another name"
            ));
        }
    }
    found
}

/// Why what runs is not what it was before the hand-over: then giving it back would restart it.
fn changed(scene: &Scene, new: &Value, mark: Option<&Mark>) -> Vec<String> {
    let name = &scene.name;
    let remedy = "What to do: apply the manifests of BeeAI yourself, which restarts it";
    let Some(mark) = mark else {
        return vec![format!(
            "Agent {name} does not say what had its Deployment before, or not in words that can be read. {remedy}"
        )];
    };
    if leaves(new) {
        return Vec::new();
    }
    let until = annotation(new, keys::ANNOTATION_HANDED_OVER).and_then(|text| text.parse::<i64>().ok());
    let generation = new.pointer("/metadata/generation").and_then(Value::as_i64);
    let mut found = Vec::new();
    if generation.zip(until).is_none_or(|(generation, until)| generation > until) {
        found.push(format!(
            "Agent {name} of {} was changed since the hand-over, and what runs follows it. {remedy}",
            keys::GROUP_AGENT
        ));
    }
    let deployment = scene.parts.iter().find_map(|(kind, part)| part.as_ref().filter(|_| *kind == Kind::Deployment));
    if deployment.is_some_and(|deployment| !mark.is_as_it_was(deployment)) {
        found.push(format!("the Pods of Deployment {name} are made otherwise than at the hand-over. {remedy}"));
    }
    found
}
