//! `drawbridge doctor`: is this installation able to do what it promises?
//!
//! In: a cluster. Out: checks in groups, each finding with what to do about it; exit code 1 when there is one. A check is a row of
//! [`GROUPS`]. Nothing is written: Pods are created with `dryRun=All`, rights are asked for with reviews.

mod builds;
mod cards;
mod catalogue;
mod crds;
mod enrolment;
mod gate_left;
mod guards;
pub(in crate::cli) mod install;
mod issuer;
mod kaos;
mod keycloak;
mod leftovers;
pub(in crate::cli) mod policies;
mod predecessor;
mod rights;
mod scope;
mod selectors;
pub(in crate::cli) mod served;
mod surroundings;
pub(in crate::cli) mod trust;
mod webhook;

use serde::Serialize;
use serde_json::Value;

use super::cluster::{self, Answer, Cluster, ClusterArgs};
use super::given;
use super::io::{self, Io, Tone};
use super::render::kinds::Kinds;
use super::render::{FailureMode, Install};
use super::scope as watched_namespaces;
use super::{Exit, Format};
use crate::domain::keys;
use crate::store::Kind;

/// Arguments of `doctor`.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// Namespace in which an enrolled Pod is tried, without being stored; default is the first that is watched, or that of the context.
    #[arg(short, long, value_parser = given::namespace)]
    pub namespace: Option<String>,
    /// Namespace of the operator.
    #[arg(long, value_name = "NAME", default_value = keys::OPERATOR_NAMESPACE, value_parser = given::namespace)]
    pub operator_namespace: String,
    /// Output format.
    #[arg(short, long, value_enum, default_value_t)]
    pub output: Format,
    /// Which cluster.
    #[command(flatten)]
    pub cluster: ClusterArgs,
}

/// How a check ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Status {
    /// As it should be.
    Ok,
    /// Something to act on.
    Finding,
    /// Could not be asked.
    Unknown,
}

/// One check.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Check {
    /// Such as `webhook`.
    pub group: &'static str,
    /// What was asked.
    pub name: String,
    /// How it ended.
    pub status: Status,
    /// What was seen.
    pub seen: String,
    /// What to do about it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub remedy: Option<String>,
}

const SURROUNDINGS: &str = "surroundings";
const ENROLMENT: &str = "enrolment";
const KAOS: &str = "kaos";

/// Whether a group of checks is about kinds that this installation serves. The others are left to another operator (`render --kinds`): its Pods lack
/// nothing of ours, and to stop it, as a finding would say, is the fault.
fn is_about(group: &str, kinds: Kinds) -> bool {
    match group {
        SURROUNDINGS | ENROLMENT => kinds.serves(keys::GROUP_AGENT),
        KAOS => kinds.serves(keys::GROUP_KAOS),
        _ => true,
    }
}

/// What became of reading an object.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Seen {
    /// The object.
    Is(Value),
    /// There is none.
    Absent,
    /// It may not be read, so nothing follows from it; a check that could not be asked says so.
    Hidden,
}

/// What the checks ask, and what they found.
pub(super) struct Visit {
    cluster: Cluster,
    /// Namespace of the operator.
    operator: String,
    /// Namespace in which a Pod is tried.
    namespace: String,
    /// The namespaces that are watched; none means all.
    watched: Vec<String>,
    /// The kinds that are served.
    kinds: Kinds,
    /// What the injecting webhook is registered for.
    mode: FailureMode,
    group: &'static str,
    checks: Vec<Check>,
}

impl Visit {
    fn ok(&mut self, name: &str, seen: impl Into<String>) {
        self.add(name, Status::Ok, (seen.into(), None));
    }

    fn finding(&mut self, name: &str, seen: impl Into<String>, remedy: impl Into<String>) {
        self.add(name, Status::Finding, (seen.into(), Some(remedy.into())));
    }

    fn unknown(&mut self, name: &str, seen: impl Into<String>, remedy: impl Into<String>) {
        self.add(name, Status::Unknown, (seen.into(), Some(remedy.into())));
    }

    fn add(&mut self, name: &str, status: Status, (seen, remedy): (String, Option<String>)) {
        self.checks.push(Check { group: self.group, name: name.to_owned(), status, seen, remedy });
    }

    /// The installation that is compared with what there is, but for its platform file.
    fn install(&self) -> Install {
        let install = Install::new(self.mode, &*self.operator, "");
        Install { namespaces: self.watched.clone(), kinds: self.kinds, ..install }
    }

    /// Whether that namespace is watched.
    fn watches(&self, namespace: &str) -> bool {
        self.watched.is_empty() || self.watched.iter().any(|name| name == namespace)
    }

    /// Where to look: the watched namespaces, or everywhere, which is one empty name.
    fn places(&self) -> Vec<String> {
        if self.watched.is_empty() { vec![String::new()] } else { self.watched.clone() }
    }

