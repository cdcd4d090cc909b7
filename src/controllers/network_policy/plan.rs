//! Which NetworkPolicies of ours a namespace has, and which it should.
//!
//! In: how far trust is enforced in the namespace, its agents and their cards, the policies that are there. Out: policies made, changed and
//! deleted. Promises:
//! - The deny has no owner: deleting a card, or every card, opens nothing.
//! - When enforcement begins, the deny comes last: after the labels on running Pods of verified agents and the policies that open them; when
//!   it ends, the deny goes first. Where each step stands is read off the cluster, so another leader goes on.
//! - A policy of our name that is somebody else's is told and never changed; the Go operator's is taken over where it is.
//! - Who is in quarantine is never without a policy that cuts him off: that of quarantine comes before the deny leaves him to it, and goes after
//!   ([`super::quarantine`]).
//! - Where ClusterNetworkPolicies are served, the deny and the quarantine stand in their Admin tier as well ([`super::cluster`]).
//! - What the API server stores in another spelling is the same: at rest nothing is written.

use std::time::Duration;

use serde_json::{Value, json};

use super::facts::facts;
use super::kaos;
use super::names::{is_shortened, label_of, policy_of};
use super::opening::{self, Wanted};
use super::stuck::{left, not_ready};
use super::{cluster, declared, overridden, quarantine, unread};
use crate::api::agent_kagenti_dev::agent_runtime::AgentType;
use crate::controllers::looks;
use crate::controllers::network_policy::memory::{Context, Note, Plan, Policies};
use crate::controllers::scaffold::plan::{Item, Name, Op, Report, Row};
use crate::controllers::trust;
use crate::domain::keys;
use crate::domain::reason::Reason;
use crate::domain::trust::TrustLevel;
use crate::domain::workload::WorkloadKind;
use crate::policy::desired::{default_deny, is_permissive, normal};
use crate::store::objects::{CardRef, PolicyRef, WorkloadRef};
use crate::store::{Key, Kind, Store, Trust};

/// The controller's name.
pub const NAME: Name = Name::new("network-policy");

/// The controller's row. Its items are NetworkPolicies, by the name that they have or would have.
pub const ROW: Row<Policies> =
    Row { controller: NAME, touched: |store, _, kind, key| touched(store, kind, key), of_namespace, plan };

/// The kinds that agents are; of several of one name the first has the policy.
const KINDS: [WorkloadKind; 4] = trust::KINDS;
/// How often Services are looked up anew that policies were made from.
const SERVICES: Duration = Duration::from_secs(60);
/// Agents that one change of an Agent has looked at again, because it names them.
const LINKS: usize = 64;
/// Time until what has to wait is looked at again, should nothing bring us back.
const AGAIN: Duration = Duration::from_secs(5);

fn touched(store: &Store, kind: Kind, key: &Key) -> Vec<Key> {
    let Key { namespace, name } = key;
    match kind {
        Kind::Namespace => {
            let mut keys = of_namespace(store, name);
            keys.extend(declared::named_elsewhere(store, name));
            keys
        }
        Kind::ConfigMap if &**name == keys::CONFIG_MAP_ROUTES => {
            let mut keys = declared::named_elsewhere(store, namespace);
            if has_ours(store, namespace) {
                keys.extend(of_namespace(store, namespace));
            }
            keys
        }
        // What comes before it, or after it, may go on.
        Kind::NetworkPolicy if &**name == keys::DEFAULT_DENY => of_namespace(store, namespace),
        Kind::NetworkPolicy if &**name == keys::QUARANTINE_POLICY => {
            let mut keys = vec![deny(namespace), key.clone()];
            keys.extend(cluster::items(store, namespace));
            keys
        }
        Kind::NetworkPolicy if name.ends_with(keys::SUFFIX_SIGNATURE_POLICY) => {
            let mut keys = vec![key.clone(), deny(namespace)];
            // Somebody else's of such a name may open who is cut off, too.
            if is_foreign(store, key) && has_ours(store, namespace) {
                keys.extend(of_namespace(store, namespace));
            }
            keys
        }
        Kind::ClusterNetworkPolicy => cluster::touched(name),
        // It may open who is cut off.
        Kind::NetworkPolicy if has_ours(store, namespace) => of_namespace(store, namespace),
        Kind::EndpointSlice => store.namespaces().flat_map(|namespace| of_namespace(store, namespace)).collect(),
        Kind::AgentCard => {
            let card = store.agent_card(namespace, name);
            let target = card.as_ref().and_then(|card| card.seen.spec.target.as_ref());
            target
                .map(|target| vec![Key::new(namespace, &policy_of(&target.name)), deny(namespace)])
                .unwrap_or_default()
        }
        Kind::KaosAgent => {
            let agent = store.custom(kind, namespace, name);
            // Who comes behind these is looked up with the Services.
            let called = agent.iter().flat_map(|agent| kaos::called(&agent.seen.spec)).take(LINKS);
            let agents = std::iter::once(&**name).chain(called);
            let mut keys = cluster::items(store, namespace);
            keys.extend(agents.map(|agent| Key::new(namespace, &policy_of(&kaos::workload_of(agent)))));
            keys
        }
        Kind::Pod if store.network_policy(namespace, keys::QUARANTINE_POLICY).is_some() => {
            vec![deny(namespace), Key::new(namespace, keys::QUARANTINE_POLICY)]
        }
        // The deny that is not there yet waits for the labels of running Pods.
        Kind::Pod if store.network_policy(namespace, keys::DEFAULT_DENY).is_none() => vec![deny(namespace)],
        kind if kind.workload().is_some_and(|kind| KINDS.contains(&kind)) => {
            let agent = store.workload(kind, namespace, name).filter(is_agent);
            agent.map(|workload| Key::new(namespace, &policy_of(workload.name))).into_iter().collect()
        }
        _ => Vec::new(),
    }
}

