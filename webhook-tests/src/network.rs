//! A network namespace with nothing but loopback, for programs that listen on every interface and on fixed ports.
//!
//! In: ports of this process's network that must be reachable from within, and ports within that must be reachable
//! from here. Out: bytes carried between `127.0.0.1` there and `127.0.0.1` here, and nothing else. The namespace goes
//! with the [`Network`] and the processes in it.
//!
//! How: a thread of its own enters a fresh namespace. Sockets belong to the namespace of the thread that opens them,
//! children to that of the thread that starts them; so its runtime listens and dials there, and the background
//! runtime listens and dials here.

use std::fs::File;
use std::io::{BufRead as _, BufReader};
use std::net::{Ipv4Addr, SocketAddr};
use std::os::fd::AsFd as _;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::thread::JoinHandle;

use anyhow::{Context as _, Result, anyhow, bail};
use rustix::thread::LinkNameSpaceType;
use tokio::net::{TcpListener, TcpStream};
use tokio::runtime::{Builder, Handle};
use tokio::sync::{oneshot, watch};

use crate::background;

/// Run by `sh` in the fresh namespace: loopback comes up, and the namespace is held until somebody else is in it.
const HOLDER: &str = "ip link set lo up && echo up && read -r _";

/// The addresses that kwok gives to Pods (`--cidr` of its command line).
const PODS: &str = "10.244.0.0/16";

/// A network namespace of one's own.
#[derive(Debug)]
pub struct Network {
    within: Handle,
    /// The namespace as a file, while its thread lives.
    file: PathBuf,
    end: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Network {
    /// A fresh namespace, its loopback up.
    ///
    /// # Errors
    /// When this user may not make one, or `unshare` or `ip` is missing; the message says which.
    pub async fn new() -> Result<Self> {
        let (report, entered) = oneshot::channel();
        let (end, ended) = oneshot::channel();
        let thread = std::thread::Builder::new().name("network".to_owned()).spawn(move || {
            let runtime = enter().and_then(|()| Ok(Builder::new_current_thread().enable_all().build()?));
            match runtime {
                Ok(runtime) => {
                    let thread = rustix::thread::gettid().as_raw_nonzero();
                    let file = format!("/proc/{}/task/{thread}/ns/net", std::process::id());
                    let _ = report.send(Ok((runtime.handle().clone(), file.into())));
                    // An error says that the network was dropped, which ends it just the same.
                    let _ = runtime.block_on(ended);
                    runtime.shutdown_background();
                }
                Err(error) => drop(report.send(Err(error))),
            }
        })?;
        let (within, file) = entered.await.context("the thread of the network ended without an answer")??;
        Ok(Self { within, file, end: Some(end), thread: Some(thread) })
    }

    /// Every address of a Pod is one of this network, so that whoever listens there is that Pod to all who dial within.
    ///
    /// # Errors
    /// When `ip` refuses.
    pub async fn with_pods(self) -> Result<Self> {
        let routed = self.run(|| {
            let route = ["route", "add", "local", PODS, "dev", "lo"];
            let output =
                Command::new("ip").args(route).output().context("cannot run ip (Debian: apt-get install iproute2)")?;
            if !output.status.success() {
                bail!("no route to {PODS}: {}", String::from_utf8_lossy(&output.stderr).trim());
            }
            Ok(())
        });
        routed.await?;
        Ok(self)
    }

    /// The words before a command line that has to run within.
    #[must_use]
    pub fn command(&self) -> Vec<String> {
        vec!["nsenter".into(), format!("--net={}", self.file.display()), "--".into()]
    }

    /// Runs `work` on the thread that is in the namespace: what it starts or opens is there.
    ///
    /// # Errors
    /// What `work` returns.
    pub async fn run<T: Send + 'static>(&self, work: impl FnOnce() -> Result<T> + Send + 'static) -> Result<T> {
        self.within.spawn(async move { work() }).await.context("the work in the network ended without an answer")?
    }

    /// `127.0.0.1:port` within leads to `127.0.0.1:port` here.
    ///
    /// # Errors
    /// When the port is taken there.
    pub async fn let_out(&self, port: u16) -> Result<()> {
        let address = loopback(port);
        let bound = self.within.spawn(async move { TcpListener::bind(address).await });
        let listener = bound.await.context("the network has ended")?.with_context(|| address.to_string())?;
        self.within.spawn(async move {
            while let Ok((inner, _)) = listener.accept().await {
                tokio::spawn(async move {
                    let dialled = background::runtime().spawn(async move { dial(address).await });
                    if let Ok(Ok(outer)) = dialled.await {
                        carry(inner, outer).await;
                    }
                });
            }
        });
        Ok(())
    }

    /// A free port here that leads to `127.0.0.1:port` within, as long as the entrance exists and is open.
    ///
    /// # Errors
    /// When there is no free port.
    pub async fn let_in(&self, port: u16) -> Result<Entrance> {
        self.let_in_at(0, port).await
    }

