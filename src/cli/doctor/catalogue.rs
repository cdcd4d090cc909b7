//! Can the catalogue of verified agents be asked, where the platform file says that there is one?
//!
//! In: the platform file, the webhook's Service, its account's right to ask about tokens, the labels of namespaces. Out: one check, or one for each thing that is
//! missing.

use serde_json::{Value, json};

use super::{Seen, Visit, surroundings};
use crate::cli::cluster::Answer;
use crate::cli::render::deploy::PORT_NAME_CATALOGUE;
use crate::cli::render::rbac::Role;
use crate::cli::survey::label;
use crate::domain::keys;
use crate::store::Kind;

const NAME: &str = "catalogue of verified agents";
const INSTALL: &str = "apply what `drawbridge render --with-catalogue` prints for this installation (docs/tasks/upgrade.md says how to take \
                       its other flags and settings along)";

pub(super) async fn check(visit: &mut Visit) -> anyhow::Result<()> {
    let Some(platform) = surroundings::platform(visit, NAME).await? else { return Ok(()) };
    if !platform.cards().catalogue {
        visit.ok(NAME, "none is asked for (cards.catalogue.enabled)");
        return Ok(());
    }
    if !platform.cards().bundle.any() && platform.cards().proof.is_none() {
        visit.finding(
            NAME,
            "the catalogue stays empty: no trust bundle is configured, so no agent card is verified",
            "set cards.trustBundle of the platform file",
        );
    }
    port(visit).await?;
    right(visit).await?;
    labels(visit).await
}

async fn port(visit: &mut Visit) -> anyhow::Result<()> {
    let path = format!("/api/v1/namespaces/{}/services/{}", visit.operator, keys::SERVICE_WEBHOOK);
    let service = match visit.read(NAME, &path).await? {
        Seen::Hidden => return Ok(()),
        Seen::Absent => Value::Null,
        Seen::Is(service) => service,
    };
    let ports = service.pointer("/spec/ports").and_then(Value::as_array);
    if ports.into_iter().flatten().any(|port| port["name"] == PORT_NAME_CATALOGUE) {
        let host = format!("{}.{}.svc:{}", keys::SERVICE_WEBHOOK, visit.operator, keys::PORT_CATALOGUE);
        visit.ok(NAME, format!("answered at https://{host}{}", keys::PATH_CATALOGUE));
    } else {
        let seen = format!("Service {} has no port {PORT_NAME_CATALOGUE}, so nobody reaches it", keys::SERVICE_WEBHOOK);
        visit.finding(NAME, seen, INSTALL);
    }
    Ok(())
}

async fn right(visit: &mut Visit) -> anyhow::Result<()> {
    let name = "callers of the catalogue";
    let review = json!({
        "apiVersion": "authorization.k8s.io/v1", "kind": "SubjectAccessReview",
        "spec": {
            "user": format!("system:serviceaccount:{}:{}", visit.operator, Role::Webhook.name()),
            "groups": ["system:serviceaccounts", format!("system:serviceaccounts:{}", visit.operator), "system:authenticated"],
            "resourceAttributes": {"group": "authentication.k8s.io", "resource": "tokenreviews", "verb": "create"},
        },
    });
    match visit.cluster.post("/apis/authorization.k8s.io/v1/subjectaccessreviews", &review).await? {
        Answer::Object(answer) if answer.pointer("/status/allowed") == Some(&Value::Bool(true)) => {
            visit.ok(name, "the API server tells Drawbridge whose their tokens are");
        }
        Answer::Object(_) => visit.finding(
            name,
            format!(
                "ServiceAccount {} may not ask whose a token is (create tokenreviews), so nobody is answered",
                Role::Webhook.name()
            ),
            INSTALL,
        ),
        Answer::Absent | Answer::Refused(..) => visit.unknown(
            name,
            "you may not ask which rights other accounts have",
            "run doctor as somebody who may create subjectaccessreviews",
        ),
    }
    Ok(())
}

/// Values of the label that mean nothing.
async fn labels(visit: &mut Visit) -> anyhow::Result<()> {
    let mut notes = Vec::new();
    let namespaces = visit.cluster.list(&Kind::Namespace.path(""), &mut notes).await?;
    let odd = |namespace: &&Value| label(namespace, keys::LABEL_CATALOGUE).is_some_and(|value| value != keys::SHARED);
    let odd: Vec<_> = namespaces.iter().filter(odd).map(|one| super::text(one, "/metadata/name")).collect();
    if !odd.is_empty() {
        visit.finding(
            "shared namespaces",
            format!(
                "label {} has a value that means nothing on {}, so they are not shared",
                keys::LABEL_CATALOGUE,
                odd.join(", ")
            ),
            format!(
                "kubectl label namespace NAME {}={} --overwrite, or take the label off",
                keys::LABEL_CATALOGUE,
                keys::SHARED
            ),
        );
    }
    Ok(())
}
