//! Bounds on what a tenant's objects may bring, as far as they are words of the whole house.

/// What people write on one object, or the text of one ConfigMap, that is larger is not read, in bytes.
pub const LARGEST_TEXT: usize = 64 * 1024;

/// The same of the kinds of KAOS: instructions and tools stand in them, and each may fill a variable of an environment.
pub const LARGEST_KAOS: usize = 384 * 1024;

/// Why nothing of an object is read but its marks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Over {
    /// What is written on it is larger than [`LARGEST_TEXT`].
    Size,
    /// Its namespace holds too many of its kind.
    Count,
    /// There is no room for it beside the others.
    Total,
}

impl Over {
    /// Every one.
    pub const ALL: [Over; 3] = [Over::Size, Over::Count, Over::Total];

    /// The rest of a sentence about one object.
    #[must_use]
    pub fn sentence(self) -> &'static str {
        match self {
            Over::Size => "is larger than what is read of one object",
            Over::Count => "is one too many: no more of its kind are read in a namespace",
            Over::Total => {
                "has no room: the objects of its kind, or of all kinds together, fill the memory that is kept for them"
            }
        }
    }

    /// The word of the metric's label.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Over::Size => "size",
            Over::Count => "count",
            Over::Total => "total",
        }
    }
}
