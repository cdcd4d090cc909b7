//! What has to be known of one object of KAOS before anything is decided about it.
//!
//! In: the object, the objects that it names, the platform's settings, the registry of tool runtimes. Out: what is to be made, or why nothing
//! can be or not yet, in the words that the original has for it. Promise: pure; what it says of a dependency is said once it has held for
//! [`HOLD`], unless nothing runs yet.

use std::time::Duration;

use serde_json::{Value, json};

use super::wiring::{self, HOLD, Named};
use crate::api::findings::{Fault, Findings};
use crate::api::kaos_tools::models::allows;
use crate::api::kaos_tools::read::{self, Alias, Looked};
use crate::api::kaos_tools::shape::{Mode, Model, Proxy};
use crate::api::owner::Owner;
use crate::controllers::agent::note;
use crate::controllers::agent::subject::Subject;
use crate::controllers::conditions;
use crate::domain::keys;
use crate::domain::printable::cut;
use crate::domain::reason::Reason;
use crate::store::objects::CustomRef;
use crate::store::{Kind, Reach};
use crate::workloads::kaos::compose::{ComposeFault, Composed, beside, route};
use crate::workloads::kaos::identity::Identity;
use crate::workloads::kaos::names::{CONFIG_FILE, PORT, PORT_OLLAMA, Role, config_map};
use crate::workloads::kaos::registry::{KEY, Registry, RuntimeFault};
use crate::workloads::kaos::restrict::policy;
use crate::workloads::kaos::settings::Settings;
use crate::workloads::kaos::variables::Ignored;
use crate::workloads::kaos::{agent as agents, mcp_server as tools, model_api as apis};

/// The longest name that is repeated in a message, in bytes: no object has a longer one.
const NAME: usize = 253;
/// The longest name of a list that is, and how many of them: whatever one object lists, the status of every object that names it stays small.
const LISTED: (usize, usize) = (128, 8);

/// Which of the original's words begin a message about what cannot be made.
const NOT_MADE: &str = "Failed to construct Deployment: ";

/// What is known of one object.
#[derive(Debug, Clone)]
pub(in crate::controllers::agent) struct Look {
    pub(in crate::controllers::agent) role: Role,
    pub(in crate::controllers::agent) findings: Findings,
    /// Two spellings that say different things; the new one won.
    pub(in crate::controllers::agent) conflicts: Vec<Fault>,
    /// Why nothing can be made.
    pub(in crate::controllers::agent) failed: Option<(Reason, String)>,
    /// What is to be made.
    pub(in crate::controllers::agent) composed: Option<Composed>,
    /// The other objects that are to be made: kind and body.
    pub(in crate::controllers::agent) others: Vec<(Kind, Value)>,
    /// The kind of those that stays as it is, whatever would be made.
    pub(in crate::controllers::agent) leaves: Option<Kind>,
    /// Why it is not made yet.
    pub(in crate::controllers::agent) waits: Option<(Reason, String)>,
    /// What it names and is missing or not ready; `None` of what names nothing.
    pub(in crate::controllers::agent) lacks: Option<Vec<(Reason, String)>>,
    /// How long what its status says of that stays as it is.
    pub(in crate::controllers::agent) hold: Option<Duration>,
    /// For later plans.
    pub(in crate::controllers::agent) wiring: Option<note::Wiring>,
    /// Where it is reached.
    pub(in crate::controllers::agent) endpoint: Option<String>,
    /// Where its ModelAPI is reached.
    pub(in crate::controllers::agent) model_api: Option<(String, String)>,
    pub(in crate::controllers::agent) route: RouteWish,
    /// Whether every Pod that reaches it may spend its provider's key; the inner `None`: nobody can tell.
    pub(in crate::controllers::agent) open: Option<Option<bool>>,
    /// Variables of the user's that do not count.
    pub(in crate::controllers::agent) ignored: Vec<Ignored>,
}

/// Whether there is to be a route.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::controllers::agent) enum RouteWish {
    /// No.
    No,
    /// It would be, but Gateway API is not installed.
    Absent,
    /// It would be, but whether Gateway API is installed is not known.
    Unknown,
    /// Yes.
    Wanted,
}

