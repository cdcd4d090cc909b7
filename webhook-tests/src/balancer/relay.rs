//! Copies bytes both ways and tells, when the server ends the connection, whether it still owed an answer.
//!
//! The content is TLS and stays unread: what counts is who spoke last. Over HTTP/1.1 one call is in flight at a time,
//! so bytes of the client behind the server's last ones are a call (or its handshake) without an answer.

use std::io;
use std::time::Duration;

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::time::Instant;

/// A client that closes says so with an alert of at most 31 bytes (TLS 1.2; 24 in 1.3), which asks for no answer;
/// nothing that does is as short: the shortest is the end of a handshake, 58 bytes.
const FAREWELL: usize = 31;
/// How long a client may take to notice that its connection has ended.
const NOTICE: Duration = Duration::from_secs(5);

/// How a connection ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Ending {
    /// By the client, or by the server when it owed nothing.
    Served,
    /// By the server, which owed an answer; seen at this time.
    Unanswered(Instant),
}

/// What was said.
#[derive(Debug, Default)]
struct Talk {
    /// Bytes of the client behind the last bytes of the server.
    owed: usize,
    /// Whether the server has said anything.
    heard: bool,
}

/// Copies until one side ends, then until the other does as well.
pub(super) async fn relay(mut client: TcpStream, mut server: TcpStream) -> Ending {
    let mut talk = Talk::default();
    let (mut asked, mut answered) = (vec![0; 16 * 1024], vec![0; 16 * 1024]);
    loop {
        tokio::select! {
            // What the server has said comes first: then nothing counts as owed that was answered.
            biased;
            length = server.read(&mut answered) => match length {
                Ok(length) if length > 0 => {
                    talk = Talk { owed: 0, heard: true };
                    if client.write_all(&answered[..length]).await.is_err() {
                        return Ending::Served;
                    }
                }
                _ => return abandoned(client, talk, &mut asked).await,
            },
            length = client.read(&mut asked) => match length {
                Ok(length) if length > 0 => {
                    talk.owed += length;
                    if server.write_all(&asked[..length]).await.is_err() {
                        // The server is gone; whatever it has still said arrives with its end.
                        continue;
                    }
                }
                ended => return farewell(client, server, ended).await,
            },
        }
    }
}

/// The server has ended it: what the client had sent, or sends before it notices, stays without an answer.
async fn abandoned(mut client: TcpStream, mut talk: Talk, buffer: &mut [u8]) -> Ending {
    let seen = Instant::now();
    // The client may have closed already; then there is nothing more to read either.
    let _ = client.shutdown().await;
    let rest = async {
        while let Ok(length) = client.read(buffer).await
            && length > 0
        {
            talk.owed += length;
        }
    };
    // A client that does not notice is closed by dropping its connection.
    let _ = tokio::time::timeout(NOTICE, rest).await;
    if talk.owed > FAREWELL || !talk.heard { Ending::Unanswered(seen) } else { Ending::Served }
}

/// The client has ended it: in good order the server may finish what it says, else it hears the same.
async fn farewell(mut client: TcpStream, mut server: TcpStream, ended: io::Result<usize>) -> Ending {
    if ended.is_ok() && server.shutdown().await.is_ok() {
        // An error is the end of the connection, which is what this waits for.
        let _ = tokio::io::copy(&mut server, &mut client).await;
    }
    Ending::Served
}
