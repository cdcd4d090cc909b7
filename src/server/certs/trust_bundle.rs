//! Trust bundles as text: PEM sections, one certificate in each.
//!
//! In: bytes that anybody may have written, and nothing else. Out: every certificate that can be read, and where the first of those are that
//! cannot. Promises: a section that is damaged takes no other one along, whatever is wrong with it: not its neighbour whose
//! beginning it swallowed, and not the rest; the time is that of the bytes, however many sections they are.

use std::collections::BTreeSet;
use std::fmt;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::{self, PemObject as _};

use super::pair::words;
use super::root::RootCertificate;

/// How every section begins; no other part of one can hold this.
const BEGIN: &[u8] = b"-----BEGIN ";
/// Damaged sections that are told of: whoever made thousands of them knows by these what is wrong.
const TOLD: usize = 16;

/// What a bundle holds.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TrustBundle {
    /// The certificates, in order, each once.
    pub certificates: Vec<RootCertificate>,
    /// The sections that were left out, in order; of more than 16 the first.
    pub damaged: Vec<Damaged>,
}

/// A section that cannot be read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Damaged {
    /// Its number among all sections of the bundle, from 1.
    pub section: usize,
    /// The line it begins in, from 1.
    pub line: usize,
    /// What is wrong with it, without a word of what it holds.
    pub why: String,
}

impl fmt::Display for Damaged {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "section {} (line {}): {}", self.section, self.line, self.why)
    }
}

/// Reads a PEM bundle. Sections of other kinds are passed over.
#[must_use]
pub fn read_bundle(pem: &[u8]) -> TrustBundle {
    let begins: Vec<usize> = (0..pem.len()).filter(|at| pem[*at..].starts_with(BEGIN)).collect();
    let ends = begins.iter().skip(1).copied().chain([pem.len()]);
    let mut known = BTreeSet::new();
    let mut bundle = TrustBundle::default();
    for (index, (begin, end)) in begins.iter().copied().zip(ends).enumerate() {
        let read = match CertificateDer::from_pem_slice(&pem[begin..end]) {
            Ok(der) => RootCertificate::read(der).ok_or_else(|| "what it holds is not a certificate".to_owned()),
            Err(pem::Error::NoItemsFound) => continue,
            Err(error) => Err(words(&error)),
        };
        match read {
            Ok(certificate) if known.insert(certificate.root.fingerprint) => bundle.certificates.push(certificate),
            Ok(_) => {}
            Err(_) if bundle.damaged.len() == TOLD => {}
            Err(why) => {
                let line = pem[..begin].iter().filter(|byte| **byte == b'\n').count() + 1;
                bundle.damaged.push(Damaged { section: index + 1, line, why });
            }
        }
    }
    bundle
}

/// A PEM bundle of the certificates, in order.
#[must_use]
pub fn write_bundle<'a>(certificates: impl IntoIterator<Item = &'a RootCertificate>) -> String {
    let mut pem = String::new();
    for certificate in certificates {
        let body = STANDARD.encode(&certificate.der);
        pem.push_str("-----BEGIN CERTIFICATE-----\n");
        let mut rest = body.as_str();
        while !rest.is_empty() {
            let (line, tail) = rest.split_at(rest.len().min(64));
            pem.push_str(line);
            pem.push('\n');
            rest = tail;
        }
        pem.push_str("-----END CERTIFICATE-----\n");
    }
    pem
}

#[cfg(test)]
mod tests {
    use super::*;

    fn issued(name: &str) -> String {
        rcgen::generate_simple_self_signed(vec![name.to_owned()]).unwrap().cert.pem().replace('\r', "")
    }

    #[test]
    fn a_damaged_section_takes_no_other_one_along() {
        let (one, other) = (issued("one"), issued("other"));
        let certificates = |pem: &str| read_bundle(pem.as_bytes()).certificates;
        let both = [certificates(&one), certificates(&other)].concat();
        assert_eq!(both.len(), 2);
        let lines: Vec<&str> = one.lines().collect();
        let (begin, end) = ("-----BEGIN CERTIFICATE-----", "-----END CERTIFICATE-----");
        for (damaged, why) in [
            (one.replace(end, ""), "section CERTIFICATE has no end"),
            (lines[..3].join("\n") + "\n", "section CERTIFICATE has no end"),
            (one.replacen(lines[2], "!", 1), "a section is not base64"),
            ([lines[0], lines[1], lines[lines.len() - 1], ""].join("\n"), "what it holds is not a certificate"),
            (format!("{begin}\n{end}\n"), "what it holds is not a certificate"),
            (one.replace(begin, "-----BEGIN CERTIFICATE"), "a section begins in a line that cannot be read"),
        ] {
            for (text, section, line) in [
                (format!("{damaged}{one}{other}"), 1, 1),
                (format!("# mine\r\n{one}{damaged}{one}{other}"), 2, 2 + lines.len()),
                (format!("{one}{other}{damaged}"), 3, 1 + lines.len() + other.lines().count()),
            ] {
                let bundle = read_bundle(text.as_bytes());
                assert_eq!(bundle.certificates, both, "{text}");
                assert_eq!(bundle.damaged, [Damaged { section, line, why: why.to_owned() }], "{text}");
            }
        }
    }

    #[test]
    fn what_is_not_damaged_is_not_told_of() {
        let (one, other) = (issued("one"), issued("other"));
        let both = [one.as_str(), other.as_str()].map(|pem| read_bundle(pem.as_bytes()).certificates).concat();
        let key = rcgen::KeyPair::generate().unwrap().serialize_pem();
        for text in [
            format!("{one}{other}"),
            format!("{one}{one}{other}"),
            // Files that were put together without a line break between them.
            format!("{}{other}", one.trim_end()),
            format!("{one}{key}\n{other}").replace('\n', "\r\n"),
            format!("{one}\n-----BEGIN SOMETHING ELSE-----\nAAAA\n-----END SOMETHING ELSE-----\n{other}"),
        ] {
            assert_eq!(
                read_bundle(text.as_bytes()),
                TrustBundle { certificates: both.clone(), damaged: vec![] },
                "{text}"
            );
        }
        for nothing in ["", "no PEM at all", "----"] {
            assert_eq!(read_bundle(nothing.as_bytes()), TrustBundle::default());
        }
    }

    /// As much as an object of the API server holds; told one by one they would be a hundred thousand lines of the log.
    #[test]
    fn of_many_damaged_sections_the_first_are_told_and_the_certificates_behind_them_count() {
        let one = issued("one");
        let text = format!("{}\n{one}", "-----BEGIN ".repeat(95_000));
        let bundle = read_bundle(text.as_bytes());
        assert_eq!(bundle.certificates, read_bundle(one.as_bytes()).certificates);
        let sections: Vec<_> = bundle.damaged.iter().map(|damaged| (damaged.section, damaged.line)).collect();
        assert_eq!(sections, (1..=TOLD).map(|section| (section, 1)).collect::<Vec<_>>());
    }
}
