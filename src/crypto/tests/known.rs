//! Published vectors: RFC 7515 (JWS), RFC 8785 (canonical JSON), the specification's own known answers.

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;

use super::{Kat, domain, json, judge, words};
use crate::json::{Style, Value, read, write};
use crate::jws::{PublicKey, signing_input};
use crate::{Algorithm, Profile, Verdict, key_id};

fn unhex(text: &str) -> Vec<u8> {
    (0..text.len()).step_by(2).map(|at| u8::from_str_radix(&text[at..at + 2], 16).unwrap()).collect()
}

fn unbase(text: &str) -> Vec<u8> {
    URL_SAFE_NO_PAD.decode(text).unwrap()
}

/// A SubjectPublicKeyInfo of the curve whose identifiers stand in `prefix`.
fn ec_key(prefix: &str, x: &str, y: &str) -> PublicKey {
    use x509_parser::asn1_rs::FromDer;
    let der = [unhex(prefix), unbase(x), unbase(y)].concat();
    let (_, info) = x509_parser::x509::SubjectPublicKeyInfo::from_der(&der).unwrap();
    PublicKey::read(&info).unwrap()
}

const P256: &str = "3059301306072a8648ce3d020106082a8648ce3d03010703420004";
const P521: &str = "30819b301006072a8648ce3d020106052b810400230381860004";
const CLAIMS: &str = "eyJpc3MiOiJqb2UiLA0KICJleHAiOjEzMDA4MTkzODAsDQogImh0dHA6Ly9leGFtcGxlLmNvbS9pc19yb290Ijp0cnVlfQ";
const A2_MODULUS: &str = "ofgWCuLjybRlzo0tZWJjNiuSfb4p4fAkd_wWJcyQoTbji9k0l8W26mPddxHmfHQp-Vaw-4qPCJrcS2mJPMEzP1Pt0Bm4d4QlL-yRT-SFd2lZS-pCgNMsD1W_YpRPEwOWvG6b32690r2jZ47soMZo9wGzjb_7OMg0LOL-bSf63kpaSHSXndS5z5rexMdbBYUsLA9e-KXBdQOS-UTo7WTBEMa2R2CapHg665xsmtdVMTBQY4uDZlxvb3qCo5ZwKh9kG4LT6_I5IhlJH7aGhyxXFvUK-DWNmoudF8NAco9_h9iaGNj8q2ethFkMLs91kzk2PAcDTW9gb54h4FRWyuXpoQ";

/// The key of RFC 7515 A.2 as a SubjectPublicKeyInfo.
fn a2_key() -> PublicKey {
    use x509_parser::asn1_rs::FromDer;
    let der = [
        unhex("30820122300d06092a864886f70d01010105000382010f003082010a0282010100"),
        unbase(A2_MODULUS),
        unhex("0203010001"),
    ]
    .concat();
    let (_, info) = x509_parser::x509::SubjectPublicKeyInfo::from_der(&der).unwrap();
    PublicKey::read(&info).unwrap()
}

fn a3_key() -> PublicKey {
    ec_key(P256, "f83OJ3D2xF1Bg8vub9tLe1gHMzV76e8Tus9uPHvRVEU", "x_FEzRu9m36HLN_tue659LNpXW6pCyStikYjKIWI5a0")
}

#[test]
fn rfc_7515_appendix_a_2_to_a_4() {
    let a4 = ec_key(
        P521,
        "AekpBQ8ST8a8VcfVOTNl353vSrDCLLJXmPk06wTjxrrjcBpXp5EOnYG_NjFZ6OvLFV1jSfS9tsz4qUxcWceqwQGk",
        "ADSmRA43Z1DSNx_RvcLI87cdL07l6jQyyBXMoxVg_l2Th-x3S1WDhjDly79ajL4Kkd0AZMaZmh9ubmf63e3kyMj2",
    );
    let vectors = [
        (
            Algorithm::Rs256,
            a2_key(),
            "eyJhbGciOiJSUzI1NiJ9",
            CLAIMS,
            "cC4hiUPoj9Eetdgtv3hF80EGrhuB__dzERat0XF9g2VtQgr9PJbu3XOiZj5RZmh7AAuHIm4Bh-0Qc_lF5YKt_O8W2Fp5jujGbds9uJdbF9CUAr7t1dnZcAcQjbKBYNX4BAynRFdiuB--f_nZLgrnbyTyWzO75vRK5h6xBArLIARNPvkSjtQBMHlb1L07Qe7K0GarZRmB_eSN9383LcOLn6_dO--xi12jzDwusC-eOkHWEsqtFZESc6BfI7noOPqvhJ1phCnvWh6IeYI2w9QOYEUipUTI8np6LbgGY9Fs98rqVt5AXLIhWkWywlVmtVrBp0igcN_IoypGlUPQGe77Rw",
        ),
        (
            Algorithm::Es256,
            a3_key(),
            "eyJhbGciOiJFUzI1NiJ9",
            CLAIMS,
            "DtEhU3ljbEg8L38VWAfUAqOyKAM6-Xx-F4GawxaepmXFCgfTjDxw5djxLa8ISlSApmWQxfKTUJqPP3-Kg6NU1Q",
        ),
        (
            Algorithm::Es512,
            a4,
            "eyJhbGciOiJFUzUxMiJ9",
            "UGF5bG9hZA",
            "AdwMgeerwtHoh-l192l60hp9wAHZFVJbLfD_UxMi70cwnZOYaRI1bKPWROc-mZZqwqT2SI-KGDKB34XO0aw_7XdtAG8GaSwFKdCAPZgoXD2YBJZCPEX3xKpRwcdOO8KpEHwJjyqOgzDO7iKvU8vcnwNrmxYbSW9ERBXukOXolLzeO_Jn",
        ),
    ];
    for (algorithm, key, protected, payload, signature) in &vectors {
        let input = signing_input(protected, &unbase(payload));
        assert_eq!(input, format!("{protected}.{payload}").into_bytes());
        let signature = unbase(signature);
        assert!(algorithm.verifies(key, &input, &signature), "{algorithm:?}");
        for other in Algorithm::ALL.iter().filter(|other| *other != algorithm) {
            assert!(!other.verifies(key, &input, &signature), "{other:?} for {algorithm:?}");
        }
        for (_, other, ..) in vectors.iter().filter(|vector| vector.1 != *key) {
            assert!(!algorithm.verifies(other, &input, &signature));
        }
    }
}

