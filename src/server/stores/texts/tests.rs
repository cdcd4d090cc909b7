//! What is kept, and what is over a bound.

use std::sync::Arc;
use std::time::Duration;

use serde_json::json;

use super::*;
use crate::config::bounds::{DEFAULTS, KEPT, LOOKED, TEXT};
use crate::store::Kind;
use crate::store::decode::change_of;

fn defaults(namespace: &str, name: &str, created: u32, yaml: &str) -> Change {
    let metadata = json!({"name": name, "namespace": namespace, "labels": {"kagenti.io/defaults": "true"},
        "creationTimestamp": format!("2026-01-01T00:00:{created:02}Z"), "resourceVersion": "1"});
    change_of(Kind::ConfigMap, &json!({"metadata": metadata, "data": {"config.yaml": yaml}}).to_string()).unwrap()
}

fn gone(change: &Change) -> Change {
    Change { now: None, ..change.clone() }
}

/// Reads everything that may be read; `give` gives texts that are not at hand. How many texts were read.
fn read_all(texts: &mut Texts, now: &mut Duration, give: impl Fn(&Key) -> Option<Arc<Data>>) -> usize {
    let mut count = 0;
    loop {
        let Some(job) = texts.next(*now) else {
            match texts.due() {
                Some(due) if due > *now => *now = due,
                _ => return count,
            }
            continue;
        };
        count += 1;
        let text = job.text.clone().or_else(|| give(&job.key));
        let outcome = text.map(|text| read(&job.key, &job.content, &job.own, &text));
        texts.done((&job.key, &job.content), outcome, (Duration::ZERO, *now));
        assert!(count < 10_000, "it comes to an end");
    }
}

fn bounds(texts: &Texts, namespace: &str) -> Vec<(String, Bound)> {
    let known = texts.known(namespace);
    known.iter().filter_map(|(name, known)| Some((name.to_string(), known.over?))).collect()
}

/// A mapping of `count` keys, each of which is kept at some hundred bytes.
fn wide(count: usize) -> String {
    (0..count).map(|at| format!("k{at}: 1\n")).collect()
}

fn runtime(namespace: &str, yaml: &str) -> Change {
    let metadata = json!({"name": "authbridge-runtime-config", "namespace": namespace});
    change_of(Kind::ConfigMap, &json!({"metadata": metadata, "data": {"config.yaml": yaml}}).to_string()).unwrap()
}

#[test]
fn mend_02_no_text_is_kept_and_what_is_kept_is_bounded() {
    let (mut texts, mut now) = (Texts::new("own".into()), Duration::ZERO);
    texts.apply(&runtime("team", &wide(100)));
    texts.apply(&defaults("team", "a", 1, "spire: disabled\n"));
    assert_eq!(texts.waiting(), 1, "one namespace, whatever it has");
    assert_eq!(read_all(&mut texts, &mut now, |_| None), 2);
    assert_eq!((texts.waiting(), texts.waiting), (0, 0));
    let (small, over) = texts.totals();
    assert!(small > 100 && small < KEPT && over.values().all(|count| *count == 0), "{small}");
    // It says too much: what it said before stays, and is named.
    texts.apply(&runtime("team", &wide(2_000)));
    read_all(&mut texts, &mut now, |_| None);
    assert_eq!(bounds(&texts, "team"), [("authbridge-runtime-config".to_owned(), Bound::Kept)]);
    let known = texts.known("team");
    let base = known["authbridge-runtime-config"].read.as_ref().unwrap().config.clone().unwrap().unwrap();
    assert!(matches!(&*base, crate::config::namespace::Good::Runtime(base) if base.as_object().unwrap().len() == 100));
    assert_eq!(texts.totals().0, small);
    assert_eq!(texts.totals().1[&Bound::Kept], 1);
    assert_eq!(read_all(&mut texts, &mut now, |_| None), 0, "it is not read again and again");
    texts.apply(&gone(&runtime("team", "")));
    texts.apply(&gone(&defaults("team", "a", 1, "")));
    assert_eq!(texts.totals(), (0, BTreeMap::from([(Bound::Kept, 0)])));
    assert!(texts.spaces.is_empty(), "a namespace that says nothing leaves nothing behind");
}

