//! What an object has to pass before it is written, where the store keeps less of it than that takes; pure.
//!
//! In: the object as the API server has it at that moment. Out: nothing, or why it is not written. Promises: nothing of what was read is kept; what is
//! written on condition is told by what is written alone, so that a write that was refused is recognised when it is planned again; what is remembered of
//! such a write keeps no settings alive by which it was planned.

use std::fmt;
use std::sync::Arc;

use serde_json::Value;

use crate::domain::reason::Reason;

/// Why an object is not written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Objection {
    /// The code.
    pub reason: Reason,
    /// What may be logged.
    pub brief: String,
    /// The facts, and what to do, without a full stop.
    pub message: String,
}

/// Looks at a whole object.
type Look = dyn Fn(&Value) -> Option<Objection> + Send + Sync;

/// What a whole object has to pass; of a write that is over, that there was something.
#[derive(Clone)]
pub struct Check(Option<Arc<Look>>);

impl Check {
    /// Nothing is written where `look` finds something.
    #[must_use]
    pub fn new(look: impl Fn(&Value) -> Option<Objection> + Send + Sync + 'static) -> Self {
        Self(Some(Arc::new(look)))
    }

    /// Why that object is not written; `None` when it is.
    #[must_use]
    pub fn objection(&self, object: &Value) -> Option<Objection> {
        self.0.as_ref().and_then(|look| look(object))
    }

    /// It is over: what it looked with goes.
    pub fn spend(&mut self) {
        self.0 = None;
    }
}

impl PartialEq for Check {
    fn eq(&self, _: &Self) -> bool {
        true
    }
}

impl fmt::Debug for Check {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("Check")
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use serde_json::json;

    use super::*;
    use crate::controllers::scaffold::memory::Memory;
    use crate::controllers::scaffold::plan::{Item, Name, Op};
    use crate::store::{Key, Kind};

    /// A refusal is remembered for as long as what it is about, and settings come and go.
    #[test]
    fn a_write_that_failed_is_recognised_and_holds_nothing_that_it_looked_with() {
        let settings = Arc::new(());
        let op = || {
            let held = Arc::clone(&settings);
            let check = Check::new(move |_| {
                assert!(Arc::strong_count(&held) > 0);
                None
            });
            let (key, body) = (Key::new("team", "a"), json!({"metadata": {"name": "a"}}));
            Op::Apply { kind: Kind::Deployment, key, body, seen: 1, check: Some(check) }
        };
        let item = Item { controller: Name::new("writes"), key: Key::new("team", "a") };
        let mut memory = Memory::default();
        memory.failure(&item, Duration::ZERO, (op(), Some(Reason::PortCollision), "why".into()));
        memory.conflict(&item, Duration::ZERO, (op(), "why".into()));
        assert_eq!(Arc::strong_count(&settings), 1);
        let trouble = memory.trouble(&item).unwrap();
        assert_eq!((&trouble.op, trouble.conflicts), (&op(), 1));
    }
}
