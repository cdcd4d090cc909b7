//! Who this process is, as the SPIFFE agent of its node says, and whom it believes. In: the agent's socket. Out: what TLS needs for that.
//!
//! Promises: the agent is asked again after a minute at most, so a socket that comes or goes and an SVID that is renewed are noticed; while it does not answer, what it
//! gave last serves until its certificate ends; that it gives nothing is known for some seconds, so that whoever asks at the same time does not wait for each other; a peer is believed by its chain to an authority of its trust domain alone, never by a name of DNS.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use rustls::client::Resumption;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer, UnixTime};
use rustls::{CertificateError, ClientConfig, Error};
use tokio::sync::Mutex;
use tokio::time::Instant;

use super::{NoSvid, Svid, svid};
use crate::adapters::tls::{self, Judge};
use crate::crypto::{SpiffeId, TrustBundle, peer};

/// For so long an answer of the agent serves without another question.
const FRESH: Duration = Duration::from_secs(60);
/// For so long it is known that the agent gave nothing: those who ask together wait for it once, and one that comes is soon found.
const VAIN: Duration = Duration::from_secs(5);
/// How long the agent may take.
const PATIENCE: Duration = Duration::from_secs(2);

/// Who this process is, and whom it believes.
#[derive(Debug)]
pub struct Own {
    /// Who it is.
    pub id: SpiffeId,
    /// The authorities of its trust domain.
    pub authorities: Arc<TrustBundle>,
    /// Presents the SVID, and verifies a server's.
    pub config: Arc<ClientConfig>,
    /// The last second of its certificate, in seconds since 1970.
    until: i64,
}

/// Why this process is nobody.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum NoIdentity {
    /// The agent gives none.
    #[error(transparent)]
    Svid(#[from] NoSvid),
    /// What it gives is of no use.
    #[error("the SVID of this process cannot be used: {0}")]
    Unusable(Box<str>),
}

/// Where the identity comes from.
#[derive(Debug, Default)]
pub struct Source(Mutex<Option<Kept>>);

#[derive(Debug)]
struct Kept {
    socket: PathBuf,
    asked: Instant,
    own: Result<Arc<Own>, NoIdentity>,
}

impl Kept {
    /// It serves without another question.
    fn is_fresh(&self) -> bool {
        self.asked.elapsed() < if self.own.is_ok() { FRESH } else { VAIN }
    }
}

impl Source {
    /// Who this process is at `now`, in seconds since 1970.
    pub async fn own(&self, socket: &Path, now: i64) -> Result<Arc<Own>, NoIdentity> {
        let mut kept = self.0.lock().await;
        let known = kept.as_ref().filter(|kept| kept.socket == socket);
        let known = known.filter(|kept| kept.own.as_ref().map_or(true, |own| now < own.until));
        if let Some(known) = known.filter(|known| known.is_fresh()) {
            return known.own.clone();
        }
        let known = known.and_then(|known| known.own.clone().ok());
        let fresh = match svid(socket, PATIENCE).await {
            Ok(svid) => Own::of(&svid).map(Arc::new),
            Err(none) => Err(none.into()),
        };
        let own = fresh.or_else(|why| known.ok_or(why));
        *kept = Some(Kept { socket: socket.to_owned(), asked: Instant::now(), own: own.clone() });
        own
    }
}

impl Own {
    /// What TLS needs for that SVID.
    fn of(svid: &Svid) -> Result<Self, NoIdentity> {
        let unusable = |why: &dyn std::fmt::Display| NoIdentity::Unusable(why.to_string().into());
        let chain = crate::crypto::chain_of(&svid.chain).map_err(|why| unusable(&why))?;
        let leaf = chain.first().ok_or_else(|| unusable(&"it has no certificate"))?;
        let id = peer::identity(leaf).map_err(|why| unusable(&why))?;
        let until = peer::ends(leaf).unwrap_or_default();
        let authorities = peer::authorities(&svid.bundle, id.trust_domain());
        let authorities = Arc::new(authorities.ok_or_else(|| unusable(&"its trust bundle has no authority"))?);
        let chain = chain.into_iter().map(CertificateDer::from).collect();
        let key = PrivateKeyDer::Pkcs8(PrivatePkcs8KeyDer::from(svid.key.to_vec()));
        let mut config = tls::client(Arc::new(Peers(authorities.clone())))
            .map_err(|why| unusable(&why))?
            .with_client_auth_cert(chain, key)
            .map_err(|_| unusable(&"its key cannot be used for TLS"))?;
        config.alpn_protocols = vec![b"http/1.1".to_vec()];
        // Who is asked presents its certificates each time.
        config.resumption = Resumption::disabled();
        Ok(Self { id, authorities, config: Arc::new(config), until })
    }
}

/// Believes whoever has an SVID of the trust domain.
#[derive(Debug)]
struct Peers(Arc<TrustBundle>);

impl Judge for Peers {
    fn judge(&self, chain: &[&CertificateDer<'_>], now: UnixTime) -> Result<(), Error> {
        let chain: Vec<&[u8]> = chain.iter().map(|certificate| certificate.as_ref()).collect();
        let now = i64::try_from(now.as_secs()).unwrap_or(i64::MAX);
        match peer::peer(&chain, &self.0, now) {
            Ok(_) => Ok(()),
            Err(why) => Err(Error::InvalidCertificate(CertificateError::Other(rustls::OtherError(Arc::new(why))))),
        }
    }
}
