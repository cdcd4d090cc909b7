//! `drawbridge render`: everything a cluster needs, from typed code.
//!
//! In: the failure mode, the operator's namespace and image. Out: manifests in the order in which they can be applied. One value,
//! [`selectors::Reach`], says which Pods are ours; webhooks and policies are given that value and nothing else.
//! Never a `caBundle`: the running webhook publishes its own, and a manifest that owned the field would undo it.

pub mod builds;
pub mod compat;
pub mod crds;
pub mod deploy;
pub mod kinds;
pub mod platform;
pub mod policies;
pub mod rbac;
pub mod selectors;
pub mod webhooks;

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use anyhow::Context;
use clap::ValueEnum;
use k8s_openapi::api::core::v1::ConfigMap;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use serde::Serialize;
use serde_json::Value;

use super::given;
use super::io::Io;
use super::serve::flags::Namespaces;
use super::yaml::emit;
use super::{Exit, Format};
use crate::config::content::digest;
use crate::config::gates::Gates;
use crate::config::schema::Platform;
use crate::domain::keys;
use crate::pipelines::catalogue::Values;
use crate::store::KindOrigin;
use kinds::Kinds;

/// Oldest Kubernetes that the manifests and our bindings are for.
pub const KUBERNETES_MINIMUM: &str = "1.33";
/// Oldest Kubernetes with MutatingAdmissionPolicy v1.
pub const KUBERNETES_MINIMUM_GATE: &str = "1.36";

/// What happens to enrolled Pods while no replica answers.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
pub enum FailureMode {
    /// They are refused (Kubernetes 1.33 and later).
    #[default]
    Fail,
    /// They are created behind a scheduling gate and wait (Kubernetes 1.36 and later).
    Gate,
}

/// Image of the operator, where none is named.
pub const IMAGE: &str = concat!("drawbridge:", env!("CARGO_PKG_VERSION"));

/// Arguments of `render`.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// What happens to enrolled Pods while no replica answers.
    #[arg(long, value_enum, default_value_t)]
    pub failure_mode: FailureMode,
    /// Namespace of the operator.
    #[arg(short, long, default_value = keys::OPERATOR_NAMESPACE, value_parser = given::namespace)]
    pub namespace: String,
    /// Image of the operator.
    #[arg(long, default_value = IMAGE, value_parser = given::image)]
    pub image: String,
    /// Namespaces that are served, separated by commas; none means all. Then rights are Roles there instead of ClusterRoles.
    #[arg(long, default_value = "", hide_default_value = true, value_name = "NAMES")]
    pub watch_namespaces: Namespaces,
    /// Image of the build steps, by its name in docs/reference/build-images.md, such as a mirror's; may be repeated.
    #[arg(long = "build-image", value_name = "NAME=IMAGE")]
    pub build_images: Vec<String>,
    /// The cluster assigns users and groups itself, as OpenShift does: neither our own Pods nor build steps name any.
    #[arg(long)]
    pub openshift: bool,
    /// Build steps may clone over SSH from hosts that the credentials' known_hosts does not name.
    #[arg(long)]
    pub allow_unknown_git_hosts: bool,
    /// Platform file for ConfigMap kagenti-platform-config, in place of the shipped one.
    #[arg(long, value_name = "FILE", value_parser = given::path)]
    pub platform_file: Option<String>,
    /// Feature gates file for ConfigMap kagenti-feature-gates, in place of the shipped one.
    #[arg(long, value_name = "FILE", value_parser = given::path)]
    pub feature_gates_path: Option<String>,
    /// Add a PodMonitor, which has the Prometheus operator scrape every replica. Label the namespace of Prometheus metrics=enabled: the
    /// NetworkPolicies of the operator let nobody else in.
    #[arg(long)]
    pub pod_monitor: bool,
    /// Mount the socket of the SPIFFE agent (CSI driver csi.spiffe.io) in the Pods of the controllers, for cards.proof of the platform file. Without SPIRE such
    /// Pods never start.
    #[arg(long)]
    pub with_spire: bool,
    /// Let every replica of the webhook answer which agents are verified, for cards.catalogue of the platform file: a port of their Service, opened for Pods of the
    /// cluster, and the right to ask the API server whose a token is.
    #[arg(long)]
    pub with_catalogue: bool,
    /// Leave the roles for people out of the cluster's own roles view, edit and admin: bind them yourself.
    #[arg(long)]
    pub no_aggregation: bool,
    /// Print what serves Agents of group beeai.beeai.dev, to be applied beside an installation, in place of the installation.
    #[arg(long)]
    pub beeai_compat: bool,
    /// Which kinds are served; `kaos` leaves out what a cluster without the others has no use for.
    #[arg(long, value_enum, default_value_t)]
    pub kinds: Kinds,
    /// Print the Gateway that routes of KAOS lead to as well, of this class; the operator makes none.
    #[arg(long, value_name = "CLASS")]
    pub gateway_class: Option<String>,
    /// Write the tree of manifests into this folder instead of printing one stream; both failure modes are written.
    #[arg(long, value_name = "DIR", conflicts_with_all = ["beeai_compat", "kinds", "gateway_class", "failure_mode", "output", "watch_namespaces", "build_images", "openshift", "allow_unknown_git_hosts", "platform_file", "feature_gates_path", "pod_monitor", "no_aggregation", "with_spire", "with_catalogue"])]
    pub out_dir: Option<PathBuf>,
    /// Output format; `table` lists the objects.
    #[arg(short, long, value_enum, default_value = "yaml")]
    pub output: Format,
}

