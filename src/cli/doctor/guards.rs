//! Are the webhook configurations there? Without them the API server asks nobody, and whatever else is in order does not matter: this is
//! said first.

use super::surroundings::PlatformFile;
use super::{Seen, Visit};
use crate::cli::render::webhooks;
use crate::cli::scope::Scope;
use crate::domain::keys;
use crate::server::guards::Kind as Guard;

pub(super) async fn check(visit: &mut Visit, scope: &Scope, file: &PlatformFile) -> anyhow::Result<()> {
    let repair = webhooks::repair(&scope.install(visit.mode, &visit.operator), file.trust().as_ref());
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
