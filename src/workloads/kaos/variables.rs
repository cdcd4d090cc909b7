//! The environment of a container: in order, each name once, each with the field it came from.
//!
//! In: what the user wrote, and what the operator sets, in the order of the contract. Out: entries of a container's `env`. Promises: the
//! user's value takes the place of the operator's, but for names that are the operator's alone; what was left out is
//! remarked. Texts of users that the operator puts into a variable are not expanded by the kubelet: each `$` is
//! written `$$`; entries that the user wrote as such are left as they are, there expansion is wanted.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::contract::{self, Name, Origin, Place, Row, Users};
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
    /// The row of the contract; `None` of what the user wrote.
    pub row: Option<&'static Row>,
}

/// A variable of the user's that does not count: its name is the operator's alone.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ignored {
    /// Its name.
    pub name: String,
    /// The field that sets it.
    pub instead: String,
}

/// Where a variable stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stands {
    /// Among those of the user that have no place yet.
    Users(usize),
    /// Among those that have one.
    All(usize),
}

/// An environment while it is put together.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Variables {
    place: Place,
    /// In order; what was taken out leaves a gap.
    all: Vec<Option<Variable>>,
    /// The same of what the user wrote, until it has a place among all.
    users: Vec<Option<Variable>>,
    /// Where each name stands. Each that is written looks for its own: among all of them that would take as many looks again.
    stands: BTreeMap<String, Stands>,
    /// What the user wrote and does not count.
    pub ignored: Vec<Ignored>,
}

impl Variables {
    /// With what the user wrote, in order, each name once.
    #[must_use]
    pub fn of_user(place: Place, container: &shape::Container) -> Self {
        let one = |said: &shape::Variable| {
            let (name, entry, from) = (said.name.clone(), said.entry.clone(), said.path.clone());
            Some(Variable { name, entry, from, row: None })
        };
        let names = container.env.iter().enumerate();
        let stands = names.map(|(at, said)| (said.name.clone(), Stands::Users(at))).collect();
        Self { place, users: container.env.iter().map(one).collect(), stands, ..Self::default() }
    }

    /// The user's entry of that name.
    #[must_use]
    pub fn user(&self, name: &str) -> Option<&Value> {
        let known = match *self.stands.get(name)? {
            Stands::Users(at) => self.users.get(at),
            Stands::All(at) => self.all.get(at),
        };
        known.and_then(Option::as_ref).map(|known| &known.entry)
    }

    /// Takes the user's entry of that name out.
    pub fn take_user(&mut self, name: &str) -> Option<Value> {
        self.take(name).map(|taken| taken.entry)
    }

    fn take(&mut self, name: &str) -> Option<Variable> {
        match self.stands.remove(name)? {
            Stands::Users(at) => self.users.get_mut(at)?.take(),
            Stands::All(at) => self.all.get_mut(at)?.take(),
        }
    }

    fn put(&mut self, variable: Variable) {
        self.stands.insert(variable.name.clone(), Stands::All(self.all.len()));
        self.all.push(Some(variable));
    }

    /// A variable of the contract: one that the user may set as well, where the user has not; one that is the operator's alone, whoever did.
    pub fn set(&mut self, row: &'static Row, value: &str) {
        self.set_for(row, "", value);
    }

    /// The same of a row with one variable for each object, or with a name of the registry's.
    pub fn set_for(&mut self, row: &'static Row, object: &str, value: &str) {
        let name = match row.name {
            Name::Registered(_) if !object.is_empty() => object.to_owned(),
            name => name.of(object),
        };
        let entry = literal(&name, value);
        self.write(row, (name, entry), row.from.first());
    }

    /// The same from another place than the row's first.
    pub fn set_from(&mut self, row: &'static Row, value: &str, from: Origin) {
        let name = row.name.of("");
        let entry = literal(&name, value);
        self.write(row, (name, entry), Some(&from));
    }

    /// The same with an entry of any shape.
    pub fn entry(&mut self, row: &'static Row, entry: Value, from: Origin) {
        self.write(row, (row.name.of(""), entry), Some(&from));
    }

    fn write(&mut self, row: &'static Row, (name, entry): (String, Value), from: Option<&Origin>) {
        let from = from.map(|from| from.words(self.place)).unwrap_or_default();
        match row.users {
            Users::May if self.stands.contains_key(&name) => return,
            Users::May => {}
            Users::MayNot => {
                if self.take(&name).is_some() {
                    self.ignored.push(Ignored { name: name.clone(), instead: from.clone() });
                }
            }
        }
        self.put(Variable { name, entry, from, row: Some(row) });
    }

    /// The same variables in another container.
    #[must_use]
    pub fn at(mut self, place: Place) -> Self {
        self.place = place;
        self
    }

    /// Here stands what the user wrote.
    pub fn users(&mut self) {
        std::mem::take(&mut self.users).into_iter().flatten().for_each(|variable| self.put(variable));
    }

