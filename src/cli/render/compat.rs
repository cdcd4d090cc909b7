//! What serves the group of the original BeeAI operator, `beeai.beeai.dev`: its definitions, and the rights and policies for them.
//!
//! Out: objects to be applied beside an installation. There is no option: that the definitions are there is what starts the controllers,
//! and without them nobody has a right on the group.

use serde_json::Value;

use super::kinds::Kinds;
use super::rbac::Role;
use super::{Install, crds, policies, rbac};
use crate::store::KindOrigin;

/// What stands behind the name of an account in those of its roles.
const NAME: &str = "beeai-compat";

/// The objects, in the order in which they can be applied.
#[must_use]
pub fn objects(install: &Install) -> Vec<Value> {
    let mut objects = crds::compat();
    let rights = rbac::compat_rights(install.mode());
    for role in Role::ALL {
        objects.extend(rbac::bound(install, role, &format!("{}-{NAME}", role.name()), &rights));
    }
    objects.extend(rbac::people(KindOrigin::Compat, Kinds::All));
    objects.extend(policies::compat(install));
    objects
}
