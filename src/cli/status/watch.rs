//! `status --watch`: the same rows, again whenever one changes.
//!
//! Promise: nothing is asked twice while nothing happens. Changes that come together are judged together; ConfigMaps and ServiceAccounts are
//! read again with every judgement of workloads, so that a row never mixes two configurations. The row of a build or of a card is its object's own, so
//! that what happens to it asks for nothing.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::time::Duration;

use futures::FutureExt;
use futures::stream::{StreamExt, select_all};
use kube::ResourceExt;
use kube::api::DynamicObject;
use kube::runtime::watcher::Event;
use serde::Serialize;
use serde_json::Value;

use super::builds::BuildRow;
use super::kaos::{self, KaosRow};
use super::row::Row;
use super::{base, collections, keep, print, report};
use crate::cli::card::row::CardRow;
use crate::cli::cluster::watch::Collection;
use crate::cli::cluster::{Answer, Cluster};
use crate::cli::io::Io;
use crate::cli::scope::{self, Scope};
use crate::cli::survey;
use crate::cli::{Exit, Format};
use crate::store::Kind;

/// Changes within this time are judged together.
const TOGETHER: Duration = Duration::from_millis(200);

/// How often a kind that is not served is asked for again.
const ABSENT: Duration = Duration::from_secs(2);

/// Number of a collection, namespace and name.
type Place = (usize, String, String);

/// What identifies a row: namespace, kind, name.
type Key = (String, String, String);

/// A row of any table.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(untagged)]
enum Shown {
    Workload(Row),
    Build(BuildRow),
    Card(CardRow),
    Kaos(KaosRow),
}

/// Objects of the followed collections.
#[derive(Default)]
struct Known {
    objects: HashMap<Place, Value>,
    /// Collections of which something has changed since the last judgement.
    changed: BTreeSet<usize>,
    /// Lists that are being read: what was known stays until they are complete.
    incoming: HashMap<usize, Vec<(Place, Value)>>,
    /// Collections whose first list is not complete.
    missing: BTreeSet<usize>,
}

impl Known {
    fn take(&mut self, number: usize, collection: &Collection, event: Event<DynamicObject>) {
        let place = |object: &DynamicObject| (number, object.namespace().unwrap_or_default(), object.name_any());
        self.changed.insert(number);
        match event {
            Event::Init => drop(self.incoming.insert(number, Vec::new())),
            Event::InitApply(object) => {
                let entry = place(&object);
                let listed = value(collection, object).map(|value| (entry, value));
                self.incoming.entry(number).or_default().extend(listed);
            }
            Event::InitDone => {
                self.missing.remove(&number);
                self.objects.retain(|(other, ..), _| *other != number);
                self.objects.extend(self.incoming.remove(&number).unwrap_or_default());
            }
            Event::Delete(object) => {
                self.objects.remove(&place(&object));
            }
            Event::Apply(object) => {
                let entry = place(&object);
                self.objects.extend(value(collection, object).map(|value| (entry, value)));
            }
        }
    }
}

/// An object with the type that watches leave out, without what nobody looks at.
fn value(collection: &Collection, mut object: DynamicObject) -> Option<Value> {
    object.managed_fields_mut().clear();
    let mut value = serde_json::to_value(object).ok()?;
    value["apiVersion"] = collection.api_version().into();
    value["kind"] = collection.kind.into();
    Some(value)
}

