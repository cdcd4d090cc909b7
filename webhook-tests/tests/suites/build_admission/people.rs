//! People with rights of their own in a namespace, for the policies that ask for them.

use std::time::{Duration, Instant};

use anyhow::{Result, bail, ensure};
use kube::Api;
use kube::api::{DynamicObject, Patch, PatchParams};
use serde_json::{Value, json};
use webhook_tests::patience::patience;
use webhook_tests::{Objects, TestNamespace};

use super::{control_plane, resource};

/// A rule of a Role.
pub(super) fn rule(group: &str, resource: &str, verbs: &[&str]) -> Value {
    json!({"apiGroups": [group], "resources": [resource], "verbs": verbs})
}

/// Somebody with these rights in the namespace, once the API server takes `probe` from him (on trial).
pub(super) async fn person(ns: &TestNamespace, name: &str, rules: &[Value], probe: &Value) -> Result<Objects> {
    let user = format!("{name}-{}", ns.name());
    let objects = Objects::new(control_plane().await?.person(ns, &user, rules).await?.client().await?, ns.name());
    let begun = Instant::now();
    loop {
        match objects.create(probe, true).await?.result {
            Ok(_) => return Ok(objects),
            answer if begun.elapsed() > patience() => bail!("{user} may not work: {answer:?}"),
            Err(_) => tokio::time::sleep(Duration::from_millis(25)).await,
        }
    }
}

/// Our kinds, as this person.
pub(super) fn api(objects: &Objects, kind: &str) -> Api<DynamicObject> {
    Api::namespaced_with(objects.client(), objects.namespace(), &resource(kind))
}

pub(super) async fn patched(objects: &Objects, kind: &str, name: &str, patch: Value) -> kube::Result<DynamicObject> {
    api(objects, kind).patch(name, &PatchParams::default(), &Patch::Merge(patch)).await
}

/// The answer to a creation on trial.
pub(super) async fn tried(objects: &Objects, object: &Value) -> Result<kube::Result<DynamicObject>> {
    Ok(objects.create(object, true).await?.result.map_err(|status| kube::Error::Api(Box::new(status))))
}

/// The refusal of the policy, which says what to do; anything else is an error.
pub(super) fn refused_by(policy: &str, answer: kube::Result<DynamicObject>) -> Result<String> {
    match answer {
        Err(kube::Error::Api(status)) if status.message.contains(policy) => {
            ensure!(status.code == 403 && status.message.contains("What to do: "), "{status:?}");
            Ok(status.message.clone())
        }
        other => bail!("{policy} was to refuse this: {other:?}"),
    }
}

/// Returns once the policy refuses `probe` (on trial): the API server hears of a policy a moment after it was stored.
pub(super) async fn refusal_begins(policy: &str, person: &Objects, probe: &Value) -> Result<()> {
    let begun = Instant::now();
    while let Err(error) = refused_by(policy, tried(person, probe).await?) {
        if begun.elapsed() > patience() {
            return Err(error);
        }
        tokio::time::sleep(Duration::from_millis(25)).await;
    }
    Ok(())
}
