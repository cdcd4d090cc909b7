//! Names of what is made for a build, and the identity of its inputs.

use serde::Serialize;
use serde_json::Value;

use super::reference;
use super::request::BuildRequest;
use crate::api::digest;
use crate::api::digest::Sorted;

/// Longest name of a PipelineRun, and longest value of a label.
pub const LABEL_LIMIT: usize = 63;
/// Longest name of most objects.
pub const NAME_LIMIT: usize = 253;
/// Longest tag of an image.
const TAG_LIMIT: usize = 128;
/// Digits of the hash of an attempt.
pub const ATTEMPT_DIGITS: usize = 10;
/// Digits of the hash that ends a shortened name.
const SUFFIX_DIGITS: usize = 8;

/// The name itself when it fits, else its beginning and a hash of all of it: equal names stay equal, others differ.
#[must_use]
pub fn fit(name: &str, limit: usize) -> String {
    if name.len() <= limit {
        return name.to_owned();
    }
    let hash = &digest::of_bytes(name.as_bytes())[..SUFFIX_DIGITS];
    format!("{}-{hash}", cut(name, limit - SUFFIX_DIGITS - 1))
}

/// The first `limit` bytes, without ending in what may not stand before a dash.
fn cut(name: &str, limit: usize) -> &str {
    let mut end = limit.min(name.len());
    while !name.is_char_boundary(end) {
        end -= 1;
    }
    name[..end].trim_end_matches(['-', '.', '_'])
}

/// What identifies the inputs of a build: 64 hexadecimal digits.
#[must_use]
pub fn build_hash(request: &BuildRequest) -> String {
    #[derive(Serialize)]
    struct Identity<'r> {
        inputs: Sorted<'r>,
        uid: &'r str,
    }
    digest::of_serialized(&Identity { inputs: Sorted(&request.identity), uid: &request.owner.uid })
}

/// What tells one attempt at these inputs from another: [`ATTEMPT_DIGITS`] hexadecimal digits.
#[must_use]
pub fn attempt_hash(build_hash: &str, attempt: u32) -> String {
    digest::of_bytes(format!("{build_hash}/{attempt}").as_bytes())[..ATTEMPT_DIGITS].to_owned()
}

/// Name of the PipelineRun; a label value, too.
#[must_use]
pub fn run_name(build: &str, attempt_hash: &str) -> String {
    format!("{}-{attempt_hash}", fit(build, LABEL_LIMIT - 1 - attempt_hash.len()))
}

/// A digest that runs share whose judgement by Tekton must be the same: of everything in `spec` but the values of
/// parameters that refer to nothing, and the name of the claim. Names and labels follow rules of their own.
#[must_use]
pub fn run_shape(run: &Value) -> String {
    let mut spec = run.get("spec").cloned().unwrap_or_default();
    let literal = |value: &Value| value.as_str().is_some_and(|text| !reference::mentions(text));
    for path in ["/pipelineSpec/tasks", "/pipelineSpec/finally"] {
        for task in spec.pointer_mut(path).and_then(Value::as_array_mut).into_iter().flatten() {
            blank(task.pointer_mut("/params"), "value", literal);
        }
    }
    blank(spec.pointer_mut("/params"), "value", literal);
    for workspace in spec.pointer_mut("/workspaces").and_then(Value::as_array_mut).into_iter().flatten() {
        if let Some(claim) = workspace.get_mut("persistentVolumeClaim") {
            claim["claimName"] = Value::Null;
        }
    }
    digest::of_json(&spec)
}

fn blank(list: Option<&mut Value>, member: &str, concerned: impl Fn(&Value) -> bool) {
    for entry in list.and_then(Value::as_array_mut).into_iter().flatten() {
        if let Some(value) = entry.get_mut(member).filter(|value| concerned(value)) {
            *value = Value::Null;
        }
    }
}

/// Name of the claim.
#[must_use]
pub fn claim_name(build: &str, suffix: &str) -> String {
    format!("{}{suffix}", fit(build, NAME_LIMIT - suffix.len()))
}

