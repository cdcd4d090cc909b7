//! Cases 65 to 79: what each profile covers and how it is written.

use super::{Kat, card, json};
use crate::json::{Style, Value, write};
use crate::{Card, CardFault, JsonFault, Profile, ProfileFault};

fn hex_of(bytes: &[u8]) -> String {
    crate::x509::hex(&crate::x509::fingerprint(bytes))
}

const KAGENTI: [Profile; 2] = [Profile::KagentiV1, Profile::KagentiV2];

fn form(document: &str, profile: Profile) -> String {
    let card = Card::read(document.as_bytes()).unwrap();
    String::from_utf8(card.canonical(profile).unwrap()).unwrap()
}

#[test]
fn case_65_kat_1() {
    let kat = Kat::read();
    for profile in KAGENTI {
        let bytes = card(&kat.signed()).canonical(profile).unwrap();
        assert_eq!(String::from_utf8(bytes.clone()).unwrap(), kat.text("canonical"));
        assert_eq!(hex_of(&bytes), "6666bf4bdee63413997a18d4a60f6df636c77e7c5962c28a3f424dfb586d9501");
    }
}

#[test]
fn case_66_kat_2() {
    let document = r#"{"name":"Weather Agent","description":"","version":"1.0.0",
        "supportedInterfaces":[{"url":"http://weather-agent.team1.svc.cluster.local:8000/","protocolBinding":"JSONRPC","protocolVersion":"1.0"}],
        "capabilities":{"streaming":true,"pushNotifications":false,
            "extensions":[{"uri":"https://example.org/ext","description":"","required":false,"params":{"zero":0,"empty":"","list":[]}}]},
        "defaultInputModes":["text/plain"],"defaultOutputModes":["text/plain"],
        "skills":[{"id":"w","name":"Wx","description":"Café & more","tags":[],"examples":[]}]}"#;
    for (profile, sha) in [
        (Profile::A2aSdk1, "9e6c223a9a4c425e48cd344975a8576b0ebcf6f83146011b50fe7d68ed390734"),
        (Profile::KagentiV1, "05a0f8d049c0ff54725b93b7524733adb1b4907ccfdbe7f5e2b6efedbce316f7"),
        (Profile::KagentiV2, "018ae31ba3bc9ba7c25686af410baff6b1ff27febc5dd578328fa1f8cf966504"),
    ] {
        let text = form(document, profile);
        assert_eq!(hex_of(text.as_bytes()), sha, "{}: {text}", profile.as_str());
    }
}

#[test]
fn case_67_signatures_are_not_covered() {
    let kat = Kat::read();
    for profile in Profile::ALL {
        assert_eq!(form(kat.text("card"), *profile), form(&kat.signed().to_string(), *profile));
    }
}

#[test]
fn go_writes_the_same_for_kagenti() {
    let vectors = json(include_str!("vectors/kagenti.json"));
    for vector in vectors["cases"].as_array().unwrap() {
        let document = vector["document"].as_str().unwrap();
        assert_eq!(form(document, Profile::KagentiV1), vector["v1"].as_str().unwrap(), "v1: {document}");
        assert_eq!(form(document, Profile::KagentiV2), vector["v2"].as_str().unwrap(), "v2: {document}");
    }
}

#[test]
fn the_sdk_writes_the_same_for_what_it_serves() {
    let vectors = json(include_str!("vectors/a2a_sdk.json"));
    for vector in vectors["cases"].as_array().unwrap() {
        let text = form(vector["document"].as_str().unwrap(), Profile::A2aSdk1);
        assert_eq!(text, vector["canonical"].as_str().unwrap(), "{}", vector["name"]);
    }
}

