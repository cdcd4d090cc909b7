//! AgentBuilds on their way to Tekton: completed, judged and composed by the library, as webhook and controller do.

use drawbridge::api::findings::Findings;
use drawbridge::domain::keys;
use drawbridge::pipelines::agent_build::{Change, complete, read, validate};
use drawbridge::pipelines::catalogue::{Values, config_maps};
use drawbridge::pipelines::compose::{Composition, Surroundings, compose};
use drawbridge::pipelines::settings::Settings;
use drawbridge::pipelines::templates::TemplatesView;
use serde_json::{Value, json};

/// What the operator knows besides the object.
pub(crate) struct Platform {
    /// Templates and steps.
    pub(crate) view: TemplatesView,
    /// The platform file.
    pub(crate) settings: Settings,
}

impl Platform {
    /// As shipped.
    pub(crate) fn shipped() -> Self {
        let operator = keys::OPERATOR_NAMESPACE;
        let view = TemplatesView::new(operator, false).with(config_maps(operator, &Values::default()));
        Self { view, settings: Settings::new(operator) }
    }

    /// The object as it would be stored, and what the review says of it.
    pub(crate) fn reviewed(&self, object: &Value) -> (Value, Findings) {
        let namespace = object["metadata"]["namespace"].as_str().unwrap();
        let mut stored = object.clone();
        let operations = complete(&Change { namespace, object, old: None }, &self.view, &self.settings);
        json_patch::patch(&mut stored, &operations).unwrap();
        let findings = validate(&Change { namespace, object: &stored, old: None }, &self.view, &self.settings);
        (stored, findings)
    }

    /// What the controller makes of a stored object, for Tekton alone ([`of_no_build`]).
    pub(crate) fn composed(&self, stored: &Value) -> Result<Composition, Findings> {
        let namespace = stored["metadata"]["namespace"].as_str().unwrap();
        let (request, findings) = read(stored, namespace, &self.view, 1);
        if !findings.faults.is_empty() {
            return Err(findings);
        }
        let steps = self.view.steps(stored["spec"]["pipeline"]["namespace"].as_str().unwrap());
        let mut composition = compose(&request, Surroundings { steps, settings: &self.settings, accounts: None })?;
        of_no_build(&mut composition.run);
        Ok(composition)
    }

    /// From what a user applies to what Tekton gets; panics when anything is wrong.
    pub(crate) fn accepted(&self, object: &Value) -> Composition {
        let (stored, findings) = self.reviewed(object);
        assert!(findings.faults.is_empty(), "{object}: {:#?}", findings.faults);
        self.composed(&stored).unwrap_or_else(|findings| panic!("{object}: {findings:#?}"))
    }
}

/// By this label our own policies know a run, and ask for its build, which is not there; they come as soon as another test installs them on the
/// same control plane. Tekton does not care.
pub(crate) fn of_no_build(run: &mut Value) {
    run["metadata"]["labels"].as_object_mut().unwrap().remove(keys::LABEL_AGENT_BUILD);
}

/// A build of that mode, with everything it needs and nothing more.
pub(crate) fn build(namespace: &str, name: &str, mode: &str) -> Value {
    let gated = matches!(mode, "preprod" | "prod");
    let registry = if gated || mode == "dev-external" { "ghcr.io/acme" } else { "registry.cr-system.svc:5000" };
    let mut object = json!({
        "apiVersion": "agent.kagenti.dev/v1alpha1", "kind": "AgentBuild",
        "metadata": { "name": name, "namespace": namespace, "uid": format!("uid-of-{name}") },
        "spec": {
            "mode": mode,
            "source": { "sourceRepository": "github.com/acme/agents.git", "sourceRevision": "v1.4.2", "sourceSubfolder": "a2a/weather" },
            "buildOutput": { "imageRegistry": registry, "image": "weather", "imageTag": "v0.0.1" },
        },
    });
    if mode == "prod" {
        object["spec"]["pipeline"] = json!({ "parameters": [
            { "name": "test-command", "value": "python -m pytest -q" },
            { "name": "signing-secret", "value": "release-key" },
        ] });
    }
    if mode == "custom" {
        object["spec"]["pipeline"] = json!({ "steps": [
            { "name": "clone", "configMap": "github-clone-step" },
            { "name": "detect", "configMap": "check-dockerfile-step" },
            { "name": "off", "configMap": "check-subfolder-step", "enabled": false },
            { "name": "build", "configMap": "buildah-build-step",
              "parameters": [{ "name": "DOCKERFILE", "value": "$(tasks.detect.results.dockerfile-name)" }],
              "whenExpressions": [{ "input": "$(tasks.detect.results.has-dockerfile)", "operator": "notin", "values": ["false"] }] },
        ] });
    }
    object
}
