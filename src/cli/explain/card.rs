//! `drawbridge explain agentcard/NAME`: why a card is not there, not verified or not bound, and what would change that.
//!
//! In: the card, its workload, Service and Pods, as the cluster has them now. Out: one line for each thing that has to be so, in the order in
//! which the operator goes, with what a person does next. Promise: what can be seen is looked at here and now, also while no operator
//! runs; what was read and judged is what the status says.

use std::collections::{BTreeSet, HashMap};
use std::io::{Result as Written, Write};

use anyhow::bail;
use serde::Serialize;
use serde_json::Value;

use crate::api::agent_kagenti_dev::agent_runtime::AgentType;
use crate::cli::card::row::{condition, holds};
use crate::cli::cluster::{self, Cluster, ClusterArgs};
use crate::cli::io::{self, Io, Tone};
use crate::cli::survey::{self, label, text};
use crate::cli::{Exit, Format, Unseen};
use crate::config::agent_card::AgentCardInput;
use crate::domain::keys;
use crate::domain::printable::printable;
use crate::store::{CardTarget, Kind};

mod reach;
mod signing;

#[cfg(test)]
mod tests;

/// The protocol whose cards are read.
const A2A: &str = "a2a";
/// Longest text of others on one line.
const LINE: usize = 600;

/// Whether something is as it has to be.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) enum State {
    /// It is.
    Ok,
    /// It is not.
    Failed,
    /// Nobody can say yet.
    Unknown,
}

/// One thing that has to be so.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(super) struct Check {
    pub(super) name: &'static str,
    pub(super) state: State,
    /// What was found.
    pub(super) text: String,
    /// What would change it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) remedy: Option<String>,
}

/// What is printed.
#[derive(Debug, Serialize)]
struct Explained {
    subject: String,
    checks: Vec<Check>,
    notes: Vec<String>,
}

/// What the cluster has about a card.
#[derive(Debug, Default)]
struct Facts {
    card: Value,
    workload: Option<Value>,
    service: Option<Value>,
    /// Pods of the workload.
    pods: Vec<Value>,
    /// Every card of the namespace.
    cards: Vec<Value>,
    /// Every NetworkPolicy of the namespace.
    policies: Vec<Value>,
    /// The checks whose objects may not be seen: that none is here says nothing.
    hidden: BTreeSet<&'static str>,
}

const WORKLOAD: &str = "workload";
const PODS: &str = "Pods";
const SERVICE: &str = "Service";

/// Explains.
///
/// # Errors
/// When the cluster does not answer, or there is no such card.
pub(super) fn explain(
    (name, namespace): (&str, Option<&str>),
    cluster: &ClusterArgs,
    output: Format,
    io: &mut Io<'_>,
) -> anyhow::Result<Exit> {
    cluster::block_on(async {
        let cluster = cluster.connect().await?;
        let namespace = namespace.unwrap_or(&cluster.namespace).to_owned();
        let mut notes = Vec::new();
        cluster.expect_namespace(&namespace, &mut notes).await?;
        let facts = read(&cluster, &namespace, name, &mut notes).await?;
        let checks = checks(&facts);
        let failed = checks.iter().any(|check| check.state == State::Failed);
        let explained = Explained { subject: format!("AgentCard {namespace}/{name}"), checks, notes };
        let tones = [Tone::Good, Tone::Bad, Tone::Faint];
        let [good, bad, unknown] = [("ok", tones[0]), ("fails", tones[1]), ("-", tones[2])]
            .map(|(word, tone)| io.paint(tone, &format!("{word:<5}")));
        io::print(output, &explained, io.out, |out| printed(out, &explained, [&good, &bad, &unknown]))?;
        Ok(cluster.seen_all_or_partial(if failed { Exit::Findings } else { Exit::Ok }))
    })
}