impl Look {
    /// What was read, before anything is made of it.
    fn of<T>(role: Role, looked: &Looked<T>) -> Self {
        let findings = Findings { faults: looked.faults.clone(), notes: looked.notes.clone(), ..Findings::default() };
        Self {
            role,
            findings,
            conflicts: looked.conflicts.clone(),
            failed: None,
            composed: None,
            others: Vec::new(),
            leaves: None,
            waits: None,
            lacks: None,
            hold: None,
            wiring: None,
            endpoint: None,
            model_api: None,
            route: RouteWish::No,
            open: None,
            ignored: Vec::new(),
        }
    }

    /// Whether an object of that kind stays as it is although none is wanted: also a route for as long as routes cannot be read, since that says
    /// nothing of whether one is wanted.
    pub(in crate::controllers::agent) fn is_left(&self, kind: Kind) -> bool {
        self.leaves == Some(kind) || (kind == Kind::HttpRoute && self.route == RouteWish::Unknown)
    }

    fn made(&mut self, composed: Result<Composed, ComposeFault>) {
        match composed {
            Ok(composed) => {
                self.ignored.clone_from(&composed.ignored);
                self.composed = Some(composed);
            }
            Err(fault) => self.failed = Some((Reason::InvalidSpec, format!("{NOT_MADE}{fault}"))),
        }
    }

    /// The route, and where it is reached.
    fn reached(&mut self, subject: &Subject<'_>, identity: &Identity, port: u16, timeout: Option<&str>) {
        let (settings, store) = (settings(subject), subject.cx.store);
        self.endpoint =
            Some(self.role.endpoint((identity.namespace(), identity.name()), port, &settings.cluster_domain));
        if !settings.gateway.enabled {
            return;
        }
        self.route = match store.reach(Kind::HttpRoute) {
            Reach::Listed => RouteWish::Wanted,
            Reach::Absent => RouteWish::Absent,
            Reach::Unknown => RouteWish::Unknown,
        };
        if self.route == RouteWish::Wanted {
            let namespace = settings.gateway.namespace.as_deref().unwrap_or(store.operator_namespace());
            let spec = route(self.role, identity, (port, timeout), (&settings.gateway, namespace));
            let name = self.role.route(identity.name());
            self.others.push((Kind::HttpRoute, beside(self.role, identity, &name, ("spec", spec))));
        }
    }
}

fn settings<'a>(subject: &Subject<'a>) -> &'a Settings {
    subject.cx.facts.platform.kaos()
}

fn identity(subject: &Subject<'_>) -> Identity {
    let key = subject.cx.key;
    Identity {
        owner: Owner { name: key.name.to_string(), namespace: key.namespace.to_string(), uid: subject.uid.to_owned() },
        labels: subject.seen.labels.clone(),
        annotations: subject.seen.annotations.clone(),
    }
}

/// An Agent.
pub(super) fn agent(subject: &Subject<'_>) -> Look {
    let looked = read::agent(&subject.object);
    let mut look = Look::of(Role::Agent, &looked);
    if subject.seen.over.is_some() {
        // Nothing of it is read, and nothing of what it names is known.
        return look;
    }
    let (store, namespace, spec) = (subject.cx.store, &*subject.cx.key.namespace, &*subject.seen.spec);
    let agent = &looked.value;
    let (settings, identity) = (settings(subject), identity(subject));
    let named = wiring::dependencies(store, namespace, spec);
    look.waits = named.iter().find_map(|one| held(one, agent.waits));
    look.lacks = Some(named.iter().filter_map(lack).collect());
    settle(subject, &mut look, namespace, spec);
    let api = named.first().and_then(|one| one.found);
    let model_port = if is_hosted(subject, api) { PORT_OLLAMA } else { PORT };
    if agent.model_api.len() <= NAME {
        let url = Role::ModelApi.endpoint((namespace, &agent.model_api), model_port, &settings.cluster_domain);
        look.model_api = Some((agent.model_api.clone(), url));
    }
    if !look.findings.faults.is_empty() {
        return look;
    }
    let readable = api.filter(|api| api.seen.over.is_none());
    if let (Some(api), true, Model::Named(model)) = (readable, looked.checks_model(), &agent.model) {
        let object = api.seen.object(namespace, api.name, api.uid);
        let theirs = read::model_api(&object);
        let offered = theirs.value.offered();
        if theirs.checks_model() && theirs.faults.is_empty() && !offered.is_empty() && !allows(&offered, model) {
            let text = format!(
                "model \"{}\" not supported by ModelAPI \"{}\" (supported: [{}])",
                short(model),
                short(&agent.model_api),
                listed(&offered)
            );
            look.failed = Some((Reason::ModelNotOffered, text));
            return look;
        }
    }
    // What is not made yet is composed once it is.
    if look.waits.is_none() || subject.deployment.is_some() {
        let peers = wiring::peers(store, namespace, spec).into_iter().map(|peer| peer.name.to_string()).collect();
        look.made(agents::compose(&identity, agent, &agents::Wiring { model_port, peers }, settings));
    }
    if agent.expose {
        look.reached(subject, &identity, PORT, agent.timeout.as_deref());
    }
    look
}

