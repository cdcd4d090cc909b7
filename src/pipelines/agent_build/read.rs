//! An AgentBuild as a request of the engine.

use std::collections::BTreeMap;

use serde_json::{Map, Value};

use super::{DEFAULT_REVISION, annotation, is_gated, mode};
use crate::api::findings::{Fault, Findings};
use crate::api::owner::Owner;
use crate::api::yaml::kind;
use crate::domain::keys;
use crate::pipelines::request::{
    BuildRequest, ImageParts, KAGENTI, Parameter, SecretUse, Source, StepUse, StepsFrom, When,
};
use crate::pipelines::templates::TemplatesView;

/// Size of the claim unless a parameter says otherwise.
const WORKSPACE_SIZE: &str = "1Gi";

/// Whose the steps of an AgentBuild are, as the webhook recorded it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Origin {
    /// The template of that mode.
    Template(String),
    /// The user; also when nothing is recorded.
    User,
}

impl Origin {
    /// The origin that the object's annotation states.
    #[must_use]
    pub fn of(object: &Value) -> Self {
        match annotation(object, keys::ANNOTATION_PIPELINE_ORIGIN)
            .and_then(|text| text.strip_prefix(keys::ORIGIN_TEMPLATE_PREFIX))
        {
            Some(mode) => Origin::Template(mode.to_owned()),
            None => Origin::User,
        }
    }

    /// The annotation's value.
    #[must_use]
    pub fn value(&self) -> String {
        match self {
            Origin::Template(mode) => format!("{}{mode}", keys::ORIGIN_TEMPLATE_PREFIX),
            Origin::User => keys::ORIGIN_USER.to_owned(),
        }
    }
}

/// The request of an AgentBuild in that namespace, for one attempt; and members whose type is wrong, which the schema
/// refuses before anybody else where there is one.
#[must_use]
pub fn read(object: &Value, namespace: &str, view: &TemplatesView, attempt: u32) -> (BuildRequest, Findings) {
    let mut reader = Reader { findings: Findings::default() };
    let spec = object.get("spec").unwrap_or(&Value::Null);
    let pipeline = reader.object(spec, "pipeline", "spec");
    let origin = Origin::of(object);
    let mode = mode(object);
    let template = match &origin {
        Origin::Template(mode) => view
            .template(super::text(object, "/spec/pipeline/namespace"), mode)
            .and_then(|entry| entry.template.clone().ok()),
        Origin::User => None,
    };
    let steps_from = if origin == Origin::User { StepsFrom::User } else { StepsFrom::Template };
    let source = reader.object(spec, "source", "spec");
    let output = reader.object(spec, "buildOutput", "spec");
    let request = BuildRequest {
        front: KAGENTI,
        owner: Owner {
            name: super::text(object, "/metadata/name").to_owned(),
            namespace: namespace.to_owned(),
            uid: super::text(object, "/metadata/uid").to_owned(),
        },
        mode: mode.to_owned(),
        gated: is_gated(mode),
        source: reader.source(source),
        git_auth: reader.secret(source, "sourceCredentials", "spec.source"),
        image: (!output.is_null()).then(|| reader.image(output)),
        registry_auth: reader.secret(output, "imageRepoCredentials", "spec.buildOutput").map(|secret| SecretUse {
            items: vec![(".dockerconfigjson".to_owned(), "config.json".to_owned())],
            ..secret
        }),
        login: None,
        derived: Vec::new(),
        template,
        steps: reader.steps(pipeline),
        steps_namespace: view.namespace(super::text(object, "/spec/pipeline/namespace")).to_owned(),
        steps_from,
        parameters: reader.parameters(pipeline, "parameters", "spec.pipeline"),
        build_arguments: reader.parameters(spec, "buildArgs", "spec"),
        workspace_size: WORKSPACE_SIZE.to_owned(),
        labels: reader.texts(spec, "labels", "spec"),
        annotations: reader.texts(spec, "annotations", "spec"),
        identity: identity(object),
        attempt,
        pinned_steps: pinned(object),
    };
    (request, reader.findings)
}

/// Members of the spec that do not change the build.
const NO_INPUTS: [&str; 3] = ["labels", "annotations", "cleanupAfterBuild"];

/// What identifies the inputs: the spec without what does not change the build, and the user's wish to build again.
fn identity(object: &Value) -> Value {
    let spec = match object.get("spec") {
        Some(Value::Object(members)) => {
            let inputs = members.iter().filter(|(key, _)| !NO_INPUTS.contains(&key.as_str()));
            Value::Object(inputs.map(|(key, value)| (key.clone(), value.clone())).collect())
        }
        other => other.cloned().unwrap_or_default(),
    };
    let rebuild = annotation(object, keys::ANNOTATION_REBUILD).unwrap_or_default();
    Value::Object(Map::from_iter([("spec".to_owned(), spec), ("rebuild".to_owned(), rebuild.into())]))
}

/// What the ConfigMaps outside the operator's namespace were at the review, by name.
pub(super) fn pinned(object: &Value) -> BTreeMap<String, String> {
    let recorded = annotation(object, keys::ANNOTATION_STEP_HASHES);
    recorded.and_then(|text| serde_json::from_str(text).ok()).unwrap_or_default()
}

struct Reader {
    findings: Findings,
}

