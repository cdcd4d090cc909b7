//! From a card to those who can be asked for it: workload, protocol, Service, port, Pods; pure.
//!
//! In: what is known of the cluster. Out: what is asked, or the first thing that is in the way. Promise: who is asked is a Pod that belongs
//! to the workload by uid, is Ready, has a network of its own, and is at an address in its `status.podIPs`, of the family by which its Service leads
//! there; a Service gives ports and a name, and never an address; which of its ports is asked it says itself (annotation `kagenti.io/port`), before the workload does.

use core::net::SocketAddr;
use std::collections::BTreeMap;
use std::sync::Arc;

use super::question::{CardQuestion, Fetch, Read};
use crate::api::agent_kagenti_dev::agent_runtime::AgentType;
use crate::controllers::agent_card::memory::Context;
use crate::controllers::trust;
use crate::domain::keys;
use crate::domain::printable::printable;
use crate::domain::reason::Reason;
use crate::store::objects::{CardRef, PodRef, WorkloadRef};
use crate::store::{
    AgentCardSeen, IpFamily, Kind, Leads, Pairs, PodEndpoint, ServicePort, ServiceSeen, TargetPort, TemplateSeen,
};

/// The protocol that cards are a part of.
pub(super) const A2A: &str = "a2a";
/// The port of a Service that lists none.
const DEFAULT_PORT: u16 = 8000;
/// The port of a Service at which its agent proves over TLS who it is.
pub(super) const PORT_TLS: &str = "agent-tls";
/// Names of ports, the most fitting first.
const PORT_NAMES: [&str; 2] = [A2A, "http"];

/// What was found.
pub(super) struct Subject<'a> {
    pub(super) workload: WorkloadRef<'a>,
    pub(super) protocol: String,
    /// Those who can be asked: Pods of the newest revision first, then by uid.
    pub(super) asked: Vec<CardQuestion>,
    /// How many of these are of the newest revision.
    pub(super) newest: usize,
    /// The ConfigMap with its signed card, where signatures are judged.
    pub(super) signed: Option<CardQuestion>,
    /// Agents are to prove over TLS who they are, and this one cannot: what its Service has no port for.
    pub(super) unproved: bool,
    /// Why no Pod can be asked, although there is a signed card.
    pub(super) hindrance: Option<Box<Hindrance<'a>>>,
}

/// How a workload is reached.
struct Reached {
    protocol: String,
    target: TargetPort,
    family: Option<IpFamily>,
    authority: Arc<str>,
    /// Over TLS.
    proves: bool,
}

/// What is in the way.
#[derive(Clone)]
pub(super) struct Hindrance<'a> {
    pub(super) reason: Reason,
    pub(super) message: String,
    /// The workload, where it was found.
    pub(super) workload: Option<WorkloadRef<'a>>,
    pub(super) protocol: Option<String>,
}

impl<'a> Hindrance<'a> {
    pub(super) fn new(reason: Reason, message: impl Into<String>) -> Box<Self> {
        Box::new(Self { reason, message: message.into(), workload: None, protocol: None })
    }

    fn of(mut self: Box<Self>, workload: WorkloadRef<'a>) -> Box<Self> {
        self.workload = Some(workload);
        self
    }

    fn speaking(mut self: Box<Self>, protocol: &str) -> Box<Self> {
        self.protocol = Some(protocol.to_owned());
        self
    }

    /// Nothing is known of a workload behind the card.
    pub(super) fn is_nobody(&self) -> bool {
        matches!(
            self.reason,
            Reason::WorkloadNotFound | Reason::NotAgentWorkload | Reason::WorkloadError | Reason::UntrustableKind
        )
    }
}

/// Who can be asked; `None` while that cannot be said, because not everything was read yet.
pub(super) fn subject<'a>(cx: &Context<'a>, card: &CardRef<'a>) -> Option<Result<Subject<'a>, Box<Hindrance<'a>>>> {
    let namespace = &cx.key.namespace;
    Some(match workload(cx, card)? {
        Ok(workload) => of_workload(cx, workload, namespace)?,
        Err(hindrance) => Err(hindrance),
    })
}

