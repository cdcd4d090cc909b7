//! The graph: objects of KAOS and what they name; pure.

use std::collections::{BTreeMap, BTreeSet};

use serde::Serialize;
use serde_json::Value;

use super::live::{Outcome, Tried};
use crate::api::kaos_tools::models;
use crate::api::kaos_tools::read::{self, Looked};
use crate::api::kaos_tools::shape::{Mode, Model, Offer, Runtime};
use crate::cli::survey::text;
use crate::cli::tool_names;
use crate::store::Kind;
use crate::workloads::kaos::names::{PORT, PORT_OLLAMA};

/// Which object.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub(super) struct Id {
    pub(super) namespace: String,
    /// `Agent`, `ModelAPI` or `MCPServer`, all of `kaos.tools`.
    pub(super) kind: &'static str,
    pub(super) name: String,
}

/// How an object stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum State {
    /// It serves.
    Ready,
    /// It does not yet, or no more.
    NotReady,
    /// Something is wrong with it.
    Faulty,
    /// It is named, and is not there.
    Missing,
    /// Nobody says: it stands in a manifest.
    Written,
    /// It is named, and its kind may not be seen.
    Unseen,
}

/// An object.
#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Node {
    #[serde(flatten)]
    pub(super) id: Id,
    /// What it is, in a word or two: a mode, a runtime, a model.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub(super) what: String,
    pub(super) state: State,
    /// Why it is not ready.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub(super) why: String,
    /// Models that a ModelAPI offers, where that is held against agents.
    #[serde(skip)]
    pub(super) offers: Option<Vec<String>>,
    /// It has a Service.
    #[serde(skip)]
    pub(super) exposed: bool,
    /// The port of its Service.
    #[serde(skip)]
    pub(super) port: u16,
}

/// What one object names of another.
#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Edge {
    pub(super) from: Id,
    pub(super) to: Id,
    /// `asks`, `uses` or `calls`.
    pub(super) how: &'static str,
    /// The model that is asked for.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub(super) label: String,
    /// What is wrong with it.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub(super) wrong: String,
    /// The model is held against what is offered.
    #[serde(skip)]
    checked: bool,
    /// What came of it, where it was tried.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) tried: Option<Tried>,
}

impl Edge {
    /// It was tried and does not lead where it should.
    pub(super) fn is_broken(&self) -> bool {
        self.tried.as_ref().is_some_and(|tried| tried.outcome == Outcome::Broken)
    }
}

/// Everything.
#[derive(Debug, Clone, Default, Serialize)]
pub(super) struct Graph {
    #[serde(serialize_with = "values")]
    pub(super) nodes: BTreeMap<Id, Node>,
    pub(super) edges: Vec<Edge>,
    /// Kinds that may not be seen: that none is here says nothing.
    #[serde(skip)]
    pub(super) unread: BTreeSet<&'static str>,
}

fn values<S: serde::Serializer>(nodes: &BTreeMap<Id, Node>, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_seq(nodes.values())
}

