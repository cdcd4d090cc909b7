//! `kagenti-client-registration`: makes the OAuth client and writes its credentials (5.4).

use std::borrow::Cow;

use super::{env, image};
use crate::admission::inject::context::Context;
use crate::admission::inject::plan::{Container, EnvVar, Mount, SecurityContext};
use crate::admission::verdict::Denial;
use crate::domain::keys;

/// The client id is the SPIFFE ID: wait for the JWT-SVID and take its subject.
const SPIRE_SCRIPT: &str = r#"until [ -f /opt/jwt_svid.token ]; do sleep 1; done
subject=$(python -c 'import base64, json
payload = open("/opt/jwt_svid.token").read().strip().split(".")[1]
print(json.loads(base64.urlsafe_b64decode(payload + "=" * (-len(payload) % 4)))["sub"])') || exit 1
[ -n "$subject" ] || exit 1
printf '%s\n' "$subject" > /shared/client-id.txt
"#;
/// The client id is `<namespace>/<workload>`.
const STATIC_SCRIPT: &str = r#"printf '%s\n' "$CLIENT_NAME" > /shared/client-id.txt
"#;
/// Register, then stay: a sidecar that exits would be started again. Stopping it is quick all the same.
const REGISTER_AND_STAY: &str = r#"python client_registration.py || echo 'client registration failed; see above' >&2
trap 'exit 0' TERM INT
tail -f /dev/null &
wait $!
"#;

/// The user of the registration's image.
const UID: i64 = 1000;

/// The container.
pub(in crate::admission::inject) fn container<'a>(cx: &Context<'a>) -> Result<Container<'a>, Box<Denial>> {
    let resolved = cx.effective.resolved;
    let spire = cx.effective.spire();
    let script = if spire { SPIRE_SCRIPT } else { STATIC_SCRIPT };
    let mut variables = vec![
        EnvVar::literal("SPIRE_ENABLED", if spire { "true" } else { "false" }),
        env::key(cx, "KEYCLOAK_URL", env::Missing::Fine),
        env::key(cx, "KEYCLOAK_REALM", env::Missing::Waits),
    ];
    variables.extend(env::registration(cx));
    let mut volume_mounts = Vec::with_capacity(2);
    if spire {
        volume_mounts.push(Mount::writable(keys::VOLUME_SVID, keys::PATH_SVID));
    }
    volume_mounts.push(cx.shared_mount(Mount::writable));
    Ok(Container {
        name: keys::CONTAINER_REGISTRATION,
        image: image(&resolved.images.client_registration, "clientRegistration")?,
        image_pull_policy: Cow::Borrowed(&resolved.images.pull_policy.value),
        command: vec!["/bin/sh".into(), "-c".into(), format!("{script}{REGISTER_AND_STAY}").into()],
        args: vec![],
        ports: vec![],
        env: variables,
        resources: Cow::Borrowed(&resolved.resources.client_registration.value),
        restart_policy: None,
        startup_probe: None,
        security_context: SecurityContext::unprivileged(cx.user_of_image(UID), None),
        volume_mounts,
        listens_on: None,
    })
}
