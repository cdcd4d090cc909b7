//! `render --kinds kaos` and `--kinds beeai`: an installation for a cluster that wants the kinds of KAOS, or those of BeeAI with what their
//! builds need, and nothing else; and the Gateway for the routes of KAOS.
//!
//! Out: which definitions, rights, webhooks and roles for people are left out, and which kinds the processes do not watch (`serve --kinds`,
//! which `render` writes into their arguments): for them those have no objects, also where another operator serves them. The API server's
//! policies stay: those for absent kinds match nothing, and those of our own accounts refuse what would be made for one.

use clap::ValueEnum;
use serde_json::{Value, json};

use super::Install;
use super::platform::KEY_PLATFORM;
use super::rbac::Right;
use crate::config::schema::Platform;
use crate::domain::keys;
use crate::store::{Kind, KindOrigin};

/// Which kinds an installation serves.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
pub enum Kinds {
    /// Every kind.
    #[default]
    All,
    /// Agent, ModelAPI and MCPServer of kaos.tools.
    Kaos,
    /// Agent and AgentBuild of beeai.dev, and of beeai.beeai.dev beside manifests/beeai-compat.yaml.
    Beeai,
}

impl Kinds {
    /// Whether objects of that group, where it is one of ours or of what we build with, are served.
    #[must_use]
    pub fn serves(self, group: &str) -> bool {
        let others = || Kind::ALL.iter().filter(|kind| kind.group() == group).map(|kind| kind.descriptor().origin);
        let built_in = || others().all(|origin| origin == KindOrigin::BuiltIn);
        match self {
            Kinds::All => true,
            Kinds::Kaos => group == keys::GROUP_KAOS || group == GATEWAY || built_in(),
            Kinds::Beeai => {
                matches!(group, keys::GROUP_BEEAI | keys::GROUP_BEEAI_COMPAT | TEKTON)
                    || (group != GATEWAY && built_in())
            }
        }
    }

    /// Whether there are builds, which need templates and steps.
    #[must_use]
    pub fn builds(self) -> bool {
        self != Kinds::Kaos
    }

    /// Whether sidecars are injected into Pods.
    #[must_use]
    pub fn injects(self) -> bool {
        self == Kinds::All
    }

    /// Whether a right is needed.
    #[must_use]
    pub fn needs(self, right: &Right) -> bool {
        self.reads(right.group)
    }

    /// The kinds that are neither watched nor written.
    pub fn left_out(self) -> impl Iterator<Item = Kind> {
        Kind::ALL.iter().copied().filter(move |kind| !self.reads(kind.group()))
    }

    fn reads(self, group: &str) -> bool {
        // Rights are given to Pods that sign their AgentCard, which the others do not have.
        self.serves(group) && (self == Kinds::All || group != Kind::Role.group())
    }

    /// The argument of `serve` that says the same; none for every kind.
    #[must_use]
    pub fn argument(self) -> Option<String> {
        let value = self.to_possible_value().filter(|_| self != Kinds::All)?;
        Some(format!("--kinds={}", value.get_name()))
    }
}

/// API group of the Gateway API.
pub(super) const GATEWAY: &str = "gateway.networking.k8s.io";
const TEKTON: &str = "tekton.dev";

/// The Gateway that routes of KAOS lead to, which whoever runs the cluster makes: the operator has no right on Gateways. It is the one that the
/// platform file names, since the routes name that.
#[must_use]
pub fn gateway(install: &Install, class: &str) -> Value {
    // A file that cannot be understood names nothing: `render` refuses it before.
    let platform = install.platform_file.as_deref().and_then(|text| Platform::parse(text, KEY_PLATFORM).ok());
    let platform = platform.unwrap_or_else(Platform::built_in);
    let named = &platform.kaos().gateway;
    json!({
        "apiVersion": format!("{GATEWAY}/v1"),
        "kind": "Gateway",
        "metadata": {"name": named.name, "namespace": named.namespace.as_deref().unwrap_or(&install.namespace)},
        "spec": {
            "gatewayClassName": class,
            "listeners": [{
                "name": "http", "port": 80, "protocol": "HTTP", "allowedRoutes": {"namespaces": {"from": "All"}},
            }],
        },
    })
}

#[cfg(test)]
mod tests {
    use super::super::{FailureMode, parts};
    use super::*;

