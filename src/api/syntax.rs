//! The grammars of names: Kubernetes', Tekton's, OCI's. Each answers yes or no; the caller words the fault.

/// What a DNS-1123 label is, for messages.
pub const LABEL: &str = "a DNS label: 1 to 63 of a-z, 0-9 and -, beginning and ending with a letter or digit";
/// What a DNS-1123 subdomain is, for messages.
pub const SUBDOMAIN: &str = "a DNS subdomain: labels of a-z, 0-9 and -, separated by dots, 253 characters at most";
/// What a Tekton parameter name is, for messages.
pub const PARAMETER: &str = "a parameter name: a letter or _, then letters, digits, _, - and .";

/// What the name of a container's port is, for messages.
pub const PORT_NAME: &str =
    "the name of a port: 1 to 15 of a-z, 0-9 and single dashes between them, a letter among them";

fn alphanumeric_ends(text: &str) -> bool {
    let end = |byte: Option<&u8>| byte.is_some_and(u8::is_ascii_alphanumeric);
    end(text.as_bytes().first()) && end(text.as_bytes().last())
}

/// DNS-1123 label.
#[must_use]
pub fn is_label(text: &str) -> bool {
    text.len() <= 63
        && alphanumeric_ends(text)
        && text.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-')
}

/// DNS-1035 label: as [`is_label`], beginning with a letter.
#[must_use]
pub fn is_service_name(text: &str) -> bool {
    is_label(text) && text.starts_with(|first: char| first.is_ascii_lowercase())
}

/// Name of a container's port (RFC 6335).
#[must_use]
pub fn is_port_name(text: &str) -> bool {
    text.len() <= 15 && is_label(text) && !text.contains("--") && text.bytes().any(|byte| byte.is_ascii_lowercase())
}

/// DNS-1123 subdomain.
#[must_use]
pub fn is_subdomain(text: &str) -> bool {
    text.len() <= 253 && text.split('.').all(|part| part.len() <= 253 && is_label_of_any_length(part))
}

fn is_label_of_any_length(text: &str) -> bool {
    alphanumeric_ends(text)
        && text.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-')
}

/// The last part of a label's or annotation's key.
fn is_key_name(text: &str) -> bool {
    text.len() <= 63
        && alphanumeric_ends(text)
        && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte))
}

/// Key of a label or annotation: optional subdomain and `/`, then a name.
#[must_use]
pub fn is_metadata_key(text: &str) -> bool {
    match text.split_once('/') {
        Some((domain, name)) => is_subdomain(domain) && is_key_name(name),
        None => is_key_name(text),
    }
}

/// Value of a label.
#[must_use]
pub fn is_label_value(text: &str) -> bool {
    text.is_empty() || is_key_name(text)
}

/// Name of a Tekton parameter.
#[must_use]
pub fn is_parameter(text: &str) -> bool {
    text.starts_with(|first: char| first.is_ascii_alphabetic() || first == '_')
        && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"_-.".contains(&byte))
}

/// Name of an environment variable or build argument.
#[must_use]
pub fn is_variable(text: &str) -> bool {
    text.starts_with(|first: char| first.is_ascii_alphabetic() || first == '_')
        && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
}

/// Name of a Tekton result.
#[must_use]
pub fn is_result(text: &str) -> bool {
    alphanumeric_ends(text) && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte))
}

/// Tag of an image.
#[must_use]
pub fn is_tag(text: &str) -> bool {
    text.len() <= 128
        && text.starts_with(|first: char| first.is_ascii_alphanumeric() || first == '_')
        && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"_.-".contains(&byte))
}

/// One component of an image's path: lower-case words joined by `.`, `_`, `__` or dashes.
#[must_use]
pub fn is_image_component(text: &str) -> bool {
    let word = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
    let ends = |byte: Option<&u8>| byte.copied().is_some_and(word);
    let bytes = text.as_bytes();
    ends(bytes.first())
        && ends(bytes.last())
        && bytes.split(|byte| word(*byte)).all(|joint| match joint {
            [] | [b'.' | b'_'] | [b'_', b'_'] => true,
            dashes => dashes.iter().all(|byte| *byte == b'-'),
        })
}