/// Whether the ModelAPI of an Agent is a hosted one. Where there is none to be read, it is what it was: another port would make Pods anew that ask
/// where nobody listens.
fn is_hosted(subject: &Subject<'_>, api: Option<CustomRef<'_>>) -> bool {
    let ends = |url: Option<&Value>| {
        let url = url.and_then(Value::as_str)?;
        Some(url.ends_with(&format!(":{PORT_OLLAMA}")))
    };
    if let Some(api) = api.filter(|api| api.seen.over.is_none()) {
        return api.seen.spec.get("mode").and_then(Value::as_str) == Some("Hosted");
    }
    let known = ends(subject.seen.status.pointer("/linkedResources/modelapiEndpoint"));
    known.or_else(|| ends(api?.seen.status.get("endpoint"))).unwrap_or_default()
}

/// A name as messages repeat it.
fn short(name: &str) -> String {
    cut(name.to_owned(), NAME)
}

/// Names as messages list them: the first, each cut, and how many more there are.
fn listed(names: &[&str]) -> String {
    let (longest, most) = LISTED;
    let mut text = names.iter().take(most).map(|name| cut((*name).to_owned(), longest)).collect::<Vec<_>>().join(" ");
    if names.len() > most {
        text.push_str(&format!(" and {} more", names.len() - most));
    }
    text
}

/// Why an Agent that names it is not made yet.
fn held(one: &Named<'_>, waits: bool) -> Option<(Reason, String)> {
    let kind = one.kind.as_str();
    match one.found {
        None => Some((Reason::DependencyMissing, format!("{kind} {} not found", short(one.name)))),
        Some(_) if !waits || one.is_ready() => None,
        Some(_) if one.kind == Kind::ModelApi => Some((Reason::DependencyNotReady, format!("{kind} is not ready"))),
        Some(_) => Some((Reason::DependencyNotReady, format!("{kind} {} is not ready", one.name))),
    }
}

/// What is to be said of it once the Agent runs.
fn lack(one: &Named<'_>) -> Option<(Reason, String)> {
    let kind = one.kind.as_str();
    match one.found {
        None => Some((Reason::DependencyMissing, format!("{kind} {} does not exist", short(one.name)))),
        Some(_) if one.is_ready() => None,
        Some(_) => Some((Reason::DependencyNotReady, format!("{kind} {} is not ready", one.name))),
    }
}

/// What is written of dependencies now, and what is only noted because it may be otherwise in a moment.
fn settle(subject: &Subject<'_>, look: &mut Look, namespace: &str, spec: &Value) {
    let list = subject.seen.status.get("conditions").unwrap_or(&Value::Null);
    let said = conditions::stored(list, super::status::DEPENDENCIES).and_then(|one| one.get("status")?.as_str());
    let ready = look.lacks.as_ref().is_some_and(Vec::is_empty);
    let now = subject.cx.now;
    let gated = subject.deployment.is_none();
    // What gets better is said at once, what gets worse once it has stayed so.
    let differs = !gated && said == Some("True") && !ready;
    let since = subject.note().and_then(|note| note.wiring?.unsettled).unwrap_or(now);
    let left = HOLD.saturating_sub(now.saturating_sub(since));
    look.hold = (differs && !left.is_zero()).then_some(left);
    look.wiring = Some(note::Wiring {
        digest: wiring::digest(subject.cx.store, namespace, spec),
        ready: ready || look.hold.is_some(),
        gated,
        unsettled: look.hold.map(|_| since),
    });
}