fn workload<'a>(cx: &Context<'a>, card: &CardRef<'a>) -> Option<Result<WorkloadRef<'a>, Box<Hindrance<'a>>>> {
    let error = |message: String| Some(Err(Hindrance::new(Reason::WorkloadError, message)));
    let Some(target) = &card.seen.spec.target else {
        return error("spec.targetRef names no workload: apiVersion, kind and name are needed".to_owned());
    };
    let known = target.workload_kind();
    let Some(kind) = known.filter(|kind| trust::KINDS.contains(kind)).and_then(Kind::of_workload) else {
        let (kind, version) = (printable(&target.kind, 63), printable(&target.api_version, 128));
        if known.is_some() {
            let message = format!(
                "spec.targetRef: {kind} of {version} is of a kind whose cards are not read; an agent runs as a Deployment, StatefulSet, DaemonSet or Sandbox"
            );
            return Some(Err(Hindrance::new(Reason::UntrustableKind, message)));
        }
        return error(format!("spec.targetRef: {kind} of {version} is not a kind of workload that is read"));
    };
    let name = printable(&target.name, 253);
    let Some(workload) = cx.store.workload(kind, &cx.key.namespace, &target.name) else {
        let missing = || Hindrance::new(Reason::WorkloadNotFound, format!("{} {name} does not exist", kind.as_str()));
        return cx.store.is_certain(kind).then(|| Err(missing()));
    };
    if workload.seen.labels.get(keys::LABEL_TYPE) != Some(AgentType::Agent.as_str()) {
        let message = format!("{} {name} does not carry the label {}=agent", kind.as_str(), keys::LABEL_TYPE);
        return Some(Err(Hindrance::new(Reason::NotAgentWorkload, message).of(workload)));
    }
    Some(Ok(workload))
}

fn of_workload<'a>(
    cx: &Context<'a>,
    workload: WorkloadRef<'a>,
    namespace: &Arc<str>,
) -> Option<Result<Subject<'a>, Box<Hindrance<'a>>>> {
    let (kind, name) = (workload.kind.as_str(), workload.name);
    let waits = (!workload.seen.ready).then(|| {
        let message = format!("{kind} {name} is not ready; its card is asked for once it is");
        Hindrance::new(Reason::WorkloadNotReady, message).of(workload)
    });
    let Reached { protocol, target, family, authority, proves } = match reached(cx, workload, namespace)? {
        Ok(reached) => reached,
        Err(hindrance) => return Some(Err(waits.unwrap_or(hindrance))),
    };
    let unproved = cx.facts.platform.cards().proof.is_some() && !proves;
    // Who proves who he is needs nobody's signature, and nothing is taken in its place.
    let signed = if proves { None } else { signed(cx, &workload, &authority) };
    let (asked, newest) = match waits {
        Some(_) => (Vec::new(), 0),
        None => questions(cx, &workload, (&target, family, proves), &authority),
    };
    let hindrance = waits.or_else(|| asked.is_empty().then(|| nobody(&workload).of(workload).speaking(&protocol)));
    Some(match hindrance {
        Some(hindrance) if signed.is_none() => Err(hindrance),
        hindrance => Ok(Subject { workload, protocol, asked, newest, signed, unproved, hindrance }),
    })
}

/// No Pod can be asked.
fn nobody<'a>(workload: &WorkloadRef<'_>) -> Box<Hindrance<'a>> {
    let (kind, name, label) = (workload.kind.as_str(), workload.name, keys::LABEL_TYPE);
    let is_labelled = |template: &TemplateSeen| template.agent_type().is_some();
    if workload.winner.is_none() && !workload.seen.template.as_ref().is_some_and(is_labelled) {
        let message = format!(
            "{kind} {name} carries the label {label}=agent and its Pod template does not; put it there too, or enrol the {kind} by an AgentRuntime"
        );
        return Hindrance::new(Reason::PodsNotLabelled, message);
    }
    let message = format!(
        "no Pod of {kind} {name} is Ready with label {label}=agent, a network of its own and the port that Service {name} leads to"
    );
    Hindrance::new(Reason::NoReadyPod, message)
}

