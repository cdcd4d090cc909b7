//! Kubernetes' strategic merge of a Pod's spec, and nothing else.
//!
//! In: a Pod's spec and a patch of one, as raw JSON. Out: the merged spec, or why there is none, with the path. Promises: equal to what
//! `k8s.io/apimachinery/pkg/util/strategicpatch` makes of the same two for `core/v1` PodSpec (held by a differential), but that a member that no
//! PodSpec has is merged where that package gives up; bounded by the size of what comes in.
//! Sources: the strategies and keys of `k8s.io/api/core/v1/types.go`; the directives of Kubernetes' design "preserve order in strategic merge patch".

use serde_json::{Map, Value};

use crate::api::json::without_nulls;

type Object = Map<String, Value>;

/// Why two specs cannot be merged.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{path}: {sentence}")]
pub struct MergeFault {
    /// Where, below the Pod's spec.
    pub path: String,
    /// What is wrong there.
    pub sentence: String,
}

impl MergeFault {
    fn new(sentence: impl Into<String>) -> Self {
        Self { path: String::new(), sentence: sentence.into() }
    }

    fn below(mut self, step: &str) -> Self {
        self.path = match self.path.as_str() {
            "" => step.to_owned(),
            path if path.starts_with('[') => format!("{step}{path}"),
            path => format!("{step}.{path}"),
        };
        self
    }
}

const DIRECTIVE: &str = "$patch";
const RETAIN: &str = "$retainKeys";
const DELETE_FROM: &str = "$deleteFromPrimitiveList";
const ORDER: &str = "$setElementOrder";

/// Where in a Pod's spec a merge is: what the members of an object there mean.
#[derive(Debug, Clone, Copy)]
enum Shape {
    Pod,
    Container,
    Volume,
    Ephemeral,
    ClaimTemplate,
    Metadata,
    /// Nothing below it has a strategy of its own.
    Plain,
}

