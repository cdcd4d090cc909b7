//! Whether a Pod signs its agent's card, when it starts alone or anew by each renewal of its SVID, and what it gets for that.
//!
//! In: annotation `agentcard.kagenti.dev/sign` of the Pod, what is in force for it. Out: the decision with who took it, and the parts in a plan:
//! the init container ahead of every other of ours, so that nothing redirects its traffic (of a native sidecar, that of its first signature); what it reads, what it
//! writes, and a token that no other container sees. Promises: what asks for a signature and gets none is told why, and so is what asks for a sidecar and gets an init
//! container that ends.

use serde_json::{Value, json};

use super::containers::signer;
use super::context::Context;
use super::decide::{DecidedBy, Decision, Decisions, Subject};
use super::edit::Edit;
use super::plan::{InjectionPlan, Source, Volume};
use super::pod::{PodView, items, text};
use crate::admission::verdict::{Denial, Warning};
use crate::config::layers::Field;
use crate::config::resolved::{NativeSidecars, Resolved, SpireSwitch};
use crate::domain::keys;
use crate::domain::mode::Mode;
use crate::domain::reason::Reason;

/// Seconds that the token is good for: the least that Kubernetes gives.
const TOKEN_SECONDS: u32 = 600;

/// Whether the signer is injected, after every other decision was taken.
pub(super) fn decide(
    subject: &Subject<'_>,
    (mode, resolved): (Mode, &Resolved),
    sidecars: &Decisions,
    warnings: &mut Vec<Warning>,
) -> Decision {
    let annotation = keys::ANNOTATION_SIGN;
    let no = |by| Decision { inject: false, by };
    match subject.pod.annotation(annotation) {
        None | Some("false") => return no(DecidedBy::Default),
        Some("true" | keys::SIGN_SIDECAR) => {}
        Some(other) => {
            warnings.push(Warning::new(
                Reason::UnknownValue,
                format!(
                    "annotation {annotation} is \"{other}\", which means nothing; use true, {} or false",
                    keys::SIGN_SIDECAR
                ),
            ));
            return no(DecidedBy::Default);
        }
    }
    let asked = subject.pod.annotation(annotation).unwrap_or_default();
    let mut ignored = |why: String| {
        warnings.push(Warning::new(
            Reason::LabelIgnored,
            format!("annotation {annotation}: {asked} has no effect, because {why}"),
        ));
    };
    if subject.pod.label(keys::LABEL_TYPE) != Some("agent") {
        ignored(format!("only agents have a card, and label {} is not agent", keys::LABEL_TYPE));
        return no(DecidedBy::WorkloadLabel);
    }
    if subject.pod.all_containers().any(|(_, _, container)| text(container, "name") == keys::CONTAINER_SIGNER) {
        ignored(format!("the Pod brings its own container {}; remove one of the two", keys::CONTAINER_SIGNER));
        return no(DecidedBy::WorkloadAnnotation);
    }
    if mode == Mode::Waypoint {
        ignored("mode waypoint adds nothing to a Pod".to_owned());
        return no(DecidedBy::Mode);
    }
    if !sidecars.spiffe.inject {
        // That the driver is absent has its own warning.
        if resolved.spire.value == SpireSwitch::Disabled || sidecars.spiffe.by != DecidedBy::Spire {
            let by = match sidecars.spiffe.by {
                DecidedBy::Spire => format!("{} sets spire: disabled", resolved.spire.layer),
                by => format!("{} leaves out the parts for SPIRE", by.as_str()),
            };
            ignored(format!("a card is signed by the Pod's SPIFFE identity, and {by}"));
        }
        return no(sidecars.spiffe.by);
    }
    Decision { inject: true, by: DecidedBy::WorkloadAnnotation }
}

/// Whether the signer that is injected stays beside the agent, as annotation `agentcard.kagenti.dev/sign: sidecar` asks.
pub(super) fn stays(
    subject: &Subject<'_>,
    switch: &Field<NativeSidecars>,
    is_native: bool,
    warnings: &mut Vec<Warning>,
) -> bool {
    if subject.pod.annotation(keys::ANNOTATION_SIGN) != Some(keys::SIGN_SIDECAR) {
        return false;
    }
    const SAY_SO: &str = "write \"true\" in its place, which says so";
    let (why, remedy) = match subject.pod.spec("restartPolicy").and_then(Value::as_str) {
        // A sidecar that cannot sign would hold such a Pod up for ever, where an init container ends it.
        Some(policy @ ("Never" | "OnFailure")) => {
            (format!("the Pod ends by itself (restartPolicy: {policy})"), SAY_SO.to_owned())
        }
        _ if is_native => return true,
        _ if switch.value == NativeSidecars::Disabled => {
            let remedy = format!("set annotation {}: auto, or {SAY_SO}", keys::ANNOTATION_NATIVE_SIDECARS);
            (format!("nativeSidecars is disabled ({})", switch.layer), remedy)
        }
        _ => {
            let (major, minor) = subject.snapshot.view.server_version;
            (format!("the API server is {major}.{minor}, and knows no native sidecars"), SAY_SO.to_owned())
        }
    };
    warnings.push(Warning::new(
        Reason::SignsAtStart,
        format!(
            "annotation {}: {} is answered by an init container, which signs the card when the Pod starts and not again, because {why}; {remedy}",
            keys::ANNOTATION_SIGN,
            keys::SIGN_SIDECAR
        ),
    ));
    false
}

