//! Bounds, in one place. Every one is checked before the work that it bounds.

/// Bytes of a card.
pub const CARD_BYTES: usize = 1 << 20;
/// Nested lists and objects in a card or header, the outermost being 1.
pub const DEPTH: usize = 128;
/// Values (members, elements, texts, numbers) in one document.
pub const VALUES: usize = 65_536;
/// Entries of `signatures`.
pub const SIGNATURES: usize = 16;
/// Bytes of one protected header, as base64url.
pub const HEADER_BYTES: usize = 64 << 10;
/// Bytes of a `kid`.
pub const KEY_ID_BYTES: usize = 256;
/// Certificates in `x5c`, the leaf included.
pub const CHAIN: usize = 3;
/// Bytes of one certificate.
pub const CERTIFICATE_BYTES: usize = 16 << 10;
/// Bits of an RSA modulus, least and most.
pub const RSA_BITS: (usize, usize) = (2048, 8192);
/// Least and greatest RSA exponent; it must be odd, too.
pub const RSA_EXPONENT: (u64, u64) = (65_537, u32::MAX as u64);
/// Bytes of a trust bundle.
pub const BUNDLE_BYTES: usize = 1 << 20;
/// Certificates in a trust bundle.
pub const AUTHORITIES: usize = 256;
/// Trust domains in a trust bundle.
pub const TRUST_DOMAINS: usize = 64;
/// Authorities that are tried for one certificate: with more of one name, the certificate must name the key that signed it.
pub const CANDIDATES: usize = 8;
/// Seconds that clocks may differ.
pub const SKEW: i64 = 60;
/// Bytes of a SPIFFE ID.
pub const SPIFFE_ID_BYTES: usize = 2048;
/// Bytes of a trust domain.
pub const TRUST_DOMAIN_BYTES: usize = 255;
