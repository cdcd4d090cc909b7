//! What the cluster has to offer: versions, SPIRE, Keycloak, switches and Pod Security of namespaces, Pods left behind the gate.

use std::collections::BTreeSet;

use serde_json::Value;

use super::{Seen, Status, Visit, issuer, keycloak, text};
use crate::cli::render::FailureMode;
use crate::cli::render::platform::KEY_PLATFORM;
use crate::cli::survey;
use crate::config::resolved::SpireSwitch;
use crate::config::schema::Platform;
use crate::config::trust::Trust;
use crate::config::view::PodSecurity;
use crate::domain::keys;
use crate::domain::mode::Mode;
use crate::domain::namespace_switch;
use crate::store::Kind;

pub(super) async fn versions(visit: &mut Visit) -> anyhow::Result<()> {
    let name = "API server";
    let (major, minor) = visit.cluster.version().await?;
    let (needed, why) = match visit.mode {
        FailureMode::Gate => ((1, 36), "mode gate"),
        FailureMode::Fail => ((1, 33), "Drawbridge"),
    };
    let seen = format!("version {major}.{minor}");
    if (major, minor) == (0, 0) {
        visit.unknown(name, "its version may not be read", "run doctor as somebody who may get /version");
    } else if (major, minor) < needed {
        visit.finding(name, seen, format!("{why} needs {}.{} or later: upgrade the cluster", needed.0, needed.1));
    } else {
        visit.ok(name, seen);
    }
    Ok(())
}

pub(super) async fn check(visit: &mut Visit, file: &PlatformFile) -> anyhow::Result<()> {
    spire(visit).await?;
    let mut notes = Vec::new();
    let pods = visit.list(Kind::Pod, &format!("?labelSelector={}", keys::LABEL_TYPE), &mut notes).await?;
    let namespaces = visit.cluster.list("/api/v1/namespaces", &mut notes).await?;
    if !notes.is_empty() {
        visit.unknown(
            "enrolled namespaces",
            notes.join("; "),
            "run doctor as somebody who may list Pods and Namespaces",
        );
        return Ok(());
    }
    let enrolled: BTreeSet<&str> = pods.iter().map(|pod| text(pod, "/metadata/namespace")).collect();
    let of_interest = namespaces.iter().filter(|namespace| {
        let labels = namespace.pointer("/metadata/labels").cloned().unwrap_or_default();
        let switch = labels[keys::LABEL_NAMESPACE_ENABLED].as_str();
        visit.watches(text(namespace, "/metadata/name"))
            && switch != Some("false")
            && (switch == Some("true") || enrolled.contains(text(namespace, "/metadata/name")))
    });
    let mode = file.platform().map(|platform| platform.resolved().mode.value);
    for namespace in of_interest.collect::<Vec<_>>() {
        let (status, seen, remedy) = pod_security(namespace, &pods, mode);
        let name = format!("Pod Security of namespace {}", text(namespace, "/metadata/name"));
        visit.add(&name, status, (seen, remedy.map(str::to_owned)));
    }
    let is_served = |namespace: &&Value| {
        let name = text(namespace, "/metadata/name");
        visit.watches(name) && name != visit.operator && !keys::SYSTEM_NAMESPACES.contains(&name)
    };
    let unread = switches(namespaces.iter().filter(is_served));
    if unread.is_empty() {
        let seen = format!("every label {} that a namespace has is true or false", keys::LABEL_NAMESPACE_ENABLED);
        visit.ok(SWITCHES, seen);
    }
    for (seen, remedy) in unread {
        visit.finding(SWITCHES, seen, remedy);
    }
    // In another mode nobody replaces them, which is said with what that mode left behind.
    if visit.mode == FailureMode::Gate {
        waiting(visit, &pods);
    }
    keycloak::check(visit, pods.iter().any(survey::is_injected)).await?;
    issuer::check(visit, &pods).await
}

