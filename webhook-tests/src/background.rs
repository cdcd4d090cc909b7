//! The runtime of what lives longer than one test: binder, balancers, the start of a shared control plane.
//!
//! Every `#[tokio::test]` has a runtime of its own that ends with the test and takes its tasks and connections with
//! it. What is shared by a whole test binary therefore runs here, on two threads that last as long as the process.

use std::sync::OnceLock;

use anyhow::{Context as _, Result};
use tokio::runtime::{Builder, Runtime};

/// The process-wide background runtime.
pub(crate) fn runtime() -> &'static Runtime {
    static RUNTIME: OnceLock<Runtime> = OnceLock::new();
    RUNTIME.get_or_init(|| {
        Builder::new_multi_thread()
            .worker_threads(2)
            .thread_name("background")
            .enable_all()
            .build()
            .expect("the operating system gives a test process two threads and an event queue")
    })
}

/// Runs `work` on the background runtime and waits for it; connections that it opens outlive the caller's runtime.
pub(crate) async fn run<T, F>(work: F) -> Result<T>
where
    T: Send + 'static,
    F: Future<Output = Result<T>> + Send + 'static,
{
    runtime().spawn(work).await.context("the background task ended without an answer")?
}
