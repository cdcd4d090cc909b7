//! The object's name, and the labels and annotations it wants on its run.

use std::collections::BTreeMap;

use super::MAX_NAME;
use crate::api::findings::{Fault, Findings, Note};
use crate::api::syntax;
use crate::domain::keys;
use crate::domain::reason::Reason;
use crate::pipelines::request::BuildRequest;

/// Most bytes all annotations of one object may have.
const ANNOTATIONS_LIMIT: usize = 256 * 1024;

pub(super) fn name(request: &BuildRequest, findings: &mut Findings) {
    let name = &request.owner.name;
    if name.len() > MAX_NAME || !syntax::is_label(name) {
        let sentence = format!("is not a DNS label of at most {MAX_NAME} characters");
        let remedy = "choose a shorter name of a-z, 0-9 and -; runs and labels are named after it";
        findings.fault(Fault::invalid("metadata.name", sentence, remedy).seeing(name));
    }
}

/// Whether a key belongs to a domain whose keys would enrol, own or steer the Pods of the run.
pub(crate) fn is_reserved(key: &str) -> bool {
    const OWN: [&str; 3] = [keys::LABEL_PART_OF, keys::LABEL_APP_MANAGED_BY, keys::LABEL_COMPONENT];
    let domain = key.split_once('/').map_or("", |(domain, _)| domain);
    OWN.contains(&key)
        || keys::RESERVED_BUILD_DOMAINS.iter().any(|reserved| {
            domain == *reserved || domain.strip_suffix(reserved).is_some_and(|rest| rest.ends_with('.'))
        })
}

pub(super) fn maps(request: &BuildRequest, findings: &mut Findings) {
    let paths = &request.front.paths;
    keys_of(&request.labels, paths.labels, findings);
    keys_of(&request.annotations, paths.annotations, findings);
    for (key, value) in request.labels.iter().filter(|(_, value)| !syntax::is_label_value(value)) {
        let sentence =
            "is not a label's value: at most 63 letters, digits, -, _ and ., with a letter or digit at both ends";
        findings.fault(Fault::invalid(format!("{}[{key}]", paths.labels), sentence, "correct the value").seeing(value));
    }
    let size: usize = request.annotations.iter().map(|(key, value)| key.len() + value.len()).sum();
    if size > ANNOTATIONS_LIMIT {
        let sentence = format!("has {size} bytes; Kubernetes stores at most {ANNOTATIONS_LIMIT}");
        findings.fault(Fault::invalid(paths.annotations, sentence, "shorten the annotations"));
    }
}

fn keys_of(map: &BTreeMap<String, String>, path: &str, findings: &mut Findings) {
    for key in map.keys() {
        let at = format!("{path}[{key}]");
        if !syntax::is_metadata_key(key) {
            let sentence = "has a key that Kubernetes does not allow";
            findings.fault(Fault::invalid(path, sentence, "correct the key").seeing(key));
        } else if is_reserved(key) {
            let text = format!("{key} is reserved and is not passed on to the run; remove it");
            findings.note(Note::new(Reason::MetadataDropped, at, text));
        }
    }
}
