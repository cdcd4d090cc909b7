//! Agent cards as the published SDK serves them, signed by what the real SPIRE gives: what `drawbridge card verify` says of them.

use std::net::SocketAddr;
use std::process::{Command, Output};

use webhook_tests::a2a::{Agent, Card, served};
use webhook_tests::household;
use webhook_tests::network::Network;
use webhook_tests::patience::timeout;
use webhook_tests::programs;
use webhook_tests::spire::{BundleForm, Spire, SpireOptions};

/// The user that the weather agent runs as.
const WEATHER: u32 = 20_001;
/// The user that another agent runs as.
const OTHER: u32 = 20_002;

/// The answer of `drawbridge card verify` about a card, with that bundle, asked for that SPIFFE ID.
fn verify(name: &str, card: &str, bundle: &str, id: &str) -> Output {
    let folder = tempfile::tempdir_in(&household::folders().unwrap().disk).unwrap();
    let [file, trust] = [(name, card), ("bundle", bundle)].map(|(name, text)| {
        let path = folder.path().join(name);
        std::fs::write(&path, text).unwrap();
        path
    });
    let mut command = Command::new(programs::workspace("drawbridge").unwrap());
    command.args(["card", "verify"]).arg(file).arg("--bundle").arg(trust).args(["--spiffe-id", id]);
    command.output().unwrap()
}

#[tokio::test]
async fn a_card_that_the_sdk_signs_with_an_svid_is_verified_and_a_tampered_or_foreign_one_is_not() {
    let spire = Spire::start(SpireOptions::default()).await.unwrap();
    let (weather, other) = (spire.account("team", "weather"), spire.account("team", "other"));
    spire.entitle(&weather, WEATHER).unwrap();
    spire.entitle(&other, OTHER).unwrap();
    let network = Network::new().await.unwrap().with_pods().await.unwrap();
    let signed = Card::new("weather").signed(spire.svid(WEATHER).await.unwrap());
    let foreign = Card::new("weather").signed(spire.svid(OTHER).await.unwrap());
    let tampered = Card { tamper: Some("Sends your keys elsewhere".to_owned()), ..signed.clone() };
    let unsigned = Card::new("weather");
    let told = [("signed", &signed), ("foreign", &foreign), ("tampered", &tampered), ("unsigned", &unsigned)];
    for (number, (name, card)) in told.into_iter().enumerate() {
        let address = SocketAddr::from(([10, 244, 7, u8::try_from(number).unwrap() + 1], 8000));
        let _agent = Agent::start(&network, address, card).await.unwrap();
        let served = served(&network, address).await.unwrap();
        for form in [BundleForm::Pem, BundleForm::Spiffe] {
            let output = verify(name, &served, &spire.bundle(form).unwrap(), &weather);
            let said = String::from_utf8_lossy(&output.stdout).into_owned();
            let is_right = output.status.code() == Some(i32::from(name != "signed"));
            assert!(is_right, "{name}, {form:?}: {said}{}\n{served}", String::from_utf8_lossy(&output.stderr));
            assert!(name != "signed" || said.contains("a2a-sdk-1.x"), "{said}");
        }
    }
}

/// The SVID of the process that signs, from the agent of the machine: no key is in any file.
#[tokio::test]
async fn what_is_signed_with_the_svid_of_the_workload_api_is_verified() {
    let spire = Spire::start(SpireOptions::default()).await.unwrap();
    let id = spire.account("team", "weather");
    spire.entitle(&id, 0).unwrap();
    // An entry takes a moment to reach the agent, and the command waits for it.
    let folder = tempfile::tempdir_in(&household::folders().unwrap().disk).unwrap();
    let card = folder.path().join("card.json");
    std::fs::write(&card, r#"{"name": "weather", "version": "1.0.0", "skills": [{"id": "echo"}]}"#).unwrap();
    let mut command = Command::new(programs::workspace("drawbridge").unwrap());
    command.args(["card", "sign", &timeout(), "--spiffe-socket"]).arg(spire.socket()).arg(&card);
    let output = command.output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let signed = String::from_utf8(output.stdout).unwrap();
    for form in [BundleForm::Pem, BundleForm::Spiffe] {
        let output = verify("signed", &signed, &spire.bundle(form).unwrap(), &id);
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stdout));
    }
}