/// Prints rows until it is interrupted.
pub(super) async fn follow(
    cluster: &Cluster,
    namespace: &str,
    operator: &str,
    (output, io): (Format, &mut Io<'_>),
) -> anyhow::Result<Exit> {
    let mut followed = Vec::new();
    let mut known = Known::default();
    let alone = super::BUILDS
        .into_iter()
        .chain([Kind::AgentCard])
        .chain(kaos::KINDS)
        .map(|kind| survey::collection(kind, namespace));
    for collection in collections(namespace).into_iter().chain(alone) {
        match cluster.get(&one_of(&collection)).await? {
            Answer::Object(_) => {
                known.missing.insert(followed.len());
                followed.push(collection);
            }
            // A kind whose definition may come is not waited for.
            Answer::Absent => followed.push(collection),
            Answer::Refused(code, message) => {
                writeln!(io.err, "note: {} could not be read ({code}: {message})", collection.path())?;
            }
        }
    }
    let streams = followed.iter().enumerate().map(|(number, collection)| {
        let is_there = known.missing.contains(&number);
        let comes = async move {
            if !is_there {
                appears(cluster, collection).await;
            }
        };
        comes.into_stream().flat_map(|()| cluster.follow(collection)).map(move |event| (number, event)).boxed()
    });
    let mut events = select_all(streams);
    let mut shown: BTreeMap<Key, Shown> = BTreeMap::new();
    let mut workloads = BTreeMap::new();
    let mut scope = scope::read(cluster, operator).await?;
    let mut flow = print::Flow::new(io.colour);
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
        let is_alone = |number: &usize| stands_alone(followed[*number].kind);
        if !std::mem::take(&mut known.changed).iter().all(is_alone) {
            (workloads, scope) = judge(cluster, &known, operator).await?;
        }
        let mut now = workloads.clone();
        now.extend(builds(&known, &scope));
        now.extend(cards(&known));
        now.extend(of_kaos(&known, &scope));
        changes(&shown, &now, (output, &mut flow), io)?;
        shown = now;
    }
    Ok(Exit::Ok)
}

/// The shortest question about a collection.
fn one_of(collection: &Collection) -> String {
    format!("{}?limit=1", collection.path())
}

/// Waits until the API server serves a kind.
async fn appears(cluster: &Cluster, collection: &Collection) {
    while !matches!(cluster.get(&one_of(collection)).await, Ok(Answer::Object(_))) {
        tokio::time::sleep(ABSENT).await;
    }
}

/// The rows of the workloads, and which namespaces were watched then.
async fn judge(cluster: &Cluster, known: &Known, operator: &str) -> anyhow::Result<(BTreeMap<Key, Shown>, Scope)> {
    let mut seen = BTreeMap::new();
    for object in known.objects.values().filter(|object| !object["kind"].as_str().is_some_and(stands_alone)) {
        keep(&mut seen, object.clone());
    }
    let mut notes = Vec::new();
    let base = base(cluster, operator, &mut notes).await?;
    let report = report(cluster, &seen, &base, notes).await?;
    Ok((report.workloads.into_iter().map(|row| (row.key(), Shown::Workload(row))).collect(), base.scope))
}

/// Kinds whose rows are their objects' own.
fn stands_alone(kind: &str) -> bool {
    let alone = [Kind::AgentBuild, Kind::AgentCard].into_iter().chain(kaos::KINDS);
    alone.into_iter().any(|one| one.as_str() == kind)
}

fn of_kind(known: &Known, kind: Kind) -> impl Iterator<Item = &Value> {
    known.objects.values().filter(move |object| object["kind"] == kind.as_str())
}

/// The rows of the builds.
fn builds(known: &Known, scope: &Scope) -> impl Iterator<Item = (Key, Shown)> {
    let rows = of_kind(known, Kind::AgentBuild).map(|object| BuildRow::of(object, scope));
    rows.map(|row| ((row.namespace.clone(), row.kind.to_owned(), row.name.clone()), Shown::Build(row)))
}

/// The rows of the cards.
fn cards(known: &Known) -> impl Iterator<Item = (Key, Shown)> {
    let rows = of_kind(known, Kind::AgentCard).map(CardRow::of);
    rows.map(|row| ((row.namespace.clone(), row.kind.to_owned(), row.name.clone()), Shown::Card(row)))
}

/// The rows of KAOS: who waits for whom is a matter of all of them.
fn of_kaos(known: &Known, scope: &Scope) -> impl Iterator<Item = (Key, Shown)> {
    let of = |kind: Kind| of_kind(known, kind).map(move |object| (kind, object));
    let objects: Vec<_> = kaos::KINDS.into_iter().flat_map(of).collect();
    let rows = kaos::rows(&objects, scope).into_iter();
    rows.map(|row| ((row.namespace.clone(), row.kind.to_owned(), row.name.clone()), Shown::Kaos(row)))
}

