//! What is made beside workloads: one row per kind, with what must hold of one that is made, changed or deleted.
//!
//! A row that says nothing of an operation leaves it to `drawbridge-own-reach`, which refuses it where no right is asked for it.

mod trust;

use super::super::super::Install;
use super::{Fence, KAOS_WORKLOADS, both, controllers, holds, listed, made_for_kaos, our_prefix, rule, same, same_but};
use crate::domain::keys;
use crate::workloads::kaos::names::Role;

/// What holds of one kind.
struct Row {
    group: &'static str,
    resource: &'static str,
    /// Of one that is made.
    made: String,
    /// Of one that is changed.
    changed: String,
    /// Of one that is deleted.
    deleted: String,
    what: &'static str,
}

pub(super) fn fence(install: &Install) -> Fence {
    let rows = rows(&install.namespace);
    let validations = rows.iter().map(|row| {
        let Row { resource, made, changed, deleted, what, .. } = row;
        let expression = format!(
            "request.resource.resource != '{resource}' || (request.operation == 'CREATE' ? ({made}) : \
             request.operation == 'UPDATE' ? ({changed}) : ({deleted}))"
        );
        holds(expression, what)
    });
    let rules = rows.iter().map(|row| rule(row.group, &[row.resource], &["CREATE", "UPDATE", "DELETE"])).collect();
    let validations = validations.collect();
    Fence { variables: both().into(), ..Fence::new("drawbridge-own-objects", rules, validations) }
}

fn rows(own: &str) -> Vec<Row> {
    vec![
        config_maps(own),
        service_accounts(own),
        services(),
        secrets(own),
        claims(),
        runs(),
        pods(),
        leases(own),
        events(),
        agent_cards(),
        trust::network_policies(),
        trust::cluster_network_policies(),
        routes(),
        trust::roles(),
        trust::role_bindings(),
    ]
}

fn never() -> String {
    "false".to_owned()
}

fn here(own: &str) -> String {
    format!("request.namespace == '{own}'")
}

fn named(name: &str) -> String {
    format!("variables.new.metadata.?name.orValue('') == '{name}'")
}

fn labelled(of: &str, key: &str, value: &str) -> String {
    format!("variables.{of}.metadata.?labels[?'{key}'].orValue('') == '{value}'")
}

/// It carries the label of what we make.
fn marked(of: &str) -> String {
    labelled(of, keys::LABEL_APP_MANAGED_BY, keys::MANAGED_BY_DRAWBRIDGE)
}

/// It carries nothing that some other operator would act on.
fn plain(of: &str) -> String {
    annotated(of, &our_prefix())
}

/// It carries no annotation but those of which `is` says so, by their key `k`.
fn annotated(of: &str, is: &str) -> String {
    format!("variables.{of}.metadata.?annotations.orValue({{}}).all(k, {is})")
}

fn untouched(members: &[&str]) -> String {
    members.iter().map(|member| same(&format!("metadata.?{member}"))).collect::<Vec<_>>().join(" && ")
}

fn of_a_build(of: &str) -> String {
    format!("{}.size() > 0", controllers(&format!("variables.{of}"), "AgentBuild"))
}

fn of_its_agent(of: &str) -> String {
    format!("{}.exists(o, o.name == variables.{of}.metadata.name)", controllers(&format!("variables.{of}"), "Agent"))
}

/// Nobody owns it but what controls it. An owner that there is not takes what it alone owns along at once; with another one beside it that would stay,
/// in any namespace.
fn made_alone() -> String {
    "variables.new.metadata.?ownerReferences.orValue([]).all(o, o.?controller.orValue(false))".to_owned()
}

/// The same of one that is changed; what others have written stays.
fn kept_alone() -> String {
    "variables.new.metadata.?ownerReferences.orValue([]).all(o, o.?controller.orValue(false) || \
     o in variables.old.metadata.?ownerReferences.orValue([]))"
        .to_owned()
}

