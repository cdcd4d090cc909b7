//! Resource requirements: which texts are quantities, and how layers of requirements merge.

use serde_json::Value;

use super::walk::{Problem, Step};
use crate::config::yaml::kind;

/// What a suffix multiplies with.
const SUFFIXES: [(&str, f64); 16] = [
    ("", 1.0),
    ("n", 1e-9),
    ("u", 1e-6),
    ("m", 1e-3),
    ("k", 1e3),
    ("M", 1e6),
    ("G", 1e9),
    ("T", 1e12),
    ("P", 1e15),
    ("E", 1e18),
    ("Ki", 1024.0),
    ("Mi", 1_048_576.0),
    ("Gi", 1_073_741_824.0),
    ("Ti", 1_099_511_627_776.0),
    ("Pi", 1_125_899_906_842_624.0),
    ("Ei", 1_152_921_504_606_846_976.0),
];

/// The amount a Kubernetes quantity stands for (`100m`, `64Mi`, `1e3`), or `None` when it is none.
///
/// Grammar: apimachinery's `resource.Quantity`: signed decimal number, then an SI, binary or exponent suffix.
#[must_use]
pub fn quantity(text: &str) -> Option<f64> {
    let unsigned = text.strip_prefix(['-', '+']).unwrap_or(text);
    let digits = unsigned.find(|letter: char| !letter.is_ascii_digit() && letter != '.').unwrap_or(unsigned.len());
    let (mantissa, suffix) = unsigned.split_at(digits);
    let number = mantissa.parse::<f64>().ok().filter(|_| mantissa.matches('.').count() <= 1)?;
    let scale = match SUFFIXES.iter().find(|(name, _)| *name == suffix) {
        Some((_, scale)) => *scale,
        None => exponent(suffix)?,
    };
    let sign = if text.starts_with('-') { -1.0 } else { 1.0 };
    Some(sign * number * scale)
}

fn exponent(suffix: &str) -> Option<f64> {
    let power = suffix.strip_prefix(['e', 'E'])?.parse::<i32>().ok()?;
    Some(10_f64.powi(power)).filter(|scale| scale.is_finite())
}

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
    // Resources without a domain are a closed set; the API server refuses a container with any other.
    let standard = ["cpu", "memory", "ephemeral-storage"];
    if !standard.contains(&name) && !name.starts_with("hugepages-") && !name.contains('/') {
        let hint = super::nearest(name, standard).map_or("leave it out".to_owned(), did_you_mean);
        return Err(format!("is not a resource of a container; {hint}"));
    }
    let text = match amount {
        Value::String(text) => text.clone(),
        Value::Number(number) => number.to_string(),
        other => return Err(format!("a quantity such as 100m or 64Mi is expected, {} was found", kind(other))),
    };
    match quantity(&text) {
        None => Err(format!("{text:?} is not a quantity such as 100m or 64Mi")),
        Some(amount) if amount < 0.0 => Err(format!("{text} is negative")),
        Some(_) => Ok(()),
    }
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

/// The first quantity that is requested above its limit, as a sentence; the API server would refuse every Pod.
pub(super) fn conflict(requirements: &Value) -> Option<String> {
    let amounts = |part: &str| requirements.get(part).and_then(Value::as_object);
    let (requests, limits) = (amounts("requests")?, amounts("limits")?);
    requests.iter().find_map(|(name, requested)| {
        let limit = limits.get(name)?;
        let (requested_amount, limit_amount) = (quantity(requested.as_str()?)?, quantity(limit.as_str()?)?);
        (requested_amount > limit_amount)
            .then(|| format!("requests.{name} {requested} is more than limits.{name} {limit}"))
    })
}

#[cfg(test)]
mod tests {
    use super::quantity;

    #[test]
    fn quantities() {
        for (text, amount) in [
            ("100m", 0.1),
            ("64Mi", 67_108_864.0),
            ("1", 1.0),
            ("1.5", 1.5),
            (".5", 0.5),
            ("1e3", 1000.0),
            ("2E", 2e18),
        ] {
            assert_eq!(quantity(text), Some(amount), "{text}");
        }
        for text in
            ["", "Mi", "1 Mi", "1mi", "1MB", "1.2.3", "e3", "1e", "0x10", "--1", "1Kii", "ten", "NaN", "inf", "1e999"]
        {
            assert_eq!(quantity(text), None, "{text}");
        }
    }
}
