//! `status --watch`: the same rows, again whenever one changes.
//!
//! Promise: nothing is asked twice while nothing happens. Changes that come together are judged together; ConfigMaps and ServiceAccounts are
//! read again with every judgement, so that a row never mixes two configurations.

use std::collections::BTreeMap;
use std::collections::HashMap;
use std::time::Duration;

use futures::stream::{StreamExt, select_all};
use kube::ResourceExt;
use kube::api::DynamicObject;
use kube::runtime::watcher::Event;
use serde_json::Value;

use super::row::Row;
use super::{base, collections, keep, print, report};
use crate::cli::cluster::watch::Collection;
use crate::cli::cluster::{Answer, Cluster};
use crate::cli::io::Io;
use crate::cli::{Exit, Format};

/// Changes within this time are judged together.
const TOGETHER: Duration = Duration::from_millis(200);

/// Objects of the followed collections.
#[derive(Default)]
struct Known {
    objects: HashMap<(usize, String, String), Value>,
    /// Collections whose first list is not complete.
    missing: std::collections::BTreeSet<usize>,
}

impl Known {
    fn take(&mut self, number: usize, collection: &Collection, event: Event<DynamicObject>) {
        let key = |object: &DynamicObject| (number, object.namespace().unwrap_or_default(), object.name_any());
        match event {
            Event::Init => self.objects.retain(|(other, ..), _| *other != number),
            Event::InitDone => {
                self.missing.remove(&number);
            }
            Event::Delete(object) => {
                self.objects.remove(&key(&object));
            }
            Event::InitApply(mut object) | Event::Apply(mut object) => {
                object.managed_fields_mut().clear();
                let key = key(&object);
                if let Ok(mut value) = serde_json::to_value(object) {
                    value["apiVersion"] = collection.api_version().into();
                    value["kind"] = collection.kind.into();
                    self.objects.insert(key, value);
                }
            }
        }
    }
}

/// Prints rows until it is interrupted.
pub(super) async fn follow(
    cluster: &Cluster,
    namespace: &str,
    operator: &str,
    (output, io): (Format, &mut Io<'_>),
) -> anyhow::Result<Exit> {
    let mut followed = Vec::new();
    for collection in collections(namespace) {
        // A kind whose CRD is not there now is not followed.
        match cluster.get(&format!("{}?limit=1", collection.path())).await? {
            Answer::Object(_) => followed.push(collection),
            Answer::Absent => {}
            Answer::Refused(code, message) => {
                writeln!(io.err, "note: {} could not be read ({code}: {message})", collection.path())?;
            }
        }
    }
    let streams = followed
        .iter()
        .enumerate()
        .map(|(number, collection)| cluster.follow(collection).map(move |event| (number, event)).boxed());
    let mut events = select_all(streams);
    let mut known = Known { missing: (0..followed.len()).collect(), ..Known::default() };
    let mut shown: BTreeMap<_, Row> = BTreeMap::new();
    if output == Format::Table {
        print::head(io.out, &print::FLOWING)?;
    }
    while let Some((number, event)) = events.next().await {
        known.take(number, &followed[number], event);
        let more = async {
            while let Some((number, event)) = events.next().await {
                known.take(number, &followed[number], event);
            }
        };
        let _ = tokio::time::timeout(TOGETHER, more).await;
        if !known.missing.is_empty() {
            continue;
        }
        let now = judge(cluster, &known, operator).await?;
        changes(&shown, &now, output, io)?;
        shown = now;
    }
    Ok(Exit::Ok)
}

async fn judge(
    cluster: &Cluster,
    known: &Known,
    operator: &str,
) -> anyhow::Result<BTreeMap<(String, String, String), Row>> {
    let mut seen = BTreeMap::new();
    for object in known.objects.values() {
        keep(&mut seen, object.clone());
    }
    let mut notes = Vec::new();
    let world = base(cluster, operator, &mut notes).await?;
    let report = report(cluster, &seen, &world, notes).await?;
    Ok(report.workloads.into_iter().map(|row| (row.key(), row)).collect())
}

fn changes(
    shown: &BTreeMap<(String, String, String), Row>,
    now: &BTreeMap<(String, String, String), Row>,
    output: Format,
    io: &mut Io<'_>,
) -> anyhow::Result<()> {
    let differs = now.iter().filter(|(key, row)| shown.get(*key) != Some(*row));
    let changed = differs.map(|(key, row)| (if shown.contains_key(key) { "changed" } else { "listed" }, row));
    let gone = shown.iter().filter(|(key, _)| !now.contains_key(*key)).map(|(_, row)| ("gone", row));
    for (change, row) in changed.chain(gone) {
        match output {
            Format::Table => print::flowing(io.out, row, change == "gone", io.colour)?,
            Format::Json => writeln!(io.out, "{}", serde_json::to_string(&told(change, row)?)?)?,
            Format::Yaml => write!(io.out, "---\n{}", crate::cli::yaml::emit::document(&told(change, row)?, None))?,
        }
    }
    io.out.flush()?;
    Ok(())
}

fn told(change: &str, row: &Row) -> anyhow::Result<Value> {
    let mut value = serde_json::to_value(row)?;
    value["change"] = change.into();
    Ok(value)
}
