//! "Did you mean": the nearest known name.

/// The name in `known` that `seen` most likely stands for, if one is near enough.
///
/// Near is: equal but for case, dashes and underscores, or at most a third of its letters away.
#[must_use]
pub fn nearest<'a>(seen: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let plain = |text: &str| text.chars().filter(char::is_ascii_alphanumeric).collect::<String>().to_ascii_lowercase();
    let seen = plain(seen);
    known
        .into_iter()
        .map(|name| (distance(&seen, &plain(name)), name))
        .filter(|(distance, name)| *distance <= (name.len() / 3).max(1))
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, name)| name)
}

/// Edits (insert, delete, replace, swap of neighbours) between two words.
fn distance(a: &str, b: &str) -> usize {
    let (a, b): (Vec<char>, Vec<char>) = (a.chars().take(64).collect(), b.chars().take(64).collect());
    let mut rows = vec![vec![0; b.len() + 1]; a.len() + 1];
    for (i, row) in rows.iter_mut().enumerate() {
        row[0] = i;
    }
    for (j, cell) in rows[0].iter_mut().enumerate() {
        *cell = j;
    }
    for i in 1..=a.len() {
        for j in 1..=b.len() {
            let same = usize::from(a[i - 1] != b[j - 1]);
            let mut best = (rows[i - 1][j] + 1).min(rows[i][j - 1] + 1).min(rows[i - 1][j - 1] + same);
            if i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1] {
                best = best.min(rows[i - 2][j - 2] + 1);
            }
            rows[i][j] = best;
        }
    }
    rows[a.len()][b.len()]
}

#[cfg(test)]
mod tests {
    use super::nearest;

    #[test]
    fn finds_what_was_meant() {
        let known = ["inboundProxyPort", "adminPort", "port", "uid"];
        for (seen, meant) in [
            ("inbound_proxy_port", Some("inboundProxyPort")),
            ("inboundProxyPrt", Some("inboundProxyPort")),
            ("prot", Some("port")),
            ("uids", Some("uid")),
            ("colour", None),
            ("", None),
        ] {
            assert_eq!(nearest(seen, known), meant, "{seen}");
        }
    }
}
