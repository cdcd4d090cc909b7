//! Repository, revision and subfolder: what could carry a credential, an option or a way out of the tree.
//!
//! These texts reach `git` and shells as data; the rules here are a second line, and tell the user at once.

use crate::api::findings::{Fault, Findings};
use crate::api::syntax;
use crate::domain::reason::Reason;
use crate::pipelines::reference;
use crate::pipelines::request::BuildRequest;

/// Longest URL and folder.
const LONG: usize = 2048;
/// Longest revision.
const REVISION: usize = 255;

/// What is wrong with a text, and what to do.
struct Wrong {
    reason: Reason,
    sentence: &'static str,
    remedy: &'static str,
    /// Whether the value may be repeated.
    secret: bool,
}

const fn wrong(sentence: &'static str, remedy: &'static str) -> Wrong {
    Wrong { reason: Reason::FieldInvalid, sentence, remedy, secret: false }
}

/// Characters that shells, URLs and option parsers give a meaning.
fn is_forbidden(letter: char) -> bool {
    letter.is_whitespace() || letter.is_control() || "'\"\\`$;|&<>(){}*?!^".contains(letter)
}

const FORBIDDEN: Wrong = wrong(
    "contains white space, a control character or one of ' \" \\ ` $ ; | & < > ( ) { } * ? ! ^",
    "remove that character",
);
const DASH: Wrong = wrong("begins with a dash, which tools take for an option", "remove the dash");

/// The host of a repository, without user and port; an IPv6 address in its brackets.
#[must_use]
pub fn host(repository: &str) -> &str {
    let rest = repository.split_once("://").map_or(repository, |(_, rest)| rest);
    let authority = rest.split('/').next().unwrap_or_default();
    let host = authority.rsplit('@').next().unwrap_or_default();
    match host.split_once(']') {
        // The colons of an address begin no port.
        Some((address, _)) if host.starts_with('[') => &host[..=address.len()],
        _ => host.split(':').next().unwrap_or_default(),
    }
}

pub(super) fn check(request: &BuildRequest, insecure: bool, findings: &mut Findings) {
    let (paths, source) = (&request.front.paths, &request.source);
    let mut report = |path: &str, value: &str, wrong: Option<Wrong>| {
        if let Some(wrong) = wrong {
            let fault = Fault::new(wrong.reason, path, wrong.sentence, wrong.remedy);
            findings.fault(if wrong.secret || value.is_empty() { fault } else { fault.seeing(value) });
        }
    };
    report(paths.repository, &source.repository, repository(&source.repository, insecure));
    report(paths.revision, &source.revision, revision(&source.revision));
    report(paths.subfolder, &source.subfolder, subfolder(&source.subfolder));
    report(paths.user, &source.user, user(&source.user));
    if let Some(secret) = &request.git_auth {
        report(paths.git_auth, &secret.secret, secret_name(&secret.secret));
    }
    if let Some(secret) = &request.registry_auth {
        report(paths.registry_auth, &secret.secret, secret_name(&secret.secret));
    }
}

/// A parameter that takes the place of a source field obeys the field's rules; and credentials go only to the host of
/// the field.
pub(super) fn replaced(request: &BuildRequest, name: &str, (path, value): (&str, &str), findings: &mut Findings) {
    let found = match name {
        "repo-url" if request.git_auth.is_some() => Some(Wrong {
            secret: true,
            ..wrong(
                "would send the source's credentials to another repository than that of spec.source",
                "remove the parameter, or the credentials",
            )
        }),
        // The platform's word about http is for the field; a parameter has no way round it.
        "repo-url" => repository(value, false),
        "revision" => revision(value),
        "subfolder-path" => subfolder(value),
        "repo-user" => user(value),
        "image" if !syntax::is_image_reference(value) => Some(wrong(
            syntax::no_image(value),
            "write registry/path:tag, all but the tag in lower case, or leave it to the output's fields",
        )),
        _ => None,
    };
    if let Some(wrong) = found {
        let fault = Fault::new(wrong.reason, path, wrong.sentence, wrong.remedy);
        findings.fault(if wrong.secret || value.is_empty() { fault } else { fault.seeing(value) });
    }
}

/// A credential in the URL that a step is given stands where everybody who may read builds can read it; one that a reference puts there does not.
pub(super) fn credential(name: &str, value: &str, path: impl FnOnce() -> String) -> Option<Fault> {
    let (before, _) = value.rsplit_once('@').filter(|_| name == "repo-url")?;
    let is_there = repository(value, true).is_some_and(|wrong| wrong.reason == CREDENTIALS.reason);
    let fault = || Fault::new(CREDENTIALS.reason, path(), CREDENTIALS.sentence, CREDENTIALS.remedy);
    (is_there && !reference::mentions(before)).then(fault)
}