async fn spire(visit: &mut Visit) -> anyhow::Result<()> {
    let name = format!("CSIDriver {}", keys::CSI_DRIVER_SPIFFE);
    let driver = format!("/apis/storage.k8s.io/v1/csidrivers/{}", keys::CSI_DRIVER_SPIFFE);
    let there = match visit.read(&name, &driver).await? {
        Seen::Is(_) => true,
        Seen::Absent => false,
        Seen::Hidden => return Ok(()),
    };
    let Some(platform) = platform(visit, &name).await? else { return Ok(()) };
    match (platform.resolved().spire.value, there) {
        (SpireSwitch::Required, false) => {
            visit.finding(
                &name,
                "is absent and SPIRE is required: injected Pods wait for it",
                "install the SPIFFE CSI driver, or set spire to auto",
            );
        }
        (SpireSwitch::Disabled, _) => visit.ok(&name, "SPIRE is switched off"),
        (SpireSwitch::Auto, false) => visit.ok(&name, "is absent: Pods are injected without SPIRE parts"),
        (_, true) => visit.ok(&name, "exists"),
    }
    Ok(())
}

/// The platform file, for the check of that name; what is built in where there is none or it cannot be understood, which another check
/// tells. `None` when it may not be read.
pub(super) async fn platform(visit: &mut Visit, name: &str) -> anyhow::Result<Option<Platform>> {
    let path = format!("/api/v1/namespaces/{}/configmaps/{}", visit.operator, keys::CONFIG_MAP_PLATFORM);
    let file = match visit.read(name, &path).await? {
        Seen::Is(file) => file,
        Seen::Absent => Value::Null,
        Seen::Hidden => return Ok(None),
    };
    let platform = Platform::parse(text(&file, &format!("/data/{KEY_PLATFORM}")), KEY_PLATFORM);
    Ok(Some(platform.unwrap_or_else(|_| Platform::built_in())))
}

/// The platform file of the cluster, as far as it says what is in force.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum PlatformFile {
    /// That text; `None` where there is no file, so that what is built in holds.
    Known(Option<String>),
    /// It may not be read, or not be understood: for this reason nobody knows what is in force.
    Unknown(String),
}

impl PlatformFile {
    /// The one of that text.
    pub(super) fn of(text: &str) -> Self {
        match Platform::parse(text, KEY_PLATFORM) {
            Ok(_) => PlatformFile::Known(Some(text.to_owned())),
            Err(_) => PlatformFile::Unknown(format!("ConfigMap {} has a fault", keys::CONFIG_MAP_PLATFORM)),
        }
    }

    /// What is in force, where that is known.
    pub(super) fn platform(&self) -> Option<Platform> {
        let PlatformFile::Known(text) = self else { return None };
        let platform = text.as_deref().and_then(|text| Platform::parse(text, KEY_PLATFORM).ok());
        Some(platform.unwrap_or_else(Platform::built_in))
    }

    /// What it says of trust.
    pub(super) fn trust(&self) -> Option<Trust> {
        self.platform().map(|platform| platform.cards().trust)
    }
}

/// The platform file, by which policies of the API server are rendered.
pub(super) async fn platform_file(visit: &mut Visit) -> anyhow::Result<PlatformFile> {
    let name = format!("ConfigMap {}", keys::CONFIG_MAP_PLATFORM);
    let path = format!("/api/v1/namespaces/{}/configmaps/{}", visit.operator, keys::CONFIG_MAP_PLATFORM);
    Ok(match visit.read(&name, &path).await? {
        Seen::Is(file) => PlatformFile::of(text(&file, &format!("/data/{KEY_PLATFORM}"))),
        Seen::Absent => PlatformFile::Known(None),
        Seen::Hidden => PlatformFile::Unknown(format!("{name} may not be read")),
    })
}

/// What switches a namespace off and on.
const SWITCHES: &str = "switches of namespaces";

