//! How an agent answers, by the beginning of its name.

use std::time::Duration;

use tokio::io::AsyncWriteExt as _;
use tokio::net::TcpStream;
use tokio::time::sleep;

/// Longer than anybody waits.
const FOR_EVER: Duration = Duration::from_secs(60);

/// A manner of answering.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Manner {
    /// At once, with its card.
    Healthy,
    /// Never.
    Silent,
    /// A byte of the head every half second.
    Dripping,
    /// A body without end.
    Endless,
    /// The connection ends at once.
    Closing,
    /// A redirect to where clouds tell machines about themselves.
    Elsewhere,
}

impl Manner {
    /// All but the first.
    pub(crate) const BAD: [Self; 5] = [Self::Silent, Self::Dripping, Self::Endless, Self::Closing, Self::Elsewhere];

    /// What the names of such agents begin with.
    pub(crate) fn prefix(self) -> &'static str {
        match self {
            Self::Healthy => "healthy-",
            Self::Silent => "silent-",
            Self::Dripping => "dripping-",
            Self::Endless => "endless-",
            Self::Closing => "closing-",
            Self::Elsewhere => "elsewhere-",
        }
    }

    /// That of the agent of that name.
    pub(crate) fn of(name: &str) -> Self {
        Self::BAD.into_iter().find(|manner| name.starts_with(manner.prefix())).unwrap_or(Self::Healthy)
    }

    /// Answers one question.
    pub(crate) async fn answer(self, mut stream: TcpStream, card: String) {
        // Whoever asks may be gone at any moment.
        let _ = match self {
            Self::Healthy => {
                let head = format!("HTTP/1.1 200 OK\r\ncontent-length: {}\r\nconnection: close\r\n\r\n", card.len());
                stream.write_all(format!("{head}{card}").as_bytes()).await
            }
            Self::Silent => {
                sleep(FOR_EVER).await;
                Ok(())
            }
            Self::Dripping => {
                for byte in b"HTTP/1.1 200 OK\r\nx: ".iter().chain(std::iter::repeat_n(&b'y', 120)) {
                    if stream.write_all(&[*byte]).await.is_err() {
                        return;
                    }
                    sleep(Duration::from_millis(500)).await;
                }
                Ok(())
            }
            Self::Endless => {
                let head = b"HTTP/1.1 200 OK\r\nconnection: close\r\n\r\n";
                let mut written = stream.write_all(head).await;
                while written.is_ok() {
                    written = stream.write_all(&[b' '; 16 << 10]).await;
                }
                written
            }
            Self::Closing => Ok(()),
            Self::Elsewhere => {
                let head = "HTTP/1.1 302 Found\r\nlocation: http://169.254.169.254/\r\ncontent-length: 0\r\n\r\n";
                stream.write_all(head.as_bytes()).await
            }
        };
        let _ = stream.shutdown().await;
    }
}