/// What the manifests are made for.
#[derive(Debug, Clone)]
pub struct Install {
    /// What happens while no replica answers.
    pub failure_mode: FailureMode,
    /// Namespace of the operator.
    pub namespace: String,
    /// Image of the operator.
    pub image: String,
    /// Namespaces that are served; none means all.
    pub namespaces: Vec<String>,
    /// The platform file; `None` for the shipped one.
    pub platform_file: Option<String>,
    /// The feature gates; `None` for the shipped ones.
    pub feature_gates: Option<String>,
    /// Which kinds are served.
    pub kinds: Kinds,
    /// What is decided about the steps of builds; and whether the cluster assigns users itself, to our own Pods as well.
    pub values: Values,
}

impl Install {
    /// An installation with the shipped steps.
    #[must_use]
    pub fn new(failure_mode: FailureMode, namespace: impl Into<String>, image: impl Into<String>) -> Self {
        Self {
            failure_mode,
            namespace: namespace.into(),
            image: image.into(),
            namespaces: Vec::new(),
            platform_file: None,
            feature_gates: None,
            kinds: Kinds::All,
            values: Values::default(),
        }
    }

    /// What happens while no replica answers. Only the webhook that injects takes Pods from behind the scheduling gate, so where nothing is injected
    /// nothing may be put there: it would wait for ever.
    #[must_use]
    pub fn mode(&self) -> FailureMode {
        if self.kinds.injects() { self.failure_mode } else { FailureMode::Fail }
    }
}

/// A file of the tree `manifests/`.
#[derive(Debug, Clone, PartialEq)]
pub struct Manifest {
    /// Path below `manifests/`.
    pub path: Cow<'static, str>,
    /// Its objects.
    pub objects: Vec<Value>,
}

/// The parts of an installation, in the order in which they are applied.
#[must_use]
pub fn parts(install: &Install) -> Vec<Manifest> {
    let [rights, controllers, webhooks] = match install.mode() {
        FailureMode::Fail => ["rbac/controllers.yaml", "deploy/controllers.yaml", "webhooks/fail.yaml"],
        FailureMode::Gate => ["rbac/controllers-gate.yaml", "deploy/controllers-gate.yaml", "webhooks/gate.yaml"],
    };
    let mut registered = webhooks::objects(install);
    registered.extend(platform::parameters(install));
    registered.extend(policies::objects(install));
    let mut parts = crds::parts(install.kinds);
    parts.extend([
        Manifest { path: "deploy/namespace.yaml".into(), objects: vec![deploy::namespace(install)] },
        Manifest { path: "rbac/webhook.yaml".into(), objects: rbac::objects(install, rbac::Role::Webhook) },
        Manifest { path: rights.into(), objects: rbac::objects(install, rbac::Role::Controllers) },
        Manifest {
            path: "rbac/people.yaml".into(),
            objects: rbac::people(KindOrigin::Ours, install.kinds)
                .into_iter()
                .chain([rbac::diagnosis(install.kinds)])
                .collect(),
        },
        Manifest { path: "deploy/config.yaml".into(), objects: platform::objects(install) },
        Manifest { path: "deploy/webhook.yaml".into(), objects: deploy::webhook(install) },
        Manifest { path: controllers.into(), objects: deploy::controllers(install) },
        Manifest { path: webhooks.into(), objects: registered },
    ]);
    if install.kinds.builds() {
        let at = parts.len() - 3;
        parts.insert(at, Manifest { path: "deploy/builds.yaml".into(), objects: builds::objects(install) });
    }
    parts
}

