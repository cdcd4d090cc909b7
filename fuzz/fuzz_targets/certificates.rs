//! PEM from Secrets, files and webhook configurations. In: bytes, divided by `%%`: a bundle or chain, then a private key. Laws: a bundle has each
//! certificate once, is written as it is read, and reading what was written changes nothing; bundles joined are read as their parts; a pair that
//! is served has the leaf that stands first; what is wrong is said without a byte of the key.
#![no_main]

use std::collections::BTreeSet;

use drawbridge::server::certs::authority::mint::SigningAuthority;
use drawbridge::server::certs::{Pair, Root, read_bundle, write_bundle};
use libfuzzer_sys::fuzz_target;

const DIVIDER: &[u8] = b"%%";

fuzz_target!(|data: &[u8]| {
    let at = data.windows(DIVIDER.len()).position(|window| window == DIVIDER);
    let (pem, key) = at.map_or((data, &[][..]), |at| (&data[..at], &data[at + DIVIDER.len()..]));
    let bundle = read_bundle(pem).certificates;
    let known: BTreeSet<_> = bundle.iter().map(|certificate| certificate.root.fingerprint).collect();
    assert_eq!(known.len(), bundle.len(), "a certificate stands twice");
    for certificate in &bundle {
        assert_eq!(Root::read(&certificate.der), Some(certificate.root));
        assert!(!(certificate.root.valid(i64::MAX)) && !certificate.root.valid(i64::MIN));
    }
    let written = write_bundle(&bundle);
    assert_eq!(read_bundle(written.as_bytes()).certificates, bundle, "what was written is read differently");
    assert_eq!(write_bundle(&read_bundle(written.as_bytes()).certificates), written);
    assert_eq!(read_bundle(format!("{written}{written}").as_bytes()).certificates, bundle, "joined with itself");

    // The authority's key must be its own, so that a key from elsewhere is refused in words.
    drop(SigningAuthority::read(pem, key));
    match Pair::read(pem, key) {
        Ok(pair) => assert_eq!(bundle.first().map(|first| first.root), Some(pair.leaf)),
        Err(error) => {
            let words = error.to_string();
            assert!(!words.is_empty() && words.len() < 1024, "{words}");
            // Words that people write stand in our sentences, too; a line of base64 does not.
            let secrets = key.split(|byte| byte.is_ascii_whitespace()).filter(|line| line.len() >= 40);
            for line in secrets.filter_map(|line| std::str::from_utf8(line).ok()).filter(|line| !line.contains('-')) {
                assert!(!words.contains(line), "{words}");
            }
        }
    }
});