/// Whether a repository is read over http, which shows everybody on the way what is sent.
#[must_use]
pub fn is_http(repository: &str) -> bool {
    repository.split_once("://").is_some_and(|(scheme, _)| scheme.eq_ignore_ascii_case("http"))
}

/// Whether a repository is read over SSH, which knows keys and no tokens.
#[must_use]
pub fn is_ssh(repository: &str) -> bool {
    match repository.split_once("://") {
        Some((scheme, _)) => scheme.eq_ignore_ascii_case("ssh"),
        None => {
            let authority = repository.split('/').next().unwrap_or_default();
            authority.rsplit_once('@').is_some_and(|(_, host)| host.contains(':'))
        }
    }
}

/// Whether the value of such a parameter must not be repeated, whatever is wrong with it.
pub(in crate::pipelines) fn is_secret(name: &str, value: &str) -> bool {
    name == "repo-url" && repository(value, true).is_some_and(|wrong| wrong.secret)
}

fn secret_name(name: &str) -> Option<Wrong> {
    if name.is_empty() {
        return Some(Wrong {
            reason: Reason::FieldRequired,
            ..wrong("is required", "name the Secret, or leave the credentials out")
        });
    }
    (!syntax::is_subdomain(name))
        .then_some(wrong("is not the name of a Secret", "name a Secret of the build's namespace"))
}

fn user(name: &str) -> Option<Wrong> {
    if name.starts_with('-') {
        return Some(DASH);
    }
    if name.len() > REVISION {
        return Some(wrong("is longer than 255 characters", "write the user name"));
    }
    name.contains(|letter| is_forbidden(letter) || letter == ':' || letter == '/').then_some(wrong(
        "contains white space, a control character, : or / or a character with a meaning to shells",
        "write the plain user name",
    ))
}

const CREDENTIALS: Wrong = Wrong {
    reason: Reason::CredentialInText,
    sentence: "must not contain credentials: everybody who may read builds can read it",
    remedy: "put the token into a Secret and name that under the source's credentials; then replace the token, which has been sent",
    secret: true,
};

/// One of `host/path`, `https://…`, `ssh://…`, `user@host:path`.
fn repository(url: &str, insecure: bool) -> Option<Wrong> {
    const SHAPES: &str = "write host/path, https://host/path, ssh://user@host/path or user@host:path";
    if url.is_empty() {
        return Some(Wrong { reason: Reason::FieldRequired, ..wrong("is required", SHAPES) });
    }
    let (scheme, rest) = url.split_once("://").map_or((None, url), |(scheme, rest)| (Some(scheme), rest));
    let authority = rest.split('/').next().unwrap_or_default();
    let user = rest.split('/').next().and_then(|first| first.rsplit_once('@')).map(|(user, _)| user);
    let names_user = |scheme: &str| scheme.eq_ignore_ascii_case("ssh");
    if user.is_some_and(|user| user.contains(':') || scheme.is_some_and(|scheme| !names_user(scheme))) {
        return Some(CREDENTIALS);
    }
    // A password with a slash in it, or a scheme that is misspelt, keeps the @ out of the first part.
    let after = rest.strip_prefix(authority).unwrap_or_default();
    let is_hidden =
        after.rfind('@').is_some_and(|at| !syntax::is_host_and_port(authority) || after[..at].contains(':'));
    if user.is_none() && is_hidden {
        return Some(CREDENTIALS);
    }
    // `user@host/path` would become a URL with the user, most often a token, in it.
    if scheme.is_none() && user.is_some() && !authority.rsplit('@').next().unwrap_or_default().contains(':') {
        return Some(CREDENTIALS);
    }
    if url.len() > LONG {
        return Some(wrong("is longer than 2048 characters", SHAPES));
    }
    if url.starts_with('-') {
        return Some(DASH);
    }
    if url.contains(is_forbidden) {
        // What follows a question mark is where tokens are put.
        return Some(Wrong { secret: url.contains('?'), ..FORBIDDEN });
    }
    let host = authority.rsplit('@').next().unwrap_or_default();
    let path = after.trim_matches('/');
    match scheme.map(str::to_ascii_lowercase).as_deref() {
        Some("https" | "ssh") => {}
        Some("http") if insecure => {}
        Some("http") => {
            return Some(wrong(
                "uses http, over which anybody can change the source",
                "use https; the platform can allow http for a whole installation",
            ));
        }
        Some(_) => return Some(wrong("has a scheme that is not allowed", SHAPES)),
        None if user.is_some() => return secure_copy(host, rest, SHAPES),
        None => {}
    }
    if user.is_some_and(|user| user.starts_with('-') || user.is_empty()) || host.starts_with('-') {
        return Some(DASH);
    }
    (!syntax::is_host_and_port(host) || path.is_empty()).then_some(wrong("is not a Git URL", SHAPES))
}

