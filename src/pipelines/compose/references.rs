//! References between tasks, with what their TaskSpecs say: is the result declared, and does its type fit.

use super::task::Task;
use crate::api::findings::{Fault, Findings};
use crate::domain::reason::Reason;
use crate::pipelines::check::steps;
use crate::pipelines::params::{Layer, Traced};
use crate::pipelines::reference::{self, Part, Target};
use crate::pipelines::request::BuildRequest;
use crate::pipelines::step::Kind;

/// Where a reference stands: what its value must be.
#[derive(Clone, Copy, PartialEq)]
enum Place {
    /// A parameter of that type whose whole value is the reference, or a part of it.
    Parameter(Kind, bool),
    /// A `when` expression; its values may take a whole list.
    When { list: bool },
}

pub(super) fn check(request: &BuildRequest, tasks: &[Task<'_>], findings: &mut Findings) {
    for (position, task) in tasks.iter().enumerate() {
        let before = &tasks[..position];
        let at = format!("{}[{}]", request.front.paths.steps, task.index);
        // Steps that come later or not at all, and references where none may stand, are refused here and in `check`.
        steps::given(request, task.index, &of_template(task), findings);
        // They stand in the order in which they are declared.
        let mut declared = task.step.params.iter();
        for traced in task.parameters.traced.iter().filter(|traced| traced.origin.layer != Layer::User) {
            let kind = declared.find(|one| one.name == traced.parameter).map_or(Kind::Text, |one| one.kind);
            for text in passed(traced) {
                let whole = traced.origin.value.is_string();
                let look = Look { tasks: before, place: Place::Parameter(kind, whole), at: &traced.origin.path };
                look.text(text, findings);
            }
        }
        for (index, when) in task.entry.when.iter().enumerate() {
            let at = format!("{at}.whenExpressions[{index}]");
            let look = |list, text: &str, findings: &mut Findings| {
                Look { tasks: before, place: Place::When { list }, at: &at }.text(text, findings);
            };
            look(false, &when.input, findings);
            when.values.iter().for_each(|text| look(true, text, findings));
        }
    }
}

/// What the template gives the task, placeholders filled in, and where it says so.
fn of_template<'t>(task: &'t Task<'_>) -> Vec<(&'t str, &'t str)> {
    let layers = [Layer::TemplateStep, Layer::TemplateGlobal];
    let given = task.parameters.traced.iter().filter(|traced| layers.contains(&traced.origin.layer));
    given.flat_map(|traced| passed(traced).into_iter().map(|text| (text, traced.origin.path.as_str()))).collect()
}

/// The texts of a parameter that is passed to the task; none of one that is not, which has the TaskSpec's default.
fn passed(traced: &Traced) -> Vec<&str> {
    let mut texts = Vec::new();
    if traced.origin.layer != Layer::TaskDefault {
        strings(&traced.origin.value, &mut texts);
    }
    texts
}

fn strings<'v>(value: &'v serde_json::Value, out: &mut Vec<&'v str>) {
    match value {
        serde_json::Value::String(text) => out.push(text),
        serde_json::Value::Array(items) => items.iter().for_each(|item| strings(item, out)),
        serde_json::Value::Object(members) => members.values().for_each(|item| strings(item, out)),
        _ => {}
    }
}

struct Look<'a> {
    tasks: &'a [Task<'a>],
    place: Place,
    at: &'a str,
}

impl Look<'_> {
    fn text(&self, text: &str, findings: &mut Findings) {
        for one in reference::in_text(text) {
            let Target::Result { task, result, part } = one.target else { continue };
            let Some(other) = self.tasks.iter().find(|other| other.name() == task) else { continue };
            let wrong = match other.step.results.get(result) {
                None => Some(format!("names result {result}, which step {task} does not declare")),
                Some(kind) => self.misfit(*kind, part, one.text == text).map(|sentence| {
                    format!("takes result {result} of type {} of step {task}, {sentence}", kind.as_str())
                }),
            };
            if let Some(sentence) = wrong {
                let remedy = "refer to a declared result in a way that its type allows";
                findings.content(Fault::new(Reason::ReferenceInvalid, self.at, sentence, remedy).seeing(one.text));
            }
        }
    }

    /// Why a result of that type cannot stand here in that form.
    fn misfit(&self, kind: Kind, part: Part<'_>, alone: bool) -> Option<&'static str> {
        match (kind, part) {
            (Kind::Text, Part::Whole) | (Kind::List, Part::Element) | (Kind::Map, Part::Member(_)) => None,
            (Kind::List | Kind::Map, Part::All) => match self.place {
                Place::Parameter(wanted, true) if wanted == kind && alone => None,
                Place::When { list: true } if kind == Kind::List && alone => None,
                _ => Some("as a whole, where only one text fits"),
            },
            (Kind::Text, _) => Some("as if it had parts"),
            (Kind::List, _) => Some("without saying which element"),
            (Kind::Map, _) => Some("without saying which member"),
        }
    }
}
