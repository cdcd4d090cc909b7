//! What the controller of the list remembers: when it wrote last; pure.

use std::time::Duration;

use crate::controllers::scaffold::apply::Learned;
use crate::controllers::scaffold::controller::{Controller, Own};
use crate::controllers::scaffold::plan;
use crate::store::Key;

/// The controller of the list of namespaces in which agents are cut off.
#[derive(Debug, Clone, Copy)]
pub struct Armed;

/// What its plans are made from.
pub(super) type Context<'a> = plan::Context<'a, Armed>;

/// What it remembers.
#[derive(Debug, Default)]
pub struct Memory {
    /// When the list was written last.
    pub wrote: Option<Duration>,
}

impl Controller for Armed {
    type Note = ();
    type Memory = Memory;

    fn answered(own: &mut Own<Self>, _: &Key, learned: &Learned, now: Duration) {
        if matches!(learned, Learned::Change(_)) {
            own.memory.wrote = Some(now);
        }
    }
}
