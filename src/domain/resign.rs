//! Why a workload is restarted so that its card is signed anew.

/// Why; the value of annotation `agentcard.kagenti.dev/resign-cause` and of a metric's label.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Cause {
    /// The certificate that signed will count no more.
    LeafExpires,
    /// The authority that vouches for it will count no more.
    AuthorityExpires,
    /// No authority vouches for it any more.
    AuthorityLost,
}

impl Cause {
    const ALL: [Cause; 3] = [Cause::LeafExpires, Cause::AuthorityExpires, Cause::AuthorityLost];

    /// The word.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Cause::LeafExpires => "leaf-expires",
            Cause::AuthorityExpires => "authority-expires",
            Cause::AuthorityLost => "authority-lost",
        }
    }

    /// Of that word.
    #[must_use]
    pub fn named(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|cause| cause.as_str() == word)
    }
}
