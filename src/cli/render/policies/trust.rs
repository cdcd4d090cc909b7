//! What the API server holds of trust by itself, also while no replica is there.
//!
//! | policy | what it refuses |
//! | --- | --- |
//! | `drawbridge-trust-pods` | Pods of agents, in `enforced-all` every Pod, while their namespace lacks the NetworkPolicy that cuts them off ([`waiting`]) |
//! | `drawbridge-trust-networks` | that anybody but us makes, changes or deletes a NetworkPolicy of ours ([`networks`]) |
//! | `drawbridge-trust-label` | that anybody but us puts the trust label on a Pod or takes it off ([`label`]) |
//! | `drawbridge-trust-owners` | that who makes Pods in one namespace alone says that Kubernetes' controllers made an agent's Pod ([`owners`]) |
//! | `drawbridge-trust-cards` | that anybody but us writes the status of an AgentCard, or our finalizers ([`cards`]) |
//! | `drawbridge-trust-switch` | that who holds rights in one namespace alone changes how far trust is enforced there, or whom its agents reach elsewhere ([`switch`]) |
//! | `drawbridge-trust-quarantine` | new Pods of who is in quarantine ([`quarantine`]) |
//! | `drawbridge-trust-quarantined` | that anybody but us puts the label of quarantine on a Pod or takes it off, and that such a Pod stops to be an agent |
//! | `drawbridge-trust-addresses` | that who holds rights in namespace `default` alone says where the API server is ([`addresses`]) |
//! | `drawbridge-trust-types` | that a running Pod stops to be an agent where agents are cut off ([`types`]) |
//!
//! In: the installation. Out: policies with their bindings. A policy with parameters is asked before its conditions, so whom it concerns is
//! said by selectors alone: the label of the namespace, and of the Pod.

mod addresses;
mod cards;
mod label;
mod networks;
mod owners;
mod quarantine;
mod switch;
mod types;
mod waiting;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector;
use serde_json::Value;

use super::super::Install;
use super::super::rbac::Role;
use super::super::selectors::{LABEL_NAMESPACE_NAME, outside_system, requirement};
use super::listed;
use crate::config::schema::Platform;
use crate::domain::keys;
use crate::domain::trust::TrustLevel;

/// The policies, each followed by what binds it.
pub(super) fn policies(install: &Install) -> Vec<Value> {
    let mut all = waiting::policy(install);
    all.extend(networks::policy(install));
    all.extend(label::policy(install));
    all.extend(owners::policy(install));
    all.extend(cards::policy(install));
    all.extend(switch::policy(install));
    all.extend(addresses::policy(install));
    all.extend(types::policy(install));
    all.extend(quarantine::new_pods(install));
    all.extend(quarantine::running_pods(install));
    all
}

/// As the API server calls the account of the controllers.
fn ours(install: &Install) -> String {
    format!("system:serviceaccount:{}:{}", install.namespace, Role::Controllers.name())
}

/// That it was the account of the controllers.
pub(super) fn by_us(install: &Install) -> String {
    format!("request.userInfo.username == '{}'", ours(install))
}

/// What the platform says where a namespace says nothing, and the least that one may say.
fn platform(install: &Install) -> (TrustLevel, TrustLevel) {
    let platform = install.platform_file.as_deref().and_then(|text| Platform::parse(text, "").ok());
    let trust = platform.unwrap_or_else(Platform::built_in).cards().trust;
    (trust.default, trust.floor)
}

/// The namespaces in which that level, or more, is in force.
fn at_least(install: &Install, level: TrustLevel) -> LabelSelector {
    let (default, floor) = platform(install);
    let mut expressions = vec![outside_system(&install.namespace)];
    if floor < level {
        let said = |wanted: bool| TrustLevel::ALL.into_iter().filter(move |one| (*one >= level) == wanted);
        let words = |wanted| said(wanted).map(TrustLevel::as_str);
        expressions.push(if default >= level {
            requirement(keys::LABEL_TRUST, "NotIn", words(false))
        } else {
            requirement(keys::LABEL_TRUST, "In", words(true))
        });
    }
    if !install.namespaces.is_empty() {
        expressions.push(requirement(LABEL_NAMESPACE_NAME, "In", install.namespaces.iter().map(String::as_str)));
    }
    LabelSelector { match_expressions: Some(expressions), ..LabelSelector::default() }
}

/// The same as an expression about `namespaceObject`.
fn is_at_least(install: &Install, level: TrustLevel) -> String {
    let (default, floor) = platform(install);
    if floor >= level {
        return "true".to_owned();
    }
    let label = format!("namespaceObject.metadata.?labels[?'{}'].orValue('')", keys::LABEL_TRUST);
    let words = |wanted: bool| {
        let of = TrustLevel::ALL.into_iter().filter(move |one| (*one >= level) == wanted);
        listed(of.map(TrustLevel::as_str))
    };
    if default >= level { format!("!({label} in [{}])", words(false)) } else { format!("{label} in [{}]", words(true)) }
}

/// Pods that say they are agents.
fn agents() -> LabelSelector {
    let labels = [(keys::LABEL_TYPE.to_owned(), "agent".to_owned())];
    LabelSelector { match_labels: Some(labels.into()), ..LabelSelector::default() }
}
