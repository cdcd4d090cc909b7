//! Is the certificate that is really served one that `caBundle` trusts?
//!
//! In: the webhook entries as stored. Out: one check per address of the Service that answers from here, judged as the API
//! server judges: chain, name and time. What cannot be reached from here is said, and is no finding: the dry-run create
//! of an enrolled Pod asks the same through the API server.

use std::collections::BTreeSet;
use std::fmt;
use std::sync::Arc;
use std::time::{Duration, UNIX_EPOCH};

use jiff::Timestamp;
use parking_lot::Mutex;
use rustls::client::WebPkiServerVerifier;
use rustls::client::danger::ServerCertVerifier as _;
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::{Error as TlsError, RootCertStore};
use serde_json::Value;
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;

use super::{Seen, Visit, text};
use crate::adapters::tls::{self, Judge};
use crate::cli::cluster::Cluster;
use crate::server::certs::{Root, read_bundle};
use crate::server::clock;
use crate::server::guards::watch::APPLY;
use crate::store::Kind;

/// Longest wait for one address: from a laptop none of them answers.
const PATIENCE: Duration = Duration::from_secs(2);
/// Addresses that are tried; a webhook has a few replicas.
const MOST: usize = 16;

/// A webhook entry, as far as the certificate matters.
#[derive(Debug, Clone)]
pub(super) struct Entry {
    /// Its name.
    pub(super) name: String,
    /// `clientConfig`.
    pub(super) client: Value,
    /// `caBundle`, PEM.
    pub(super) bundle: Vec<u8>,
}

type Chain = Vec<CertificateDer<'static>>;

/// Where the API server would dial, and the name it would ask for.
#[derive(Debug, PartialEq)]
struct Target {
    host: String,
    addresses: BTreeSet<(String, u16)>,
}

pub(super) async fn check(visit: &mut Visit, entries: &[Entry]) -> anyhow::Result<()> {
    let name = "the certificate that is served";
    let Some(first) = entries.first() else { return Ok(()) };
    let Some(target) = target(visit, name, &first.client).await? else { return Ok(()) };
    let asked_for = target.host.as_str();
    let tries = target.addresses.iter().take(MOST).map(|(host, port)| async move {
        let chain = tokio::time::timeout(PATIENCE, shown(host, *port, asked_for)).await;
        (format!("{host}:{port}"), chain.unwrap_or_else(|_| Err(format!("no answer within {} s", PATIENCE.as_secs()))))
    });
    let mut away = Vec::new();
    for (address, chain) in futures::future::join_all(tries).await {
        match chain {
            Ok(chain) => judge(visit, &address, (&target.host, &chain), entries),
            Err(error) => away.push(format!("{address} ({error})")),
        }
    }
    if !away.is_empty() {
        let remedy = "run doctor where the Service's addresses are reachable (a Pod, a node) to see each replica's certificate; \
                      the check of an enrolled Pod below asks through the API server";
        visit.unknown(name, format!("not reachable from here: {}", away.join(", ")), remedy);
    } else if target.addresses.is_empty() {
        visit.unknown(name, "the Service has no address", "see the Deployment's check above");
    }
    Ok(())
}

fn judge(visit: &mut Visit, address: &str, (host, chain): (&str, &Chain), entries: &[Entry]) {
    let name = format!("the certificate that {address} serves");
    let end = chain.first().and_then(|leaf| Root::read(leaf)).map(|leaf| leaf.not_after);
    let end = end.and_then(|end| Timestamp::from_millisecond(end).ok()).map(|end| end.to_string()).unwrap_or_default();
    let refused: Vec<String> = entries
        .iter()
        .filter_map(|entry| {
            trusted(chain, host, &entry.bundle).err().map(|error| format!("{} would refuse it ({error})", entry.name))
        })
        .collect();
    if refused.is_empty() {
        visit.ok(&name, format!("ends {end} and is trusted by the caBundle of every entry"));
    } else {
        let remedy = format!(
            "kubectl -n {} logs deployment/drawbridge-controllers says who publishes caBundle and what stands in the way; \
             certificates of your own (--webhook-cert-path) need their authority in caBundle",
            visit.operator
        );
        visit.finding(&name, format!("ends {end}: {}", refused.join("; ")), remedy);
    }
}