/// The tree `manifests/`: the parts, and one file per failure mode that has all of them.
#[must_use]
pub fn tree(namespace: &str, image: &str) -> Vec<(Cow<'static, str>, String)> {
    let mut files: Vec<(Cow<'static, str>, String)> = Vec::new();
    for (failure_mode, whole) in [(FailureMode::Fail, "install.yaml"), (FailureMode::Gate, "install-gate.yaml")] {
        let install = Install::new(failure_mode, namespace, image);
        let parts = parts(&install);
        let all: Vec<Value> = parts.iter().flat_map(|part| part.objects.clone()).collect();
        files.push((whole.into(), format!("{}{}", header(failure_mode), stream(&all))));
        for part in parts {
            if files.iter().all(|(path, _)| *path != part.path) {
                files.push((part.path, format!("{GENERATED}{}", stream(&part.objects))));
            }
        }
    }
    let compat = compat::objects(&Install::new(FailureMode::Fail, namespace, image));
    files.push((COMPAT.into(), format!("{}{}", compat_header(), stream(&compat))));
    let alerts = emit::document(&super::alerts::rule_file(), None);
    files.push(("monitoring/alerts.yaml".into(), format!("{}{alerts}", super::alerts::GENERATED)));
    files
}

const GENERATED: &str = "# Made by `drawbridge render`; change the code under src/cli/render, then `make manifests`.\n";

/// The manifest that serves the group of the original BeeAI operator.
const COMPAT: &str = "beeai-compat.yaml";

fn compat_header() -> String {
    format!(
        "{GENERATED}# Serves Agents of group beeai.beeai.dev, which the original BeeAI operator served, so that manifests written for it\n\
         # apply unchanged: kubectl apply -f manifests/beeai-compat.yaml, behind install.yaml or install-gate.yaml.\n"
    )
}

fn header(mode: FailureMode) -> String {
    let says = match mode {
        FailureMode::Fail => format!(
            "# Drawbridge for Kubernetes {KUBERNETES_MINIMUM} and later: while no webhook replica answers, enrolled Pods are refused,\n\
             # and no other Pod is affected."
        ),
        FailureMode::Gate => format!(
            "# Drawbridge for Kubernetes {KUBERNETES_MINIMUM_GATE} and later: while no webhook replica answers, enrolled Pods are created\n\
             # behind a scheduling gate and replaced once a replica is back; no other Pod is affected."
        ),
    };
    format!("{GENERATED}{says}\n")
}

/// Objects as a YAML stream.
#[must_use]
pub fn stream(objects: &[Value]) -> String {
    objects.iter().map(|object| format!("---\n{}", emit::document(object, None))).collect()
}

/// Prints or writes the manifests.
///
/// # Errors
/// When a file cannot be written, or standard output is closed.
pub fn run(args: Args, io: &mut Io<'_>) -> anyhow::Result<Exit> {
    anyhow::ensure!(
        !keys::SYSTEM_NAMESPACES.contains(&args.namespace.as_str()),
        "--namespace {}: the operator has no place in a namespace of Kubernetes itself: its policies let its own account write nothing there, and its \
         Pod Security label would hold for everybody's Pods; name another one, such as {}",
        args.namespace,
        keys::OPERATOR_NAMESPACE
    );
    let values = values(&args)?;
    let (platform_file, feature_gates) = settings_of(&args)?;
    let Args {
        failure_mode,
        namespace,
        image,
        out_dir,
        output,
        watch_namespaces,
        beeai_compat,
        pod_monitor,
        with_spire,
        with_catalogue,
        no_aggregation,
        kinds,
        gateway_class,
        ..
    } = args;
    if let Some(folder) = out_dir {
        for (path, text) in tree(&namespace, &image) {
            write_file(&folder.join(&*path), &text)?;
        }
        return Ok(Exit::Ok);
    }
    let namespaces = watch_namespaces.0;
    let install = Install { failure_mode, namespace, image, namespaces, platform_file, feature_gates, kinds, values };
    let (head, mut objects) = if beeai_compat {
        (compat_header(), compat::objects(&install))
    } else {
        (header(install.mode()), parts(&install).into_iter().flat_map(|part| part.objects).collect())
    };
    if pod_monitor {
        objects.push(deploy::pod_monitor(&install));
    }
    if with_spire {
        objects.iter_mut().for_each(deploy::with_socket);
    }
    if with_catalogue && !beeai_compat {
        objects.iter_mut().for_each(deploy::with_catalogue);
        objects.extend(rbac::catalogue(&install));
    }
    if no_aggregation {
        for labels in objects.iter_mut().filter_map(|object| object.pointer_mut("/metadata/labels")?.as_object_mut()) {
            labels.retain(|key, _| !key.starts_with(rbac::AGGREGATE));
        }
    }
    objects.extend(gateway_class.map(|class| kinds::gateway(&install, &class)));
    match output {
        Format::Yaml => write!(io.out, "{head}{}", stream(&objects))?,
        Format::Json => {
            let list = serde_json::json!({"apiVersion": "v1", "kind": "List", "items": objects});
            writeln!(io.out, "{}", serde_json::to_string_pretty(&list)?)?;
        }
        Format::Table => {
            for object in &objects {
                let text = |pointer: &str| object.pointer(pointer).and_then(Value::as_str).unwrap_or("");
                writeln!(
                    io.out,
                    "{:<34} {:<18} {}",
                    text("/kind"),
                    text("/metadata/namespace"),
                    text("/metadata/name")
                )?;
            }
        }
    }
    Ok(Exit::Ok)
}

/// The settings that the arguments name, judged as the process will judge them when it starts.
fn settings_of(args: &Args) -> anyhow::Result<(Option<String>, Option<String>)> {
    let read = |path: &Option<String>| {
        let read = |path: &String| std::fs::read_to_string(path).with_context(|| format!("{path} cannot be read"));
        path.as_ref().map(read).transpose()
    };
    let (platform, gates) = (read(&args.platform_file)?, read(&args.feature_gates_path)?);
    if let (Some(text), Some(path)) = (&platform, &args.platform_file) {
        let missing = Platform::parse(text, path)?.missing_images();
        anyhow::ensure!(
            missing.is_empty(),
            "{path} sets no {}: there is no built-in image, so the operator would not start; name them",
            missing.join(", ")
        );
    }
    if let (Some(text), Some(path)) = (&gates, &args.feature_gates_path) {
        Gates::parse(text, path)?;
    }
    Ok((platform, gates))
}

/// What the arguments say about the steps of builds.
fn values(args: &Args) -> anyhow::Result<Values> {
    let mut values = Values::default();
    values.allow_unknown_git_hosts = args.allow_unknown_git_hosts;
    values.openshift = args.openshift;
    for pair in &args.build_images {
        let Some((name, image)) = pair.split_once('=') else {
            anyhow::bail!("--build-image {pair}: write it as name=image, such as git=mirror.example/git@sha256:…");
        };
        values = values.with_image(name.trim(), image.trim()).with_context(|| format!("--build-image {pair}"))?;
    }
    Ok(values)
}

fn write_file(path: &Path, text: &str) -> anyhow::Result<()> {
    if let Some(folder) = path.parent() {
        std::fs::create_dir_all(folder).with_context(|| format!("cannot make {}", folder.display()))?;
    }
    std::fs::write(path, text).with_context(|| format!("cannot write {}", path.display()))
}

/// A typed object as the value a manifest has.
fn object<T: Serialize>(typed: &T) -> Value {
    serde_json::to_value(typed).expect("the types of Kubernetes objects have string keys and finite numbers")
}

/// Metadata with the labels that our objects carry; Deployments and the Service leave one out.
fn metadata(name: &str, namespace: Option<&str>) -> ObjectMeta {
    let labels = [(keys::LABEL_APP_MANAGED_BY, keys::MANAGED_BY_DRAWBRIDGE), ("app.kubernetes.io/name", "drawbridge")];
    ObjectMeta {
        name: Some(name.to_owned()),
        namespace: namespace.map(str::to_owned),
        labels: Some(labels.into_iter().map(|(key, value)| (key.to_owned(), value.to_owned())).collect()),
        ..ObjectMeta::default()
    }
}

/// A ConfigMap that people may edit: it carries the digest of what is written here, so that an edit shows, whatever it was rendered with.
fn settings(mut metadata: ObjectMeta, data: BTreeMap<String, String>) -> Value {
    let annotations = metadata.annotations.get_or_insert_default();
    annotations.insert(keys::ANNOTATION_CONTENT_DIGEST.to_owned(), digest(&data));
    object(&ConfigMap { metadata, data: Some(data), ..ConfigMap::default() })
}

#[cfg(test)]
mod tests;
