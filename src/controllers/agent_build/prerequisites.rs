//! What must be there before a run is composed: credentials with usable keys, and for gated modes the very template that the build was completed from.
//!
//! Of a Secret the type, the names of its keys and one annotation are known, never a value. Which keys count is a table.

use std::collections::BTreeSet;
use std::time::Duration;

use super::secrets::{Use, Wanted, wanted};
use super::subject::Subject;
use crate::api::findings::{Fault, shown};
use crate::api::syntax;
use crate::controllers::scaffold::answers::SecretFact;
use crate::controllers::scaffold::consent::{Demand, bound, refusal};
use crate::controllers::scaffold::plan::Op;
use crate::domain::keys;
use crate::domain::reason::Reason;
use crate::pipelines::agent_build::{Change, drift, validate};
use crate::pipelines::check::source::host;
use crate::pipelines::request::BuildRequest;
use crate::store::Key;

/// How often a Secret that is missing is asked for at first, and for how long.
const EAGER: (Duration, Duration) = (Duration::from_secs(5), Duration::from_secs(120));
/// Pause between two questions of one namespace: ten thousand builds that wait ask no more often than a hundred.
const SHARE: Duration = Duration::from_millis(50);
/// How often after that.
const PATIENT: Duration = Duration::from_secs(30);

const DOCKER_CONFIG: &str = ".dockerconfigjson";
const CONFIG: &str = "config.json";
/// The layout before that of today, in which OpenShift's own registry gives its logins: hosts, without `auths` around them.
const OLD_TYPE: &str = "kubernetes.io/dockercfg";
const OLD_CONFIG: &str = ".dockercfg";

/// How often Secrets are asked for by a build that has waited since then, among `others` that are held back.
pub(super) fn interval(held: Option<Duration>, now: Duration, others: usize) -> Duration {
    let waited = held.map_or(Duration::ZERO, |since| now.saturating_sub(since));
    let alone = if waited < EAGER.1 { EAGER.0 } else { PATIENT };
    alone.max(SHARE.saturating_mul(u32::try_from(others).unwrap_or(u32::MAX)))
}

/// The questions whose answers are missing or too old to start a build on.
pub(super) fn questions(subject: &Subject<'_>) -> Vec<Op> {
    let (now, every) = (subject.cx.now, interval(subject.held(), subject.cx.now, subject.held_in_namespace()));
    let named = wanted(subject).into_iter().filter(|wanted| syntax::is_subdomain(&wanted.name));
    let keys = named.map(|wanted| Key::new(subject.namespace(), &wanted.name));
    let stale = |key: &Key| {
        let fact = subject.cx.memory.answers.secret_fact(key);
        fact.is_none_or(|(_, at)| now.saturating_sub(at) >= every)
    };
    let keys: BTreeSet<Key> = keys.filter(stale).collect();
    keys.into_iter().map(|key| Op::Look { key }).collect()
}

/// Whether nobody has asked the API server whether the build may have that Secret: its own consent is needed.
pub(super) fn is_by_consent(subject: &Subject<'_>, name: &str) -> bool {
    wanted(subject).into_iter().any(|wanted| wanted.name == name && wanted.demand.is_some())
}

/// The Secrets that are to be asked for their consent before the run is made: not those that the build goes without.
pub(super) fn demands(subject: &Subject<'_>) -> Vec<Demand> {
    let used = wanted(subject).into_iter().filter(|wanted| !is_left_out(subject, wanted));
    let demands: BTreeSet<_> = used.filter_map(|wanted| wanted.demand).collect();
    demands.into_iter().collect()
}

/// Whether the build goes without that Secret, because what it names there is missing and may be.
fn is_left_out(subject: &Subject<'_>, wanted: &Wanted) -> bool {
    let known = subject.cx.memory.answers.secret_fact(&Key::new(subject.namespace(), &wanted.name));
    wanted.optional && known.is_some_and(|(fact, _)| wanted.lacks(fact))
}

