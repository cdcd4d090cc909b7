//! Who talks to the API server, and with what credential: kubeconfigs on disk and clients from them.
//!
//! A [`kube::Client`] belongs to the runtime in which it was made, so an [`Access`] is shared and clients are not.

use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use kube::config::{KubeConfigOptions, Kubeconfig};
use serde_json::{Value, json};

use crate::pki::Pair;

/// One identity at one API server.
#[derive(Clone)]
pub struct Access {
    user: String,
    kubeconfig: PathBuf,
}

/// How an identity proves itself.
pub(crate) enum Credential<'a> {
    /// A client certificate.
    Certificate(&'a Pair),
    /// A bearer token.
    Token(&'a str),
}

impl Access {
    /// Writes the kubeconfig `folder/<file>.kubeconfig`, with everything inlined.
    pub(crate) fn write(
        folder: &Path,
        server: &str,
        authority: &str,
        user: &str,
        credential: &Credential<'_>,
    ) -> Result<Self> {
        let user_entry: Value = match credential {
            Credential::Certificate(pair) => json!({
                "client-certificate-data": STANDARD.encode(&pair.certificate),
                "client-key-data": STANDARD.encode(&pair.key),
            }),
            Credential::Token(token) => json!({ "token": token }),
        };
        let document = json!({
            "apiVersion": "v1",
            "kind": "Config",
            "clusters": [{ "name": "test", "cluster": {
                "server": server,
                "certificate-authority-data": STANDARD.encode(authority),
            }}],
            "users": [{ "name": user, "user": user_entry }],
            "contexts": [{ "name": "test", "context": { "cluster": "test", "user": user } }],
            "current-context": "test",
        });
        let file: String = user.chars().map(|c| if c.is_ascii_alphanumeric() || c == '-' { c } else { '_' }).collect();
        let kubeconfig = folder.join(format!("{file}.kubeconfig"));
        // JSON is YAML; the folder is readable by this user only.
        std::fs::write(&kubeconfig, serde_json::to_vec_pretty(&document)?)
            .with_context(|| kubeconfig.display().to_string())?;
        Ok(Self { user: user.to_owned(), kubeconfig })
    }

    /// Whoever a kubeconfig that exists already makes its bearer; what the API server calls them is not known here.
    #[must_use]
    pub fn existing(kubeconfig: PathBuf) -> Self {
        Self { user: "kubeconfig".to_owned(), kubeconfig }
    }

    /// The same identity, with the API server at another URL.
    ///
    /// # Errors
    /// When the kubeconfig cannot be written.
    pub fn at(&self, server: &str) -> Result<Self> {
        let mut document: Value = serde_json::from_slice(&std::fs::read(&self.kubeconfig)?)?;
        document["clusters"][0]["cluster"]["server"] = server.into();
        let kubeconfig = self.kubeconfig.with_extension("elsewhere.kubeconfig");
        std::fs::write(&kubeconfig, serde_json::to_vec_pretty(&document)?)
            .with_context(|| kubeconfig.display().to_string())?;
        Ok(Self { user: self.user.clone(), kubeconfig })
    }

    /// The user name as the API server (and its audit log) spells it.
    #[must_use]
    pub fn user(&self) -> &str {
        &self.user
    }

    /// The kubeconfig file, valid as long as the control plane exists.
    #[must_use]
    pub fn kubeconfig(&self) -> &Path {
        &self.kubeconfig
    }

    /// A client configuration with this identity.
    ///
    /// # Errors
    /// When the kubeconfig cannot be read any more.
    pub async fn config(&self) -> Result<kube::Config> {
        let kubeconfig = Kubeconfig::read_from(&self.kubeconfig)?;
        Ok(kube::Config::from_custom_kubeconfig(kubeconfig, &KubeConfigOptions::default()).await?)
    }

    /// A new client with this identity, for the runtime that calls.
    ///
    /// # Errors
    /// When the kubeconfig cannot be read any more.
    pub async fn client(&self) -> Result<kube::Client> {
        Ok(kube::Client::try_from(self.config().await?)?)
    }
}
