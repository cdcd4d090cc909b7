//! What one controller may know of another beside what stands in the cluster; pure.
//!
//! Another's last failure, because what was not made says nothing of why; and how the signature of a card stands, which its status does not say.
//! Nothing else is looked at: whoever has to know more reads it from an object.

use crate::controllers::scaffold::memory::{Memory, Trouble};
use crate::controllers::scaffold::plan::{Item, Name};
use crate::controllers::scaffold::signing::Signing;
use crate::store::Key;

/// The name of the controller of ConfigMaps that Pods refer to.
pub(in crate::controllers) const NAMESPACE_CONFIG: Name = Name::new("namespace-config");
/// The name of the controller of the trust label on Pods.
pub(in crate::controllers) const TRUST_LABEL: Name = Name::new("trust-label");
/// The name of the controller of what agents say of themselves.
pub(in crate::controllers) const AGENT_CARD: Name = Name::new("agent-card");

/// Why the ConfigMaps of a namespace could not be written.
pub(in crate::controllers) fn failure_of_config_maps<'a>(memory: &'a Memory, namespace: &str) -> Option<&'a Trouble> {
    memory.trouble(&Item { controller: NAMESPACE_CONFIG, key: Key::new(namespace, "") })
}

/// Why the label of a Pod could not be written.
pub(in crate::controllers) fn failure_of_label<'a>(
    memory: &'a Memory,
    namespace: &str,
    pod: &str,
) -> Option<&'a Trouble> {
    memory.trouble(&Item { controller: TRUST_LABEL, key: Key::new(namespace, pod) })
}

/// How the signature of a card stands, where it was judged.
pub(in crate::controllers) fn signing<'a>(memory: &'a Memory, card: &Key) -> Option<&'a Signing> {
    memory.signing(&Item { controller: AGENT_CARD, key: card.clone() })
}
