//! A TCP balancer that plays kube-proxy: new connections go only to instances whose `/readyz` answers 200.
//!
//! In: backends with the address of their probes, and how long an endpoint update takes to arrive. Out: one address to
//! put behind [`crate::ControlPlane::publish_service`]. Promises: established connections are never touched by a change
//! of readiness (as with kube-proxy); with no endpoint, or an endpoint that refuses, the connection is closed.

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use anyhow::{Result, bail};
use parking_lot::Mutex;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::task::JoinHandle;
use tokio::time::Instant;

use crate::{background, dial};

/// How the balancer learns of endpoints.
#[derive(Debug, Clone)]
pub struct BalancerOptions {
    /// Between two probes of one backend.
    pub probe_every: Duration,
    /// From a probe with another result until new connections follow it: kubelet, endpoint controller and proxy.
    pub endpoint_delay: Duration,
    /// Whether a connection that an endpoint refuses is given to the next one; kube-proxy does not do that, but with it
    /// a dead instance is out of the rotation at once and not only after the next probe.
    pub next_when_refused: bool,
}

impl Default for BalancerOptions {
    fn default() -> Self {
        Self { probe_every: Duration::from_millis(50), endpoint_delay: Duration::ZERO, next_when_refused: false }
    }
}

/// A running balancer on 127.0.0.1; ends when dropped, with all connections.
pub struct Balancer {
    address: SocketAddr,
    state: Arc<State>,
    accepting: JoinHandle<()>,
}

struct State {
    options: BalancerOptions,
    backends: Mutex<Vec<Arc<Backend>>>,
    turn: AtomicU64,
    unserved: AtomicU64,
    /// Number of endpoints, sent at every change.
    endpoints: watch::Sender<usize>,
    connections: Mutex<tokio::task::JoinSet<()>>,
}

struct Backend {
    address: SocketAddr,
    routed: AtomicBool,
    served: AtomicU64,
    probing: Mutex<Option<JoinHandle<()>>>,
}

impl Drop for Backend {
    fn drop(&mut self) {
        if let Some(probing) = self.probing.get_mut().take() {
            probing.abort();
        }
    }
}

impl Balancer {
    /// Listens on a free port, without backends.
    ///
    /// # Errors
    /// When there is no port.
    pub async fn start(options: BalancerOptions) -> Result<Self> {
        background::run(async move {
            let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await?;
            let address = listener.local_addr()?;
            let state = Arc::new(State {
                options,
                backends: Mutex::default(),
                turn: AtomicU64::new(0),
                unserved: AtomicU64::new(0),
                endpoints: watch::Sender::new(0),
                connections: Mutex::default(),
            });
            let accepting = tokio::spawn(accept(listener, Arc::clone(&state)));
            Ok(Self { address, state, accepting })
        })
        .await
    }

    /// Where to connect.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Adds an instance that serves on `address` and answers `/readyz` on `probes`. An instance that comes back on the
    /// same address needs no second call.
    pub fn add(&self, address: SocketAddr, probes: SocketAddr) {
        let backend = Arc::new(Backend {
            address,
            routed: AtomicBool::new(false),
            served: AtomicU64::new(0),
            probing: Mutex::default(),
        });
        let probing = probe(Arc::downgrade(&backend), probes, Arc::clone(&self.state));
        *backend.probing.lock() = Some(background::runtime().spawn(probing));
        self.state.backends.lock().push(backend);
    }

    /// Takes an instance out; its connections stay.
    pub fn remove(&self, address: SocketAddr) {
        self.state.backends.lock().retain(|backend| backend.address != address);
        self.state.announce();
    }

    /// The instances that get new connections now.
    #[must_use]
    pub fn endpoints(&self) -> Vec<SocketAddr> {
        self.state.endpoints().iter().map(|backend| backend.address).collect()
    }

