//! Comma lists of ports in annotations.
//!
//! Any text goes in; ports in order of first occurrence come out, and the entries that are none.

use std::collections::BTreeSet;

/// A parsed list.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PortList {
    /// In order of first occurrence, each once.
    pub ports: Vec<u16>,
    /// Entries that are no port, as written.
    pub dropped: Vec<String>,
}

/// How many dropped entries are shown, and how much of each.
const SHOWN: usize = 5;
const SHOWN_CHARS: usize = 20;

impl PortList {
    /// The dropped entries, for people: the first few, each cut.
    #[must_use]
    pub fn dropped_text(&self) -> String {
        let mut shown: Vec<String> = self
            .dropped
            .iter()
            .take(SHOWN)
            .map(|entry| format!("\"{}\"", entry.chars().take(SHOWN_CHARS).collect::<String>()))
            .collect();
        if self.dropped.len() > SHOWN {
            shown.push(format!("{} more", self.dropped.len() - SHOWN));
        }
        shown.join(", ")
    }
}

/// Splits on commas, trims, drops empty entries silently and what is not in 1…65535 visibly, normalises, removes
/// duplicates.
#[must_use]
pub fn parse(text: &str) -> PortList {
    let mut list = PortList::default();
    let mut seen = BTreeSet::new();
    for entry in text.split(',').map(str::trim).filter(|entry| !entry.is_empty()) {
        match entry.parse::<i64>().ok().and_then(|number| u16::try_from(number).ok()).filter(|port| *port > 0) {
            Some(port) if seen.insert(port) => list.ports.push(port),
            Some(_) => {}
            None => list.dropped.push(entry.to_owned()),
        }
    }
    list
}

/// The list as the redirection script reads it.
#[must_use]
pub fn join(ports: &[u16]) -> String {
    ports.iter().map(u16::to_string).collect::<Vec<_>>().join(",")
}
