//! A wire between the product and its API server, which can be cut, go dead, or lead nowhere.
//!
//! In: the API server's address and what befalls the wire. Out: an address to use in its place. Promises: what befalls it befalls the
//! connections that are open as well; when that ends they are gone, and new ones are carried.

use std::net::{IpAddr, SocketAddr};

use anyhow::{Context as _, Result};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::task::JoinHandle;

/// What befalls a wire.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fault {
    /// Nothing: it carries every byte.
    None,
    /// Connections are reset, those that are begun in the middle of the TLS handshake.
    Reset,
    /// Connections are accepted and stay open, and no byte arrives on either end.
    Dead,
}

/// A running wire; it ends when dropped, with all connections.
pub struct Wire {
    address: SocketAddr,
    fault: watch::Sender<Fault>,
    task: JoinHandle<()>,
}

impl Drop for Wire {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl Wire {
    /// From a port of `own`, or of one of the system's choice where that is 0, to the API server of that URL.
    ///
    /// # Errors
    /// When the address is taken, or the URL names none.
    pub async fn lay(own: IpAddr, port: u16, there: &str) -> Result<Self> {
        let there: SocketAddr = there.trim_start_matches("https://").parse().with_context(|| there.to_owned())?;
        let listener = TcpListener::bind((own, port)).await?;
        let address = listener.local_addr()?;
        let fault = watch::Sender::new(Fault::None);
        let told = fault.subscribe();
        let task = tokio::spawn(async move {
            // Dropped with the task, and with it every connection.
            let mut connections = tokio::task::JoinSet::new();
            while let Ok((client, _)) = listener.accept().await {
                connections.spawn(carry(client, there, told.clone()));
                while connections.try_join_next().is_some() {}
            }
        });
        Ok(Self { address, fault, task })
    }

    /// Where it begins.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// What befalls it from now on.
    pub fn befalls(&self, fault: Fault) {
        self.fault.send_replace(fault);
    }
}

async fn carry(mut client: TcpStream, there: SocketAddr, mut told: watch::Receiver<Fault>) {
    let mut server = None;
    if *told.borrow_and_update() == Fault::None {
        let Ok(mut stream) = TcpStream::connect(there).await else { return };
        tokio::select! {
            _ = tokio::io::copy_bidirectional(&mut client, &mut stream) => return,
            changed = told.changed() => if changed.is_err() { return },
        }
        server = Some(stream);
    }
    let fault = *told.borrow_and_update();
    match fault {
        // What was carried so far is over.
        Fault::None => {}
        Fault::Reset => {
            if server.is_none() {
                // The client has said hello by then.
                let _ = client.readable().await;
            }
            // A socket that is closed like that sends a reset. Failing, it closes in the ordinary way.
            let _ = client.set_zero_linger();
        }
        Fault::Dead => drop(told.changed().await),
    }
}