async fn read(cluster: &Cluster, namespace: &str, name: &str, notes: &mut Vec<String>) -> anyhow::Result<Facts> {
    let cards = cluster.list(&Kind::AgentCard.path(namespace), notes).await?;
    let Some(card) = cards.iter().find(|card| text(card, "/metadata/name") == name).cloned() else {
        match notes.is_empty() {
            true => bail!("AgentCard {namespace}/{name} does not exist; drawbridge card list -A shows all of them"),
            false => return Err(Unseen(notes.join("; ")).into()),
        }
    };
    let target = card.get("spec").and_then(CardTarget::of_spec);
    let mut noted = notes.len();
    let policies = cluster.list(&Kind::NetworkPolicy.path(namespace), notes).await?;
    let mut facts = Facts { card, cards, policies, ..Facts::default() };
    facts.hide(reach::NAME, &mut noted, notes);
    let Some(target) = target else { return Ok(facts) };
    let workload = &target.name;
    if let Some(kind) = target.workload_kind().and_then(Kind::of_workload) {
        facts.workload = cluster.read(&format!("{}/{workload}", kind.path(namespace)), notes).await?.object();
        facts.hide(WORKLOAD, &mut noted, notes);
    }
    facts.service = cluster.read(&format!("{}/{workload}", Kind::Service.path(namespace)), notes).await?.object();
    facts.hide(SERVICE, &mut noted, notes);
    let pods = cluster.list(&Kind::Pod.path(namespace), notes).await?;
    facts.hide(PODS, &mut noted, notes);
    let of_it = |pod: &Value| {
        let owner = survey::owner(pod, &HashMap::new());
        Some(owner.kind) == target.workload_kind() && *owner.name == **workload
    };
    facts.pods = pods.into_iter().filter(of_it).collect();
    Ok(facts)
}

impl Facts {
    /// Takes note that what a check is about may not be seen, where reading it left a note.
    fn hide(&mut self, check: &'static str, noted: &mut usize, notes: &[String]) {
        if notes.len() > *noted {
            self.hidden.insert(check);
        }
        *noted = notes.len();
    }

    /// What is said of a check whose objects may not be seen.
    fn hidden(&self, check: &'static str, what: &str) -> Option<Check> {
        let words = || unknown(check, &format!("{what} may not be seen with your rights, so nothing is said of it"));
        self.hidden.contains(check).then(words)
    }
}

pub(super) fn check(name: &'static str, is: Result<String, (String, String)>) -> Check {
    match is {
        Ok(text) => Check { name, state: State::Ok, text, remedy: None },
        Err((text, remedy)) => Check { name, state: State::Failed, text, remedy: Some(remedy) },
    }
}

pub(super) fn unknown(name: &'static str, text: &str) -> Check {
    Check { name, state: State::Unknown, text: text.to_owned(), remedy: None }
}

/// Everything that has to be so, in order.
fn checks(facts: &Facts) -> Vec<Check> {
    let mut checks = vec![target(facts)];
    if let Some(workload) = &facts.workload {
        checks.push(labels(facts, workload));
        checks.push(protocol(facts, workload));
        checks.push(ready(facts));
    }
    checks.extend(alone(facts));
    if checks[0].state != State::Failed {
        checks.push(service(facts));
    }
    checks.push(said(
        facts,
        "card",
        "Synced",
        "nobody has read the card yet: is a leader running? drawbridge doctor shows that",
    ));
    checks.push(said(
        facts,
        "signature",
        "Verified",
        "signatures are not looked at: the platform file names no trust bundle (keys below cards.trustBundle)",
    ));
    checks.extend(signing::signing(facts));
    checks.push(identity(facts));
    checks.push(reach::reach(facts));
    checks
}

fn of_card<'f>(facts: &'f Facts, pointer: &str) -> &'f str {
    text(&facts.card, pointer)
}

/// `-n namespace`, for commands.
fn place(facts: &Facts) -> String {
    format!("-n {}", of_card(facts, "/metadata/namespace"))
}

fn target(facts: &Facts) -> Check {
    const NAME: &str = WORKLOAD;
    let Some(CardTarget { api_version, kind, name }) = facts.card.get("spec").and_then(CardTarget::of_spec) else {
        let remedy = format!("kubectl {} edit agentcard {}", place(facts), of_card(facts, "/metadata/name"));
        return check(NAME, Err(("spec.targetRef names none".to_owned(), remedy)));
    };
    let title = format!("{kind}/{name}");
    if let Some(hidden) = facts.hidden(NAME, &title) {
        return hidden;
    }
    let is_known =
        CardTarget { api_version: api_version.clone(), kind: kind.clone(), name: name.clone() }.workload_kind();
    check(
        NAME,
        match (is_known, &facts.workload) {
            (_, Some(_)) => Ok(format!("{title} exists")),
            (Some(_), None) => Err((
                format!("{title} ({api_version}) does not exist in this namespace"),
                "create it, or point spec.targetRef at one that does".to_owned(),
            )),
            (None, None) => Err((
                format!("{title} ({api_version}) is of a kind or version whose Pods are not known here"),
                "point spec.targetRef at a Deployment, StatefulSet or DaemonSet of apps/v1, or a Sandbox".to_owned(),
            )),
        },
    )
}

