//! Containers of the user: more than can be taken care of, or with the name of one of ours.

use crate::admission::inject::decide::Subject;
use crate::admission::inject::pod::text;
use crate::admission::verdict::Denial;
use crate::domain::keys;
use crate::domain::reason::Reason;

/// A Pod of thousands of containers would cost seconds and be refused for the size of its annotations.
pub(super) fn count(subject: &Subject<'_>) -> Option<Denial> {
    let count = subject.pod.all_containers().count();
    (count > keys::CONTAINERS_MOST).then(|| {
        let most = keys::CONTAINERS_MOST;
        let denial = Denial::new(
            Reason::TooManyContainers,
            422,
            format!("the Pod has {count} containers; at most {most}, init containers included, can be injected"),
            "spread them over several Pods, or opt the Pod out with label kagenti.io/inject: disabled",
        );
        denial.at("spec.containers", count.to_string())
    })
}

/// What the status annotation does not name as ours is the user's.
pub(super) fn names(subject: &Subject<'_>) -> Option<Denial> {
    let (list, index, name) = subject
        .pod
        .all_containers()
        .map(|(list, index, container)| (list, index, text(container, "name")))
        .find(|(_, _, name)| keys::OUR_CONTAINERS.contains(name))?;
    let denial = Denial::new(
        Reason::ContainerNameCollision,
        422,
        format!("the Pod brings a container named {name}, which is the name of a sidecar of Drawbridge"),
        "rename the container, or opt the Pod out with label kagenti.io/inject: disabled",
    );
    Some(denial.at(format!("spec.{list}[{index}].name"), name))
}