/// A policy of that name is there, and is not ours.
fn is_foreign(store: &Store, key: &Key) -> bool {
    store.network_policy(&key.namespace, &key.name).is_some_and(|policy| !policy.seen.is_ours())
}

fn deny(namespace: &str) -> Key {
    Key::new(namespace, keys::DEFAULT_DENY)
}

fn of_namespace(store: &Store, namespace: &str) -> Vec<Key> {
    let agents = agents(store, namespace).map(|workload| policy_of(workload.name));
    let ours = store.network_policies(namespace).filter(|policy| policy.seen.is_ours());
    let names = agents.chain(ours.map(|policy| policy.name.to_string()));
    let mut keys: Vec<_> = names.map(|name| Key::new(namespace, &name)).collect();
    keys.push(deny(namespace));
    keys.push(Key::new(namespace, keys::QUARANTINE_POLICY));
    keys.extend(cluster::items(store, namespace));
    keys
}

/// The policy of a workload.
pub(super) fn policy_key(namespace: &str, workload: &WorkloadRef<'_>) -> Key {
    Key::new(namespace, &policy_of(workload.name))
}

pub(super) fn has_ours(store: &Store, namespace: &str) -> bool {
    store.network_policies(namespace).any(|policy| policy.seen.is_ours())
}

fn is_agent(workload: &WorkloadRef<'_>) -> bool {
    let template = workload.seen.template.as_ref();
    KINDS.contains(&workload.seen.kind)
        && workload.is_root()
        && template.and_then(|template| template.agent_type()) == Some(AgentType::Agent.as_str())
}

/// The agents of a namespace.
pub(super) fn agents<'a>(store: &'a Store, namespace: &str) -> impl Iterator<Item = WorkloadRef<'a>> {
    store.workloads(namespace).filter(is_agent)
}

fn plan(cx: Context<'_>) -> Plan {
    let Some(level) = trust::level(&cx, &cx.key.namespace) else { return Plan::nothing() };
    // Without the addresses of the API server a policy would cut agents off from it; who is in quarantine is cut off from it anyway.
    let needs_addresses = &*cx.key.name != keys::QUARANTINE_POLICY;
    if level.enforces() && needs_addresses && !cx.store.is_certain(Kind::EndpointSlice) {
        return Plan::later(AGAIN);
    }
    if let Some(which) = cluster::Which::of_item(cx.key) {
        return cluster::plan(&cx, which, level);
    }
    match &*cx.key.name {
        keys::DEFAULT_DENY => of_deny(&cx, level),
        keys::QUARANTINE_POLICY => quarantine::plan(&cx),
        _ => of_agent(&cx, level),
    }
}

pub(super) fn stored<'a>(cx: &Context<'a>) -> Option<PolicyRef<'a>> {
    cx.store.network_policy(&cx.key.namespace, &cx.key.name).filter(|policy| !policy.seen.deleting)
}

