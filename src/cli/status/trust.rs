//! Namespaces from which something follows for what agents reach: how far trust is enforced, whether what cuts off is there, who is
//! in quarantine, and what NetworkPolicies of others open all the same.
//!
//! In: Namespaces, NetworkPolicies, agents' Pods, what the platform says. Out: a row per namespace in which trust is not off, or in which something of
//! ours is left.

use std::io::{Result as Written, Write};

use serde::Serialize;
use serde_json::Value;

use crate::cli::cluster::Cluster;
use crate::cli::io::shown;
use crate::cli::policy::overridden;
use crate::cli::policy::population::cluster_policies;
use crate::cli::quarantine;
use crate::cli::survey::{label, text};
use crate::config::trust::Trust;
use crate::domain::keys;
use crate::domain::reason::Reason;
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
    pub quarantined: Vec<String>,
    pub opened_by_others: Vec<String>,
    pub attention: bool,
}

impl TrustRow {
    /// Of a Namespace, by the policies of ours in it; `None` where there is nothing to be said.
    #[must_use]
    pub fn of(namespace: &Value, policies: &[Value], trust: &Trust, own: &str) -> Option<Self> {
        let name = text(namespace, "/metadata/name");
        let level = trust.in_force(name, own, label(namespace, keys::LABEL_TRUST));
        let quarantined = if quarantine::holds_any(namespace, own) { quarantine::held(namespace) } else { Vec::new() };
        let here: Vec<_> = policies.iter().filter(|policy| text(policy, "/metadata/namespace") == name).collect();
        if level == TrustLevel::Off && here.is_empty() && quarantined.is_empty() {
            return None;
        }
        let is_deny = |policy: &&&Value| text(policy, "/metadata/name") == keys::DEFAULT_DENY;
        let opens = |policy: &&&Value| {
            let labels = policy.pointer("/spec/podSelector/matchLabels");
            labels.and_then(|labels| labels.get(keys::LABEL_VERIFIED)).is_some()
        };
        let cuts_off = here.iter().any(|policy| is_deny(&policy));
        let is_held = |policy: &&Value| text(policy, "/metadata/name") == keys::QUARANTINE_POLICY;
        let holds = here.iter().any(&is_held);
        let agents = here.iter().filter(|policy| !is_deny(policy) && !is_held(policy));
        let open = agents.clone().filter(opens).count();
        Some(Self {
            namespace: name.to_owned(),
            kind: "Namespace",
            level: level.as_str(),
            cuts_off,
            open,
            cut_off: agents.count() - open,
            attention: level.enforces() != cuts_off || holds == quarantined.is_empty(),
            quarantined,
            opened_by_others: Vec::new(),
        })
    }
}

