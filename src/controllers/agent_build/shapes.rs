//! Which shapes of runs would be taken, as a dry run showed a moment ago; pure.
//!
//! In: what dry-run creates were answered, runs that were made, and what failed. Out: whether a run of some shape need not be tried.
//! Promises: bounded, whatever is asked; a shape counts in its own namespace only, for a short while, and no longer once anything failed
//! there.

use std::collections::HashMap;
use std::time::Duration;

/// Shapes of objects that are remembered.
const SHAPES: usize = 1024;
/// How long it counts that an object of a shape was taken: a flood is spared nearly all of its questions, and who asks
/// alone hears at once when whoever is asked does not answer any more.
const TAKEN: Duration = Duration::from_secs(2);

/// Shapes that were taken.
#[derive(Debug, Default)]
pub struct Shapes {
    /// By namespace and shape, and when.
    taken: HashMap<(String, String), Duration>,
}

impl Shapes {
    /// Takes note that an object of that shape would be taken in a namespace.
    pub fn taken(&mut self, namespace: String, shape: String, now: Duration) {
        self.taken.retain(|_, at| now.saturating_sub(*at) < TAKEN);
        if self.taken.len() < SHAPES {
            self.taken.insert((namespace, shape), now);
        }
    }

    /// Takes note that an object was made in a namespace: who judges them answers, and what was taken there a moment ago
    /// counts from now on.
    pub fn made(&mut self, namespace: &str, now: Duration) {
        for ((known, _), at) in &mut self.taken {
            if known == namespace && now.saturating_sub(*at) < TAKEN {
                *at = now;
            }
        }
    }

    /// Whether objects of that shape were taken in a namespace a short while ago, and nothing has failed there since.
    #[must_use]
    pub fn is_taken(&self, namespace: &str, shape: &str, now: Duration) -> bool {
        let at = self.taken.get(&(namespace.to_owned(), shape.to_owned()));
        at.is_some_and(|at| now.saturating_sub(*at) < TAKEN)
    }

    /// Takes note that something was refused in a namespace, or not answered: that may be so for other objects, whatever
    /// their shape.
    pub fn failed(&mut self, namespace: &str) {
        self.taken.retain(|(known, _), _| known != namespace);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_taken_counts_in_its_namespace_for_a_while_and_until_something_fails_there() {
        let mut shapes = Shapes::default();
        let now = Duration::from_secs(100);
        let taken = |shapes: &mut Shapes| {
            for namespace in ["n", "m"] {
                shapes.taken(namespace.into(), "shape".into(), now);
            }
        };
        taken(&mut shapes);
        let is = |shapes: &Shapes, namespace: &str, at| shapes.is_taken(namespace, "shape", at);
        assert!(is(&shapes, "n", now) && is(&shapes, "n", now + TAKEN / 2));
        assert!(!is(&shapes, "n", now + TAKEN) && !is(&shapes, "other", now));
        assert!(!shapes.is_taken("n", "other", now));
        shapes.made("n", now + TAKEN / 2);
        assert!(is(&shapes, "n", now + TAKEN) && !is(&shapes, "m", now + TAKEN), "whoever made one is answered");
        shapes.made("n", now + 2 * TAKEN);
        assert!(!is(&shapes, "n", now + 2 * TAKEN), "what is over does not come back");
        taken(&mut shapes);
        shapes.failed("n");
        assert!(!is(&shapes, "n", now) && is(&shapes, "m", now));
        for number in 0..2 * SHAPES {
            shapes.taken("n".into(), number.to_string(), now);
        }
        assert_eq!(shapes.taken.len(), SHAPES);
        shapes.taken("n".into(), "shape".into(), now + TAKEN);
        assert_eq!(shapes.taken.len(), 1, "what is over takes no memory");
    }
}
