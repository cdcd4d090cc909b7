//! Whose the objects of an Agent's name are.
//!
//! Ours is what the Agent controls, by uid. A ServiceAccount may also be one that the Go operator made for this very
//! Agent, or the dedicated one that was made for the Agent's Deployment: both are taken over in place. What an object of the same
//! name controlled that is gone is nobody's who has to do anything: the garbage collector is about to delete it.

use super::subject::Subject;
use super::wanted::Wanted;
use crate::store::{Kind, OwnerReference, ServiceAccountSeen};

/// Whose an object of the name is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::controllers::agent) enum Claim<'a> {
    /// There is none.
    Absent,
    /// The Agent's own, with its uid.
    Ours(&'a str),
    /// The Agent's own, or that of an object of its name that is gone, and it is on its way out.
    Leaving,
    /// Somebody else's.
    Foreign,
}

impl<'a> Claim<'a> {
    /// Of the object of that uid, which `owner` controls.
    fn of(subject: &Subject<'_>, (owner, deleting): (Option<&OwnerReference>, bool), uid: &'a str) -> Self {
        match owner {
            Some(owner) if owner.uid == subject.uid && deleting => Claim::Leaving,
            Some(owner) if owner.uid == subject.uid => Claim::Ours(uid),
            Some(owner) if is_of_before(owner, subject) => Claim::Leaving,
            _ => Claim::Foreign,
        }
    }
}

/// Whose the objects of the name are.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::controllers::agent) struct Claims<'a> {
    pub(in crate::controllers::agent) deployment: Claim<'a>,
    pub(in crate::controllers::agent) service: Claim<'a>,
    pub(in crate::controllers::agent) account: Claim<'a>,
    /// Of the subject's other objects, in their order.
    pub(in crate::controllers::agent) others: Vec<Claim<'a>>,
}

impl<'a> Claims<'a> {
    pub(in crate::controllers::agent) fn of(subject: &Subject<'a>) -> Self {
        let deployment = subject.deployment.map_or(Claim::Absent, |found| {
            Claim::of(subject, (found.seen.controller.as_deref(), found.seen.deleting), found.uid)
        });
        let service = subject.service.map_or(Claim::Absent, |(seen, uid)| {
            Claim::of(subject, (seen.claim.controller.as_deref(), seen.claim.deleting), uid)
        });
        let deployment_uid = match deployment {
            Claim::Ours(uid) => Some(uid),
            _ => None,
        };
        let account = subject.account.map_or(Claim::Absent, |(seen, uid)| {
            if is_own_account(seen, subject.uid, deployment_uid) { Claim::Ours(uid) } else { Claim::Foreign }
        });
        let others = subject.others.iter().map(|other| {
            other.found.map_or(Claim::Absent, |(seen, uid)| {
                Claim::of(subject, (seen.controller.as_deref(), seen.deleting), uid)
            })
        });
        Self { deployment, service, account, others: others.collect() }
    }

    /// The objects that are in the way of what is wanted, with what to do about each.
    pub(in crate::controllers::agent) fn conflicts(
        &self,
        (service, service_remedy): (bool, &'static str),
        account: bool,
    ) -> Vec<(Kind, &'static str)> {
        let all = [
            (self.deployment, true, Kind::Deployment, "delete or rename it, or give the Agent another name"),
            (self.service, service, Kind::Service, service_remedy),
            (
                self.account,
                account,
                Kind::ServiceAccount,
                "name it in spec.podTemplateSpec.spec.serviceAccountName if the Agent is to run under it, or delete it",
            ),
        ];
        let foreign = all.into_iter().filter(|(claim, wanted, ..)| *wanted && *claim == Claim::Foreign);
        foreign.map(|(_, _, kind, remedy)| (kind, remedy)).collect()
    }
}

impl Claims<'_> {
    /// Somebody else's objects of the names of those that Pods mount.
    pub(in crate::controllers::agent) fn mounted(
        &self,
        subject: &Subject<'_>,
        wanted: &Wanted,
    ) -> impl Iterator<Item = (Kind, &'static str)> {
        let all = subject.others.iter().zip(&self.others);
        let foreign = all.filter(|(other, claim)| {
            // A route that is somebody else's leads where he wants, and a policy lets in whom he wants; what is served does not depend on it.
            !matches!(other.kind, Kind::HttpRoute | Kind::NetworkPolicy)
                && **claim == Claim::Foreign
                && wanted.others.iter().any(|own| own.kind == other.kind)
        });
        foreign.map(|(other, _)| (other.kind, "delete or rename it, or give this object another name"))
    }
}

/// Whether an owner is an object of that very kind and name that there is no more, and what it controlled is left to the garbage collector: deleted
/// and made again at once, an object is there before that has come round.
fn is_of_before(owner: &OwnerReference, subject: &Subject<'_>) -> bool {
    let face = subject.face;
    face.collected
        && owner.group() == face.kind.group()
        && owner.kind == face.kind.as_str()
        && owner.name == *subject.cx.key.name
}

/// Whether a ServiceAccount was made for the Agent of that uid, or for its Deployment alone.
fn is_own_account(seen: &ServiceAccountSeen, agent: &str, deployment: Option<&str>) -> bool {
    let owned_by = |uid: &str| seen.owners.iter().any(|owner| owner.uid == uid);
    let others = seen.owners.iter().any(|owner| owner.uid != agent && Some(owner.uid.as_str()) != deployment);
    owned_by(agent) || (seen.ours && deployment.is_some_and(owned_by) && !others)
}
