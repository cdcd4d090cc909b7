//! `drawbridge-trust-owners`: whose an agent's Pod is follows from the reference to its controller, and people may write one. So on agents' Pods
//! only Kubernetes' controllers write a reference to a ReplicaSet, StatefulSet, DaemonSet or Sandbox as their controller, and who may make Pods in
//! the whole cluster, as the controller of Sandboxes and backups do. Taking one away is everybody's.

use k8s_openapi::api::admissionregistration::v1::NamedRuleWithOperations;
use serde_json::Value;

use super::super::super::selectors::condition;
use super::super::super::{Install, object};
use super::super::{Refusal, listed, pods, refusal};
use super::agents;
use crate::domain::keys;

/// Its name.
const NAME: &str = "drawbridge-trust-owners";
/// Who makes such Pods, adopts them, and lets go of them; the last, where the controllers of Kubernetes share one account.
const CONTROLLERS: [&str; 5] = [
    "system:serviceaccount:kube-system:replicaset-controller",
    "system:serviceaccount:kube-system:statefulset-controller",
    "system:serviceaccount:kube-system:daemon-set-controller",
    "system:serviceaccount:kube-system:generic-garbage-collector",
    "system:kube-controller-manager",
];

pub(super) fn policy(install: &Install) -> [Value; 2] {
    let controlled = |of: &str| {
        format!(
            "{of}.metadata.?ownerReferences.orValue([]).filter(o, o.?controller.orValue(false) && ((o.apiVersion.startsWith('apps/') && \
             o.kind in ['ReplicaSet', 'StatefulSet', 'DaemonSet']) || (o.apiVersion.startsWith('agents.x-k8s.io/') && o.kind == 'Sandbox'))).map(o, \
             o.uid)"
        )
    };
    let new = format!(
        "{}.exists(uid, request.operation == 'CREATE' || !(uid in {}) || oldObject.metadata.?labels[?'{}'].orValue('') != 'agent')",
        controlled("object"),
        controlled("oldObject"),
        keys::LABEL_TYPE
    );
    let rule = Refusal {
        applies: vec![
            condition("says-who-controls-it", &new),
            condition("not-a-controller", &format!("!(request.userInfo.username in [{}])", listed(CONTROLLERS))),
        ],
        variables: Vec::new(),
        holds: "authorizer.group('').resource('pods').check('create').allowed()".to_owned(),
        message: "a Pod of an agent says that a ReplicaSet, StatefulSet, DaemonSet or Sandbox controls it, and none has made it: what is trusted is what \
                  their controllers made. What to do: leave metadata.ownerReferences out, scale the workload, or put label kagenti.io/type on its Pod \
                  template rather than on its Pod"
            .to_owned(),
        message_expression: None,
    };
    let mut both = refusal(install, NAME, matched(), rule);
    both[0]["spec"]["matchConstraints"]["objectSelector"] = object(&agents());
    both
}

/// The API server takes owners from an update of the status, too.
fn matched() -> NamedRuleWithOperations {
    NamedRuleWithOperations {
        operations: Some(["CREATE", "UPDATE"].map(str::to_owned).into()),
        resources: Some(["pods", "pods/status"].map(str::to_owned).into()),
        ..pods("CREATE")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::render::FailureMode;

    /// Else a Pod would be made without the label, by whomever it says, and labelled afterwards.
    #[test]
    fn a_pod_that_becomes_an_agent_s_is_asked_whose_it_is() {
        let install = Install::new(FailureMode::Fail, keys::OPERATOR_NAMESPACE, "drawbridge:test");
        let policy = &policy(&install)[0];
        let applies = policy["spec"]["matchConditions"][0]["expression"].as_str().unwrap();
        assert!(
            applies.ends_with(" || oldObject.metadata.?labels[?'kagenti.io/type'].orValue('') != 'agent')"),
            "{applies}"
        );
    }
}
