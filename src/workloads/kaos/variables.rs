//! The environment of a container: in order, each name once, each with the field it came from.
//!
//! In: what the user wrote, and what the operator sets, in the order of the contract. Out: entries of a container's `env`. Promises: the
//! user's value takes the place of the operator's, but for names that are the operator's alone; what was left out is
//! remarked. Texts of users that the operator puts into a variable are not expanded by the kubelet: each `$` is
//! written `$$`; entries that the user wrote as such are left as they are, there expansion is wanted.

use serde_json::{Value, json};

use crate::api::kaos_tools::shape;

/// One variable.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Variable {
    /// Its name.
    pub name: String,
    /// The entry as it stands in the container.
    pub entry: Value,
    /// The field that it came from: a path of the resource, a key of the platform file, or an object that it refers to.
    pub from: String,
}

/// A variable of the user's that does not count: its name is the operator's alone.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ignored {
    /// Its name.
    pub name: String,
    /// The field that sets it.
    pub instead: String,
}

/// An environment while it is put together.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Variables {
    all: Vec<Variable>,
    users: Vec<Variable>,
    /// What the user wrote and does not count.
    pub ignored: Vec<Ignored>,
}

impl Variables {
    /// With what the user wrote, in order, each name once.
    #[must_use]
    pub fn of_user(container: &shape::Container) -> Self {
        let one = |said: &shape::Variable| Variable {
            name: said.name.clone(),
            entry: said.entry.clone(),
            from: said.path.clone(),
        };
        Self { users: container.env.iter().map(one).collect(), ..Self::default() }
    }

    /// The user's entry of that name.
    #[must_use]
    pub fn user(&self, name: &str) -> Option<&Value> {
        let users = self.users.iter().chain(&self.all).find(|known| known.name == name);
        users.map(|known| &known.entry)
    }

    /// Takes the user's entry of that name out.
    pub fn take_user(&mut self, name: &str) -> Option<Value> {
        let list = if self.users.iter().any(|known| known.name == name) { &mut self.users } else { &mut self.all };
        let at = list.iter().position(|known| known.name == name)?;
        Some(list.remove(at).entry)
    }

    /// A variable that the user may set as well.
    pub fn set(&mut self, name: impl Into<String>, value: &str, from: impl Into<String>) {
        let name = name.into();
        let entry = literal(&name, value);
        self.entry(name, entry, from);
    }

    /// The same with an entry of any shape.
    pub fn entry(&mut self, name: impl Into<String>, entry: Value, from: impl Into<String>) {
        let name = name.into();
        if self.user(&name).is_none() {
            self.all.push(Variable { name, entry, from: from.into() });
        }
    }

    /// A variable that is the operator's alone.
    pub fn own(&mut self, name: impl Into<String>, value: &str, from: impl Into<String>) {
        let (name, from) = (name.into(), from.into());
        for list in [&mut self.users, &mut self.all] {
            while let Some(at) = list.iter().position(|known| known.name == name) {
                list.remove(at);
                self.ignored.push(Ignored { name: name.clone(), instead: from.clone() });
            }
        }
        self.all.push(Variable { entry: literal(&name, value), name, from });
    }

    /// Here stands what the user wrote.
    pub fn users(&mut self) {
        self.all.append(&mut self.users);
    }

    /// All of them, in order.
    #[must_use]
    pub fn all(mut self) -> (Vec<Variable>, Vec<Ignored>) {
        self.users();
        (self.all, self.ignored)
    }
}

/// A literal that the kubelet does not expand.
fn literal(name: &str, value: &str) -> Value {
    json!({"name": name, "value": value.replace('$', "$$")})
}

