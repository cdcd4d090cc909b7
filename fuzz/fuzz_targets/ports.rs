//! Port lists of annotations. In: any text. Laws: ports are 1…65535 and unique; nothing is lost silently but blanks and
//! repetitions; reading what was written changes nothing; a list behind a list adds what is new, in order.
#![no_main]

use drawbridge::admission::inject::port_list::{join, parse};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    let text = drawbridge_fuzz::text(data);
    let list = parse(text);
    let mut sorted = list.ports.clone();
    sorted.sort_unstable();
    sorted.dedup();
    assert_eq!(sorted.len(), list.ports.len(), "a port stands twice");
    assert!(!sorted.contains(&0), "0 is no port");

    for entry in text.split(',').map(str::trim).filter(|entry| !entry.is_empty()) {
        let as_port = entry.parse::<u16>().ok().filter(|port| *port > 0);
        let kept = as_port.is_some_and(|port| list.ports.contains(&port));
        let dropped = list.dropped.iter().any(|dropped| dropped == entry);
        assert!(kept != dropped, "{entry:?}: kept {kept}, dropped {dropped}");
    }
    assert!(list.dropped.iter().all(|entry| !entry.is_empty() && !entry.contains(',')));
    assert!(list.dropped_text().chars().count() <= 200, "what people are shown is short");

    let again = parse(&join(&list.ports));
    assert_eq!(again.ports, list.ports);
    assert!(again.dropped.is_empty());

    let behind = parse(&format!("{text},8080,{text}"));
    let mut expected = list.ports.clone();
    if !expected.contains(&8080) {
        expected.push(8080);
    }
    assert_eq!(behind.ports, expected);
});
