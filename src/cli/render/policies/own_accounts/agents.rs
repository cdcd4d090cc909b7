//! What is made for an Agent, compared with that Agent: every Agent of the namespace is a parameter in turn, and the one that owns the
//! object must say so. That there is one at all, a second policy asks when something is made: an owner that does not exist is collected,
//! but only after a moment.
//!
//! For every parameter the API server converts the object that is written four times: with 500 of them a write takes it 150 ms of processor
//! time. So the second policy looks at Agents that carry label `agent.kagenti.dev/policy-parameter`, which the controller writes on one of
//! those that exist: a few where many are made at once, and one otherwise. Of builds there are few, and their runs need no conversion.
//!
//! Without a parameter, and while its kind is not installed, the API server refuses before it looks at who asks: so both match only what
//! carries the labels that we put on what we make, and on nothing of the installation. What they refuse is tried again: the API server hears
//! of a parameter a moment late, and looks for kinds that it does not know every 30 s, also after its own start.

use std::collections::BTreeMap;

use k8s_openapi::api::admissionregistration::v1::{NamedRuleWithOperations, Validation};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{LabelSelector, LabelSelectorRequirement};

use super::{Fence, Params, controllers, holds, rule, variable};
use crate::domain::keys;
use crate::store::Kind;
use crate::workloads::kaos::names::Role;

/// As the Agent says: name, account, and image where it names one.
pub(super) fn fence() -> Fence {
    let text = |path: &str| format!("params.spec.?{path}.orValue('')", path = path.replace('/', ".?"));
    let accounts = [
        text("podTemplateSpec/spec/serviceAccountName"),
        text("podTemplateSpec/spec/serviceAccount"),
        "params.metadata.name".to_owned(),
    ];
    let images = [text("imageSource/image"), text("image")];
    let variables = vec![
        variable("new", "dyn(object)"),
        variable("owned", format!("{}.exists(o, o.uid == params.metadata.uid)", controllers("variables.new", "Agent"))),
        // What is written beside `spec` alone runs nothing that did not run: what an Agent takes over is ours before it is as the Agent says.
        variable(
            "deploys",
            "variables.owned && request.resource.resource == 'deployments' && (request.operation == 'CREATE' || variables.new.spec != \
             dyn(oldObject).spec)",
        ),
        variable("pod", "variables.new.spec.template.spec"),
        variable("account", format!("[{}].filter(n, n != '')[0]", accounts.join(", "))),
        variable("images", format!("[{}].filter(n, n != '')", images.join(", "))),
        variable(
            "runs",
            format!(
                "variables.pod.containers.exists(c, c.name == '{0}') ? variables.pod.containers.filter(c, c.name == '{0}')[0] : \
                 variables.pod.containers[0]",
                keys::CONTAINER_AGENT
            ),
        ),
    ];
    let validations = vec![
        holds(
            "!variables.owned || variables.new.metadata.name == params.metadata.name".to_owned(),
            "gives what it makes for an Agent that Agent's name",
        ),
        holds(
            "!variables.deploys || variables.pod.?serviceAccountName.orValue('') == variables.account".to_owned(),
            "runs an Agent under the account that the Agent names, or its own",
        ),
        holds(
            "!variables.deploys || variables.images.size() == 0 || variables.runs.?image.orValue('') == variables.images[0]"
                .to_owned(),
            "runs the image that the Agent names",
        ),
    ];
    Fence {
        objects: Some(made_by_us()),
        variables,
        params: Some(Params { kind: Kind::Agent, selected: LabelSelector::default(), missing: "Allow" }),
        ..Fence::new(keys::POLICY_OWN_AGENTS, matched(&["CREATE", "UPDATE"]), validations)
    }
}

/// Nothing is made for an Agent where there is none, in the operator's namespace as elsewhere. What says by its labels that it is made for something
/// else is left to the policy about that; and whatever word it says that none of these is about, it is asked for here.
pub(super) fn new_agents() -> Fence {
    let without = LabelSelectorRequirement {
        key: keys::LABEL_BEEAI_GROUP.to_owned(),
        operator: "NotIn".to_owned(),
        values: Some([keys::GROUP_BEEAI, keys::GROUP_BEEAI_COMPAT].map(str::to_owned).into()),
    };
    let without_kaos = LabelSelectorRequirement {
        key: keys::LABEL_KAOS_KIND.to_owned(),
        operator: "NotIn".to_owned(),
        values: Some([Role::Agent, Role::ModelApi, Role::McpServer].map(|role| role.word().to_owned()).into()),
    };
    Fence {
        objects: Some(LabelSelector { match_expressions: Some(vec![without, without_kaos]), ..made_by_us() }),
        params: Some(one_of(Kind::Agent)),
        ..Fence::new(keys::POLICY_OWN_AGENTS_NEW, matched(&["CREATE"]), vec![there_is_one()])
    }
}

