//! Where traces go, as people write it and as OpenTelemetry's exporters read it.
//!
//! In: an address as text. Out: the URL that an exporter sends to, or nothing where no exporter would find anybody. An exporter
//! that is given `host:port` takes the host for the scheme: over HTTP it sends nothing, over gRPC it asks a collector without
//! TLS for TLS. So that form becomes `http://host:port`, and what is neither that nor a URL is nobody's address.

use std::borrow::Cow;

use serde::Serialize;

use super::userinfo::without_userinfo;

/// What is expected of an address, for messages.
pub const EXPECTED: &str = "a URL of a collector, such as http://otel-collector.observability:4317, or host:port";

/// What is expected of an address that we write to containers, for messages.
pub const EXPECTED_OF_SETTINGS: &str = "a URL of a collector, such as http://otel-collector.observability:4317, or host:port, with $(VARIABLE) in place of host or port alone,";

/// `http` or `grpc`, as users write it (`spec.trace.protocol` of an AgentRuntime).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum TraceProtocol {
    /// `grpc`.
    Grpc,
    /// `http`, written to Pods as `http/protobuf`.
    Http,
}

impl TraceProtocol {
    /// The value users write.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            TraceProtocol::Grpc => "grpc",
            TraceProtocol::Http => "http",
        }
    }
}

/// The schemes that exporters know.
const SCHEMES: [&str; 2] = ["http", "https"];

/// The URL that an exporter is told; `None` for what is neither a URL nor `host:port`.
#[must_use]
pub fn url(text: &str) -> Option<Cow<'_, str>> {
    if text.chars().any(|letter| letter.is_whitespace() || letter.is_control()) {
        return None;
    }
    if is_reference(text) {
        return Some(Cow::Borrowed(text));
    }
    match text.split_once("://") {
        Some((scheme, rest)) => {
            let authority = rest.split(['/', '?', '#']).next().unwrap_or(rest);
            let place = authority.rsplit_once('@').map_or(authority, |(_, place)| place);
            let is_known = SCHEMES.iter().any(|known| known.eq_ignore_ascii_case(scheme));
            (is_known && is_place(place, Port::Optional)).then_some(Cow::Borrowed(text))
        }
        None => is_place(text, Port::Needed).then(|| Cow::Owned(format!("http://{text}"))),
    }
}

/// The same of an address that is written to containers of others. Whoever names it does not write these containers: a variable of theirs in
/// its path, query or credentials would be told to whomever it leads to.
#[must_use]
pub fn url_of_settings(text: &str) -> Option<Cow<'_, str>> {
    let (before, path) = match text.split_once("://") {
        Some((_, rest)) => {
            let (authority, path) = rest.split_at(rest.find(['/', '?', '#']).unwrap_or(rest.len()));
            (authority.rsplit_once('@').map_or("", |(credentials, _)| credentials), path)
        }
        None => ("", ""),
    };
    url(text).filter(|_| ![before, path].into_iter().any(|part| part.contains("$(")))
}

