//! Annotations: those of the Pod and ours together are more than Kubernetes takes of one object.
//!
//! The API server would refuse the Pod for a sum of which its author sees the smaller part.

use crate::admission::inject::context::Context;
use crate::admission::inject::edit::Edit;
use crate::admission::inject::parts::Parts;
use crate::admission::inject::plan::InjectionPlan;
use crate::admission::inject::status::Status;
use crate::admission::verdict::Denial;
use crate::domain::keys;
use crate::domain::reason::Reason;

/// The most bytes that all annotations of an object have, keys and values (apimachinery, `TotalAnnotationSizeLimitB`).
const MOST: usize = 256 * 1024;
/// What is ours: whatever the Pod has there is replaced.
const OURS: [&str; 3] = [keys::ANNOTATION_STATUS, keys::ANNOTATION_RUNTIME_CONFIG, keys::ANNOTATION_CONFIG_HASH];

/// The sum, of a plan that is finished.
pub(super) fn size(cx: &Context<'_>, plan: &InjectionPlan<'_>) -> Option<Denial> {
    let pod = cx.subject.pod;
    let others = pod.annotations().into_iter().flatten().filter(|(key, _)| !OURS.contains(&key.as_str()));
    let theirs: usize = others.map(|(key, value)| key.len() + value.as_str().map_or(0, str::len)).sum();
    let configuration = plan.runtime_config.as_ref().map_or(0, String::len);
    let edits: usize = plan.edits.iter().map(Edit::weight).sum();
    // What is noted is counted only where it may decide: of an ordinary Pod everything together is some kilobytes.
    if theirs + configuration + edits <= MOST / 2 {
        return None;
    }
    let parts = Parts::of(plan);
    let note = Status::of(plan, &parts, cx.effective.mode.value, pod).part();
    let written = OURS.iter().filter(|key| **key != keys::ANNOTATION_RUNTIME_CONFIG || plan.runtime_config.is_some());
    let names: usize = written.map(|key| key.len()).sum();
    let ours = names + note.value.as_str().map_or(0, str::len) + configuration + plan.config_hash.len();
    let size = theirs + ours;
    (size > MOST).then(|| {
        let denial = Denial::new(
            Reason::AnnotationsTooLarge,
            422,
            format!(
                "the Pod's annotations have {theirs} bytes and those that go with its sidecars {ours}, and Kubernetes takes {MOST} of one object"
            ),
            format!(
                "shorten the Pod's annotations, or key config.yaml of ConfigMap {}; what is noted grows with the number of containers, too",
                keys::CONFIG_MAP_RUNTIME
            ),
        );
        denial.at("metadata.annotations", format!("{size} bytes"))
    })
}
