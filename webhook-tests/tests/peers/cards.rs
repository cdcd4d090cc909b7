//! Agent cards as the published SDK serves them, signed by what the real SPIRE gives: what `drawbridge card verify` says of them.

use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::process::{Command, Output};

use webhook_tests::a2a::{Agent, Card};
use webhook_tests::household;
use webhook_tests::network::Network;
use webhook_tests::programs;
use webhook_tests::spire::{BundleForm, Spire, SpireOptions};

/// The user that the weather agent runs as.
const WEATHER: u32 = 20_001;
/// The user that another agent runs as.
const OTHER: u32 = 20_002;

/// What the agent at `address` serves under the well-known path.
async fn served(network: &Network, address: SocketAddr) -> String {
    let answer = network.run(move || {
        let mut stream = TcpStream::connect(address)?;
        write!(stream, "GET /.well-known/agent-card.json HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n\r\n")?;
        let mut answer = String::new();
        stream.read_to_string(&mut answer)?;
        Ok(answer)
    });
    let answer = answer.await.unwrap();
    let (head, body) = answer.split_once("\r\n\r\n").unwrap();
    assert!(head.starts_with("HTTP/1.1 200"), "{head}");
    body.to_owned()
}

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
        let served = served(&network, address).await;
        for form in [BundleForm::Pem, BundleForm::Spiffe] {
            let output = verify(name, &served, &spire.bundle(form).unwrap(), &weather);
            let said = String::from_utf8_lossy(&output.stdout).into_owned();
            let is_right = output.status.code() == Some(i32::from(name != "signed"));
            assert!(is_right, "{name}, {form:?}: {said}{}\n{served}", String::from_utf8_lossy(&output.stderr));
            assert!(name != "signed" || said.contains("a2a-sdk-1.x"), "{said}");
        }
    }
}