    /// The same under a port of this network that is held for it, or any where that is 0.
    ///
    /// # Errors
    /// When somebody listens there.
    pub async fn let_in_at(&self, here: u16, port: u16) -> Result<Entrance> {
        let bound = background::runtime().spawn(async move { TcpListener::bind(loopback(here)).await });
        let listener = bound.await.context("the background runtime has ended")??;
        let address = listener.local_addr()?;
        let within = self.within.clone();
        let (open, mut opened) = watch::channel(true);
        let task = background::runtime().spawn(async move {
            while let Ok((outer, _)) = listener.accept().await {
                if *opened.borrow_and_update()
                    && let Ok(outer) = outer.into_std()
                {
                    let mut opened = opened.clone();
                    within.spawn(async move {
                        let Ok(inner) = dial(loopback(port)).await else { return };
                        let Ok(outer) = TcpStream::from_std(outer) else { return };
                        tokio::select! { () = carry(outer, inner) => (), _ = opened.wait_for(|open| !open) => () }
                    });
                }
            }
        });
        Ok(Entrance { address, open: Arc::new(open), task })
    }
}

impl Drop for Network {
    fn drop(&mut self) {
        drop(self.end.take());
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// A port of this network that leads into another.
pub struct Entrance {
    address: SocketAddr,
    open: Arc<watch::Sender<bool>>,
    task: tokio::task::JoinHandle<()>,
}

impl Entrance {
    /// Where it is.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Ends every connection, and new ones at once.
    pub fn close(&self) {
        self.open.send_replace(false);
    }

    /// Lets connections through again.
    pub fn open(&self) {
        self.open.send_replace(true);
    }
}

impl Drop for Entrance {
    fn drop(&mut self) {
        self.close();
        self.task.abort();
    }
}

fn loopback(port: u16) -> SocketAddr {
    SocketAddr::from((Ipv4Addr::LOCALHOST, port))
}

/// A connection that belongs to no runtime yet.
async fn dial(address: SocketAddr) -> std::io::Result<std::net::TcpStream> {
    let stream = TcpStream::connect(address).await?;
    stream.set_nodelay(true)?;
    stream.into_std()
}

/// Carries bytes both ways until one side has ended.
async fn carry(mut one: TcpStream, other: std::net::TcpStream) {
    let _ = one.set_nodelay(true);
    if let Ok(mut other) = TcpStream::from_std(other) {
        // However it ends, both connections end with it.
        let _ = tokio::io::copy_bidirectional(&mut one, &mut other).await;
    }
}

/// Moves the calling thread into a fresh network namespace whose loopback is up.
fn enter() -> Result<()> {
    let mut holder = Command::new("unshare")
        .args(["--net", "sh", "-c", HOLDER])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .context("cannot run unshare (Debian: apt-get install util-linux)")?;
    let mut line = String::new();
    let output = holder.stdout.take().context("the holder has a standard output")?;
    BufReader::new(output).read_line(&mut line)?;
    if line.trim() != "up" {
        let output = holder.wait_with_output()?;
        bail!(
            "no network namespace of its own, which takes root, unshare and ip (Debian: apt-get install iproute2): {}",
            String::from_utf8_lossy(&output.stderr).trim()
        );
    }
    let path = format!("/proc/{}/ns/net", holder.id());
    let namespace = File::open(&path).with_context(|| path.clone())?;
    rustix::thread::move_into_link_name_space(namespace.as_fd(), Some(LinkNameSpaceType::Network))
        .map_err(|error| anyhow!("cannot enter {path}: {error}"))?;
    // Its input ends, and so does it; the namespace lives on with this thread.
    drop(holder.stdin.take());
    holder.wait()?;
    Ok(())
}

#[cfg(all(test, feature = "peers"))]
mod tests {
    use super::*;
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

    #[tokio::test]
    async fn bytes_go_both_ways_and_nothing_else_is_reachable() {
        let network = Network::new().await.unwrap();
        // Every interface, as the programs do that need this.
        let inner = network.run(|| Ok(std::net::TcpListener::bind(("0.0.0.0", 0))?)).await.unwrap();
        let port = inner.local_addr().unwrap().port();
        assert!(TcpStream::connect(loopback(port)).await.is_err(), "it listens there, not here");
        let entrance = network.let_in(port).await.unwrap();
        let mut client = TcpStream::connect(entrance.address()).await.unwrap();
        client.write_all(b"hello").await.unwrap();
        let (mut server, _) = inner.accept().unwrap();
        let mut seen = [0; 5];
        std::io::Read::read_exact(&mut server, &mut seen).unwrap();
        assert_eq!(&seen, b"hello");

        entrance.close();
        assert_eq!(client.read(&mut seen).await.unwrap_or(0), 0, "closed");
        let mut late = TcpStream::connect(entrance.address()).await.unwrap();
        assert_eq!(late.read(&mut seen).await.unwrap_or(0), 0, "closed for new ones, too");

        let outer = TcpListener::bind(loopback(0)).await.unwrap();
        let out = outer.local_addr().unwrap();
        network.let_out(out.port()).await.unwrap();
        let dialled = network.run(move || Ok(std::net::TcpStream::connect(out)?)).await.unwrap();
        let (mut accepted, _) = outer.accept().await.unwrap();
        accepted.write_all(b"there").await.unwrap();
        let mut dialled = dialled;
        std::io::Read::read_exact(&mut dialled, &mut seen).unwrap();
        assert_eq!(&seen, b"there");
    }
}
