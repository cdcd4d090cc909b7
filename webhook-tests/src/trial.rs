//! How large a trial is: short in `make test`, long in `make test-long`.
//!
//! In: variable `DRAWBRIDGE_LONG`, set or not. Out: one of two sizes. A trial asks the same questions in both; only counts differ.

/// `short`, or `long` where `DRAWBRIDGE_LONG` is set.
#[must_use]
pub fn size(short: usize, long: usize) -> usize {
    if std::env::var_os("DRAWBRIDGE_LONG").is_some() { long } else { short }
}
