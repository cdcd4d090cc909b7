//! What a process has used: CPU time and memory, from /proc.

use std::time::Duration;

use anyhow::{Context as _, Result};

/// CPU time of all threads of process `id` that are alive, user and system, in nanoseconds' resolution.
///
/// # Errors
/// When the process is gone, or the machine has no `/proc/*/schedstat`.
pub fn used(id: i32) -> Result<Duration> {
    let mut total = 0;
    for thread in std::fs::read_dir(format!("/proc/{id}/task")).with_context(|| format!("process {id}"))? {
        // A thread may end between the listing and the reading; what measures here keeps its threads.
        let Ok(text) = std::fs::read_to_string(thread?.path().join("schedstat")) else { continue };
        total += nanoseconds(&text)?;
    }
    Ok(Duration::from_nanos(total))
}

/// CPU time of the thread that asks, user and system, in nanoseconds' resolution.
///
/// # Errors
/// When the machine has no `/proc/thread-self/schedstat`.
pub fn of_this_thread() -> Result<Duration> {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").context("/proc/thread-self/schedstat")?;
    Ok(Duration::from_nanos(nanoseconds(&text)?))
}

fn nanoseconds(schedstat: &str) -> Result<u64> {
    let first = schedstat.split_whitespace().next().context("schedstat is empty")?;
    first.parse().context("schedstat")
}

/// Memory of a process, in bytes.
#[derive(Debug, Clone, Copy)]
pub struct Resident {
    /// All of it.
    pub total: u64,
    /// What is code and other pages of files, which replicas on one node share.
    pub files: u64,
}

/// Resident memory of process `id`.
///
/// # Errors
/// When the process is gone.
pub fn resident(id: i32) -> Result<Resident> {
    let status = std::fs::read_to_string(format!("/proc/{id}/status")).with_context(|| format!("process {id}"))?;
    let bytes = |name: &str| {
        let line = status.lines().find_map(|line| line.strip_prefix(name)).with_context(|| name.to_owned())?;
        let kib: u64 = line.trim().trim_end_matches("kB").trim().parse().with_context(|| name.to_owned())?;
        anyhow::Ok(kib * 1024)
    };
    Ok(Resident { total: bytes("VmRSS:")?, files: bytes("RssFile:")? })
}