/// The addresses behind an entry's Service or URL; nothing when that may not be read.
async fn target(visit: &mut Visit, name: &str, client: &Value) -> anyhow::Result<Option<Target>> {
    if let Some(url) = client["url"].as_str() {
        let authority = url.parse::<http::Uri>().ok().and_then(|uri| uri.into_parts().authority);
        let Some(authority) = authority else { return Ok(None) };
        let host = authority.host().trim_matches(['[', ']']).to_owned();
        let addresses = [(host.clone(), authority.port_u16().unwrap_or(443))].into();
        return Ok(Some(Target { host, addresses }));
    }
    let (service, namespace) = (text(client, "/service/name"), text(client, "/service/namespace"));
    let port = client.pointer("/service/port").and_then(Value::as_u64).and_then(|port| u16::try_from(port).ok());
    let host = format!("{service}.{namespace}.svc");
    let object = match visit.read(name, &format!("/api/v1/namespaces/{namespace}/services/{service}")).await? {
        Seen::Is(object) => object,
        Seen::Hidden => return Ok(None),
        Seen::Absent => {
            visit.finding(name, format!("Service {namespace}/{service} does not exist"), APPLY);
            return Ok(None);
        }
    };
    if text(&object, "/spec/type") == "ExternalName" {
        let addresses = [(text(&object, "/spec/externalName").to_owned(), port.unwrap_or(443))].into();
        return Ok(Some(Target { host, addresses }));
    }
    let mut notes = Vec::new();
    let addresses = addresses(&visit.cluster, (namespace, service), &mut notes).await?;
    if !notes.is_empty() {
        visit.unknown(name, notes.join("; "), "run doctor as somebody who may read it");
        return Ok(None);
    }
    Ok(Some(Target { host, addresses }))
}

/// The addresses behind a Service that get traffic; those that may not be read are noted.
///
/// # Errors
/// [`crate::cli::Unreachable`] when nobody answers.
pub(in crate::cli) async fn addresses(
    cluster: &Cluster,
    (namespace, service): (&str, &str),
    notes: &mut Vec<String>,
) -> anyhow::Result<BTreeSet<(String, u16)>> {
    let slices =
        format!("{}?labelSelector=kubernetes.io/service-name%3D{service}", Kind::EndpointSlice.path(namespace));
    let slices = cluster.list(&slices, notes).await?;
    Ok(slices.iter().flat_map(ready).collect())
}

/// The addresses of a slice that get traffic.
fn ready(slice: &Value) -> Vec<(String, u16)> {
    let list = |value: &Value| value.as_array().cloned().unwrap_or_default();
    let ports = list(&slice["ports"]).into_iter().filter_map(|port| port["port"].as_u64());
    let ports: Vec<u16> = ports.filter_map(|port| u16::try_from(port).ok()).collect();
    let endpoints =
        list(&slice["endpoints"]).into_iter().filter(|end| end["conditions"]["ready"] != Value::Bool(false));
    let addresses = endpoints.flat_map(|end| list(&end["addresses"]));
    let addresses = addresses.filter_map(|address| address.as_str().map(str::to_owned));
    addresses.flat_map(|address| ports.iter().map(move |port| (address.clone(), *port))).collect()
}

