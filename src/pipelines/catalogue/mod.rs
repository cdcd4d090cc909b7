//! The steps and templates that Drawbridge ships.
//!
//! In: a namespace, the images, and what the platform decides about all of them. Out: the ConfigMaps. Promises: no
//! image is `latest` or a parameter (but the builder, which gated templates lock); a user's value reaches a script
//! only as an environment variable or argument; no credential is a parameter: they come through workspaces.
//!
//! In the files `@{name}` stands for a value of [`Values`]: an image by its key of [`IMAGES`], or a setting.

use std::collections::BTreeMap;

use super::templates::ConfigMapText;
use crate::api::syntax;
use crate::domain::keys;
use crate::domain::suggest::nearest;

/// The images of the steps: key, where it is published, what it is for.
pub const IMAGES: [(&str, &str, &str); 10] = [
    ("alpine", "docker.io/library/alpine:3.22", "shell steps"),
    ("git", "docker.io/alpine/git:v2.49.1", "checking the source out"),
    ("buildah", "quay.io/containers/buildah:v1.41.4", "building a Dockerfile"),
    ("builder", "docker.io/heroku/builder:24", "building without a Dockerfile"),
    ("gitleaks", "ghcr.io/gitleaks/gitleaks:v8.28.0", "credentials in the source"),
    ("syft", "docker.io/anchore/syft:v1.33.0", "bills of materials"),
    ("grype", "docker.io/anchore/grype:v0.100.0", "known vulnerabilities"),
    ("skopeo", "quay.io/skopeo/stable:v1.20.0", "reading and moving images"),
    ("conftest", "docker.io/openpolicyagent/conftest:v0.62.0", "the release policy"),
    ("cosign", "ghcr.io/sigstore/cosign/cosign:v2.6.1", "signatures"),
];

const STEPS: [(&str, &str); 16] = [
    ("buildah-build-step", include_str!("steps/buildah-build-step.yaml")),
    ("buildpack-step", include_str!("steps/buildpack-step.yaml")),
    ("check-dockerfile-step", include_str!("steps/check-dockerfile-step.yaml")),
    ("check-subfolder-step", include_str!("steps/check-subfolder-step.yaml")),
    ("container-test-step", include_str!("steps/container-test-step.yaml")),
    ("github-clone-step", include_str!("steps/github-clone-step.yaml")),
    ("image-build-archive-step", include_str!("steps/image-build-archive-step.yaml")),
    ("image-push-step", include_str!("steps/image-push-step.yaml")),
    ("image-reference-step", include_str!("steps/image-reference-step.yaml")),
    ("policy-gate-step", include_str!("steps/policy-gate-step.yaml")),
    ("promote-step", include_str!("steps/promote-step.yaml")),
    ("sbom-step", include_str!("steps/sbom-step.yaml")),
    ("secret-scan-step", include_str!("steps/secret-scan-step.yaml")),
    ("sign-step", include_str!("steps/sign-step.yaml")),
    ("smoke-test-step", include_str!("steps/smoke-test-step.yaml")),
    ("vulnerability-scan-step", include_str!("steps/vulnerability-scan-step.yaml")),
];

/// By mode; `custom` has none: its steps are the user's; `beeai` is for the builds of that group, and no mode of others.
const TEMPLATES: [(&str, &str); 7] = [
    ("beeai", include_str!("templates/beeai.json")),
    ("buildpack-dev", include_str!("templates/buildpack-dev.json")),
    ("dev", include_str!("templates/dev.json")),
    ("dev-external", include_str!("templates/dev-external.json")),
    ("dev-local", include_str!("templates/dev-local.json")),
    ("preprod", include_str!("templates/preprod.json")),
    ("prod", include_str!("templates/prod.json")),
];

/// Why a value of the catalogue cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum CatalogueError {
    /// No step uses such an image.
    #[error("no step uses an image {name}{hint}", hint = hint(.name))]
    UnknownImage {
        /// The key as written.
        name: String,
    },
    /// The text is not an image.
    #[error("image {name}: {image:?} is not the name of an image; write registry/path:tag@digest")]
    NotAnImage {
        /// The key.
        name: String,
        /// The text.
        image: String,
    },
}

