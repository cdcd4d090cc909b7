//! A namespace per test.

use std::ops::Deref;

use anyhow::{Context as _, Result};
use k8s_openapi::api::core::v1::{Namespace, ServiceAccount};
use kube::Client;
use kube::api::{Api, DeleteParams, ObjectMeta, PostParams};

use crate::objects::{Objects, wait_for};

/// A namespace of one's own; dereferences to [`Objects`] that put everything there, as `admin`.
///
/// It is not deleted at the end: it goes with the control plane.
pub struct TestNamespace {
    name: String,
    objects: Objects,
}

impl TestNamespace {
    /// Creates the namespace and waits until Pods can be made there.
    pub(crate) async fn create(client: Client, name: &str, labels: &[(&str, &str)]) -> Result<Self> {
        let labels = labels.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect();
        let metadata = ObjectMeta { name: Some(name.to_owned()), labels: Some(labels), ..ObjectMeta::default() };
        let namespaces: Api<Namespace> = Api::all(client.clone());
        let namespace = Namespace { metadata, ..Namespace::default() };
        namespaces.create(&PostParams::default(), &namespace).await.with_context(|| format!("namespace {name}"))?;
        let objects = Objects::new(client, name);
        wait_for(&objects.api::<ServiceAccount>(), "default", |_| true).await?;
        Ok(Self { name: name.to_owned(), objects })
    }

    /// The name.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Asks for its deletion; use [`crate::wait_gone`] to wait for the end.
    ///
    /// # Errors
    /// When the API server refuses.
    pub async fn delete(&self) -> Result<()> {
        let namespaces: Api<Namespace> = Api::all(self.objects.client());
        namespaces.delete(&self.name, &DeleteParams::default()).await?;
        Ok(())
    }
}

impl Deref for TestNamespace {
    type Target = Objects;

    fn deref(&self) -> &Objects {
        &self.objects
    }
}