#[test]
fn mend_02_a_thousand_config_maps_cost_what_sixteen_do_and_the_oldest_count() {
    let (mut texts, mut now) = (Texts::new("own".into()), Duration::ZERO);
    let all: Vec<_> =
        (0..1_000).map(|at| defaults("team", &format!("d{:04}", 1_000 - at), at / 20, "spire: auto\n")).collect();
    for one in &all {
        texts.apply(one);
    }
    assert_eq!(read_all(&mut texts, &mut now, |_| None), 16);
    let read = texts.known("team").into_iter().filter(|(_, known)| known.read.is_some());
    let names: Vec<_> = read.map(|(name, _)| name.to_string()).collect();
    assert_eq!((names.len(), &*names[0]), (16, "d0981"), "of those of the first second, the first by name: {names:?}");
    assert_eq!(texts.totals().1[&Bound::Count], 984);
    // Every one goes, in the order in which they came: each leaves room for another, whose text is asked for.
    let give = |_: &Key| Some(Arc::new(Data::from([("config.yaml".to_owned(), "spire: auto\n".to_owned())])));
    for (at, one) in all.iter().enumerate() {
        texts.apply(&gone(one));
        read_all(&mut texts, &mut now, give);
        let left = texts.known("team").values().filter(|known| known.read.is_some()).count();
        assert_eq!(left, 16.min(999 - at));
    }
    assert_eq!(texts.totals(), (0, BTreeMap::from([(Bound::Count, 0)])));
}

#[test]
fn mend_02_a_config_map_that_grows_over_the_bound_keeps_what_it_said() {
    let (mut texts, mut now) = (Texts::new("own".into()), Duration::ZERO);
    let good = defaults("team", "a", 1, "spire: disabled\n");
    texts.apply(&good);
    read_all(&mut texts, &mut now, |_| None);
    let known = texts.known("team").remove("a").unwrap();
    let (before, digest) = (known.read.unwrap(), known.digest);
    let large = format!("spire: auto # {}\n", "x".repeat(TEXT));
    texts.apply(&defaults("team", "a", 1, &large));
    assert_eq!(read_all(&mut texts, &mut now, |_| None), 0);
    let after = texts.known("team");
    assert_eq!((after["a"].over, after["a"].read.clone()), (Some(Bound::Size), Some(before)));
    assert_ne!(after["a"].digest, digest, "the digest is that of the present content");
    texts.apply(&good);
    assert_eq!((bounds(&texts, "team"), read_all(&mut texts, &mut now, |_| None)), (vec![], 0), "it was read before");
}

#[test]
fn mend_02_texts_that_wait_are_bounded_and_asked_for_when_there_is_room() {
    let (mut texts, mut now) = (Texts::new("own".into()), Duration::ZERO);
    let yaml = format!("spire: disabled # {}\n", "x".repeat(TEXT - 100));
    for space in 0..200 {
        texts.apply(&defaults(&format!("n{space}"), "a", 1, &yaml));
        assert!(texts.waiting <= WAITING);
    }
    let give = |_: &Key| Some(Arc::new(Data::from([("config.yaml".to_owned(), yaml.clone())])));
    assert_eq!(read_all(&mut texts, &mut now, give), 200);
    assert_eq!(texts.waiting, 0);
    assert!((0..200).all(|space| texts.known(&format!("n{space}"))["a"].read.is_some()));
}

#[test]
fn one_that_holds_nothing_is_read_like_any_other() {
    let (mut texts, mut now) = (Texts::new("own".into()), Duration::ZERO);
    for (at, name) in ["authbridge-config", "authbridge-runtime-config"].into_iter().enumerate() {
        let object = json!({"metadata": {"name": name, "namespace": "team"}});
        texts.apply(&change_of(Kind::ConfigMap, &object.to_string()).unwrap());
        assert!(texts.known("team")[name].is_waited_for(name));
        assert_eq!(read_all(&mut texts, &mut now, |_| None), 1, "{at}");
        assert!(!texts.known("team")[name].is_waited_for(name));
    }
    let template = |data: serde_json::Value| {
        let object = json!({"metadata": {"name": "authproxy-routes", "namespace": "own"}, "data": data});
        change_of(Kind::ConfigMap, &object.to_string()).unwrap()
    };
    texts.apply(&template(json!({"routes.yaml": "[]"})));
    texts.apply(&template(json!({"routes.yaml": "x".repeat(TEXT)})));
    assert_eq!(texts.templates()["authproxy-routes"].data["routes.yaml"], "[]", "too large: the last one stays");
    texts.apply(&template(json!({})));
    assert!(texts.templates()["authproxy-routes"].data.is_empty());
}