/// The same for the Agents of a group of BeeAI: what is made for them carries their group, which is the parameters' own, so that what
/// carries another's asks for that one's.
pub(super) fn new_beeai_agents(name: &'static str, kind: Kind) -> Fence {
    let mut objects = made_by_us();
    let group = (keys::LABEL_BEEAI_GROUP.to_owned(), kind.group().to_owned());
    objects.match_labels.get_or_insert_default().extend([group]);
    Fence {
        objects: Some(objects),
        params: Some(one_of(kind)),
        ..Fence::new(name, matched(&["CREATE"]), vec![there_is_one()])
    }
}

/// The same for a kind of KAOS: what is made for one carries a label that says which.
pub(super) fn new_of_kaos(name: &'static str, (kind, role): (Kind, Role)) -> Fence {
    let mut objects = made_by_us();
    let of = (keys::LABEL_KAOS_KIND.to_owned(), role.word().to_owned());
    objects.match_labels.get_or_insert_default().extend([of]);
    Fence {
        objects: Some(objects),
        params: Some(one_of(kind)),
        ..Fence::new(name, matched(&["CREATE"]), vec![there_is_one()])
    }
}

/// Nothing is made for a build where there is none.
pub(super) fn new_builds() -> Fence {
    let without = LabelSelectorRequirement {
        key: keys::LABEL_BEEAI_GROUP.to_owned(),
        operator: "NotIn".to_owned(),
        values: Some([keys::GROUP_BEEAI, keys::GROUP_BEEAI_COMPAT].map(str::to_owned).into()),
    };
    Fence {
        objects: Some(LabelSelector {
            match_expressions: Some(vec![of_a_build(), without]),
            ..LabelSelector::default()
        }),
        params: Some(any_of(Kind::AgentBuild)),
        ..Fence::new(keys::POLICY_OWN_BUILDS_NEW, runs(), vec![there_is_one()])
    }
}

/// The same for the builds of a group of BeeAI, whose runs carry their group.
pub(super) fn new_beeai_builds(name: &'static str, kind: Kind) -> Fence {
    let group = BTreeMap::from([(keys::LABEL_BEEAI_GROUP.to_owned(), kind.group().to_owned())]);
    Fence {
        objects: Some(LabelSelector { match_labels: Some(group), match_expressions: Some(vec![of_a_build()]) }),
        params: Some(any_of(kind)),
        ..Fence::new(name, runs(), vec![there_is_one()])
    }
}

/// No Agent of BeeAI is made for a build where there is none: who made one in any namespace could make Deployments there for it. It is known by the
/// label that what builds make carries, without which our account makes none.
pub(super) fn new_kept(name: &'static str, kind: Kind) -> Fence {
    let label = (keys::LABEL_APP_MANAGED_BY.to_owned(), keys::BEEAI_BUILD_CONTROLLER.to_owned());
    Fence {
        objects: Some(LabelSelector { match_labels: Some(BTreeMap::from([label])), ..LabelSelector::default() }),
        params: Some(any_of(kind)),
        ..Fence::new(name, vec![rule(kind.group(), &["agents"], &["CREATE"])], vec![there_is_one()])
    }
}

fn runs() -> Vec<NamedRuleWithOperations> {
    vec![rule("tekton.dev", &["pipelineruns"], &["CREATE"])]
}

fn of_a_build() -> LabelSelectorRequirement {
    LabelSelectorRequirement { key: keys::LABEL_AGENT_BUILD.to_owned(), operator: "Exists".to_owned(), values: None }
}

/// The objects of that kind that the controller has marked.
fn one_of(kind: Kind) -> Params {
    let label = (keys::LABEL_POLICY_PARAMETER.to_owned(), keys::POLICY_PARAMETER.to_owned());
    Params {
        kind,
        selected: LabelSelector { match_labels: Some(BTreeMap::from([label])), ..LabelSelector::default() },
        missing: "Deny",
    }
}

/// Every object of that kind.
fn any_of(kind: Kind) -> Params {
    Params { kind, selected: LabelSelector::default(), missing: "Deny" }
}

/// Of each parameter nothing is asked but that it is there.
fn there_is_one() -> Validation {
    holds("params != null".to_owned(), "makes nothing for an Agent or a build where there is none")
}

fn matched(operations: &[&str]) -> Vec<NamedRuleWithOperations> {
    vec![rule("apps", &["deployments"], operations), rule("", &["services"], operations)]
}

fn made_by_us() -> LabelSelector {
    let label = (keys::LABEL_APP_MANAGED_BY.to_owned(), keys::MANAGED_BY_DRAWBRIDGE.to_owned());
    LabelSelector { match_labels: Some(BTreeMap::from([label])), ..LabelSelector::default() }
}
