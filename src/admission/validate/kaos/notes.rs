//! What works and deserves attention, beside what the reader says itself.

use serde_json::Value;

use crate::api::findings::Note;
use crate::api::kaos_tools::read::{self, Alias, Looked, OldSpelling};
use crate::api::kaos_tools::shape::{Agent, Model, ModelApi};
use crate::api::kaos_tools::unknown;
use crate::domain::reason::Reason;

/// Old spellings that are named in one warning.
const NAMED: usize = 6;

/// The model of an Agent that is not checked.
pub(super) fn of_agent(looked: &Looked<Agent>) -> Option<Note> {
    let old = looked.old.iter().find(|old| old.alias.is_of_model())?;
    let api = &looked.value.model_api;
    let text = match (&looked.value.model, old.alias) {
        (Model::Named(model), Alias::NoModel) => format!(
            "is left out, so the agent asks for {model}, and whether ModelAPI {api} offers that is not checked: a proxy for any model \
             at an address refuses a name without a provider; name the model"
        ),
        (Model::Named(model), _) => {
            format!(
                "asks for {model} in an old spelling, so whether ModelAPI {api} offers that is not checked; write spec.model"
            )
        }
        (Model::Variable, _) => format!("is not known here, so whether ModelAPI {api} offers it is not checked"),
    };
    Some(Note::new(Reason::ModelUnchecked, old.path.clone(), text))
}

/// Names of a configuration that the list of models does not have: the controller makes nothing of it until one of them is corrected.
pub(super) fn of_model_api(looked: &Looked<ModelApi>) -> Option<Note> {
    let strangers = read::strangers(looked.value.proxy.as_ref()?);
    let first = strangers.first()?;
    let text = format!(
        "offers {first:?}, which spec.proxyConfig.models does not have; nothing is made until one of them is corrected"
    );
    Some(Note::new(Reason::FieldInvalid, "spec.proxyConfig.configYaml", text))
}

/// Members that nobody knows.
pub(super) fn of_unknown(kind: &str, object: &Value) -> Vec<Note> {
    let note = |unknown: unknown::Unknown| {
        let hint = unknown.meant.map_or_else(String::new, |meant| format!("; did you mean {meant}?"));
        Note::new(
            Reason::UnknownField,
            unknown.path,
            format!("is not a field that is known there; it is passed on as it is{hint}"),
        )
    };
    unknown::members(kind, object).into_iter().map(note).collect()
}

/// One warning for all old spellings.
pub(super) fn of_old(old: &[OldSpelling]) -> Option<Note> {
    // What is left out is no spelling, and is told of as a model; and some fields have no other.
    let written: Vec<&str> = old
        .iter()
        .filter(|old| !matches!(old.alias, Alias::NoModel | Alias::ProxyDefault | Alias::ToolsPackage))
        .map(|old| old.path.as_str())
        .collect();
    let mut named = written.iter().take(NAMED).copied().collect::<Vec<_>>().join(", ");
    if written.is_empty() {
        return None;
    }
    if written.len() > NAMED {
        named.push_str(&format!(" and {} more", written.len() - NAMED));
    }
    let text = format!(
        "{named}: spellings of an earlier version of KAOS, read as what they mean today; drawbridge migrate kaos prints the present ones"
    );
    Some(Note::new(Reason::OldSpelling, "spec", text))
}
