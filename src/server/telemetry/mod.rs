//! What the process says of itself: log lines and metrics. Labels come from closed sets; names go to the log.

pub mod lines;
pub mod log;
pub mod metrics;
