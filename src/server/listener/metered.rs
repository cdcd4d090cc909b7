//! The bytes under TLS, counted from the first.
//!
//! In: an accepted stream. Out: the same stream. Promises: what TLS holds back (a hello that is not whole, a record that has only
//! begun) is charged to the connection as it arrives; a connection that there is no room for gets no further byte.

use std::future::Future;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use super::connection::Transport;
use super::quota::{Account, Charge};

/// Bytes that a connection's cost covers.
pub(super) const COVERED: usize = 8 * 1024;

/// Bytes read under TLS since plain ones last came out of it.
#[derive(Debug, Clone, Default)]
pub(super) struct Undelivered(Arc<AtomicUsize>);

impl Undelivered {
    /// Plain bytes came out.
    pub(super) fn delivered(&self) {
        self.0.store(0, Ordering::Relaxed);
    }
}

/// See the module.
#[derive(Debug)]
pub(super) struct Metered<S> {
    stream: S,
    undelivered: Undelivered,
    charge: Charge,
    charged: bool,
}

impl<S> Metered<S> {
    pub(super) fn new(stream: S, account: &Arc<Account>) -> Self {
        Self { stream, undelivered: Undelivered::default(), charge: account.charge(), charged: false }
    }

    /// To be told by whoever reads the plain bytes.
    pub(super) fn undelivered(&self) -> Undelivered {
        self.undelivered.clone()
    }

    /// Whether there is room for what TLS holds with `more` bytes.
    fn fits(&mut self, more: usize) -> bool {
        let held = self.undelivered.0.fetch_add(more, Ordering::Relaxed) + more;
        let beyond = held.saturating_sub(COVERED);
        if beyond == 0 && !self.charged {
            return true;
        }
        self.charged = beyond > 0;
        // A message of several records is joined beside them.
        let fits = self.charge.resize(beyond * 2).is_ok();
        if !fits {
            self.charge.account().give_up();
        }
        fits
    }
}

impl<S: Transport> Transport for Metered<S> {
    fn first_byte(&self) -> impl Future<Output = io::Result<u8>> + Send {
        self.stream.first_byte()
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Metered<S> {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buffer: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let before = buffer.filled().len();
        let result = Pin::new(&mut self.stream).poll_read(cx, buffer);
        let more = buffer.filled().len() - before;
        // The task that is told to end drops this: nothing has to wake it.
        if more > 0 && !self.fits(more) { Poll::Pending } else { result }
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Metered<S> {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(cx, bytes)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        slices: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write_vectored(cx, slices)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }
}
