//! Credentials in addresses, which are for whoever connects and for nobody who reads.
//!
//! In: text of somebody else, a URL as a rule. Out: the same for people: in a status, an Event, a log, the output of a command. Promises: what stands
//! before the host is not in it, whatever letters a password has; text without an address stays as it is.

/// What stands in place of them.
const HIDDEN: &str = "…";

/// A text less what stands before the host in its addresses, which may be a password: `https://user:password@host`, and `user:password@host`
/// without a scheme.
#[must_use]
pub fn without_userinfo(text: &str) -> String {
    let ends_word = |letter: char| letter.is_whitespace() || matches!(letter, '"' | '<' | '>');
    text.split_inclusive(ends_word).map(word_without_userinfo).collect()
}

fn word_without_userinfo(word: &str) -> String {
    let mut pieces = word.split("://");
    let first = pieces.next().unwrap_or_default();
    if first.len() < word.len() {
        let mut out = first.to_owned();
        for piece in pieces {
            let (host, path) = piece.split_at(piece.find(['/', '?', '#']).unwrap_or(piece.len()));
            match host.rsplit_once('@') {
                Some((_, host)) => out.extend(["://", HIDDEN, "@", host, path]),
                None => out.extend(["://", piece]),
            }
        }
        return out;
    }
    let Some((before, host)) = word.rsplit_once('@') else { return word.to_owned() };
    let is_pair = before.split_once(':').is_some_and(|(user, password)| !user.is_empty() && !password.is_empty());
    // `image:tag@sha256:...` names an image by its digest.
    if is_pair && !host.starts_with("sha") { format!("{HIDDEN}@{host}") } else { word.to_owned() }
}

/// The same of one value that nobody could read as an address: a password with a blank or a slash in it may be why, so all before its last `@` goes.
#[must_use]
pub fn unread_without_userinfo(text: &str) -> String {
    match text.split_once("://") {
        Some((scheme, rest)) => match rest.rsplit_once('@') {
            Some((_, host)) => format!("{scheme}://{HIDDEN}@{host}"),
            None => text.to_owned(),
        },
        None => word_without_userinfo(text),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_stands_before_a_host_is_hidden_and_nothing_else() {
        for (text, wanted) in [
            ("postgres://u:secret@h/db", "postgres://…@h/db"),
            ("https://user:S@h/v1?a=b@c", "https://…@h/v1?a=b@c"),
            ("https://TOKEN@h", "https://…@h"),
            ("amqp://u:p@ss@h:1,amqp://v:q@i", "amqp://…@h:1,amqp://…@i"),
            ("{\"url\": \"redis://:pw@h\"}\nnext", "{\"url\": \"redis://…@h\"}\nnext"),
            ("DSN=u:pw==@tcp(h:3306)/db", "…@tcp(h:3306)/db"),
        ] {
            assert_eq!(without_userinfo(text), wanted);
        }
        for text in
            ["a@b.org", "https://h/p@1", "i:1@sha256:ab", "http://h:80", "ask x@y: now", "", "@", "def f(): pass"]
        {
            assert_eq!(without_userinfo(text), text);
        }
    }

    #[test]
    fn of_what_could_not_be_read_nothing_before_the_host_is_shown() {
        for (text, wanted) in [
            ("http://u:a b@h:1", "http://…@h:1"),
            ("http://u:a/b?c#d@h:1/v1", "http://…@h:1/v1"),
            ("grpc://u:pw@h", "grpc://…@h"),
            ("u:a b@h:1", "…@h:1"),
        ] {
            assert_eq!(unread_without_userinfo(text), wanted);
        }
        for text in ["otel collector", "http://h:port", "a@b.org", ""] {
            assert_eq!(unread_without_userinfo(text), text);
        }
    }
}