/// The rows of a namespace, or with an empty name of all; `namespaces` are those that the question is about.
///
/// # Errors
/// When the cluster does not answer.
pub(super) async fn rows(
    cluster: &Cluster,
    (namespace, namespaces): (&str, &[Value]),
    (trust, own): (&Trust, &str),
    notes: &mut Vec<String>,
) -> anyhow::Result<Vec<TrustRow>> {
    let before = notes.len();
    let mut policies = cluster.list(&Kind::NetworkPolicy.path(namespace), notes).await?;
    // Where they may not be seen, nobody knows who is cut off; who is in quarantine stands on the Namespace.
    if notes.len() > before {
        let held = namespaces.iter().filter(|one| quarantine::holds_any(one, own));
        notes.extend(held.map(|one| {
            format!("namespace {}: in quarantine: {}", text(one, "/metadata/name"), quarantine::held(one).join(", "))
        }));
        return Ok(Vec::new());
    }
    let is_ours = |policy: &&Value| label(policy, keys::LABEL_POLICY_MANAGED_BY) == Some(keys::MANAGED_BY_DRAWBRIDGE);
    let ours: Vec<Value> = policies.iter().filter(is_ours).cloned().collect();
    let pods = if ours.is_empty() || ours.len() == policies.len() {
        Vec::new()
    } else {
        cluster.list(&format!("{}?labelSelector={}", Kind::Pod.path(namespace), keys::LABEL_TYPE), notes).await?
    };
    if !pods.is_empty() {
        policies.extend(cluster_policies(cluster, notes).await?.into_iter().flatten());
    }
    let row = |one: &Value| {
        let row = TrustRow::of(one, &ours, trust, own)?;
        let opened_by_others = overridden::words(one, &pods, &policies);
        Some(TrustRow { attention: row.attention || !opened_by_others.is_empty(), opened_by_others, ..row })
    };
    Ok(namespaces.iter().filter_map(row).collect())
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
            (true, true) if *level != TrustLevel::Off.as_str() && *level != TrustLevel::Audit.as_str() => {
                writeln!(out, "; of agents with a card {open} are open and {cut_off} are cut off; see below")?;
            }
            (true, true) => {
                writeln!(out, "; NetworkPolicy {} is still there: is a leader running?", keys::DEFAULT_DENY)?
            }
            (false, true) if !level.starts_with("enforced") => writeln!(out, "; nobody is cut off by it")?,
            (false, true) => writeln!(
                out,
                "; NetworkPolicy {} does not exist, so no agent's Pod is made: drawbridge doctor shows more",
                keys::DEFAULT_DENY
            )?,
            (false, false) => writeln!(out, "; nobody is cut off by it")?,
        }
        for who in &row.quarantined {
            writeln!(out, "  in quarantine: {}", shown(who))?;
        }
        for opened in &row.opened_by_others {
            writeln!(out, "  {}: {}", Reason::PolicyOverridden.code(), shown(opened))?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::cli::Exit;
    use crate::cli::cluster::fake;
    use crate::config::schema::Platform;

    /// It was said that NetworkPolicy drawbridge-default-deny does not exist, so that no agent's Pod is made.
    #[tokio::test]
    async fn of_policies_that_may_not_be_seen_nothing_is_said() {
        let trust = Platform::parse("cards: {trust: audit}", "f").unwrap().cards().trust;
        let mut namespace = json!({"metadata": {"name": "team", "labels": {keys::LABEL_TRUST: "enforced"}}});
        namespace["metadata"]["annotations"] = json!({"agent.kagenti.dev/quarantine": "a"});
        let cluster = fake::cluster(|_| fake::refused()).await;
        let mut notes = Vec::new();
        let of = ("team", std::slice::from_ref(&namespace));
        let found = rows(&cluster, of, (&trust, "own"), &mut notes).await.unwrap();
        assert!(found.is_empty(), "{found:?}");
        assert!(notes[0].contains("networkpolicies could not be read"), "{notes:?}");
        assert_eq!(notes[1..], ["namespace team: in quarantine: agent/a".to_owned()]);
        assert_eq!(cluster.seen_all_or_partial(Exit::Ok), Exit::Partial);
    }

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
        let mut held = namespace("team", Some("off"));
        held["metadata"]["annotations"] = json!({"agent.kagenti.dev/quarantine": "a", "agent.kagenti.dev/quarantine-record": "{\"a\":{\"reason\":\"leak\"}}"});
        let row = |policies: &[Value]| TrustRow::of(&held, policies, &trust, "own").unwrap();
        assert_eq!((row(&[]).quarantined, row(&[]).attention), (vec!["agent/a (leak)".to_owned()], true));
        let quarantine = policy("drawbridge-quarantine", json!({}));
        assert_eq!((row(std::slice::from_ref(&quarantine)).cut_off, row(&[quarantine]).attention), (0, false));
        let mut out = Vec::new();
        table(&mut out, &[good]).unwrap();
        assert!(String::from_utf8(out).unwrap().contains("1 are open and 1 are cut off"));
    }
}