fn changes(
    shown: &BTreeMap<Key, Shown>,
    now: &BTreeMap<Key, Shown>,
    (output, flow): (Format, &mut print::Flow),
    io: &mut Io<'_>,
) -> anyhow::Result<()> {
    let differs = now.iter().filter(|(key, row)| shown.get(*key) != Some(*row));
    let changed = differs.map(|(key, row)| (if shown.contains_key(key) { "changed" } else { "listed" }, row));
    let gone = shown.iter().filter(|(key, _)| !now.contains_key(*key)).map(|(_, row)| ("gone", row));
    if output == Format::Table {
        let lines: Vec<_> = changed.chain(gone).map(|(change, row)| line(row, change == "gone")).collect();
        flow.rows(io.out, &lines)?;
        io.out.flush()?;
        return Ok(());
    }
    for (change, row) in changed.chain(gone) {
        match (output, row) {
            (Format::Table | Format::Json, row) => writeln!(io.out, "{}", serde_json::to_string(&told(change, row)?)?)?,
            (Format::Yaml, row) => {
                write!(io.out, "---\n{}", crate::cli::yaml::emit::document(&told(change, row)?, None))?;
            }
        }
    }
    io.out.flush()?;
    Ok(())
}

/// The cells of a row, whether it is gone, and whether it needs a person.
fn line(row: &Shown, gone: bool) -> ([String; 10], bool, bool) {
    match row {
        Shown::Workload(row) => (print::cells(row), gone, row.attention),
        Shown::Build(row) => (super::builds::beside_workloads(row), gone, row.attention),
        Shown::Kaos(row) => (kaos::beside_workloads(row), gone, row.attention),
        Shown::Card(row) => (row.beside_workloads(), gone, row.attention),
    }
}

