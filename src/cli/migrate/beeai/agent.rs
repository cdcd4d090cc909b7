//! An Agent of BeeAI as an Agent of `agent.kagenti.dev`: the same container under the same ports.

use serde_json::{Value, json};

use super::{Remark, metadata, title};
use crate::cli::survey::text;
use crate::domain::keys;
use crate::workloads::beeai_agent::workload;
use crate::workloads::request::LockdownProfile;

/// What it becomes.
pub(super) fn of(object: &Value, remarks: &mut Vec<Remark>) -> Value {
    let remarks = &mut Remarks { of: title(object), all: remarks };
    rendered(object, json!({"image": text(object, "/spec/image")}), metadata(object), remarks)
}

/// The Agent that a build of BeeAI keeps; its image comes from the build of that name.
pub(super) fn of_build(kept: &Value, build: &str, remarks: &mut Vec<Remark>) -> Value {
    let remarks = &mut Remarks { of: title(kept), all: remarks };
    rendered(kept, json!({"buildRef": {"name": build}}), metadata(kept), remarks)
}

struct Remarks<'r> {
    of: String,
    all: &'r mut Vec<Remark>,
}

impl Remarks<'_> {
    fn add(&mut self, path: &str, text: String) {
        self.all.push(Remark { object: self.of.clone(), path: path.to_owned(), text });
    }
}

fn rendered(object: &Value, source: Value, metadata: Value, remarks: &mut Remarks<'_>) -> Value {
    let request = workload(object, keys::GROUP_BEEAI);
    let mut template = request.pod_template;
    let container = &mut template["spec"]["containers"][0];
    container["ports"] = json!([{"name": "http", "containerPort": request.container_port, "protocol": "TCP"}]);
    if request.profile == LockdownProfile::Baseline {
        container["securityContext"] = json!({"readOnlyRootFilesystem": false, "runAsNonRoot": false});
        remarks.add(
            "metadata.annotations[beeai.dev/security-profile]",
            "profile baseline is written as securityContext of the container; agent.kagenti.dev sets runAsUser 1000 unless it is given: write \
             the user that the image needs"
                .to_owned(),
        );
    }
    let mut spec = json!({
        "imageSource": source,
        "podTemplateSpec": template,
        "servicePorts": [{"name": "http", "port": 8000, "targetPort": request.container_port, "protocol": "TCP"}],
    });
    if let Some(replicas) = request.replicas {
        spec["replicas"] = json!(replicas);
    }
    if let Some(description) = object.pointer("/spec/description").filter(|text| text.is_string()) {
        spec["description"] = description.clone();
    }
    json!({"apiVersion": "agent.kagenti.dev/v1alpha1", "kind": "Agent", "metadata": metadata, "spec": spec})
}