fn jcs(text: &str) -> String {
    String::from_utf8(write(&read(text.as_bytes(), 1 << 20).unwrap(), Style::Jcs)).unwrap()
}

#[test]
fn rfc_8785_sections_3_2_2_and_3_2_3() {
    let sample = r#"{"numbers": [333333333.33333329, 1E30, 4.50, 2e-3, 0.000000000000000000000000001],
        "string": "\u20ac$\u000F\u000aA'\u0042\u0022\u005c\\\"\/", "literals": [null, true, false]}"#;
    let wanted = r#"{"literals":[null,true,false],"numbers":[333333333.3333333,1e+30,4.5,0.002,1e-27],"string":"€$\u000f\nA'B\"\\\\\"/"}"#;
    assert_eq!(jcs(sample), wanted);
    let names = r#"{"\u20ac": "Euro Sign", "\r": "Carriage Return", "\ufb33": "Hebrew Letter Dalet With Dagesh", "1": "One",
        "\ud83d\ude00": "Emoji: Grinning Face", "\u0080": "Control", "\u00f6": "Latin Small Letter O With Diaeresis"}"#;
    let sorted = jcs(names);
    let at = |word: &str| sorted.find(word).unwrap();
    let order = ["Carriage Return", "One", "Control", "Latin Small", "Euro Sign", "Emoji", "Hebrew"];
    assert!(order.windows(2).all(|pair| at(pair[0]) < at(pair[1])), "{sorted}");
    assert_eq!(
        jcs(r#"{"1":{"f":{"f":"hi","F":5},"\n":56.0},"10":{},"":"empty","a":{},"111":[{}],"A":{}}"#),
        r#"{"":"empty","1":{"\n":56,"f":{"F":5,"f":"hi"}},"10":{},"111":[{}],"A":{},"a":{}}"#
    );
}

#[test]
fn rfc_8785_appendix_b_numbers() {
    for (bits, text) in [
        (0x0000_0000_0000_0000_u64, "0"),
        (0x8000_0000_0000_0000, "0"),
        (0x0000_0000_0000_0001, "5e-324"),
        (0x8000_0000_0000_0001, "-5e-324"),
        (0x7fef_ffff_ffff_ffff, "1.7976931348623157e+308"),
        (0xffef_ffff_ffff_ffff, "-1.7976931348623157e+308"),
        (0x4340_0000_0000_0000, "9007199254740992"),
        (0xc340_0000_0000_0000, "-9007199254740992"),
        (0x4430_0000_0000_0000, "295147905179352830000"),
        (0x44b5_2d02_c7e1_4af5, "9.999999999999997e+22"),
        (0x44b5_2d02_c7e1_4af6, "1e+23"),
        (0x44b5_2d02_c7e1_4af7, "1.0000000000000001e+23"),
        (0x444b_1ae4_d6e2_ef4e, "999999999999999700000"),
        (0x444b_1ae4_d6e2_ef4f, "999999999999999900000"),
        (0x444b_1ae4_d6e2_ef50, "1e+21"),
        (0x3eb0_c6f7_a0b5_ed8c, "9.999999999999997e-7"),
        (0x3eb0_c6f7_a0b5_ed8d, "0.000001"),
        (0x41b3_de43_5555_5553, "333333333.3333332"),
        (0x41b3_de43_5555_5554, "333333333.33333325"),
        (0x41b3_de43_5555_5555, "333333333.3333333"),
        (0x41b3_de43_5555_5556, "333333333.3333334"),
        (0x41b3_de43_5555_5557, "333333333.33333343"),
        (0xbecb_f647_612f_3696, "-0.0000033333333333333333"),
        (0x4314_3ff3_c1cb_0959, "1424953923781206.2"),
    ] {
        let number = f64::from_bits(bits);
        assert_eq!(String::from_utf8(write(&Value::Number(number), Style::Jcs)).unwrap(), text, "{bits:x}");
        assert_eq!(read(text.as_bytes(), 99), Ok(Value::Number(if number == 0.0 { 0.0 } else { number })), "{bits:x}");
    }
}

