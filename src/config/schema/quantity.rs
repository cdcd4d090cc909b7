//! Resource requirements: what they must be, and how layers of them merge.

use std::cmp::Ordering;

use serde_json::Value;

use super::walk::{Problem, Step};
use crate::api::syntax;
use crate::api::yaml::kind;
use crate::domain::quantity::quantity;

/// `limits` and `requests` of named quantities, none negative; a number counts as its spelling.
pub(super) fn check_requirements(value: &Value) -> Result<(), Problem> {
    let Some(parts) = value.as_object() else {
        return Err(format!("a mapping with limits and requests is expected, {} was found", kind(value)).into());
    };
    for (part, amounts) in parts {
        let at = |message: String| Problem::new(vec![Step::Key(part.clone())], message);
        if part != "limits" && part != "requests" {
            let hint = super::nearest(part, ["limits", "requests"]).map_or("leave it out".to_owned(), did_you_mean);
            return Err(at(format!("is not part of resource requirements; {hint}")));
        }
        match amounts {
            Value::Null => {}
            Value::Object(amounts) => {
                for (name, amount) in amounts {
                    let steps = || vec![Step::Key(part.clone()), Step::Key(name.clone())];
                    check_amount(name, amount).map_err(|message| Problem::new(steps(), message))?;
                }
            }
            other => return Err(at(format!("a mapping of quantities is expected, {} was found", kind(other)))),
        }
    }
    Ok(())
}

fn check_amount(name: &str, amount: &Value) -> Result<(), String> {
    let unit = unit(name)?;
    let text = match amount {
        Value::String(text) => text.clone(),
        Value::Number(number) => number.to_string(),
        other => return Err(format!("a quantity such as 100m or 64Mi is expected, {} was found", kind(other))),
    };
    match (quantity(&text), unit) {
        (None, _) => Err(format!("{text:?} is not a quantity such as 100m or 64Mi")),
        (Some(amount), _) if amount < 0.0 => Err(format!("{text} is negative")),
        (Some(amount), Some((unit, told))) if amount % unit > 0.0 => Err(format!("{text} is not {told}")),
        _ => Ok(()),
    }
}

/// In what a resource is counted, where it cannot be divided at will, with words for it. The API server refuses every container with another amount, and
/// with a resource that it does not know: those without a domain are a closed set.
fn unit(name: &str) -> Result<Option<(f64, &'static str)>, String> {
    const STANDARD: [&str; 3] = ["cpu", "memory", "ephemeral-storage"];
    if STANDARD.contains(&name) {
        return Ok(None);
    }
    if let Some(size) = name.strip_prefix("hugepages-") {
        let size = quantity(size).filter(|size| *size > 0.0);
        let whole_pages = |size| Some((size, "a multiple of the size of these pages"));
        return size.map(whole_pages).ok_or_else(|| "names no size of pages, such as hugepages-2Mi".to_owned());
    }
    if !name.contains('/') {
        let hint = super::nearest(name, STANDARD).map_or("leave it out".to_owned(), did_you_mean);
        return Err(format!("is not a resource of a container; {hint}"));
    }
    if !syntax::is_metadata_key(name) || name.starts_with("requests.") {
        return Err("is not the name of a resource, such as example.com/gpu".to_owned());
    }
    Ok(is_lent_once(name).then_some((1.0, "a whole number")))
}

fn did_you_mean(name: &str) -> String {
    format!("did you mean {name}?")
}

/// `over` laid on `base`: quantities by name, `null` and absent parts keep what is below.
pub(super) fn merged(base: &Value, over: &Value) -> Value {
    let mut result = base.as_object().cloned().unwrap_or_default();
    for (part, amounts) in over.as_object().into_iter().flatten() {
        let Some(amounts) = amounts.as_object() else { continue };
        let mut below = result.get(part).and_then(Value::as_object).cloned().unwrap_or_default();
        below.extend(amounts.iter().map(|(name, amount)| (name.clone(), spelled(amount))));
        result.insert(part.clone(), Value::Object(below));
    }
    Value::Object(result)
}

fn spelled(amount: &Value) -> Value {
    match amount {
        Value::Number(number) => Value::String(number.to_string()),
        other => other.clone(),
    }
}

/// The first quantity that is requested above its limit, or of a resource that nodes do not lend twice other than its limit, as a sentence; the API
/// server would refuse every Pod.
pub(super) fn conflict(requirements: &Value) -> Option<String> {
    let amounts = |part: &str| requirements.get(part).and_then(Value::as_object);
    let (requests, limits) = (amounts("requests")?, amounts("limits"));
    requests.iter().find_map(|(name, requested)| {
        let Some(limit) = limits.and_then(|limits| limits.get(name)) else {
            return is_lent_once(name).then(|| {
                format!("requests.{name} {requested} needs the same amount in limits.{name}, which is absent")
            });
        };
        let (requested_amount, limit_amount) = (quantity(requested.as_str()?)?, quantity(limit.as_str()?)?);
        match compared(requested_amount, limit_amount) {
            Ordering::Greater => Some(format!("requests.{name} {requested} is more than limits.{name} {limit}")),
            Ordering::Less if is_lent_once(name) => {
                Some(format!("requests.{name} {requested} is less than limits.{name} {limit}, and has to be the same"))
            }
            Ordering::Less | Ordering::Equal => None,
        }
    })
}

/// One amount may be spelled in two ways (`72m`, `0.072`), which differ in the last digit once they are read.
fn compared(one: f64, other: f64) -> Ordering {
    let slack = other.abs() * 1e-12;
    match one - other {
        difference if difference > slack => Ordering::Greater,
        difference if difference < -slack => Ordering::Less,
        _ => Ordering::Equal,
    }
}

/// Huge pages, and what is not Kubernetes' own: the API server wants request and limit to be one amount.
fn is_lent_once(resource: &str) -> bool {
    resource.starts_with("hugepages-")
        || resource
            .split_once('/')
            .is_some_and(|(domain, _)| domain != "kubernetes.io" && !domain.ends_with(".kubernetes.io"))
}
