//! Free loopback ports from the kernel that stay ours until a server takes them, and across its restarts.
//!
//! A port that is only looked up can be taken by anyone before the server binds it; while a killed server is away, a
//! client that keeps dialling may even be given the port as its own source port and connect to itself. So the port is
//! held by a socket that is bound but does not listen. Servers set `SO_REUSEADDR` (Go and tokio do) and may bind it
//! all the same; neither `bind(0)` nor `connect` of anybody else is given it.

use std::collections::BTreeSet;
use std::net::{Ipv4Addr, SocketAddr};

use anyhow::{Context as _, Result};
use tokio::net::TcpSocket;

/// A reserved port on 127.0.0.1.
#[derive(Debug)]
pub struct Port {
    address: SocketAddr,
    _held: TcpSocket,
}

impl Port {
    /// Reserves a free port.
    ///
    /// # Errors
    /// When the kernel has none.
    pub fn reserve() -> Result<Self> {
        let held = TcpSocket::new_v4().context("no socket for a port reservation")?;
        held.set_reuseaddr(true)?;
        held.bind(SocketAddr::from((Ipv4Addr::LOCALHOST, 0))).context("no free port on 127.0.0.1")?;
        Ok(Self { address: held.local_addr()?, _held: held })
    }

    /// The number.
    #[must_use]
    pub fn number(&self) -> u16 {
        self.address.port()
    }

    /// `127.0.0.1:<number>`.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.address
    }
}

/// How many connections stand that were made to this address of 127.0.0.1, by the kernel's table; both ends are on this machine, and the
/// end that accepted is counted.
///
/// # Errors
/// When the table cannot be read.
pub fn accepted(address: SocketAddr) -> Result<usize> {
    const ESTABLISHED: &str = "01";
    let SocketAddr::V4(address) = address else { anyhow::bail!("{address} is not of 127.0.0.1") };
    // Addresses stand there as the machine keeps them in memory, ports as numbers.
    let local = format!("{:08X}:{:04X}", u32::from_ne_bytes(address.ip().octets()), address.port());
    let table = std::fs::read_to_string("/proc/net/tcp").context("no table of connections")?;
    let rows = table.lines().skip(1).map(|row| row.split_whitespace().collect::<Vec<_>>());
    let ours = rows.filter(|row| row.get(1) == Some(&local.as_str()) && row.get(3) == Some(&ESTABLISHED));
    // The kernel gives the table in pieces, and a connection twice where others came or went between two of them.
    Ok(ours.filter_map(|row| row.get(2).map(|other| (*other).to_owned())).collect::<BTreeSet<_>>().len())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::ErrorKind;
    use tokio::net::{TcpListener, TcpStream};

    /// Asks until it is given: a process that another test starts at this moment has copies of our sockets until it
    /// runs its program, those that we have closed included.
    async fn given<T>(mut ask: impl AsyncFnMut() -> std::io::Result<T>) -> T {
        let asking = async {
            loop {
                match ask().await {
                    Ok(given) => return given,
                    Err(error) => assert_eq!(error.kind(), ErrorKind::AddrInUse),
                }
                tokio::task::yield_now().await;
            }
        };
        tokio::time::timeout(std::time::Duration::from_secs(10), asking).await.unwrap()
    }

    #[tokio::test]
    async fn a_server_may_take_a_held_port_again_and_again_and_nobody_else_is_given_it() {
        let port = Port::reserve().unwrap();
        for _ in 0..2 {
            let server = given(async || TcpListener::bind(port.address()).await).await;
            assert_eq!(accepted(port.address()).unwrap(), 0);
            let client = TcpStream::connect(port.address()).await.unwrap();
            assert_eq!(accepted(port.address()).unwrap(), 1);
            drop((server, client));
        }
        // What `bind(0)` and `connect` go by when they look for a port.
        let other = TcpSocket::new_v4().unwrap();
        assert_eq!(other.bind(port.address()).map_err(|error| error.kind()), Err(ErrorKind::AddrInUse));
        let address = port.address();
        drop(port);
        given(async || TcpSocket::new_v4()?.bind(address)).await;
    }
}
