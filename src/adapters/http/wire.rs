//! A connection whose incoming bytes are counted.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicUsize, Ordering};
use std::task::{Context, Poll, ready};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use super::WIRE;

/// What came so far.
#[derive(Debug, Default)]
pub(super) struct Came {
    bytes: AtomicUsize,
    /// The first byte and 1; 0 before it came.
    first: AtomicU32,
}

/// The content type of a TLS record: an alert, or a handshake.
const TLS_RECORDS: [u32; 2] = [0x15, 0x16];

impl Came {
    /// More than [`WIRE`] bytes.
    pub(super) fn is_over(&self) -> bool {
        self.bytes.load(Ordering::Relaxed) > WIRE
    }

    /// Not a byte.
    pub(super) fn is_nothing(&self) -> bool {
        self.first.load(Ordering::Relaxed) == 0
    }

    /// It begins as TLS does, and as no HTTP does.
    pub(super) fn is_tls(&self) -> bool {
        TLS_RECORDS.iter().any(|record| self.first.load(Ordering::Relaxed) == record + 1)
    }
}

/// The connection.
#[derive(Debug)]
pub(super) struct Metered<S> {
    stream: S,
    came: Arc<Came>,
}

impl<S> Metered<S> {
    pub(super) fn new(stream: S) -> (Self, Arc<Came>) {
        let came = Arc::new(Came::default());
        (Self { stream, came: came.clone() }, came)
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Metered<S> {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buffer: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let before = buffer.filled().len();
        ready!(Pin::new(&mut self.stream).poll_read(cx, buffer))?;
        let new = &buffer.filled()[before..];
        if let Some(first) = new.first()
            && self.came.is_nothing()
        {
            self.came.first.store(u32::from(*first) + 1, Ordering::Relaxed);
        }
        self.came.bytes.fetch_add(new.len(), Ordering::Relaxed);
        Poll::Ready(if self.came.is_over() { Err(io::ErrorKind::FileTooLarge.into()) } else { Ok(()) })
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Metered<S> {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(cx, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }
}
