//! A TCP balancer that plays kube-proxy: new connections go only to instances whose `/readyz` answers 200.
//!
//! In: backends with the address of their probes, and how long an endpoint update takes to arrive. Out: one address to
//! put behind [`crate::ControlPlane::publish_service`], and a record of the connections that were lost with an
//! instance ([`Loss`]). Promises: established connections are never touched by a change of readiness (as with
//! kube-proxy); with no endpoint, or an endpoint that refuses, the connection is closed and given to nobody else.

mod relay;

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
}

impl Default for BalancerOptions {
    fn default() -> Self {
        Self { probe_every: Duration::from_millis(50), endpoint_delay: Duration::ZERO }
    }
}

/// How an instance lost a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum How {
    /// It refused it: it had died while it was still an endpoint, because no probe had told yet.
    Refused,
    /// It ended it while it owed an answer to what the client had sent, or before it had said anything at all.
    Unanswered,
}

/// A connection that an instance cannot have served to the end. Over HTTP/1.1 it had at most one call in flight.
#[derive(Debug, Clone, Copy)]
pub struct Loss {
    /// The instance.
    pub backend: SocketAddr,
    /// When its end was seen.
    pub at: Instant,
    /// What happened.
    pub how: How,
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
    losses: Mutex<Vec<Loss>>,
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
                losses: Mutex::default(),
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
    /// After [`crate::patience::patience`].
    pub async fn wait_for_endpoints(&self, count: usize) -> Result<()> {
        let mut endpoints = self.state.endpoints.subscribe();
        let waiting = endpoints.wait_for(|now| *now == count);
        match tokio::time::timeout(crate::patience::patience(), waiting).await {
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

    /// Connections closed because there was no endpoint.
    #[must_use]
    pub fn unserved(&self) -> u64 {
        self.state.unserved.load(Ordering::Relaxed)
    }

    /// Connections that were lost with an instance, in the order in which that was seen.
    #[must_use]
    pub fn losses(&self) -> Vec<Loss> {
        self.state.losses.lock().clone()
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

    /// Counts under the lock of what is announced: of two probes that end together, the later one would announce what it had counted before.
    fn announce(&self) {
        self.endpoints.send_modify(|count| *count = self.endpoints().len());
    }

    /// The endpoint whose turn it is.
    fn next(&self) -> Option<Arc<Backend>> {
        let endpoints = self.endpoints();
        let turn = usize::try_from(self.turn.fetch_add(1, Ordering::Relaxed)).unwrap_or_default();
        endpoints.get(turn % endpoints.len().max(1)).cloned()
    }

    fn lost(&self, backend: &Backend, how: How, at: Instant) {
        self.losses.lock().push(Loss { backend: backend.address, at, how });
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

async fn serve(client: TcpStream, state: Arc<State>) {
    let Some(backend) = state.next() else {
        state.unserved.fetch_add(1, Ordering::Relaxed);
        return;
    };
    let Ok(server) = TcpStream::connect(backend.address).await else {
        state.lost(&backend, How::Refused, Instant::now());
        return;
    };
    backend.served.fetch_add(1, Ordering::Relaxed);
    // Small writes must not wait for each other: latency is measured through here.
    let _ = (client.set_nodelay(true), server.set_nodelay(true));
    if let relay::Ending::Unanswered(at) = relay::relay(client, server).await {
        state.lost(&backend, How::Unanswered, at);
    }
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
