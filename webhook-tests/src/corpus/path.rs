//! Paths of assertions: `spec.containers[name=agent].env[*].name`, `metadata.annotations["kagenti.io/x"]`.
//!
//! Two roots stand for what would need a search: `container(NAME)` is the container of that name, wherever it lies
//! (regular or init), and `runtime` is the parsed YAML of annotation `kagenti.io/authbridge-config`.

use anyhow::bail;
use serde_json::Value;

use drawbridge::domain::keys;

/// One step down.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Step {
    Member(String),
    Index(usize),
    With(String, String),
    Each,
}

/// What a path leads to.
#[derive(Debug, Clone, PartialEq)]
pub enum Found {
    /// Nothing.
    Absent,
    /// One value.
    One(Value),
    /// A path with `[*]`: all values, in order.
    All(Vec<Value>),
}

/// Follows `path` in `object`.
///
/// # Errors
/// A path that cannot be read, or a runtime configuration that is not YAML.
pub fn follow(object: &Value, path: &str) -> anyhow::Result<Found> {
    let (start, rest) = root(object, path)?;
    let Some(start) = start else { return Ok(Found::Absent) };
    let steps = steps(rest)?;
    let many = steps.contains(&Step::Each);
    let mut here = vec![start];
    for step in &steps {
        here = here.into_iter().flat_map(|value| down(&value, step)).collect();
    }
    Ok(if many { Found::All(here) } else { here.into_iter().next().map_or(Found::Absent, Found::One) })
}

fn root<'p>(object: &Value, path: &'p str) -> anyhow::Result<(Option<Value>, &'p str)> {
    if let Some(rest) = path.strip_prefix("container(") {
        let Some((name, rest)) = rest.split_once(')') else { bail!("{path}: `container(` without `)`") };
        return Ok((container(object, name).cloned(), rest));
    }
    if path == "runtime" || path.starts_with("runtime.") {
        let text = object
            .get("metadata")
            .and_then(|metadata| metadata.get("annotations"))
            .and_then(|annotations| annotations.get(keys::ANNOTATION_RUNTIME_CONFIG))
            .and_then(Value::as_str);
        let parsed = text.map(serde_saphyr::from_str::<Value>).transpose()?;
        return Ok((parsed, &path["runtime".len()..]));
    }
    Ok((Some(object.clone()), path))
}

/// The container of that name, regular or init.
#[must_use]
pub fn container<'o>(object: &'o Value, name: &str) -> Option<&'o Value> {
    ["/spec/containers", "/spec/initContainers"]
        .into_iter()
        .filter_map(|list| object.pointer(list).and_then(Value::as_array))
        .flatten()
        .find(|container| container.get("name").and_then(Value::as_str) == Some(name))
}

fn down(value: &Value, step: &Step) -> Vec<Value> {
    match step {
        Step::Member(name) => value.get(name).cloned().into_iter().collect(),
        Step::Index(index) => value.get(index).cloned().into_iter().collect(),
        Step::With(key, wanted) => value
            .as_array()
            .into_iter()
            .flatten()
            .filter(|item| match item.get(key) {
                Some(Value::String(text)) => text == wanted,
                Some(Value::Number(number)) => {
                    wanted.parse::<serde_json::Number>().is_ok_and(|wanted| wanted == *number)
                }
                _ => false,
            })
            .cloned()
            .collect(),
        Step::Each => value.as_array().cloned().unwrap_or_default(),
    }
}

fn steps(path: &str) -> anyhow::Result<Vec<Step>> {
    let mut out = Vec::new();
    let mut rest = path;
    while !rest.is_empty() {
        if let Some(after) = rest.strip_prefix('[') {
            let end = if after.starts_with('"') { after.find("\"]").map(|at| at + 1) } else { after.find(']') };
            let Some(end) = end else { bail!("{path}: `[` without `]`") };
            out.push(bracket(&after[..end], path)?);
            rest = &after[end + 1..];
        } else {
            let after = rest.strip_prefix('.').unwrap_or(rest);
            let end = after.find(['.', '[']).unwrap_or(after.len());
            if end == 0 {
                bail!("{path}: an empty step");
            }
            out.push(Step::Member(after[..end].to_owned()));
            rest = &after[end..];
        }
    }
    Ok(out)
}

fn bracket(inner: &str, path: &str) -> anyhow::Result<Step> {
    if inner == "*" {
        return Ok(Step::Each);
    }
    if let Some(quoted) = inner.strip_prefix('"').and_then(|text| text.strip_suffix('"')) {
        return Ok(Step::Member(quoted.to_owned()));
    }
    if let Ok(index) = inner.parse() {
        return Ok(Step::Index(index));
    }
    match inner.split_once('=') {
        Some((key, value)) => Ok(Step::With(key.to_owned(), value.to_owned())),
        None => bail!("{path}: [{inner}] is neither *, a number, key=value nor a quoted name"),
    }
}

#[cfg(test)]
mod tests {
    use super::{Found, follow};
    use serde_json::json;

    #[test]
    fn steps_lead_where_they_say() {
        let pod = json!({
            "metadata": {"annotations": {"a/b.c": "1", "kagenti.io/authbridge-config": "mode: x\n"}},
            "spec": {"containers": [{"name": "a", "ports": [{"containerPort": 80}]}], "initContainers": [{"name": "i"}]}
        });
        let one = |path: &str| follow(&pod, path).unwrap();
        assert_eq!(one("metadata.annotations[\"a/b.c\"]"), Found::One(json!("1")));
        assert_eq!(one("spec.containers[name=a].ports[containerPort=80].containerPort"), Found::One(json!(80)));
        assert_eq!(one("spec.containers[*].name"), Found::All(vec![json!("a")]));
        assert_eq!(one("container(i).name"), Found::One(json!("i")));
        assert_eq!(one("container(none).name"), Found::Absent);
        assert_eq!(one("runtime.mode"), Found::One(json!("x")));
        assert_eq!(one("spec.volumes[*].name"), Found::All(vec![]));
        assert!(follow(&pod, "spec.containers[name").is_err());
    }
}
