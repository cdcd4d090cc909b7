//! The objects that run an Agent, as they are applied: whole, with a digest of themselves.
//!
//! In: the Agent, its image, what its Deployment carries for enrolment. Out: bodies for one server-side apply each.
//! Promise: equal wants give equal digests, whatever the order of maps, so that nothing is applied twice.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::claim::{Claim, Claims};
use super::drift;
use super::enrol::{Unsettled, carried};
use super::subject::Subject;
use super::turns::{in_turn, is_of};
use crate::api::digest;
use crate::api::json::without_nulls;
use crate::controllers::scaffold::plan::{Op, UNMADE};
use crate::domain::keys;
use crate::store::{AgentDeploymentSeen, Key, Kind};
use crate::workloads::workload;

/// One object as it is wanted.
#[derive(Debug, Clone, PartialEq)]
pub(in crate::controllers::agent) struct Own {
    pub(in crate::controllers::agent) kind: Kind,
    /// Where it is.
    pub(in crate::controllers::agent) key: Key,
    /// Without apiVersion, kind and what says which object is meant.
    body: Value,
    /// Of the body.
    pub(in crate::controllers::agent) digest: String,
}

/// What is wanted for one Agent.
#[derive(Debug, Clone, PartialEq)]
pub(in crate::controllers::agent) struct Wanted {
    pub(in crate::controllers::agent) deployment: Own,
    /// `None`: the Agent has no ports.
    pub(in crate::controllers::agent) service: Option<Own>,
    /// `None`: its Pods name their account.
    pub(in crate::controllers::agent) account: Option<Own>,
    /// What else is wanted.
    pub(in crate::controllers::agent) others: Vec<Own>,
}

/// How an object of ours stands against what is wanted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::controllers::agent) enum Standing {
    /// As wanted.
    Stands,
    /// It was never applied, or something else was.
    Other,
    /// It was applied, and somebody has taken these fields since.
    Drifted(Vec<String>),
}

impl Wanted {
    /// What is wanted once the image is known.
    pub(in crate::controllers::agent) fn of(
        subject: &Subject<'_>,
        image: &str,
        claims: &Claims<'_>,
    ) -> Result<Self, Unsettled> {
        let mut request = (subject.face.request)(subject, image);
        request.image = Some(image.to_owned());
        let ours = subject.deployment.filter(|_| matches!(claims.deployment, Claim::Ours(_)));
        // A selector cannot be changed: one that an earlier operator chose stays, and the Pods keep its labels.
        if let Some(selector) = ours.and_then(|_| subject.own_deployment()).map(|own| &own.selector)
            && (request.selector.iter().all(|(key, value)| selector.get(key) == Some(value))
                || subject.was_handed_over())
        {
            request.selector = selector.clone();
        }
        if request.replicas.is_none() && is_scaled_by_others(subject) {
            let own = subject.own_deployment().filter(|own| owns_replicas(own));
            request.replicas = ours.filter(|_| own.is_some()).map(|found| found.seen.rollout.wanted);
        }
        let mut rendered = workload::render(&request, image, subject.settings().openshift);
        let template = &mut rendered.deployment["spec"]["template"];
        let carried = carried(subject, ours.map(|found| found.seen), template)?;
        carried.put(template);
        let own = |kind, body| Own::new(kind, subject.made.clone(), body);
        let bodies = subject.look.as_ref().map_or(&[][..], |look| &look.others);
        let other = |(kind, body): &(Kind, Value)| {
            let key = subject.others.iter().find(|other| other.kind == *kind)?.key.clone();
            Some(Own::new(*kind, key, body.clone()))
        };
        Ok(Self {
            others: bodies.iter().filter_map(other).collect(),
            deployment: own(Kind::Deployment, rendered.deployment),
            service: rendered.service.map(|body| own(Kind::Service, body)),
            account: rendered.account.map(|body| own(Kind::ServiceAccount, body)),
        })
    }

