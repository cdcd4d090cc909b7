//! Volumes, each only when something of ours needs it.
//!
//! In: a plan with its containers. Out: the volumes in contract order. The runtime configuration comes from the
//! Pod's own annotation; the shape with the combined container keeps upstream's unmounted reference.

use std::borrow::Cow;

use serde_json::{Value, json};

use super::context::Context;
use super::credentials;
use super::plan::{InjectionPlan, Source, Volume};
use super::signing;
use crate::domain::keys;

/// One row of the table.
struct Row {
    name: &'static str,
    needed: fn(&Context<'_>, &InjectionPlan<'_>) -> bool,
    source: fn(&InjectionPlan<'_>) -> Source<'static>,
}

fn spire(cx: &Context<'_>, _: &InjectionPlan<'_>) -> bool {
    cx.effective.spire()
}

/// A proxy of any shape.
fn proxy(_: &Context<'_>, plan: &InjectionPlan<'_>) -> bool {
    plan.all_containers().any(|container| container.listens_on.is_some())
}

const REQUIRED: Source<'static> = Source::ConfigMap { optional: false };
const OPTIONAL: Source<'static> = Source::ConfigMap { optional: true };

fn runtime_config(plan: &InjectionPlan<'_>) -> Source<'static> {
    if plan.runtime_config.is_some() { Source::Annotation } else { OPTIONAL }
}

impl Volume<'_> {
    /// The whole object as the API wants it.
    pub(super) fn value(&self) -> Value {
        let name = self.name;
        match &self.source {
            Source::Empty => json!({"name": name, "emptyDir": {}}),
            Source::ConfigMap { optional: false } => json!({"name": name, "configMap": {"name": name}}),
            Source::ConfigMap { optional: true } => {
                json!({"name": name, "configMap": {"name": name, "optional": true}})
            }
            Source::SpiffeSocket => json!({"name": name, "csi": {"driver": keys::CSI_DRIVER_SPIFFE, "readOnly": true}}),
            Source::Annotation => {
                let path = format!("metadata.annotations['{}']", keys::ANNOTATION_RUNTIME_CONFIG);
                json!({"name": name, "downwardAPI": {"items": [
                    {"path": "config.yaml", "fieldRef": {"fieldPath": path}}]}})
            }
            Source::Credentials(secret) => credentials::volume(name, secret),
            Source::UnsignedCard(config_map) => signing::unsigned(name, config_map),
            Source::SignedCard => signing::signed(name),
            Source::ApiToken => signing::token(name),
        }
    }

    /// The same volume, on its own.
    pub(super) fn to_owned(&self) -> Volume<'static> {
        let source = match &self.source {
            Source::Credentials(secret) => Source::Credentials(Cow::Owned(secret.clone().into_owned())),
            Source::Empty => Source::Empty,
            Source::ConfigMap { optional } => Source::ConfigMap { optional: *optional },
            Source::SpiffeSocket => Source::SpiffeSocket,
            Source::Annotation => Source::Annotation,
            Source::UnsignedCard(config_map) => Source::UnsignedCard(Cow::Owned(config_map.clone().into_owned())),
            Source::SignedCard => Source::SignedCard,
            Source::ApiToken => Source::ApiToken,
        };
        Volume { name: self.name, source }
    }
}

const ROWS: [Row; 7] = [
    Row { name: keys::VOLUME_SHARED, needed: |_, _| true, source: |_| Source::Empty },
    Row { name: keys::VOLUME_SPIRE_SOCKET, needed: spire, source: |_| Source::SpiffeSocket },
    Row { name: keys::VOLUME_SPIFFE_HELPER, needed: spire, source: |_| REQUIRED },
    Row { name: keys::VOLUME_SVID, needed: spire, source: |_| Source::Empty },
    Row { name: keys::VOLUME_ENVOY, needed: proxy, source: |_| REQUIRED },
    Row { name: keys::VOLUME_ROUTES, needed: proxy, source: |_| OPTIONAL },
    Row { name: keys::VOLUME_RUNTIME_CONFIG, needed: proxy, source: runtime_config },
];

/// Fills the plan's volumes.
pub(super) fn fill<'a>(cx: &Context<'a>, plan: &mut InjectionPlan<'a>) {
    let mut volumes: Vec<Volume<'a>> = ROWS
        .iter()
        .filter(|row| (row.needed)(cx, plan))
        .map(|row| Volume { name: row.name, source: (row.source)(plan) })
        .collect();
    if let Some(secret) = cx.effective.credentials {
        volumes.push(Volume { name: keys::VOLUME_CREDENTIALS, source: Source::Credentials(Cow::Borrowed(secret)) });
    }
    volumes.extend(signing::volumes(cx));
    plan.volumes = volumes;
}
