//! A lazy view over a raw Pod or Pod template: `{metadata, spec}` as JSON, never a typed Pod.
//!
//! In: any JSON value. Out: labels, annotations, containers, volumes. Promise: absent and null mean the same
//! everywhere, and what [`PodView::new`] accepted has the expected type wherever a patch of ours may point.

use serde_json::{Map, Value};

/// A value of the wrong type in a position where a patch may point.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Misshapen {
    /// Where, such as `spec.containers[0].env`.
    pub(super) field: String,
    /// The type that belongs there.
    pub(super) expected: &'static str,
    /// The type seen.
    pub(super) seen: &'static str,
}

/// A Pod or a Pod template, borrowed.
#[derive(Debug, Clone, Copy)]
pub(super) struct PodView<'a> {
    metadata: Option<&'a Map<String, Value>>,
    spec: Option<&'a Map<String, Value>>,
    /// `metadata.managedFields`, where it was read apart from the rest.
    managed: Option<&'a Value>,
    /// What an earlier call of ours found.
    earlier: Earlier<'a>,
}

/// Where an earlier call of ours found the agent; another injector may have put its containers in since.
#[derive(Debug, Clone, Copy, Default)]
pub(super) enum Earlier<'a> {
    /// There was no such call, or it looked for none.
    #[default]
    Nothing,
    /// In the container of that name, whose port it moved.
    Moved(&'a str),
    /// Nowhere: the containers of these names declared no port.
    Portless(&'a [String]),
}

/// The JSON type, for people.
fn type_name(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "a boolean",
        Value::Number(_) => "a number",
        Value::String(_) => "a string",
        Value::Array(_) => "a list",
        Value::Object(_) => "an object",
    }
}

fn object(value: Option<&Value>, field: impl Fn() -> String) -> Result<(), Misshapen> {
    match value {
        None | Some(Value::Null | Value::Object(_)) => Ok(()),
        Some(other) => Err(Misshapen { field: field(), expected: "an object", seen: type_name(other) }),
    }
}

fn objects(value: Option<&Value>, field: impl Fn() -> String) -> Result<&[Value], Misshapen> {
    let items: &[Value] = match value {
        None | Some(Value::Null) => &[],
        Some(Value::Array(items)) => items,
        Some(other) => return Err(Misshapen { field: field(), expected: "a list", seen: type_name(other) }),
    };
    match items.iter().position(|item| !item.is_object()) {
        None => Ok(items),
        Some(index) => Err(Misshapen {
            field: format!("{}[{index}]", field()),
            expected: "an object",
            seen: type_name(&items[index]),
        }),
    }
}

fn whole_number(value: Option<&Value>, field: impl Fn() -> String) -> Result<(), Misshapen> {
    match value {
        None | Some(Value::Null) => Ok(()),
        Some(Value::Number(number)) if number.is_i64() || number.is_u64() => Ok(()),
        Some(other) => Err(Misshapen { field: field(), expected: "a whole number", seen: type_name(other) }),
    }
}

fn texts(value: Option<&Value>, field: &str) -> Result<(), Misshapen> {
    object(value, || field.to_owned())?;
    let wrong = value.and_then(Value::as_object).into_iter().flatten().find(|(_, v)| !v.is_string() && !v.is_null());
    match wrong {
        None => Ok(()),
        Some((key, value)) => {
            Err(Misshapen { field: format!("{field}[{key}]"), expected: "a string", seen: type_name(value) })
        }
    }
}

/// The probes and lifecycle hooks of a container, by the keys that lead to a handler.
pub(super) const HANDLERS: [&[&str]; 5] = [
    &["livenessProbe"],
    &["readinessProbe"],
    &["startupProbe"],
    &["lifecycle", "postStart"],
    &["lifecycle", "preStop"],
];

/// Where containers stand in a Pod.
pub(super) const CONTAINER_LISTS: [&str; 2] = ["initContainers", "containers"];

impl<'a> PodView<'a> {
    /// The view, or the first position whose type makes this no Pod.
    pub(super) fn new(root: &'a Value) -> Result<Self, Misshapen> {
        object(Some(root), || "the object".to_owned())?;
        if root.is_null() {
            return Err(Misshapen { field: "the object".to_owned(), expected: "an object", seen: "null" });
        }
        let (metadata, spec) = (root.get("metadata"), root.get("spec"));
        object(metadata, || "metadata".to_owned())?;
        object(spec, || "spec".to_owned())?;
        let members = |value: Option<&'a Value>| value.and_then(Value::as_object);
        let (metadata, spec) = (members(metadata), members(spec));
        let view = Self { metadata, spec, managed: None, earlier: Earlier::Nothing };
        texts(view.metadata("labels"), "metadata.labels")?;
        texts(view.metadata("annotations"), "metadata.annotations")?;
        objects(view.metadata("ownerReferences"), || "metadata.ownerReferences".to_owned())?;
        object(view.spec("securityContext"), || "spec.securityContext".to_owned())?;
        objects(view.spec("schedulingGates"), || "spec.schedulingGates".to_owned())?;
        objects(view.spec("volumes"), || "spec.volumes".to_owned())?;
        for list in CONTAINER_LISTS {
            let containers = objects(view.spec(list), || format!("spec.{list}"))?;
            for (index, container) in containers.iter().enumerate() {
                for inner in ["ports", "env", "volumeMounts"] {
                    objects(container.get(inner), || format!("spec.{list}[{index}].{inner}"))?;
                }
                for (entry, port) in items(container, "ports").iter().enumerate() {
                    let field = || format!("spec.{list}[{index}].ports[{entry}].containerPort");
                    whole_number(port.get("containerPort"), field)?;
                }
                object(container.get("securityContext"), || format!("spec.{list}[{index}].securityContext"))?;
            }
        }
        Ok(view)
    }

