//! Whether a Secret lets itself be used: by its own consent, and for the hosts that it lists; pure.
//!
//! In: what is known of a Secret ([`SecretFact`]), and what is to be done with it ([`Demand`]). Out: why it may not, in words with the
//! remedy. Promises: without the annotation there is no consent; a list of hosts binds whoever uses the Secret, also by a right of his own,
//! and one that is for repositories only is for no registry.

use super::answers::{SecretFact, SecretSeen};
use crate::api::secrets::listed_in;
use crate::domain::keys;

/// Where a Secret's content is sent.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum Goes {
    /// Where the one who uses it likes, or nowhere.
    Anywhere,
    /// To the host of a repository.
    Repository(String),
    /// To these registries.
    Registries(Vec<String>),
}

/// One Secret that is about to be used by its own consent.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Demand {
    /// Its name.
    pub secret: String,
    /// One of [`keys::USABLE_BY`].
    pub by: &'static str,
    /// Where it is sent.
    pub goes: Goes,
}

/// Why the Secret may not be used so; `None` when it may.
#[must_use]
pub fn refusal(fact: &SecretFact, demand: &Demand) -> Option<String> {
    let Demand { secret, by, goes } = demand;
    let seen = match fact {
        SecretFact::Absent => {
            return Some(format!(
                "Secret {secret} does not exist. What to do: create it, with the annotation {}",
                keys::ANNOTATION_USABLE_BY
            ));
        }
        SecretFact::Forbidden => {
            return Some(format!(
                "Secret {secret} may not be read by Drawbridge. What to do: let it get Secrets in this namespace; drawbridge doctor \
                    shows which right is missing"
            ));
        }
        SecretFact::Is(seen) => seen,
    };
    let consents = seen.usable_by.as_deref().is_some_and(|text| listed_in(text).any(|one| one == *by));
    if !consents {
        return Some(format!(
            "Secret {secret} is used by its own consent here, and does not give it to {by}. What to do: let its owner annotate it with {}: {by}, \
             or take the name off annotation {}, which takes the right to get the Secret",
            keys::ANNOTATION_USABLE_BY,
            keys::ANNOTATION_SECRETS_BY_CONSENT
        ));
    }
    unbound(secret, seen, goes).or_else(|| bound(secret, seen, goes))
}

/// Consent to be sent somewhere says where to.
fn unbound(secret: &str, seen: &SecretSeen, goes: &Goes) -> Option<String> {
    let (key, hosts, listed) = match goes {
        Goes::Anywhere => return None,
        Goes::Repository(host) => (keys::ANNOTATION_GIT_HOSTS, host.clone(), &seen.hosts),
        Goes::Registries(hosts) => (keys::ANNOTATION_REGISTRY_HOSTS, hosts.join(","), &seen.registries),
    };
    listed.is_none().then(|| {
        format!(
            "Secret {secret} is used by its own consent here, and does not list the hosts that it may be sent to. What to do: let its owner \
             annotate it with {key}: {hosts}"
        )
    })
}

/// Why the hosts that a Secret lists keep it from being sent there.
#[must_use]
pub fn bound(secret: &str, seen: &SecretSeen, goes: &Goes) -> Option<String> {
    let (key, hosts, listed, other) = match goes {
        Goes::Anywhere => return None,
        Goes::Repository(host) => (keys::ANNOTATION_GIT_HOSTS, vec![host], &seen.hosts, &seen.registries),
        Goes::Registries(hosts) => {
            (keys::ANNOTATION_REGISTRY_HOSTS, hosts.iter().collect(), &seen.registries, &seen.hosts)
        }
    };
    // A list for the other use is a list without any host for this one.
    let listed = listed.as_deref().or(other.as_ref().map(|_| ""))?;
    let is_listed = |host: &str| {
        let name = host.split(':').next().unwrap_or_default();
        listed_in(listed).any(|one| one.eq_ignore_ascii_case(host) || one.eq_ignore_ascii_case(name))
    };
    let missing = hosts.into_iter().find(|host| !is_listed(host))?;
    Some(format!(
        "Secret {secret} may only be sent to the hosts that it lists (annotation {key}: {listed:?}), and this would send it to {missing}. What to \
         do: use the credentials of that host, or let the Secret's owner add it"
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seen(usable_by: Option<&str>, hosts: Option<&str>, registries: Option<&str>) -> SecretSeen {
        let text = |text: Option<&str>| text.map(str::to_owned);
        SecretSeen {
            usable_by: text(usable_by),
            hosts: text(hosts),
            registries: text(registries),
            ..SecretSeen::default()
        }
    }

    #[test]
    fn mend_06_consent_is_the_secrets_own_and_names_who_and_where_to() {
        let (git, registry) = (Goes::Repository("github.com".into()), Goes::Registries(vec!["reg.io:5000".into()]));
        for (usable_by, hosts, registries, by, goes, refused) in [
            (Some("agents"), None, None, "agents", &Goes::Anywhere, None),
            (Some("builds, agents"), None, None, "agents", &Goes::Anywhere, None),
            (Some("builds"), None, None, "agents", &Goes::Anywhere, Some("does not give it to agents")),
            (Some("agentsx"), None, None, "agents", &Goes::Anywhere, Some("does not give it to agents")),
            (None, None, None, "builds", &Goes::Anywhere, Some("does not give it to builds")),
            (Some("builds"), Some("github.com"), None, "builds", &git, None),
            (Some("builds"), None, None, "builds", &git, Some("git-hosts: github.com")),
            (Some("builds"), Some("git.acme.example"), None, "builds", &git, Some("send it to github.com")),
            (Some("builds"), None, Some("reg.io"), "builds", &registry, None),
            (Some("builds"), None, Some("REG.io:5000"), "builds", &registry, None),
            (Some("builds"), Some("github.com"), None, "builds", &registry, Some("registry-hosts: reg.io:5000")),
            (Some("builds"), None, Some("ghcr.io"), "builds", &registry, Some("send it to reg.io:5000")),
        ] {
            let demand = Demand { secret: "s".into(), by, goes: goes.clone() };
            let told = refusal(&SecretFact::Is(seen(usable_by, hosts, registries)), &demand);
            match refused {
                None => assert_eq!(told, None),
                Some(text) => assert!(told.as_ref().is_some_and(|told| told.contains(text)), "{text}: {told:?}"),
            }
        }
        let demand = Demand { secret: "s".into(), by: "agents", goes: Goes::Anywhere };
        assert!(refusal(&SecretFact::Absent, &demand).is_some() && refusal(&SecretFact::Forbidden, &demand).is_some());
    }

    #[test]
    fn mend_06_hosts_bind_whoever_uses_the_secret() {
        let (git, registry) = (Goes::Repository("github.com".into()), Goes::Registries(vec!["reg.io".into()]));
        assert_eq!(bound("s", &seen(None, None, None), &git), None);
        assert_eq!(bound("s", &seen(None, Some("github.com"), None), &git), None);
        assert!(bound("s", &seen(None, Some("a.example"), None), &git).is_some());
        assert!(bound("s", &seen(None, None, Some("ghcr.io")), &git).is_some(), "for registries only");
        assert!(bound("s", &seen(None, Some("github.com"), None), &registry).is_some(), "for repositories only");
        assert_eq!(bound("s", &seen(None, Some("github.com"), Some("reg.io")), &registry), None);
        assert_eq!(bound("s", &seen(None, Some("github.com"), None), &Goes::Anywhere), None);
    }
}