impl Reader {
    fn wrong(&mut self, path: &str, wanted: &str, seen: &Value) {
        let sentence = format!("must be {wanted}; {} was found", kind(seen));
        self.findings.fault(Fault::invalid(path, sentence, format!("write {wanted}")));
    }

    /// An object, or null for nothing.
    fn object<'v>(&mut self, of: &'v Value, key: &str, at: &str) -> &'v Value {
        match of.get(key) {
            None | Some(Value::Null) => &Value::Null,
            Some(value @ Value::Object(_)) => value,
            Some(other) => {
                self.wrong(&format!("{at}.{key}"), "a mapping", other);
                &Value::Null
            }
        }
    }

    fn text(&mut self, of: &Value, key: &str, at: &str) -> String {
        match of.get(key) {
            None | Some(Value::Null) => String::new(),
            Some(Value::String(text)) => text.clone(),
            Some(other) => {
                self.wrong(&format!("{at}.{key}"), "a string", other);
                String::new()
            }
        }
    }

    fn list<'v>(&mut self, of: &'v Value, key: &str, at: &str) -> &'v [Value] {
        match of.get(key) {
            None | Some(Value::Null) => &[],
            Some(Value::Array(items)) => items,
            Some(other) => {
                self.wrong(&format!("{at}.{key}"), "a list", other);
                &[]
            }
        }
    }

    fn source(&mut self, source: &Value) -> Source {
        let revision = self.text(source, "sourceRevision", "spec.source");
        Source {
            repository: self.text(source, "sourceRepository", "spec.source"),
            revision: if revision.is_empty() { DEFAULT_REVISION.to_owned() } else { revision },
            subfolder: self.text(source, "sourceSubfolder", "spec.source"),
            user: self.text(source, "repoUser", "spec.source"),
        }
    }

    /// A reference to a Secret; an empty name is left for the checks to find.
    fn secret(&mut self, of: &Value, key: &str, at: &str) -> Option<SecretUse> {
        let reference = self.object(of, key, at);
        if reference.is_null() {
            return None;
        }
        let secret = self.text(reference, "name", &format!("{at}.{key}"));
        Some(SecretUse { secret, items: Vec::new(), as_parameter: true, optional: false })
    }

    fn image(&mut self, output: &Value) -> ImageParts {
        ImageParts {
            registry: self.text(output, "imageRegistry", "spec.buildOutput"),
            image: self.text(output, "image", "spec.buildOutput"),
            tag: self.text(output, "imageTag", "spec.buildOutput"),
        }
    }

    fn parameters(&mut self, of: &Value, key: &str, at: &str) -> Vec<Parameter> {
        let mut parameters = Vec::new();
        for (index, item) in self.list(of, key, at).iter().enumerate() {
            let place = format!("{at}.{key}[{index}]");
            if !item.is_object() {
                self.wrong(&place, "a mapping with name and value", item);
            }
            parameters
                .push(Parameter { name: self.text(item, "name", &place), value: self.text(item, "value", &place) });
        }
        parameters
    }

    fn strings(&mut self, of: &Value, key: &str, at: &str) -> Vec<String> {
        let mut strings = Vec::new();
        for (index, item) in self.list(of, key, at).iter().enumerate() {
            match item {
                Value::String(text) => strings.push(text.clone()),
                other => self.wrong(&format!("{at}.{key}[{index}]"), "a string", other),
            }
        }
        strings
    }

    fn steps(&mut self, pipeline: &Value) -> Vec<StepUse> {
        let mut steps = Vec::new();
        for (index, item) in self.list(pipeline, "steps", "spec.pipeline").iter().enumerate() {
            let at = format!("spec.pipeline.steps[{index}]");
            if !item.is_object() {
                self.wrong(&at, "a mapping", item);
            }
            let enabled = match item.get("enabled") {
                None | Some(Value::Null) => true,
                Some(Value::Bool(enabled)) => *enabled,
                Some(other) => {
                    self.wrong(&format!("{at}.enabled"), "true or false", other);
                    true
                }
            };
            steps.push(StepUse {
                name: self.text(item, "name", &at),
                config_map: self.text(item, "configMap", &at),
                enabled,
                parameters: self.parameters(item, "parameters", &at),
                required: self.strings(item, "requiredParameters", &at),
                when: self.whens(item, &at),
            });
        }
        steps
    }

    fn whens(&mut self, step: &Value, at: &str) -> Vec<When> {
        let mut whens = Vec::new();
        for (index, item) in self.list(step, "whenExpressions", at).iter().enumerate() {
            let at = format!("{at}.whenExpressions[{index}]");
            whens.push(When {
                input: self.text(item, "input", &at),
                operator: self.text(item, "operator", &at),
                values: self.strings(item, "values", &at),
            });
        }
        whens
    }

    fn texts(&mut self, of: &Value, key: &str, at: &str) -> BTreeMap<String, String> {
        let members = self.object(of, key, at).as_object();
        let mut texts = BTreeMap::new();
        for (name, value) in members.into_iter().flatten() {
            match value {
                Value::String(text) => {
                    texts.insert(name.clone(), text.clone());
                }
                other => self.wrong(&format!("{at}.{key}[{name}]"), "a string", other),
            }
        }
        texts
    }
}