#[test]
fn cases_69_to_77_one_by_one() {
    let sdk = Profile::A2aSdk1;
    let (v1, v2) = (Profile::KagentiV1, Profile::KagentiV2);
    for (case, document, profile, wanted) in [
        (
            69,
            r#"{"name":"x","capabilities":{"streaming":false}}"#,
            v2,
            r#"{"capabilities":{"streaming":false},"name":"x"}"#,
        ),
        (69, r#"{"name":"x","capabilities":{}}"#, v2, r#"{"name":"x"}"#),
        (
            69,
            r#"{"name":"x","capabilities":{"streaming":false}}"#,
            sdk,
            r#"{"capabilities":{"streaming":false},"name":"x"}"#,
        ),
        (70, r#"{"name":"x","provider":{"organization":"","url":""}}"#, v1, r#"{"name":"x"}"#),
        (71, r#"{"name":"Q&A <Agent>"}"#, v2, r#"{"name":"Q\u0026A \u003cAgent\u003e"}"#),
        (71, r#"{"name":"Q&A <Agent>"}"#, sdk, r#"{"name":"Q&A <Agent>"}"#),
        (72, r#"{"description":"\u2028"}"#, v2, r#"{"description":"\u2028"}"#),
        (72, r#"{"description":"\u2028"}"#, sdk, "{\"description\":\"\u{2028}\"}"),
        (73, r#"{"name":"\u00e9 \u2013 \ud83d\ude00"}"#, v2, r#"{"name":"é – 😀"}"#),
        (73, r#"{"name":"\u00e9 \u2013 \ud83d\ude00"}"#, sdk, r#"{"name":"é – 😀"}"#),
        (74, r#"{"defaultInputModes":["","text"]}"#, v1, r#"{"defaultInputModes":["","text"]}"#),
        (74, r#"{"defaultInputModes":["","text"]}"#, v2, r#"{"defaultInputModes":["text"]}"#),
        (75, r#"{"skills":[{}]}"#, v1, r#"{"skills":[{}]}"#),
        (75, r#"{"name":"x","skills":[{}]}"#, v2, r#"{"name":"x"}"#),
        (77, r#"{"name":"x","unknown":{"name":"y"},"Name":"z"}"#, v2, r#"{"name":"x"}"#),
    ] {
        assert_eq!(form(document, profile), wanted, "case {case}, {}", profile.as_str());
    }
    let numbers = r#"{"capabilities":{"extensions":[{"params":{"n":1.0,"z":-0.0,"e":1e21,"s":1e-7}}]}}"#;
    let wanted = r#"{"capabilities":{"extensions":[{"params":{"e":1e+21,"n":1,"s":1e-7,"z":-0}}]}}"#;
    assert_eq!(form(numbers, v2), wanted, "case 76");
    assert_eq!(write(&Value::Number(-0.0), Style::Jcs), b"0", "case 76");
    let wanted = r#"{"capabilities":{"extensions":[{"params":{"e":1e+21,"n":1,"s":1e-7,"z":0}}]}}"#;
    assert_eq!(form(numbers, sdk), wanted, "case 76");
}

#[test]
fn case_78_duplicate_members_are_refused_wherever_they_stand() {
    for document in [
        r#"{"name":"a","name":"a"}"#,
        r#"{"name":"a","n\u0061me":"b"}"#,
        r#"{"unknown":[{"x":{"y":1,"y":1}}]}"#,
        r#"{"signatures":[],"signatures":[]}"#,
    ] {
        let fault = Card::read(document.as_bytes()).unwrap_err();
        assert!(matches!(fault, CardFault::Json(JsonFault::Duplicate { .. })), "{document}: {fault}");
    }
    let hostile = format!(r#"{{"\u001b[2J\u202e{0}":1,"\u001b[2J\u202e{0}":1}}"#, "x".repeat(500));
    let words = Card::read(hostile.as_bytes()).unwrap_err().to_string();
    assert!(words.len() < 300 && !words.contains(['\u{1b}', '\u{202e}']), "{words:?}");
}

#[test]
fn case_79_depth_and_size_are_bounded() {
    let nested = |depth: usize| format!(r#"{{"a":{}{}}}"#, "[".repeat(depth), "]".repeat(depth));
    assert!(Card::read(nested(127).as_bytes()).is_ok());
    let deep = Card::read(nested(200).as_bytes()).unwrap_err();
    assert!(matches!(deep, CardFault::Json(JsonFault::TooDeep { .. })), "{deep}");
    assert!(matches!(Card::read(nested(500_000).as_bytes()), Err(CardFault::Json(JsonFault::TooDeep { .. }))));
    let many = format!(r#"{{"a":[{}0]}}"#, "0,".repeat(70_000));
    assert_eq!(Card::read(many.as_bytes()).unwrap_err(), CardFault::Json(JsonFault::TooManyValues));
    let large = format!(r#"{{"a":"{}"}}"#, "x".repeat(1 << 20));
    assert!(matches!(Card::read(large.as_bytes()), Err(CardFault::Json(JsonFault::TooLarge { .. }))));
}

#[test]
fn hostile_json_is_refused() {
    let utf16: Vec<u8> = r#"{"a":1}"#.encode_utf16().flat_map(u16::to_le_bytes).collect();
    let documents: [&[u8]; 24] = [
        b"",
        b"null",
        b"[]",
        b"{",
        b"{}{}",
        b"{\"a\":1,}",
        b"{'a':1}",
        b"{a:1}",
        b"{\"a\":01}",
        b"{\"a\":+1}",
        b"{\"a\":.5}",
        b"{\"a\":1.}",
        b"{\"a\":1e}",
        b"{\"a\":NaN}",
        b"{\"a\":Infinity}",
        b"{\"a\":1e400}",
        b"{\"a\":\"\x00\"}",
        b"{\"a\":\"\xff\"}",
        b"{\"a\":\"\\ud800\"}",
        b"{\"a\":\"\\udc00\\ud800\"}",
        b"{\"a\":\"\\ud800\\u0041\"}",
        b"{\"a\":\"\\x41\"}",
        b"\xef\xbb\xbf{\"a\":1}",
        b"\x1f\x8b\x08\x00",
    ];
    for document in documents.into_iter().chain([utf16.as_slice()]) {
        assert!(Card::read(document).is_err(), "{}", String::from_utf8_lossy(document));
    }
    let digits = format!(r#"{{"a":{}}}"#, "9".repeat(400));
    assert!(matches!(Card::read(digits.as_bytes()), Err(CardFault::Json(JsonFault::NumberRange { .. }))));
    for signatures in ["{}", "1", "\"\"", "true"] {
        let document = format!(r#"{{"signatures":{signatures}}}"#);
        assert_eq!(Card::read(document.as_bytes()).unwrap_err(), CardFault::SignaturesNotAList);
    }
    assert_eq!(Card::read(br#"{"signatures":null}"#).unwrap().signatures(), 0);
}

#[test]
fn a_known_member_of_another_type_has_no_canonical_form() {
    for (document, profile) in [
        (r#"{"version":1}"#, Profile::KagentiV2),
        (r#"{"capabilities":[]}"#, Profile::KagentiV2),
        (r#"{"capabilities":{"streaming":"true"}}"#, Profile::KagentiV1),
        (r#"{"skills":{}}"#, Profile::KagentiV1),
        (r#"{"skills":["x"]}"#, Profile::A2aSdk1),
        (r#"{"defaultInputModes":[1]}"#, Profile::A2aSdk1),
        (r#"{"defaultInputModes":[null]}"#, Profile::A2aSdk1),
        (r#"{"capabilities":{"extensions":[{"params":[]}]}}"#, Profile::A2aSdk1),
        (r#"{"securitySchemes":{"a":1}}"#, Profile::A2aSdk1),
    ] {
        let card = Card::read(document.as_bytes()).unwrap();
        assert!(matches!(card.canonical(profile), Err(ProfileFault::WrongType { .. })), "{document}");
    }
    let two = r#"{"securitySchemes":{"a":{"mtlsSecurityScheme":{},"apiKeySecurityScheme":{}}}}"#;
    let fault = Card::read(two.as_bytes()).unwrap().canonical(Profile::A2aSdk1).unwrap_err();
    assert_eq!(fault, ProfileFault::Alternatives { path: "securitySchemes".into() });
    assert_eq!(Card::read(b"{}").unwrap().canonical(Profile::A2aSdk1), Err(ProfileFault::Nothing));
}

/// Members by profile: a covered one changes the bytes, an uncovered one stands nowhere in them.
#[test]
fn members_by_profiles_covered_or_not_published() {
    let (kagenti, sdk) = (&KAGENTI[..], &[Profile::A2aSdk1][..]);
    for (member, value, covering) in [
        ("name", r#""canary""#, Profile::ALL),
        ("description", r#""canary""#, Profile::ALL),
        ("version", r#""canary""#, Profile::ALL),
        ("documentationUrl", r#""canary""#, Profile::ALL),
        ("iconUrl", r#""canary""#, Profile::ALL),
        ("provider", r#"{"url":"canary"}"#, Profile::ALL),
        ("capabilities", r#"{"extensions":[{"uri":"canary"}]}"#, Profile::ALL),
        ("defaultInputModes", r#"["canary"]"#, Profile::ALL),
        ("defaultOutputModes", r#"["canary"]"#, Profile::ALL),
        ("skills", r#"[{"id":"canary"}]"#, Profile::ALL),
        ("skills", r#"[{"parameters":[{"name":"canary"}]}]"#, kagenti),
        ("skills", r#"[{"securityRequirements":[{"schemes":{"canary":{"list":["x"]}}}]}]"#, sdk),
        ("url", r#""canary""#, kagenti),
        ("supportedInterfaces", r#"[{"url":"canary"}]"#, sdk),
        ("securitySchemes", r#"{"canary":{"mtlsSecurityScheme":{"description":"canary"}}}"#, sdk),
        ("securityRequirements", r#"[{"schemes":{"canary":{"list":["canary"]}}}]"#, sdk),
        ("protocolVersion", r#""canary""#, &[]),
        ("preferredTransport", r#""canary""#, &[]),
        ("additionalInterfaces", r#"[{"url":"canary"}]"#, &[]),
        ("security", r#"[{"canary":[]}]"#, &[]),
        ("unknown", r#""canary""#, &[]),
        ("Name", r#""canary""#, &[]),
        ("signatures", r#"[{"canary":1}]"#, &[]),
    ] {
        let others = if member == "version" { "" } else { r#","version":"1""# };
        for profile in Profile::ALL {
            let text = form(&format!(r#"{{"{member}":{value},"protocolBinding":"x"{others}}}"#), *profile);
            assert_eq!(text.contains("canary"), covering.contains(profile), "{member} by {}: {text}", profile.as_str());
        }
    }
}
