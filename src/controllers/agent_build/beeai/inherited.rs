//! A build that the original operator has ended: on the day of the switch it is a result, not a wish.
//!
//! In: a build whose status names no attempt of ours. Out: the state that takes the result over, `None` where there is none. Promises: nothing is
//! built because the operator is another one; whoever changes what is built, or asks by annotation, gets a run.

use serde_json::Value;

use crate::controllers::agent_build::status::{Phase, State};
use crate::controllers::agent_build::subject::Subject;
use crate::domain::keys;
use crate::domain::reason::Reason;

/// The state of a build that ended before us.
pub(super) fn state(subject: &Subject<'_>) -> Option<State> {
    let status = &subject.build.seen.status;
    // What we have looked at once says so, in a member that the original operator never wrote.
    let is_ours =
        ["buildHash", "attempts", "conditions"].iter().any(|key| status.get(*key).is_some_and(|one| !one.is_null()));
    let asked = subject.build.seen.annotations.contains_key(keys::ANNOTATION_BEEAI_REBUILD);
    if is_ours || asked {
        return None;
    }
    let built = status.get("builtImage").and_then(Value::as_str).filter(|image| !image.is_empty());
    let again = format!(
        "change what it builds, or set annotation {}, to build with Drawbridge",
        keys::ANNOTATION_BEEAI_REBUILD
    );
    let state = match (subject.recorded(subject.face.words.phase), built) {
        (phase, Some(image)) if phase == subject.face.words.succeeded => {
            let message = format!("an earlier operator built {image}; {again}");
            State::new(Phase::Succeeded, Reason::BuildReady, message).with("builtImageTag", image)
        }
        ("Failed", _) => {
            State::new(Phase::Failed, Reason::BuildFailed, format!("it failed under an earlier operator; {again}"))
        }
        _ => return None,
    };
    Some(state.with("buildHash", subject.hash.clone()).with("attempts", 1))
}
