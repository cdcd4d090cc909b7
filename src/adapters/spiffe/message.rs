//! Messages of gRPC, and of the Workload API within them; pure. In: bytes from a socket. Out: the first SVID. Promise: any bytes have an
//! answer; what is not asked for is passed over unread.

use zeroize::Zeroizing;

use super::{MESSAGE, NoSvid, Svid};

/// Bytes ahead of a message: whether it is compressed, and its length.
pub(super) const HEAD: usize = 5;
/// `X509SVIDResponse.svids`.
const SVIDS: u64 = 1;
/// `X509SVID.x509_svid`.
const CHAIN: u64 = 2;
/// `X509SVID.x509_svid_key`.
const KEY: u64 = 3;
/// `X509SVID.bundle`.
const BUNDLE: u64 = 4;

/// The first message, once it is all there.
pub(super) fn whole(came: &[u8]) -> Result<Option<&[u8]>, NoSvid> {
    let Some((head, rest)) = came.split_at_checked(HEAD) else { return Ok(None) };
    let [compressed, a, b, c, d] = *head else { return Ok(None) };
    if compressed != 0 {
        return Err(NoSvid::NotWorkloadApi("its message is compressed, which was not asked for".into()));
    }
    let length = usize::try_from(u32::from_be_bytes([a, b, c, d])).unwrap_or(usize::MAX);
    if length > MESSAGE {
        return Err(NoSvid::TooLarge);
    }
    Ok(rest.get(..length))
}

/// The first SVID of an answer: the default one of the process.
pub(super) fn first_svid(message: &[u8]) -> Result<Svid, NoSvid> {
    let unread = |what: &str| NoSvid::NotWorkloadApi(format!("its message has {what}").into());
    let svid = field(message, SVIDS).map_err(unread)?.ok_or_else(|| unread("no SVID"))?;
    let of = |number: u64, what: &'static str| {
        let found = field(svid, number).map_err(unread)?;
        found.filter(|bytes| !bytes.is_empty()).ok_or_else(|| unread(what))
    };
    let chain = of(CHAIN, "an SVID without certificates")?.to_vec();
    let key = Zeroizing::new(of(KEY, "an SVID without a key")?.to_vec());
    let bundle = field(svid, BUNDLE).map_err(unread)?.unwrap_or_default().to_vec();
    Ok(Svid { chain, key, bundle })
}

/// The bytes of the first field of that number.
fn field(mut message: &[u8], number: u64) -> Result<Option<&[u8]>, &'static str> {
    while !message.is_empty() {
        let (tag, rest) = varint(message)?;
        let short = "a truncated protobuf field";
        message = match tag & 7 {
            0 => varint(rest)?.1,
            1 => rest.get(8..).ok_or(short)?,
            2 => {
                let (length, rest) = varint(rest)?;
                let length = usize::try_from(length).map_err(|_| short)?;
                let (bytes, behind) = rest.split_at_checked(length).ok_or(short)?;
                if tag >> 3 == number {
                    return Ok(Some(bytes));
                }
                behind
            }
            5 => rest.get(4..).ok_or(short)?,
            _ => return Err("a protobuf field of an unknown type"),
        };
    }
    Ok(None)
}

/// A number of up to ten bytes, and what is behind it.
fn varint(bytes: &[u8]) -> Result<(u64, &[u8]), &'static str> {
    let mut number = 0;
    for (at, byte) in bytes.iter().enumerate().take(10) {
        number |= u64::from(byte & 0x7f) << (7 * at).min(63);
        if byte & 0x80 == 0 {
            return Ok((number, &bytes[at + 1..]));
        }
    }
    Err("a protobuf number without an end")
}