/// At the start of a process nobody knows what it said before: that is another thing than one that is not there.
#[test]
fn a_template_that_was_always_too_large_is_not_taken_for_one_that_is_not_there() {
    for name in keys::WATCHED_CONFIG_MAPS {
        let mut texts = Texts::new("own".into());
        let config_map = |namespace: &str, size: usize| {
            let metadata = json!({"name": name, "namespace": namespace});
            let object = json!({"metadata": metadata, "data": {"k": "x".repeat(size)}});
            change_of(Kind::ConfigMap, &object.to_string()).unwrap()
        };
        assert!(texts.apply(&config_map("own", TEXT)).config, "the next snapshot is made because of it");
        texts.apply(&config_map("team", TEXT));
        let templates = texts.templates();
        assert!(templates.len() == 1 && templates[name].is_too_large(), "{name}: {templates:?}");
        texts.apply(&config_map("own", 1));
        assert_eq!((texts.templates()[name].size(), texts.templates()[name].is_too_large()), (2, false));
        texts.apply(&config_map("own", TEXT));
        assert_eq!(texts.templates()[name].size(), 2, "the last one stays");
        texts.apply(&gone(&config_map("own", 1)));
        assert!(texts.templates().is_empty());
    }
}

/// What kubectl takes for no text is told wherever settings would stand, and counts where a file is mounted.
#[test]
fn keys_of_binary_data_are_known() {
    let (mut texts, mut now) = (Texts::new("own".into()), Duration::ZERO);
    let config_map = |namespace: &str, name: &str, value: &str| {
        let metadata = json!({"name": name, "namespace": namespace, "labels": {"kagenti.io/defaults": "true"}});
        let object = json!({"metadata": metadata, "data": {"a": "x"}, "binaryData": {"config.yaml": value}});
        change_of(Kind::ConfigMap, &object.to_string()).unwrap()
    };
    for name in ["authbridge-runtime-config", "d"] {
        texts.apply(&config_map("team", name, "//4="));
        assert_eq!(read_all(&mut texts, &mut now, |_| None), 1);
        let known = texts.known("team").remove(name).unwrap();
        let config = known.read.as_ref().and_then(|read| read.config.clone()).unwrap();
        assert!(config.unwrap_err().1.contains("binaryData"), "{name}");
        texts.apply(&config_map("team", name, "//8="));
        assert_eq!(read_all(&mut texts, &mut now, |_| None), 1);
        assert_ne!(texts.known("team")[name].digest, known.digest);
    }
    texts.apply(&config_map("own", "authbridge-runtime-config", "//4="));
    let templates = texts.templates();
    let data = &templates["authbridge-runtime-config"].data;
    assert!(data["a"] == "x" && crate::store::decode::wire::binary::has(data, "config.yaml"), "{data:?}");
}

