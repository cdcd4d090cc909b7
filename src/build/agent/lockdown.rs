//! What relaxes an agent's lock-down (`spec/agent-and-agentbuild.md` 4.5): a warning, or a refusal with `enforce`.

use serde_json::Value;

use super::privileges::asked;
use crate::build::fault::{Fault, Findings, Note};
use crate::build::settings::Lockdown;
use crate::domain::reason::Reason;

pub(super) fn check(object: &Value, lockdown: Lockdown, findings: &mut Findings) {
    for asked in asked(object).into_iter().filter(|asked| asked.privilege.weight.relaxes()) {
        let (path, what) = (asked.at, asked.privilege.what);
        let seen =
            asked.value.map_or_else(String::new, |seen| seen.as_str().map_or_else(|| seen.to_string(), str::to_owned));
        match lockdown {
            Lockdown::Enforce => {
                let sentence = format!("{what}, which this platform's lock-down does not allow");
                findings.fault(Fault::new(Reason::LockdownViolated, path, sentence, "remove the field").seeing(&seen));
            }
            Lockdown::Default => {
                let text = format!("{what} (seen: {seen}); leave the field out to keep the lock-down");
                findings.note(Note::new(Reason::LockdownRelaxed, path, text));
            }
        }
    }
}
