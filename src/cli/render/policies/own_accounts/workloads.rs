//! Workloads: of what no Agent controls we write our labels and annotations, those of its template, `suspend` of a Job whose Pods wait
//! behind the gate, and the replicas of a Sandbox that is being restarted. A Deployment that an Agent controls is ours to write. One that the
//! KAOS operator made lacks our label until something else is wanted of it: till then it is as anybody's, but for the annotation by which its
//! Pods follow a Secret.
//!
//! What is left of an object without these parts must be what it was: comparing by subtraction needs no list of the fields that there are.
//! `deprecated.daemonset.template.generation` is counted up by the API server within our request (measured).

use k8s_openapi::api::admissionregistration::v1::Variable;

use super::{
    Fence, KAOS_WORKLOADS, both, controllers, holds, listed, made_for_kaos, of_kaos, our_prefix, rule, same, same_but,
    variable,
};
use crate::domain::keys;

/// What only people write, though it has our prefix: it opts out, or steers what is injected.
pub(super) const OF_PEOPLE: [&str; 12] = [
    keys::LABEL_INJECT,
    keys::LABEL_ENVOY_PROXY,
    keys::LABEL_SPIFFE_HELPER,
    keys::LABEL_CLIENT_REGISTRATION,
    keys::ANNOTATION_MODE,
    keys::ANNOTATION_OUTBOUND_EXCLUDE,
    keys::ANNOTATION_INBOUND_EXCLUDE,
    keys::ANNOTATION_NATIVE_SIDECARS,
    keys::ANNOTATION_CREDENTIALS,
    keys::ANNOTATION_PORT_VARIABLE,
    keys::ANNOTATION_STATUS,
    keys::ANNOTATION_RUNTIME_CONFIG,
];
/// What a restart for a card's signature leaves on a workload and its template.
const OF_SIGNING: [&str; 4] = [
    keys::ANNOTATION_RESIGN_TRIGGER,
    keys::ANNOTATION_RESIGN_EXPIRY,
    keys::ANNOTATION_RESIGN_CAUSE,
    keys::ANNOTATION_BUNDLE_HASH,
];
const DAEMON_SET_GENERATION: &str = "deprecated.daemonset.template.generation";
const METADATA: &str = "writes nothing on a workload that no Agent controls but its own labels and annotations";
const SPEC: &str = "writes nothing of a workload that no Agent controls but labels and annotations of its template";

pub(super) fn fence() -> Fence {
    let updates = |expression: &str| format!("variables.is_free || request.operation != 'UPDATE' || ({expression})");
    let is = |resource: &str| format!("request.resource.resource == '{resource}'");
    let annotation = |of: &str, key: &str| format!("variables.{of}.metadata.?annotations[?'{key}']");
    let (pending, suspended) = (keys::ANNOTATION_RESTART_PENDING, keys::ANNOTATION_SUSPENDED);
    let validations = vec![
        holds(
            format!("request.operation != 'CREATE' || (variables.for_agent && {MARKED})"),
            "makes no workload but the Deployment of an Agent, under its name",
        ),
        holds("request.operation != 'DELETE' || variables.of_agent".to_owned(), "deletes no workload but an Agent's"),
        holds(format!("request.operation != 'UPDATE' || {}", same_owners()), "changes nobody's owner"),
        holds(updates(&same_but("labels", &our_label("v"))), METADATA),
        holds(updates(&same_but("annotations", &our_annotation())), METADATA),
        holds(updates(&same("metadata.?finalizers")), METADATA),
        holds(updates("variables.spec == variables.oldSpec"), SPEC),
        holds(
            updates(&format!(
                "!({}) || (variables.job == variables.oldJob && variables.jobSpec == variables.oldJobSpec)",
                is("cronjobs")
            )),
            SPEC,
        ),
        holds(updates("variables.pod == variables.oldPod"), SPEC),
        holds(updates("variables.podMetadata == variables.oldPodMetadata"), SPEC),
        holds(
            updates(&format!(
                "!({}) || {same} || ({}.hasValue() && variables.new.spec.?suspend.orValue(false)) || \
                 ({}.hasValue() && !variables.new.spec.?suspend.orValue(false))",
                is("jobs"),
                annotation("new", suspended),
                annotation("old", suspended),
                same = same("spec.?suspend"),
            )),
            "suspends and resumes no Job but one whose Pods wait behind the scheduling gate",
        ),
        holds(
            updates(&format!(
                "!({}) || {same} || ({}.orValue('') == 'true' && variables.new.spec.?replicas.orValue(1) == 0) || {}.hasValue()",
                is("sandboxes"),
                annotation("new", pending),
                annotation("old", pending),
                same = same("spec.?replicas"),
            )),
            "scales no Sandbox but one that it restarts",
        ),
    ];
    Fence {
        variables: variables(),
        ..Fence::new(
            "drawbridge-own-workloads",
            vec![
                rule(
                    "apps",
                    &["deployments", "statefulsets", "daemonsets", "replicasets"],
                    &["CREATE", "UPDATE", "DELETE"],
                ),
                rule("batch", &["jobs", "cronjobs"], &["CREATE", "UPDATE", "DELETE"]),
                rule("agents.x-k8s.io", &["sandboxes"], &["CREATE", "UPDATE", "DELETE"]),
            ],
            validations,
        )
    }
}