/// Namespaces that leave room leave it to all others: to whoever has waited longest, and to as many as there is room for.
#[test]
fn what_had_no_room_beside_all_other_namespaces_is_read_once_they_leave_some() {
    let (mut texts, mut now) = (Texts::new("own".into()), Duration::ZERO);
    let yaml = wide(50);
    let give = |_: &Key| Some(Arc::new(Data::from([("config.yaml".to_owned(), yaml.clone())])));
    let (small, full) = (runtime("small", "a: 1\n"), runtime("full", &yaml));
    texts.apply(&small);
    read_all(&mut texts, &mut now, |_| None);
    let of_small = texts.totals().0;
    texts.apply(&full);
    read_all(&mut texts, &mut now, |_| None);
    let of_full = texts.totals().0 - of_small;
    assert!(of_small < of_full);
    // As if others had taken everything else.
    texts.kept = KEPT_IN_ALL;
    let late = ["c", "a", "b"].map(|namespace| runtime(namespace, &yaml));
    for (at, one) in late.iter().enumerate() {
        texts.apply(one);
        assert_eq!((read_all(&mut texts, &mut now, give), texts.totals().1[&Bound::Total]), (1, at + 1));
    }
    let is_over =
        |texts: &Texts, namespace: &str| bounds(texts, namespace).iter().any(|(_, over)| *over == Bound::Total);
    assert!(!texts.apply(&gone(&small)).reading, "there is less free than what one of them said");
    assert_eq!(read_all(&mut texts, &mut now, give), 0);
    // It leaves room for one, and with what another left not for two.
    assert!(texts.apply(&gone(&full)).reading);
    assert!(["a", "b", "c"].iter().all(|one| is_over(&texts, one)), "nothing is other than before until it is read");
    assert_eq!((read_all(&mut texts, &mut now, give), texts.crowd.promised()), (1, 0));
    assert_eq!(["a", "b", "c"].map(|one| is_over(&texts, one)), [true, true, false], "the first one");
    assert!(texts.known("c")["authbridge-runtime-config"].read.is_some());
    assert_eq!((texts.totals().0, texts.totals().1[&Bound::Total]), (KEPT_IN_ALL - of_small, 2));
    // One that goes while it has a promise leaves the room to the next.
    assert!(texts.apply(&gone(&late[0])).reading);
    assert_eq!(texts.crowd.promised(), of_full);
    assert!(texts.apply(&gone(&late[1])).reading);
    assert_eq!((read_all(&mut texts, &mut now, give), is_over(&texts, "b")), (1, false));
    assert_eq!((texts.crowd.promised(), texts.crowd.first()), (0, None), "nobody waits");
}

/// One that has changed since is read like any other, and is not waited for twice.
#[test]
fn one_without_room_that_says_less_by_now_waits_no_longer() {
    let (mut texts, mut now) = (Texts::new("own".into()), Duration::ZERO);
    let others = 10_000;
    texts.kept = KEPT_IN_ALL - others;
    texts.apply(&runtime("team", &wide(80)));
    assert_eq!(read_all(&mut texts, &mut now, |_| None), 1);
    assert_eq!(bounds(&texts, "team"), [("authbridge-runtime-config".to_owned(), Bound::Total)]);
    assert!(texts.crowd.first().is_some());
    let less = Data::from([("config.yaml".to_owned(), "a: 1\n".to_owned())]);
    texts.apply(&runtime("team", "a: 1\n"));
    assert_eq!(read_all(&mut texts, &mut now, |_| Some(Arc::new(less.clone()))), 1);
    assert_eq!((bounds(&texts, "team"), texts.crowd.first()), (vec![], None));
}