fn config_maps(own: &str) -> Row {
    let (here, names) = (here(own), listed(keys::NAMESPACE_CONFIG_MAPS));
    Row {
        group: "",
        resource: "configmaps",
        made: format!(
            "({}) || ({} && {} && {} && {}) || (!({here}) && variables.new.metadata.?name.orValue('') in [{names}] && {} && {} && \
             !has(variables.new.metadata.ownerReferences) && !has(variables.new.metadata.finalizers))",
            trust::made_for_signer("new", "!has(variables.new.data) && !has(variables.new.binaryData)"),
            of_its_proxy("new"),
            made_alone(),
            marked("new"),
            plain("new"),
            marked("new"),
            plain("new"),
        ),
        changed: format!(
            "({} && {} && {} && {}) || {} && {} && !({here}) && variables.old.metadata.name in [{names}] && {}",
            of_its_proxy("old"),
            of_its_proxy("new"),
            kept_alone(),
            untouched(&["finalizers"]),
            untouched(&["labels", "ownerReferences", "finalizers"]),
            same_but("annotations", &format!("k == '{}'", keys::ANNOTATION_CONTENT_DIGEST)),
            marked("old"),
        ),
        deleted: format!("({}) || ({} && {})", of_its_proxy("old"), trust::of_its_signer("old"), marked("old")),
        what: "writes no ConfigMap but those that injected Pods refer to, and those only while they are its own, the configuration of a \
               proxy, and the empty one that a Pod writes its signed card to",
    }
}

/// It is the configuration of a proxy of KAOS.
fn of_its_proxy(of: &str) -> String {
    made_for_kaos(&format!("variables.{of}"), &[(Role::ModelApi, "litellm-config-")])
}

/// It is the NetworkPolicy of a ModelAPI of KAOS.
fn of_its_api(of: &str) -> String {
    made_for_kaos(&format!("variables.{of}"), &[(Role::ModelApi, keys::PREFIX_MODEL_API)])
}

/// It is the Service of an Agent, or of an object of KAOS.
fn of_its_object(of: &str) -> String {
    format!("({} || {})", of_its_agent(of), made_for_kaos(&format!("variables.{of}"), &KAOS_WORKLOADS))
}

fn routes() -> Row {
    let names = [(Role::Agent, "agent-"), (Role::ModelApi, "modelapi-"), (Role::McpServer, "mcp-")];
    let of_its = |of: &str| made_for_kaos(&format!("variables.{of}"), &names);
    Row {
        group: "gateway.networking.k8s.io",
        resource: "httproutes",
        made: format!("{} && {} && {} && {}", of_its("new"), made_alone(), marked("new"), plain("new")),
        changed: format!(
            "{} && {} && {} && {}",
            of_its("old"),
            of_its("new"),
            kept_alone(),
            untouched(&["finalizers"])
        ),
        deleted: of_its("old"),
        what: "writes no HTTPRoute but that of an object of KAOS, under its name",
    }
}

fn services() -> Row {
    Row {
        group: "",
        resource: "services",
        made: format!(
            "{} && {} && variables.new.spec.?type.orValue('ClusterIP') == 'ClusterIP' && \
             !has(variables.new.spec.externalIPs) && !has(variables.new.spec.externalName)",
            of_its_object("new"),
            marked("new"),
        ),
        changed: format!(
            "{} && {} && {} && {}",
            of_its_object("old"),
            of_its_object("new"),
            ["?type", "?externalIPs", "?externalName"].map(|member| same(&format!("spec.{member}"))).join(" && "),
            untouched(&["finalizers"]),
        ),
        deleted: of_its_object("old"),
        what: "writes no Service but an Agent's or that of an object of KAOS, under its name, reachable within the cluster",
    }
}

fn secrets(own: &str) -> Row {
    let authority = format!(
        "{} && {} && variables.new.?type.orValue('') != 'kubernetes.io/service-account-token'",
        here(own),
        named(keys::SECRET_AUTHORITY)
    );
    Row {
        group: "",
        resource: "secrets",
        changed: format!(
            "{} && (({authority}) || (({} || {}) && {} && {}))",
            same("?type"),
            is_login("old"),
            is_left_over(),
            is_login("new"),
            owners_kept()
        ),
        made: format!("({authority}) || ({} && {})", is_login("new"), marked("new")),
        deleted: never(),
        what: "writes no Secret but that of the webhook's certificate authority, and the login that it makes for a build of BeeAI under that \
               build's name",
    }
}

