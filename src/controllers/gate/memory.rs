//! What the gate's controller remembers: whether the webhook answers; pure.

use std::time::Duration;

use crate::controllers::scaffold::apply::Learned;
use crate::controllers::scaffold::controller::{Controller, Own};
use crate::controllers::scaffold::plan;
use crate::store::Key;

/// The controller of Pods behind the scheduling gate.
#[derive(Debug, Clone, Copy)]
pub struct Gate;

/// What its plans are made from.
pub(super) type Context<'a> = plan::Context<'a, Gate>;

/// What it remembers.
#[derive(Debug, Default)]
pub struct Memory {
    /// When a probe last came back without our gate.
    pub proved: Option<Duration>,
    /// Probes that were answered; the next one goes to another namespace.
    pub probes: usize,
}

impl Controller for Gate {
    type Note = ();
    type Memory = Memory;

    fn answered(own: &mut Own<Self>, _: &Key, learned: &Learned, now: Duration) {
        if let Learned::Back(back) = learned {
            own.memory.proved = back.then_some(now);
            own.memory.probes = own.memory.probes.wrapping_add(1);
        }
    }

    /// Another leader does not begin with the namespace in which a probe was refused last.
    fn next_term(memory: Memory) -> Memory {
        Memory { probes: memory.probes, ..Memory::default() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_probe_that_came_back_proves_that_the_webhook_answers_until_the_term_ends() {
        let (mut own, key) = (Own::<Gate>::default(), Key::new("own", ""));
        for (back, proved) in
            [(true, Some(Duration::from_secs(7))), (false, None), (true, Some(Duration::from_secs(7)))]
        {
            Gate::answered(&mut own, &key, &Learned::Back(back), Duration::from_secs(7));
            assert_eq!(own.memory.proved, proved);
        }
        Gate::answered(&mut own, &key, &Learned::Evicted, Duration::from_secs(9));
        assert_eq!((own.memory.proved, own.memory.probes), (Some(Duration::from_secs(7)), 3));
        own.next_term();
        assert_eq!((own.memory.proved, own.memory.probes), (None, 3), "the next probe goes elsewhere all the same");
    }
}