#[test]
fn a_namespace_whose_templates_are_gone_leaves_nothing_behind() {
    let (mut texts, mut now) = (Texts::new("own".into()), Duration::ZERO);
    let metadata = json!({"name": "pipeline-template-dev", "namespace": "team"});
    let object = json!({"metadata": metadata, "data": {"template.json": r#"{"name": "t", "steps": []}"#}});
    let template = change_of(Kind::ConfigMap, &object.to_string()).unwrap();
    texts.apply(&template);
    assert_eq!((read_all(&mut texts, &mut now, |_| None), texts.entries(false).len()), (1, 1));
    texts.apply(&gone(&template));
    assert!(!texts.spaces.is_empty(), "that it is gone has not been told yet");
    assert_eq!(texts.entries(false).len(), 1);
    assert!(texts.spaces.is_empty() && texts.turns.is_empty());
}

/// What a namespace's ConfigMaps have cost so far, in ConfigMaps that were looked at.
fn visits(texts: &Texts, namespace: &str) -> usize {
    texts.spaces.get(namespace).map_or(0, |space| space.visits.get())
}

/// Everybody waits while a change is taken note of.
#[test]
fn what_a_change_costs_does_not_grow_with_the_config_maps_of_its_namespace() {
    let mut texts = Texts::new("own".into());
    let one = |at: usize| defaults("team", &format!("d{at:05}"), 1, "spire: auto\n");
    // Their bounds, and what of them is to be read: twice those that are looked at, and the next one.
    let most = 2 * (LOOKED * DEFAULTS + 1);
    let mut dearest = 0;
    let mut costs = |texts: &mut Texts, change: &Change| {
        let before = visits(texts, "team");
        texts.apply(change);
        dearest = dearest.max(visits(texts, "team") - before);
    };
    // Half of them come behind all others, half before them.
    for at in 0..10_000 {
        costs(&mut texts, &one(10_000 + at));
        costs(&mut texts, &one(9_999 - at));
    }
    assert_eq!(texts.totals().1[&Bound::Count], 20_000 - DEFAULTS);
    for at in [0, 10, 100, 10_000, 19_999] {
        costs(&mut texts, &defaults("team", &format!("d{at:05}"), 1, "spire: disabled\n"));
        costs(&mut texts, &defaults("team", &format!("d{at:05}"), 1, &"x".repeat(TEXT)));
        costs(&mut texts, &gone(&one(at)));
    }
    assert!(dearest <= most, "{dearest} were looked at because of one change, {most} are the most");
    assert_eq!(texts.totals().1[&Bound::Count], 19_995 - DEFAULTS);
    let before = visits(&texts, "team");
    let known = texts.known("team");
    assert!(visits(&texts, "team") - before <= most && known.len() <= most, "{}", known.len());
    assert_eq!(
        known.values().filter(|known| known.over.is_none()).count(),
        DEFAULTS,
        "those that count are among them"
    );
}

/// Whoever lay behind all others comes to be read in the end.
#[test]
fn whoever_lies_behind_all_others_counts_once_they_are_gone() {
    let (mut texts, mut now) = (Texts::new("own".into()), Duration::ZERO);
    let give = |_: &Key| Some(Arc::new(Data::from([("config.yaml".to_owned(), "spire: auto\n".to_owned())])));
    // Four fill the room for texts, so that the count is never full.
    let [large, small] = [TEXT - 100, 400].map(|length| format!("spire: auto # {}\n", "x".repeat(length)));
    let all: Vec<_> =
        (0..300).map(|at| defaults("team", &format!("d{at:03}"), 1, if at < 4 { &large } else { &small })).collect();
    for one in &all {
        texts.apply(one);
    }
    read_all(&mut texts, &mut now, give);
    let over = |texts: &Texts, bound: Bound| texts.totals().1.get(&bound).copied().unwrap_or_default();
    let looked = LOOKED * DEFAULTS;
    assert_eq!((over(&texts, Bound::Text), over(&texts, Bound::Count)), (looked - 4, 300 - looked));
    for (at, one) in all.iter().enumerate() {
        texts.apply(&gone(one));
        read_all(&mut texts, &mut now, give);
        let counts = texts.known("team").values().filter(|known| known.over.is_none() && known.read.is_some()).count();
        assert_eq!(counts, DEFAULTS.min(299 - at), "after {at}");
    }
    assert!(texts.totals().1.values().all(|count| *count == 0) && texts.spaces.is_empty());
}

/// A projection holds names and digests alone, however long the annotations are.
#[test]
fn mend_02_of_a_config_map_that_nobody_reads_no_annotation_is_kept() {
    let mut texts = Texts::new("own".into());
    for at in 0..100 {
        let metadata = json!({"name": format!("d{at:03}"), "namespace": "team", "labels": {"kagenti.io/defaults": "true"},
            "annotations": {"kagenti.io/content-digest": "x".repeat(250 * 1024)}, "resourceVersion": "1"});
        let object = json!({"metadata": metadata, "data": {"config.yaml": "spire: auto\n"}});
        texts.apply(&change_of(Kind::ConfigMap, &object.to_string()).unwrap());
    }
    assert_eq!(texts.spaces["team"].slots.len(), 100);
    let slots = texts.spaces["team"].slots.values();
    assert!(slots.map(|slot| &slot.seen).all(|seen| seen.written.is_none() && seen.digest.len() == 64));
}