/// Path of an image: components separated by `/`.
#[must_use]
pub fn is_image_path(text: &str) -> bool {
    text.split('/').all(is_image_component)
}

/// `host` or `host:port`; a host in brackets is an IPv6 address.
#[must_use]
pub fn is_host_and_port(text: &str) -> bool {
    if let Some(rest) = text.strip_prefix('[') {
        let Some((address, port)) = rest.split_once(']') else { return false };
        let address_fits = address.contains(':')
            && address.bytes().all(|byte| byte.is_ascii_hexdigit() || byte == b':' || byte == b'.');
        return address_fits && (port.is_empty() || port.strip_prefix(':').is_some_and(is_port));
    }
    match text.split_once(':') {
        Some((host, port)) => is_host(host) && is_port(port),
        None => is_host(text),
    }
}

fn is_host(text: &str) -> bool {
    text.len() <= 253
        && text.split('.').all(|part| {
            alphanumeric_ends(part)
                && part.len() <= 63
                && part.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-')
        })
}

fn is_port(text: &str) -> bool {
    text.bytes().all(|byte| byte.is_ascii_digit()) && text.parse::<u16>().is_ok_and(|port| port > 0)
}

/// Registry of an image: a host that tools cannot take for a path on their default registry, then a path or nothing.
#[must_use]
pub fn is_registry(text: &str) -> bool {
    let (host, path) = text.split_once('/').map_or((text, None), |(host, path)| (host, Some(path)));
    is_host_and_port(host) && (host == "localhost" || host.contains(['.', ':'])) && path.is_none_or(is_image_path)
}

/// An image as a Pod names it: optional registry, path, optional tag, optional digest.
#[must_use]
pub fn is_image_reference(text: &str) -> bool {
    let (rest, digest) = text.split_once('@').map_or((text, None), |(rest, digest)| (rest, Some(digest)));
    let (name, tag) = match rest.rsplit_once(':') {
        Some((name, tag)) if !tag.contains('/') => (name, Some(tag)),
        _ => (rest, None),
    };
    let path_fits = match name.split_once('/') {
        Some((host, path)) if host == "localhost" || host.contains(['.', ':']) => {
            is_host_and_port(host) && is_image_path(path)
        }
        _ => is_image_path(name),
    };
    path_fits && name.len() <= 255 && tag.is_none_or(is_tag) && digest.is_none_or(is_digest)
}

/// What is wrong with a text that is not the name of an image: the rest of a sentence.
#[must_use]
pub fn no_image(text: &str) -> &'static str {
    let name = text.split_once('@').map_or(text, |(name, _)| name);
    let tag = name.rsplit_once(':').map(|(_, tag)| tag).filter(|tag| !tag.contains('/'));
    let name = &name[..name.len() - tag.map_or(0, |tag| tag.len() + 1)];
    let lower = format!("{}{}", name.to_ascii_lowercase(), &text[name.len()..]);
    if lower != text && is_image_reference(&lower) { CAPITALS } else { "is not the name of an image" }
}

/// What is wrong with an image, a registry or a path in one that has capital letters.
pub const CAPITALS: &str = "has capital letters, which the name of an image cannot have (its tag can)";

/// `algorithm:hex`, `sha256` with its 64 digits.
fn is_digest(text: &str) -> bool {
    text.split_once(':').is_some_and(|(algorithm, hex)| {
        !algorithm.is_empty()
            && algorithm.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"+._-".contains(&byte))
            && hex.len() >= 32
            && (algorithm != "sha256" || hex.len() == 64)
            && hex.bytes().all(|byte| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte))
    })
}