impl Graph {
    /// Adds an object; `namespace` is that of one that names none, `live` whether its status is somebody's word.
    pub(super) fn take(&mut self, kind: Kind, object: &Value, namespace: &str, live: bool) {
        let own = text(object, "/metadata/namespace");
        let own = if own.is_empty() { namespace } else { own }.to_owned();
        let id = |kind: Kind, name: &str| Id { namespace: own.clone(), kind: kind.as_str(), name: name.to_owned() };
        let me = id(kind, text(object, "/metadata/name"));
        let mut node = Node {
            id: me.clone(),
            what: String::new(),
            state: State::Written,
            why: String::new(),
            offers: None,
            exposed: true,
            port: PORT,
        };
        let faults = match kind {
            Kind::KaosAgent => {
                let looked = read::agent(object);
                let edge = |to: Id, how, label: String, checked| Edge {
                    from: me.clone(),
                    to,
                    how,
                    label,
                    wrong: String::new(),
                    checked,
                    tried: None,
                };
                let value = &looked.value;
                let model = match &value.model {
                    Model::Named(model) => model.clone(),
                    Model::Variable => String::new(),
                };
                if !value.model_api.is_empty() {
                    let checked = looked.checks_model() && !model.is_empty();
                    self.edges.push(edge(id(Kind::ModelApi, &value.model_api), "asks", model, checked));
                }
                let tools =
                    value.mcp_servers.iter().map(|name| edge(id(Kind::McpServer, name), "uses", String::new(), false));
                self.edges.extend(tools);
                let peers =
                    value.access.iter().map(|name| edge(id(Kind::KaosAgent, name), "calls", String::new(), false));
                self.edges.extend(peers);
                node.exposed = value.expose;
                words(&looked)
            }
            Kind::ModelApi => {
                let looked = read::model_api(object);
                (node.what, node.port) = match looked.value.mode {
                    Mode::Proxy => ("Proxy".to_owned(), PORT),
                    Mode::Hosted => ("Hosted".to_owned(), PORT_OLLAMA),
                };
                let offered: Vec<String> = looked.value.offered().into_iter().map(str::to_owned).collect();
                let shown = match &looked.value.proxy {
                    Some(proxy) if looked.value.mode == Mode::Proxy && !proxy.offers.is_empty() => {
                        proxy.offers.iter().map(with_fallbacks).collect::<Vec<_>>().join(", ")
                    }
                    _ => offered.join(", "),
                };
                if !shown.is_empty() {
                    node.what = format!("{}: {shown}", node.what);
                }
                node.offers = Some(offered).filter(|offered| looked.checks_model() && !offered.is_empty());
                words(&looked)
            }
            _ => {
                let looked = read::mcp_server(object);
                node.what = match &looked.value.runtime {
                    Runtime::Registered(name) => name.clone(),
                    Runtime::Custom => "custom".to_owned(),
                    Runtime::Package(package) => format!("package {package}"),
                };
                if live {
                    node.what = tool_names::beside(std::mem::take(&mut node.what), object);
                }
                words(&looked)
            }
        };
        if let Some(fault) = faults {
            (node.state, node.why) = (State::Faulty, fault);
        } else if live {
            let ready = object.pointer("/status/ready").and_then(Value::as_bool).unwrap_or(false);
            node.state = if ready { State::Ready } else { State::NotReady };
            if !ready {
                let said = [text(object, "/status/phase"), text(object, "/status/message")];
                node.why = said.into_iter().filter(|text| !text.is_empty()).collect::<Vec<_>>().join(": ");
                if node.why.is_empty() {
                    node.why = "no controller has written its status yet".to_owned();
                }
            }
        }
        self.nodes.insert(me, node);
    }

    /// Once all are there: what is named and missing, and which edges are wrong.
    pub(super) fn settle(&mut self) {
        let named: BTreeSet<Id> = self.edges.iter().map(|edge| edge.to.clone()).collect();
        for id in named {
            let (state, why) = match self.unread.contains(id.kind) {
                true => (State::Unseen, "may not be seen with your rights"),
                false => (State::Missing, "is not there"),
            };
            let missing = Node {
                id: id.clone(),
                what: String::new(),
                state,
                why: why.to_owned(),
                offers: None,
                exposed: true,
                port: PORT,
            };
            self.nodes.entry(id).or_insert(missing);
        }
        for edge in &mut self.edges {
            let to = &self.nodes[&edge.to];
            edge.wrong = match (to.state, edge.how) {
                (State::Missing, _) => "is not there".to_owned(),
                (_, "calls") if !to.exposed => "is not exposed, so it is left out".to_owned(),
                (_, "asks")
                    if edge.checked
                        && to.offers.as_ref().is_some_and(|offers| !models::allows(offers, &edge.label)) =>
                {
                    format!("does not offer {}", edge.label)
                }
                _ => String::new(),
            };
        }
    }

    /// Whether something of it needs a person.
    pub(super) fn needs_attention(&self) -> bool {
        let is_wrong = |node: &Node| !matches!(node.state, State::Ready | State::Written | State::Unseen);
        self.nodes.values().any(is_wrong) || self.edges.iter().any(|edge| !edge.wrong.is_empty() || edge.is_broken())
    }

    /// The edges of an object, in the order written.
    pub(super) fn edges_of<'g>(&'g self, id: &'g Id) -> impl Iterator<Item = &'g Edge> {
        self.edges.iter().filter(move |edge| edge.from == *id)
    }
}

/// A model, and who answers in its place.
fn with_fallbacks(offer: &Offer) -> String {
    match &*offer.fallbacks {
        [] => offer.name.clone(),
        others => format!("{} (else {})", offer.name, others.join(", else ")),
    }
}

/// What is wrong with an object, in one line.
fn words<T>(looked: &Looked<T>) -> Option<String> {
    let mut faults = looked.faults.iter().chain(&looked.conflicts);
    let first = faults.next()?;
    let more = faults.count();
    let rest = if more > 0 { format!(" (and {more} more)") } else { String::new() };
    Some(format!("{} {}{rest}", first.path, first.sentence))
}
