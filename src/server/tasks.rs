//! Supervision: every long task has a name, and its ending is an event.
//!
//! In: futures that should run until shutdown. Out: [`End`]s, one per task, to be awaited in the main select.
//! Promises: no task dies unseen, neither by error nor by panic; dropping the set aborts what still runs.

use std::collections::HashMap;
use std::fmt::Display;
use std::future::Future;

use tokio::task::{Id, JoinSet};

/// The long tasks of this process.
#[derive(Debug, Default)]
pub struct Tasks {
    set: JoinSet<Option<String>>,
    names: HashMap<Id, &'static str>,
}

/// How a task ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum How {
    /// It returned, as tasks do at shutdown.
    Finished,
    /// It gave up with this error.
    Failed(String),
    /// It panicked.
    Panicked,
}

/// The end of one task.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct End {
    /// As given to [`Tasks::spawn`].
    pub name: &'static str,
    /// How it ended.
    pub how: How,
}

impl Tasks {
    /// None yet.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Runs `task` until it ends.
    pub fn spawn<E: Display>(
        &mut self,
        name: &'static str,
        task: impl Future<Output = Result<(), E>> + Send + 'static,
    ) {
        let handle = self.set.spawn(async move { task.await.err().map(|error| error.to_string()) });
        self.names.insert(handle.id(), name);
    }

    /// The next task that ends; `None` when none is left. Cancel safe.
    pub async fn next_end(&mut self) -> Option<End> {
        let (id, how) = match self.set.join_next_with_id().await? {
            Ok((id, None)) => (id, How::Finished),
            Ok((id, Some(error))) => (id, How::Failed(error)),
            Err(error) => (error.id(), How::Panicked),
        };
        Some(End { name: self.names.remove(&id).unwrap_or("task"), how })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn every_ending_is_reported_with_its_name() {
        let mut tasks = Tasks::new();
        tasks.spawn("fine", async { Ok::<(), String>(()) });
        tasks.spawn("broken", async { Err::<(), _>("no route") });
        tasks.spawn("defect", async {
            assert!(std::hint::black_box(false), "a defect");
            Ok::<(), String>(())
        });
        let mut ends = Vec::new();
        while let Some(end) = tasks.next_end().await {
            ends.push(end);
        }
        ends.sort_by_key(|end| end.name);
        assert_eq!(
            ends,
            [
                End { name: "broken", how: How::Failed("no route".to_owned()) },
                End { name: "defect", how: How::Panicked },
                End { name: "fine", how: How::Finished },
            ]
        );
    }
}
