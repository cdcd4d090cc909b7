//! What the API server was asked on behalf of plans, and answered; pure.
//!
//! In: what Secrets hold, by the names of their keys, and specs of Deployments, each with the time of the answer. Out: the same, with its
//! age. Promises: bounded, whatever is asked; how old is too old is judged by whoever reads the fact.

use std::collections::{BTreeSet, HashMap};
use std::time::Duration;

use crate::store::Key;

/// What a Secret holds, by the names of its keys.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SecretFact {
    /// There is none of that name.
    Absent,
    /// It may not be read.
    Forbidden,
    /// It is there.
    Is(SecretSeen),
}

/// What is known of a Secret.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct SecretSeen {
    /// Its type.
    pub type_: String,
    /// The names of its keys.
    pub keys: BTreeSet<String>,
    /// Annotation `agent.kagenti.dev/git-hosts`.
    pub hosts: Option<String>,
    /// Annotation `agent.kagenti.dev/registry-hosts`.
    pub registries: Option<String>,
    /// Annotation `agent.kagenti.dev/usable-by`.
    pub usable_by: Option<String>,
    /// The uids of its owners.
    pub owners: BTreeSet<String>,
}

/// What was read of a Deployment. Its texts may be secrets: they are not printed.
#[derive(Clone, PartialEq, Eq)]
pub struct TemplateFact {
    /// `metadata.uid`.
    pub uid: String,
    /// `metadata.generation`.
    pub generation: i64,
    /// `spec`, as JSON text; `None` of one that is larger than [`LARGEST`].
    pub spec: Option<Box<str>>,
}

impl std::fmt::Debug for TemplateFact {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let size = self.spec.as_ref().map(|spec| spec.len());
        let mut told = formatter.debug_struct("TemplateFact");
        told.field("uid", &self.uid).field("generation", &self.generation).field("bytes", &size).finish()
    }
}

/// Bytes of a Deployment's spec that is read, at most.
pub const LARGEST: usize = 128 << 10;
/// Bytes of specs that are remembered, in all.
const SPECS: usize = 8 << 20;
/// How long a spec is remembered: the plan that asked for it comes a moment later, and keeps what it made of it.
const READ: Duration = Duration::from_secs(30);

/// Secrets that are remembered.
const SECRETS: usize = 4096;

/// All answers.
#[derive(Debug, Default)]
pub struct Answers {
    secrets: HashMap<Key, (SecretFact, Duration)>,
    /// Specs of Deployments.
    templates: HashMap<Key, (TemplateFact, Duration)>,
}

impl Answers {
    /// Takes note of what a Secret holds.
    pub fn secret(&mut self, key: Key, fact: SecretFact, now: Duration) {
        if self.secrets.len() >= SECRETS {
            self.secrets.clear();
        }
        self.secrets.insert(key, (fact, now));
    }

    /// What a Secret held, and when it was asked for.
    #[must_use]
    pub fn secret_fact(&self, key: &Key) -> Option<(&SecretFact, Duration)> {
        self.secrets.get(key).map(|(fact, at)| (fact, *at))
    }

    /// Takes note of the spec of a Deployment.
    pub fn template(&mut self, key: Key, fact: TemplateFact, now: Duration) {
        self.templates.retain(|_, (_, at)| now.saturating_sub(*at) < READ);
        let size = |fact: &TemplateFact| fact.spec.as_ref().map_or(0, |spec| spec.len());
        let all: usize = self.templates.values().map(|(fact, _)| size(fact)).sum();
        if all + size(&fact) > SPECS || self.templates.len() >= SECRETS {
            self.templates.clear();
        }
        self.templates.insert(key, (fact, now));
    }

    /// The spec that was read of the Deployment of that uid in that generation.
    #[must_use]
    pub fn template_fact(&self, key: &Key, (uid, generation): (&str, i64)) -> Option<&TemplateFact> {
        let (fact, _) = self.templates.get(key)?;
        (fact.uid == uid && fact.generation == generation).then_some(fact)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn specs_of_deployments_are_bounded_and_of_one_generation() {
        let mut answers = Answers::default();
        let (key, now) = (Key::new("n", "d"), Duration::from_secs(7));
        let fact = |generation| TemplateFact { uid: "u".into(), generation, spec: Some("x".repeat(LARGEST).into()) };
        answers.template(key.clone(), fact(2), now);
        let known = |answers: &Answers, uid: &str, generation| answers.template_fact(&key, (uid, generation)).is_some();
        assert!(known(&answers, "u", 2) && !known(&answers, "u", 3) && !known(&answers, "v", 2));
        for number in 0..200 {
            answers.template(Key::new("n", &number.to_string()), fact(1), now);
        }
        assert!(answers.templates.len() * LARGEST <= SPECS, "{}", answers.templates.len());
        answers.template(key.clone(), fact(2), now + READ);
        assert_eq!(answers.templates.len(), 1, "what is over takes no memory");
    }

    /// Secrets come and go under names of their own for as long as a term lasts.
    #[test]
    fn facts_about_secrets_have_an_age_and_an_end() {
        let mut answers = Answers::default();
        let (a, now) = (Key::new("n", "a"), Duration::from_secs(7));
        answers.secret(a.clone(), SecretFact::Absent, now);
        assert_eq!(answers.secret_fact(&a), Some((&SecretFact::Absent, now)));
        assert_eq!(answers.secret_fact(&Key::new("m", "a")), None);
        for number in 0..2 * SECRETS {
            answers.secret(Key::new("n", &number.to_string()), SecretFact::Forbidden, now);
        }
        assert!(answers.secrets.len() <= SECRETS);
    }
}