    /// The Pod template.
    pub(in crate::controllers::agent) fn template(&self) -> &Value {
        &self.deployment.body["spec"]["template"]
    }

    /// The selector of the Pods.
    pub(in crate::controllers::agent) fn selector(&self) -> BTreeMap<String, String> {
        let labels = self.deployment.body.pointer("/spec/selector/matchLabels").and_then(Value::as_object);
        let texts =
            labels.into_iter().flatten().filter_map(|(key, value)| Some((key.clone(), value.as_str()?.to_owned())));
        texts.collect()
    }
}

/// Whether somebody else decides how many Pods there are.
fn is_scaled_by_others(subject: &Subject<'_>) -> bool {
    subject.seen.annotations.get(keys::ANNOTATION_REPLICAS_EXTERNAL).is_some_and(|value| value == "true")
}

/// Whether the number of Pods is ours alone, because nobody has written one since we did, or an earlier operator whose fields become ours. A field
/// that its only owner leaves out goes, and the API server puts 1 in its place: until somebody else writes a number, the last one stays.
fn owns_replicas(own: &AgentDeploymentSeen) -> bool {
    let Some(fields) = own.fields.as_deref() else { return own.written_before.is_some() };
    let fields: Option<Value> = serde_json::from_str(fields).ok();
    fields.is_some_and(|fields| fields.pointer("/f:spec/f:replicas").is_some())
}

impl Own {
    fn new(kind: Kind, key: Key, mut body: Value) -> Self {
        // A member that is null means what an absent one means, and cannot be owned.
        without_nulls(&mut body);
        if let Some(members) = body.as_object_mut() {
            members.remove("apiVersion");
            members.remove("kind");
        }
        let digest = digest::of_json(&body);
        body["metadata"]["annotations"][keys::ANNOTATION_CONTENT_DIGEST] = json!(digest);
        Self { kind, key, body, digest }
    }

    /// The apply that makes it so; `None` when somebody else's object is in the way or ours is on its way out.
    pub(in crate::controllers::agent) fn apply(&self, claim: Claim<'_>) -> Option<Op> {
        let mut body = self.body.clone();
        match claim {
            Claim::Absent => body["metadata"]["resourceVersion"] = json!(UNMADE),
            Claim::Ours(uid) => body["metadata"]["uid"] = json!(uid),
            Claim::Leaving | Claim::Foreign => return None,
        }
        Some(Op::Own { kind: self.kind, key: self.key.clone(), body })
    }

    /// Says in that apply that it was its turn, for whoever leads next, and which generation it makes.
    pub(in crate::controllers::agent) fn takes_its_turn(&self, op: &mut Op, generation: i64) {
        if let Op::Own { body, .. } = op {
            body["metadata"]["annotations"][keys::ANNOTATION_CONTENT_DIGEST] = json!(in_turn(&self.digest, generation));
        }
    }

    /// Whether it is what was applied last, in its turn or not.
    pub(in crate::controllers::agent) fn is_applied(&self, digest: Option<&str>) -> bool {
        digest.is_some_and(|applied| is_of(applied, &self.digest))
    }

    /// Whether nobody has taken anything of that member since our last apply, whatever that was; `fields` are those of that apply.
    pub(in crate::controllers::agent) fn keeps(&self, member: &str, fields: &str) -> bool {
        let fields: Value = serde_json::from_str(fields).unwrap_or(Value::Null);
        drift::lost(&json!({member: self.body[member]}), &fields).is_empty()
    }

    /// How the object of ours stands; `applied` is the digest and the fields of our last apply.
    pub(in crate::controllers::agent) fn standing(&self, (digest, fields): (Option<&str>, Option<&str>)) -> Standing {
        if !self.is_applied(digest) {
            return Standing::Other;
        }
        let fields = fields.and_then(|fields| serde_json::from_str(fields).ok()).unwrap_or(Value::Null);
        match drift::lost(&self.body, &fields) {
            lost if lost.is_empty() => Standing::Stands,
            lost => Standing::Drifted(lost),
        }
    }
}
