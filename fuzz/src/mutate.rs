//! Mutations of JSON documents that stay JSON: values are replaced, moved, doubled and removed anywhere, and the labels
//! and annotations that admission reads are put where it reads them.

use libfuzzer_sys::fuzzer_mutate;
use serde_json::{Map, Value, json};

use crate::words::Vocabulary;

/// A small generator (xorshift): equal seeds give equal documents.
struct Dice(u64);

impl Dice {
    fn below(&mut self, limit: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        usize::try_from(self.0 % (limit.max(1) as u64)).unwrap_or(0)
    }

    fn one_of<'v, T>(&mut self, items: &'v [T]) -> &'v T {
        &items[self.below(items.len())]
    }
}

/// A mutant in place of the first `size` bytes of `data`: behind a byte that chooses, a document that stays JSON, but for one in `bytes` of the
/// seeds, which the fuzzer changes as bytes. Out: how long it is.
pub fn behind_selector(
    data: &mut [u8],
    (size, max_size): (usize, usize),
    (seed, bytes): (u32, u32),
    vocabulary: &Vocabulary,
) -> usize {
    let is_document = size > 1 && seed % bytes != 0;
    match is_document.then(|| json(&data[1..size], seed, vocabulary)).flatten() {
        Some(mutant) if mutant.len() < max_size => {
            data[1..=mutant.len()].copy_from_slice(&mutant);
            mutant.len() + 1
        }
        _ => fuzzer_mutate(data, size, max_size),
    }
}

/// A mutant of the document in `text`; `None` when it is no JSON.
#[must_use]
pub fn json(text: &[u8], seed: u32, vocabulary: &Vocabulary) -> Option<Vec<u8>> {
    let mut document: Value = serde_json::from_slice(text).ok()?;
    let mut dice = Dice((u64::from(seed) << 1 | 1).wrapping_mul(0x9E37_79B9_7F4A_7C15));
    for _ in 0..=dice.below(3) {
        if dice.below(3) == 0 {
            mark(&mut document, vocabulary, &mut dice);
        } else {
            change(&mut document, vocabulary, &mut dice);
        }
    }
    serde_json::to_vec(&document).ok()
}

/// Sets one of the labels or annotations that admission reads.
fn mark(document: &mut Value, vocabulary: &Vocabulary, dice: &mut Dice) {
    let (member, table) =
        if dice.below(2) == 0 { ("labels", vocabulary.labels) } else { ("annotations", vocabulary.annotations) };
    let (key, values) = dice.one_of(table);
    let value = *dice.one_of(values);
    let mut place = document;
    for name in vocabulary.metadata.iter().copied().chain([member]) {
        let Value::Object(map) = place else { return };
        place = map.entry(name).or_insert_with(|| Value::Object(Map::new()));
    }
    if let Value::Object(map) = place {
        map.insert((*key).to_owned(), Value::String(value.to_owned()));
    }
}

/// Changes one value, wherever it stands.
fn change(document: &mut Value, vocabulary: &Vocabulary, dice: &mut Dice) {
    let total = count(document);
    let other = nth(document, dice.below(total)).clone();
    let target = nth_mut(document, dice.below(total));
    match (dice.below(6), target) {
        (0, target) => *target = constant(vocabulary, dice),
        (1, target) => *target = other,
        (2, Value::Object(map)) if !map.is_empty() => {
            let key = map.keys().nth(dice.below(map.len())).cloned().unwrap_or_default();
            map.remove(&key);
        }
        (3, Value::Object(map)) => {
            map.insert((*dice.one_of(vocabulary.members)).to_owned(), other);
        }
        (2 | 4, Value::Array(items)) if !items.is_empty() => {
            items.remove(dice.below(items.len()));
        }
        (3, Value::Array(items)) => items.insert(dice.below(items.len() + 1), other),
        (_, Value::Array(items)) if !items.is_empty() && items.len() < 64 => {
            let again = dice.one_of(items).clone();
            items.insert(dice.below(items.len() + 1), again);
        }
        (_, Value::String(text)) => *text = (*dice.one_of(vocabulary.words)).to_owned(),
        (_, target) => *target = constant(vocabulary, dice),
    }
}

fn constant(vocabulary: &Vocabulary, dice: &mut Dice) -> Value {
    match dice.below(14) {
        0 => Value::Null,
        1 => json!(""),
        2 => json!(0),
        3 => json!(-1),
        4 => json!(65536),
        5 => json!(1337),
        6 => json!(u64::MAX),
        7 => json!(1.5),
        8 => json!([]),
        9 => json!({}),
        10 => json!(true),
        11 => json!([null]),
        12 => json!(8000 + dice.below(2000)),
        _ => json!(*dice.one_of(vocabulary.words)),
    }
}

/// How many values the document consists of.
fn count(value: &Value) -> usize {
    1 + match value {
        Value::Array(items) => items.iter().map(count).sum(),
        Value::Object(map) => map.values().map(count).sum(),
        _ => 0,
    }
}

/// The value at `index`, counted from the outside in.
fn nth(value: &Value, index: usize) -> &Value {
    let mut left = index;
    let mut place = value;
    'down: while left > 0 {
        left -= 1;
        let inside: Vec<&Value> = match place {
            Value::Array(items) => items.iter().collect(),
            Value::Object(map) => map.values().collect(),
            _ => return place,
        };
        for child in inside {
            let size = count(child);
            if left < size {
                place = child;
                continue 'down;
            }
            left -= size;
        }
        return place;
    }
    place
}

fn nth_mut(value: &mut Value, index: usize) -> &mut Value {
    if index == 0 {
        return value;
    }
    let mut left = index - 1;
    let position = {
        let sizes: Vec<usize> = match value {
            Value::Array(items) => items.iter().map(count).collect(),
            Value::Object(map) => map.values().map(count).collect(),
            _ => Vec::new(),
        };
        sizes.iter().position(|size| {
            let here = left < *size;
            if !here {
                left -= size;
            }
            here
        })
    };
    let Some(position) = position else { return value };
    match value {
        Value::Array(items) => nth_mut(&mut items[position], left),
        Value::Object(map) => match map.values_mut().nth(position) {
            Some(child) => nth_mut(child, left),
            None => unreachable!("the position was found among these values"),
        },
        other => other,
    }
}
