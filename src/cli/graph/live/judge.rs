//! What an answer says of an edge; pure.
//!
//! In: what came back of a question, or that nothing did. Out: [`Tried`]. Promise: any answer gets a sentence of ours; of what was answered only
//! names of models and tools stand in it, each in at most [`NAME`] bytes of printable text.

use std::time::Duration;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::adapters::tools::NoAnswer;
use crate::api::kaos_tools::models;
use crate::cli::cluster::through::{End, Said, Silent};
use crate::domain::printable::printable;

/// Where an agent of KAOS says what it is.
pub(super) const CARD: &str = "/.well-known/agent";
/// Where it says that it lives.
pub(super) const HEALTH: &str = "/health";
/// Where a proxy, or Ollama, lists what may be asked for.
pub(super) const MODELS: &str = "/v1/models";
/// Bytes of a name.
const NAME: usize = 64;
/// Names in one sentence.
const NAMES: usize = 6;

/// What came of an edge.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(in crate::cli::graph) enum Outcome {
    /// It leads where it should.
    Works,
    /// It does not.
    Broken,
    /// Nobody can tell from here.
    Unknown,
}

/// That, and why.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(in crate::cli::graph) struct Tried {
    pub(in crate::cli::graph) outcome: Outcome,
    pub(in crate::cli::graph) why: String,
}

/// Whom an edge leads to.
#[derive(Debug, Clone)]
pub(super) struct Target {
    pub(super) service: String,
    pub(super) port: u16,
}

/// What came back of one question.
#[derive(Debug)]
pub(super) struct Reply {
    pub(super) path: &'static str,
    /// What the person has to be allowed on `services/proxy`.
    pub(super) verb: &'static str,
    pub(super) said: Result<Said, Silent>,
}

/// The models that a ModelAPI lists.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Models(Vec<String>);

fn works(why: impl Into<String>) -> Tried {
    Tried { outcome: Outcome::Works, why: why.into() }
}

fn broken(why: impl Into<String>) -> Tried {
    Tried { outcome: Outcome::Broken, why: why.into() }
}

fn unknown(why: impl Into<String>) -> Tried {
    Tried { outcome: Outcome::Unknown, why: why.into() }
}

/// The target was not done in that time; `heard`: something of an answer had come.
pub(super) fn late(target: &Target, patience: Duration, heard: bool) -> Tried {
    let (service, seconds) = (&target.service, patience.as_secs());
    if heard {
        return broken(format!("Service {service} gave no whole answer within {seconds} s"));
    }
    // What keeps the API server out without a word may let agents in.
    unknown(format!(
        "nothing came from Service {service} within {seconds} s: it hangs, or a NetworkPolicy keeps the API server out"
    ))
}

/// Whether the target answers, and has nothing at that path.
pub(super) fn is_absent(reply: &Reply) -> bool {
    let Ok(said) = &reply.said else { return false };
    [404, 405].contains(&said.status) && status(said).is_none()
}

/// What the API server says itself, in place of the Service.
#[derive(Deserialize)]
struct Status {
    kind: String,
    #[serde(rename = "apiVersion")]
    version: String,
    #[serde(default)]
    message: String,
}

fn status(said: &Said) -> Option<Status> {
    let status: Status = serde_json::from_slice(&said.body).ok()?;
    (said.status >= 400 && status.kind == "Status" && status.version == "v1").then_some(status)
}

/// The body of an answer with 200 that came whole, or what is wrong.
fn body<'r>(target: &Target, reply: &'r Reply) -> Result<&'r [u8], Tried> {
    let service = &target.service;
    let said = reply.said.as_ref().map_err(|Silent| unknown("the API server gave no answer, so nobody was asked"))?;
    if let Some(Status { message, .. }) = status(said) {
        return Err(by_the_api_server(target, reply, said.status, &message));
    }
    let path = reply.path;
    match said.status {
        200..=299 => {}
        code @ (401 | 403) => {
            let why = format!(
                "Service {service} answers {code} at {path}: it lives and wants a credential, and none is sent from here"
            );
            return Err(unknown(why));
        }
        code @ 300..=399 => {
            return Err(broken(format!(
                "Service {service} answers {code} at {path}, a redirect, and nobody follows it"
            )));
        }
        code => return Err(broken(format!("Service {service} answers {code} at {path}"))),
    }
    match said.end {
        End::Whole => Ok(&said.body),
        End::TooLong => Err(broken(format!("the answer of Service {service} at {path} is longer than 1 MiB"))),
        End::BrokeOff => Err(broken(format!("the answer of Service {service} at {path} broke off"))),
    }
}

