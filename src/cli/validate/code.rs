//! The word at the head of a finding: a reason of the engine, or one of the few that only files can give.
//!
//! docs/reference is made from both tables, so that every word that is printed can be looked up.

use std::fmt;

use serde::{Serialize, Serializer};

use crate::domain::reason::Reason;

macro_rules! of_files {
    ($($name:ident, $sentence:literal;)*) => {
        /// Why a file is at fault where no review would ever see it.
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub enum OfFiles { $(#[doc = $sentence] $name,)* }

        impl OfFiles {
            /// Every one, in documentation order.
            pub const ALL: &'static [OfFiles] = &[$(OfFiles::$name,)*];

            /// The word itself.
            #[must_use]
            pub fn as_str(self) -> &'static str {
                match self { $(OfFiles::$name => stringify!($name),)* }
            }

            /// One sentence for people, without the facts of the single case.
            #[must_use]
            pub fn sentence(self) -> &'static str {
                match self { $(OfFiles::$name => $sentence,)* }
            }
        }
    };
}

of_files! {
    Syntax, "the text is not YAML that the API server's clients read; nothing of the document was judged";
    Key, "a label or annotation that resembles one that Drawbridge reads, or stands where nobody reads it";
    UnknownKind, "the kind, its group or its version resembles one of Drawbridge, or one that makes Pods: no API server knows it, and nothing else was judged";
    Config, "the platform file or the feature gates in the ConfigMap have a fault, or say something without effect";
}

/// What a finding is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Code {
    /// The engine's own word, as the webhook would use it.
    Reason(Reason),
    /// A word of files.
    OfFiles(OfFiles),
}

impl Code {
    /// The word itself.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Code::Reason(reason) => reason.code(),
            Code::OfFiles(word) => word.as_str(),
        }
    }
}

impl From<Reason> for Code {
    fn from(reason: Reason) -> Self {
        Code::Reason(reason)
    }
}

impl From<OfFiles> for Code {
    fn from(word: OfFiles) -> Self {
        Code::OfFiles(word)
    }
}

impl fmt::Display for Code {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl Serialize for Code {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.as_str())
    }
}