/// How a list is merged.
#[derive(Debug, Clone, Copy)]
enum Strategy {
    /// Item by item, found by that member.
    Keyed(&'static str),
    /// As a set of values.
    Set,
    /// The patch's list takes its place.
    Replaced,
}

/// How the member `name` of an object is merged, and what is below it.
fn member(shape: Shape, name: &str) -> (Strategy, Shape) {
    use Strategy::{Keyed, Replaced, Set};
    match (shape, name) {
        (Shape::Pod, "containers" | "initContainers" | "ephemeralContainers") => (Keyed("name"), Shape::Container),
        (Shape::Pod, "volumes") => (Keyed("name"), Shape::Volume),
        (Shape::Pod, "imagePullSecrets" | "schedulingGates" | "resourceClaims") => (Keyed("name"), Shape::Plain),
        (Shape::Pod, "hostAliases") => (Keyed("ip"), Shape::Plain),
        (Shape::Pod, "topologySpreadConstraints") => (Keyed("topologyKey"), Shape::Plain),
        (Shape::Container, "env") => (Keyed("name"), Shape::Plain),
        (Shape::Container, "ports") => (Keyed("containerPort"), Shape::Plain),
        (Shape::Container, "volumeMounts") => (Keyed("mountPath"), Shape::Plain),
        (Shape::Container, "volumeDevices") => (Keyed("devicePath"), Shape::Plain),
        (Shape::Volume, "ephemeral") => (Replaced, Shape::Ephemeral),
        (Shape::Ephemeral, "volumeClaimTemplate") => (Replaced, Shape::ClaimTemplate),
        (Shape::ClaimTemplate, "metadata") => (Replaced, Shape::Metadata),
        (Shape::Metadata, "ownerReferences") => (Keyed("uid"), Shape::Plain),
        (Shape::Metadata, "finalizers") => (Set, Shape::Plain),
        _ => (Replaced, Shape::Plain),
    }
}

/// The spec `base` with `patch` merged into it.
///
/// # Errors
/// When an item of a list that is merged by a key has none, when lists mix kinds of items, and when a directive is not one.
pub fn merge(base: &Value, patch: &Value) -> Result<Value, MergeFault> {
    let object = |value: &Value| match value {
        Value::Object(members) => Ok(members.clone()),
        Value::Null => Ok(Object::new()),
        _ => Err(MergeFault::new("is no object")),
    };
    objects(object(base)?, object(patch)?, Shape::Pod).map(Value::Object)
}

fn objects(mut base: Object, mut patch: Object, shape: Shape) -> Result<Object, MergeFault> {
    match patch.remove(DIRECTIVE) {
        None => {}
        Some(Value::String(directive)) if directive == "replace" => return Ok(patch),
        Some(Value::String(directive)) if directive == "delete" => return Ok(Object::new()),
        Some(other) => {
            return Err(MergeFault::new(format!("has directive {DIRECTIVE}: {other}, which does not exist")));
        }
    }
    retain(&mut base, &mut patch)?;
    ordered(&mut base, &mut patch, shape)?;
    for (name, value) in patch {
        let (name, deletes) = match directed(&name, DELETE_FROM)? {
            Some(field) => (field.to_owned(), true),
            None => (name, false),
        };
        if value.is_null() {
            base.remove(&name);
            continue;
        }
        let alike = base.get(&name).is_some_and(|present| same_kind(present, &value));
        if !alike {
            if !deletes {
                taken(&mut base, name, value);
            }
            continue;
        }
        let (strategy, below) = member(shape, &name);
        let present = base.get_mut(&name).map(Value::take).unwrap_or_default();
        let merged = match (present, value) {
            (Value::Object(present), Value::Object(value)) => objects(present, value, below).map(Value::Object),
            (Value::Array(present), Value::Array(value)) => {
                lists(present, value, (strategy, below), deletes).map(Value::Array)
            }
            (_, value) => Ok(value),
        };
        let merged = merged.map_err(|fault| fault.below(&name))?;
        base.insert(name, merged);
    }
    Ok(base)
}

/// What the base has not, or has as another kind of value, is the patch's as it is.
fn taken(base: &mut Object, name: String, mut value: Value) {
    without_nulls(&mut value);
    match without_directives(value) {
        Some(value) => base.insert(name, value),
        None => base.remove(&name),
    };
}

fn same_kind(one: &Value, other: &Value) -> bool {
    std::mem::discriminant(one) == std::mem::discriminant(other)
}

/// The field that a directive of that prefix is about; `None` of a name that is none.
fn directed<'n>(name: &'n str, prefix: &str) -> Result<Option<&'n str>, MergeFault> {
    if !name.starts_with(prefix) {
        return Ok(None);
    }
    match name.split_once('/') {
        Some((directive, field)) if directive == prefix => Ok(Some(field)),
        _ => Err(MergeFault::new(format!("has directive {name:?}; it is written {prefix}/FIELD"))),
    }
}

/// `$retainKeys`: what the list does not name goes, and the patch says nothing else.
fn retain(base: &mut Object, patch: &mut Object) -> Result<(), MergeFault> {
    let Some(names) = patch.remove(RETAIN) else { return Ok(()) };
    let Value::Array(names) = names else { return Err(MergeFault::new(format!("has a {RETAIN} that is no list"))) };
    let named = |name: &str| names.iter().any(|one| one.as_str() == Some(name));
    let directs = |name: &str| name.starts_with(DELETE_FROM) || name.starts_with(ORDER);
    if let Some((name, _)) = patch.iter().find(|(name, value)| !value.is_null() && !directs(name) && !named(name)) {
        return Err(MergeFault::new(format!("says {name}, which its {RETAIN} does not name")));
    }
    base.retain(|name, _| named(name));
    Ok(())
}

