//! Kubernetes quantities: the amount behind `100m` or `64Mi`.

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