/// What is wrong with labels that were meant to switch a namespace, each with the command that puts it right; in the words of admission.
fn switches<'n>(namespaces: impl Iterator<Item = &'n Value>) -> Vec<(String, String)> {
    let told = |namespace: &Value| {
        let switch = survey::label(namespace, keys::LABEL_NAMESPACE_ENABLED);
        let told = namespace_switch::unread(text(namespace, "/metadata/name"), switch)?;
        let (seen, remedy) = told.split_once(". What to do: ").unwrap_or((told.as_str(), "write true or false"));
        Some((seen.to_owned(), remedy.to_owned()))
    };
    namespaces.filter_map(told).collect()
}

/// Whether Pods run in that namespace, each of them injected by a mode that every level takes; those that opted out are nobody's concern. What a level
/// does not take never becomes a Pod; it is told of with its workload.
fn takes_what_runs(namespace: &str, pods: &[Value]) -> bool {
    let brings_init = |pod: &Value| {
        let containers = pod.pointer("/spec/initContainers").and_then(Value::as_array).into_iter().flatten();
        containers.into_iter().any(|container| container["name"] == keys::CONTAINER_PROXY_INIT)
    };
    let is_meant = |pod: &&Value| {
        text(pod, "/metadata/namespace") == namespace
            && survey::label(pod, keys::LABEL_INJECT) != Some(keys::INJECT_DISABLED)
    };
    let mut here = pods.iter().filter(is_meant).peekable();
    here.peek().is_some() && here.all(|pod| survey::is_injected(pod) && !brings_init(pod))
}

/// What the level of an enrolled namespace means for what is injected there. `mode`: that of the platform file, where that is known. Whoever asks for
/// another one in a namespace, or of a Pod, is told with his workload.
fn pod_security(namespace: &Value, pods: &[Value], mode: Option<Mode>) -> (Status, String, Option<&'static str>) {
    let level = survey::label(namespace, keys::LABEL_POD_SECURITY);
    let word = level.unwrap_or("not set");
    match (PodSecurity::of_label(level), mode) {
        (PodSecurity::Privileged, _) => (Status::Ok, format!("{word}: every mode can be injected"), None),
        (PodSecurity::Baseline | PodSecurity::Restricted, Some(mode)) if mode != Mode::EnvoySidecar => {
            let seen = format!("{word}: it takes what mode {} of the platform file injects", mode.as_str());
            (Status::Ok, seen, None)
        }
        _ if takes_what_runs(text(namespace, "/metadata/name"), pods) => {
            let seen = format!("{word}: the enrolled Pods there are injected without proxy-init, which it rejects");
            (Status::Ok, seen, None)
        }
        _ => (
            Status::Finding,
            format!("{word}: proxy-init of mode envoy-sidecar is rejected"),
            Some(
                "set pod-security.kubernetes.io/enforce=privileged, or annotate the Pods with kagenti.io/authbridge-mode: proxy-sidecar",
            ),
        ),
    }
}

