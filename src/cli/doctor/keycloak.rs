//! Does the Keycloak of the platform file answer, and is its realm there under the issuer that the sidecars expect?
//!
//! In: the platform file, the Service its URL names, and Keycloak's public description of the realm. That is asked for through the API
//! server's proxy: from wherever kubectl works, and without any credential of Keycloak's. Promises: at most [`DEADLINE`] for the answer,
//! whoever gives it; where nothing is enrolled nobody is missed.

use std::time::Duration;

use super::{Seen, Status, Visit, surroundings, text};
use crate::cli::cluster::Answer;
use crate::config::schema::Keycloak;
use crate::domain::keys;

const NAME: &str = "Keycloak";
/// Longest wait for Keycloak.
const DEADLINE: Duration = Duration::from_secs(5);
/// Letters of somebody else's message that are repeated.
const WORDS: usize = 200;

/// The Service that a URL names.
#[derive(Debug, PartialEq, Eq)]
struct Inside<'u> {
    scheme: &'u str,
    service: &'u str,
    namespace: &'u str,
    port: u16,
    /// What comes before `/realms`.
    path: &'u str,
}

/// The Service behind a URL such as `http://keycloak-service.keycloak.svc:8080`; `None` for a host that is none of the cluster's.
fn inside(url: &str) -> Option<Inside<'_>> {
    let (scheme, rest) = url.split_once("://")?;
    let (host, path) = rest.find('/').map_or((rest, ""), |at| rest.split_at(at));
    let (host, port) = match host.split_once(':') {
        Some((host, port)) => (host, port.parse().ok()?),
        None => (host, if scheme == "https" { 443 } else { 80 }),
    };
    let mut labels = host.split('.');
    let (service, namespace) = (labels.next()?, labels.next()?);
    (labels.next() == Some("svc")).then_some(Inside { scheme, service, namespace, port, path })
}

impl Inside<'_> {
    fn object(&self) -> String {
        format!("/api/v1/namespaces/{}/services/{}", self.namespace, self.service)
    }

    /// Where the API server's proxy has what everybody may know of the realm.
    fn description(&self, realm: &str) -> String {
        let Self { scheme, service, namespace, port, path } = self;
        let target = format!("/api/v1/namespaces/{namespace}/services/{scheme}:{service}:{port}/proxy");
        format!("{target}{path}/realms/{realm}/.well-known/openid-configuration")
    }
}

/// `is_needed`: there are Pods whose sidecars ask it for tokens.
pub(super) async fn check(visit: &mut Visit, is_needed: bool) -> anyhow::Result<()> {
    let Some(platform) = surroundings::platform(visit, NAME).await? else { return Ok(()) };
    let Keycloak { url, realm, .. } = platform.keycloak();
    let settings = format!("keycloak.url in ConfigMap {} of namespace {}", keys::CONFIG_MAP_PLATFORM, visit.operator);
    let Some(place) = inside(url) else {
        let seen = format!("{url} is not a Service of this cluster, so only its Pods can tell whether it answers");
        let ask =
            format!("kubectl run ask --rm -i --restart=Never --image=curlimages/curl -- -sS {url}/realms/{realm}");
        visit.unknown(NAME, seen, ask);
        return Ok(());
    };
    let called = format!("Service {} in {}", place.service, place.namespace);
    let service = match visit.read(NAME, &place.object()).await? {
        Seen::Is(service) => service,
        Seen::Hidden => return Ok(()),
        Seen::Absent if !is_needed => {
            visit.ok(NAME, format!("{called} does not exist, and nothing that needs it is enrolled"));
            return Ok(());
        }
        Seen::Absent => {
            let seen = format!("{called} does not exist: sidecars get no tokens, and no client is registered");
            visit.finding(NAME, seen, format!("install Keycloak there, or correct {settings}"));
            return Ok(());
        }
    };
    let mut ports = service["spec"]["ports"].as_array().into_iter().flatten();
    if !ports.any(|port| port["port"] == place.port) && text(&service, "/spec/type") != "ExternalName" {
        visit.finding(NAME, format!("{called} has no port {}", place.port), format!("correct {settings}"));
        return Ok(());
    }
    let asked = tokio::time::timeout(DEADLINE, visit.cluster.get(&place.description(realm))).await;
    let answer = match asked {
        Ok(answer) => answer.map_err(|error| error.to_string()),
        Err(_) => Err(format!("no answer within {} s", DEADLINE.as_secs())),
    };
    let (status, seen, remedy) = judge(&called, &settings, platform.keycloak(), answer);
    visit.add(NAME, status, (seen, remedy));
    Ok(())
}

