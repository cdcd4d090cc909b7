//! Containers of the user: more than can be taken care of, or with the name of one of ours.

use std::collections::BTreeSet;

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

/// What the status annotation does not name as ours is the user's. One may be called alike by chance; several were put there as a whole.
pub(super) fn names(subject: &Subject<'_>) -> Option<Denial> {
    let named = subject.pod.all_containers().map(|(list, index, container)| (list, index, text(container, "name")));
    let ours: Vec<_> = named.filter(|(_, _, name)| keys::OUR_CONTAINERS.contains(name)).collect();
    let (list, index, first) = *ours.first()?;
    let names: BTreeSet<&str> = ours.into_iter().map(|(_, _, name)| name).collect();
    let (sentence, remedy) = if names.len() == 1 {
        (
            format!("the Pod brings a container named {first}, which is the name of a sidecar of Drawbridge"),
            "rename the container, or opt the Pod out with label kagenti.io/inject: disabled",
        )
    } else {
        let names = names.into_iter().collect::<Vec<_>>().join(", ");
        (
            format!(
                "the Pod brings containers named {names}, which are names of sidecars of Drawbridge, and nothing on it says that Drawbridge added \
                 them"
            ),
            "take them out of the Pod template, where they were copied from an injected Pod; where a Go operator still adds them, drawbridge \
             doctor names its webhook, which is to be deleted",
        )
    };
    let denial = Denial::new(Reason::ContainerNameCollision, 422, sentence, remedy);
    Some(denial.at(format!("spec.{list}[{index}].name"), first))
}