fn waiting(visit: &mut Visit, pods: &[Value]) {
    let name = "Pods behind the gate";
    let gated: Vec<String> = pods
        .iter()
        .filter(|pod| {
            let gates = pod.pointer("/spec/schedulingGates").and_then(Value::as_array).into_iter().flatten();
            gates.into_iter().any(|gate| gate["name"] == keys::SCHEDULING_GATE)
        })
        .map(|pod| format!("{}/{}", text(pod, "/metadata/namespace"), text(pod, "/metadata/name")))
        .collect();
    if gated.is_empty() {
        visit.ok(name, "none");
    } else {
        let remedy = "those with a controller are replaced once the webhook answers; delete the others";
        visit.finding(name, gated.join(", "), remedy);
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// Once the remedy was followed there is nothing left to do.
    #[test]
    fn a_level_that_takes_every_pod_that_runs_is_no_finding() {
        let pod = |namespace: &str, sidecar: &str, init: &str| {
            json!({"metadata": {"namespace": namespace, "annotations": {keys::ANNOTATION_STATUS: "{}"}},
                "spec": {"containers": [{"name": "agent"}, {"name": sidecar}], "initContainers": [{"name": init}]}})
        };
        let light = || pod("team1", keys::CONTAINER_AUTHBRIDGE_PROXY, "own");
        let full = |namespace: &str| pod(namespace, keys::CONTAINER_ENVOY, keys::CONTAINER_PROXY_INIT);
        for (pods, taken) in [
            (vec![light()], true),
            (vec![light(), full("team2")], true),
            (vec![light(), full("team1")], false),
            (vec![light(), pod("team1", "plain", "own")], false),
            (vec![full("team2")], false),
            (Vec::new(), false),
        ] {
            assert_eq!(takes_what_runs("team1", &pods), taken, "{pods:?}");
        }
    }
    /// A cluster whose platform file injects by a mode that every level takes is told of no namespace whose agents are not there yet, and never to
    /// lower its level.
    #[test]
    fn a_mode_that_every_level_takes_is_no_finding_before_the_first_pod() {
        for level in [Some("restricted"), Some("baseline"), Some("privileged"), None] {
            let labels = level.map_or(json!({}), |level| json!({keys::LABEL_POD_SECURITY: level}));
            let namespace = json!({"metadata": {"name": "team1", "labels": labels}});
            let of = |mode: Option<Mode>| pod_security(&namespace, &[], mode).0;
            let is_hard = matches!(level, Some("restricted" | "baseline"));
            let wanted = if is_hard { Status::Finding } else { Status::Ok };
            assert_eq!((of(None), of(Some(Mode::EnvoySidecar))), (wanted, wanted), "{level:?}");
            for mode in [Mode::ProxySidecar, Mode::Waypoint] {
                assert_eq!(of(Some(mode)), Status::Ok, "{level:?}: {mode:?}");
            }
        }
    }

    /// It carries the type label and was never meant to be injected.
    #[test]
    fn a_pod_that_opted_out_is_no_reason_to_lower_the_level() {
        let pod = |inject: &str, annotations: Value| {
            json!({"metadata": {"namespace": "team1", "labels": {keys::LABEL_INJECT: inject}, "annotations": annotations},
                "spec": {"containers": [{"name": "agent"}]}})
        };
        let injected = || {
            let mut pod = pod("enabled", json!({keys::ANNOTATION_STATUS: "{}"}));
            pod["spec"]["containers"] = json!([{"name": "agent"}, {"name": keys::CONTAINER_AUTHBRIDGE_PROXY}]);
            pod
        };
        for (pods, taken) in [
            (vec![injected(), pod(keys::INJECT_DISABLED, json!({}))], true),
            (vec![injected(), pod("enabled", json!({}))], false),
            (vec![pod(keys::INJECT_DISABLED, json!({}))], false),
        ] {
            assert_eq!(takes_what_runs("team1", &pods), taken, "{pods:?}");
        }
    }

    #[test]
    fn a_switch_that_switches_nothing_is_told_with_the_command() {
        let namespace = |name: &str, switch: Value| json!({"metadata": {"name": name, "labels": switch}});
        let all = [
            namespace("a", json!({keys::LABEL_NAMESPACE_ENABLED: "False"})),
            namespace("b", json!({keys::LABEL_NAMESPACE_ENABLED: "false"})),
            namespace("c", json!({keys::LABEL_NAMESPACE_ENABLED: "true"})),
            namespace("d", json!({})),
        ];
        let told = switches(all.iter());
        assert_eq!(told.len(), 1, "{told:?}");
        let (seen, remedy) = &told[0];
        assert!(seen.starts_with("label kagenti-enabled of namespace a is \"False\""), "{seen}");
        assert_eq!(remedy, "kubectl label namespace a kagenti-enabled=false --overwrite");
    }
}
