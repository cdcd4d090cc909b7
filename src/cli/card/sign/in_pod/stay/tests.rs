//! What is published already, held against what was signed here; and the program without an agent, with a clock of its own.

use std::time::Duration;

use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, IsCa, KeyPair, KeyUsagePurpose, SanType};

use super::{Current, Settings, has_started, stands, stay};
use crate::cli::card::sign::sign;
use crate::cli::io::Io;
use crate::crypto::{Profile, Signer, TrustBundle};

const HOUR: i64 = 3_600;
/// 15 January 2027, 08:00.
const NOW: i64 = 1_800_000_000;
const CARD: &str = r#"{"name": "Weather", "version": "1", "skills": [{"id": "echo"}]}"#;

fn params(uri: &str, until: i64) -> CertificateParams {
    let mut params = CertificateParams::default();
    params.subject_alt_names = vec![SanType::URI(uri.try_into().unwrap())];
    let epoch = rcgen::date_time_ymd(1970, 1, 1);
    params.not_after = epoch + Duration::from_secs(until.try_into().unwrap());
    params
}

struct Authority(CertifiedIssuer<'static, KeyPair>);

impl Authority {
    fn new() -> Self {
        let mut params = params("spiffe://example.org", NOW + 100 * HOUR);
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params.key_usages = vec![KeyUsagePurpose::KeyCertSign];
        Self(CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap())
    }

    /// Whoever runs under that account, with an SVID until then.
    fn svid(&self, account: &str, until: i64) -> Current {
        let mut leaf = params(&format!("spiffe://example.org/ns/team/sa/{account}"), until);
        leaf.key_usages = vec![KeyUsagePurpose::DigitalSignature];
        let key = KeyPair::generate().unwrap();
        let chain = leaf.signed_by(&key, &self.0).unwrap().pem();
        let signer = Signer::read(key.serialize_pem().as_bytes(), chain.as_bytes()).unwrap();
        Current { signer, authorities: TrustBundle::read(self.0.pem().as_bytes(), None).ok() }
    }
}

fn signed(card: &str, by: &Current) -> String {
    sign(card.as_bytes(), &by.signer, Profile::ALL).unwrap().text
}

#[test]
fn what_another_pod_published_stands_when_it_says_the_same_for_about_as_long() {
    let authority = Authority::new();
    let own = authority.svid("weather", NOW + HOUR);
    let here = signed(CARD, &own);
    let of = |account, until| signed(CARD, &authority.svid(account, until));
    let longer = authority.svid("weather", NOW + 2 * HOUR);
    for (what, there, expected) in [
        ("the same", here.clone(), true),
        ("another Pod, two minutes before", of("weather", NOW + HOUR - 120), true),
        ("a Pod whose certificate ends later", signed(CARD, &longer), true),
        ("the last third is not enough", of("weather", NOW + HOUR - HOUR / 3), false),
        ("the certificate before", of("weather", NOW + HOUR / 2), false),
        ("somebody else", of("other", NOW + HOUR), false),
        ("another authority", signed(CARD, &Authority::new().svid("weather", NOW + HOUR)), false),
        ("another card", signed(&CARD.replace("echo", "talk"), &longer), false),
        ("a card that was changed", here.replace("echo", "talk"), false),
        ("a member that no signature covers", here.replace("\"version\"", "\"x\": 1, \"version\""), false),
        ("no signature", CARD.to_owned(), false),
        ("no card", "{".to_owned(), false),
        ("nothing", String::new(), false),
    ] {
        assert_eq!(stands(&there, &here, &own, NOW), expected, "{what}");
    }
    let unsure = Current { authorities: None, ..own };
    assert!(!stands(&here, &here, &unsure, NOW), "who knows no authority believes nothing");
}

fn settings(folder: &std::path::Path) -> Settings {
    Settings {
        socket: folder.join("agent.sock"),
        unsigned: folder.join("agent.json"),
        signed: folder.join("out/agent-card.json"),
        timeout: Duration::from_millis(700),
        config_map: None,
    }
}

/// How it ended within that time, and what it logged.
async fn ran(settings: &Settings, within: Duration) -> (Option<anyhow::Result<()>>, String) {
    let (mut stdin, mut out, mut err) = (&b""[..], Vec::new(), Vec::new());
    let mut io = Io { stdin: &mut stdin, out: &mut out, err: &mut err, colour: false };
    let ended = tokio::time::timeout(within, stay(settings, true, &mut io)).await.ok();
    (ended, String::from_utf8(err).unwrap())
}

#[tokio::test]
async fn without_an_svid_the_first_process_gives_up_and_says_why_and_one_beside_a_running_agent_does_not() {
    let folder = tempfile::tempdir().unwrap();
    let settings = settings(folder.path());
    std::fs::write(&settings.unsigned, CARD).unwrap();
    let (ended, log) = ran(&settings, Duration::from_secs(20)).await;
    let why = format!("{:#}", ended.unwrap().unwrap_err());
    assert!(why.contains("agent.sock") && why.contains("SPIFFE agent"), "{why}");
    assert_eq!(log.matches("there is no SVID").count(), 1, "told once: {log}");
    assert!(!has_started(&settings));

    std::fs::create_dir(folder.path().join("out")).unwrap();
    std::fs::write(folder.path().join("out/.started"), "").unwrap();
    let (ended, _) = ran(&settings, Duration::from_millis(1_500)).await;
    assert!(ended.is_none(), "{ended:?}");
}

#[tokio::test]
async fn without_a_card_the_agent_is_let_go_at_once() {
    let folder = tempfile::tempdir().unwrap();
    let settings = settings(folder.path());
    let (ended, log) = ran(&settings, Duration::from_millis(1_500)).await;
    assert!(ended.is_none() && has_started(&settings), "{ended:?}: {log}");
    assert_eq!(log.matches("there is no card to sign").count(), 1, "{log}");
}