fn labels(facts: &Facts, workload: &Value) -> Check {
    let agent = AgentType::Agent.as_str();
    let found = label(workload, keys::LABEL_TYPE);
    if found == Some(agent) {
        return check("type", Ok(format!("{}={agent}", keys::LABEL_TYPE)));
    }
    let seen = found.map_or_else(
        || format!("the workload itself does not carry label {}", keys::LABEL_TYPE),
        |found| format!("label {} of the workload is {found:?}", keys::LABEL_TYPE),
    );
    check("type", Err((seen, format!("{} {}={agent}", kubectl_label(facts, workload), keys::LABEL_TYPE))))
}

fn kubectl_label(facts: &Facts, workload: &Value) -> String {
    let (kind, name) = (text(workload, "/kind").to_lowercase(), text(workload, "/metadata/name"));
    format!("kubectl {} label {kind}/{name}", place(facts))
}

fn protocol(facts: &Facts, workload: &Value) -> Check {
    let labels = workload.pointer("/metadata/labels").and_then(Value::as_object);
    let by_prefix = labels.into_iter().flatten().filter_map(|(key, _)| key.strip_prefix(keys::PREFIX_PROTOCOL));
    let mut spoken: Vec<&str> = by_prefix.filter(|name| !name.is_empty()).collect();
    if spoken.is_empty() {
        let older = keys::LABELS_PROTOCOL.into_iter().filter_map(|key| label(workload, key));
        spoken = older.filter(|name| !name.is_empty()).take(1).collect();
    }
    let remedy = format!("{} {}{A2A}=", kubectl_label(facts, workload), keys::PREFIX_PROTOCOL);
    check(
        "protocol",
        match &spoken[..] {
            [] => Err(("no label of the workload says which protocol it speaks".to_owned(), remedy)),
            spoken if spoken.contains(&A2A) => Ok(A2A.to_owned()),
            spoken => {
                let seen = format!("{}: only cards of {A2A} are read", spoken.join(", "));
                Err((seen, remedy))
            }
        },
    )
}

fn ready(facts: &Facts) -> Check {
    const NAME: &str = PODS;
    if let Some(hidden) = facts.hidden(NAME, "what runs of it") {
        return hidden;
    }
    let is_there = |pod: &&Value| {
        let phase = text(pod, "/status/phase");
        !matches!(phase, "Succeeded" | "Failed") && text(pod, "/metadata/deletionTimestamp").is_empty()
    };
    let pods: Vec<&Value> = facts.pods.iter().filter(is_there).collect();
    let ready: Vec<&&Value> = pods.iter().filter(|pod| holds(pod, "Ready") == Some(true)).collect();
    let count = format!("{} of {} are ready", ready.len(), pods.len());
    let reached = |pod: &&&Value| pod.pointer("/spec/hostNetwork") != Some(&Value::Bool(true));
    let labelled = |pod: &&&Value| label(pod, keys::LABEL_TYPE) == Some(AgentType::Agent.as_str());
    check(
        NAME,
        if ready.is_empty() {
            Err((count, "a card is read from a Pod that is ready: kubectl describe its Pods".to_owned()))
        } else if !ready.iter().any(reached) {
            Err((
                format!("{count}, all on the network of their node"),
                "an agent on its node's network is never called: take hostNetwork out of the template, or sign its card into a \
                 ConfigMap"
                    .to_owned(),
            ))
        } else if !ready.iter().any(labelled) {
            Err((
                format!("{count}, none of them with label {}", keys::LABEL_TYPE),
                "put the label on the Pod template, too, or enrol the workload by an AgentRuntime".to_owned(),
            ))
        } else {
            Ok(count)
        },
    )
}

/// That it is the only card of its workload which counts; nothing while it is.
fn alone(facts: &Facts) -> Option<Check> {
    let own = AgentCardInput::of_object(&facts.card);
    let name = of_card(facts, "/metadata/name");
    let others = facts.cards.iter().filter(|card| text(card, "/metadata/name") != name);
    let same = |card: &&Value| {
        let other = AgentCardInput::of_object(card);
        other.target == own.target && !other.deleting && (own.automatic || !other.automatic)
    };
    let other = others.filter(same).map(|card| text(card, "/metadata/name")).min().filter(|_| own.target.is_some())?;
    let remedy = format!("delete one of them: kubectl {} delete agentcard {other}", place(facts));
    Some(check("one card", Err((format!("AgentCard {other} is of the same workload"), remedy))))
}

