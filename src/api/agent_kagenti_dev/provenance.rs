//! What an image was made of, as the status of an AgentBuild records it: one shape for the builds of every group.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The member of a build's status that holds what the attempt under way is composed of.
pub const INPUTS: &str = "inputs";
/// The member that holds the record of the image.
pub const MADE: &str = "provenance";
/// The member that holds the records of the images before.
pub const BEFORE: &str = "earlier";
/// The members that hold records.
pub const MEMBERS: [&str; 3] = [INPUTS, MADE, BEFORE];

/// Most steps of a record.
pub const STEPS: usize = 32;
/// Most images and most build arguments of a step in a record.
pub const ENTRIES: usize = 32;
/// Most earlier records that are kept.
pub const EARLIER: usize = 4;
/// Longest text of a record, in bytes.
pub const TEXT: usize = 512;
/// Longest record, in bytes of JSON, with build arguments and images in it.
pub const LARGEST: usize = 24 * 1024;

/// What an image was made of. What is left out was not known.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Provenance {
    /// Identity of the inputs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub build_hash: Option<String>,
    /// Which attempt at them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub attempt: Option<i32>,
    /// The wish to build again that it fulfilled.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rebuild: Option<String>,
    /// The build whose run made the image, where this one needed none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub known_from: Option<String>,
    /// Digest of everything that decides the image but the commit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub recipe: Option<String>,
    /// The Git repository that the run was told.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub repository: Option<String>,
    /// The branch, tag or commit that the run was told.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub revision: Option<String>,
    /// The commit that the run reported.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub commit: Option<String>,
    /// Folder in the repository.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub subfolder: Option<String>,
    /// The steps, in order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = STEPS))]
    pub steps: Vec<StepSource>,
    /// The PipelineRun.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pipeline_run: Option<String>,
    /// Its uid.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pipeline_run_uid: Option<String>,
    /// When it began.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub started: Option<Time>,
    /// When it ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ended: Option<Time>,
    /// The image, as status.builtImage names it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub image: Option<String>,
    /// The image by the tag that the run pushed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub image_tag: Option<String>,
    /// Its digest.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub digest: Option<String>,
}

impl Provenance {
    /// The same, without build arguments and then without images where it would be too large with them: what is left out is counted, or said not
    /// to be known.
    #[must_use]
    pub fn bounded(mut self) -> Self {
        let cuts: [fn(&mut StepSource); 3] = [
            |step| {
                let left_out = i32::try_from(step.build_arguments.len()).unwrap_or(i32::MAX);
                let before = step.build_arguments_omitted.unwrap_or(0);
                step.build_arguments_omitted = Some(before.saturating_add(left_out)).filter(|count| *count > 0);
                step.build_arguments.clear();
            },
            |step| step.images.clear(),
            |step| step.ran_images.clear(),
        ];
        for cut in cuts {
            if serde_json::to_vec(&self).is_ok_and(|text| text.len() <= LARGEST) {
                break;
            }
            self.steps.iter_mut().for_each(cut);
        }
        self
    }
}

/// One step of a run.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct StepSource {
    /// Its name.
    pub name: String,
    /// The ConfigMap of its TaskSpec, as namespace/name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub config_map: Option<String>,
    /// SHA-256 of that TaskSpec's text.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub content_hash: Option<String>,
    /// The Dockerfile that it builds, from the subfolder.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub dockerfile: Option<String>,
    /// The build arguments that it was given, as NAME=VALUE; in place of a long value stands its SHA-256.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = ENTRIES))]
    pub build_arguments: Vec<String>,
    /// How many build arguments are not listed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub build_arguments_omitted: Option<i32>,
    /// The images that it was to run in.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = ENTRIES))]
    pub images: Vec<String>,
    /// The images that it ran in, as the node reported them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = ENTRIES))]
    pub ran_images: Vec<String>,
    /// Whether its own condition left it out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub skipped: Option<bool>,
}

#[cfg(test)]
mod tests {
    use super::{ENTRIES, LARGEST, Provenance, STEPS, StepSource, TEXT};

    #[test]
    fn a_record_is_never_larger_than_it_may_be_and_counts_what_it_leaves_out() {
        let texts = |count: usize| vec!["x".repeat(TEXT); count];
        let of = |arguments: usize, images: usize, ran: usize| {
            let step = StepSource {
                name: "a".repeat(63),
                content_hash: Some("0".repeat(64)),
                build_arguments: texts(arguments),
                build_arguments_omitted: Some(2),
                images: texts(images),
                ran_images: texts(ran),
                ..StepSource::default()
            };
            Provenance { steps: vec![step; STEPS], ..Provenance::default() }.bounded()
        };
        let of_first = |record: &Provenance| {
            let step = &record.steps[0];
            (step.build_arguments.len(), step.build_arguments_omitted, step.images.len(), step.ran_images.len())
        };
        let small = of(0, 1, 0);
        assert_eq!(of_first(&small), (0, Some(2), 1, 0));
        assert_eq!(of_first(&of(ENTRIES, 1, 0)), (0, Some(34), 1, 0), "arguments go first");
        assert_eq!(of_first(&of(0, ENTRIES, 1)), (0, Some(2), 0, 1), "then what it was to run in");
        let largest = of(ENTRIES, ENTRIES, ENTRIES);
        assert_eq!(of_first(&largest), (0, Some(34), 0, 0));
        assert!(serde_json::to_vec(&largest).unwrap().len() <= LARGEST);
    }
}
