//! AgentCards: what their agents, their signers and those who read them write and ask for.

use super::{LABEL_APP_NAME, is_ours};

/// Beginning of the annotations and finalizers of AgentCards and their signing.
pub const PREFIX_CARD: &str = "agentcard.kagenti.dev/";
/// Name of the init container that signs an agent's card.
pub const CONTAINER_SIGNER: &str = "sign-agentcard";
/// Annotation of a Pod or Pod template: `true` has the card of its agent signed when a Pod starts, by [`CONTAINER_SIGNER`];
/// [`SIGN_SIDECAR`] has it signed anew by each renewal of the Pod's SVID besides.
pub const ANNOTATION_SIGN: &str = "agentcard.kagenti.dev/sign";
/// Value of [`ANNOTATION_SIGN`]: [`CONTAINER_SIGNER`] is a native sidecar, which stays.
pub const SIGN_SIDECAR: &str = "sidecar";
/// Annotation of a Pod or Pod template: `true` shows the signed card to its containers, as file [`KEY_SIGNED_CARD`](super::KEY_SIGNED_CARD) in [`PATH_SIGNED_CARD`].
pub const ANNOTATION_MOUNT_SIGNED: &str = "agentcard.kagenti.dev/mount-signed";
/// Annotation of a ConfigMap for a signed card that was made ahead of the signature, and holds none yet; the signer takes it off.
pub const ANNOTATION_AWAITS_SIGNATURE: &str = "agentcard.kagenti.dev/awaits-signature";
/// Where the signed card is written in a Pod.
pub const PATH_SIGNED_CARD: &str = "/app/.well-known";
/// End of the name of the ConfigMap that holds the card of a workload that is to be signed, behind the workload's name.
pub const SUFFIX_UNSIGNED_CARD: &str = "-card-unsigned";
/// Its key.
pub const KEY_UNSIGNED_CARD: &str = "agent.json";
/// Field manager of the signer, and `app.kubernetes.io/managed-by` of the ConfigMap that it makes itself.
pub const MANAGER_SIGNER: &str = "agentcard-signer";
/// Annotation of a Pod template: `true` says that its Pods sign their card when they start, without an init container of that name.
pub const ANNOTATION_RESIGN: &str = "agentcard.kagenti.dev/resign";
/// Annotation of a Pod template: when it was last restarted to have its card signed anew, RFC 3339.
pub const ANNOTATION_RESIGN_TRIGGER: &str = "agentcard.kagenti.dev/resign-trigger";
/// Annotation of a Pod template: the end of the certificate, or of its authority, for which that was done, RFC 3339.
pub const ANNOTATION_RESIGN_EXPIRY: &str = "agentcard.kagenti.dev/resign-leaf-expiry";
/// Annotation of a workload: why that was done ([`crate::domain::resign::Cause`]).
pub const ANNOTATION_RESIGN_CAUSE: &str = "agentcard.kagenti.dev/resign-cause";
/// Annotation of a workload: fingerprint of the authorities of which none vouched for its signature when it was last restarted for that.
pub const ANNOTATION_BUNDLE_HASH: &str = "agentcard.kagenti.dev/bundle-hash";
/// Annotation of an agent's Service: number of its port at which the card is asked for; where that says nothing, annotation of the workload with
/// the port's number or name.
pub const ANNOTATION_CARD_PORT: &str = "kagenti.io/port";
/// What stands before a protocol's name in a label of a workload that speaks it.
pub const PREFIX_PROTOCOL: &str = "protocol.kagenti.io/";
/// Older labels of a workload whose value is the one protocol that it speaks, the newer one first.
pub const LABELS_PROTOCOL: [&str; 2] = ["kagenti.io/protocol", "kagenti.io/agent-protocol"];

/// Whether an annotation of a Pod template says whether and when its Pods sign their card.
#[must_use]
pub fn is_of_signer(key: &str) -> bool {
    let all = [
        ANNOTATION_SIGN,
        ANNOTATION_MOUNT_SIGNED,
        ANNOTATION_RESIGN,
        ANNOTATION_RESIGN_TRIGGER,
        ANNOTATION_RESIGN_EXPIRY,
    ];
    all.contains(&key)
}

/// Whether a label of an agent's workload is one that is read there.
#[must_use]
pub fn is_of_agent(key: &str) -> bool {
    is_ours(key) || key.starts_with(PREFIX_PROTOCOL) || key == LABEL_APP_NAME
}