/// What is wrong with the Secrets; and which keys of the registry's go where.
pub(super) fn secrets(subject: &Subject<'_>, request: &mut BuildRequest) -> Vec<Fault> {
    let mut faults = Vec::new();
    for wanted in wanted(subject) {
        if !syntax::is_subdomain(&wanted.name) {
            // Nothing has that name, and it makes no address that could be asked. Where a name belongs, people put the token itself.
            let name = match wanted.what {
                Use::Git | Use::Registry | Use::Token => "a text".to_owned(),
                Use::Signing | Use::Parameter => shown(&wanted.name),
            };
            let sentence = format!("names {name}, which is the name of no Secret");
            faults.push(fault(&wanted, sentence, "name a Secret of the build's namespace"));
            continue;
        }
        let Some((fact, _)) = subject.cx.memory.answers.secret_fact(&Key::new(subject.namespace(), &wanted.name))
        else {
            continue;
        };
        match fact {
            _ if is_left_out(subject, &wanted) => wanted.leave_out(request),
            SecretFact::Absent => faults.push(missing(subject, &wanted)),
            fact if wanted.demand.as_ref().is_some_and(|demand| refusal(fact, demand).is_some()) => {
                faults.extend(wanted.demand.as_ref().and_then(|demand| refusal(fact, demand)).map(|told| {
                    let (sentence, remedy) = told.split_once(". What to do: ").unwrap_or((&told, ""));
                    Fault::new(Reason::SecretNotUsable, wanted.path, sentence, remedy)
                }));
            }
            SecretFact::Forbidden => {
                let remedy =
                    "let Drawbridge get Secrets in this namespace; drawbridge doctor shows which right is missing";
                faults.push(fault(&wanted, format!("secret {} may not be read", wanted.name), remedy));
            }
            SecretFact::Is(seen) => {
                let has = |key: &str| seen.keys.contains(key);
                let elsewhere =
                    bound(&wanted.name, seen, &wanted.goes).filter(|_| seen.hosts.is_none() || wanted.what != Use::Git);
                faults.extend(elsewhere.map(|told| {
                    let (sentence, remedy) = told.split_once(". What to do: ").unwrap_or((&told, ""));
                    fault(&wanted, sentence.to_owned(), remedy)
                }));
                match wanted.what {
                    Use::Git | Use::Token if wanted.lacks(fact) => faults.push(keyless(&wanted)),
                    Use::Git => {
                        let rules = GitRules {
                            must_list: subject.builds().settings.pipelines.require_git_hosts,
                            unknown_hosts: takes_unknown_hosts(subject),
                        };
                        faults.extend(git(&wanted, request, has, (seen.hosts.as_deref(), rules)));
                    }
                    Use::Registry => faults.extend(registry(&wanted, request, has, &seen.type_)),
                    Use::Signing if !has("cosign.key") => {
                        let sentence = format!("secret {} has no key cosign.key", wanted.name);
                        faults.push(fault(&wanted, sentence, "put the key there that signs images"));
                    }
                    Use::Signing | Use::Parameter | Use::Token => {}
                }
            }
        }
    }
    faults
}

fn fault(wanted: &Wanted, sentence: String, remedy: &str) -> Fault {
    Fault::new(Reason::PrerequisitesMissing, wanted.path, sentence, remedy)
}

/// The key that the build names is not in the Secret.
fn keyless(wanted: &Wanted) -> Fault {
    let key = wanted.keys.first().map_or("", String::as_str);
    fault(
        wanted,
        format!("secret {} has no key {key}", wanted.name),
        "put the token there under that key, or name the key it has",
    )
}

fn missing(subject: &Subject<'_>, wanted: &Wanted) -> Fault {
    let (words, namespace) = (&subject.face.words, subject.namespace());
    let field = match wanted.what {
        Use::Git => words.git_secret,
        Use::Token => "registry token",
        Use::Registry => words.registry_secret,
        Use::Signing => "signing-secret",
        Use::Parameter => "parameter",
    };
    let sentence = format!("names {}: {field} secret not found", wanted.name);
    fault(wanted, sentence, &format!("create the Secret in namespace {namespace}; the build follows by itself"))
}

/// What the platform decides about credentials for repositories.
#[derive(Clone, Copy)]
struct GitRules {
    /// A Secret that does not list its hosts is not used.
    must_list: bool,
    /// The steps that get the Secret clone from hosts which no `known_hosts` names.
    unknown_hosts: bool,
}

/// Whether every step that gets the credentials does without `known_hosts`: then the Secret needs none (14.2).
fn takes_unknown_hosts(subject: &Subject<'_>) -> bool {
    let known = subject.builds().view.steps(subject.steps_namespace());
    let used = subject.request.steps.iter().filter(|step| step.enabled).filter_map(|step| known.get(&step.config_map));
    let steps = used.filter_map(|entry| entry.step.as_ref().ok());
    let mut given = steps.filter(|step| step.has_workspace(keys::WORKSPACE_GIT_AUTH)).peekable();
    given.peek().is_some() && given.all(|step| step.takes_unknown_hosts())
}

