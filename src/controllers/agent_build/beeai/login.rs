//! The login of the registry that a build has made from a token.
//!
//! Nobody watches Secrets: before a run the login is made or brought up to date, and afterwards the token is read by name every five minutes,
//! not for all builds at once. One that cannot be made is said on the build, and tried again as seldom, whatever else fails beside it.

use std::time::Duration;

use serde_json::{Map, Value, json};

use crate::controllers::agent_build::prerequisites;
use crate::controllers::agent_build::start;
use crate::controllers::agent_build::status;
use crate::controllers::agent_build::subject::Subject;
use crate::controllers::conditions::{self, Condition};
use crate::controllers::scaffold::answers::SecretFact;
use crate::controllers::scaffold::consent::{Demand, Goes};
use crate::controllers::scaffold::login::Login;
use crate::controllers::scaffold::plan::Op;
use crate::domain::keys;
use crate::pipelines::request;
use crate::store::{Key, OwnerReference};

/// That the Secret with the login is what its token makes of it; said only where it is not.
const CURRENT: &str = "LoginCurrent";
/// How often a token is read again.
const EVERY: Duration = Duration::from_secs(300);
/// By how much later some builds do it than others.
const SPREAD: u64 = 60;

/// The operation that makes the login, or brings it up to date.
pub(in crate::controllers::agent_build) fn wanted(subject: &Subject<'_>, wanted: &request::Login) -> Op {
    Op::Login(Box::new(login(subject, wanted)))
}

fn login(subject: &Subject<'_>, wanted: &request::Login) -> Login {
    let build = &subject.build;
    let controller = OwnerReference {
        api_version: subject.face.kind.api_version(),
        kind: subject.face.kind.as_str().to_owned(),
        name: build.name.to_string(),
        uid: build.uid.to_owned(),
        controller: Some(true),
        block_owner_deletion: None,
    };
    let agent = super::deploy::user_of(subject, &wanted.secret).map(|(kind, name, uid)| OwnerReference {
        api_version: kind.api_version(),
        kind: kind.as_str().to_owned(),
        name,
        uid,
        controller: None,
        block_owner_deletion: None,
    });
    let goes = Goes::Registries(vec![wanted.host.clone()]);
    let demand = prerequisites::is_by_consent(subject, &wanted.token).then(|| Demand {
        secret: wanted.token.clone(),
        by: keys::USABLE_BY[0],
        goes: goes.clone(),
    });
    Login {
        key: Key::new(subject.namespace(), &wanted.secret),
        labels: json!({keys::LABEL_APP_MANAGED_BY: keys::MANAGED_BY_DRAWBRIDGE, keys::LABEL_PART_OF: keys::PART_OF_OPERATOR}),
        owners: std::iter::once(controller).chain(agent).collect(),
        source: wanted.token.clone(),
        token: wanted.key.clone(),
        optional: wanted.optional,
        user: wanted.user.clone(),
        account: wanted.account.clone(),
        goes,
        demand,
    }
}

/// How the login of a build that is judged stands.
pub(super) struct Standing {
    /// What is wanted of it.
    login: Login,
    /// When it is to be looked at again; zero when it is due.
    pub(super) due: Duration,
    /// It was made, or found as it should be, when it was looked at last, and that was not long ago.
    is_current: bool,
    /// The one that could not be made last, and when that was tried.
    pub(super) tried: Option<(Box<Login>, Duration)>,
}

impl Standing {
    /// How the login stands; `None` where the build has none that is made.
    pub(super) fn of(subject: &Subject<'_>) -> Option<Self> {
        let login = login(subject, subject.request.login.as_ref()?);
        let (now, every) = (subject.cx.now, EVERY + Duration::from_secs(spread(subject.build.uid)));
        let has_owners = |fact: &SecretFact| match fact {
            SecretFact::Is(seen) => login.owners.iter().all(|owner| seen.owners.contains(&owner.uid)),
            SecretFact::Absent | SecretFact::Forbidden => true,
        };
        let known = subject.cx.memory.answers.secret_fact(&login.key);
        let made = known.filter(|(fact, _)| has_owners(fact)).map(|(_, at)| at);
        // One that is wanted otherwise meanwhile was not tried yet.
        let tried = tried(subject).filter(|(known, at)| **known == login && made.is_none_or(|made| made <= *at));
        let last = made.max(tried.as_ref().map(|(_, at)| *at));
        let due = last.map_or(Duration::ZERO, |last| every.saturating_sub(now.saturating_sub(last)));
        let is_current = tried.is_none() && made.is_some_and(|made| now.saturating_sub(made) < every);
        Some(Self { login, due, is_current, tried })
    }

    /// The operation that makes it, or brings it up to date.
    pub(super) fn wanted(&self) -> Op {
        Op::Login(Box::new(self.login.clone()))
    }
}

/// The login that could not be made last, and when that was tried. Of what failed only the last is remembered, so each plan notes it for the next.
fn tried(subject: &Subject<'_>) -> Option<(Box<Login>, Duration)> {
    let of_trouble = subject.trouble().and_then(|trouble| match &trouble.op {
        Op::Login(login) => Some((login.clone(), trouble.at)),
        _ => None,
    });
    of_trouble.or_else(|| subject.cx.note().and_then(|note| note.login.clone()))
}

/// What is stored and told of a login that was refused, until it is as it should be again or none is wanted any more.
pub(super) fn said(subject: &Subject<'_>, standing: Option<&Standing>) -> Vec<Op> {
    let trouble = subject.trouble().filter(|trouble| matches!(trouble.op, Op::Login(_)));
    let refused = trouble.and_then(|trouble| Some((trouble.refused?, trouble)));
    let wanted = match (standing, refused) {
        (Some(standing), Some((reason, trouble))) => {
            let (secret, host) = (&standing.login.key.name, &standing.login.account);
            let words = start::refusal(reason, &trouble.message);
            let message =
                format!("Secret {secret} with the login of {host} is not made or brought up to date: {words}");
            Some(Condition::new(CURRENT, false, reason, message))
        }
        // What was refused may have been long ago, and something else may have failed since: what is stored stands until a look says otherwise.
        (Some(standing), None) if !standing.is_current => return Vec::new(),
        _ => None,
    };
    let list = subject.build.seen.status.get("conditions").unwrap_or(&Value::Null);
    if wanted.is_none() && conditions::stored(list, CURRENT).is_none() {
        return Vec::new();
    }
    let news = wanted.iter().filter(|one| conditions::is_news(list, one));
    let told: Vec<_> = news.map(|one| status::report(subject, one.reason, one.message.clone())).collect();
    let stored = status::amend(subject, &Map::new(), (wanted.as_slice(), &[CURRENT]));
    told.into_iter().chain(stored).collect()
}

/// The same number for the same build, others for others.
fn spread(uid: &str) -> u64 {
    uid.bytes().fold(7_u64, |sum, byte| sum.wrapping_mul(31).wrapping_add(u64::from(byte))) % SPREAD
}
