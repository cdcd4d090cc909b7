//! The login of the registry that a build has made from a token.
//!
//! Nobody watches Secrets: before a run the login is made or brought up to date, and afterwards the token is read by name every five minutes,
//! not for all builds at once.

use std::time::Duration;

use serde_json::json;

use crate::controllers::agent_build::prerequisites;
use crate::controllers::agent_build::subject::Subject;
use crate::controllers::scaffold::answers::SecretFact;
use crate::controllers::scaffold::consent::{Demand, Goes};
use crate::controllers::scaffold::login::Login;
use crate::controllers::scaffold::plan::Op;
use crate::domain::keys;
use crate::pipelines::request;
use crate::store::{Key, OwnerReference};

/// How often a token is read again.
const EVERY: Duration = Duration::from_secs(300);
/// By how much later some builds do it than others.
const SPREAD: u64 = 60;

/// The operation that makes the login, or brings it up to date; `None` where the build has none that is made.
pub(in crate::controllers::agent_build) fn wanted(subject: &Subject<'_>, wanted: &request::Login) -> Op {
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
    Op::Login(Box::new(Login {
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
    }))
}

/// When the login is to be looked at again; zero when it is due. `None` where there is none that is made.
pub(super) fn due(subject: &Subject<'_>) -> Option<Duration> {
    let wanted = subject.request.login.as_ref()?;
    let every = EVERY + Duration::from_secs(spread(subject.build.uid));
    let now = subject.cx.now;
    let tried = subject.trouble().filter(|trouble| matches!(trouble.op, Op::Login(_))).map(|trouble| trouble.at);
    let key = Key::new(subject.namespace(), &wanted.secret);
    let known = subject.cx.memory.answers.secret_fact(&key);
    let owned = |fact: &SecretFact| {
        let user = super::deploy::user_of(subject, &wanted.secret);
        user.is_none_or(|(_, _, uid)| !matches!(fact, SecretFact::Is(seen) if !seen.owners.contains(&uid)))
    };
    let made = known.filter(|(fact, _)| owned(fact)).map(|(_, at)| at);
    let last = made.max(tried);
    Some(last.map_or(Duration::ZERO, |last| every.saturating_sub(now.saturating_sub(last))))
}

/// The same number for the same build, others for others.
fn spread(uid: &str) -> u64 {
    uid.bytes().fold(7_u64, |sum, byte| sum.wrapping_mul(31).wrapping_add(u64::from(byte))) % SPREAD
}
