//! Workloads that have an AgentCard, or say that they are agents, and whose Pods are none (`LeftEnforcement`), for `doctor`, `policy preview` and
//! `explain`.
//!
//! In: AgentCards and workloads of one namespace, as JSON. Out: a sentence for each. Where trust is enforced for agents alone, nothing cuts such Pods off: that is
//! no hole that could be closed there, and people should know.

use serde_json::Value;

use crate::cli::survey::{label, text};
use crate::domain::keys;
use crate::domain::reason::Reason;
use crate::domain::workload::WorkloadKind;

/// What is said of each.
pub(in crate::cli) fn left<'a>(objects: impl Iterator<Item = &'a Value> + Clone) -> Vec<String> {
    let cards = objects.clone().filter(|object| text(object, "/kind") == "AgentCard");
    let targets: Vec<(&str, &str)> =
        cards.map(|card| (text(card, "/spec/targetRef/kind"), text(card, "/spec/targetRef/name"))).collect();
    objects.filter_map(|object| of_workload(object, &targets)).collect()
}

fn of_workload(object: &Value, targets: &[(&str, &str)]) -> Option<String> {
    let (kind, name) = (text(object, "/kind"), text(object, "/metadata/name"));
    let group = text(object, "/apiVersion").split_once('/').map_or("", |(group, _)| group);
    let path = WorkloadKind::from_group_kind(group, kind)?.template_path();
    let template = path.iter().try_fold(object, |value, key| value.get(key))?;
    let is = |object: &Value| label(object, keys::LABEL_TYPE) == Some("agent");
    let has_card = targets.contains(&(kind, name));
    if is(template) || !(has_card || is(object)) {
        return None;
    }
    let why = if has_card { "has an AgentCard" } else { "says that it is an agent" };
    Some(format!(
        "{}: {kind} {name} {why}, and its Pod template has no label {}: agent, so nothing cuts its Pods off",
        Reason::LeftEnforcement.code(),
        keys::LABEL_TYPE
    ))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn who_was_an_agent_and_is_none_is_told_and_nobody_else() {
        let workload = |kind: &str, name: &str, own: &str, pods: &str| {
            json!({"apiVersion": "apps/v1", "kind": kind, "metadata": {"name": name, "labels": {"kagenti.io/type": own}},
                "spec": {"template": {"metadata": {"labels": {"kagenti.io/type": pods}}}}})
        };
        let card = |kind: &str, name: &str| {
            json!({"apiVersion": "agent.kagenti.dev/v1alpha1", "kind": "AgentCard", "metadata": {"name": name},
                "spec": {"targetRef": {"apiVersion": "apps/v1", "kind": kind, "name": name}}})
        };
        for (objects, told) in [
            (vec![workload("Deployment", "a", "agent", "agent"), card("Deployment", "a")], None),
            (vec![workload("Deployment", "a", "tool", "tool")], None),
            (vec![workload("Deployment", "a", "agent", "")], Some("Deployment a says that it is an agent")),
            (vec![workload("Deployment", "a", "", ""), card("Deployment", "a")], Some("Deployment a has an AgentCard")),
            (vec![workload("StatefulSet", "a", "", ""), card("Deployment", "a")], None),
            (vec![card("Deployment", "gone")], None),
        ] {
            let found = left(objects.iter());
            assert_eq!(found.len(), usize::from(told.is_some()), "{objects:?}");
            assert!(told.is_none_or(|told| found[0].contains(told)), "{found:?}");
        }
    }
}