/// What it speaks, and where its Service leads.
fn reached<'a>(
    cx: &Context<'a>,
    workload: WorkloadRef<'a>,
    namespace: &Arc<str>,
) -> Option<Result<Reached, Box<Hindrance<'a>>>> {
    let (kind, name) = (workload.kind.as_str(), workload.name);
    let fails = |reason: Reason, message: String| Hindrance::new(reason, message).of(workload);
    let Some(protocol) = protocol(&workload.seen.labels) else {
        let message = format!(
            "{kind} {name} has no label {}<name>, such as {}{A2A}",
            keys::PREFIX_PROTOCOL,
            keys::PREFIX_PROTOCOL
        );
        return Some(Err(fails(Reason::NoProtocol, message)));
    };
    if protocol != A2A {
        let message = format!("unsupported protocol: {protocol}; cards are read over {A2A}");
        return Some(Err(fails(Reason::FetchFailed, message).speaking(protocol)));
    }
    let Some(service) = cx.store.service(namespace, name) else {
        let message = format!("Service {name} does not exist; it names the agent inside the cluster");
        let missing = || fails(Reason::ServiceNotFound, message).speaking(protocol);
        return cx.store.is_certain(Kind::Service).then(|| Err(missing()));
    };
    if service.seen.leads == Leads::Elsewhere {
        let message = format!(
            "Service {name} is of type ExternalName, which leads away from the Pods of {name}; make it a ClusterIP or headless Service"
        );
        return Some(Err(fails(Reason::ServiceNotFound, message).speaking(protocol)));
    }
    let wants = cx.facts.platform.cards().proof.is_some();
    let proving = service.seen.ports.iter().find(|port| wants && port.is_tcp() && &*port.name == PORT_TLS);
    let proves = proving.is_some();
    let found = proving.map(|port| (port.port, port.target.clone())).or_else(|| port(&workload, service.seen));
    let Some((port, target)) = found else {
        let message = format!("Service {name} has no port for TCP that fits annotation {}", keys::ANNOTATION_CARD_PORT);
        return Some(Err(fails(Reason::ServiceNotFound, message).speaking(protocol)));
    };
    // The cluster has one domain: by the key for it the addresses of KAOS are told, too.
    let domain = &cx.facts.platform.kaos().cluster_domain;
    let authority = format!("{name}.{namespace}.svc.{domain}:{port}").into();
    let family = service.seen.family;
    Some(Ok(Reached { protocol: protocol.to_owned(), target, family, authority, proves }))
}

/// The question for the signed card; none while signatures are not judged, which is all that it is for.
fn signed(cx: &Context<'_>, workload: &WorkloadRef<'_>, authority: &Arc<str>) -> Option<CardQuestion> {
    if !cx.facts.platform.cards().bundle.any() {
        return None;
    }
    let namespace = &cx.key.namespace;
    let found = cx.store.signed_card(namespace, &format!("{}{}", workload.name, keys::SUFFIX_SIGNED_CARD))?;
    // Made ahead of the signer, it holds nothing yet; and of more than are read of a namespace nobody knows the version.
    if found.seen.awaits || found.seen.over.is_some() {
        return None;
    }
    Some(CardQuestion::Read(Read {
        namespace: namespace.clone(),
        name: found.name.clone(),
        uid: found.uid.into(),
        version: (&*found.seen.version).into(),
        authority: authority.clone(),
    }))
}

/// The protocol that is asked: A2A where it is among them, else the first by name.
fn protocol(labels: &Pairs) -> Option<&str> {
    let named = labels.iter().filter_map(|(key, _)| key.strip_prefix(keys::PREFIX_PROTOCOL));
    let named = named.filter(|name| !name.is_empty()).min_by_key(|name| (*name != A2A, *name));
    let older = || keys::LABELS_PROTOCOL.iter().find_map(|key| labels.get(key).filter(|name| !name.is_empty()));
    named.or_else(older)
}

