//! What the log says of a change of configuration on its way through the fleet: that it begins, that it halts, that it goes on, that it
//! is done; pure. The workloads that wait say the same in condition `Ready`, with an Event each.

use super::memory::Memory;

/// How far a change is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) enum Wave {
    /// Nothing is being rolled, and nothing waits.
    #[default]
    Over,
    /// Workloads roll, or wait for their turn.
    Rolls,
    /// So many failed that no more are rolled.
    Halted,
}

/// How many failed rollouts halt a wave.
const FAILURES: usize = 2;

impl Wave {
    /// As that memory has it.
    fn of(memory: &Memory) -> Self {
        match (memory.failed(), memory.waiting(), memory.rolling()) {
            (FAILURES.., 1.., _) => Wave::Halted,
            (_, 0, 0) => Wave::Over,
            _ => Wave::Rolls,
        }
    }

    /// The line for the log when it is another than before: whether it is a warning, and the words.
    pub(super) fn step(&mut self, memory: &Memory) -> Option<(bool, String)> {
        let now = Wave::of(memory);
        let before = std::mem::replace(self, now);
        let (rolling, waiting, failed) = (memory.rolling(), memory.waiting(), memory.failed());
        let counts = format!("{rolling} workloads roll now, {waiting} wait for their turn");
        match (before, now) {
            (before, now) if before == now => None,
            (Wave::Over, Wave::Rolls) => Some((false, format!("a change of configuration is being rolled: {counts}"))),
            (Wave::Halted, Wave::Rolls) => Some((false, format!("the wave goes on: {counts}"))),
            (_, Wave::Halted) => Some((
                true,
                format!(
                    "the wave halts: {failed} workloads that were rolled to the new configuration did not become available, and {waiting} wait. \
                     Look at them with drawbridge status -A; it goes on once fewer than {FAILURES} fail, or with the next change"
                ),
            )),
            (_, Wave::Over) => Some((false, "the wave is over: nothing rolls and nothing waits".to_owned())),
            (Wave::Rolls, Wave::Rolls) => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::controllers::scaffold::memory::Rollout;
    use crate::controllers::scaffold::plan::{Item, Name};
    use crate::store::Key;

    #[test]
    fn answers_08_a_wave_is_told_when_it_begins_halts_goes_on_and_ends() {
        let mut memory = Memory::default();
        let mut wave = Wave::default();
        let item = |name: &str| Item { controller: Name::new("rolls"), key: Key::new("team", name) };
        let mut note = |memory: &mut Memory, name: &str, rollout: Rollout| {
            memory.takes_part(&item(name), rollout);
            wave.step(memory)
        };
        let rolls = || Rollout { rolling: true, ..Rollout::default() };
        let (is_warning, begun) = note(&mut memory, "a", rolls()).unwrap();
        assert!(!is_warning && begun.contains("1 workloads roll now"), "{begun}");
        assert_eq!(note(&mut memory, "b", rolls()), None, "once");
        assert_eq!(note(&mut memory, "c", Rollout { waits: true, ..Rollout::default() }), None);
        let failed = || Rollout { failed: true, ..Rollout::default() };
        assert_eq!(note(&mut memory, "a", failed()), None);
        let (is_warning, halted) = note(&mut memory, "b", failed()).unwrap();
        assert!(is_warning && halted.contains("the wave halts: 2 workloads"), "{halted}");
        let (_, on) = note(&mut memory, "a", Rollout::default()).unwrap();
        assert!(on.starts_with("the wave goes on"), "{on}");
        note(&mut memory, "b", Rollout::default());
        let (_, over) = note(&mut memory, "c", Rollout::default()).unwrap();
        assert!(over.starts_with("the wave is over"), "{over}");
    }
}