    /// Waits until exactly `count` instances get new connections.
    ///
    /// # Errors
    /// After [`crate::objects::PATIENCE`].
    pub async fn wait_for_endpoints(&self, count: usize) -> Result<()> {
        let mut endpoints = self.state.endpoints.subscribe();
        let waiting = endpoints.wait_for(|now| *now == count);
        match tokio::time::timeout(crate::objects::PATIENCE, waiting).await {
            Ok(Ok(_)) => Ok(()),
            _ => bail!("{count} endpoints wanted, there are {:?}", self.endpoints()),
        }
    }

    /// Connections given to an instance so far.
    #[must_use]
    pub fn served(&self, address: SocketAddr) -> u64 {
        let backends = self.state.backends.lock();
        backends.iter().filter(|b| b.address == address).map(|b| b.served.load(Ordering::Relaxed)).sum()
    }

    /// Connections closed because no instance took them.
    #[must_use]
    pub fn unserved(&self) -> u64 {
        self.state.unserved.load(Ordering::Relaxed)
    }
}

impl Drop for Balancer {
    fn drop(&mut self) {
        self.accepting.abort();
        self.state.connections.lock().abort_all();
        self.state.backends.lock().clear();
    }
}

impl State {
    fn endpoints(&self) -> Vec<Arc<Backend>> {
        self.backends.lock().iter().filter(|backend| backend.routed.load(Ordering::Acquire)).cloned().collect()
    }

    fn announce(&self) {
        self.endpoints.send_replace(self.endpoints().len());
    }

    /// A connection to one of the endpoints, in turn.
    async fn dial(&self) -> Option<TcpStream> {
        let endpoints = self.endpoints();
        let first = usize::try_from(self.turn.fetch_add(1, Ordering::Relaxed)).unwrap_or_default();
        let tries = if self.options.next_when_refused { endpoints.len() } else { endpoints.len().min(1) };
        for offset in 0..tries {
            let backend = &endpoints[first.wrapping_add(offset) % endpoints.len()];
            if let Ok(stream) = TcpStream::connect(backend.address).await {
                backend.served.fetch_add(1, Ordering::Relaxed);
                return Some(stream);
            }
        }
        None
    }
}

async fn accept(listener: TcpListener, state: Arc<State>) {
    loop {
        let Ok((client, _)) = listener.accept().await else {
            // Out of descriptors, most likely: give connections time to end.
            tokio::time::sleep(Duration::from_millis(10)).await;
            continue;
        };
        let serving = serve(client, Arc::clone(&state));
        let mut connections = state.connections.lock();
        while connections.try_join_next().is_some() {}
        connections.spawn(serving);
    }
}

async fn serve(mut client: TcpStream, state: Arc<State>) {
    let Some(mut server) = state.dial().await else {
        state.unserved.fetch_add(1, Ordering::Relaxed);
        return;
    };
    // Small writes must not wait for each other: latency is measured through here.
    let _ = (client.set_nodelay(true), server.set_nodelay(true));
    // An error is the end of the connection on one side, which closes the other side too.
    let _ = tokio::io::copy_bidirectional(&mut client, &mut server).await;
}

/// Probes one backend and applies each change after the endpoint delay.
async fn probe(backend: std::sync::Weak<Backend>, probes: SocketAddr, state: Arc<State>) {
    let mut known = false;
    let mut next = Instant::now();
    loop {
        tokio::time::sleep_until(next).await;
        next = Instant::now() + state.options.probe_every;
        let ready = dial::get(probes, "/readyz").await.is_ok_and(|(status, _)| status == 200);
        if ready == known {
            continue;
        }
        known = ready;
        let (backend, state) = (backend.clone(), Arc::clone(&state));
        // Changes overtake nobody: all wait equally long.
        tokio::spawn(async move {
            tokio::time::sleep(state.options.endpoint_delay).await;
            if let Some(backend) = backend.upgrade() {
                backend.routed.store(ready, Ordering::Release);
                state.announce();
            }
        });
    }
}
