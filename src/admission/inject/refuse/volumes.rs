//! Volumes of the user that have the name of one of ours: the same source is shared, another one refused (B19).

use serde_json::Value;

use crate::admission::inject::context::Context;
use crate::admission::inject::plan::InjectionPlan;
use crate::admission::inject::pod::text;
use crate::admission::verdict::Denial;
use crate::domain::reason::Reason;

/// Members that do not change what a volume shows: defaults the API server fills in, and how patient the kubelet is.
const INCIDENTAL: [&str; 3] = ["defaultMode", "optional", "apiVersion"];

fn same(left: &Value, right: &Value) -> bool {
    match (left, right) {
        (Value::Object(left), Value::Object(right)) => {
            let matter = |key: &&String| !INCIDENTAL.contains(&key.as_str());
            left.keys().filter(matter).count() == right.keys().filter(matter).count()
                && left
                    .iter()
                    .filter(|(key, _)| matter(key))
                    .all(|(key, value)| right.get(key).is_some_and(|other| same(value, other)))
        }
        (Value::Array(left), Value::Array(right)) => {
            left.len() == right.len() && left.iter().zip(right).all(|(left, right)| same(left, right))
        }
        _ => left == right,
    }
}

/// A volume without any source becomes an emptyDir in the API server; a manifest may say it that way.
fn is_empty_dir(volume: &Value) -> bool {
    let mut members = volume.as_object().into_iter().flatten();
    volume.get("emptyDir").is_some_and(Value::is_object) || members.all(|(key, value)| key == "name" || value.is_null())
}

/// Whether two volumes of one name show the same content; two emptyDirs do, whatever their medium and size.
pub(in crate::admission::inject) fn same_source(left: &Value, right: &Value) -> bool {
    (is_empty_dir(left) && is_empty_dir(right)) || same(left, right)
}

/// The first volume of the user that is in the way.
pub(super) fn sources(cx: &Context<'_>, plan: &InjectionPlan<'_>) -> Option<Denial> {
    cx.subject.pod.list("volumes").iter().enumerate().find_map(|(index, volume)| {
        let name = text(volume, "name");
        let ours = plan.volumes.iter().find(|ours| ours.name == name)?;
        let wanted = ours.value();
        if same_source(volume, &wanted) {
            return None;
        }
        let denial = Denial::new(
            Reason::VolumeCollision,
            422,
            format!("the Pod brings a volume named {name} with another source than Drawbridge's, which is {wanted}"),
            "rename the volume, or opt the Pod out with label kagenti.io/inject: disabled",
        );
        Some(denial.at(format!("spec.volumes[{index}]"), volume.to_string().chars().take(200).collect::<String>()))
    })
}