/// A ModelAPI.
pub(super) fn model_api(subject: &Subject<'_>) -> Look {
    let looked = read::model_api(&subject.object);
    let mut look = Look::of(Role::ModelApi, &looked);
    let api = &looked.value;
    let identity = identity(subject);
    if !look.findings.faults.is_empty() {
        return look;
    }
    let port = if api.mode == Mode::Hosted { PORT_OLLAMA } else { PORT };
    if api.mode == Mode::Proxy {
        look.open = Some(apis::is_open(api));
    }
    if let Some(text) = api.proxy.as_ref().and_then(stranger) {
        look.failed = Some((Reason::InvalidSpec, text));
        return look;
    }
    look.made(apis::compose(&identity, api, settings(subject)));
    if let Some(text) = look.composed.as_ref().and_then(|composed| composed.config.clone()) {
        let body = beside(look.role, &identity, &config_map(identity.name()), ("data", json!({CONFIG_FILE: text})));
        look.others.push((Kind::ConfigMap, body));
    }
    restrict(subject, &mut look, &identity, port);
    look.reached(subject, &identity, port, api.timeout.as_deref());
    look
}

/// That its configuration names a model that its list does not have: who asks for one of the list would be refused by the proxy, and who asks
/// for that one by us.
fn stranger(proxy: &Proxy) -> Option<String> {
    let strangers = read::strangers(proxy);
    let first = strangers.first()?;
    let models: Vec<_> = proxy.models.iter().map(String::as_str).collect();
    Some(format!("model_name \"{}\" in configYaml not found in models list [{}]", short(first), listed(&models)))
}

/// Lets only those in that ask it, where the platform has it so.
fn restrict(subject: &Subject<'_>, look: &mut Look, identity: &Identity, port: u16) {
    let (settings, store) = (settings(subject), subject.cx.store);
    if !settings.restrict_model_apis {
        return;
    }
    let users = wiring::users(store, identity.namespace(), identity.name());
    let gateway = &settings.gateway;
    let through = gateway.enabled.then(|| gateway.namespace.as_deref().unwrap_or(store.operator_namespace()));
    let unread = wiring::unread(store, identity.namespace()).is_some();
    look.wiring = Some(wiring::of_users(&users, unread));
    // An Agent that cannot be read may be one of those that are let in.
    if unread && subject.others.iter().any(|other| other.kind == Kind::NetworkPolicy && other.found.is_some()) {
        look.leaves = Some(Kind::NetworkPolicy);
        return;
    }
    let spec = policy(identity.name(), port, &users, through);
    look.others.push((Kind::NetworkPolicy, beside(look.role, identity, &subject.made.name, ("spec", spec))));
}

/// An MCPServer.
pub(super) fn mcp_server(subject: &Subject<'_>) -> Look {
    let looked = read::mcp_server(&subject.object);
    let mut look = Look::of(Role::McpServer, &looked);
    let identity = identity(subject);
    if !look.findings.faults.is_empty() {
        return look;
    }
    let old = [Alias::ToolsText, Alias::ToolsString, Alias::ToolsSecret].into_iter().any(|alias| looked.uses(alias));
    look.made(tools::compose(&identity, (&looked.value, old), &registry(subject), settings(subject)));
    look.reached(subject, &identity, PORT, looked.value.timeout.as_deref());
    look
}

fn registry(subject: &Subject<'_>) -> Result<Registry, RuntimeFault> {
    let store = subject.cx.store;
    let namespace = store.registry_namespace();
    let found = store.config_map(namespace, keys::CONFIG_MAP_MCP_RUNTIMES);
    let (seen, _) = found.ok_or_else(|| RuntimeFault::NoRegistry(namespace.to_owned()))?;
    Registry::read(seen.data.get(KEY).ok_or(RuntimeFault::NoKey)?)
}