fn told(change: &str, row: &Shown) -> anyhow::Result<Value> {
    let mut value = serde_json::to_value(row)?;
    value["change"] = change.into();
    Ok(value)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn object(name: &str) -> DynamicObject {
        serde_json::from_value(json!({"metadata": {"name": name, "namespace": "team"}})).unwrap()
    }

    #[test]
    fn a_list_that_begins_anew_takes_nothing_away_before_it_is_complete() {
        let collection = &collections("team")[0];
        let mut known = Known { missing: [0].into(), ..Known::default() };
        let names = |known: &Known| known.objects.keys().map(|(_, _, name)| name.clone()).collect::<Vec<_>>();
        for event in [Event::Init, Event::InitApply(object("a")), Event::InitDone] {
            assert_eq!(names(&known), Vec::<String>::new());
            known.take(0, collection, event);
        }
        assert_eq!((names(&known), known.missing.len()), (vec!["a".to_owned()], 0));
        // A definition that went away: lists begin, and none is ever complete.
        for event in [Event::Init, Event::Init, Event::InitApply(object("b"))] {
            known.take(0, collection, event);
            assert_eq!((names(&known), known.missing.len()), (vec!["a".to_owned()], 0));
        }
        known.take(0, collection, Event::InitDone);
        assert_eq!(names(&known), ["b"]);
        known.take(0, collection, Event::Delete(object("b")));
        assert!(known.objects.is_empty());
    }

    #[test]
    fn builds_are_told_beside_workloads_of_their_name_and_in_the_same_columns() {
        let collection = survey::collection(Kind::AgentBuild, "team");
        let mut known = Known::default();
        let mut building = object("weather");
        building.data =
            json!({"spec": {"mode": "dev"}, "status": {"phase": "Building", "message": "Tasks Completed: 1"}});
        known.take(0, &collection, Event::Apply(building));
        let now: BTreeMap<Key, Shown> = builds(&known, &Scope::default()).collect();
        let (key, row) = now.first_key_value().unwrap();
        assert_eq!(key, &("team".to_owned(), "AgentBuild".to_owned(), "weather".to_owned()));
        let mut out = Vec::new();
        let mut flow = print::Flow::new(false);
        flow.rows(&mut out, &[line(row, false)]).unwrap();
        flow.rows(&mut out, &[line(row, true)]).unwrap();
        let text = String::from_utf8(out).unwrap();
        let lines: Vec<&str> = text.lines().skip(1).collect();
        let words: Vec<&str> = lines[0].split_whitespace().collect();
        assert_eq!(
            words,
            ["team", "AgentBuild/weather", "-", "dev", "-", "-", "-", "-", "Building", "Tasks", "Completed:", "1"]
        );
        assert!(lines[1].ends_with("(gone)"), "{text}");
        assert_eq!(told("listed", &now[key]).unwrap()["kind"], "AgentBuild");
    }

    #[test]
    fn cards_are_told_beside_workloads_and_whenever_what_is_known_of_them_changes() {
        let collection = survey::collection(Kind::AgentCard, "team");
        let mut known = Known::default();
        let mut shown = BTreeMap::new();
        let mut lines = Vec::new();
        let mut flow = print::Flow::new(false);
        for (verified, reason) in
            [("False", "SignatureInvalid"), ("False", "SignatureInvalid"), ("True", "SignatureVerified")]
        {
            let mut card = object("weather");
            card.data = json!({
                "spec": {"targetRef": {"kind": "Deployment", "name": "weather"}},
                "status": {"protocol": "a2a", "conditions": [{"type": "Verified", "status": verified, "reason": reason}]},
            });
            known.take(0, &collection, Event::Apply(card));
            let now: BTreeMap<Key, Shown> = cards(&known).collect();
            let (mut out, mut err) = (Vec::new(), Vec::new());
            let mut io = Io { stdin: &mut std::io::empty(), out: &mut out, err: &mut err, colour: false };
            changes(&shown, &now, (Format::Table, &mut flow), &mut io).unwrap();
            shown = now;
            let text = String::from_utf8(out).unwrap();
            let rows = text.lines().filter(|line| !line.starts_with("NAMESPACE"));
            lines.push(
                rows.map(|line| line.split_whitespace().collect::<Vec<_>>().join(" ")).collect::<Vec<_>>().join("\n"),
            );
        }
        let line = |told: &str| format!("team AgentCard/weather - a2a Deployment/weather - - - - {told}");
        assert_eq!(lines, [line("SignatureInvalid"), String::new(), line("verified")]);
    }

    #[test]
    fn objects_of_kaos_are_told_beside_workloads_and_say_who_waits_for_whom() {
        let mut known = Known::default();
        let mut see = |number: usize, kind: Kind, name: &str, spec: Value, status: Value| {
            let mut made = object(name);
            made.data = json!({"spec": spec, "status": status});
            known.take(number, &survey::collection(kind, "team"), Event::Apply(made));
            of_kaos(&known, &Scope::default()).map(|(_, row)| line(&row, false).0.join(" ")).collect::<Vec<_>>()
        };
        let waiting = json!({"phase": "Waiting", "ready": false, "message": "ModelAPI m not found"});
        let lines = see(0, Kind::KaosAgent, "clerk", json!({"modelAPI": "m", "model": "x"}), waiting);
        assert_eq!(
            lines,
            ["team Agent.kaos.tools/clerk - x of m - - - - Waiting waits for ModelAPI/m (does not exist)"]
        );
        let api = json!({"mode": "Proxy", "proxyConfig": {"models": ["x"]}});
        let ready = json!({"phase": "Ready", "ready": true, "endpoint": "http://m:8000"});
        let lines = see(1, Kind::ModelApi, "m", api, ready);
        assert_eq!(
            lines,
            [
                "team ModelAPI/m - Proxy: x - - - - Ready http://m:8000",
                "team Agent.kaos.tools/clerk - x of m - - - - Waiting ModelAPI m not found",
            ]
        );
        assert!(kaos::KINDS.iter().all(|kind| stands_alone(kind.as_str())), "what happens to them asks for nothing");
    }

    #[test]
    fn answers_15_columns_stay_where_they_are_until_a_row_needs_more_room() {
        let cells = |name: &str| {
            let mut line = ["-"; 10].map(str::to_owned);
            line[1] = format!("Deployment/{name}");
            (line, false, false)
        };
        let mut out = Vec::new();
        let mut flow = print::Flow::new(false);
        let long = "a-name-that-is-longer-than-any-width-that-was-thought-of";
        for rows in [vec![cells("a")], vec![cells("b")], vec![cells(long), cells("c")], vec![cells("d")]] {
            flow.rows(&mut out, &rows).unwrap();
        }
        let text = String::from_utf8(out).unwrap();
        let heads: Vec<usize> =
            text.lines().enumerate().filter(|(_, line)| line.contains("WORKLOAD")).map(|(at, _)| at).collect();
        assert_eq!(heads, [0, 3], "{text}");
        // The third column begins under its word in every row below a head.
        let mut at = 0;
        for line in text.lines() {
            at = line.find("TYPE").unwrap_or(at);
            assert!(line.is_char_boundary(at) && line[..at].ends_with("  "), "{text}");
        }
    }
}
