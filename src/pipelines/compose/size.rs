//! How large a run is, and what makes it so.
//!
//! In: what was composed. Out: bytes of JSON; and a fault that names the largest parts, each where it was written: the
//! TaskSpecs by their ConfigMaps, parameters, conditions, labels and annotations by their fields. What stands in the run
//! several times (the TaskSpec of two steps, a parameter that five tasks take) counts as often.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::{Examined, MAX_RUN, kinds};
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

/// Bytes of a value as compact JSON, which is not made for it.
pub(super) fn length(value: &Value) -> usize {
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
        for (name, value) in kinds::of_run(&examined.layers, tasks) {
            let path = examined.layers.path_of_run(&name);
            parts.add(path, Some(&name), length(&Value::String(value)), What::Value);
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