/// `user@host:path`.
fn secure_copy(host: &str, rest: &str, shapes: &'static str) -> Option<Wrong> {
    let after_user = rest.split_once('@').map_or(rest, |(_, after)| after);
    let path = after_user.split_once(':').map_or("", |(_, path)| path);
    let host = host.split_once(':').map_or(host, |(host, _)| host);
    let fits = syntax::is_host_and_port(host) && !path.trim_matches('/').is_empty() && !path.starts_with(['-', ':']);
    (!fits || rest.starts_with(['-', '@'])).then_some(wrong("is not a Git URL", shapes))
}

/// Branch, tag or commit.
fn revision(revision: &str) -> Option<Wrong> {
    const SHAPE: &str = "write a branch, a tag or a commit";
    if revision.is_empty() {
        return Some(Wrong { reason: Reason::FieldRequired, ..wrong("is required", SHAPE) });
    }
    if revision.len() > REVISION {
        return Some(wrong("is longer than 255 characters", SHAPE));
    }
    if revision.starts_with('-') {
        return Some(DASH);
    }
    if revision.contains("..") {
        return Some(wrong("contains two dots, which mean a range", SHAPE));
    }
    if revision.contains(is_forbidden) {
        return Some(FORBIDDEN);
    }
    (revision.starts_with('+') || revision.contains([':', '~', '[']) || revision.contains("@{"))
        .then_some(wrong("contains what git does not read as a name: a leading +, or : ~ [ @{", SHAPE))
}

/// A folder below the root of the repository; empty for the root.
fn subfolder(folder: &str) -> Option<Wrong> {
    const SHAPE: &str = "write the folder's path from the root of the repository, such as agents/weather";
    if folder.len() > LONG {
        return Some(wrong("is longer than 2048 characters", SHAPE));
    }
    if folder.starts_with('/') {
        return Some(wrong("begins with a slash", SHAPE));
    }
    if folder.starts_with('-') {
        return Some(DASH);
    }
    if folder.split('/').any(|part| part == "..") {
        return Some(wrong("leaves the repository", SHAPE));
    }
    folder.contains(is_forbidden).then_some(FORBIDDEN)
}

/// Whether a text is the path of something below a folder, without anything that shells or tools give a meaning.
#[must_use]
pub fn is_clean_path(path: &str) -> bool {
    !path.is_empty() && subfolder(path).is_none() && !reference::mentions(path)
}

/// Whether a revision can only mean one commit: a full commit id, or what looks like a version.
#[must_use]
pub fn is_immutable(revision: &str) -> bool {
    let commit = revision.len() == 40 && revision.bytes().all(|byte| byte.is_ascii_hexdigit());
    let version = revision.strip_prefix('v').unwrap_or(revision);
    let mut parts = version.splitn(3, '.');
    let number =
        |part: Option<&str>| part.is_some_and(|part| !part.is_empty() && part.bytes().all(|b| b.is_ascii_digit()));
    commit
        || (number(parts.next())
            && number(parts.next())
            && parts.next().is_some_and(|rest| rest.starts_with(|first: char| first.is_ascii_digit())))
}

#[cfg(test)]
mod tests {
    use super::{host, is_ssh};

    #[test]
    fn ssh_is_told_from_what_is_read_over_https() {
        for url in ["ssh://git@host:22/a", "SSH://host/a", "git@host:a/b.git", "git@host:22/a"] {
            assert!(is_ssh(url), "{url}");
        }
        for url in ["https://host/a", "host/a", "host:3000/a", "host/a@b:c", "https://host/git@x:y", ""] {
            assert!(!is_ssh(url), "{url}");
        }
    }

    #[test]
    fn a_repository_has_a_host_however_it_is_written() {
        for url in ["github.com/a/b", "https://github.com/a", "ssh://git@github.com:22/a", "git@github.com:a/b.git"] {
            assert_eq!(host(url), "github.com", "{url}");
        }
        for url in ["https://[fd00::1]/a", "[fd00::1]:3000/a", "ssh://git@[fd00::1]:22/a"] {
            assert_eq!(host(url), "[fd00::1]", "{url}");
        }
        assert_eq!((host("https://[fd00::1"), host("a]:80/b")), ("[fd00", "a]"));
    }
}
