//! Control planes that hold the manifests from their first moment.
//!
//! In: what a control plane is made of. Out: one whose etcd begins with a copy of what another held after the manifests were applied to it
//! as [`Installing::default`] says; [`Installation::start`](super::Installation::start) applies what differs, and deletes what is too much.
//! To apply everything costs an API server twice the processor time of its start, most of it for compiling the rules of policies again.
//! Webhook configurations are not among it: they name the port of an installation. Nor are bindings by which a policy compares with other
//! objects: [`lookup`] says why.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use anyhow::Result;
use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::api::core::v1::Node;
use kube::Api;
use kube::api::{DeleteParams, ListParams};
use serde_json::Value;
use tokio::sync::OnceCell;

use super::{Installing, lookup, rendered};
use crate::Objects;
use crate::control_plane::{Backup, ControlPlane, Options, Process};

/// What names an object: API version, kind, namespace and name.
type Named = (String, String, String, String);

/// What etcd holds once the manifests are applied, and which objects these are.
struct Prepared {
    store: Arc<Backup>,
    objects: BTreeMap<Named, Value>,
}

static PREPARED: OnceCell<Prepared> = OnceCell::const_new();

/// A control plane for [`Installation::start`](super::Installation::start). The first of a process is empty, since who runs one test would wait
/// for two; all others hold the manifests.
///
/// # Errors
/// As [`ControlPlane::start`].
pub async fn plane(options: Options) -> Result<ControlPlane> {
    static ANOTHER: AtomicBool = AtomicBool::new(false);
    if !ANOTHER.swap(true, Ordering::Relaxed) {
        return ControlPlane::start(options).await;
    }
    let prepared = PREPARED.get_or_try_init(prepare).await?;
    ControlPlane::start(Options { store: Some(Arc::clone(&prepared.store)), ..options }).await
}

async fn prepare() -> Result<Prepared> {
    let cp = ControlPlane::start(Options { scheduling: false, ..Options::default() }).await?;
    let admin = cp.objects().await?;
    let mut objects = BTreeMap::new();
    for (_, object) in rendered(&Installing::default(), 0)? {
        if object.get("webhooks").is_none() && !lookup::compares(&object) {
            admin.apply(&object.to_string()).await?;
            objects.insert(named(&object), object);
        }
    }
    // A control plane makes its own nodes; its kwok would wait until the Lease of another's has run out.
    cp.kill(Process::Kwok).await;
    let (now, all) = (DeleteParams::default(), ListParams::default());
    Api::<Node>::all(admin.client()).delete_collection(&now, &all).await?;
    Api::<Lease>::namespaced(admin.client(), "kube-node-lease").delete_collection(&now, &all).await?;
    Ok(Prepared { store: Arc::new(cp.backup().await?), objects })
}

/// Brings what `cp` began with to `wanted`: returns what is left to apply, in order.
pub(super) async fn left_to_apply(
    cp: &ControlPlane,
    objects: &Objects,
    wanted: Vec<(String, Value)>,
) -> Result<Vec<(String, Value)>> {
    let Some(prepared) = PREPARED.get().filter(|prepared| cp.still_holds(&prepared.store)) else {
        return Ok(wanted);
    };
    let names: Vec<Named> = wanted.iter().map(|(_, object)| named(object)).collect();
    for (_, surplus) in prepared.objects.iter().filter(|(name, _)| !names.contains(name)) {
        objects.delete(surplus).await?;
    }
    let same = |object: &Value| prepared.objects.get(&named(object)) == Some(object);
    Ok(wanted.into_iter().filter(|(_, object)| !same(object)).collect())
}

fn named(object: &Value) -> Named {
    let text = |pointer: &str| object.pointer(pointer).and_then(Value::as_str).unwrap_or_default().to_owned();
    (text("/apiVersion"), text("/kind"), text("/metadata/namespace"), text("/metadata/name"))
}