    /// The objects of a kind, as far as they are watched; `more` goes behind the path.
    async fn list(&self, kind: Kind, more: &str, notes: &mut Vec<String>) -> anyhow::Result<Vec<Value>> {
        let mut all = Vec::new();
        for namespace in self.places() {
            all.extend(self.cluster.list(&format!("{}{more}", kind.path(&namespace)), notes).await?);
        }
        Ok(all)
    }

    /// Reads an object; a refusal becomes a check of that name that could not be asked.
    async fn read(&mut self, name: &str, path: &str) -> anyhow::Result<Seen> {
        match self.cluster.get(path).await? {
            Answer::Object(object) => Ok(Seen::Is(object)),
            Answer::Absent => Ok(Seen::Absent),
            Answer::Refused(code, message) => {
                self.cluster.has_not_seen_all();
                self.unknown(name, format!("{code}: {message}"), "run doctor as somebody who may read it");
                Ok(Seen::Hidden)
            }
        }
    }
}

/// Visits a cluster.
///
/// # Errors
/// When the cluster does not answer.
pub fn run(args: Args, io: &mut Io<'_>) -> anyhow::Result<Exit> {
    let Args { namespace, operator_namespace, output, cluster } = args;
    let (checks, cluster) = cluster::block_on(async {
        let cluster = cluster.connect().await?;
        let scope = watched_namespaces::read(&cluster, &operator_namespace).await?;
        let mode = mode_of(scope.kinds, installed_mode(&cluster).await?);
        let (watched, kinds) = (scope.watched().to_vec(), scope.kinds);
        // A person who names none means one where something happens.
        let served = || watched.iter().find(|name| **name != operator_namespace).cloned();
        let namespace = namespace.or_else(served).unwrap_or_else(|| cluster.namespace.clone());
        let (operator, group, checks) = (operator_namespace, "", Vec::new());
        let mut visit = Visit { cluster, operator, namespace, watched, kinds, mode, group, checks };
        visit.group = "guards";
        let file = surroundings::platform_file(&mut visit).await?;
        guards::check(&mut visit, &scope, &file).await?;
        policies::check(&mut visit, &file).await?;
        visit.group = "cluster";
        surroundings::versions(&mut visit).await?;
        visit.group = "installation";
        install::check(&mut visit).await?;
        scope::check(&mut visit, &scope).await?;
        crds::check(&mut visit).await?;
        predecessor::check(&mut visit).await?;
        visit.group = "webhook";
        webhook::check(&mut visit).await?;
        visit.group = "rights";
        rights::check(&mut visit).await?;
        visit.group = SURROUNDINGS;
        if is_about(visit.group, kinds) {
            surroundings::check(&mut visit, &file).await?;
        }
        visit.group = ENROLMENT;
        if is_about(visit.group, kinds) {
            enrolment::check(&mut visit).await?;
        }
        visit.group = "builds";
        builds::check(&mut visit).await?;
        visit.group = KAOS;
        if is_about(visit.group, kinds) {
            kaos::check(&mut visit, &file).await?;
        }
        visit.group = "cards";
        cards::check(&mut visit).await?;
        catalogue::check(&mut visit).await?;
        visit.group = "trust";
        trust::check(&mut visit).await?;
        Ok((visit.checks, visit.cluster))
    })?;
    print(output, &checks, io)?;
    let findings = checks.iter().any(|check| check.status == Status::Finding);
    Ok(cluster.seen_all_or_partial(if findings { Exit::Findings } else { Exit::Ok }))
}

/// The failure mode that an installation of those kinds works in, whatever else of another mode is still there.
fn mode_of(kinds: Kinds, found: FailureMode) -> FailureMode {
    Install { kinds, ..Install::new(found, "", "") }.mode()
}

/// The failure mode that is installed: the webhook's own word, and where there is none the gate policy's presence. An installation that injects
/// nothing has no gate of its own; of that only its kinds tell ([`Install::mode`]).
///
/// # Errors
/// [`super::Unreachable`] when nobody answers.
pub(in crate::cli) async fn installed_mode(cluster: &Cluster) -> anyhow::Result<FailureMode> {
    let root = "/apis/admissionregistration.k8s.io/v1";
    let webhook = format!("{root}/mutatingwebhookconfigurations/{}", keys::WEBHOOK_CONFIGURATION);
    let configuration = cluster.get(&webhook).await?.object().unwrap_or_default();
    let hooks = configuration["webhooks"].as_array().into_iter().flatten();
    let policy =
        hooks.into_iter().find(|hook| hook["name"] == keys::WEBHOOK_INJECT).map(|hook| text(hook, "/failurePolicy"));
    let gated = match policy {
        Some(policy) => policy == "Ignore",
        None => {
            let gate = format!("{root}/mutatingadmissionpolicies/{}", keys::GATE);
            cluster.get(&gate).await?.object().is_some()
        }
    };
    Ok(if gated { FailureMode::Gate } else { FailureMode::Fail })
}

