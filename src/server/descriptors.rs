//! How many files and sockets the process may have open.
//!
//! Container runtimes start processes with a soft limit of 1,024 for programs that use `select`; those that do not are
//! expected to raise it to the hard limit themselves, as Go's runtime does.

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// Raises the soft limit to the hard one and returns what is allowed now. A refusal leaves the soft limit as it is.
pub fn raise() -> u64 {
    let limit = getrlimit(Resource::Nofile);
    match setrlimit(Resource::Nofile, Rlimit { current: limit.maximum, ..limit }) {
        Ok(()) => limit.maximum.unwrap_or(u64::MAX),
        Err(_) => limit.current.unwrap_or(u64::MAX),
    }
}