fn service(facts: &Facts) -> Check {
    let name = of_card(facts, "/spec/targetRef/name");
    if let Some(hidden) = facts.hidden(SERVICE, name) {
        return hidden;
    }
    check(
        SERVICE,
        match &facts.service {
            None => Err((
                format!("Service {name} does not exist, and the agent's port is read from it"),
                format!(
                    "kubectl {} expose {}/{name} --port 8000, with the port that the agent listens on",
                    place(facts),
                    of_card(facts, "/spec/targetRef/kind").to_lowercase()
                ),
            )),
            Some(service) => {
                let ports = service.pointer("/spec/ports").and_then(Value::as_array).into_iter().flatten();
                let ports: Vec<String> = ports.map(|port| port["port"].to_string()).collect();
                Ok(format!("{name}, port {}", if ports.is_empty() { "8000".to_owned() } else { ports.join(", ") }))
            }
        },
    )
}

/// What a condition of the status says.
fn said(facts: &Facts, name: &'static str, kind: &str, nothing: &str) -> Check {
    let Some(one) = condition(&facts.card, kind) else { return unknown(name, nothing) };
    let words = format!("{}: {}", text(one, "/reason"), text(one, "/message"));
    let words = words.trim_end_matches([' ', ':']).to_owned();
    match holds(&facts.card, kind) {
        Some(true) => check(name, Ok(words)),
        Some(false) => check(name, Err((words, remedy(text(one, "/reason")).to_owned()))),
        None => unknown(name, &words),
    }
}

fn identity(facts: &Facts) -> Check {
    const NAME: &str = "identity";
    let (wanted, signer) = (of_card(facts, "/status/expectedSpiffeID"), of_card(facts, "/status/signatureSpiffeId"));
    let both = |signer: &str| format!("signed by {signer}; it has to be signed by {wanted}");
    match said(
        facts,
        NAME,
        "Bound",
        "who signed is not compared: nothing is verified, or identityBinding is not asked for",
    ) {
        Check { state: State::Failed, text, remedy, .. } if !signer.is_empty() && !wanted.is_empty() => {
            Check { name: NAME, state: State::Failed, text: format!("{text} ({})", both(signer)), remedy }
        }
        other => other,
    }
}

/// What a person does about a reason.
fn remedy(reason: &str) -> &'static str {
    match reason {
        "WorkloadNotFound" | "WorkloadError" | "UntrustableKind" | "NotAgentWorkload" | "NoProtocol"
        | "ServiceNotFound" | "PodsNotLabelled" => "correct what fails above",
        "WorkloadNotReady" => "wait until the workload is available; kubectl rollout status shows why it is not",
        "FetchFailed" => {
            "ask the agent from a Pod of the cluster for /.well-known/agent-card.json; its own log shows what it answered"
        }
        "BlockedBySidecar" => {
            "let the path through the sidecar: bypass_paths of plugin jwt-validation in ConfigMap authbridge-runtime-config has to hold /.well-known/*"
        }
        "MeshRefused" => {
            "sign the card into ConfigMap <workload>-card-signed: a mesh that insists on mTLS lets nobody else in"
        }
        "SignatureInvalid" | "NotVerified" | "NoTrustAnchor" | "UnknownAuthority" => {
            "drawbridge card verify --bundle FILE FILE shows which entry fails and why; have the agent sign what it serves"
        }
        "TrustDomainUnknown" => "name the trust domain of the bundle in platform key cards.trustBundle.trustDomain",
        "NotBound" => "have the card signed by the workload's own SVID, not by another workload's",
        "Settling" => "nothing needs to be done: the card counts again once it was read twice without a fault",
        "DuplicateCard" => "delete one of the cards of the workload",
        _ => {
            "the message of the condition says what; after a change annotation agentcard.kagenti.dev/refresh has the card read at once"
        }
    }
}

fn printed(out: &mut dyn Write, explained: &Explained, [good, bad, unknown]: [&str; 3]) -> Written<()> {
    writeln!(out, "{}", io::shown(&explained.subject))?;
    for Check { name, state, text, remedy } in &explained.checks {
        let mark = match state {
            State::Ok => good,
            State::Failed => bad,
            State::Unknown => unknown,
        };
        writeln!(out, "  {mark} {name:<10} {}", printable(text, LINE))?;
        if let Some(remedy) = remedy {
            writeln!(out, "        what would change it: {}", io::shown(remedy))?;
        }
    }
    explained.notes.iter().try_for_each(|note| writeln!(out, "note: {}", io::shown(note)))
}
