//! The API server in memory and the log of a test, which the tests of watches made: read from there, because a crate's tests are
//! nobody else's to use.

#[path = "../cluster/watch/tests/lines.rs"]
pub(crate) mod lines;
#[path = "../cluster/watch/tests/server.rs"]
pub(crate) mod server;