/// `$setElementOrder`: merges the lists that it is about, in its order, and takes both out of the patch.
fn ordered(base: &mut Object, patch: &mut Object, shape: Shape) -> Result<(), MergeFault> {
    let names: Vec<_> = patch.keys().filter(|name| name.starts_with(ORDER)).cloned().collect();
    for name in names {
        let field = directed(&name, ORDER)?.unwrap_or_default().to_owned();
        let list = |value: Value| match value {
            Value::Array(items) => Ok(items),
            _ => Err(MergeFault::new(format!("is no list, as {ORDER} has it")).below(&field)),
        };
        let order = list(patch.remove(&name).unwrap_or_default())?;
        let present = base.get(&field).cloned().map(list).transpose()?;
        let patched = patch.get(&field).cloned().map(list).transpose()?;
        let (strategy, below) = member(shape, &field);
        let key = match strategy {
            Strategy::Keyed(key) => Some(key),
            Strategy::Set | Strategy::Replaced => None,
        };
        in_order(patched.as_deref().unwrap_or_default(), &order, key).map_err(|fault| fault.below(&field))?;
        let merged = match (present.clone(), patched.clone()) {
            (Some(present), None) => present,
            (None, Some(patched)) => patched.into_iter().filter_map(without_directives).collect(),
            (Some(present), Some(patched)) => {
                lists(present, patched, (strategy, below), false).map_err(|fault| fault.below(&field))?
            }
            (None, None) => continue,
        };
        if present.iter().chain(&patched).all(Vec::is_empty) {
            return Err(MergeFault::new(format!("is empty, and has a {ORDER}")).below(&field));
        }
        one_kind(present.iter().chain(&patched).flatten()).map_err(|fault| fault.below(&field))?;
        let arranged = arranged(merged, &order, &present.unwrap_or_default(), key);
        base.insert(field.clone(), Value::Array(arranged.map_err(|fault| fault.below(&field))?));
        patch.remove(&field);
    }
    Ok(())
}

/// Whether the items of a patch stand in that order.
fn in_order(items: &[Value], order: &[Value], key: Option<&str>) -> Result<(), MergeFault> {
    if items.is_empty() || order.is_empty() {
        return Ok(());
    }
    let items: Vec<_> = items.iter().filter(|item| key.is_none() || !deletes(item)).collect();
    let (mut at, mut place) = (0, 0);
    while at < items.len() && place < order.len() {
        if items[at].get(DIRECTIVE).is_some() {
            at += 1;
            continue;
        }
        at += usize::from(identity(items[at], key)? == identity(&order[place], key)?);
        place += 1;
    }
    if at < items.len() {
        return Err(MergeFault::new(format!("is in another order than its {ORDER} says")));
    }
    Ok(())
}

fn lists(
    base: Vec<Value>,
    patch: Vec<Value>,
    (strategy, below): (Strategy, Shape),
    deletes: bool,
) -> Result<Vec<Value>, MergeFault> {
    if let (Strategy::Replaced, false) = (strategy, deletes) {
        return Ok(patch);
    }
    if base.is_empty() && patch.is_empty() {
        return Ok(base);
    }
    if !one_kind(base.iter().chain(&patch))? {
        if deletes {
            return Ok(base.into_iter().filter(|item| !patch.contains(item)).collect());
        }
        let merged = once(base.iter().chain(&patch).cloned().collect());
        let key = match strategy {
            Strategy::Keyed(key) => Some(key),
            Strategy::Set | Strategy::Replaced => None,
        };
        return arranged(merged, &patch, &base, key);
    }
    let Strategy::Keyed(key) = strategy else {
        return Err(MergeFault::new("holds objects, which are not merged without a key"));
    };
    let (mut base, patch) = special(base, patch, key)?;
    let before = base.clone();
    for item in &patch {
        let value = identity(item, Some(key))?;
        match base.iter().position(|present| present.get(key) == Some(value)) {
            Some(place) => {
                let present = base[place].take();
                let (Value::Object(present), Value::Object(item)) = (present, item.clone()) else {
                    return Err(MergeFault::new("holds something that is no object"));
                };
                let merged = objects(present, item, below);
                let name = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
                base[place] = Value::Object(merged.map_err(|fault| fault.below(&format!("[{key}={name}]")))?);
            }
            None => base.push(item.clone()),
        }
    }
    arranged(base, &patch, &before, Some(key))
}

/// Whether all are objects; a mixture is refused, and so is a list of lists.
fn one_kind<'v>(items: impl Iterator<Item = &'v Value>) -> Result<bool, MergeFault> {
    let mut first: Option<&Value> = None;
    for item in items {
        match first {
            None if item.is_array() || item.is_null() => return Err(MergeFault::new("is a list of lists or nulls")),
            None => first = Some(item),
            Some(first) if same_kind(first, item) => {}
            Some(_) => return Err(MergeFault::new("mixes kinds of items")),
        }
    }
    Ok(first.is_some_and(Value::is_object))
}

