//! Kubernetes quantities: the amount behind `100m` or `64Mi`.

/// What a suffix divides by: a thousandth has no exact number to multiply with, and `72m` is to be what `0.072` is.
const PARTS: [(&str, f64); 3] = [("n", 1e9), ("u", 1e6), ("m", 1e3)];
/// What a suffix multiplies with.
const SUFFIXES: [(&str, f64); 13] = [
    ("", 1.0),
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
    let named = |table: &[(&str, f64)]| table.iter().find(|(name, _)| *name == suffix).map(|(_, scale)| *scale);
    let amount = match (named(&SUFFIXES), named(&PARTS)) {
        (Some(scale), _) => number * scale,
        (None, Some(parts)) => number / parts,
        (None, None) => exponent(suffix, number)?,
    };
    Some(if text.starts_with('-') { -amount } else { amount })
}

fn exponent(suffix: &str, number: f64) -> Option<f64> {
    let power = suffix.strip_prefix(['e', 'E'])?.parse::<i32>().ok()?;
    let scale = 10_f64.powi(power.saturating_abs());
    if power < 0 { Some(number / scale) } else { scale.is_finite().then_some(number * scale) }
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
            ("5e-1", 0.5),
            ("-5m", -0.005),
        ] {
            assert_eq!(quantity(text), Some(amount), "{text}");
        }
        // Two spellings of one amount are one amount.
        for thousandths in 1..20_000 {
            let (short, long) =
                (format!("{thousandths}m"), format!("{}.{:03}", thousandths / 1000, thousandths % 1000));
            assert_eq!(quantity(&short), quantity(&long), "{short}");
            assert_eq!(quantity(&format!("{thousandths}e-3")), quantity(&long), "{short}");
        }
        for text in
            ["", "Mi", "1 Mi", "1mi", "1MB", "1.2.3", "e3", "1e", "0x10", "--1", "1Kii", "ten", "NaN", "inf", "1e999"]
        {
            assert_eq!(quantity(text), None, "{text}");
        }
    }
}
