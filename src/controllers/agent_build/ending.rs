//! An AgentBuild that is being deleted.
//!
//! What runs is cancelled, run and workspace are deleted, then the finalizer goes. Promise: the deletion never hangs: what
//! fails once is left to the garbage collector, because everything is owned by the build.

use super::clean_up;
use super::face::Face;
use super::follow::{cancel, is_to_be_cancelled};
use super::plan::finalizer;
use crate::controllers::agent_build::memory::{Context, Plan};
use crate::controllers::scaffold::plan::Item;
use crate::store::Kind;
use crate::store::objects::CustomRef;

pub(super) fn plan(cx: &Context<'_>, face: &Face, build: &CustomRef<'_>) -> Plan {
    if !build.seen.carries(face.finalizer) {
        return Plan::nothing();
    }
    let last = finalizer(cx, face, build, false);
    let item = Item { controller: face.controller, key: cx.key.clone() };
    if cx.memory.trouble(&item).is_some() {
        return Plan::of(vec![last]);
    }
    let namespace = &*cx.key.namespace;
    let named = build.seen.status.get("pipelineRunName").and_then(serde_json::Value::as_str).unwrap_or_default();
    let mut ops = Vec::new();
    for run in cx.store.runs_of(namespace, build.uid).filter(|run| !run.seen.deleting) {
        let active = run.seen.completed.is_none() && !run.seen.is_done();
        if active && is_to_be_cancelled(&run) {
            ops.push(cancel(namespace, &run));
        }
        if active || &**run.name == named {
            ops.push(clean_up::delete(Kind::PipelineRun, namespace, run.name, run.uid));
        }
    }
    ops.extend(clean_up::claim_of(cx.store, namespace, face, (build.name, build.uid)));
    ops.push(last);
    Plan::of(ops)
}
