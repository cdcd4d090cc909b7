//! Tests of the crate. Expected values come from the RFCs, from other implementations (`vectors/`, each with its generator), or from the numbered
//! cases of the behavioural specification; never from the code under test.

mod binding;
mod bundles;
mod canonical;
mod chains;
mod constraints;
mod forge;
mod known;
mod openssl;
mod properties;
mod rotation;
mod rules;

use crate::{
    BundleFault, Card, EntryReason, NotVerified, Policy, Trust, TrustBundle, TrustDomain, Verdict, verify_bytes,
};

/// The known answer test of the specification: a card, signed with the key of RFC 7515 A.3.
pub(super) struct Kat(serde_json::Value);

impl Kat {
    pub(super) fn read() -> Self {
        Self(json(include_str!("vectors/kat.json")))
    }

    pub(super) fn text(&self, name: &str) -> &str {
        self.0[name].as_str().unwrap()
    }

    /// The card with its signature.
    pub(super) fn signed(&self) -> serde_json::Value {
        self.with(vec![self.entry()])
    }

    pub(super) fn entry(&self) -> serde_json::Value {
        serde_json::json!({"protected": self.text("protected"), "signature": self.text("signature")})
    }

    pub(super) fn with(&self, entries: Vec<serde_json::Value>) -> serde_json::Value {
        let mut card = json(self.text("card"));
        card["signatures"] = entries.into();
        card
    }

    pub(super) fn bundle(&self) -> TrustBundle {
        let pem = format!("-----BEGIN CERTIFICATE-----\n{}\n-----END CERTIFICATE-----\n", self.text("ca"));
        TrustBundle::read(pem.as_bytes(), None).unwrap()
    }
}

/// 15 January 2027.
pub(super) const NOW: i64 = 1_800_000_000;

pub(super) fn json(text: &str) -> serde_json::Value {
    serde_json::from_str(text).unwrap()
}

pub(super) fn judge(card: &serde_json::Value, bundle: &TrustBundle) -> Verdict {
    verify_bytes(card.to_string().as_bytes(), loaded(bundle), &Policy::default(), NOW)
}

pub(super) fn loaded(bundle: &TrustBundle) -> Trust<'_> {
    Trust::Loaded { bundle, read_at: NOW }
}

pub(super) fn domain(name: &str) -> TrustDomain {
    TrustDomain::read(name).unwrap()
}

/// What a verdict says, in words that fixtures use.
pub(super) fn words(verdict: &Verdict) -> Vec<String> {
    match verdict {
        Verdict::Unknown => vec!["Unknown".into()],
        Verdict::Verified(verified) => match verified.best(None).unwrap().freshness {
            crate::Freshness::Current => vec!["Verified".into()],
            crate::Freshness::Expired { .. } => vec!["VerifiedExpired".into()],
        },
        Verdict::NotVerified(NotVerified::Entries { entries, .. }) => {
            entries.iter().map(|fault| format!("{:?}", fault.reason)).collect()
        }
        Verdict::NotVerified(NotVerified::Card(fault)) => vec![variant(fault)],
        Verdict::NotVerified(other) => vec![variant(other)],
    }
}

/// The name of an enum's variant.
pub(super) fn variant(value: &impl std::fmt::Debug) -> String {
    let text = format!("{value:?}");
    text.chars().take_while(|char| char.is_alphanumeric()).collect()
}

pub(super) fn reasons(verdict: &Verdict) -> Vec<EntryReason> {
    match verdict {
        Verdict::NotVerified(NotVerified::Entries { entries, .. }) => {
            entries.iter().map(|fault| fault.reason).collect()
        }
        _ => Vec::new(),
    }
}

pub(super) fn card(value: &serde_json::Value) -> Card {
    Card::read(value.to_string().as_bytes()).unwrap()
}

pub(super) fn bundle(text: &str, configured: Option<&str>) -> Result<TrustBundle, BundleFault> {
    TrustBundle::read(text.as_bytes(), configured.map(domain).as_ref())
}