/// A length of time as Go writes it (`90s`, `1h30m`, `1.5h`), in seconds.
#[must_use]
pub fn duration_seconds(text: &str) -> Option<f64> {
    const UNITS: [(&str, f64); 7] =
        [("ns", 1e-9), ("us", 1e-6), ("µs", 1e-6), ("ms", 1e-3), ("s", 1.0), ("m", 60.0), ("h", 3600.0)];
    let mut rest = text;
    let mut seconds = 0.0;
    if rest.is_empty() || rest == "0" {
        return (rest == "0").then_some(0.0);
    }
    while !rest.is_empty() {
        let digits = rest.find(|letter: char| !letter.is_ascii_digit() && letter != '.').unwrap_or(rest.len());
        let (number, tail) = rest.split_at(digits);
        let word = tail.find(|letter: char| letter.is_ascii_digit() || letter == '.').unwrap_or(tail.len());
        let (unit, tail) = tail.split_at(word);
        let scale = UNITS.iter().find(|(name, _)| *name == unit)?.1;
        if number.matches('.').count() > 1 || !number.bytes().any(|byte| byte.is_ascii_digit()) {
            return None;
        }
        seconds += number.parse::<f64>().ok()? * scale;
        rest = tail;
    }
    Some(seconds)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all(accepts: fn(&str) -> bool, yes: &[&str], no: &[&str]) {
        for text in yes {
            assert!(accepts(text), "{text:?} is refused");
        }
        for text in no {
            assert!(!accepts(text), "{text:?} is accepted");
        }
    }

    #[test]
    fn kubernetes_names() {
        let long = "a".repeat(64);
        all(is_label, &["a", "0", "a-b", &long[..63]], &["", "-a", "a-", "A", "a.b", "a_b", "ä", &long]);
        all(is_service_name, &["a", "a1"], &["1a", "a.b", ""]);
        all(is_port_name, &["http", "a1", "8080-tcp"], &["", "8080", "a--b", "-a", "A", "a_b", &"a".repeat(16)]);
        all(is_subdomain, &["a", "a.b-c.d"], &["", "a.", ".a", "a..b", "A", &"a.".repeat(127)]);
        all(is_metadata_key, &["a", "a.b/C_d.e", "X"], &["", "/a", "a/", "a/b/c", "A.b/c", "-a", &long]);
        all(is_label_value, &["", "a", "A_b.c"], &["-", "a b", "a/b", &long]);
    }

    #[test]
    fn tekton_names() {
        all(is_parameter, &["a", "_", "repo-url", "a.b", "A1"], &["", "1a", "-a", ".a", "a b", "a$", "é"]);
        all(is_result, &["a", "IMAGE_URL", "a.b", "1"], &["", "-a", "a-", "a b", "_a"]);
        all(is_variable, &["A", "_a1"], &["", "1", "A-B", "A.B", "A B"]);
    }

    #[test]
    fn image_names() {
        all(
            is_registry,
            &["ghcr.io", "ghcr.io/acme", "r:5000", "localhost", "[::1]:5000/a/b", "127.0.0.1:80"],
            &[
                "",
                "acme",
                "acme/x",
                "ghcr.io/",
                "ghcr.io/Acme",
                "r:0",
                "r:99999",
                "r:+5",
                "https://r.io",
                "r.io//a",
                "-r.io",
            ],
        );
        all(
            is_image_component,
            &["a", "a.b", "a_b", "a__b", "a---b", "0"],
            &["", "a..b", "a___b", "_a", "a-", "A", "a._b"],
        );
        all(is_tag, &["v1", "_x", "1.0-rc_1", &"a".repeat(128)], &["", ".a", "-a", "a b", "a/b", &"a".repeat(129)]);
        all(
            is_image_reference,
            &[
                "a",
                "a:b",
                "ghcr.io/acme/weather:v1",
                "r:5000/a",
                "r:5000/a:b",
                "library/a",
                "a@sha256:0000000000000000000000000000000000000000000000000000000000000000",
            ],
            &["", "a b", "A", "a:", "a@sha256:12", "ghcr.io/", "a:b c", "https://a/b"],
        );
    }

    #[test]
    fn durations_as_go_reads_them() {
        for (text, seconds) in [("20m", 1200.0), ("1h0m0s", 3600.0), ("1.5h", 5400.0), ("90s", 90.0), ("0", 0.0)] {
            assert_eq!(duration_seconds(text), Some(seconds), "{text}");
        }
        for text in ["", "20", "m", "1 m", "1d", "-5m", "1h-3m", "1.2.3s", "."] {
            assert_eq!(duration_seconds(text), None, "{text}");
        }
    }
}
