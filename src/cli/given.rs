//! What arguments of several commands may be: a name that was left out by a script is refused, not taken for another one.

use crate::api::syntax;

/// The name of a namespace.
///
/// # Errors
/// What it should be.
pub fn namespace(text: &str) -> Result<String, String> {
    match text {
        "" => Err("the name is empty; name a namespace, or leave the flag out".to_owned()),
        name if syntax::is_label(name) => Ok(name.to_owned()),
        _ => Err(format!("a namespace is {}", syntax::LABEL)),
    }
}

/// The name of an object.
///
/// # Errors
/// What it should be.
pub fn name(text: &str) -> Result<String, String> {
    if syntax::is_subdomain(text) { Ok(text.to_owned()) } else { Err(format!("a name is {}", syntax::SUBDOMAIN)) }
}

/// An image.
///
/// # Errors
/// What it should be.
pub fn image(text: &str) -> Result<String, String> {
    if syntax::is_image_reference(text) {
        Ok(text.to_owned())
    } else {
        Err("write it as registry/path:tag or registry/path@sha256:…".to_owned())
    }
}

/// A file, a folder, or `-`.
///
/// # Errors
/// What it should be.
pub fn path(text: &str) -> Result<String, String> {
    match text {
        "" => Err("the path is empty; name a file or a folder, or - for standard input".to_owned()),
        path => Ok(path.to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::{image, name, namespace, path};

    #[test]
    fn what_a_script_left_empty_is_refused() {
        assert!(namespace("").unwrap_err().contains("leave the flag out"));
        assert!(path("").unwrap_err().contains("- for standard input"));
        assert_eq!((namespace("team1"), path("-")), (Ok("team1".to_owned()), Ok("-".to_owned())));
        for name in ["Team", "a.b", "a/b", "-a", &"a".repeat(64)] {
            assert!(namespace(name).unwrap_err().contains("DNS label"), "{name}");
        }
        for one in ["", "a/b", "A", "?x"] {
            assert!(name(one).unwrap_err().contains("DNS subdomain"), "{one}");
        }
        for one in ["", "a b", "https://r.io/a", "r.io/A:1"] {
            assert!(image(one).unwrap_err().contains("registry/path"), "{one}");
        }
        assert_eq!(image("r.io:5000/a/b:1").as_deref(), Ok("r.io:5000/a/b:1"));
        assert_eq!(name("weather.v2"), Ok("weather.v2".to_owned()));
    }
}
