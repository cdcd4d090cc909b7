//! How far the publication of our authorities is, in words; pure.

use std::fmt;

use crate::domain::keys;

/// Whether those who call us trust what we serve.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum Publication {
    /// The configurations have not been read, or nothing is served yet.
    #[default]
    Unknown,
    /// Neither configuration exists: nobody calls us.
    NoConfiguration,
    /// This entry does not trust the certificate that is being served.
    Incomplete {
        /// Kind of the configuration.
        kind: &'static str,
        /// Name of the entry.
        entry: String,
    },
    /// Every entry of every configuration that exists does.
    Published,
    /// The source knows no authority of its certificate (a Secret without `ca.crt`): others keep `caBundle`.
    ByOthers,
}

impl Publication {
    /// Whether nothing is left to publish: every entry trusts what is served, or others see to that.
    #[must_use]
    pub fn is_settled(&self) -> bool {
        matches!(self, Publication::Published | Publication::ByOthers)
    }
}

impl fmt::Display for Publication {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = keys::WEBHOOK_CONFIGURATION;
        match self {
            Publication::Unknown => f.write_str("the webhook configurations have not been read yet"),
            Publication::NoConfiguration => {
                write!(f, "neither MutatingWebhookConfiguration nor ValidatingWebhookConfiguration {name} exists")
            }
            Publication::Incomplete { kind, entry } => {
                write!(f, "entry {entry} of {kind} {name} does not trust the certificate being served")
            }
            Publication::Published => f.write_str("every webhook entry trusts the certificate being served"),
            Publication::ByOthers => f.write_str(
                "the authority of the certificate being served is not known here: whoever provides it keeps caBundle",
            ),
        }
    }
}
