//! What a build is asked for, whatever API group asked.
//!
//! A front end translates its custom resource into one of these values and owns the words of its status; everything
//! after that is one implementation. What differs between front ends (names of labels, paths of fields) is data here.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::Value;

use super::template::Template;
use crate::api::owner::Owner;
use crate::domain::keys;

/// The words of one API group: what is data about a front end, for names and messages.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FrontEnd {
    /// `apiVersion` of the object that owns the run.
    pub api_version: &'static str,
    /// Its kind.
    pub kind: &'static str,
    /// Label of run and claim that names the object.
    pub label_build: &'static str,
    /// Label of run and claim that names the mode; `None` when the front end has no modes.
    pub label_mode: Option<&'static str>,
    /// A further label of run and claim that names the object.
    pub label_name: Option<&'static str>,
    /// Label and value of run and claim that tell the groups apart that share a kind.
    pub label_group: Option<(&'static str, &'static str)>,
    /// Annotation of the run: the build hash.
    pub annotation_hash: &'static str,
    /// Annotation of the run: the attempt.
    pub annotation_attempt: &'static str,
    /// Annotation of the object by which a person asks for a build of the same inputs.
    pub annotation_rebuild: &'static str,
    /// Annotation of the object by which a person cancels a build.
    pub annotation_cancel: &'static str,
    /// What stands before a step's name in the annotation with the hash of its ConfigMap.
    pub prefix_step_hash: &'static str,
    /// What stands after the object's name in the name of the claim.
    pub claim_suffix: &'static str,
    /// Where the fields stand in the user's object.
    pub paths: Paths,
}

/// Where the user wrote what the request holds: so that every front end's faults name its own fields.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Paths {
    /// Source URL.
    pub repository: &'static str,
    /// Branch, tag or commit.
    pub revision: &'static str,
    /// Folder in the repository.
    pub subfolder: &'static str,
    /// User name for the repository.
    pub user: &'static str,
    /// Name of the Secret with credentials for the repository.
    pub git_auth: &'static str,
    /// Where the image goes, as a whole.
    pub output: &'static str,
    /// Registry.
    pub registry: &'static str,
    /// Path in the registry.
    pub image: &'static str,
    /// Tag.
    pub tag: &'static str,
    /// Name of the Secret with credentials for the registry.
    pub registry_auth: &'static str,
    /// Parameters for all steps.
    pub parameters: &'static str,
    /// The steps.
    pub steps: &'static str,
    /// Build arguments.
    pub build_arguments: &'static str,
    /// Labels for run and claim.
    pub labels: &'static str,
    /// Annotations for run and claim.
    pub annotations: &'static str,
}

/// AgentBuild of `agent.kagenti.dev/v1alpha1`.
pub const KAGENTI: FrontEnd = FrontEnd {
    api_version: "agent.kagenti.dev/v1alpha1",
    kind: "AgentBuild",
    label_build: keys::LABEL_AGENT_BUILD,
    label_mode: Some(keys::LABEL_BUILD_MODE),
    label_name: None,
    label_group: None,
    annotation_hash: keys::ANNOTATION_BUILD_HASH,
    annotation_attempt: keys::ANNOTATION_ATTEMPT,
    annotation_rebuild: keys::ANNOTATION_REBUILD,
    annotation_cancel: keys::ANNOTATION_CANCEL,
    prefix_step_hash: keys::PREFIX_STEP_HASH,
    claim_suffix: "-workspace",
    paths: Paths {
        repository: "spec.source.sourceRepository",
        revision: "spec.source.sourceRevision",
        subfolder: "spec.source.sourceSubfolder",
        user: "spec.source.repoUser",
        git_auth: "spec.source.sourceCredentials.name",
        output: "spec.buildOutput",
        registry: "spec.buildOutput.imageRegistry",
        image: "spec.buildOutput.image",
        tag: "spec.buildOutput.imageTag",
        registry_auth: "spec.buildOutput.imageRepoCredentials.name",
        parameters: "spec.pipeline.parameters",
        steps: "spec.pipeline.steps",
        build_arguments: "spec.buildArgs",
        labels: "spec.labels",
        annotations: "spec.annotations",
    },
};

/// AgentBuild of `beeai.dev/v1`. What it makes carries the label of every build, too: by that it is followed.
pub const BEEAI: FrontEnd = FrontEnd {
    api_version: "beeai.dev/v1",
    kind: "AgentBuild",
    label_build: keys::LABEL_AGENT_BUILD,
    label_mode: None,
    label_name: Some(keys::LABEL_BEEAI_BUILD),
    label_group: Some((keys::LABEL_BEEAI_GROUP, keys::GROUP_BEEAI)),
    annotation_hash: keys::ANNOTATION_BEEAI_BUILD_HASH,
    annotation_attempt: keys::ANNOTATION_BEEAI_ATTEMPT,
    annotation_rebuild: keys::ANNOTATION_BEEAI_REBUILD,
    annotation_cancel: keys::ANNOTATION_BEEAI_CANCEL,
    prefix_step_hash: keys::PREFIX_STEP_HASH,
    claim_suffix: "-beeai-workspace",
    paths: Paths {
        repository: "spec.repoUrl",
        revision: "spec.revision",
        subfolder: "spec.sourceSubfolder",
        user: "spec.repoUser",
        git_auth: "spec.env",
        output: "spec.image",
        registry: "spec.imageRegistry",
        image: "spec.image",
        tag: "spec.imageTag",
        registry_auth: "spec.env",
        parameters: "the template's parameters",
        steps: "the steps of pipeline-template-beeai",
        build_arguments: "spec.env",
        labels: "metadata.labels",
        annotations: "metadata.annotations",
    },
};

