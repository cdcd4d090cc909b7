//! Are the processes there, and can they read their configuration?

use super::{Seen, Visit, text};
use crate::cli::render::platform::{KEY_GATES, KEY_PLATFORM};
use crate::cli::render::rbac::Role;
use crate::config::gates::Gates;
use crate::config::schema::Platform;
use crate::domain::keys;
use crate::server::guards::watch::APPLY;

pub(super) async fn check(visit: &mut Visit) -> anyhow::Result<()> {
    for role in Role::ALL {
        let name = format!("Deployment {}", role.name());
        let path = format!("/apis/apps/v1/namespaces/{}/deployments/{}", visit.operator, role.name());
        let deployment = match visit.read(&name, &path).await? {
            Seen::Is(deployment) => deployment,
            Seen::Hidden => continue,
            Seen::Absent => {
                let remedy =
                    format!("name the operator's namespace with --operator-namespace; if it is that one, {APPLY}");
                visit.finding(&name, format!("not in namespace {}", visit.operator), remedy);
                continue;
            }
        };
        let count = |pointer: &str| deployment.pointer(pointer).and_then(serde_json::Value::as_u64).unwrap_or(0);
        let (ready, wanted) = (count("/status/readyReplicas"), count("/spec/replicas"));
        let seen = format!("{ready} of {wanted} replicas are ready");
        if ready == 0 || ready < wanted {
            let remedy = look_at(&visit.operator, role.name());
            visit.finding(&name, seen, remedy);
        } else {
            visit.ok(&name, seen);
        }
    }
    platform_file(visit).await?;
    gates(visit).await
}

/// What shows why the replicas of a Deployment are not ready.
pub(in crate::cli) fn look_at(namespace: &str, deployment: &str) -> String {
    format!(
        "kubectl -n {namespace} describe deployment {deployment}; kubectl -n {namespace} logs deployment/{deployment}"
    )
}

async fn platform_file(visit: &mut Visit) -> anyhow::Result<()> {
    let name = format!("ConfigMap {}", keys::CONFIG_MAP_PLATFORM);
    let path = format!("/api/v1/namespaces/{}/configmaps/{}", visit.operator, keys::CONFIG_MAP_PLATFORM);
    let config_map = match visit.read(&name, &path).await? {
        Seen::Is(config_map) => config_map,
        Seen::Hidden => return Ok(()),
        Seen::Absent => {
            let remedy = "apply what `drawbridge render --platform-file FILE` prints for this installation, with the file that you keep; without \
                          --platform-file it has the shipped settings";
            visit.finding(&name, "does not exist, so no image is named", remedy);
            return Ok(());
        }
    };
    match Platform::parse(text(&config_map, &format!("/data/{KEY_PLATFORM}")), KEY_PLATFORM) {
        Err(error) => visit.finding(
            &name,
            error.to_string(),
            "correct the lines named; the last good file is in force until then",
        ),
        Ok(platform) => match platform.missing_images().as_slice() {
            [] => visit.ok(&name, "is readable and names every image"),
            missing => visit.finding(&name, format!("no value for {}", missing.join(", ")), "name the images"),
        },
    }
    Ok(())
}

async fn gates(visit: &mut Visit) -> anyhow::Result<()> {
    let name = format!("ConfigMap {}", keys::CONFIG_MAP_GATES);
    let path = format!("/api/v1/namespaces/{}/configmaps/{}", visit.operator, keys::CONFIG_MAP_GATES);
    let config_map = match visit.read(&name, &path).await? {
        Seen::Is(config_map) => config_map,
        Seen::Hidden => return Ok(()),
        Seen::Absent => {
            visit.ok(&name, "does not exist; the built-in gates are in force");
            return Ok(());
        }
    };
    match Gates::parse(text(&config_map, &format!("/data/{KEY_GATES}")), KEY_GATES) {
        Err(error) => visit.finding(
            &name,
            error.to_string(),
            "correct the lines named; the last good file is in force until then",
        ),
        Ok((gates, _)) if !gates.global_enabled => {
            visit.finding(
                &name,
                "globalEnabled is false: nothing is injected",
                "set it to true when that is not meant",
            );
        }
        Ok(_) => visit.ok(&name, "is readable"),
    }
    Ok(())
}