    #[test]
    fn a_cluster_that_wants_kaos_alone_gets_its_kinds_webhook_and_rights_and_no_others() {
        for mode in [FailureMode::Fail, FailureMode::Gate] {
            let install = Install { kinds: Kinds::Kaos, ..Install::new(mode, "kagenti-system", "a/b:1") };
            let objects: Vec<Value> = parts(&install).into_iter().flat_map(|part| part.objects).collect();
            let of = |kind: &str| objects.iter().filter(|object| object["kind"] == kind).collect::<Vec<_>>();
            let groups: Vec<_> =
                of("CustomResourceDefinition").iter().map(|one| one["spec"]["group"].clone()).collect();
            assert_eq!(groups, [json!("kaos.tools"), json!("kaos.tools"), json!("kaos.tools")]);
            let webhooks = &of("ValidatingWebhookConfiguration")[0]["webhooks"];
            assert_eq!(webhooks.as_array().map(Vec::len), Some(1), "{webhooks}");
            assert_eq!(webhooks[0]["name"], keys::WEBHOOK_KAOS);
            assert!(of("MutatingWebhookConfiguration")[0]["webhooks"].as_array().is_none_or(Vec::is_empty));
            for role in of("ClusterRole") {
                let text = role.to_string();
                assert!(
                    !text.contains("agent.kagenti.dev") && !text.contains("tekton.dev") && !text.contains("beeai.dev"),
                    "{text}"
                );
            }
            let people = of("ClusterRole").iter().filter(|role| role.to_string().contains("kaos.tools")).count();
            assert!(people >= 9, "three roles for each kind: {people}");
            assert!(
                objects.iter().all(|object| object["metadata"]["labels"]["kagenti.operator.dev/tekton"].is_null()),
                "no steps"
            );
            for deployment in of("Deployment") {
                let arguments = &deployment["spec"]["template"]["spec"]["containers"][0]["args"];
                assert!(arguments.as_array().unwrap().contains(&json!("--kinds=kaos")), "{arguments}");
            }
        }
        let gateway = gateway(&Install::new(FailureMode::Fail, "kaos", "a/b:1"), "envoy-gateway");
        assert_eq!(
            (&gateway["metadata"]["namespace"], &gateway["spec"]["gatewayClassName"]),
            (&json!("kaos"), &json!("envoy-gateway"))
        );
        assert_eq!(gateway["metadata"]["name"], "kaos-gateway");
    }

    /// Routes name the Gateway of the platform file: another one would lead nowhere.
    #[test]
    fn the_gateway_is_the_one_that_the_platform_file_names() {
        for (named, namespace, name) in [
            ("name: front", "kaos", "front"),
            ("namespace: edge", "edge", "kaos-gateway"),
            ("name: front, namespace: edge", "edge", "front"),
        ] {
            let mut install = Install::new(FailureMode::Fail, "kaos", "a/b:1");
            install.platform_file = Some(format!("kaos: {{gateway: {{enabled: true, {named}}}}}\n"));
            let metadata = gateway(&install, "envoy-gateway")["metadata"].clone();
            assert_eq!(metadata, json!({"name": name, "namespace": namespace}), "{named}");
        }
    }

    /// Without the webhook that injects, whatever is put behind the scheduling gate waits there for ever: another operator's agents, too, which
    /// carry the same labels.
    #[test]
    fn where_nothing_is_injected_nothing_is_put_behind_the_gate() {
        let rendered = |kinds: Kinds, mode: FailureMode| -> Vec<Value> {
            let install = Install { kinds, ..Install::new(mode, "kagenti-system", "a/b:1") };
            parts(&install).into_iter().flat_map(|part| part.objects).collect()
        };
        let gates = |objects: &[Value]| {
            let named = objects.iter().filter(|object| object["metadata"]["name"] == keys::GATE).count();
            (named, objects.iter().any(|object| object.to_string().contains("--failure-mode=gate")))
        };
        for kinds in [Kinds::Kaos, Kinds::Beeai] {
            let gated = rendered(kinds, FailureMode::Gate);
            assert_eq!(gates(&gated), (0, false), "{kinds:?}");
            // Rights, and what our own account may do with them, as well.
            assert_eq!(gated, rendered(kinds, FailureMode::Fail), "{kinds:?}");
        }
        assert_eq!(gates(&rendered(Kinds::All, FailureMode::Gate)), (3, true), "policy, binding and parameter");
    }

    #[test]
    fn a_cluster_that_wants_beeai_alone_gets_its_kinds_webhooks_rights_and_steps_and_no_others() {
        for mode in [FailureMode::Fail, FailureMode::Gate] {
            let install = Install { kinds: Kinds::Beeai, ..Install::new(mode, "kagenti-system", "a/b:1") };
            let objects: Vec<Value> = parts(&install).into_iter().flat_map(|part| part.objects).collect();
            let of = |kind: &str| objects.iter().filter(|object| object["kind"] == kind).collect::<Vec<_>>();
            let mut names: Vec<_> =
                of("CustomResourceDefinition").iter().filter_map(|one| one["metadata"]["name"].as_str()).collect();
            names.sort_unstable();
            assert_eq!(names, ["agentbuilds.beeai.dev", "agents.beeai.dev"]);
            let webhooks = of("ValidatingWebhookConfiguration")[0]["webhooks"].as_array().unwrap();
            let names: Vec<_> = webhooks.iter().map(|one| one["name"].clone()).collect();
            assert_eq!(names, [json!(keys::WEBHOOK_BEEAI_AGENT), json!(keys::WEBHOOK_BEEAI_BUILD)]);
            assert!(of("MutatingWebhookConfiguration")[0]["webhooks"].as_array().is_none_or(Vec::is_empty));
            let roles: String = of("ClusterRole").iter().map(|role| role.to_string()).collect();
            for foreign in ["agent.kagenti.dev", "kaos.tools", "gateway.networking.k8s.io"] {
                assert!(!roles.contains(&format!("\"{foreign}\"")), "{foreign}");
            }
            assert!(roles.contains("\"tekton.dev\"") && roles.contains("\"beeai.dev\""), "{roles}");
            let maps = of("ConfigMap");
            for name in ["pipeline-template-beeai", "image-push-step"] {
                assert!(maps.iter().any(|map| map["metadata"]["name"] == name), "{name}");
            }
        }
    }
}
