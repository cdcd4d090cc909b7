//! Tekton's own manifests on a control plane: namespace, RBAC, settings, definitions and webhooks.
//!
//! The Deployments are left out: the processes are started beside the control plane. What calls the webhook (three
//! webhook configurations, and the conversion of the definitions) calls the Service of Tekton's manifests, at the port
//! where the webhook is reachable from the API server.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, Result, bail};
use serde_json::Value;

use crate::objects::{self, Objects};

/// Tekton's namespace.
pub(super) const NAMESPACE: &str = "tekton-pipelines";
/// Its webhook's Service.
pub(super) const SERVICE: &str = "tekton-pipelines-webhook";

/// Where `make tekton` puts programs and manifests.
///
/// # Errors
/// When it was not run; the message names it.
pub fn folder() -> Result<PathBuf> {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("peers/install-tekton");
    let output = Command::new(&script).arg("--where").output().with_context(|| script.display().to_string())?;
    if !output.status.success() {
        bail!("{}", String::from_utf8_lossy(&output.stderr).trim());
    }
    Ok(PathBuf::from(String::from_utf8_lossy(&output.stdout).trim()))
}

/// The objects of the manifests, in the order of applying: what others live in first, what calls the webhook last.
fn manifests(folder: &Path) -> Result<Vec<Value>> {
    let folder = folder.join("manifests");
    let mut files = Vec::new();
    for entry in std::fs::read_dir(&folder).with_context(|| folder.display().to_string())? {
        files.push(entry?.path());
    }
    files.sort();
    let mut all = Vec::new();
    for file in files {
        let text = std::fs::read_to_string(&file).with_context(|| file.display().to_string())?;
        all.extend(objects::documents(&text).with_context(|| file.display().to_string())?);
    }
    all.sort_by_key(|object| match object["kind"].as_str() {
        Some("Namespace") => 0,
        Some("CustomResourceDefinition") => 1,
        Some("MutatingWebhookConfiguration" | "ValidatingWebhookConfiguration") => 3,
        _ => 2,
    });
    Ok(all)
}

/// Applies the manifests; whatever calls the webhook does so at `port`.
pub(super) async fn apply(objects: &Objects, folder: &Path, port: u16) -> Result<()> {
    for mut object in manifests(folder)? {
        if let Some(service) = object.pointer_mut("/spec/conversion/webhook/clientConfig/service") {
            service["port"] = port.into();
        }
        for webhook in object.get_mut("webhooks").and_then(Value::as_array_mut).into_iter().flatten() {
            webhook["clientConfig"]["service"]["port"] = port.into();
        }
        objects.apply(&object.to_string()).await.with_context(|| format!("Tekton's manifests: {}", object["kind"]))?;
    }
    Ok(())
}

/// Deletes what calls the webhook, and the definitions with all their objects.
pub(super) async fn remove(objects: &Objects, folder: &Path) -> Result<()> {
    for object in manifests(folder)?.into_iter().rev() {
        let kind = object["kind"].as_str().unwrap_or_default();
        if !kind.ends_with("WebhookConfiguration") && kind != "CustomResourceDefinition" {
            continue;
        }
        objects.delete(&object).await?;
    }
    Ok(())
}