fn of_deny(cx: &Context<'_>, level: TrustLevel) -> Plan {
    let stored = stored(cx);
    if !level.enforces() {
        // Who is verified would be denied by the one beside it, once his label goes after this one.
        if cluster::stands(cx.store, &cx.key.namespace, keys::DEFAULT_DENY) {
            return Plan::later(AGAIN);
        }
        return stored.filter(|policy| policy.seen.is_ours()).map_or_else(Plan::nothing, |policy| delete(cx, &policy));
    }
    let made = facts(cx, &cx.key.namespace, &[]);
    let wanted = default_deny(level == TrustLevel::EnforcedAll, quarantine::held(cx), &made.facts);
    let plan = match stored {
        Some(policy) if !policy.seen.is_ours() => {
            foreign(cx, &policy, "every new Pod for which trust is enforced waits")
        }
        Some(policy) if is_same(&policy, &wanted) => Plan::nothing(),
        Some(policy) => Plan::of(vec![set_spec(cx, &policy, &wanted)]),
        None if is_opened(cx) => Plan::of(vec![create(cx, json!({}), &wanted)]),
        None => Plan::later(AGAIN),
    };
    let mut plan = with_unavailable(cx, stored.as_ref(), plan);
    plan.note.armed = Some(stored.is_some_and(|policy| policy.seen.is_ours()));
    plan
}

/// Says that nobody can become verified, where it is so.
fn with_unavailable(cx: &Context<'_>, stored: Option<&PolicyRef<'_>>, mut plan: Plan) -> Plan {
    let Some(policy) = stored.filter(|policy| policy.seen.is_ours()) else { return plan };
    let unread = || {
        let mut cards = cx.store.agent_cards(&cx.key.namespace);
        cards.any(|card| card.seen.is_unread())
    };
    if cx.facts.platform.cards().proof.is_some() {
        return plan;
    }
    let why = if !cx.facts.platform.cards().bundle.any() {
        "no trust bundle is configured (cards.trustBundle of the platform file)"
    } else if unread() {
        "no trust bundle could be read so far"
    } else {
        return plan;
    };
    let message = format!(
        "this namespace enforces trust and {why}, so no agent becomes verified: those that were open stay open, and new ones are cut off. What \
         to do: have SPIRE publish its bundle; drawbridge doctor shows where it is looked for"
    );
    plan.ops.push(report(cx, policy, Reason::TrustUnavailable, message, String::new()));
    plan
}

/// Whether nobody who is verified would be cut: his Pods carry the label, and his policy opens them. Who cannot be opened holds nobody up.
fn is_opened(cx: &Context<'_>) -> bool {
    let namespace = &cx.key.namespace;
    agents(cx.store, namespace).all(|workload| {
        let Trust::Account(account) = trust::of_workload(cx.store, namespace, &workload) else { return true };
        let key = Key::new(namespace, &policy_of(workload.name));
        let failed = cx.memory.trouble(&Item { controller: NAME, key: key.clone() }).is_some();
        let policy = cx.store.network_policy(namespace, &key.name);
        let spec = policy.as_ref().and_then(|policy| policy.seen.spec.as_deref());
        let is_foreign = policy.as_ref().is_some_and(|policy| !policy.seen.is_ours() && !policy.seen.is_upstreams());
        // What the Go operator left is taken over, whatever it says.
        let is_left = |policy: &PolicyRef<'_>| policy.seen.over.is_some() && !policy.seen.is_upstreams();
        let is_unread = policy.as_ref().is_some_and(is_left);
        // Where another workload has the policy of that name, none will open this one.
        let is_its = namesakes(cx, workload.name).next().is_some_and(|(first, _)| first.uid == workload.uid);
        let opened = failed
            || is_foreign
            || is_unread
            || !is_its
            || workload.seen.selector.is_none()
            || spec.is_some_and(is_permissive);
        let mut pods = cx.store.pods_of(namespace, &workload);
        let labelled = pods.all(|pod| {
            let runs_as = pod.seen.endpoint.as_ref().and_then(|endpoint| endpoint.account.as_deref());
            pod.seen.verified
                || !pod.seen.is_alive()
                || runs_as != Some(account)
                || looks::failure_of_label(cx.memory, namespace, pod.name).is_some()
        });
        opened && labelled
    })
}

/// The agents of that name that have a card, each with it: the first has the policy.
fn namesakes<'a>(cx: &Context<'a>, name: &str) -> impl Iterator<Item = (WorkloadRef<'a>, CardRef<'a>)> {
    let named = move |kind: WorkloadKind| cx.store.workload(Kind::of_workload(kind)?, &cx.key.namespace, name);
    KINDS.into_iter().filter_map(named).filter_map(move |workload| with_card(cx, workload))
}