/// The API server could not, or would not, carry the question.
fn by_the_api_server(target: &Target, reply: &Reply, code: u16, message: &str) -> Tried {
    let Target { service, port } = target;
    let says = |words: &str| message.contains(words);
    match code {
        403 if says("services/proxy") => unknown(format!(
            "you may not {} services/proxy here, so Service {service} was not asked; ClusterRole edit has that right",
            reply.verb
        )),
        404 => broken(format!("there is no Service {service}, or none with port {port}")),
        503 if says("no endpoints available") => broken(format!("no Pod behind Service {service} is ready")),
        // What keeps the API server out may let agents in.
        _ if ["timeout", "deadline exceeded", "no route to host", "network is unreachable"].into_iter().any(says) => {
            unknown(format!(
                "the API server does not reach the Pod behind Service {service}: a NetworkPolicy may keep it out and let agents in"
            ))
        }
        _ if says("connection refused") => {
            broken(format!("a Pod behind Service {service} is ready, and nobody listens at its port {port}"))
        }
        _ if says("EOF") || says("reset by peer") => {
            broken(format!("Service {service} closed the connection without an answer"))
        }
        _ if says("malformed HTTP") || says("transport connection broken") => {
            broken(format!("what Service {service} answers at port {port} is not HTTP"))
        }
        code => unknown(format!("the API server answers {code} in place of Service {service}")),
    }
}

/// Names of others, bounded.
fn shown(names: &[String]) -> String {
    let mut list = names.iter().take(NAMES).map(|name| printable(name, NAME)).collect::<Vec<_>>().join(", ");
    if names.len() > NAMES {
        list.push_str(&format!(" and {} more", names.len() - NAMES));
    }
    list
}

/// An agent: its card, or where it has none, that it lives.
pub(super) fn agent(target: &Target, card: &Reply, health: Option<&Reply>) -> Tried {
    let Target { service, .. } = target;
    if let Some(health) = health {
        return match body(target, health) {
            Ok(_) => works(format!("answers at {HEALTH}, and has no card at {CARD}")),
            Err(tried) => tried,
        };
    }
    match body(target, card) {
        Ok(bytes) => match serde_json::from_slice::<Value>(bytes) {
            Ok(Value::Object(card)) if card.get("name").is_some_and(Value::is_string) => {
                works(format!("answers with its card at {CARD}"))
            }
            _ => broken(format!("what Service {service} answers at {CARD} is not the card of an agent")),
        },
        Err(tried) => tried,
    }
}

/// One page of a list of models, of which only the names are read.
#[derive(Deserialize)]
struct List {
    data: Vec<Model>,
}

#[derive(Deserialize)]
struct Model {
    id: String,
}

/// A ModelAPI: what it lists.
pub(super) fn models(target: &Target, reply: &Reply) -> Result<Models, Tried> {
    let bytes = body(target, reply)?;
    let list: List = serde_json::from_slice(bytes)
        .map_err(|_| broken(format!("what Service {} answers at {MODELS} is not a list of models", target.service)))?;
    Ok(Models(list.data.into_iter().map(|model| model.id).collect()))
}

impl Models {
    /// Whether a model may be asked for; `takes`: what the ModelAPI says it offers, patterns included.
    pub(super) fn has(&self, model: &str, takes: &[String]) -> Tried {
        let Self(all) = self;
        // What it says by name it has to list.
        let takes: Vec<_> = takes.iter().filter(|name| name.contains('*')).collect();
        let is = |name: &String| name == model || name.strip_suffix(":latest") == Some(model);
        match () {
            () if model.is_empty() => {
                works(format!("lists {} models; which one is asked for is not written", all.len()))
            }
            () if all.iter().any(is) => works(format!("lists {}", printable(model, NAME))),
            () if models::allows(all, model) || models::allows(&takes, model) => {
                works(format!("answers, and takes {} by a pattern", printable(model, NAME)))
            }
            () if all.is_empty() => broken(format!("lists no model, so {} is not there", printable(model, NAME))),
            () => broken(format!("does not list {}; it lists {}", printable(model, NAME), shown(all))),
        }
    }
}

/// Why no tools were listed.
#[derive(Debug)]
pub(super) enum NoTools {
    /// The question was not answered with 200.
    Reply(Reply),
    /// What was answered is no result.
    Answer(NoAnswer),
}

/// A tool server: what it lists, and whether there is more.
pub(super) fn tools(target: &Target, listed: Result<(Vec<String>, bool), NoTools>) -> Tried {
    let Target { service, .. } = target;
    match listed {
        Ok((names, _)) if names.is_empty() => broken(format!("Service {service} speaks MCP and offers no tool")),
        Ok((names, more)) => {
            let more = if more { " at least" } else { "" };
            works(format!("lists{more} {} tools: {}", names.len(), shown(&names)))
        }
        Err(NoTools::Answer(NoAnswer::Error(code))) => {
            broken(format!("Service {service} refuses to list its tools: JSON-RPC error {code}"))
        }
        Err(NoTools::Answer(_)) => {
            broken(format!("what Service {service} answers at {} is not MCP", super::tools::PATH))
        }
        Err(NoTools::Reply(reply)) if is_absent(&reply) => broken(format!(
            "Service {service} has nothing at {}, where agents ask for tools (MCP over streamable HTTP)",
            super::tools::PATH
        )),
        Err(NoTools::Reply(reply)) => match body(target, &reply) {
            Err(tried) => tried,
            Ok(_) => broken(format!("what Service {service} answers at {} is not MCP", super::tools::PATH)),
        },
    }
}

#[cfg(test)]
#[path = "tests.rs"]
mod tests;
