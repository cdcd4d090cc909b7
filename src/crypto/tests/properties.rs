//! Laws over all inputs: a changed byte is noticed, order is not, nothing panics.

use std::collections::BTreeMap;

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use proptest::collection::{btree_map, vec};
use proptest::prelude::*;

use super::{Kat, NOW, card, judge, loaded};
use crate::json::{self, Style, Value, write};
use crate::{Card, Policy, Profile, SpiffeId, Trust, TrustBundle, Verdict, verify_bytes};

fn verdict(bytes: &[u8], bundle: &TrustBundle) -> Verdict {
    verify_bytes(bytes, loaded(bundle), &Policy::default(), NOW)
}

#[test]
fn any_changed_byte_of_the_canonical_card_is_noticed() {
    let kat = Kat::read();
    let bundle = kat.bundle();
    let canonical = kat.text("canonical").as_bytes();
    let tail = format!(r#","signatures":[{}]}}"#, kat.entry());
    let whole = |body: &[u8]| [&body[..body.len() - 1], tail.as_bytes()].concat();
    assert!(verdict(&whole(canonical), &bundle).verified().is_some());
    for at in 0..canonical.len() - 1 {
        for mask in [1_u8 << (at % 7), 0x20] {
            let mut changed = canonical.to_vec();
            changed[at] ^= mask;
            assert!(verdict(&whole(&changed), &bundle).verified().is_none(), "byte {at} with {mask}");
        }
    }
}

#[test]
fn any_changed_character_of_an_entry_is_noticed() {
    let kat = Kat::read();
    let bundle = kat.bundle();
    for part in ["protected", "signature"] {
        let text = kat.text(part);
        for at in 0..text.len() {
            for other in [['A', '='], ['z', ' '], ['-', '_']][at % 3] {
                if text[at..].starts_with(other) {
                    continue;
                }
                let mut entry = kat.entry();
                entry[part] = format!("{}{other}{}", &text[..at], &text[at + 1..]).into();
                // Header members that decide nothing are signed, too.
                assert!(judge(&kat.with(vec![entry]), &bundle).verified().is_none(), "{part} at {at} with {other}");
            }
        }
    }
}

/// JSON of any kind, with names that collide with the schema's now and then.
fn any_json() -> impl Strategy<Value = serde_json::Value> {
    let leaf = prop_oneof![
        Just(serde_json::Value::Null),
        any::<bool>().prop_map(Into::into),
        any::<f64>().prop_filter("finite", |number| number.is_finite()).prop_map(Into::into),
        any::<i32>().prop_map(Into::into),
        any::<String>().prop_map(Into::into),
        Just("".into()),
    ];
    leaf.prop_recursive(4, 40, 5, |inner| {
        prop_oneof![
            vec(inner.clone(), 0..5).prop_map(Into::into),
            btree_map(any::<String>(), inner, 0..5)
                .prop_map(|members| serde_json::Value::Object(members.into_iter().collect())),
        ]
    })
}

fn any_card() -> impl Strategy<Value = serde_json::Value> {
    let text = || prop_oneof![Just(String::new()), any::<String>()];
    let skill = (text(), vec(text(), 0..3)).prop_map(|(id, tags)| serde_json::json!({"id": id, "tags": tags}));
    let params = btree_map(any::<String>(), any_json(), 0..4);
    (text(), text(), vec(skill, 0..3), vec(text(), 0..3), params, any::<Option<bool>>(), any_json()).prop_map(
        |(name, url, skills, modes, params, flag, unknown)| {
            let params: BTreeMap<String, serde_json::Value> = params;
            serde_json::json!({
                "name": name, "url": url, "skills": skills, "defaultInputModes": modes, "unknown": unknown,
                "capabilities": {"streaming": flag, "extensions": [{"required": flag, "params": params}]},
            })
        },
    )
}

/// `value` with its members in reverse order and spaces everywhere.
fn shuffled(value: &serde_json::Value, out: &mut String) {
    match value {
        serde_json::Value::Array(list) => {
            out.push_str(" [ ");
            for (at, element) in list.iter().enumerate() {
                out.push_str(if at > 0 { " ,\t" } else { "" });
                shuffled(element, out);
            }
            out.push_str("\n]");
        }
        serde_json::Value::Object(members) => {
            out.push_str("\r\n{ ");
            for (at, (name, member)) in members.iter().rev().enumerate() {
                out.push_str(if at > 0 { " , " } else { "" });
                out.push_str(&serde_json::Value::from(name.as_str()).to_string());
                out.push_str(" : ");
                shuffled(member, out);
            }
            out.push_str(" } ");
        }
        other => out.push_str(&other.to_string()),
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 96, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn case_68_order_space_and_unknown_members_change_nothing(document in any_card()) {
        let mut text = String::new();
        shuffled(&document, &mut text);
        let mut without = document.clone();
        without.as_object_mut().unwrap().remove("unknown");
        let (one, other) = (card(&document), Card::read(text.as_bytes()).unwrap());
        for profile in Profile::ALL {
            prop_assert_eq!(one.canonical(*profile), other.canonical(*profile));
            prop_assert_eq!(one.canonical(*profile), card(&without).canonical(*profile));
        }
    }

    #[test]
    fn the_canonical_form_of_a_canonical_form_is_itself(document in any_card()) {
        for profile in Profile::ALL {
            if let Ok(bytes) = card(&document).canonical(*profile) {
                prop_assert_eq!(Card::read(&bytes).unwrap().canonical(*profile), Ok(bytes.clone()));
            }
        }
    }

    #[test]
    fn what_is_written_is_read_the_same_by_us_and_by_serde(document in any_json()) {
        let read = json::read(document.to_string().as_bytes(), 1 << 20).unwrap();
        for style in [Style::Jcs, Style::Go] {
            let bytes = write(&read, style);
            let again = json::read(&bytes, 1 << 20).unwrap();
            prop_assert_eq!(&write(&again, style), &bytes);
            prop_assert!(serde_json::from_slice::<serde_json::Value>(&bytes).is_ok());
        }
    }

    #[test]
    fn what_we_read_serde_reads_and_the_other_way_round(text in "[\\[\\]{}\",:0-9eE.+ a\\\\u-]{0,24}") {
        let ours = json::read(text.as_bytes(), 1 << 20);
        let theirs = serde_json::from_str::<serde_json::Value>(&text);
        match (&ours, &theirs) {
            (Ok(_), Ok(_)) | (Err(_), Err(_)) | (Err(json::JsonFault::Duplicate { .. }), Ok(_)) => {}
            _ => prop_assert!(false, "{text:?}: {ours:?}, {theirs:?}"),
        }
    }

    #[test]
    fn numbers_keep_their_bits(bits in any::<u64>()) {
        let number = f64::from_bits(bits);
        prop_assume!(number.is_finite() && number != 0.0);
        let text = write(&Value::Number(number), Style::Jcs);
        prop_assert_eq!(json::read(&text, 99), Ok(Value::Number(number)));
    }

    #[test]
    fn rubbish_is_refused_without_a_panic(bytes in vec(any::<u8>(), 0..400), text in any::<String>()) {
        let kat = Kat::read();
        let bundle = kat.bundle();
        prop_assert!(verdict(&bytes, &bundle).verified().is_none());
        let encoded = URL_SAFE_NO_PAD.encode(&bytes);
        for (protected, signature) in [(encoded.as_str(), kat.text("signature")), (kat.text("protected"), encoded.as_str()), (&text, &text)] {
            let entry = serde_json::json!({"protected": protected, "signature": signature});
            prop_assert!(judge(&kat.with(vec![entry]), &bundle).verified().is_none());
        }
        prop_assert!(TrustBundle::read(&bytes, None).is_err());
        prop_assert!(TrustBundle::read(text.as_bytes(), None).is_err());
        let pem = format!("-----BEGIN CERTIFICATE-----{encoded}-----END CERTIFICATE-----");
        prop_assert!(TrustBundle::read(pem.as_bytes(), None).is_err());
    }

    #[test]
    fn a_changed_byte_of_a_certificate_is_refused_without_a_panic(at in 0_usize..528, to in any::<u8>()) {
        let kat = Kat::read();
        let mut der = base64::engine::general_purpose::STANDARD.decode(kat.text("leaf")).unwrap();
        let at = at % der.len();
        prop_assume!(der[at] != to);
        der[at] = to;
        let x5c = base64::engine::general_purpose::STANDARD.encode(&der);
        let header = String::from_utf8(URL_SAFE_NO_PAD.decode(kat.text("protected")).unwrap()).unwrap();
        let protected = URL_SAFE_NO_PAD.encode(header.replace(kat.text("leaf"), &x5c));
        let entry = serde_json::json!({"protected": protected, "signature": kat.text("signature")});
        prop_assert!(judge(&kat.with(vec![entry]), &kat.bundle()).verified().is_none());
    }

    #[test]
    fn a_card_is_verified_exactly_when_an_entry_is_good_in_any_order(kinds in vec(0_usize..4, 0..6)) {
        let kat = Kat::read();
        let bundle = kat.bundle();
        let entry = |kind: &usize| match kind {
            0 => kat.entry(),
            1 => serde_json::json!({"protected": kat.text("rs256_protected"), "signature": kat.text("rs256_signature")}),
            2 => serde_json::json!({"protected": kat.text("protected"), "signature": kat.text("signature").replace('8', "9")}),
            _ => serde_json::json!(null),
        };
        let mut entries: Vec<_> = kinds.iter().map(entry).collect();
        let one = judge(&kat.with(entries.clone()), &bundle);
        entries.reverse();
        let other = judge(&kat.with(entries), &bundle);
        prop_assert_eq!(one.verified().is_some(), kinds.contains(&0));
        prop_assert_eq!(one.verified().is_some(), other.verified().is_some());
        if let (Some(one), Some(other)) = (one.verified(), other.verified()) {
            prop_assert_eq!(&one.best(None).unwrap().identity, &other.best(None).unwrap().identity);
            prop_assert_eq!(one.good().len() + one.refused().len(), kinds.len());
        }
    }

    #[test]
    fn an_id_that_is_read_is_written_as_it_was(text in "spiffe://[a-zA-Z0-9._:@-]{0,8}(/[a-zA-Z0-9._%?#-]{0,5}){0,3}") {
        if let Ok(id) = SpiffeId::read(&text) {
            let grammar = |part: &str, upper: bool| !part.is_empty() && part.chars().all(|char| {
                char.is_ascii_lowercase() || char.is_ascii_digit() || "._-".contains(char) || (upper && char.is_ascii_uppercase())
            });
            prop_assert_eq!(id.as_str(), text.as_str());
            let mut parts = text["spiffe://".len()..].split('/');
            prop_assert!(grammar(parts.next().unwrap(), false));
            prop_assert!(parts.all(|part| grammar(part, true) && part != "." && part != ".."));
        }
    }

    #[test]
    fn without_a_bundle_nothing_is_ever_verified(document in any_card()) {
        let verdict = verify_bytes(document.to_string().as_bytes(), Trust::NeverLoaded, &Policy::default(), NOW);
        prop_assert_eq!(verdict, Verdict::Unknown);
    }
}
