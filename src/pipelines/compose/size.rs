//! How large a run is, and what makes it so.
//!
//! In: what was composed. Out: bytes of JSON; and a fault that names the largest parts, each where it was written: the
//! TaskSpecs by their ConfigMaps, parameters, conditions, labels and annotations by their fields. What stands in the run
//! several times (the TaskSpec of two steps, a parameter that five tasks take) counts as often.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::{Examined, MAX_RUN, made_of};
use crate::api::findings::Fault;
use crate::domain::reason::Reason;
use crate::pipelines::params::Layer;

/// So many parts are named.
const NAMED: usize = 3;

/// What a part of a run is.
#[derive(Clone, Copy, PartialEq, Eq)]
enum What {
    TaskSpec,
    Value,
    Other,
}

impl What {
    fn remedy(self) -> &'static str {
        match self {
            What::TaskSpec => "shorten the scripts of the step, or move them into an image",
            What::Value => "keep long values in a file of the repository or in the image, and give their path",
            What::Other => "shorten it",
        }
    }
}

/// Bytes of a run with the room that its recipe takes, when they are more than can be stored. They are counted only where that is possible at all:
/// most runs have a fraction of what is allowed, and looking at each letter of their scripts would cost more than making them.
pub(super) fn over(run: &Value) -> Option<usize> {
    if at_most(run) + made_of::ROOM <= MAX_RUN {
        return None;
    }
    Some(length(run) + made_of::ROOM).filter(|size| *size > MAX_RUN)
}

/// A bound of [`length`] that looks at no letter: each as if it had to be escaped in the longest way.
fn at_most(value: &Value) -> usize {
    const ESCAPED: usize = r"\u0000".len();
    let quoted = |text: &str| 2 + ESCAPED * text.len();
    match value {
        Value::String(text) => quoted(text),
        Value::Array(items) => 2 + items.iter().map(|item| 1 + at_most(item)).sum::<usize>(),
        Value::Object(members) => {
            2 + members.iter().map(|(name, member)| 2 + quoted(name) + at_most(member)).sum::<usize>()
        }
        scalar => length(scalar),
    }
}

/// Bytes of a value as compact JSON, which is not made for it.
fn length(value: &Value) -> usize {
    struct Count(usize);
    impl std::io::Write for Count {
        fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
            self.0 += bytes.len();
            Ok(bytes.len())
        }

        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }
    let mut count = Count(0);
    serde_json::to_writer(&mut count, value).expect("a JSON value can be written, and counting does not fail");
    count.0
}

/// A part of a run.
struct Part {
    /// Where it was written.
    path: String,
    /// What it is, where the path does not say it.
    name: Option<String>,
    bytes: usize,
    /// How often it stands in the run.
    times: usize,
    what: What,
}

impl Part {
    fn shown(&self) -> String {
        let name = self.name.as_ref().map_or(String::new(), |name| format!("{name}, "));
        let times = if self.times > 1 { format!(", {} times", self.times) } else { String::new() };
        format!("({name}{} bytes{times})", self.bytes)
    }

    fn total(&self) -> usize {
        self.bytes.saturating_mul(self.times)
    }
}

/// The parts of a run, by where they were written.
#[derive(Default)]
struct Parts(BTreeMap<String, Part>);

impl Parts {
    fn add(&mut self, path: String, name: Option<&str>, bytes: usize, what: What) {
        let part = Part { path: path.clone(), name: name.map(str::to_owned), bytes, times: 0, what };
        self.0.entry(path).or_insert(part).times += 1;
    }