fn hint(name: &str) -> String {
    nearest(name, IMAGES.iter().map(|(key, ..)| *key)).map_or(String::new(), |meant| format!("; did you mean {meant}?"))
}

/// What the platform decides about all steps.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Values {
    images: BTreeMap<&'static str, String>,
    /// Whether SSH may go to hosts that the credentials' `known_hosts` does not name.
    pub allow_unknown_git_hosts: bool,
    /// Whether the cluster assigns users itself: then no step names one.
    pub openshift: bool,
}

impl Default for Values {
    /// The published images, by tag.
    fn default() -> Self {
        let images = IMAGES.iter().map(|(key, image, _)| (*key, (*image).to_owned())).collect();
        Self { images, allow_unknown_git_hosts: false, openshift: false }
    }
}

impl Values {
    /// The same values with another image, such as a mirror's, by digest.
    ///
    /// # Errors
    /// A key that no step uses, or a text that is no image.
    pub fn with_image(mut self, name: &str, image: &str) -> Result<Self, CatalogueError> {
        let Some((key, ..)) = IMAGES.iter().find(|(key, ..)| *key == name) else {
            return Err(CatalogueError::UnknownImage { name: name.to_owned() });
        };
        if !syntax::is_image_reference(image) {
            return Err(CatalogueError::NotAnImage { name: name.to_owned(), image: image.to_owned() });
        }
        self.images.insert(key, image.to_owned());
        Ok(self)
    }

    fn fill(&self, text: &str) -> String {
        let mut filled = text.replace("@{allow-unknown-git-hosts}", &self.allow_unknown_git_hosts.to_string());
        for (key, image) in &self.images {
            filled = filled.replace(&format!("@{{{key}}}"), image);
        }
        if self.openshift { without_users(&filled) } else { filled }
    }
}

/// The text without `runAsUser`, in mappings of one or several lines.
fn without_users(text: &str) -> String {
    const KEY: &str = "runAsUser:";
    let mut lines = Vec::new();
    for line in text.lines().filter(|line| !line.trim_start().starts_with(KEY)) {
        let Some((before, after)) = line.split_once(KEY) else {
            lines.push(line.to_owned());
            continue;
        };
        let rest = after.trim_start().trim_start_matches(|letter: char| letter.is_ascii_digit());
        lines.push(match rest.strip_prefix(", ") {
            Some(rest) => format!("{before}{rest}"),
            None => format!("{}{rest}", before.trim_end().trim_end_matches(',')),
        });
    }
    lines.join("\n") + "\n"
}

/// Every ConfigMap of the catalogue, steps first, each list by name.
#[must_use]
pub fn config_maps(namespace: &str, values: &Values) -> Vec<ConfigMapText> {
    let pairs =
        |pairs: &[(&str, &str)]| pairs.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect();
    let managed = (keys::LABEL_APP_MANAGED_BY, keys::MANAGED_BY_DRAWBRIDGE);
    let steps = STEPS.iter().map(|(name, text)| ConfigMapText {
        namespace: namespace.to_owned(),
        name: (*name).to_owned(),
        labels: pairs(&[(keys::LABEL_STEP, keys::LABEL_STEP_VALUE), managed]),
        data: BTreeMap::from([(keys::KEY_TASK_SPEC.to_owned(), values.fill(text))]),
    });
    let templates = TEMPLATES.iter().map(|(mode, text)| ConfigMapText {
        namespace: namespace.to_owned(),
        name: format!("{}{mode}", keys::PREFIX_TEMPLATE),
        labels: pairs(&[(keys::LABEL_COMPONENT, keys::COMPONENT_TEMPLATE), (keys::LABEL_TEMPLATE_MODE, mode), managed]),
        data: BTreeMap::from([(keys::KEY_TEMPLATE.to_owned(), (*text).to_owned())]),
    });
    steps.chain(templates).collect()
}

#[cfg(test)]
mod tests;
