//! Signed cards. In: bytes, divided by `%%`: a card, then a trust bundle. Laws: nothing panics; what a profile covers is its own canonical form; a
//! card is verified only with a good signature, holds until the second it names, and not without its bundle; words are short.
#![no_main]

use drawbridge_crypto::{Card, Policy, Profile, SpiffeId, Trust, TrustBundle, TrustDomain, Verdict, verify};
use libfuzzer_sys::fuzz_target;

const DIVIDER: &[u8] = b"%%";
/// 15 January 2027: the time of the first inputs.
const NOW: i64 = 1_800_000_000;

fuzz_target!(|data: &[u8]| {
    let at = data.windows(DIVIDER.len()).position(|window| window == DIVIDER);
    let (bytes, bundle) = at.map_or((data, &[][..]), |at| (&data[..at], &data[at + DIVIDER.len()..]));
    if let Some(id) = std::str::from_utf8(bytes).ok().and_then(|text| SpiffeId::read(text).ok()) {
        assert_eq!(SpiffeId::read(id.as_str()).as_ref(), Ok(&id));
    }
    let domain = TrustDomain::read("example.org").expect("it is a trust domain");
    let bundle = TrustBundle::read(bundle, Some(&domain));
    if let Err(fault) = &bundle {
        assert!(fault.to_string().len() < 1024 && !fault.as_str().is_empty());
    }
    let card = match Card::read(bytes) {
        Ok(card) => card,
        Err(fault) => return assert!(fault.to_string().len() < 1024),
    };
    for profile in Profile::ALL {
        if let Ok(form) = card.canonical(*profile) {
            let again = Card::read(&form).expect("a canonical form is a card");
            assert_eq!(again.canonical(*profile).as_ref(), Ok(&form), "{}", profile.as_str());
        }
    }
    let policy = Policy::default();
    assert_eq!(verify(&card, Trust::NeverLoaded, &policy, NOW), Verdict::Unknown);
    let Ok(bundle) = bundle else { return };
    let at = |now| verify(&card, Trust::Loaded { bundle: &bundle, read_at: now }, &policy, now);
    match at(NOW) {
        Verdict::Verified(verified) => {
            assert_eq!(verified.good().len() + verified.refused().len(), card.signatures());
            for good in verified.good() {
                let stands =
                    |now| at(now).verified().is_some_and(|then| then.good().iter().any(|one| one.entry == good.entry));
                assert!(stands(good.until) && !stands(good.until.saturating_add(1)), "{good:?}");
            }
        }
        Verdict::NotVerified(why) => assert!(why.to_string().len() < 4096),
        Verdict::Unknown => panic!("there is a bundle"),
    }
});
