//! Namespaces from which something follows for what agents reach: how far trust is enforced, and whether what cuts off is there.
//!
//! In: Namespaces, NetworkPolicies of ours, what the platform says. Out: a row per namespace in which trust is not off, or in which something of
//! ours is left.

use std::io::{Result as Written, Write};

use serde::Serialize;
use serde_json::Value;

use crate::cli::cluster::Cluster;
use crate::cli::survey::{label, text};
use crate::config::trust::Trust;
use crate::domain::keys;
use crate::domain::trust::TrustLevel;
use crate::store::Kind;

/// One namespace.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
#[expect(missing_docs, reason = "every member is documented in `shape::FIELDS`, from which the reference is made")]
pub struct TrustRow {
    pub namespace: String,
    pub kind: &'static str,
    pub level: &'static str,
    pub cuts_off: bool,
    pub open: usize,
    pub cut_off: usize,
    pub attention: bool,
}

impl TrustRow {
    /// Of a Namespace, by the policies of ours in it; `None` where there is nothing to be said.
    #[must_use]
    pub fn of(namespace: &Value, policies: &[Value], trust: &Trust, own: &str) -> Option<Self> {
        let name = text(namespace, "/metadata/name");
        let level = trust.in_force(name, own, label(namespace, keys::LABEL_TRUST));
        let here: Vec<_> = policies.iter().filter(|policy| text(policy, "/metadata/namespace") == name).collect();
        if level == TrustLevel::Off && here.is_empty() {
            return None;
        }
        let is_deny = |policy: &&&Value| text(policy, "/metadata/name") == keys::DEFAULT_DENY;
        let opens = |policy: &&&Value| {
            let labels = policy.pointer("/spec/podSelector/matchLabels");
            labels.and_then(|labels| labels.get(keys::LABEL_VERIFIED)).is_some()
        };
        let cuts_off = here.iter().any(|policy| is_deny(&policy));
        let agents = here.iter().filter(|policy| !is_deny(policy));
        let open = agents.clone().filter(opens).count();
        Some(Self {
            namespace: name.to_owned(),
            kind: "Namespace",
            level: level.as_str(),
            cuts_off,
            open,
            cut_off: agents.count() - open,
            attention: level.enforces() != cuts_off,
        })
    }
}

/// The rows of a namespace, or with an empty name of all.
///
/// # Errors
/// When the cluster does not answer.
pub(super) async fn rows(
    cluster: &Cluster,
    namespace: &str,
    (trust, own): (&Trust, &str),
    notes: &mut Vec<String>,
) -> anyhow::Result<Vec<TrustRow>> {
    let selector = format!("labelSelector={}%3D{}", keys::LABEL_POLICY_MANAGED_BY, keys::MANAGED_BY_DRAWBRIDGE);
    let policies = cluster.list(&format!("{}?{selector}", Kind::NetworkPolicy.path(namespace)), notes).await?;
    let namespaces = if namespace.is_empty() {
        cluster.list(&Kind::Namespace.path(""), notes).await?
    } else {
        cluster.get(&format!("{}/{namespace}", Kind::Namespace.path(""))).await?.object().into_iter().collect()
    };
    Ok(namespaces.iter().filter_map(|one| TrustRow::of(one, &policies, trust, own)).collect())
}

/// As lines for people; nothing where there is no row.
pub(super) fn table(out: &mut dyn Write, rows: &[TrustRow]) -> Written<()> {
    if rows.is_empty() {
        return Ok(());
    }
    writeln!(out)?;
    for row in rows {
        let TrustRow { namespace, level, open, cut_off, .. } = row;
        write!(out, "trust in {namespace}: {level}")?;
        match (row.cuts_off, row.attention) {
            (true, false) => writeln!(out, "; of agents with a card {open} are open and {cut_off} are cut off")?,
            (true, true) => {
                writeln!(out, "; NetworkPolicy {} is still there: is a leader running?", keys::DEFAULT_DENY)?
            }
            (false, true) => writeln!(
                out,
                "; NetworkPolicy {} is not there, so no agent's Pod is made: drawbridge doctor tells more",
                keys::DEFAULT_DENY
            )?,
            (false, false) => writeln!(out, "; nobody is cut off")?,
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::config::schema::Platform;

    #[test]
    fn a_row_tells_how_far_and_whether_what_cuts_off_is_there() {
        let trust = Platform::parse("cards: {trust: audit}", "f").unwrap().cards().trust;
        let namespace =
            |name: &str, level: Option<&str>| json!({"metadata": {"name": name, "labels": {keys::LABEL_TRUST: level}}});
        let policy = |name: &str, labels: Value| json!({"metadata": {"name": name, "namespace": "team"}, "spec": {"podSelector": {"matchLabels": labels}}});
        let deny = policy("drawbridge-default-deny", json!({}));
        let all = [
            deny.clone(),
            policy("a-signature-policy", json!({"agent.kagenti.dev/signature-verified": "true"})),
            policy("b-signature-policy", json!({"app": "b"})),
        ];
        let row =
            |level: Option<&str>, policies: &[Value]| TrustRow::of(&namespace("team", level), policies, &trust, "own");
        let good = row(Some("enforced"), &all).unwrap();
        assert_eq!(
            (good.level, good.cuts_off, good.open, good.cut_off, good.attention),
            ("enforced", true, 1, 1, false)
        );
        assert!(row(Some("enforced"), &[]).unwrap().attention && row(Some("off"), &[deny]).unwrap().attention);
        assert_eq!(row(Some("off"), &[]), None);
        assert_eq!(row(None, &[]).unwrap().level, "audit");
        assert_eq!(TrustRow::of(&namespace("own", Some("enforced")), &[], &trust, "own"), None);
        let mut out = Vec::new();
        table(&mut out, &[good]).unwrap();
        assert!(String::from_utf8(out).unwrap().contains("1 are open and 1 are cut off"));
    }
}
