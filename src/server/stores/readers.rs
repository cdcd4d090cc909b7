//! Reads the texts of ConfigMaps, two at a time, on threads of their own.
//!
//! In: [`Shared`], and a way to ask for a text that is not at hand. Out: what they say, into [`Shared`]. Promises: nothing is parsed on
//! a runtime worker or under a lock; a text that takes for ever holds up its own namespace and one of two readers; one
//! that cannot be had is asked for again, and one whose reading ends in a panic is not.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use kube::api::ListParams;
use kube::core::ApiResource;
use kube::{Api, Client};
use tokio::task::JoinSet;
use tokio::time::{Instant, timeout};

use super::rebuild::Shared;
use super::texts::{Data, Job, Outcome, read};
use crate::cluster::watch::follow;
use crate::store::decode::Decoded as _;
use crate::store::decode::wire::Raw;
use crate::store::{ConfigMapSeen, Key, Kind, What};

/// Texts that are read at once, in the whole process.
const READERS: usize = 2;
/// Longest wait for a text that is asked for.
const LONGEST: Duration = Duration::from_secs(10);

/// Asks for the present content of one ConfigMap.
pub(super) type Ask = Arc<dyn Fn(Key) -> Pin<Box<dyn Future<Output = Option<ConfigMapSeen>> + Send>> + Send + Sync>;
/// Reads one text.
pub(super) type Parse = Arc<dyn Fn(&Job, &Data) -> Outcome + Send + Sync>;

/// The readers.
pub(super) struct Readers {
    pub(super) shared: Arc<Shared>,
    pub(super) ask: Ask,
    pub(super) parse: Parse,
}

/// A way to ask the API server.
pub(super) fn ask(client: Client, resource: ApiResource) -> Ask {
    Arc::new(move |key| {
        let api = Api::<Raw>::namespaced_with(client.clone(), &key.namespace, &resource);
        Box::pin(async move {
            // A list of one: nobody needs a further right for it.
            let one = ListParams::default().fields(&format!("metadata.name={}", key.name));
            let raw = timeout(LONGEST, follow::objects(api, &one)).await.ok()?.ok()?.pop()?;
            match raw.into_change(Kind::ConfigMap).now.map(|now| now.what.clone())? {
                What::ConfigMap(seen) => Some(seen),
                _ => None,
            }
        })
    })
}

/// The parser.
pub(super) fn parse() -> Parse {
    Arc::new(|job, data| read(&job.key, &job.content, &job.own, data))
}

impl Readers {
    /// Reads for ever.
    pub(super) async fn run(self) {
        let begun = Instant::now();
        let mut running = JoinSet::new();
        loop {
            while running.len() < READERS
                && let Some(job) = self.shared.next_text(begun.elapsed())
            {
                running.spawn(one(job, self.ask.clone(), self.parse.clone()));
            }
            let due = self.shared.text_due().filter(|_| running.len() < READERS);
            let turn = async {
                match due {
                    Some(due) => tokio::time::sleep_until(begun + due).await,
                    None => std::future::pending().await,
                }
            };
            tokio::select! {
                Some(ended) = running.join_next() => {
                    // A task ends by returning: what may panic runs on a thread of its own.
                    if let Ok((job, outcome, spent)) = ended {
                        self.shared.text_read(&job, outcome, (spent, begun.elapsed()));
                    }
                }
                () = self.shared.texts_changed() => {}
                () = turn => {}
            }
        }
    }
}

async fn one(job: Job, ask: Ask, parse: Parse) -> (Arc<Job>, Option<Outcome>, Duration) {
    let job = Arc::new(job);
    let text = match job.text.clone() {
        Some(text) => Some(text),
        None => ask(job.key.clone()).await.filter(|seen| job.content.is(seen)).map(|seen| seen.data),
    };
    let Some(text) = text else { return (job, None, Duration::ZERO) };
    let begun = Instant::now();
    let read = {
        let job = job.clone();
        tokio::task::spawn_blocking(move || parse(&job, &text))
    };
    let outcome = match read.await {
        Ok(outcome) => outcome,
        Err(error) => {
            let (namespace, name) = (&*job.key.namespace, &*job.key.name);
            tracing::error!(namespace, name, %error, "reading a ConfigMap failed; nothing of it is used");
            Outcome::unreadable(&job.content)
        }
    };
    (job, Some(outcome), begun.elapsed())
}