/// What an answer to the question for the realm says.
fn judge(
    called: &str,
    settings: &str,
    keycloak: &Keycloak,
    answer: Result<Answer, String>,
) -> (Status, String, Option<String>) {
    let finding = |seen: String, remedy: String| (Status::Finding, seen, Some(remedy));
    let unknown = |seen: String, remedy: &str| (Status::Unknown, seen, Some(remedy.to_owned()));
    let realm = &keycloak.realm;
    let repair = format!("look at the Pods behind {called}, or correct {settings}");
    let description = match answer {
        Ok(Answer::Object(description)) => description,
        Ok(Answer::Absent) => {
            let remedy = format!("create realm {realm}, or correct keycloak.realm, or the path, in {settings}");
            return finding(format!("{called} knows no realm {realm}"), remedy);
        }
        Ok(Answer::Refused(403, message)) if message.contains("services/proxy") => {
            return unknown(shown(&message), "run doctor as somebody who may get services/proxy there");
        }
        Ok(Answer::Refused(code, message)) => {
            return finding(format!("{called} answers {code}: {}", shown(&message)), repair);
        }
        Err(error) => {
            return finding(format!("{called} exists and gives no answer of HTTP: {}", shown(&error)), repair);
        }
    };
    let Some(says) = description["issuer"].as_str() else {
        return finding(format!("the answer of {called} is not a description of a realm: it names no issuer"), repair);
    };
    match keycloak.issuer() {
        None => {
            let seen =
                format!("realm {realm} answers; keycloak.publicUrl is not set, so ISSUER is left to each namespace");
            (Status::Ok, seen, None)
        }
        Some(issuer) if issuer == says => {
            (Status::Ok, format!("realm {realm} answers, with the issuer that is set"), None)
        }
        Some(issuer) => unknown(
            format!("realm {realm} answers with issuer {}, and {issuer} is set", shown(says)),
            "compare with member iss of a token: if it is another one, correct keycloak.publicUrl; a Keycloak without a host name of its \
             own takes that of the request, and this proves nothing",
        ),
    }
}

/// The beginning of somebody else's words, on one line.
fn shown(words: &str) -> String {
    words.split_whitespace().collect::<Vec<_>>().join(" ").chars().take(WORDS).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_service_of_this_cluster_is_told_by_its_name() {
        let place = |scheme, service, namespace, port, path| Some(Inside { scheme, service, namespace, port, path });
        for (url, expected) in [
            ("http://keycloak-service.keycloak.svc:8080", place("http", "keycloak-service", "keycloak", 8080, "")),
            ("https://kc.auth.svc.cluster.local/auth", place("https", "kc", "auth", 443, "/auth")),
            ("http://kc.auth.svc", place("http", "kc", "auth", 80, "")),
            ("https://keycloak.example.com", None),
            ("https://keycloak.example:8443/auth", None),
            ("https://kc.auth.svc:port", None),
            ("keycloak", None),
        ] {
            assert_eq!(inside(url), expected, "{url}");
        }
        let asked = inside("https://kc.auth.svc/auth").unwrap().description("demo");
        assert_eq!(
            asked,
            "/api/v1/namespaces/auth/services/https:kc:443/proxy/auth/realms/demo/.well-known/openid-configuration"
        );
    }

    #[test]
    fn every_answer_is_judged_and_says_what_to_do() {
        let keycloak = |public: Option<&str>| Keycloak {
            url: "http://kc.auth.svc".to_owned(),
            realm: "demo".to_owned(),
            public_url: public.map(str::to_owned),
        };
        let page = format!("<html>\n{}", "x".repeat(5000));
        for (answer, public, status, words) in [
            (
                Ok(Answer::Object(json!({"issuer": "https://id/realms/demo"}))),
                Some("https://id"),
                Status::Ok,
                "that is set",
            ),
            (
                Ok(Answer::Object(json!({"issuer": "https://id/realms/demo"}))),
                None,
                Status::Ok,
                "left to each namespace",
            ),
            (
                Ok(Answer::Object(json!({"issuer": "http://10.0.0.1"}))),
                Some("https://id"),
                Status::Unknown,
                "http://10.0.0.1",
            ),
            (Ok(Answer::Object(json!({"hello": 1}))), Some("https://id"), Status::Finding, "names no issuer"),
            (Ok(Answer::Absent), None, Status::Finding, "knows no realm demo"),
            (
                Ok(Answer::Refused(403, "cannot get resource \"services/proxy\"".to_owned())),
                None,
                Status::Unknown,
                "services/proxy",
            ),
            (Ok(Answer::Refused(403, "go away".to_owned())), None, Status::Finding, "answers 403: go away"),
            (
                Ok(Answer::Refused(503, "no endpoints available".to_owned())),
                None,
                Status::Finding,
                "answers 503: no endpoints",
            ),
            (Ok(Answer::Refused(500, page.clone())), None, Status::Finding, "<html> xxx"),
            (Err("no answer within 5 s".to_owned()), None, Status::Finding, "no answer within 5 s"),
        ] {
            let (found, seen, remedy) = judge("Service kc in auth", "keycloak.url", &keycloak(public), answer);
            assert_eq!((found, remedy.is_some()), (status, status != Status::Ok), "{seen}");
            assert!(seen.contains(words) && seen.len() < 400, "{seen}");
        }
    }
}