#[test]
fn kat_1_is_verified_and_says_who_signed() {
    let kat = Kat::read();
    let Verdict::Verified(verified) = judge(&kat.signed(), &kat.bundle()) else { panic!("not verified") };
    let [good] = verified.good() else { panic!("{verified:?}") };
    assert_eq!(good.identity.as_str(), "spiffe://example.org/ns/team1/sa/weather");
    assert_eq!(good.identity.trust_domain(), &domain("example.org"));
    assert_eq!((good.profile, good.algorithm, good.entry), (Profile::KagentiV2, Algorithm::Es256, 0));
    assert_eq!((good.key_id.as_deref(), good.key_id_differs), (Some("fd1f05edec59d946"), false));
    let leaf = base64::engine::general_purpose::STANDARD.decode(kat.text("leaf")).unwrap();
    assert_eq!(key_id(&leaf), "fd1f05edec59d946");
    assert!(good.leaf.starts_with("fd1f05edec59d946"));
    assert_eq!((good.leaf_from, good.leaf_until), (1_769_904_000, 2_366_841_600));
    assert_eq!(good.authority_until, 2_398_377_600);
    assert_eq!(good.until, 2_366_841_600 + 86_400, "the leaf's end and the tolerance");
    assert_eq!(*good.covered, *kat.text("canonical").as_bytes());
}

/// What keeps a verdict for long keeps no document with it.
#[test]
fn a_digested_verdict_says_the_same_and_holds_a_digest_for_what_is_covered() {
    let kat = Kat::read();
    let whole = judge(&kat.signed(), &kat.bundle());
    let digested = whole.clone().digested();
    let (Verdict::Verified(whole), Verdict::Verified(digested)) = (whole, digested) else { panic!("not verified") };
    let ([one], [other]) = (whole.good(), digested.good()) else { panic!("{digested:?}") };
    assert_eq!(*other.covered, crate::x509::fingerprint(kat.text("canonical").as_bytes()));
    assert_eq!(crate::Good { covered: one.covered.clone(), ..other.clone() }, *one);
    let refused = judge(&kat.with(Vec::new()), &kat.bundle());
    assert_eq!(refused.clone().digested(), refused);
}

#[test]
fn kat_1_derived_negatives() {
    let kat = Kat::read();
    let bundle = kat.bundle();
    let with = |protected: &str, signature: &str| {
        let entry = serde_json::json!({"protected": protected, "signature": signature});
        words(&judge(&kat.with(vec![entry]), &bundle))
    };
    let (protected, signature) = (kat.text("protected"), kat.text("signature"));
    let mut tampered = kat.signed();
    tampered["description"] = "Forecast & alerts".into();
    assert_eq!(words(&judge(&tampered, &bundle)), ["SignatureWrong"]);
    // The last character holds four bits; its neighbours with other trailing bits are not canonical.
    assert_eq!(with(protected, &signature.replace("fAuvg", "fAuvw")), ["SignatureWrong"]);
    assert_eq!(with(protected, &signature.replace("fAuvg", "fAuvh")), ["SignatureMalformed"]);
    let header = String::from_utf8(unbase(protected)).unwrap();
    let encode = |header: &str| URL_SAFE_NO_PAD.encode(header);
    assert_eq!(with(&encode(&header.replace("ES256", "ES384")), signature), ["SignatureMalformed"], "too short");
    let leaf = format!("\"{}\"", kat.text("leaf"));
    assert_eq!(with(&encode(&header.replace(&leaf, &[&*leaf; 4].join(","))), signature), ["ChainTooLong"]);
    let keyless = serde_json::json!({"protected": encode(r#"{"alg":"ES256"}"#), "signature": signature});
    assert_eq!(words(&judge(&kat.with(vec![keyless.clone(), kat.entry()]), &bundle)), ["Verified"]);
    assert_eq!(words(&judge(&kat.with(vec![keyless]), &bundle)), ["NoTrustAnchor"]);
}

#[test]
fn kat_3_rs256_over_the_same_payload() {
    let kat = Kat::read();
    let input = signing_input(kat.text("rs256_protected"), kat.text("canonical").as_bytes());
    let signature = unbase(kat.text("rs256_signature"));
    assert!(Algorithm::Rs256.verifies(&a2_key(), &input, &signature));
    assert!(!Algorithm::Ps256.verifies(&a2_key(), &input, &signature));
    assert!(json(kat.text("card")).is_object());
}