/// The variables of OpenTelemetry, of agents and tools.
pub(super) fn telemetry(
    variables: &mut Variables,
    (namespace, name): (&str, &str),
    endpoint: Option<&str>,
    from: &str,
) {
    const ATTRIBUTES: &str = "OTEL_RESOURCE_ATTRIBUTES";
    variables.set("OTEL_SDK_DISABLED", "false", from);
    variables.set("OTEL_SERVICE_NAME", name, from);
    if let Some(endpoint) = endpoint {
        variables.set("OTEL_EXPORTER_OTLP_ENDPOINT", endpoint, from);
    }
    let generated = format!("service.namespace={namespace},kaos.resource.name={name}");
    // What the user adds comes behind ours; of one that is read from elsewhere nobody knows what it adds, and it stands alone.
    let theirs = variables.user(ATTRIBUTES).and_then(|entry| entry.get("value")?.as_str().map(str::to_owned));
    match theirs {
        Some(theirs) => {
            variables.take_user(ATTRIBUTES);
            // The user's own text may hold references, which are to be expanded.
            let entry = json!({"name": ATTRIBUTES, "value": format!("{},{theirs}", generated.replace('$', "$$"))});
            variables.entry(ATTRIBUTES, entry, from);
        }
        None => variables.set(ATTRIBUTES, &generated, from),
    }
    variables.set("OTEL_PYTHON_FASTAPI_EXCLUDED_URLS", "/health,/ready", from);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn user(entries: &[Value]) -> Variables {
        let one = |entry: &Value| shape::Variable {
            name: entry["name"].as_str().unwrap().to_owned(),
            entry: entry.clone(),
            path: String::new(),
        };
        Variables::of_user(&shape::Container { env: entries.iter().map(one).collect(), ..shape::Container::default() })
    }

    fn names(variables: Variables) -> Vec<String> {
        variables.all().0.into_iter().map(|variable| variable.name).collect()
    }

    #[test]
    fn each_name_stands_once_the_users_where_the_user_may_and_the_operators_where_it_must() {
        let mut variables = user(&[json!({"name": "URL", "value": "x"}), json!({"name": "A", "value": "2"})]);
        variables.set("FIRST", "1", "f");
        variables.users();
        variables.set("A", "operator", "f");
        variables.own("URL", "http://m", "spec.modelAPI");
        let (all, ignored) = variables.all();
        let shown: Vec<_> = all.iter().map(|variable| (&*variable.name, &variable.entry["value"])).collect();
        assert_eq!(shown, [("FIRST", &json!("1")), ("A", &json!("2")), ("URL", &json!("http://m"))]);
        let told: Vec<_> = ignored.iter().map(|one| (&*one.name, &*one.instead)).collect();
        assert_eq!(told, [("URL", "spec.modelAPI")]);
    }

    #[test]
    fn case_3_the_process_sees_the_text_as_it_was_written() {
        let mut variables = user(&[json!({"name": "U", "value": "$(A) $$"})]);
        variables.users();
        variables.set("T", "say $(AGENT_NAME), $$ and $x\nand more", "f");
        let (all, _) = variables.all();
        assert_eq!(all[0].entry["value"], "$(A) $$", "what the user wrote as a variable is expanded");
        assert_eq!(all[1].entry["value"], "say $$(AGENT_NAME), $$$$ and $$x\nand more");
    }

    /// D25: attributes are merged, and nobody's are lost.
    #[test]
    fn a_users_attributes_stand_behind_the_generated_ones() {
        let mut variables =
            user(&[json!({"name": "OTEL_RESOURCE_ATTRIBUTES", "value": "team=a"}), json!({"name": "B", "value": "1"})]);
        variables.users();
        telemetry(&mut variables, ("ns", "a"), Some("http://c:4317"), "f");
        let found = variables.user("OTEL_RESOURCE_ATTRIBUTES").cloned();
        assert_eq!(found.unwrap()["value"], "service.namespace=ns,kaos.resource.name=a,team=a");
        assert_eq!(
            names(variables),
            [
                "B",
                "OTEL_SDK_DISABLED",
                "OTEL_SERVICE_NAME",
                "OTEL_EXPORTER_OTLP_ENDPOINT",
                "OTEL_RESOURCE_ATTRIBUTES",
                "OTEL_PYTHON_FASTAPI_EXCLUDED_URLS"
            ]
        );
        let from =
            json!({"name": "OTEL_RESOURCE_ATTRIBUTES", "valueFrom": {"configMapKeyRef": {"name": "c", "key": "k"}}});
        let mut variables = user(std::slice::from_ref(&from));
        variables.users();
        telemetry(&mut variables, ("ns", "a"), None, "f");
        assert_eq!(variables.user("OTEL_RESOURCE_ATTRIBUTES"), Some(&from));
    }
}
