//! What relaxes an agent's lock-down: a warning, or a refusal with `enforce`.

use serde_json::Value;

use super::privileges::asked;
use crate::api::findings::{Fault, Findings, Note};
use crate::domain::reason::Reason;
use crate::workloads::settings::Lockdown;

const USER: &str = "runAsUser";
const NON_ROOT: &str = "runAsNonRoot";
/// Where a Pod says it for all its containers.
const OF_POD: &str = "spec.podTemplateSpec.spec.securityContext.runAsNonRoot";

pub(super) fn check(object: &Value, lockdown: Lockdown, findings: &mut Findings) {
    let all = asked(object);
    let says_root = |at: &str| all.iter().any(|asked| asked.at == at && asked.privilege.path.ends_with(NON_ROOT));
    let starts: Vec<bool> = all
        .iter()
        .map(|asked| match asked.at.strip_suffix(USER) {
            Some(context) => says_root(&format!("{context}{NON_ROOT}")) || says_root(OF_POD),
            None => true,
        })
        .collect();
    for (asked, starts) in all.iter().zip(starts).filter(|(asked, _)| asked.privilege.weight.relaxes()) {
        let (path, what) = (&*asked.at, asked.privilege.what);
        let seen =
            asked.value.map_or_else(String::new, |seen| seen.as_str().map_or_else(|| seen.to_string(), str::to_owned));
        match lockdown {
            Lockdown::Enforce => {
                let sentence = format!("{what}, which this platform's lock-down does not allow");
                findings.fault(Fault::new(Reason::LockdownViolated, path, sentence, "remove the field").seeing(&seen));
            }
            Lockdown::Default => {
                let mut text = format!("{what} (seen: {seen}); leave the field out to keep the lock-down");
                if !starts {
                    text.push_str(". No Pod starts with it beside runAsNonRoot: true, which the lock-down sets; write runAsNonRoot: false, too, if root is meant");
                }
                findings.note(Note::new(Reason::LockdownRelaxed, path, text));
            }
        }
    }
}