/// AgentBuild of `beeai.beeai.dev/v1`, the group of the original operator.
pub const BEEAI_COMPAT: FrontEnd = FrontEnd {
    api_version: "beeai.beeai.dev/v1",
    label_group: Some((keys::LABEL_BEEAI_GROUP, keys::GROUP_BEEAI_COMPAT)),
    ..BEEAI
};

/// A named value, always text.
#[derive(Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Parameter {
    /// Its name.
    pub name: String,
    /// Its value, possibly empty.
    pub value: String,
}

impl Parameter {
    /// The parameter of that name and value.
    #[must_use]
    pub fn new(name: impl Into<String>, value: impl Into<String>) -> Self {
        Self { name: name.into(), value: value.into() }
    }
}

/// A Secret that is bound as a workspace. Only its name is known here, never its content.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SecretUse {
    /// Name of the Secret, in the build's namespace.
    pub secret: String,
    /// Which keys appear under which file names; empty for all under their own.
    pub items: Vec<(String, String)>,
    /// Whether its name also becomes a derived parameter, for steps that mount it themselves.
    pub as_parameter: bool,
    /// Where it is missing, or the keys in it are, the build goes without it.
    pub optional: bool,
}

/// A login of a registry that is made from a token. Only names are known here, never the token.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Login {
    /// Name of the Secret that will hold it, in the build's namespace.
    pub secret: String,
    /// The Secret that holds the token.
    pub token: String,
    /// The token's key there.
    pub key: String,
    /// Without the token there is no login.
    pub optional: bool,
    /// User name that goes with the token.
    pub user: String,
    /// What the login is looked up by: the host, but for Docker Hub.
    pub account: String,
    /// Host and port of the registry, in lower case.
    pub host: String,
}

/// Where the image goes.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ImageParts {
    /// Host, optional port, optional path.
    pub registry: String,
    /// Path below it.
    pub image: String,
    /// Tag.
    pub tag: String,
}

impl ImageParts {
    /// `registry/image:tag`.
    #[must_use]
    pub fn reference(&self) -> String {
        format!("{}/{}:{}", self.registry, self.image, self.tag)
    }

    /// The same with another tag.
    #[must_use]
    pub fn with_tag(&self, tag: &str) -> String {
        format!("{}/{}:{tag}", self.registry, self.image)
    }
}

/// Source code.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Source {
    /// Git URL, with or without `https://`.
    pub repository: String,
    /// Branch, tag or commit.
    pub revision: String,
    /// Folder in the repository; empty for its root.
    pub subfolder: String,
    /// User name for token authentication; empty for none.
    pub user: String,
}

/// A condition of a step.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct When {
    /// Left side.
    pub input: String,
    /// `in` or `notin`.
    pub operator: String,
    /// Right side; Tekton wants at least one.
    pub values: Vec<String>,
}

/// One entry of a pipeline: which ConfigMap, with what.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct StepUse {
    /// Name of the task.
    pub name: String,
    /// ConfigMap that holds its TaskSpec.
    pub config_map: String,
    /// `false` takes it out of the run.
    pub enabled: bool,
    /// Its own parameters.
    pub parameters: Vec<Parameter>,
    /// Parameters that must have a value.
    pub required: Vec<String>,
    /// Conditions, all of which must hold.
    pub when: Vec<When>,
}

/// Whose the steps and their own parameters are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StepsFrom {
    /// The user's: their parameters win over everything.
    User,
    /// The template's: their parameters are defaults.
    Template,
}

/// Everything a build is asked for.
#[derive(Debug, Clone, PartialEq)]
pub struct BuildRequest {
    /// Who asks.
    pub front: FrontEnd,
    /// Which object asks.
    pub owner: Owner,
    /// Its mode, for the label; empty without modes.
    pub mode: String,
    /// Whether the pipeline pushes a candidate, tests it and promotes it: nothing may then be skipped silently.
    pub gated: bool,
    /// What is built.
    pub source: Source,
    /// Credentials for the repository.
    pub git_auth: Option<SecretUse>,
    /// Where the image goes.
    pub image: Option<ImageParts>,
    /// Credentials for the registry.
    pub registry_auth: Option<SecretUse>,
    /// How those are made, where they are made from a token.
    pub login: Option<Login>,
    /// Further derived parameters of the front end.
    pub derived: Vec<Parameter>,
    /// The template whose global, required and locked parameters apply; `None` for a user's own steps.
    pub template: Option<Arc<Template>>,
    /// The steps, in order.
    pub steps: Vec<StepUse>,
    /// Namespace of their ConfigMaps.
    pub steps_namespace: String,
    /// Whose steps they are.
    pub steps_from: StepsFrom,
    /// The user's parameters for all steps.
    pub parameters: Vec<Parameter>,
    /// Arguments for the image's build, in order.
    pub build_arguments: Vec<Parameter>,
    /// Size of the claim unless a parameter says otherwise.
    pub workspace_size: String,
    /// The user's labels for run and claim.
    pub labels: BTreeMap<String, String>,
    /// The user's annotations for run and claim.
    pub annotations: BTreeMap<String, String>,
    /// What identifies the inputs besides the object's uid: two requests that differ here are two builds.
    pub identity: Value,
    /// Which attempt at these inputs, from 1.
    pub attempt: u32,
    /// What the step ConfigMaps were when the object was reviewed, by name; a difference is a fault.
    pub pinned_steps: BTreeMap<String, String>,
}