/// `hosts` is what the Secret lists.
fn git(
    wanted: &Wanted,
    request: &BuildRequest,
    has: impl Fn(&str) -> bool,
    (hosts, GitRules { must_list, unknown_hosts }): (Option<&str>, GitRules),
) -> Vec<Fault> {
    let mut faults = Vec::new();
    if !wanted.keys.is_empty() {
        // The build names the key that holds the token.
    } else if has("ssh-privatekey") {
        if !has("known_hosts") && !unknown_hosts {
            let sentence = format!("secret {} has ssh-privatekey and no known_hosts", wanted.name);
            faults.push(fault(wanted, sentence, "add the host's keys (ssh-keyscan) under known_hosts"));
        }
    } else if !(has("token") || (has("username") && has("password"))) {
        let sentence = format!("secret {} has no keys that can be used", wanted.name);
        let remedy = "give it ssh-privatekey and known_hosts, username and password, user and token, or token";
        faults.push(fault(wanted, sentence, remedy));
    }
    let host = host(&request.source.repository);
    if hosts.is_none() && must_list {
        let sentence = format!(
            "secret {} does not list the hosts that it may be used for, which this platform demands",
            wanted.name
        );
        let remedy = format!("let the Secret's owner annotate it with {}: {host}", keys::ANNOTATION_GIT_HOSTS);
        faults.push(fault(wanted, sentence, &remedy));
    }
    if let Some(hosts) = hosts.filter(|hosts| !hosts.split(',').any(|one| one.trim().eq_ignore_ascii_case(host))) {
        let sentence = format!(
            "secret {} may only be used for hosts {hosts} (annotation {}), and the repository is at {host}",
            wanted.name,
            keys::ANNOTATION_GIT_HOSTS
        );
        faults.push(fault(wanted, sentence, "use the credentials of that host, or let the Secret's owner add it"));
    }
    faults
}

/// In gated modes the kubelet pulls with it, which takes one type only.
fn registry(wanted: &Wanted, request: &mut BuildRequest, has: impl Fn(&str) -> bool, type_: &str) -> Option<Fault> {
    let pulls = type_ == "kubernetes.io/dockerconfigjson" || !request.gated;
    if pulls && has(DOCKER_CONFIG) {
        return None;
    }
    if !request.gated && has(CONFIG) {
        if let Some(secret) = &mut request.registry_auth {
            secret.items = vec![(CONFIG.to_owned(), CONFIG.to_owned())];
        }
        return None;
    }
    if type_ == OLD_TYPE || has(OLD_CONFIG) {
        // Nothing but its content says the hosts, and that is not read here.
        let sentence = format!(
            "secret {} has the old layout {OLD_TYPE}, which the tools that push do not read, and it is not converted",
            wanted.name
        );
        let remedy = format!(
            "name a Secret of type kubernetes.io/dockerconfigjson whose key {DOCKER_CONFIG} holds the same content under auths \
             (jq '{{auths: .}}'), or make one by kubectl create secret docker-registry"
        );
        return Some(fault(wanted, sentence, &remedy));
    }
    let sentence = format!("secret {} of type {type_:?} holds no registry credentials that can be used", wanted.name);
    let remedy = if request.gated {
        "use type kubernetes.io/dockerconfigjson: the built image is pulled with it for the tests"
    } else {
        "use type kubernetes.io/dockerconfigjson (kubectl create secret docker-registry), or a key config.json"
    };
    Some(fault(wanted, sentence, remedy))
}

/// What the validating webhook would say now: the object may be older than the rules, or have come while nobody judged it;
/// no other namespace's ConfigMaps, no step of a user's in a gated mode (docs/cases.md G1, G4).
pub(super) fn judged(subject: &Subject<'_>) -> Vec<Fault> {
    let change = Change { namespace: subject.namespace(), object: &subject.object, old: None };
    let builds = subject.builds();
    validate(&change, &builds.view, &builds.settings.pipelines).faults
}

/// That the template of a gated mode is not what the build was completed from.
pub(super) fn template(subject: &Subject<'_>) -> Option<Fault> {
    drift(&subject.object, &subject.builds().view)
}

#[cfg(test)]
mod tests {
    use super::interval;
    use std::time::Duration;

    #[test]
    fn questions_are_asked_often_at_first_and_seldom_later() {
        let s = Duration::from_secs;
        assert_eq!((interval(None, s(9), 0), interval(Some(s(1)), s(120), 100)), (s(5), s(5)));
        assert_eq!(interval(Some(s(1)), s(121), 1), s(30));
        // G8: a flood asks twenty times a second, however large it is.
        assert_eq!(interval(Some(s(1)), s(2), 10_000), s(500));
    }
}
