//! `drawbridge-trust-owners`: whose an agent's Pod is follows from the reference to its controller, and people may write one. So on agents' Pods
//! only Kubernetes' controllers write a reference to a ReplicaSet, StatefulSet, DaemonSet or Sandbox as their controller, and who may make Pods in
//! the whole cluster, as the controller of Sandboxes and backups do. Taking one away is everybody's.

use k8s_openapi::api::admissionregistration::v1::NamedRuleWithOperations;
use serde_json::Value;

use super::super::super::selectors::condition;
use super::super::super::{Install, object};
use super::super::{Refusal, listed, pods, refusal};
use super::agents;

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
        "{}.exists(uid, request.operation == 'CREATE' || !(uid in {}))",
        controlled("object"),
        controlled("oldObject")
    );
    let rule = Refusal {
        applies: vec![
            condition("says-who-controls-it", &new),
            condition("not-a-controller", &format!("!(request.userInfo.username in [{}])", listed(CONTROLLERS))),
        ],
        variables: Vec::new(),
        holds: "authorizer.group('').resource('pods').check('create').allowed()".to_owned(),
        message: "a Pod of an agent says that a ReplicaSet, StatefulSet, DaemonSet or Sandbox controls it, and none has made it: what is trusted is what \
                  their controllers made. What to do: leave metadata.ownerReferences out, or scale the workload"
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
