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
        let first = text.split_whitespace().next().context("schedstat is empty")?;
        total += first.parse::<u64>().context("schedstat")?;
    }
    Ok(Duration::from_nanos(total))
}

/// Resident memory of process `id`, in bytes.
///
/// # Errors
/// When the process is gone.
pub fn resident(id: i32) -> Result<u64> {
    let status = std::fs::read_to_string(format!("/proc/{id}/status")).with_context(|| format!("process {id}"))?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).context("no VmRSS")?;
    let kib: u64 = line.trim().trim_end_matches("kB").trim().parse().context("VmRSS")?;
    Ok(kib * 1024)
}
