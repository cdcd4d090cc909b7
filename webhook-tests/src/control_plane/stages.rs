//! What kwok does with Pods in the place of a kubelet: the stages a Pod goes through.
//!
//! kwok's own stages let every Pod of a Job succeed, whatever runs in it. A kubelet does not: a Pod succeeds when all
//! its regular containers have ended, and sidecars among them never do. So here a Job's Pod that has a regular
//! container of an `endless` name stays Running; native sidecars (init containers that restart always) are ended with
//! the rest, as a kubelet would.

use serde_json::{Value, json};

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

/// Every container has ended with exit code 0.
const SUCCEEDED: &str = r#"
{{ $now := Now }}
phase: Succeeded
conditions:
{{ range $type := list "ContainersReady" "Ready" }}
- type: {{ $type | Quote }}
  status: "False"
  reason: PodCompleted
  lastTransitionTime: {{ $now | Quote }}
{{ end }}
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
    let deleted = json!({ "key": ".metadata.deletionTimestamp", "operator": "Exists" });
    let without_address = json!({ "key": ".status.podIP", "operator": "DoesNotExist" });
    let stages = [
        stage("pod-ready", &[alive, without_address], &json!({ "statusTemplate": RUNNING })),
        stage("pod-complete", &complete, &json!({ "statusTemplate": SUCCEEDED })),
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
