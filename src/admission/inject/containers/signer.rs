//! `sign-agentcard`: signs the agent's card before anything else of the Pod runs, and publishes it; as a native sidecar it stays, and does so anew whenever
//! the Pod's SVID is renewed or the card changes.
//!
//! It runs the program `card sign --in-pod` of Drawbridge's own image, which takes everything from the environment as the Go operator's signer
//! does, so that an image of that one can stand in. What it may write is the one ConfigMap that a controller has made ahead of it.

use std::borrow::Cow;

use serde_json::json;

use super::image;
use crate::admission::inject::context::Context;
use crate::admission::inject::plan::{Container, EnvVar, Mount, SecurityContext, ValueFrom};
use crate::admission::inject::token::TOKEN_PATH;
use crate::admission::verdict::Denial;
use crate::domain::keys;

/// The user of the signer's image.
const UID: i64 = 65532;
/// What the program is asked for; nothing to sign is no reason to hold the agent up.
const ARGS: [&str; 4] = ["card", "sign", "--in-pod", "--if-present"];
/// What it is asked for besides where it stays.
const STAY: &str = "--stay";
/// Tells whether the one that stays has let the agent start: a program, because a port could be one that the agent wants.
const HAS_STARTED: [&str; 5] = ["/drawbridge", "card", "sign", "--in-pod", "--has-started"];
/// Where the SPIFFE agent's socket is seen.
const PATH_SOCKETS: &str = "/run/spire/agent-sockets";
/// The socket, as the Workload API names it.
const SOCKET: &str = "unix:///run/spire/agent-sockets/spire-agent.sock";
/// Where the card is read.
const PATH_UNSIGNED: &str = "/etc/agentcard";
/// How long everything may take.
const TIMEOUT: &str = "30s";

/// The container.
pub(in crate::admission::inject) fn container<'a>(cx: &Context<'a>) -> Result<Container<'a>, Box<Denial>> {
    let resolved = cx.effective.resolved;
    let stays = cx.effective.signer_stays;
    let file = |folder: &str, name: &str| format!("{folder}/{name}");
    Ok(Container {
        name: keys::CONTAINER_SIGNER,
        image: image(&resolved.images.card_signer, "cardSigner")?,
        image_pull_policy: Cow::Borrowed(&resolved.images.pull_policy.value),
        command: vec![],
        args: ARGS.into_iter().chain(stays.then_some(STAY)).map(Cow::Borrowed).collect(),
        ports: vec![],
        env: vec![
            EnvVar::literal("SPIFFE_ENDPOINT_SOCKET", SOCKET),
            EnvVar::literal("UNSIGNED_CARD_PATH", file(PATH_UNSIGNED, keys::KEY_UNSIGNED_CARD)),
            EnvVar::literal("AGENT_CARD_PATH", file(keys::PATH_SIGNED_CARD, keys::KEY_SIGNED_CARD)),
            EnvVar::literal("SIGN_TIMEOUT", TIMEOUT),
            EnvVar::literal("AGENT_NAME", cx.workload.name.clone()),
            EnvVar::from("POD_NAMESPACE", ValueFrom::Field { field_path: "metadata.namespace" }),
        ],
        resources: Cow::Borrowed(&resolved.resources.card_signer.value),
        restart_policy: stays.then_some("Always"),
        // Longer than the program waits for its first signature, so that its own words are the end of it.
        startup_probe: stays.then(|| {
            json!({"exec": {"command": HAS_STARTED}, "periodSeconds": 1, "timeoutSeconds": 5, "failureThreshold": 90})
        }),
        security_context: SecurityContext {
            read_only_root_filesystem: Some(true),
            ..SecurityContext::unprivileged(cx.user_of_image(UID), None)
        },
        volume_mounts: vec![
            Mount::read_only(keys::VOLUME_SPIRE_SOCKET, PATH_SOCKETS),
            Mount::read_only(keys::VOLUME_UNSIGNED_CARD, PATH_UNSIGNED),
            Mount::writable(keys::VOLUME_SIGNED_CARD, keys::PATH_SIGNED_CARD),
            Mount::read_only(keys::VOLUME_SIGNER_TOKEN, TOKEN_PATH),
        ],
        listens_on: None,
    })
}
