//! Reference tables, generated: what docs/reference prints and `validate` checks comes from one place.
//!
//! In: the tables of the code itself (flags, reasons, keys, metrics, platform file). Out: Markdown.

mod gates;
pub mod keys;
pub mod markdown;
pub mod metrics;