/// Tag that a gated pipeline pushes before its gates: the hash always survives. It is asked for before anybody has looked whether the text is a
/// tag at all.
#[must_use]
pub fn candidate_tag(tag: &str, attempt_hash: &str) -> String {
    let end = format!("-candidate-{attempt_hash}");
    format!("{}{end}", &tag[..tag.floor_char_boundary(TAG_LIMIT - end.len())])
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::{attempt_hash, build_hash, candidate_tag, claim_name, fit, run_name, run_shape};
    use crate::api::syntax;
    use crate::pipelines::fixtures;

    #[test]
    fn runs_that_differ_in_names_and_plain_values_have_one_shape() {
        let run = |name: &str, url: &str, image: &str| {
            json!({
                "metadata": {"name": name, "labels": {"build": name}},
                "spec": {
                    "taskRunTemplate": {"serviceAccountName": "pipeline"},
                    "params": [{"name": "url", "value": url}],
                    "workspaces": [{"name": "shared", "persistentVolumeClaim": {"claimName": name}}],
                    "pipelineSpec": {"tasks": [{
                        "name": "clone",
                        "params": [{"name": "url", "value": url}],
                        "taskSpec": {"steps": [{"name": "s", "image": image}]},
                    }]},
                },
            })
        };
        let shape = run_shape(&run("a", "https://a", "i"));
        assert_eq!(shape, run_shape(&run("b", "https://b", "i")));
        assert_ne!(shape, run_shape(&run("a", "$(tasks.x.results.y)", "i")), "a reference may point nowhere");
        assert_ne!(shape, run_shape(&run("a", "https://a", "j")));
        for (path, value) in [
            ("/spec/taskRunTemplate/serviceAccountName", json!("other")),
            ("/spec/params/0/name", json!("other")),
            ("/spec/params/0/value", json!(["https://a"])),
            ("/spec/workspaces/0/name", json!("other")),
            ("/spec/pipelineSpec/tasks/0/params/0/value", json!({"a": "b"})),
            ("/spec/pipelineSpec/tasks/0/taskSpec/steps/0", json!({"name": "s", "image": "i", "privileged": true})),
        ] {
            let mut other = run("a", "https://a", "i");
            *other.pointer_mut(path).unwrap() = value;
            assert_ne!(shape, run_shape(&other), "{path}");
        }
        for none in [json!(null), json!({"spec": 1}), json!({"spec": {"params": {}, "workspaces": [1]}})] {
            assert_ne!(shape, run_shape(&none));
        }
    }

    /// Case C16: a name of 48 characters, and longer ones that no webhook saw.
    #[test]
    fn d18_case_c16_run_names_fit_and_stay_apart() {
        let hash = attempt_hash("x", 1);
        for length in [1, 47, 48, 49, 52, 53, 63, 200, 253] {
            let name = run_name(&"a".repeat(length), &hash);
            assert!(name.len() <= 63 && syntax::is_label(&name) && syntax::is_label_value(&name), "{name}");
            assert!(syntax::is_subdomain(&claim_name(&"a".repeat(length), "-workspace")));
        }
        assert_eq!(run_name("weather-build", "3f9c1a7be2"), "weather-build-3f9c1a7be2");
        let (one, other) = ("a".repeat(60), format!("{}b", "a".repeat(59)));
        assert_ne!(run_name(&one, &hash), run_name(&other, &hash));
        assert!(!fit("aaaa-----------------------------------------------bbbbbbbbbbbbbbbbb", 50).contains("--"));
    }

    /// Another digest for the same inputs would build everything anew that was built before an upgrade. This one was taken of
    /// `{"inputs":{"rebuild":"","spec":{…}},"uid":"u-1"}`, with all members in order, by another implementation.
    #[test]
    fn the_identity_of_inputs_stays_as_it_is() {
        let mut request = fixtures::request(Vec::new());
        request.identity = json!({
            "spec": {"c": {"e": 0.5, "d": true}, "b": [1, {"z": null, "a": "é\n\""}], "a": "x"},
            "rebuild": "",
        });
        assert_eq!(build_hash(&request), "6649421b5bc2ecd504668c340d4a960239b14e8fc4fe714b679c4eac371d47fe");
    }

    #[test]
    fn attempts_have_names_of_their_own() {
        assert_ne!(attempt_hash("h", 1), attempt_hash("h", 2));
        assert_ne!(attempt_hash("h", 1), attempt_hash("i", 1));
        assert_eq!(attempt_hash("h", 1).len(), 10);
    }

    #[test]
    fn a_candidate_tag_is_a_tag_and_keeps_its_hash() {
        assert_eq!(candidate_tag("v0.0.1", "3f9c1a7be2"), "v0.0.1-candidate-3f9c1a7be2");
        let long = candidate_tag(&"t".repeat(128), "3f9c1a7be2");
        assert!(syntax::is_tag(&long) && long.ends_with("-candidate-3f9c1a7be2"));
        for letters in ["é", "aé", "€", "🌦"] {
            let cut = candidate_tag(&letters.repeat(128), "3f9c1a7be2");
            assert!(cut.len() <= 128 && cut.ends_with("-candidate-3f9c1a7be2"), "{cut}");
        }
    }
}