/// Adds the signer to a plan that has its other containers.
pub(super) fn add<'a>(cx: &Context<'a>, plan: &mut InjectionPlan<'a>) -> Result<(), Box<Denial>> {
    if !cx.effective.sidecars.signer.inject {
        return Ok(());
    }
    plan.init.insert(0, signer::container(cx)?);
    if cx.subject.pod.annotation(keys::ANNOTATION_MOUNT_SIGNED) == Some("true") {
        show(cx.subject.pod, plan);
    }
    Ok(())
}

/// Shows the signed card to the user's containers, but for those that have something else there, and those that would not start for it.
fn show(pod: PodView<'_>, plan: &mut InjectionPlan<'_>) {
    for container in pod.list("containers") {
        let name = text(container, "name");
        match in_the_way(pod, container) {
            None => plan.edits.push(Edit::Mount {
                container: name.to_owned(),
                volume: keys::VOLUME_SIGNED_CARD.to_owned(),
                path: keys::PATH_SIGNED_CARD.to_owned(),
                sub_path: String::new(),
            }),
            // It brings the mount itself.
            Some((mount, _)) if text(mount, "name") == keys::VOLUME_SIGNED_CARD => {}
            Some((mount, why)) => plan.warnings.push(Warning::new(
                Reason::LabelIgnored,
                format!(
                    "annotation {} has no effect on container {name}: it mounts {} at {}, {why}; mount that elsewhere (of a volume of files, single \
                     ones with subPath), and the card is shown in {}",
                    keys::ANNOTATION_MOUNT_SIGNED,
                    text(mount, "name"),
                    text(mount, "mountPath"),
                    keys::PATH_SIGNED_CARD
                ),
            )),
        }
    }
}

/// The mount for which a container cannot have the card's, and why: one at its place or below, or the nearest above where nothing can be made in that.
fn in_the_way<'a>(pod: PodView<'a>, container: &'a Value) -> Option<(&'a Value, &'static str)> {
    let folder = |path: &str| format!("{}/", path.trim_end_matches('/'));
    let card = folder(keys::PATH_SIGNED_CARD);
    let mounts = items(container, "volumeMounts");
    if let Some(mount) = mounts.iter().find(|mount| folder(text(mount, "mountPath")).starts_with(&card)) {
        return Some((mount, "where the card would be"));
    }
    let above = mounts.iter().filter(|mount| card.starts_with(&folder(text(mount, "mountPath"))));
    let nearest = above.max_by_key(|mount| text(mount, "mountPath").trim_end_matches('/').len())?;
    is_read_only(pod, nearest).then_some((nearest, "where no folder can be made for the card"))
}

/// Volumes that containers see as they are, whatever their mounts say.
const FILES: [&str; 4] = ["configMap", "secret", "projected", "downwardAPI"];

/// Whether nothing can be made below a mount.
fn is_read_only(pod: PodView<'_>, mount: &Value) -> bool {
    let mut volumes = pod.list("volumes").iter();
    let volume = volumes.find(|volume| text(volume, "name") == text(mount, "name"));
    mount.get("readOnly").and_then(Value::as_bool) == Some(true)
        || volume.is_some_and(|volume| FILES.iter().any(|kind| volume.get(*kind).is_some_and(Value::is_object)))
}

/// The volumes of the signer, where the plan has it.
pub(super) fn volumes(cx: &Context<'_>) -> Vec<Volume<'static>> {
    if !cx.effective.sidecars.signer.inject {
        return Vec::new();
    }
    let unsigned = format!("{}{}", cx.workload.name, keys::SUFFIX_UNSIGNED_CARD);
    vec![
        Volume { name: keys::VOLUME_UNSIGNED_CARD, source: Source::UnsignedCard(unsigned.into()) },
        Volume { name: keys::VOLUME_SIGNED_CARD, source: Source::SignedCard },
        Volume { name: keys::VOLUME_SIGNER_TOKEN, source: Source::ApiToken },
    ]
}

/// The ConfigMap with the card that is to be signed; the Pod does not wait for it.
pub(super) fn unsigned(name: &str, config_map: &str) -> Value {
    json!({"name": name, "configMap": {"name": config_map, "optional": true}})
}

/// Where the signed card is written, in memory.
pub(super) fn signed(name: &str) -> Value {
    json!({"name": name, "emptyDir": {"medium": "Memory", "sizeLimit": "1Mi"}})
}

/// What a client of the API server needs, as every Pod has it that mounts its token.
pub(super) fn token(name: &str) -> Value {
    json!({"name": name, "projected": {"sources": [
        {"serviceAccountToken": {"path": "token", "expirationSeconds": TOKEN_SECONDS}},
        {"configMap": {"name": "kube-root-ca.crt", "items": [{"key": "ca.crt", "path": "ca.crt"}]}},
        {"downwardAPI": {"items": [{"path": "namespace", "fieldRef": {"fieldPath": "metadata.namespace"}}]}}]}})
}