/// The Service's port, and where it leads: the one that the Service itself is annotated with, else the one that the workload is, else by its name.
fn port(workload: &WorkloadRef<'_>, service: &ServiceSeen) -> Option<(u16, TargetPort)> {
    let mut usable = service.ports.iter().filter(|port| port.is_tcp());
    let found = |port: &ServicePort| Some((port.port, port.target.clone()));
    match service.card_port {
        // Without a list every port leads to itself.
        Some(wanted) if service.ports.is_empty() => return Some((wanted, TargetPort::Number(wanted))),
        Some(wanted) => return usable.find(|port| port.port == wanted).and_then(found),
        None => {}
    }
    if let Some(wanted) = workload.seen.annotations.get(keys::ANNOTATION_CARD_PORT) {
        let is_wanted = |port: &&ServicePort| &*port.name == wanted || port.port.to_string() == wanted;
        return usable.find(is_wanted).and_then(found);
    }
    if service.ports.is_empty() {
        return Some((DEFAULT_PORT, TargetPort::Number(DEFAULT_PORT)));
    }
    let named = PORT_NAMES.iter().find_map(|name| usable.clone().find(|port| &&*port.name == name));
    named.or_else(|| usable.next()).and_then(found)
}

fn questions(
    cx: &Context<'_>,
    workload: &WorkloadRef<'_>,
    (target, family, proves): (&TargetPort, Option<IpFamily>, bool),
    authority: &Arc<str>,
) -> (Vec<CardQuestion>, usize) {
    let namespace = &cx.key.namespace;
    let pods: Vec<_> = cx.store.pods_of(namespace, workload).collect();
    // A revision is as old as its oldest Pod.
    let mut revisions: BTreeMap<&str, &str> = BTreeMap::new();
    for pod in &pods {
        let begun = revisions.entry(revision(pod)).or_insert(&pod.seen.created);
        *begun = (*begun).min(&pod.seen.created);
    }
    let mut found: Vec<_> = pods
        .iter()
        .filter_map(|pod| {
            let address = address(pod, target, family)?;
            let fetch = Fetch {
                namespace: namespace.clone(),
                pod: pod.uid.into(),
                address,
                authority: authority.clone(),
                injected: pod.seen.injected,
                proves,
            };
            Some((std::cmp::Reverse(revisions.get(revision(pod)).copied()), pod.uid, CardQuestion::Fetch(fetch)))
        })
        .collect();
    found.sort_by(|one, other| (&one.0, one.1).cmp(&(&other.0, other.1)));
    let newest = found.iter().take_while(|(begun, ..)| found.first().is_some_and(|first| first.0 == *begun)).count();
    (found.into_iter().map(|(_, _, question)| question).collect(), newest)
}

fn revision<'p>(pod: &PodRef<'p>) -> &'p str {
    pod.seen.controller.as_ref().map_or("", |owner| &owner.uid)
}

/// Where a Pod is asked: who calls the agent by its Service comes to that address, and an agent may listen at no other.
fn address(pod: &PodRef<'_>, target: &TargetPort, family: Option<IpFamily>) -> Option<SocketAddr> {
    let is_open = |endpoint: &&PodEndpoint| endpoint.ready && !endpoint.host_network && !pod.seen.terminating;
    let endpoint = pod.seen.endpoint.as_deref().filter(is_open)?;
    let port = match target {
        TargetPort::Number(number) => *number,
        TargetPort::Name(name) => endpoint.port(name)?,
    };
    let fitting = endpoint.addresses.iter().find(|address| family.is_none_or(|family| family.has(**address)));
    Some(SocketAddr::new(*fitting.or(endpoint.addresses.first())?, port))
}

/// The card that counts among those of one workload: made by a person, then the oldest, then by name.
pub(super) fn wins<'a>(card: &CardRef<'a>, others: impl Iterator<Item = CardRef<'a>>) -> Result<(), &'a str> {
    let rank = |card: &CardRef<'a>| (card.seen.is_automatic(), card.seen.created.clone(), card.name.clone());
    let alive = others.filter(|other| is_alive(other.seen) && other.uid != card.uid);
    let first = alive.min_by_key(rank).filter(|first| rank(first) < rank(card));
    first.map_or(Ok(()), |first| Err(first.name))
}

fn is_alive(card: &AgentCardSeen) -> bool {
    !card.deleting
}