    /// The same Pod, with what is noted about it: its `metadata.managedFields`, where they were read apart from the rest.
    pub(super) fn noted(self, managed: Option<&'a Value>) -> Self {
        Self { managed, ..self }
    }

    /// The same Pod, with what an earlier call of ours found.
    pub(super) fn after(self, earlier: Earlier<'a>) -> Self {
        Self { earlier, ..self }
    }

    /// What an earlier call of ours found.
    pub(super) fn earlier(self) -> Earlier<'a> {
        self.earlier
    }

    fn metadata(self, key: &str) -> Option<&'a Value> {
        self.metadata?.get(key)
    }

    /// A member of the Pod's spec.
    pub(super) fn spec(self, key: &str) -> Option<&'a Value> {
        self.spec?.get(key)
    }

    /// A text of `metadata`, empty when absent.
    fn metadata_text(self, key: &str) -> &'a str {
        self.metadata(key).and_then(Value::as_str).unwrap_or("")
    }

    /// `metadata.name`, empty when absent.
    pub(super) fn name(self) -> &'a str {
        self.metadata_text("name")
    }

    /// `metadata.generateName`, empty when absent.
    pub(super) fn generate_name(self) -> &'a str {
        self.metadata_text("generateName")
    }

    /// `metadata.uid`, empty when absent.
    pub(super) fn uid(self) -> &'a str {
        self.metadata_text("uid")
    }

    /// The value of a label.
    pub(super) fn label(self, key: &str) -> Option<&'a str> {
        self.metadata("labels")?.get(key)?.as_str()
    }

    /// The value of an annotation.
    pub(super) fn annotation(self, key: &str) -> Option<&'a str> {
        self.metadata("annotations")?.get(key)?.as_str()
    }

    /// `metadata.annotations`, when it is a map.
    pub(super) fn annotations(self) -> Option<&'a Map<String, Value>> {
        self.metadata("annotations")?.as_object()
    }

    /// `metadata.ownerReferences`.
    pub(super) fn owner_references(self) -> &'a [Value] {
        self.metadata("ownerReferences").map_or(&[], list)
    }

    /// `metadata.managedFields`: who set which field.
    pub(super) fn managed_fields(self) -> &'a [Value] {
        self.managed.or_else(|| self.metadata("managedFields")).map_or(&[], list)
    }

    /// A list of the Pod's spec: `containers`, `initContainers`, `volumes`, `schedulingGates`.
    pub(super) fn list(self, key: &str) -> &'a [Value] {
        self.spec(key).map_or(&[], list)
    }

    /// The list exists as a list, so that elements can be added to it.
    pub(super) fn has_list(self, key: &str) -> bool {
        self.spec(key).is_some_and(Value::is_array)
    }

    /// Regular containers, then init containers, each with its list and index.
    pub(super) fn all_containers(self) -> impl Iterator<Item = (&'static str, usize, &'a Value)> {
        ["containers", "initContainers"]
            .into_iter()
            .flat_map(move |key| self.list(key).iter().enumerate().map(move |(index, value)| (key, index, value)))
    }

    /// The containers that run as long as the agent does: regular ones, and the user's own sidecars among the init containers.
    pub(super) fn lasting(self) -> impl Iterator<Item = (&'static str, usize, &'a Value)> {
        self.all_containers()
            .filter(|(list, _, container)| *list == "containers" || text(container, "restartPolicy") == "Always")
    }

    /// The ServiceAccount the Pod names, through either spelling; empty when none.
    pub(super) fn service_account(self) -> &'a str {
        ["serviceAccountName", "serviceAccount"]
            .into_iter()
            .filter_map(|key| self.spec(key)?.as_str())
            .find(|name| !name.is_empty())
            .unwrap_or("")
    }

    /// A member of the Pod's security context.
    pub(super) fn security_context(self, key: &str) -> Option<&'a Value> {
        self.spec("securityContext")?.get(key).filter(|value| !value.is_null())
    }
}

/// The elements of a list, none when it is not one.
pub(super) fn list(value: &Value) -> &[Value] {
    value.as_array().map_or(&[], Vec::as_slice)
}

/// The elements of a list member of an object.
pub(super) fn items<'v>(object: &'v Value, key: &str) -> &'v [Value] {
    object.get(key).map_or(&[], list)
}

/// A text member of an object, empty when absent.
pub(super) fn text<'v>(object: &'v Value, key: &str) -> &'v str {
    object.get(key).and_then(Value::as_str).unwrap_or("")
}