    fn of(examined: &Examined<'_>) -> Self {
        let mut parts = Self::default();
        let (request, tasks) = (examined.request, &examined.tasks);
        for task in tasks {
            parts.add(
                format!("ConfigMap {}", task.step.config_map),
                None,
                length(&task.step.task_spec),
                What::TaskSpec,
            );
            // Defaults stand in the TaskSpec.
            let given = task.parameters.traced.iter().filter(|traced| traced.origin.layer != Layer::TaskDefault);
            for traced in given {
                parts.add(
                    traced.origin.path.clone(),
                    Some(&traced.parameter),
                    length(&traced.origin.value),
                    What::Value,
                );
            }
            if !task.entry.when.is_empty() {
                let path = format!("{}[{}].whenExpressions", request.front.paths.steps, task.index);
                let whens = task.entry.when.iter().map(|when| json!([when.input, when.operator, when.values]));
                parts.add(path, None, length(&whens.collect()), What::Other);
            }
        }
        for (name, value) in &examined.run {
            let path = examined.layers.path_of_run(name);
            parts.add(path, Some(name), length(&json!(value)), What::Value);
        }
        let paths = &request.front.paths;
        for (path, texts) in [(paths.labels, &request.labels), (paths.annotations, &request.annotations)] {
            parts.add(path.to_owned(), None, length(&json!(texts)), What::Other);
        }
        parts
    }
}

/// What is wrong with a run of that size.
pub(super) fn too_large(examined: &Examined<'_>, size: usize) -> Fault {
    let mut parts: Vec<Part> = Parts::of(examined).0.into_values().collect();
    let all = |what| parts.iter().filter(|part| part.what == what).map(Part::total).sum::<usize>();
    let sums = format!("all TaskSpecs have {} bytes, all parameters {}", all(What::TaskSpec), all(What::Value));
    parts.sort_by_key(|part| std::cmp::Reverse(part.total()));
    parts.truncate(NAMED);
    let Some((largest, others)) = parts.split_first() else {
        let sentence = format!("make a run of {size} bytes; at most {MAX_RUN} can be stored");
        return Fault::new(Reason::RunTooLarge, examined.request.front.paths.steps, sentence, What::TaskSpec.remedy());
    };
    let next: Vec<_> = others.iter().map(|part| format!("{} {}", part.path, part.shown())).collect();
    let next = if next.is_empty() { String::new() } else { format!("; then {}", next.join(", ")) };
    let sentence = format!(
        "is the largest part {} of a run of {size} bytes, of which at most {MAX_RUN} can be stored{next}; {sums}",
        largest.shown()
    );
    Fault::new(Reason::RunTooLarge, largest.path.clone(), sentence, largest.what.remedy())
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::{MAX_RUN, at_most, length, made_of, over};

    #[test]
    fn the_bound_is_never_less_than_the_length() {
        let worst = "\u{1}".repeat(50);
        for value in [
            json!(null),
            json!([true, false, -1, u64::MAX, 1.5e-300, []]),
            json!({}),
            json!({"": "", "\"": "\\\n", (worst.as_str()): worst.as_str(), "é🌦": {"a": [{}, {"b": null}]}}),
            json!([[[[[]]]]]),
        ] {
            assert_eq!(length(&value), value.to_string().len(), "{value}");
            assert!(at_most(&value) >= length(&value), "{value}");
        }
        let letters = json!(worst.as_str());
        assert_eq!(at_most(&letters), length(&letters), "no larger than it has to be");
    }

    /// Whatever its letters are: only what cannot be stored is too much, by the byte.
    #[test]
    fn a_run_is_over_by_the_byte() {
        for (letter, escaped) in [("a", 1), ("\"", 2), ("\u{1}", 6), ("🌦", 4)] {
            let of = |count: usize, rest: usize| json!([letter.repeat(count), "a".repeat(rest)]);
            let room = MAX_RUN - made_of::ROOM - of(0, 0).to_string().len();
            let (count, rest) = (room / escaped, room % escaped);
            let run: Value = of(count, rest);
            assert_eq!(run.to_string().len() + made_of::ROOM, MAX_RUN, "{letter:?}");
            assert_eq!(over(&run), None, "{letter:?}");
            assert_eq!(over(&of(count, rest + 1)), Some(MAX_RUN + 1), "{letter:?}");
        }
    }
}