/// The label of what we make, by which the policies with parameters know it.
const MARKED: &str = "variables.new.metadata.?labels[?'app.kubernetes.io/managed-by'].orValue('') == 'drawbridge'";

fn variables() -> Vec<Variable> {
    let mut all: Vec<_> = both().into();
    all.extend([
        variable(
            "for_agent",
            format!(
                "request.resource.resource == 'deployments' && ({}.exists(o, o.name == variables.new.metadata.name) || {})",
                controllers("variables.new", "Agent"),
                made_for_kaos("variables.new", &KAOS_WORKLOADS)
            ),
        ),
        variable("of_kaos", format!("request.resource.resource == 'deployments' && {}", of_kaos("variables.old"))),
        variable(
            "of_agent",
            format!(
                "variables.of_kaos || (request.resource.resource == 'deployments' && {}.size() > 0)",
                controllers("variables.old", "Agent")
            ),
        ),
        variable(
            "is_free",
            format!("request.operation == 'UPDATE' && variables.of_agent && variables.for_agent && {MARKED}"),
        ),
    ]);
    for (of, now) in [("new", ""), ("old", "old")] {
        let name = |name: &str| {
            if now.is_empty() { name.to_owned() } else { format!("old{}{}", name[..1].to_uppercase(), &name[1..]) }
        };
        let own = |name_of: &str| format!("variables.{}", name(name_of));
        all.extend([
            variable(
                &name("job"),
                format!("variables.{of}.spec.?jobTemplate.orValue({{}}).transformMap(k, v, k != 'spec', v)"),
            ),
            variable(
                &name("jobSpec"),
                format!("variables.{of}.spec.?jobTemplate.?spec.orValue({{}}).transformMap(k, v, k != 'template', v)"),
            ),
            variable(
                &name("template"),
                format!(
                    "request.resource.resource == 'cronjobs' ? variables.{of}.spec.jobTemplate.spec.template : \
                     request.resource.resource == 'sandboxes' ? variables.{of}.spec.podTemplate : variables.{of}.spec.template"
                ),
            ),
            variable(
                &name("spec"),
                format!(
                    "variables.{of}.spec.transformMap(k, v, !(k in (request.resource.resource == 'cronjobs' ? ['jobTemplate'] : \
                     request.resource.resource == 'sandboxes' ? ['podTemplate', 'replicas'] : \
                     request.resource.resource == 'jobs' ? ['template', 'suspend'] : ['template'])), v)"
                ),
            ),
            variable(&name("pod"), format!("{}.transformMap(k, v, k != 'metadata', v)", own("template"))),
            variable(&name("podMetadata"), format!("[{}, {}, {}]", rest(&own("template")), labels(&own("template")), annotations(&own("template")))),
        ]);
    }
    all
}

/// The metadata of a template without labels and annotations; its labels, and its annotations, that are not ours.
fn rest(template: &str) -> String {
    format!("{template}.?metadata.orValue({{}}).transformMap(k, v, !(k in ['labels', 'annotations']), v)")
}

fn labels(template: &str) -> String {
    format!("{template}.?metadata.?labels.orValue({{}}).transformMap(k, v, !({}), v)", our_label("v"))
}

fn annotations(template: &str) -> String {
    format!(
        "{template}.?metadata.?annotations.orValue({{}}).transformMap(k, v, !({} || (variables.of_kaos && k == '{}')), v)",
        our_annotation(),
        keys::ANNOTATION_KAOS_REFERENCES,
    )
}

/// Of a label of key `k`: ours, or the one that the Go operator put there and that goes with the take-over.
fn our_label(value: &str) -> String {
    format!(
        "({} && !(k in [{}])) || (k == '{}' && {value} == '{}')",
        our_prefix(),
        listed(OF_PEOPLE),
        keys::LABEL_APP_MANAGED_BY,
        keys::MANAGED_BY_UPSTREAM,
    )
}

fn our_annotation() -> String {
    format!(
        "({} && !(k in [{}])) || k in ['{}', '{DAEMON_SET_GENERATION}', {}]",
        our_prefix(),
        listed(OF_PEOPLE),
        keys::ANNOTATION_SANDBOX_POD,
        listed(OF_SIGNING),
    )
}

/// Owners stay the same objects; of an Agent's Deployment what is said of them may change.
fn same_owners() -> String {
    let owners = |of: &str| format!("variables.{of}.metadata.?ownerReferences.orValue([])");
    let uids = |of: &str| format!("{}.map(o, o.uid)", owners(of));
    format!("(variables.is_free ? {} == {} : {} == {})", uids("new"), uids("old"), owners("new"), owners("old"))
}