/// The base without what items of the patch take out, and the patch without such items.
fn special(mut base: Vec<Value>, patch: Vec<Value>, key: &str) -> Result<(Vec<Value>, Vec<Value>), MergeFault> {
    let (mut plain, mut replaces) = (Vec::new(), false);
    for item in patch {
        match item.get(DIRECTIVE).map(Value::as_str) {
            None => plain.push(item),
            Some(Some("delete")) => {
                let value = identity(&item, Some(key))?;
                base.retain(|present| present.get(key) != Some(value));
            }
            Some(Some("replace")) => replaces = true,
            Some(_) => {
                return Err(MergeFault::new(format!(
                    "has an item with a {DIRECTIVE} that is neither delete nor replace"
                )));
            }
        }
    }
    Ok(if replaces { (plain, Vec::new()) } else { (base, plain) })
}

/// Whether an item takes others out.
fn deletes(item: &Value) -> bool {
    item.get(DIRECTIVE).is_some_and(|directive| directive == "delete")
}

/// What an item is found by: itself, or its key.
fn identity<'v>(item: &'v Value, key: Option<&str>) -> Result<&'v Value, MergeFault> {
    let Some(key) = key else { return Ok(item) };
    match item.get(key) {
        Some(value) if !value.is_object() && !value.is_array() => Ok(value),
        Some(_) => Err(MergeFault::new(format!("has an item whose {key} is no single value"))),
        None => Err(MergeFault::new(format!("has an item without {key}, by which its items are told apart"))),
    }
}

/// Those that the patch mentions in its order, the others in theirs; one of the others comes first where it stood before the next that is
/// mentioned.
fn arranged(
    merged: Vec<Value>,
    mentioned: &[Value],
    before: &[Value],
    key: Option<&str>,
) -> Result<Vec<Value>, MergeFault> {
    let place = |list: &[Value], item: &Value| -> Result<Option<usize>, MergeFault> {
        let value = identity(item, key)?;
        Ok(list.iter().position(|one| identity(one, key).is_ok_and(|one| one == value)))
    };
    for item in mentioned.iter().chain(before) {
        identity(item, key)?;
    }
    let (mut patched, mut others) = (Vec::new(), Vec::new());
    for item in merged {
        match place(mentioned, &item)? {
            Some(at) => patched.push((at, place(before, &item)?, item)),
            None => others.push((place(before, &item)?, item)),
        }
    }
    // Stable: items of one key keep their order. What would delete and found nothing to delete comes last.
    let deletes = |item: &Value| key.is_some() && deletes(item);
    patched.sort_by_key(|(at, _, item)| (deletes(item), *at));
    others.sort_by_key(|(at, item)| (deletes(item), *at));
    let mut all = Vec::with_capacity(patched.len() + others.len());
    let mut others = others.into_iter().peekable();
    for (_, stood, item) in patched {
        let earlier = |at: &Option<usize>| matches!((at, stood), (Some(at), Some(stood)) if *at < stood);
        while let Some((_, other)) = others.next_if(|(at, _)| earlier(at)) {
            all.push(other);
        }
        all.push(item);
    }
    all.extend(others.map(|(_, other)| other));
    Ok(all)
}

/// The first of each value.
fn once(items: Vec<Value>) -> Vec<Value> {
    let mut kept: Vec<Value> = Vec::with_capacity(items.len());
    for item in items {
        if !kept.contains(&item) {
            kept.push(item);
        }
    }
    kept
}

/// The value without objects that hold a directive; `None` when it is one.
fn without_directives(value: Value) -> Option<Value> {
    match value {
        Value::Object(members) if members.contains_key(DIRECTIVE) => None,
        Value::Object(members) => {
            let kept = members.into_iter().filter_map(|(name, member)| Some((name, without_directives(member)?)));
            Some(Value::Object(kept.collect()))
        }
        Value::Array(items) => Some(Value::Array(items.into_iter().filter_map(without_directives).collect())),
        value => Some(value),
    }
}