/// An agent that stays, with the card that counts for it.
fn with_card<'a>(cx: &Context<'a>, workload: WorkloadRef<'a>) -> Option<(WorkloadRef<'a>, CardRef<'a>)> {
    let card = trust::card_of(cx.store, &cx.key.namespace, &workload)?;
    (is_agent(&workload) && !workload.seen.deleting).then_some((workload, card))
}

/// The workload that has the policy of that name, with its card.
fn subject<'a>(cx: &Context<'a>) -> Option<(WorkloadRef<'a>, CardRef<'a>)> {
    let Key { namespace, name } = cx.key;
    let short = name.strip_suffix(keys::SUFFIX_SIGNATURE_POLICY)?;
    let found = namesakes(cx, short).next();
    // A name that was shortened is nobody's own.
    found.or_else(|| {
        // Everybody of the namespace is asked, so only then.
        if !is_shortened(name) {
            return None;
        }
        let cut = agents(cx.store, namespace).filter(|workload| workload.name.len() > short.len());
        cut.filter(|workload| policy_of(workload.name) == **name).find_map(|workload| with_card(cx, workload))
    })
}

/// Says to every other agent of that name that it has no policy, since one of each name is all that there is.
fn without(cx: &Context<'_>, workload: &WorkloadRef<'_>) -> Vec<Op> {
    let (kind, name) = (workload.seen.kind.as_str(), workload.name);
    let others = namesakes(cx, name).filter(|(other, _)| other.uid != workload.uid);
    let told = others.map(|(other, _)| {
        let message = format!(
            "{kind} {name} has NetworkPolicy {}, which is that of this name, so {} {name} has none: it stays cut off, whatever its AgentCard proves. What \
             to do: rename one of the two",
            cx.key.name,
            other.seen.kind.as_str(),
        );
        let about = Key::new(&cx.key.namespace, name);
        let (kind, uid, since) = (other.kind, other.uid.to_owned(), String::new());
        Op::Report(Report { kind, about, uid, reason: Reason::NameConflict, message, since })
    });
    told.collect()
}

fn of_agent(cx: &Context<'_>, level: TrustLevel) -> Plan {
    let stored = stored(cx);
    let subject = subject(cx).filter(|_| level.enforces());
    let wanted = subject.and_then(|(workload, card)| Some((workload, card, workload.seen.selector.as_ref()?.value())));
    let Some((workload, card, selector)) = wanted else {
        let Some(policy) = stored.filter(|policy| policy.seen.is_ours()) else { return Plan::nothing() };
        // Where enforcement ends, what cuts off goes before what opens. What is somebody else's never goes by us.
        let deny = cx.store.network_policy(&cx.key.namespace, keys::DEFAULT_DENY);
        let still_cut = !level.enforces() && deny.is_some_and(|policy| policy.seen.is_ours());
        if still_cut {
            return Plan::later(AGAIN);
        }
        let mut plan = delete(cx, &policy);
        plan.ops.extend(left(cx, level, left_by(cx).as_ref()));
        return plan;
    };
    let made = facts(cx, &cx.key.namespace, &kaos::wired(cx, &workload));
    let opens = match trust::of_workload(cx.store, &cx.key.namespace, &workload) {
        Trust::Account(_) => true,
        Trust::None => false,
        // Nothing can be said: what was concluded before stays, and who is new is not opened.
        Trust::Unknown => stored.and_then(|policy| policy.seen.spec.as_deref().map(is_permissive)).unwrap_or(false),
    };
    let is_held =
        trust::quarantine(cx.store, &cx.key.namespace).is_some_and(|quarantine| quarantine.holds(workload.name));
    let wanted = opening::of(cx, (&workload, &selector), (is_held, opens), &made);
    let spec = &wanted.spec;
    // Who names it, and where those are whom it names, may change without bringing us back.
    let again = (made.services || wanted.says.is_some()).then_some(SERVICES);
    let cut = stored.as_ref().filter(|policy| !opens && !is_held && policy.seen.is_ours() && is_same(policy, spec));
    let (stuck, look) = match cut {
        Some(policy) => not_ready(cx, &workload, policy),
        None => (None, None),
    };
    let again = again.into_iter().chain(look).min();
    let note = Note { opened: Some(opens && !is_held), ..Note::default() };
    let mut ops = match stored {
        // The policy of quarantine holds its Pods, and none that would open nothing is needed beside it.
        None if is_held => Vec::new(),
        None => vec![create(cx, of_card(&card, wanted.says.as_deref()), spec)],
        Some(policy) if policy.seen.is_ours() && policy.seen.over.is_some() && is_held => {
            // What it opens nobody knows, so it goes; not before the policy of quarantine is there.
            if !quarantine::stands(cx) {
                return Plan { note, ..Plan::later(AGAIN) };
            }
            delete(cx, &policy).ops
        }
        Some(policy) if policy.seen.is_ours() && policy.seen.over.is_some() => {
            unread::own(cx, &policy).into_iter().collect()
        }
        Some(policy) if policy.seen.is_ours() => {
            let same = is_same(&policy, spec) && is_of_card(&policy, &card) && wanted.says_the_same(&policy);
            let told = (!is_held).then(|| flipped(cx, &policy, &card, opens)).flatten();
            let unopened = declared::told(cx, &policy, &wanted.left);
            let overridden = (!opens).then(|| overridden::told(cx, &policy, &selector)).flatten();
            let overridden = overridden.or_else(|| (!opens).then(|| unread::others(cx, &policy)).flatten());
            let written = (!same).then(|| take(cx, &policy, &card, &wanted));
            let told = told.filter(|_| !same);
            written.into_iter().chain(told).chain(unopened).chain(overridden).chain(stuck).collect()
        }
        Some(policy) if policy.seen.is_upstreams() => vec![take_over(cx, &policy, &card, &wanted)],
        Some(policy) => return foreign(cx, &policy, "the agent stays cut off until it is gone"),
    };
    ops.extend(without(cx, &workload));
    Plan { again, note, ..Plan::of(ops) }
}

