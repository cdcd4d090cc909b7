//! The binary packet protocol of SSH (RFC 4253 6) and its data types (RFC 4251 5), as far as a test needs them.
//!
//! In: a TCP stream. Out: payloads of packets. Plain until keys are set, then `aes128-gcm@openssh.com` (RFC 5647).

use std::io::{Error, ErrorKind, Result};

use aws_lc_rs::aead::{AES_128_GCM, Aad, LessSafeKey, Nonce, UnboundKey};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

/// Longest packet that is read.
const LONGEST: usize = 256 * 1024;
const TAG: usize = 16;

fn wrong(what: &str) -> Error {
    Error::new(ErrorKind::InvalidData, what.to_owned())
}

/// A payload that is being written.
pub(crate) struct Out(pub(crate) Vec<u8>);

impl Out {
    pub(crate) fn new(kind: u8) -> Self {
        Self(vec![kind])
    }

    pub(crate) fn byte(mut self, byte: u8) -> Self {
        self.0.push(byte);
        self
    }

    pub(crate) fn number(mut self, number: u32) -> Self {
        self.0.extend(number.to_be_bytes());
        self
    }

    pub(crate) fn string(mut self, text: &[u8]) -> Self {
        self.0.extend(u32::try_from(text.len()).unwrap().to_be_bytes());
        self.0.extend(text);
        self
    }
}

/// Strings one after the other.
pub(crate) fn strings(texts: &[&[u8]]) -> Vec<u8> {
    texts.iter().fold(Out(Vec::new()), |out, text| out.string(text)).0
}

/// A non-negative number as SSH hashes it: no leading zeros, no leading bit.
pub(crate) fn mpint(bytes: &[u8]) -> Vec<u8> {
    let zeros = bytes.iter().take_while(|byte| **byte == 0).count();
    let mut number = bytes[zeros..].to_vec();
    if number.first().is_some_and(|first| first & 0x80 != 0) {
        number.insert(0, 0);
    }
    strings(&[&number])
}

/// A payload that is being read.
pub(crate) struct In<'p>(pub(crate) &'p [u8]);

impl<'p> In<'p> {
    fn take(&mut self, count: usize) -> Result<&'p [u8]> {
        let (head, rest) = self.0.split_at_checked(count).ok_or_else(|| wrong("a packet ends too early"))?;
        self.0 = rest;
        Ok(head)
    }

    pub(crate) fn byte(&mut self) -> Result<u8> {
        Ok(self.take(1)?[0])
    }

    pub(crate) fn number(&mut self) -> Result<u32> {
        Ok(u32::from_be_bytes(self.take(4)?.try_into().unwrap()))
    }

    pub(crate) fn string(&mut self) -> Result<&'p [u8]> {
        let length = self.number()? as usize;
        self.take(length)
    }
}

/// The cipher of one direction.
pub(crate) struct Cipher {
    key: LessSafeKey,
    iv: [u8; 12],
}

impl Cipher {
    pub(crate) fn new(key: &[u8], iv: &[u8]) -> Self {
        let key = LessSafeKey::new(UnboundKey::new(&AES_128_GCM, key).unwrap());
        Self { key, iv: iv.try_into().unwrap() }
    }

    fn nonce(&mut self) -> Nonce {
        let nonce = Nonce::assume_unique_for_key(self.iv);
        let counter = u64::from_be_bytes(self.iv[4..].try_into().unwrap()).wrapping_add(1);
        self.iv[4..].copy_from_slice(&counter.to_be_bytes());
        nonce
    }
}

/// The receiving half of a connection.
pub(crate) struct Receiver<R> {
    pub(crate) stream: R,
    pub(crate) cipher: Option<Cipher>,
}

impl<R: tokio::io::AsyncRead + Unpin> Receiver<R> {
    /// The payload of the next packet.
    pub(crate) async fn packet(&mut self) -> Result<Vec<u8>> {
        let mut length = [0; 4];
        self.stream.read_exact(&mut length).await?;
        let count = u32::from_be_bytes(length) as usize;
        if count > LONGEST {
            return Err(wrong("a packet is too long"));
        }
        let mut packet = vec![0; count + if self.cipher.is_some() { TAG } else { 0 }];
        self.stream.read_exact(&mut packet).await?;
        if let Some(cipher) = &mut self.cipher {
            let nonce = cipher.nonce();
            cipher.key.open_in_place(nonce, Aad::from(length), &mut packet).map_err(|_| wrong("a packet is forged"))?;
            packet.truncate(count);
        }
        let padding = usize::from(*packet.first().ok_or_else(|| wrong("an empty packet"))?);
        let end = count.checked_sub(padding).filter(|end| *end > 1).ok_or_else(|| wrong("nothing but padding"))?;
        Ok(packet[1..end].to_vec())
    }
}

/// The sending half of a connection.
pub(crate) struct Sender<W> {
    pub(crate) stream: W,
    pub(crate) cipher: Option<Cipher>,
}

impl<W: tokio::io::AsyncWrite + Unpin> Sender<W> {
    /// Sends one packet.
    pub(crate) async fn packet(&mut self, payload: &Out) -> Result<()> {
        // What the block size divides: all of a plain packet, and of a sealed one all but its length.
        let (block, before) = if self.cipher.is_some() { (16, 1) } else { (8, 5) };
        let mut padding = block - (before + payload.0.len()) % block;
        if padding < 4 {
            padding += block;
        }
        let count = u32::try_from(1 + payload.0.len() + padding).unwrap().to_be_bytes();
        let mut packet = vec![u8::try_from(padding).unwrap()];
        packet.extend(&payload.0);
        packet.resize(packet.len() + padding, 0);
        if let Some(cipher) = &mut self.cipher {
            let nonce = cipher.nonce();
            cipher.key.seal_in_place_append_tag(nonce, Aad::from(count), &mut packet).unwrap();
        }
        self.stream.write_all(&[&count[..], &packet].concat()).await
    }
}