/// The chain that a server shows, whoever signed it. A server that asks for a client certificate shows its own first.
async fn shown(address: &str, port: u16, host: &str) -> Result<Chain, String> {
    let witness = Arc::new(Witness::default());
    let config = tls::client(witness.clone()).map_err(|error| error.to_string())?.with_no_client_auth();
    let name = ServerName::try_from(host.to_owned()).map_err(|error| error.to_string())?;
    let stream = TcpStream::connect((address, port)).await.map_err(|error| error.to_string())?;
    let outcome = TlsConnector::from(Arc::new(config)).connect(name, stream).await;
    let seen = std::mem::take(&mut *witness.0.lock());
    match outcome {
        Err(error) if seen.is_empty() => Err(error.to_string()),
        _ => Ok(seen),
    }
}

/// Notes what is shown, and lets it pass: it is judged afterwards, against each bundle.
#[derive(Default)]
struct Witness(Mutex<Chain>);

impl fmt::Debug for Witness {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Witness")
    }
}

impl Judge for Witness {
    fn judge(&self, chain: &[&CertificateDer<'_>], _: UnixTime) -> Result<(), TlsError> {
        *self.0.lock() = chain.iter().map(|certificate| (*certificate).clone().into_owned()).collect();
        Ok(())
    }
}

/// Whether a caller with this bundle accepts the chain for `host` now.
fn trusted(chain: &Chain, host: &str, bundle: &[u8]) -> Result<(), String> {
    let mut roots = RootCertStore::empty();
    for certificate in read_bundle(bundle).certificates {
        // A root that cannot be used trusts nothing; the others are tried.
        let _ = roots.add(certificate.der);
    }
    if roots.is_empty() {
        return Err("caBundle holds no authority".to_owned());
    }
    let Some((leaf, intermediates)) = chain.split_first() else { return Err("no certificate was shown".to_owned()) };
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let verifier = WebPkiServerVerifier::builder_with_provider(Arc::new(roots), provider).build();
    let verifier = verifier.map_err(|error| error.to_string())?;
    let name = ServerName::try_from(host.to_owned()).map_err(|error| error.to_string())?;
    let now = UnixTime::since_unix_epoch(clock::now().duration_since(UNIX_EPOCH).unwrap_or_default());
    verifier.verify_server_cert(leaf, intermediates, &name, &[], now).map(drop).map_err(|error| error.to_string())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn issued(name: &str) -> (Chain, Vec<u8>) {
        let pair = rcgen::generate_simple_self_signed(vec![name.to_owned()]).unwrap();
        (vec![pair.cert.der().clone()], pair.cert.pem().into_bytes())
    }

    #[test]
    fn a_chain_is_judged_by_bundle_and_name() {
        let (chain, bundle) = issued("drawbridge-webhook.own.svc");
        let (_, other) = issued("drawbridge-webhook.own.svc");
        assert_eq!(trusted(&chain, "drawbridge-webhook.own.svc", &bundle), Ok(()));
        assert_eq!(trusted(&chain, "drawbridge-webhook.own.svc", &[other.clone(), bundle.clone()].concat()), Ok(()));
        for (host, bundle) in [
            ("drawbridge-webhook.other.svc", &bundle),
            ("drawbridge-webhook.own.svc", &other),
            ("drawbridge-webhook.own.svc", &Vec::new()),
        ] {
            assert!(trusted(&chain, host, bundle).is_err(), "{host}");
        }
        assert!(trusted(&Vec::new(), "drawbridge-webhook.own.svc", &bundle).is_err());
    }

    #[test]
    fn addresses_that_get_no_traffic_are_left_out() {
        let slice = json!({
            "ports": [{"name": "webhook", "port": 9443}],
            "endpoints": [
                {"addresses": ["10.0.0.1"], "conditions": {"ready": true}},
                {"addresses": ["10.0.0.2"], "conditions": {"ready": false}},
                {"addresses": ["10.0.0.3"]},
            ],
        });
        let expected = ["10.0.0.1", "10.0.0.3"].map(|address| (address.to_owned(), 9443));
        assert_eq!(ready(&slice), expected);
        assert!(ready(&json!({"ports": null, "endpoints": null})).is_empty());
    }
}
