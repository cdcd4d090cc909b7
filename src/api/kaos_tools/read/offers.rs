//! `spec.models` of a ModelAPI.
//!
//! What is wrong with any of them is found in one reading: names that are missing, patterns or twice there; fallbacks that are nobody, oneself, twice
//! there, or lead back; budgets and prices that are no amounts.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use super::place::{Found, Place};
use crate::api::kaos_tools::model_api::MOST_MODELS;
use crate::api::kaos_tools::shape::{Budget, Dollars, Offer, Price};
use crate::domain::suggest::nearest;

/// What stands for nobody is told of with the name that is nearest while no more than so much is wrong: to look for it costs more than to read.
const HINTS: usize = 20;

/// The models, each name once; `None` where nothing is written.
pub(super) fn offers(place: &Place<'_>, found: &mut Found) -> Option<Vec<Offer>> {
    place.value?;
    let items = place.at_most((MOST_MODELS, "offer fewer, or write a pattern in proxyConfig.models"), found);
    if place.value.is_some_and(Value::is_array) && items.is_empty() {
        found.invalid(&place.path, "is empty", "name the models that agents may ask for, or leave it out");
    }
    let mut offers: Vec<Offer> = Vec::new();
    let mut places = Vec::new();
    for item in items {
        if !item.is_mapping(found) {
            continue;
        }
        let Some(name) = name(&item.at("name"), found) else { continue };
        if let Some(at) = offers.iter().position(|known| known.name == name) {
            let path = item.at("name").path;
            let sentence = format!("{name} is the name of {}[{at}] as well", place.path);
            found.invalid(&path, sentence, "give each model a name of its own");
            continue;
        }
        offers.push(Offer {
            name,
            model: item.at("model").text(found),
            provider: item.at("provider").text(found),
            fallbacks: Vec::new(),
            budget: budget(&item.mapping("budget", found), found),
            price: price(&item.mapping("pricePerMillionTokens", found), found),
        });
        places.push(item.at("fallbacks"));
    }
    let names: Vec<String> = offers.iter().map(|offer| offer.name.clone()).collect();
    for (offer, place) in offers.iter_mut().zip(&places) {
        offer.fallbacks = fallbacks(place, &offer.name, &names, found);
    }
    circles(&offers, &places, found);
    Some(offers)
}

fn name(place: &Place<'_>, found: &mut Found) -> Option<String> {
    let Some(name) = place.text(found) else {
        if place.value.is_none_or(|value| value == "") {
            found.required(&place.path, "say what agents ask for");
        }
        return None;
    };
    if name.contains('*') {
        let remedy =
            "name the models, or write the pattern in proxyConfig.models, which has neither fallbacks nor budgets";
        found.invalid(&place.path, "is a pattern, and stands for no one model", remedy);
    }
    Some(name)
}

fn fallbacks(place: &Place<'_>, own: &str, names: &[String], found: &mut Found) -> Vec<String> {
    let mut kept: Vec<String> = Vec::new();
    for item in place.at_most((MOST_MODELS, "name fewer"), found) {
        let Some(name) = item.text(found) else {
            if item.value.is_none_or(|value| value == "") {
                found.required(&item.path, "name a model of spec.models, or remove the item");
            }
            continue;
        };
        if name == own {
            found.invalid(&item.path, "names the model itself", "name another one");
        } else if kept.contains(&name) {
            found.invalid(&item.path, format!("names {name} twice"), "remove one");
        } else if names.contains(&name) {
            kept.push(name);
        } else {
            let near = || nearest(&name, names.iter().map(String::as_str));
            let meant = if found.faults.len() < HINTS { near() } else { None };
            let meant = meant.map_or_else(String::new, |meant| format!("; did you mean {meant}?"));
            let sentence = format!("is no name of spec.models{meant}");
            let fault = crate::api::findings::Fault::invalid(&item.path, sentence, "name a model of that list");
            found.fault(fault.seeing(&name));
        }
    }
    kept
}

