//! NetworkPolicies as people write them and the API server stores them. In: one JSON document. Laws: whatever it is, it is read or refused with
//! words; how it is spaced means nothing; the one spelling of a policy that can be read can be read as well, and is its own.
#![no_main]

use drawbridge::policy::desired::normal;
use drawbridge::policy::network_policy::NetworkPolicy;
use libfuzzer_sys::fuzz_target;
use serde_json::Value;

fuzz_target!(|data: &[u8]| {
    let Ok(text) = std::str::from_utf8(data) else { return };
    let read = NetworkPolicy::read_text(text, "team");
    if let Err(fault) = &read {
        assert!(!fault.problem.is_empty(), "{fault}");
    }
    let Ok(object) = serde_json::from_str::<Value>(text) else { return };
    let Ok(read) = read else { return };
    let pretty = serde_json::to_string_pretty(&object).expect("a value serialises");
    if let Ok(again) = NetworkPolicy::read_text(&pretty, "team") {
        assert_eq!(again, read);
    }
    let once = normal(&object["spec"]);
    assert_eq!(normal(&once), once, "{object}");
    let mut spelled = object;
    spelled["spec"] = once;
    assert!(NetworkPolicy::read(&spelled, "team").is_ok(), "{spelled}");
});