/// The login of a registry that is made for a build of BeeAI: of its name, of one type, and with nothing else in it.
fn is_login(of: &str) -> String {
    let groups =
        [keys::GROUP_BEEAI, keys::GROUP_BEEAI_COMPAT].map(|group| format!("o.apiVersion.startsWith('{group}/')"));
    format!(
        "(variables.{of}.?type.orValue('') == 'kubernetes.io/dockerconfigjson' && \
         {}.exists(o, ({}) && variables.{of}.metadata.?name.orValue('') == o.name + '{}'))",
        controllers(&format!("variables.{of}"), "AgentBuild"),
        groups.join(" || "),
        keys::SUFFIX_LOGIN,
    )
}

/// The login of a build that is gone, which the Agents keep that pull with it, and the next build of its name takes over: one of their group.
fn is_left_over() -> String {
    let owners = "variables.old.metadata.?ownerReferences.orValue([])";
    let of_group = [keys::GROUP_BEEAI, keys::GROUP_BEEAI_COMPAT].map(|group| {
        format!(
            "({owners}.all(o, o.kind == 'Agent' && !o.?controller.orValue(false) && o.apiVersion.startsWith('{group}/')) && \
             {}.exists(o, o.apiVersion.startsWith('{group}/')))",
            controllers("variables.new", "AgentBuild")
        )
    });
    format!(
        "({} && variables.old.metadata.?annotations[?'{}'].hasValue() && {owners}.size() > 0 && ({}))",
        marked("old"),
        keys::ANNOTATION_SOURCE_VERSION,
        of_group.join(" || ")
    )
}

/// Owners stay, and the Agents that use it come.
fn owners_kept() -> String {
    let owners = |of: &str| format!("variables.{of}.metadata.?ownerReferences.orValue([])");
    format!("{}.all(o, o in {})", owners("old"), owners("new"))
}

fn claims() -> Row {
    Row {
        group: "",
        resource: "persistentvolumeclaims",
        made: format!("{} && {} && {}", of_a_build("new"), made_alone(), marked("new")),
        changed: never(),
        deleted: of_a_build("old"),
        what: "makes and deletes no claim but a build's",
    }
}

fn runs() -> Row {
    Row {
        group: "tekton.dev",
        resource: "pipelineruns",
        made: format!(
            "{} && {} && has(variables.new.metadata.labels) && '{}' in variables.new.metadata.labels",
            of_a_build("new"),
            marked("new"),
            keys::LABEL_AGENT_BUILD
        ),
        changed: format!(
            "{} && variables.new.spec.?status.orValue('') == 'Cancelled' && {}",
            of_a_build("old"),
            untouched(&["ownerReferences", "finalizers"]),
        ),
        deleted: of_a_build("old"),
        what: "makes, cancels and deletes no PipelineRun but a build's",
    }
}

fn pods() -> Row {
    Row {
        group: "",
        resource: "pods",
        made:
            "request.?dryRun.orValue(false) && variables.new.metadata.?generateName.orValue('') == 'drawbridge-probe-'"
                .to_owned(),
        changed: format!(
            "{} && {} && {} && {} && variables.new.metadata.?labels[?'{verified}'].orValue('{value}') == '{value}'",
            same("?spec"),
            untouched(&["annotations", "ownerReferences", "finalizers"]),
            same_but("labels", &format!("k in ['{}', '{}']", keys::LABEL_VERIFIED, keys::LABEL_QUARANTINED)),
            same("?status"),
            verified = keys::LABEL_VERIFIED,
            value = keys::VERIFIED,
        ),
        deleted: format!(
            "variables.old.spec.?schedulingGates.orValue([]).exists(gate, gate.name == '{}') || \
             (variables.old.metadata.?labels[?'{}'].hasValue() && \
             !(variables.old.?status.?phase.orValue('') in ['Pending', 'Running']))",
            keys::SCHEDULING_GATE,
            keys::LABEL_PIPELINE_RUN,
        ),
        what: "makes no Pod, deletes none but those that wait behind its scheduling gate and the ended ones of a build, and changes of a Pod its \
               trust label and that of quarantine only",
    }
}

