//! A model that a proxy offers, with what holds for it alone.

/// A model of `spec.models`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Offer {
    /// What agents ask for.
    pub name: String,
    /// What the provider is asked for; [`Offer::name`] where nothing else is written.
    pub model: Option<String>,
    /// Another provider than the proxy's: it has its own address and key, which LiteLLM finds in the container's environment.
    pub provider: Option<String>,
    /// Who answers in its place, in order, while its provider does not or its budget is used up; names of other offers.
    pub fallbacks: Vec<String>,
    /// What it may cost.
    pub budget: Option<Budget>,
    /// What it costs, where LiteLLM does not know.
    pub price: Option<Price>,
}

/// What a model may cost in a time.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Budget {
    /// More than nothing.
    pub limit: Dollars,
    /// LiteLLM's form: a number and `s`, `m`, `h`, `d`, `w` or `mo`.
    pub period: String,
}

/// What a million tokens cost.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Price {
    /// Of what is asked.
    pub input: Dollars,
    /// Of what is answered.
    pub output: Dollars,
}

/// An amount in US dollars, to the millionth.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Dollars(u64);

impl Dollars {
    /// Digits behind the point.
    const DIGITS: usize = 6;

    /// The amount that a text says: up to nine digits, and up to six behind a point. Nothing else is one.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let (whole, part) = text.split_once('.').unwrap_or((text, "0"));
        let is_number = |text: &str, most: usize| {
            (1..=most).contains(&text.len()) && text.bytes().all(|letter| letter.is_ascii_digit())
        };
        if !is_number(whole, 9) || !is_number(part, Self::DIGITS) {
            return None;
        }
        format!("{whole}{part:0<6}").parse().ok().map(Self)
    }

    /// Whether it is nothing.
    #[must_use]
    pub fn is_nothing(self) -> bool {
        self.0 == 0
    }

    /// The amount, as every reader of YAML takes it for a number.
    #[must_use]
    pub fn text(self) -> String {
        format!("{}.{:06}", self.0 / 1_000_000, self.0 % 1_000_000)
    }

    /// The millionth part of it.
    #[must_use]
    pub fn per_million(self) -> String {
        format!("{}.{:012}", self.0 / 1_000_000_000_000, self.0 % 1_000_000_000_000)
    }

    /// The amount as people write it.
    #[must_use]
    pub fn shown(self) -> String {
        self.text().trim_end_matches('0').trim_end_matches('.').to_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_amount_is_exact_and_what_is_none_is_not_taken() {
        for (text, written, each, shown) in [
            ("5", "5.000000", "0.000005000000", "5"),
            ("0.15", "0.150000", "0.000000150000", "0.15"),
            ("0.000001", "0.000001", "0.000000000001", "0.000001"),
            ("999999999.999999", "999999999.999999", "999.999999999999", "999999999.999999"),
            ("007.50", "7.500000", "0.000007500000", "7.5"),
            ("10", "10.000000", "0.000010000000", "10"),
        ] {
            let amount = Dollars::parse(text).unwrap_or_else(|| panic!("{text}"));
            assert_eq!((&*amount.text(), &*amount.per_million(), &*amount.shown()), (written, each, shown));
        }
        for text in [
            "",
            ".",
            "1.",
            ".5",
            "-1",
            "+1",
            "1e3",
            "1_000",
            "1,5",
            " 1",
            "0.0000001",
            "1000000000",
            "NaN",
            "1.2.3",
            "٣",
        ] {
            assert_eq!(Dollars::parse(text), None, "{text}");
        }
        assert!(Dollars::parse("0.000000").unwrap().is_nothing());
    }
}
