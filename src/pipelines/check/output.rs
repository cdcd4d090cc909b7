//! Where the image goes.

use crate::api::findings::{Fault, Findings, Note};
use crate::api::syntax;
use crate::domain::reason::Reason;
use crate::pipelines::request::BuildRequest;

/// Longest name of an image, with its registry.
const NAME_LIMIT: usize = 255;

pub(super) fn check(request: &BuildRequest, findings: &mut Findings) {
    let paths = &request.front.paths;
    let Some(image) = &request.image else {
        if request.gated {
            let remedy = "say where the image goes: imageRegistry, image and imageTag";
            findings.fault(Fault::required(paths.output, remedy));
        }
        return;
    };
    let mut part = |path: &str, value: &str, fits: bool, sentence: &str, remedy: &str| {
        if value.is_empty() {
            findings.fault(Fault::required(path, remedy));
        } else if !fits {
            findings.fault(Fault::invalid(path, sentence, remedy).seeing(value));
        }
    };
    let or_capitals = |fits: fn(&str) -> bool, text: &str, other: &'static str| {
        if fits(&text.to_ascii_lowercase()) { syntax::CAPITALS } else { other }
    };
    part(
        paths.registry,
        &image.registry,
        syntax::is_registry(&image.registry),
        or_capitals(
            syntax::is_registry,
            &image.registry,
            "is not a registry: a host with a dot, a port or localhost, then a lower-case path or nothing",
        ),
        "write host, host:port or host/path, such as ghcr.io/acme",
    );
    part(
        paths.image,
        &image.image,
        syntax::is_image_path(&image.image),
        or_capitals(
            syntax::is_image_path,
            &image.image,
            "is not an image's path: lower-case words joined by ., _ or -, separated by /",
        ),
        "write the path below the registry, such as weather-service",
    );
    part(
        paths.tag,
        &image.tag,
        syntax::is_tag(&image.tag),
        "is not a tag: at most 128 letters, digits, _, . and -, not beginning with . or -",
        "write a tag, such as v0.0.1",
    );
    let length = image.registry.len() + 1 + image.image.len();
    if length > NAME_LIMIT {
        let sentence =
            format!("makes a name of {length} characters with its registry; at most {NAME_LIMIT} are allowed");
        findings.fault(Fault::invalid(paths.image, sentence, "shorten the path"));
    }
    if image.tag == "latest" {
        let text = "tag latest means another image after every build; use a version";
        findings.note(Note::new(Reason::MovingReference, paths.tag, text));
    }
}
