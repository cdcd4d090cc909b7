//! What kwok does with Pods in the place of a kubelet: the stages a Pod goes through.
//!
//! kwok's own stages let every Pod of a Job succeed, whatever runs in it. A kubelet does not: a Pod succeeds when all
//! its regular containers have ended, and sidecars among them never do. So here a Job's Pod that has a regular
//! container of an `endless` name stays Running; native sidecars (init containers that restart always) are ended with
//! the rest, as a kubelet would.
//!
//! The Pod of a Tekton TaskRun ends once Tekton has let its steps begin (annotation `tekton.dev/ready`), unless it is
//! held; annotations say what its steps leave behind ([`crate::tekton::kubelet`]).

use serde_json::{Value, json};

use crate::tekton::kubelet;

/// Init containers run through, native sidecars and regular containers run; the Pod is Ready and has an address.
const RUNNING: &str = r#"
{{ $now := Now }}
phase: Running
startTime: {{ $now | Quote }}
hostIP: {{ NodeIPWith .spec.nodeName | Quote }}
podIP: {{ PodIPWith .spec.nodeName ( or .spec.hostNetwork false ) ( or .metadata.uid "" ) ( or .metadata.name "" ) ( or .metadata.namespace "" ) | Quote }}
conditions:
{{ range $type := list "Initialized" "ContainersReady" "Ready" }}
- type: {{ $type | Quote }}
  status: "True"
  lastTransitionTime: {{ $now | Quote }}
{{ end }}
{{ range .spec.readinessGates }}
- type: {{ .conditionType | Quote }}
  status: "True"
  lastTransitionTime: {{ $now | Quote }}
{{ end }}
initContainerStatuses:
{{ range .spec.initContainers }}
- name: {{ .name | Quote }}
  image: {{ .image | Quote }}
  imageID: ""
  ready: true
  restartCount: 0
  {{ if eq .restartPolicy "Always" }}
  started: true
  state: { running: { startedAt: {{ $now | Quote }} } }
  {{ else }}
  started: false
  state: { terminated: { exitCode: 0, reason: Completed, startedAt: {{ $now | Quote }}, finishedAt: {{ $now | Quote }} } }
  {{ end }}
{{ end }}
containerStatuses:
{{ range .spec.containers }}
- name: {{ .name | Quote }}
  image: {{ .image | Quote }}
  imageID: ""
  ready: true
  started: true
  restartCount: 0
  state: { running: { startedAt: {{ $now | Quote }} } }
{{ end }}
"#;

/// The conditions of a Pod whose containers have all ended, whatever else is said of it; stands behind a text that sets `$now`.
const ENDED: &str = r#"
conditions:
{{ range $type := list "ContainersReady" "Ready" }}
- type: {{ $type | Quote }}
  status: "False"
  reason: PodCompleted
  lastTransitionTime: {{ $now | Quote }}
{{ end }}
"#;

/// Every container has ended with exit code 0.
const SUCCEEDED: &str = r#"
{{ $now := Now }}
phase: Succeeded
initContainerStatuses:
{{ range .spec.initContainers }}
- name: {{ .name | Quote }}
  image: {{ .image | Quote }}
  imageID: ""
  ready: false
  started: false
  restartCount: 0
  state: { terminated: { exitCode: 0, reason: Completed, startedAt: {{ $now | Quote }}, finishedAt: {{ $now | Quote }} } }
{{ end }}
containerStatuses:
{{ range .spec.containers }}
- name: {{ .name | Quote }}
  image: {{ .image | Quote }}
  imageID: ""
  ready: false
  started: false
  restartCount: 0
  state: { terminated: { exitCode: 0, reason: Completed, startedAt: {{ $now | Quote }}, finishedAt: {{ $now | Quote }} } }
{{ end }}
"#;

/// Every step has ended, with the exit code and the results that annotations name for its task.
const STEPS_ENDED: &str = r#"
{{ $now := Now }}
{{ $annotations := .metadata.annotations }}
{{ $task := or ( index .metadata.labels "tekton.dev/pipelineTask" ) "" }}
{{ $code := or ( index $annotations ( printf "kwok.test/exit.%s" $task ) ) "0" }}
{{ $results := or ( index $annotations ( printf "kwok.test/results.%s" $task ) ) "" }}
phase: {{ if eq $code "0" }}Succeeded{{ else }}Failed{{ end }}
containerStatuses:
{{ range .spec.containers }}
- name: {{ .name | Quote }}
  image: {{ .image | Quote }}
  imageID: ""
  ready: false
  started: false
  restartCount: 0
  state:
    terminated:
      exitCode: {{ $code }}
      reason: {{ if eq $code "0" }}Completed{{ else }}Error{{ end }}
      message: {{ $results | Quote }}
      startedAt: {{ $now | Quote }}
      finishedAt: {{ $now | Quote }}
{{ end }}
"#;

/// The kwok configuration: a YAML stream of `Stage` documents.
pub(super) fn configuration(endless: &[String]) -> String {
    let alive = json!({ "key": ".metadata.deletionTimestamp", "operator": "DoesNotExist" });
    let mut complete = vec![
        alive.clone(),
        json!({ "key": ".status.phase", "operator": "In", "values": ["Running"] }),
        json!({ "key": ".metadata.ownerReferences.[].kind", "operator": "In", "values": ["Job"] }),
    ];
    if !endless.is_empty() {
        complete.push(json!({ "key": ".spec.containers.[].name", "operator": "NotIn", "values": endless }));
    }
    let steps = [
        alive.clone(),
        json!({ "key": ".status.phase", "operator": "In", "values": ["Running"] }),
        json!({ "key": ".metadata.ownerReferences.[].kind", "operator": "In", "values": ["TaskRun"] }),
        json!({ "key": ".metadata.annotations[\"tekton.dev/ready\"]", "operator": "In", "values": ["READY"] }),
        json!({ "key": format!(".metadata.annotations[\"{}\"]", kubelet::HOLD), "operator": "DoesNotExist" }),
    ];
    let deleted = json!({ "key": ".metadata.deletionTimestamp", "operator": "Exists" });
    let without_address = json!({ "key": ".status.podIP", "operator": "DoesNotExist" });
    let (succeeded, steps_ended) = ([SUCCEEDED, ENDED].concat(), [STEPS_ENDED, ENDED].concat());
    let stages = [
        stage("pod-ready", &[alive, without_address], &json!({ "statusTemplate": RUNNING })),
        stage("pod-complete", &complete, &json!({ "statusTemplate": succeeded })),
        stage("taskrun-complete", &steps, &json!({ "statusTemplate": steps_ended })),
        stage("pod-delete", &[deleted], &json!({ "finalizers": { "empty": true }, "delete": true })),
    ];
    stages.map(|stage| stage.to_string()).join("\n---\n")
}

fn stage(name: &str, conditions: &[Value], next: &Value) -> Value {
    json!({
        "apiVersion": "kwok.x-k8s.io/v1alpha1",
        "kind": "Stage",
        "metadata": { "name": name },
        "spec": {
            "resourceRef": { "apiGroup": "v1", "kind": "Pod" },
            "selector": { "matchExpressions": conditions },
            "next": next,
        },
    })
}