/// The workload of that policy that is no agent.
fn left_by<'a>(cx: &Context<'a>) -> Option<WorkloadRef<'a>> {
    let short = cx.key.name.strip_suffix(keys::SUFFIX_SIGNATURE_POLICY)?;
    let named = |kind: WorkloadKind| cx.store.workload(Kind::of_workload(kind)?, &cx.key.namespace, short);
    let mut found = KINDS.into_iter().filter_map(named);
    found.find(|workload| workload.is_root() && !is_agent(workload))
}

/// What is told of an agent that is opened or cut off from now on.
fn flipped(cx: &Context<'_>, policy: &PolicyRef<'_>, card: &CardRef<'_>, opens: bool) -> Option<Op> {
    let was_open = policy.seen.spec.as_deref().is_some_and(is_permissive);
    let card = card.name;
    let (reason, message) = match (was_open, opens) {
        (false, true) => {
            let whom = match opening::is_by_declaration(cx) {
                true => "whom its routes, its links and its AgentRuntime name",
                false => "whatever no other NetworkPolicy forbids",
            };
            (Reason::AgentOpened, format!("AgentCard {card} is Verified: its workload reaches {whom}"))
        }
        (true, false) => (
            Reason::AgentCutOff,
            format!(
                "AgentCard {card} is not Verified any more: its workload reaches only what it needs to become Verified. What to do: \
                 drawbridge explain agentcard/{card} -n {}",
                cx.key.namespace
            ),
        ),
        _ => return None,
    };
    Some(report(cx, policy, reason, message, policy.version.to_string()))
}

pub(super) fn report(cx: &Context<'_>, policy: &PolicyRef<'_>, reason: Reason, message: String, since: String) -> Op {
    let (about, uid) = (cx.key.clone(), policy.uid.to_owned());
    Op::Report(Report { kind: Kind::NetworkPolicy, about, uid, reason, message, since })
}

pub(super) fn is_same(policy: &PolicyRef<'_>, wanted: &Value) -> bool {
    policy.seen.spec.as_deref().is_some_and(|spec| normal(spec) == normal(wanted))
}

fn is_of_card(policy: &PolicyRef<'_>, card: &CardRef<'_>) -> bool {
    let owner = policy.seen.controller.as_deref();
    owner.is_some_and(|owner| owner.uid == card.uid) && policy.seen.card.as_deref() == Some(&*label_of(card.name))
}

fn labels() -> Value {
    json!({
        keys::LABEL_POLICY_MANAGED_BY: keys::MANAGED_BY_DRAWBRIDGE,
        keys::LABEL_APP_MANAGED_BY: keys::MANAGED_BY_DRAWBRIDGE,
    })
}

