//! Prometheus text, read back: what a process counted.

use std::net::SocketAddr;

use anyhow::{Context as _, Result, ensure};

use crate::dial;

/// The samples of one scrape.
#[derive(Debug, Clone, Default)]
pub struct Metrics(Vec<Sample>);

/// One line of a scrape.
#[derive(Debug, Clone, PartialEq)]
pub struct Sample {
    /// Name, with suffixes such as `_total` and `_bucket`.
    pub name: String,
    /// Label names and values, in the order of the line.
    pub labels: Vec<(String, String)>,
    /// Value.
    pub value: f64,
}

impl Metrics {
    /// `GET /metrics` over plain HTTP.
    ///
    /// # Errors
    /// When there is no answer, or one that is not Prometheus text.
    pub async fn scrape(address: SocketAddr) -> Result<Self> {
        let (status, body) = dial::get(address, "/metrics").await?;
        ensure!(status == 200, "GET http://{address}/metrics answered {status}: {body}");
        Self::parse(&body)
    }

    /// `GET /metrics` of an API server.
    ///
    /// # Errors
    /// When there is no answer, or one that is not Prometheus text.
    pub async fn of_api_server(client: &kube::Client) -> Result<Self> {
        let request = http::Request::get("/metrics").body(Vec::new())?;
        Self::parse(&client.request_text(request).await?)
    }

    /// Reads Prometheus or OpenMetrics text.
    ///
    /// # Errors
    /// At the first line that is neither comment nor sample.
    pub fn parse(text: &str) -> Result<Self> {
        let lines = text.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with('#'));
        lines.map(|line| sample(line).with_context(|| format!("not a sample: {line}"))).collect::<Result<_>>().map(Self)
    }

    /// The sum over all samples of this name that have all these labels; 0 when there is none.
    #[must_use]
    pub fn sum(&self, name: &str, labels: &[(&str, &str)]) -> f64 {
        self.select(name, labels).map(|sample| sample.value).sum()
    }

    /// The samples of this name that have all these labels.
    pub fn select<'a>(&'a self, name: &str, labels: &[(&str, &str)]) -> impl Iterator<Item = &'a Sample> {
        self.0.iter().filter(move |sample| {
            let has = |(key, value): &(&str, &str)| sample.labels.iter().any(|(k, v)| k == key && v == value);
            sample.name == name && labels.iter().all(has)
        })
    }
}

fn sample(line: &str) -> Option<Sample> {
    let end = line.find(['{', ' '])?;
    let (name, rest) = line.split_at(end);
    let (labels, rest) = match rest.strip_prefix('{') {
        Some(inside) => labels(inside)?,
        None => (Vec::new(), rest),
    };
    let value = match rest.split_whitespace().next()? {
        "+Inf" => f64::INFINITY,
        "-Inf" => f64::NEG_INFINITY,
        number => number.parse().ok()?,
    };
    Some(Sample { name: name.to_owned(), labels, value })
}

/// Reads `key="value",…}`; returns the labels and what follows.
fn labels(mut text: &str) -> Option<(Vec<(String, String)>, &str)> {
    let mut labels = Vec::new();
    loop {
        text = text.trim_start_matches([',', ' ']);
        if let Some(rest) = text.strip_prefix('}') {
            return Some((labels, rest));
        }
        let (key, rest) = text.split_once("=\"")?;
        let mut value = String::new();
        let mut characters = rest.char_indices();
        let end = loop {
            match characters.next()? {
                (at, '"') => break at,
                (_, '\\') => match characters.next()?.1 {
                    'n' => value.push('\n'),
                    other => value.push(other),
                },
                (_, other) => value.push(other),
            }
        };
        labels.push((key.to_owned(), value));
        text = &rest[end + 1..];
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn samples_are_summed_over_the_labels_that_are_not_asked_for() {
        let text = "# HELP x y\nx_total{a=\"1\",b=\"q\\\"}\"} 2\nx_total{a=\"1\"} 3 1700000000\nx_total{a=\"2\"} 5\ny +Inf\n# EOF\n";
        let metrics = Metrics::parse(text).unwrap();
        assert_eq!(metrics.sum("x_total", &[("a", "1")]), 5.0);
        assert_eq!(metrics.sum("x_total", &[("b", "q\"}")]), 2.0);
        assert_eq!(metrics.sum("missing", &[]), 0.0);
        assert!(metrics.sum("y", &[]).is_infinite());
        assert!(Metrics::parse("x{a=\"1} 2").is_err());
    }
}
