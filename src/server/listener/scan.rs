//! Where in its protocol a byte stream stands, from the bytes alone.
//!
//! In: bytes in the order in which they arrive, in pieces of any size. Out: whether something was begun and not
//! finished, and for HTTP/1 whether the head is one that two readers could understand differently.

/// What a line of a head is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Framing {
    Length,
    Transfer,
}

/// Both headers that say how long a body is; lower case.
const FRAMING: [(&[u8], Framing); 2] =
    [(b"content-length:", Framing::Length), (b"transfer-encoding:", Framing::Transfer)];
/// Longest name in [`FRAMING`].
const LONGEST: usize = 18;

/// One HTTP/1 head, strictly: lines end in CRLF, and the body's length is given one way only.
///
/// hyper accepts a bare LF (RFC 9112 2.2 lets it) and prefers Transfer-Encoding over Content-Length; a proxy before us
/// may choose otherwise, which is what request smuggling lives on.
#[derive(Debug, Default)]
pub(super) struct HeadScan {
    line: [u8; LONGEST],
    length: usize,
    last: u8,
    seen: Option<Framing>,
    lines: usize,
}

/// What a piece of a head did.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Progress {
    /// More is to come.
    Begun,
    /// The blank line was seen.
    Complete,
    /// Ambiguous; the offset of the byte at fault in the piece.
    Refused(usize),
}

impl HeadScan {
    /// Takes the next piece of a head; what follows the blank line is not looked at.
    pub(super) fn feed(&mut self, piece: &[u8]) -> Progress {
        for (offset, &byte) in piece.iter().enumerate() {
            let previous = std::mem::replace(&mut self.last, byte);
            if byte == b'\n' {
                if previous != b'\r' {
                    return Progress::Refused(offset);
                }
                // A blank line before the request line is allowed by RFC 9112 2.2.
                let blank = self.length == 1;
                if blank && self.lines > 0 {
                    return Progress::Complete;
                }
                if !blank {
                    self.lines += 1;
                    if self.twice_framed() {
                        return Progress::Refused(offset);
                    }
                }
                self.length = 0;
            } else {
                if self.length < LONGEST {
                    self.line[self.length] = byte.to_ascii_lowercase();
                }
                self.length += 1;
            }
        }
        Progress::Begun
    }

    fn twice_framed(&mut self) -> bool {
        let line = &self.line[..self.length.min(LONGEST)];
        let Some((_, framing)) = FRAMING.iter().find(|(name, _)| line.starts_with(name)) else { return false };
        self.seen.replace(*framing).is_some_and(|before| before != *framing)
    }
}

/// Length of HTTP/2's client preface.
const PREFACE: usize = 24;
/// Length of a frame's header (RFC 9113 4.1).
const FRAME_HEADER: usize = 9;
const DATA: u8 = 0;
const HEADERS: u8 = 1;
const CONTINUATION: u8 = 9;
const END_HEADERS: u8 = 4;

/// An HTTP/2 stream of frames: whether one was begun and not finished.
#[derive(Debug)]
pub(super) struct FrameScan {
    header: [u8; FRAME_HEADER],
    filled: usize,
    skip: usize,
    data: bool,
    open_block: bool,
}

impl Default for FrameScan {
    fn default() -> Self {
        Self { header: [0; FRAME_HEADER], filled: 0, skip: PREFACE, data: false, open_block: false }
    }
}

impl FrameScan {
    /// Takes the next piece.
    pub(super) fn feed(&mut self, mut piece: &[u8]) {
        while !piece.is_empty() {
            if self.skip > 0 {
                let skipped = self.skip.min(piece.len());
                self.skip -= skipped;
                piece = &piece[skipped..];
                continue;
            }
            let taken = (FRAME_HEADER - self.filled).min(piece.len());
            self.header[self.filled..self.filled + taken].copy_from_slice(&piece[..taken]);
            self.filled += taken;
            piece = &piece[taken..];
            if self.filled == FRAME_HEADER {
                self.begin();
            }
        }
    }

    fn begin(&mut self) {
        let [a, b, c, kind, flags, ..] = self.header;
        self.filled = 0;
        self.skip = usize::from(a) << 16 | usize::from(b) << 8 | usize::from(c);
        self.data = kind == DATA;
        if kind == HEADERS || kind == CONTINUATION {
            self.open_block = flags & END_HEADERS == 0;
        }
    }

    /// Something other than a body was begun and is not finished.
    pub(super) fn unfinished(&self) -> bool {
        self.open_block || self.filled > 0 || (self.skip > 0 && !self.data)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Feeds `bytes` whole, and in two pieces cut at every place: all must agree.
    fn head(bytes: &[u8]) -> Progress {
        let whole = HeadScan::default().feed(bytes);
        for cut in 0..bytes.len() {
            let mut scan = HeadScan::default();
            let progress = match scan.feed(&bytes[..cut]) {
                Progress::Begun => match scan.feed(&bytes[cut..]) {
                    Progress::Refused(offset) => Progress::Refused(offset + cut),
                    other => other,
                },
                other => other,
            };
            assert_eq!(progress, whole, "cut at {cut}");
        }
        whole
    }

    #[test]
    fn b7_ambiguous_heads_are_seen_wherever_they_are_cut() {
        assert_eq!(head(b"POST / HTTP/1.1\r\nHost: a\r\n\r\n{\n}"), Progress::Complete);
        assert_eq!(head(b"\r\nPOST / HTTP/1.1\r\nHost: a\r\n\r\n"), Progress::Complete);
        assert_eq!(head(b"POST / HTTP/1.1\r\nHost: a\r\n"), Progress::Begun);
        assert_eq!(head(b"POST / HTTP/1.1\nHost: a\r\n\r\n"), Progress::Refused(15));
        assert_eq!(head(b"POST / HTTP/1.1\r\nHost: a\n\n"), Progress::Refused(24));
        for twice in [
            b"POST / HTTP/1.1\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n".as_slice(),
            b"POST / HTTP/1.1\r\ntransfer-encoding:chunked\r\nHost: a\r\nCONTENT-LENGTH:5\r\n\r\n",
        ] {
            assert!(matches!(head(twice), Progress::Refused(_)));
        }
        assert_eq!(head(b"POST / HTTP/1.1\r\nContent-Length: 5\r\n\r\n"), Progress::Complete);
        assert_eq!(head(b"POST / HTTP/1.1\r\nX-Content-Length: 5\r\nTransfer-Encoding: x\r\n\r\n"), Progress::Complete);
    }

    #[test]
    fn b1_an_http2_stream_is_unfinished_inside_frames_and_open_blocks_only() {
        let frame = |kind: u8, flags: u8, length: u8| {
            let mut bytes = vec![0, 0, length, kind, flags, 0, 0, 0, 1];
            bytes.extend(std::iter::repeat_n(0, usize::from(length)));
            bytes
        };
        let mut scan = FrameScan::default();
        assert!(scan.unfinished());
        scan.feed(&[0; PREFACE]);
        assert!(!scan.unfinished());
        for byte in frame(4, 0, 6) {
            scan.feed(&[byte]);
        }
        assert!(!scan.unfinished());
        scan.feed(&frame(HEADERS, 0, 3));
        assert!(scan.unfinished(), "the block goes on");
        scan.feed(&frame(CONTINUATION, END_HEADERS, 3));
        assert!(!scan.unfinished());
        scan.feed(&frame(DATA, 0, 100)[..50]);
        assert!(!scan.unfinished(), "bodies have a deadline of their own");
        scan.feed(&[0; 59]);
        scan.feed(&[0]);
        assert!(scan.unfinished());
    }
}