/// Fallbacks that lead back to where they began: each circle once, at the model of it that stands first.
fn circles(offers: &[Offer], places: &[Place<'_>], found: &mut Found) {
    let next: BTreeMap<&str, &[String]> = offers.iter().map(|offer| (&*offer.name, &*offer.fallbacks)).collect();
    let mut told: BTreeSet<&str> = BTreeSet::new();
    for (offer, place) in offers.iter().zip(places) {
        if told.contains(&*offer.name) {
            continue;
        }
        let Some(circle) = way_back(&offer.name, &next) else { continue };
        let sentence = format!("lead back to where they began: {} -> {}", circle.join(" -> "), offer.name);
        found.invalid(&place.path, sentence, "let the last of them have no fallback");
        told.extend(circle);
    }
}

/// The models from one on that lead back to it, the nearest way.
fn way_back<'o>(from: &'o str, next: &BTreeMap<&'o str, &'o [String]>) -> Option<Vec<&'o str>> {
    let mut before: BTreeMap<&str, &str> = BTreeMap::new();
    let mut turn = vec![from];
    while !turn.is_empty() {
        let mut then = Vec::new();
        for &one in &turn {
            for other in next.get(one).copied().unwrap_or_default() {
                if other == from {
                    let mut way = vec![one];
                    while let Some(&earlier) = way.last().and_then(|last| before.get(last)) {
                        way.push(earlier);
                    }
                    way.reverse();
                    return Some(way);
                }
                if !before.contains_key(&**other) {
                    before.insert(other, one);
                    then.push(&**other);
                }
            }
        }
        turn = then;
    }
    None
}

fn budget(place: &Place<'_>, found: &mut Found) -> Option<Budget> {
    place.value.filter(|value| value.is_object())?;
    let limit = amount(&place.at("limit"), true, found);
    let at = place.at("period");
    let period = at.text(found);
    match &period {
        None if at.value.is_none_or(|value| value == "") => found.required(&at.path, "write for example 1d, 7d or 1mo"),
        Some(text) if !is_period(text) => {
            let sentence = "is no period: a number from 1 to 9999 and s, m (minutes), h, d, w or mo";
            found.fault(
                crate::api::findings::Fault::invalid(&at.path, sentence, "write for example 1d, 7d or 1mo")
                    .seeing(text),
            );
        }
        _ => {}
    }
    Some(Budget { limit: limit?, period: period? })
}

fn price(place: &Place<'_>, found: &mut Found) -> Option<Price> {
    place.value.filter(|value| value.is_object())?;
    let (input, output) = (amount(&place.at("input"), false, found), amount(&place.at("output"), false, found));
    Some(Price { input: input?, output: output? })
}

/// US dollars, as a text or a whole number.
fn amount(place: &Place<'_>, is_limit: bool, found: &mut Found) -> Option<Dollars> {
    let remedy = "write US dollars, such as \"2.50\"";
    let said = match place.value {
        None => {
            found.required(&place.path, remedy);
            return None;
        }
        Some(Value::String(text)) => text.clone(),
        Some(Value::Number(number)) => number.to_string(),
        Some(other) => {
            let sentence = format!("must be an amount, and is {}", crate::api::yaml::kind(other));
            found.invalid(&place.path, sentence, remedy);
            return None;
        }
    };
    match Dollars::parse(&said) {
        Some(amount) if is_limit && amount.is_nothing() => {
            found.invalid(
                &place.path,
                "is no budget: it has to be more than nothing",
                "write more, or leave the budget out",
            );
            None
        }
        Some(amount) => Some(amount),
        None => {
            let sentence = "is no amount: up to nine digits, and up to six behind a point";
            found.fault(crate::api::findings::Fault::invalid(&place.path, sentence, remedy).seeing(&said));
            None
        }
    }
}

/// As LiteLLM reads a duration.
fn is_period(text: &str) -> bool {
    let digits = text.bytes().take_while(u8::is_ascii_digit).count();
    let (number, unit) = text.split_at(digits);
    (1..=4).contains(&digits) && !number.starts_with('0') && ["s", "m", "h", "d", "w", "mo"].contains(&unit)
}