fn print(output: Format, checks: &[Check], io: &mut Io<'_>) -> anyhow::Result<()> {
    let marks = [io.paint(Tone::Good, "ok     "), io.paint(Tone::Bad, "finding"), io.paint(Tone::Warn, "unknown")];
    io::print(output, &checks, io.out, |out| {
        // Who is paged reads the first line: what is wrong stands somewhere among a hundred lines of what is not.
        if let Some(first) = first(checks) {
            writeln!(out, "{first}")?;
        }
        let mut group = "";
        for check in checks {
            if check.group != group {
                writeln!(out, "{}", check.group)?;
                group = check.group;
            }
            let mark = match check.status {
                Status::Ok => &marks[0],
                Status::Finding => &marks[1],
                Status::Unknown => &marks[2],
            };
            writeln!(out, "  {mark}  {}: {}", check.name, check.seen)?;
            if let Some(remedy) = &check.remedy {
                writeln!(out, "           do: {remedy}")?;
            }
        }
        let count = |status| checks.iter().filter(|check| check.status == status).count();
        let (findings, unknown) = (count(Status::Finding), count(Status::Unknown));
        let found = if findings == 1 { "1 finding".to_owned() } else { format!("{findings} findings") };
        let rest = if unknown == 0 {
            String::new()
        } else {
            format!("; {unknown} could not be asked with your rights, or got no answer")
        };
        writeln!(out, "{} checks, {found}, each with what to do{rest}", checks.len())
    })
}

/// The names of what was found, in one line; `None` where nothing was.
fn first(checks: &[Check]) -> Option<String> {
    const NAMED: usize = 6;
    let mut names: Vec<&str> = Vec::new();
    for check in checks.iter().filter(|check| check.status == Status::Finding) {
        if !names.contains(&check.name.as_str()) {
            names.push(&check.name);
        }
    }
    let more = names.len().saturating_sub(NAMED);
    let rest = if more == 0 { String::new() } else { format!(" and {more} more") };
    names.truncate(NAMED);
    (!names.is_empty()).then(|| format!("to act on: {}{rest}", names.join(", ")))
}

/// The text at a pointer, empty when there is none.
fn text<'a>(object: &'a Value, pointer: &str) -> &'a str {
    object.pointer(pointer).and_then(Value::as_str).unwrap_or("")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_line_names_what_is_to_be_acted_on() {
        let check = |name: &str, status| Check {
            group: "webhook",
            name: name.to_owned(),
            status,
            seen: "seen".to_owned(),
            remedy: None,
        };
        let said = |checks: &[Check]| {
            let (mut stdin, mut out, mut err) = (&b""[..], Vec::new(), Vec::new());
            let mut io = Io { stdin: &mut stdin, out: &mut out, err: &mut err, colour: false };
            print(Format::Table, checks, &mut io).unwrap();
            String::from_utf8(out).unwrap().lines().next().unwrap_or_default().to_owned()
        };
        let (ok, a, b) = (check("x", Status::Ok), check("a", Status::Finding), check("b", Status::Finding));
        assert_eq!(said(&[ok.clone(), a.clone(), check("u", Status::Unknown), b, a]), "to act on: a, b");
        assert_eq!(said(std::slice::from_ref(&ok)), "webhook");
        let many: Vec<Check> = (0..8).map(|number| check(&number.to_string(), Status::Finding)).collect();
        assert_eq!(said(&many), "to act on: 0, 1, 2, 3, 4, 5 and 2 more");
    }

    /// A gate that is left over where nothing is injected keeps every agent's Pods waiting, other operators' as well: it is none of this
    /// installation.
    #[test]
    fn where_nothing_is_injected_a_gate_that_is_still_there_is_left_over() {
        for kinds in [Kinds::All, Kinds::Kaos, Kinds::Beeai] {
            assert_eq!(mode_of(kinds, FailureMode::Gate) == FailureMode::Gate, kinds.injects(), "{kinds:?}");
            assert_eq!(mode_of(kinds, FailureMode::Fail), FailureMode::Fail, "{kinds:?}");
        }
    }

    /// (group, whether it is asked about where every kind, those of KAOS alone, and those of BeeAI alone are served)
    #[test]
    fn nothing_is_asked_about_kinds_that_are_left_to_another_operator() {
        for (group, asked) in [
            ("rights", [true, true, true]),
            (SURROUNDINGS, [true, false, false]),
            (ENROLMENT, [true, false, false]),
            (KAOS, [true, true, false]),
        ] {
            assert_eq!([Kinds::All, Kinds::Kaos, Kinds::Beeai].map(|kinds| is_about(group, kinds)), asked, "{group}");
        }
    }
}
