//! Whose the objects of an Agent's name are.
//!
//! Ours is what the Agent controls, by uid. A ServiceAccount may also be one that the Go operator made for this very
//! Agent, or the dedicated one that was made for the Agent's Deployment: both are taken over in place.

use super::subject::Subject;
use super::wanted::Wanted;
use crate::store::{Kind, ServiceAccountSeen};

/// Whose an object of the name is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::controllers::agent) enum Claim<'a> {
    /// There is none.
    Absent,
    /// The Agent's own, with its uid.
    Ours(&'a str),
    /// The Agent's own, and it is on its way out.
    Leaving,
    /// Somebody else's.
    Foreign,
}

impl<'a> Claim<'a> {
    fn of(uid: &'a str, ours: bool, deleting: bool) -> Self {
        match () {
            () if ours && deleting => Claim::Leaving,
            () if ours => Claim::Ours(uid),
            () => Claim::Foreign,
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
            let ours = found.seen.controller.as_ref().is_some_and(|owner| owner.uid == subject.uid);
            Claim::of(found.uid, ours, found.seen.deleting)
        });
        let service = subject.service.map_or(Claim::Absent, |(seen, uid)| {
            Claim::of(uid, seen.claim.is_controlled_by(subject.uid), seen.claim.deleting)
        });
        let deployment_uid = match deployment {
            Claim::Ours(uid) => Some(uid),
            _ => None,
        };
        let account = subject.account.map_or(Claim::Absent, |(seen, uid)| {
            Claim::of(uid, is_own_account(seen, subject.uid, deployment_uid), false)
        });
        let others = subject.others.iter().map(|other| {
            other
                .found
                .map_or(Claim::Absent, |(seen, uid)| Claim::of(uid, seen.is_controlled_by(subject.uid), seen.deleting))
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

/// Whether a ServiceAccount was made for the Agent of that uid, or for its Deployment alone.
fn is_own_account(seen: &ServiceAccountSeen, agent: &str, deployment: Option<&str>) -> bool {
    let owned_by = |uid: &str| seen.owners.iter().any(|owner| owner.uid == uid);
    let others = seen.owners.iter().any(|owner| owner.uid != agent && Some(owner.uid.as_str()) != deployment);
    owned_by(agent) || (seen.ours && deployment.is_some_and(owned_by) && !others)
}
