//! Environments: lists of several spellings become one, each name once.

use std::collections::BTreeMap;

use serde_json::Value;

use super::place::{Found, Place};
use super::spelling::Alias;
use crate::api::kaos_tools::shape::Variable;
use crate::domain::reason::Reason;

/// What Linux takes in one variable, in bytes: name, `=`, value and the byte that ends it.
const LARGEST_VARIABLE: usize = 128 * 1024;

/// Whether a variable of that name can hold a text; it is a fault if not.
pub(super) fn fits(name: &str, text: &str, path: &str, found: &mut Found) {
    // The API server takes it, and no container with it starts.
    if text.contains('\0') {
        let sentence = format!("holds a NUL character and becomes variable {name}, which ends at one");
        found.invalid(path, sentence, "take the character out");
    }
    let size = name.len() + text.len() + 2;
    if size > LARGEST_VARIABLE {
        let sentence = format!(
            "is {} KiB large and becomes variable {name}; Linux takes {} KiB in one variable",
            text.len().div_ceil(1024),
            LARGEST_VARIABLE / 1024
        );
        found.invalid(path, sentence, "make it smaller, or put it into a file that podSpec mounts");
    }
}

/// A variable and where it was written.
#[derive(Debug, Clone)]
pub(super) struct Placed {
    pub(super) variable: Variable,
    pub(super) path: String,
    /// It stood in an old spelling.
    pub(super) old: bool,
}

/// The environment that lists make together, in order; of one name the last counts.
pub(super) fn joined(lists: &[(Place<'_>, Option<Alias>)], found: &mut Found) -> Vec<Placed> {
    let mut all: Vec<Placed> = Vec::new();
    for (list, alias) in lists {
        let items = list.items(found);
        if let Some(alias) = alias.filter(|_| !items.is_empty()) {
            found.old(alias, &list.path);
        }
        for item in items {
            if let Some(variable) = variable(&item, found) {
                all.push(Placed { variable, path: item.path, old: alias.is_some() });
            }
        }
    }
    let last: BTreeMap<String, usize> =
        all.iter().enumerate().map(|(index, placed)| (placed.variable.name.clone(), index)).collect();
    let mut kept = Vec::with_capacity(last.len());
    for (index, placed) in all.iter().enumerate() {
        let counts = last[&placed.variable.name];
        if counts == index {
            kept.push(placed.clone());
        } else {
            let text = format!(
                "variable {} is at {} as well, which counts; remove one of them",
                placed.variable.name, all[counts].path
            );
            found.note(Reason::ValueShadowed, &placed.path, text);
        }
    }
    kept
}

/// One entry.
fn variable(item: &Place<'_>, found: &mut Found) -> Option<Variable> {
    if !item.is_mapping(found) {
        return None;
    }
    let at = item.at("name");
    let Some(name) = at.text(found) else {
        if at.value.is_none_or(Value::is_string) {
            found.required(&at.path, "name the variable");
        }
        return None;
    };
    if !is_name(&name) {
        let sentence = "is not the name of a variable: printable ASCII without = is allowed";
        found.invalid(&at.path, sentence, "rename the variable");
    }
    let (value, from) = (item.at("value"), item.mapping("valueFrom", found));
    if let Some(text) = value.any_text(found) {
        fits(&name, text, &value.path, found);
        if from.is_there() && !text.is_empty() {
            found.invalid(&item.path, format!("gives variable {name} both value and valueFrom"), "keep one of them");
        }
    }
    Some(Variable { name, entry: item.value?.clone(), path: item.path.clone() })
}

/// Names that Kubernetes takes: hyphens and lower case included.
fn is_name(name: &str) -> bool {
    name.bytes().all(|byte| (b' '..=b'~').contains(&byte) && byte != b'=')
}

/// Takes the variable of that name out.
pub(super) fn take(env: &mut Vec<Placed>, name: &str) -> Option<Placed> {
    let index = env.iter().position(|placed| placed.variable.name == name)?;
    Some(env.remove(index))
}

/// The variable of that name.
pub(super) fn find<'e>(env: &'e [Placed], name: &str) -> Option<&'e Placed> {
    env.iter().find(|placed| placed.variable.name == name)
}

/// Whether a literal is the same text in a container, whatever surrounds it: Kubernetes expands `$(NAME)` in the values of variables.
pub(super) fn is_plain(text: &str) -> bool {
    !text.contains('$')
}

/// Takes a literal out that says yes or no, where one of that name does.
pub(super) fn take_boolean(env: &mut Vec<Placed>, name: &str) -> Option<(bool, String)> {
    let placed = find(env, name)?;
    let says = match placed.variable.literal()? {
        "true" => true,
        "false" => false,
        _ => return None,
    };
    take(env, name).map(|placed| (says, placed.path))
}
