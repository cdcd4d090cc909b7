//! What a cluster does to those who only watch it: nothing at all for a long time, and going back to an earlier state.

#![allow(clippy::print_stdout, reason = "how long things took is the result, shown with --nocapture")]

mod backup;