/// Labels and owner of the policy of a card's agent, and which declarations made it.
fn of_card(card: &CardRef<'_>, says: Option<&str>) -> Value {
    let mut labels = labels();
    labels[keys::LABEL_POLICY_CARD] = label_of(card.name).into();
    labels[keys::LABEL_POLICY_TYPE] = keys::POLICY_TYPE.into();
    let owner = json!({"apiVersion": Kind::AgentCard.api_version(), "kind": Kind::AgentCard.as_str(), "name": &**card.name,
        "uid": card.uid, "controller": true});
    let mut metadata = json!({"labels": labels, "ownerReferences": [owner]});
    if let Some(says) = says {
        metadata["annotations"] = json!({keys::ANNOTATION_DECLARED: says});
    }
    metadata
}

pub(super) fn create(cx: &Context<'_>, mut metadata: Value, spec: &Value) -> Op {
    let Key { namespace, name } = cx.key;
    if metadata.get("labels").is_none() {
        metadata["labels"] = labels();
    }
    metadata["name"] = (**name).into();
    metadata["namespace"] = (**namespace).into();
    let body = json!({"metadata": metadata, "spec": spec});
    Op::Create { kind: Kind::NetworkPolicy, namespace: namespace.to_string(), body }
}

/// The beginning of every change: it is the object that was seen.
fn unchanged(policy: &PolicyRef<'_>) -> Vec<Value> {
    vec![
        json!({"op": "test", "path": "/metadata/uid", "value": policy.uid}),
        json!({"op": "test", "path": "/metadata/resourceVersion", "value": policy.version.to_string()}),
    ]
}

fn edit(cx: &Context<'_>, operations: Vec<Value>) -> Op {
    Op::Edit { kind: Kind::NetworkPolicy, key: cx.key.clone(), operations: operations.into() }
}

pub(super) fn set_spec(cx: &Context<'_>, policy: &PolicyRef<'_>, spec: &Value) -> Op {
    let mut operations = unchanged(policy);
    operations.push(json!({"op": "add", "path": "/spec", "value": spec}));
    edit(cx, operations)
}

/// Sets the spec in one write with labels and owner, which may be another card's, and with what it says of its declarations.
fn take(cx: &Context<'_>, policy: &PolicyRef<'_>, card: &CardRef<'_>, wanted: &Wanted) -> Op {
    let mut operations = unchanged(policy);
    let metadata = of_card(card, wanted.says.as_deref());
    operations.extend(
        ["labels", "ownerReferences"]
            .map(|member| json!({"op": "add", "path": format!("/metadata/{member}"), "value": metadata[member]})),
    );
    if !wanted.says_the_same(policy) {
        let annotations = metadata.get("annotations").cloned().unwrap_or_else(|| json!({}));
        operations.push(json!({"op": "add", "path": "/metadata/annotations", "value": annotations}));
    }
    operations.push(json!({"op": "add", "path": "/spec", "value": wanted.spec}));
    edit(cx, operations)
}

/// The same of one that the Go operator made: what it wrote is nobody's any more (measured: labels that it had written stayed, and a second
/// controller is refused).
fn take_over(cx: &Context<'_>, policy: &PolicyRef<'_>, card: &CardRef<'_>, wanted: &Wanted) -> Op {
    let Op::Edit { kind, key, mut operations } = take(cx, policy, card, wanted) else {
        return take(cx, policy, card, wanted);
    };
    if let Some(list) = operations.as_array_mut() {
        list.push(json!({"op": "add", "path": "/metadata/managedFields", "value": [{}]}));
    }
    Op::Edit { kind, key, operations }
}

pub(super) fn delete(cx: &Context<'_>, policy: &PolicyRef<'_>) -> Plan {
    Plan::of(vec![Op::Delete { kind: Kind::NetworkPolicy, key: cx.key.clone(), uid: policy.uid.to_owned() }])
}

pub(super) fn foreign(cx: &Context<'_>, policy: &PolicyRef<'_>, effect: &str) -> Plan {
    let Key { namespace, name } = cx.key;
    let message = format!(
        "NetworkPolicy {name} is not Drawbridge's, so it is left as it is, and {effect}. What to do: put what it opens into a policy of another \
         name, then: kubectl -n {namespace} delete networkpolicy {name}"
    );
    Plan::of(vec![report(cx, policy, Reason::NameConflict, message, String::new())])
}