/// The address for people: the URL that is used, and what was written where that is another text; without credentials.
#[must_use]
pub fn shown(text: &str) -> String {
    match url(text) {
        Some(Cow::Owned(url)) => format!("{url} (written as {text})"),
        _ => without_userinfo(text),
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Port {
    Needed,
    Optional,
}

/// A whole value that the kubelet fills in from another variable of the container.
fn is_reference(text: &str) -> bool {
    text.strip_prefix("$(").and_then(|rest| rest.strip_suffix(')')).is_some_and(is_variable)
}

fn is_variable(name: &str) -> bool {
    !name.is_empty() && name.chars().all(|letter| letter.is_ascii_alphanumeric() || "_-.".contains(letter))
}

/// `host`, `host:port`, or either with an IPv6 address in brackets.
fn is_place(text: &str, port: Port) -> bool {
    if let Some(rest) = text.strip_prefix('[') {
        let Some((address, rest)) = rest.split_once(']') else { return false };
        return address.parse::<core::net::Ipv6Addr>().is_ok() && is_rest(rest, port);
    }
    let end = text.find(':').unwrap_or(text.len());
    is_host(&text[..end]) && is_rest(&text[end..], port)
}

/// What stands behind the host: nothing, or a colon and a port.
fn is_rest(rest: &str, port: Port) -> bool {
    match rest.strip_prefix(':') {
        None => rest.is_empty() && port == Port::Optional,
        Some(number) => {
            is_reference(number)
                || (number.len() <= 5
                    && number.bytes().all(|digit| digit.is_ascii_digit())
                    && number.parse::<u16>().is_ok_and(|port| port > 0))
        }
    }
}

/// A name or an IPv4 address, or one that the kubelet fills in.
fn is_host(text: &str) -> bool {
    let is_letter = |letter: char| letter.is_ascii_alphanumeric() || "-_.".contains(letter);
    is_reference(text)
        || (text.starts_with(|letter: char| letter.is_ascii_alphanumeric() || letter == '_')
            && text.chars().all(is_letter))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mend_07_host_and_port_become_a_url_and_what_is_neither_is_nothing() {
        let table = [
            (
                "otel-collector.observability.svc.cluster.local:4317",
                Some("http://otel-collector.observability.svc.cluster.local:4317"),
            ),
            ("10.0.0.7:4318", Some("http://10.0.0.7:4318")),
            ("[fd00::7]:4317", Some("http://[fd00::7]:4317")),
            ("$(HOST_IP):4317", Some("http://$(HOST_IP):4317")),
            ("localhost:1", Some("http://localhost:1")),
            ("http://otel:4317", Some("http://otel:4317")),
            ("http://otel", Some("http://otel")),
            ("HTTPS://otel.example/otlp?x=1", Some("HTTPS://otel.example/otlp?x=1")),
            ("http://user:secret@otel:4318/v1", Some("http://user:secret@otel:4318/v1")),
            ("http://[::1]:4318", Some("http://[::1]:4318")),
            ("http://$(HOST_IP):4317", Some("http://$(HOST_IP):4317")),
            ("$(OTEL_ADDRESS)", Some("$(OTEL_ADDRESS)")),
            ("otel", None),
            ("", None),
            (":4317", None),
            ("otel:", None),
            ("otel:http", None),
            ("otel:0", None),
            ("otel:65536", None),
            ("otel:+4317", None),
            ("otel:4317/v1/traces", None),
            ("fd00::7:4317", None),
            ("[fd00::7]", None),
            ("[otel]:4317", None),
            ("grpc://otel:4317", None),
            ("unix:///run/otel.sock", None),
            ("http:otel:4317", None),
            ("http://", None),
            ("http:///v1", None),
            ("http://:4317", None),
            ("http://otel:port", None),
            ("-otel:4317", None),
            ("http://otel :4317", None),
            ("otel:4317\n", None),
        ];
        for (text, expected) in table {
            assert_eq!(url(text).as_deref(), expected, "{text}");
        }
        for (text, _) in table {
            assert_eq!(url_of_settings(text), url(text), "{text}");
        }
        assert_eq!(shown("otel:4317"), "http://otel:4317 (written as otel:4317)");
        assert_eq!(shown("http://otel:4317"), "http://otel:4317");
        assert_eq!(shown("http://user:secret@otel:4318/v1"), "http://…@otel:4318/v1");
    }

    #[test]
    fn an_address_of_settings_tells_nobody_a_variable_of_the_container() {
        for text in [
            "https://evil.example/$(OPENAI_API_KEY)",
            "https://evil.example?k=$(OPENAI_API_KEY)",
            "https://evil.example#$(OPENAI_API_KEY)",
            "https://evil.example/$$(OPENAI_API_KEY)",
            "https://$(OPENAI_API_KEY)@evil.example",
            "https://u:$(OPENAI_API_KEY)@evil.example:4318/v1",
        ] {
            assert!(url(text).is_some(), "{text}: whoever writes the container may");
            assert_eq!(url_of_settings(text), None, "{text}");
        }
        for text in ["https://$(OPENAI_API_KEY).evil.example", "https://a$(B):1", "$(A)$(B)"] {
            assert_eq!(url(text), None, "{text}");
        }
    }
}
