//! The accept loop: a cap on connections, who of them goes for others' sake, back-off when the process is out of descriptors, an end
//! without loss.

use std::future::Future;
use std::io;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, watch};
use tokio_util::task::TaskTracker;

use super::Server;
use super::connection::{self, COST, Step, Transport};
use super::pulse::Ending;
use super::quota::{Bounds, Quota};
use crate::server::shutdown::Phase;
use crate::server::telemetry::metrics::{Port, PortCause};

/// First pause after an error that concerns the process and not one connection.
const PAUSE_FIRST: Duration = Duration::from_millis(5);
/// Longest pause.
const PAUSE_LAST: Duration = Duration::from_secs(1);

/// Where connections come from.
pub(super) trait Accept: Send + 'static {
    /// What is accepted.
    type Stream: Transport;
    /// The next connection and where it comes from. Cancel safe.
    fn accept(&mut self) -> impl Future<Output = io::Result<(Self::Stream, IpAddr)>> + Send;
}

impl Accept for TcpListener {
    type Stream = TcpStream;

    async fn accept(&mut self) -> io::Result<(TcpStream, IpAddr)> {
        let (stream, peer) = TcpListener::accept(self).await?;
        // Answers are written whole; waiting for more to send would only delay them.
        stream.set_nodelay(true)?;
        Ok((stream, peer.ip()))
    }
}

/// See [`Server::serve`].
pub(super) async fn serve<A: Accept>(server: Arc<Server>, mut socket: A) -> usize {
    let steps = watch::Sender::new(Step::Running);
    let connections = TaskTracker::new();
    let bounds = Bounds { connections: server.limits.connections, memory: server.limits.memory };
    let quota = Quota::new(bounds);
    let port = Port { port: server.name };
    // Before the first connection, too: alerts know by this series that somebody serves here.
    server.metrics.connections.get_or_create(&port).set(0);
    let mut door = Door { permits: Arc::new(Semaphore::new(server.limits.connections)), failures: 0 };
    let admit = |accepted: Accepted<A::Stream>| {
        let Accepted { stream, from, permit } = accepted;
        server.metrics.connections_accepted.get_or_create(&port).inc();
        let Ok(account) = quota.open(from, COST) else { return shed(&server, from) };
        let open = server.metrics.connections.get_or_create_owned(&port);
        let (server, steps) = (server.clone(), steps.subscribe());
        connections.spawn(async move {
            open.inc();
            let serving = Box::pin(connection::serve(server.clone(), stream, account.clone(), steps));
            tokio::select! {
                biased;
                () = account.told_to_end() => shed(&server, from),
                () = serving => {}
            }
            open.dec();
            drop(permit);
        });
    };
    let mut draining = false;
    loop {
        tokio::select! {
            biased;
            () = server.shutdown.reached(Phase::Closing) => break,
            () = server.shutdown.reached(Phase::Draining), if !draining => {
                draining = true;
                steps.send_replace(Step::Draining);
            }
            accepted = door.next(&server, &mut socket) => admit(accepted),
        }
    }
    // Clients whose connection the kernel has completed already wait for an answer: dropping the socket would reset
    // them. What is queued now is taken; nothing new is routed here any more.
    while let Some(accepted) = door.queued(&mut socket).await {
        admit(accepted);
    }
    drop(socket);
    steps.send_replace(Step::Closing);
    connections.close();
    if tokio::time::timeout(server.limits.grace, connections.wait()).await.is_ok() {
        return 0;
    }
    let left = connections.len();
    tracing::warn!(port = server.name, connections = left, "the grace period is over: open connections are cut off");
    steps.send_replace(Step::Cut);
    connections.wait().await;
    left
}

/// A connection ended for others' sake.
fn shed(server: &Server, from: IpAddr) {
    let port_cause = PortCause { port: server.name, cause: Ending::Shed.as_str() };
    let count = server.metrics.connections_ended.get_or_create_owned(&port_cause);
    // The first, and then ever fewer: under attack there are many.
    let is_told = count.inc().saturating_add(1).is_power_of_two();
    if is_told && server.limits.body_size == 0 {
        tracing::warn!(
            port = server.name,
            %from,
            "connections are closed, because too many are open or they hold too much memory; those of the address that has most of them go first"
        );
    } else if is_told {
        tracing::warn!(
            port = server.name,
            %from,
            "connections that never carried a valid review are closed, because too many are open or they hold too much memory; \
             let only the API server reach this port, or ask it for a certificate (--webhook-client-ca)"
        );
    }
}

/// A connection with its permit.
struct Accepted<S> {
    stream: S,
    from: IpAddr,
    permit: OwnedSemaphorePermit,
}

/// Lets connections in one by one.
struct Door {
    permits: Arc<Semaphore>,
    failures: u32,
}

impl Door {
    /// The next connection, once there is room for it.
    async fn next<A: Accept>(&mut self, server: &Server, socket: &mut A) -> Accepted<A::Stream> {
        loop {
            let permit = self.permits.clone().acquire_owned().await;
            let permit = permit.expect("the semaphore is never closed");
            match socket.accept().await {
                Ok((stream, from)) => {
                    if self.failures > 0 {
                        tracing::info!(
                            port = server.name,
                            failures = self.failures,
                            "the process accepts connections again"
                        );
                        self.failures = 0;
                    }
                    return Accepted { stream, from, permit };
                }
                Err(error) if of_one_connection(&error) => {}
                Err(error) => self.pause(server, &error).await,
            }
        }
    }

    async fn pause(&mut self, server: &Server, error: &io::Error) {
        server.metrics.accept_errors.get_or_create(&Port { port: server.name }).inc();
        if self.failures == 0 {
            tracing::warn!(port = server.name, %error, "the process can accept no connection, most likely for want of file descriptors; it tries again with pauses");
        }
        let pause = PAUSE_FIRST.saturating_mul(1 << self.failures.min(10)).min(PAUSE_LAST);
        self.failures = self.failures.saturating_add(1);
        tokio::time::sleep(pause).await;
    }

    /// A connection that is there already.
    async fn queued<A: Accept>(&mut self, socket: &mut A) -> Option<Accepted<A::Stream>> {
        let permit = self.permits.clone().try_acquire_owned().ok()?;
        tokio::select! {
            biased;
            accepted = socket.accept() => accepted.ok().map(|(stream, from)| Accepted { stream, from, permit }),
            () = std::future::ready(()) => None,
        }
    }
}

/// The error says that one client went away while it waited, not that accepting is impossible.
fn of_one_connection(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::ConnectionAborted | io::ErrorKind::ConnectionReset | io::ErrorKind::ConnectionRefused
    )
}
