//! The rule of `drawbridge-agent-pods`: what an Agent's Pod asks for beyond a plain agent's needs is taken only from people who
//! could create such a Pod themselves (docs/cases.md G3). Whoever may write Agents gets Deployments made by the operator, which
//! may do more than he may; only the API server knows his rights.
//!
//! In: the table of [`privileges`]. Out: the rule, with each row as CEL; a suite tries every row on a real API server. It is asked when
//! an Agent is made, and when its Pod or its image changes: another image would run with what was granted to the first.

use super::super::selectors::{self, Reach, condition};
use super::{Refusal, variable};
use crate::api::secrets::ANNOTATIONS;
use crate::workloads::agent::privileges::{PRIVILEGES, Privilege, Scope, Test};

/// Ways to run a Pod of one's own making: any of them will do.
pub(super) const RIGHTS: [(&str, &str); 2] = [("", "pods"), ("apps", "deployments")];
/// Members of an Agent's spec that decide what runs.
pub(super) const RUNS: [&str; 4] = ["podTemplateSpec", "image", "imageSource", "annotations"];

/// Whether the object is made, or one of these members of its spec changes.
pub(super) fn is_new(members: &[&str]) -> String {
    let changed = members.iter().map(|member| format!(" || object.spec.?{member} != oldObject.spec.?{member}"));
    format!("request.operation == 'CREATE'{}", changed.collect::<String>())
}

/// Whether the person may create such objects in the namespace himself.
pub(super) fn may_create(group: &str, resource: &str) -> String {
    format!("authorizer.group('{group}').resource('{resource}').namespace(request.namespace).check('create').allowed()")
}

pub(super) fn rule() -> Refusal {
    let Reach { mut conditions, .. } = selectors::living_objects();
    conditions.push(condition("pod-is-new", &is_new(&RUNS)));
    let allowed = RIGHTS.map(|(group, resource)| may_create(group, resource));
    let told = "is more than a plain agent needs, so it is taken only from people who may create pods or deployments.apps here. \
                What to do: leave these fields out, or ask for that right";
    Refusal {
        applies: conditions,
        variables: vec![
            variable("pod", "object.spec.?podTemplateSpec.?spec.orValue({})"),
            variable("containers", "variables.pod.?containers.orValue([]) + variables.pod.?initContainers.orValue([])"),
            variable("annotations", &annotations()),
            variable("asked", &asked()),
        ],
        holds: format!("variables.asked.size() == 0 || {}", allowed.join(" || ")),
        message: format!("spec.podTemplateSpec {told}"),
        message_expression: Some(format!(
            "'spec.podTemplateSpec: what stands at ' + variables.asked.join(', ') + ' {}'",
            told.replace('\'', "\\'")
        )),
    }
}

/// The fields that ask for something, as a list of texts.
fn asked() -> String {
    let rows = PRIVILEGES.iter().filter(|privilege| privilege.weight.needs_right());
    let rows: Vec<_> = rows.map(|privilege| format!("{} ? '{}' : ''", asks(privilege), field(privilege))).collect();
    format!("[{}].filter(field, field != '')", rows.join(",\n"))
}

/// The annotations that the Pod gets, as a list of maps.
fn annotations() -> String {
    let maps = ANNOTATIONS.map(|place| {
        let members: Vec<_> = place.split('/').collect();
        format!("object.{}.?{}.orValue({{}})", members[0], members[1..].join(".?"))
    });
    format!("[{}]", maps.join(", "))
}

/// The field, as people are told of it; of a container the list's name stands for both kinds.
pub(super) fn field(privilege: &Privilege) -> String {
    let path = privilege.path.replace("/*", "[]").replace('/', ".");
    match privilege.of {
        Scope::Pod => path,
        Scope::Container => format!("containers[].{path}"),
        Scope::Annotations => format!("annotations[{}*]", privilege.path),
    }
}

/// Whether anything of the object asks for it.
pub(super) fn asks(privilege: &Privilege) -> String {
    let path: Vec<_> = privilege.path.split('/').collect();
    match privilege.of {
        Scope::Pod => below("variables.pod", &path, privilege.test, 0),
        Scope::Container => {
            format!("variables.containers.exists(c, {})", below("c", &path, privilege.test, 0))
        }
        Scope::Annotations => format!(
            "variables.annotations.exists(all, all.exists(key, key.startsWith('{}') && {}))",
            privilege.path,
            passes("optional.of(all[key])", privilege.test)
        ),
    }
}

/// Whether something that `path` names below `of` passes `test`; `depth` lists were entered.
fn below(of: &str, path: &[&str], test: Test, depth: usize) -> String {
    let Some(star) = path.iter().position(|member| *member == "*") else {
        let members: String = path.iter().map(|member| format!(".?{member}")).collect();
        return passes(&format!("{of}{members}"), test);
    };
    let (members, rest) =
        (path[..star].iter().map(|member| format!(".?{member}")).collect::<String>(), &path[star + 1..]);
    let item = format!("i{depth}");
    let inner = if rest.is_empty() {
        passes(&format!("optional.of({item})"), test)
    } else {
        below(&item, rest, test, depth + 1)
    };
    format!("{of}{members}.orValue([]).exists({item}, {inner})")
}

/// [`Test`] of an optional value.
fn passes(value: &str, test: Test) -> String {
    let listed = |texts: &[&str]| texts.iter().map(|text| format!("'{text}'")).collect::<Vec<_>>().join(", ");
    match test {
        Test::True => format!("{value}.orValue(false) == true"),
        Test::False => format!("{value}.orValue(true) == false"),
        Test::Zero => format!("{value}.orValue(1) == 0"),
        Test::NotZero => format!("{value}.orValue(0) != 0"),
        Test::Is(text) => format!("{value}.orValue('') == '{text}'"),
        Test::NoneOf(allowed) => {
            format!("{value}.hasValue() && !({value}.value() in [{}])", listed(allowed))
        }
        Test::StartsWith(beginning) => format!("{value}.orValue('').startsWith('{beginning}')"),
        Test::AbsentOrStartsWith(beginning) => {
            format!("({value}.orValue('') == '' || {value}.orValue('').startsWith('{beginning}'))")
        }
        Test::Text => format!("{value}.orValue('') != ''"),
        Test::Present => format!("{value}.hasValue()"),
        Test::MembersBeyond(known) => {
            format!("{value}.hasValue() && dyn({value}.value()).exists(m, !(m in [{}]))", listed(known))
        }
        Test::ListLacks(item) => format!("{value}.hasValue() && !('{item}' in {value}.value())"),
    }
}
