//! Are the webhook configurations there? Without them the API server asks nobody, and whatever else is in order does not matter: this is
//! said first.

use super::{Seen, Visit};
use crate::cli::render::webhooks;
use crate::domain::keys;
use crate::server::guards::Kind as Guard;

pub(super) async fn check(visit: &mut Visit) -> anyhow::Result<()> {
    let repair = webhooks::repair(visit.mode, !visit.watched.is_empty());
    for kind in Guard::WEBHOOKS {
        let name = format!("{} {}", kind.as_str(), keys::WEBHOOK_CONFIGURATION);
        let path = format!("/apis/admissionregistration.k8s.io/v1/{}/{}", kind.plural(), keys::WEBHOOK_CONFIGURATION);
        match visit.read(&name, &path).await? {
            Seen::Absent => visit.finding(&name, format!("does not exist, so that {}", kind.effect()), &*repair),
            Seen::Is(_) => visit.ok(&name, "exists"),
            Seen::Hidden => {}
        }
    }
    Ok(())
}