fn leases(own: &str) -> Row {
    let ours = format!("{} && {}", here(own), named(keys::LEASE));
    Row {
        group: "coordination.k8s.io",
        resource: "leases",
        made: ours.clone(),
        changed: ours,
        deleted: never(),
        what: "holds no Lease but its own",
    }
}

fn events() -> Row {
    Row {
        group: "",
        resource: "events",
        made: "variables.new.?reportingComponent.orValue('').startsWith('drawbridge/')".to_owned(),
        changed: never(),
        deleted: never(),
        what: "tells Events under its own name only",
    }
}

/// A workload's card: it is owned by the workload; of those that others made, finalizers come off.
fn agent_cards() -> Row {
    let automatic = |of: &str| {
        let known = listed([keys::MANAGED_BY_DRAWBRIDGE, keys::MANAGED_BY_UPSTREAM]);
        format!("variables.{of}.metadata.?labels[?'{}'].orValue('') in [{known}]", keys::LABEL_APP_MANAGED_BY)
    };
    let finalizers = |of: &str| {
        let ours = listed([keys::FINALIZER_CARD, keys::FINALIZER_CARD_POLICY]);
        format!("variables.{of}.metadata.?finalizers.orValue([]).filter(f, !(f in [{ours}]))")
    };
    let owners = |of: &str| format!("variables.{of}.metadata.?ownerReferences.orValue([])");
    Row {
        group: keys::GROUP_AGENT,
        resource: "agentcards",
        made: format!(
            "{} && {}.exists(o, o.?controller.orValue(false)) && !has(variables.new.metadata.annotations) && \
             !has(variables.new.metadata.finalizers)",
            marked("new"),
            owners("new"),
        ),
        changed: format!(
            "{} && {} && {} && {} == {} && ({} == {} || ({} && {}.all(o, o in {})))",
            same("?spec"),
            same("metadata.?annotations"),
            same_but("labels", &format!("k == '{}' && {}", keys::LABEL_APP_MANAGED_BY, automatic("old"))),
            finalizers("new"),
            finalizers("old"),
            owners("new"),
            owners("old"),
            automatic("old"),
            owners("old"),
            owners("new"),
        ),
        deleted: automatic("old"),
        what: "makes and deletes no AgentCard but one of a workload that owns it, and changes of others their finalizers only",
    }
}

/// An account that we made ahead of a workload's Pods, or for an Agent; and those that parametrise policies, which nothing runs under.
fn service_accounts(own: &str) -> Row {
    let parameters =
        format!("{} && variables.new.metadata.?name.orValue('') in [{}]", here(own), listed(keys::PARAMETERS));
    let said = format!("k in [{}]", listed(keys::ANNOTATIONS_OF_PARAMETERS));
    let nobodys = "!has(variables.new.secrets) && !has(variables.new.imagePullSecrets) && !has(variables.new.metadata.finalizers)";
    let ours = |of: &str| {
        format!(
            "(variables.{of}.metadata.?labels[?'{}'].orValue('') == '{}' || variables.{of}.metadata.?ownerReferences.orValue([]).exists(o, \
             o.kind == 'Agent' && o.apiVersion.startsWith('{}/') && o.name == variables.{of}.metadata.name))",
            keys::LABEL_MANAGED_BY,
            keys::MANAGED_BY_WEBHOOK,
            keys::GROUP_AGENT,
        )
    };
    Row {
        group: "",
        resource: "serviceaccounts",
        made: format!(
            "{} && {nobodys} && ({} && {} && variables.new.metadata.?ownerReferences.orValue([]).size() > 0 || \
             {parameters} && {} && !has(variables.new.metadata.ownerReferences))",
            marked("new"),
            plain("new"),
            ours("new"),
            annotated("new", &said),
        ),
        changed: format!(
            "{} && {} && {} && ({} && {} && {} || {parameters} && {} && {})",
            same("?secrets"),
            same("?imagePullSecrets"),
            same("metadata.?finalizers"),
            ours("old"),
            ours("new"),
            same_but("annotations", &our_prefix()),
            untouched(&["labels", "ownerReferences"]),
            same_but("annotations", &said),
        ),
        deleted: never(),
        what: "writes no ServiceAccount but those it made for a workload or an Agent, and on those that parametrise policies only what those go by",
    }
}
