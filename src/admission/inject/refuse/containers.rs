//! Containers of the user that have the name of one of ours (spec 11, B18).

use crate::admission::inject::decide::Subject;
use crate::admission::inject::pod::text;
use crate::admission::verdict::Denial;
use crate::domain::keys;
use crate::domain::reason::Reason;

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
        format!("the Pod brings a container named {name}, which is the name of one of our sidecars"),
        "rename the container, or opt the Pod out with label kagenti.io/inject: disabled",
    );
    Some(denial.at(format!("spec.{list}[{index}].name"), name))
}