    /// All of them, in order.
    #[must_use]
    pub fn all(mut self) -> (Vec<Variable>, Vec<Ignored>) {
        self.users();
        (self.all.into_iter().flatten().collect(), self.ignored)
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
    from: Origin,
) {
    let row = &contract::OTEL_RESOURCE_ATTRIBUTES;
    let attributes = row.name.of("");
    variables.set_from(&contract::OTEL_SDK_DISABLED, "false", from);
    variables.set_from(&contract::OTEL_SERVICE_NAME, name, from);
    if let Some(endpoint) = endpoint {
        variables.set_from(&contract::OTEL_EXPORTER_OTLP_ENDPOINT, endpoint, from);
    }
    let generated = format!("service.namespace={namespace},kaos.resource.name={name}");
    // What the user adds comes behind ours; of one that is read from elsewhere nobody knows what it adds, and it stands alone.
    let theirs = variables.user(&attributes).and_then(|entry| entry.get("value")?.as_str().map(str::to_owned));
    match theirs {
        Some(theirs) => {
            variables.take_user(&attributes);
            // The user's own text may hold references, which are to be expanded.
            let entry = json!({"name": attributes, "value": format!("{},{theirs}", generated.replace('$', "$$"))});
            variables.entry(row, entry, from);
        }
        None => variables.set_from(row, &generated, from),
    }
    variables.set_from(&contract::OTEL_PYTHON_FASTAPI_EXCLUDED_URLS, "/health,/ready", from);
}

/// Whether traces are said of by the object itself, or by the platform.
pub(super) fn telemetry_of(own: Option<&shape::Telemetry>) -> Origin {
    if own.is_some() { Origin::Telemetry } else { Origin::Platform("kaos.telemetry") }
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
        let env = entries.iter().map(one).collect();
        Variables::of_user(Place::Agent, &shape::Container { env, ..shape::Container::default() })
    }

    fn names(variables: Variables) -> Vec<String> {
        variables.all().0.into_iter().map(|variable| variable.name).collect()
    }

    #[test]
    fn each_name_stands_once_the_users_where_the_user_may_and_the_operators_where_it_must() {
        let mut variables =
            user(&[json!({"name": "MODEL_API_URL", "value": "x"}), json!({"name": "LOG_LEVEL", "value": "2"})]);
        variables.set(&contract::AGENT_DESCRIPTION, "1");
        variables.users();
        variables.set(&contract::LOG_LEVEL, "operator");
        variables.set(&contract::MODEL_API_URL, "http://m");
        let (all, ignored) = variables.all();
        let shown: Vec<_> = all.iter().map(|variable| (&*variable.name, &variable.entry["value"])).collect();
        assert_eq!(
            shown,
            [("AGENT_DESCRIPTION", &json!("1")), ("LOG_LEVEL", &json!("2")), ("MODEL_API_URL", &json!("http://m"))]
        );
        let told: Vec<_> = ignored.iter().map(|one| (&*one.name, &*one.instead)).collect();
        assert_eq!(told, [("MODEL_API_URL", "spec.modelAPI")]);
    }

    /// What this thread has worked so far. Time that the machine gave to others is not in it.
    fn worked() -> u64 {
        let text = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap();
        text.split(' ').next().unwrap().parse().unwrap()
    }

    /// As many names as there are tool servers, each of which the user wrote as well: none is looked for among all of them.
    #[test]
    fn what_is_written_costs_as_much_as_there_is_to_write() {
        let mut spent = Vec::new();
        for count in [8_000, 64_000] {
            let names: Vec<String> = (0..count).map(|number| format!("T{number}")).collect();
            let row = &contract::MCP_SERVER_URL;
            let entry = |name: &String| json!({"name": row.name.of(name), "value": "x"});
            let entries: Vec<Value> = names.iter().map(entry).collect();
            // The best of five: caches are shared with whatever else runs.
            let best = (0..5).map(|_| {
                let mut variables = user(&entries);
                variables.users();
                let begun = worked();
                names.iter().for_each(|name| variables.set_for(row, name, "http://t"));
                let took = worked() - begun;
                let (all, ignored) = variables.all();
                assert_eq!((all.len(), ignored.len()), (count, count));
                assert!(all.iter().zip(&names).all(|(one, name)| one.name == row.name.of(name)), "in their order");
                took
            });
            spent.push(best.min().unwrap().max(1));
        }
        assert!(spent[1] < spent[0] * 24, "eight times as many, quadratic would be sixty-four: {spent:?}");
    }

    #[test]
    fn case_3_the_process_sees_the_text_as_it_was_written() {
        let mut variables = user(&[json!({"name": "U", "value": "$(A) $$"})]);
        variables.users();
        variables.set(&contract::AGENT_INSTRUCTIONS, "say $(AGENT_NAME), $$ and $x\nand more");
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
        telemetry(&mut variables, ("ns", "a"), Some("http://c:4317"), Origin::Telemetry);
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
        telemetry(&mut variables, ("ns", "a"), None, Origin::Telemetry);
        assert_eq!(variables.user("OTEL_RESOURCE_ATTRIBUTES"), Some(&from));
    }
}
