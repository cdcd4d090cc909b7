//! Which workload a Pod belongs to, and the names of objects derived from it.
//!
//! The webhook refers to these objects and the controllers make them: both call the functions here.

/// The kinds that make Pods, and what their API group is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum WorkloadKind {
    /// `apps/v1` Deployment.
    Deployment,
    /// `apps/v1` ReplicaSet without a Deployment.
    ReplicaSet,
    /// `apps/v1` StatefulSet.
    StatefulSet,
    /// `apps/v1` DaemonSet.
    DaemonSet,
    /// `batch/v1` Job without a CronJob.
    Job,
    /// `batch/v1` CronJob.
    CronJob,
    /// `agents.x-k8s.io` Sandbox.
    Sandbox,
    /// A Pod nobody controls.
    Pod,
    /// A controller of another kind.
    Unknown,
}

impl WorkloadKind {
    /// The kinds whose Pods get a dedicated ServiceAccount made ahead by a controller.
    pub const WITH_TEMPLATE: [WorkloadKind; 7] = [
        WorkloadKind::Deployment,
        WorkloadKind::ReplicaSet,
        WorkloadKind::StatefulSet,
        WorkloadKind::DaemonSet,
        WorkloadKind::Job,
        WorkloadKind::CronJob,
        WorkloadKind::Sandbox,
    ];

    /// The kinds an AgentRuntime can point at.
    pub const TARGETS: [WorkloadKind; 5] = [
        WorkloadKind::Deployment,
        WorkloadKind::StatefulSet,
        WorkloadKind::DaemonSet,
        WorkloadKind::CronJob,
        WorkloadKind::Sandbox,
    ];

    /// The kind as manifests spell it.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            WorkloadKind::Deployment => "Deployment",
            WorkloadKind::ReplicaSet => "ReplicaSet",
            WorkloadKind::StatefulSet => "StatefulSet",
            WorkloadKind::DaemonSet => "DaemonSet",
            WorkloadKind::Job => "Job",
            WorkloadKind::CronJob => "CronJob",
            WorkloadKind::Sandbox => "Sandbox",
            WorkloadKind::Pod => "Pod",
            WorkloadKind::Unknown => "Unknown",
        }
    }

    /// The API group, empty for core.
    #[must_use]
    pub fn group(self) -> &'static str {
        match self {
            WorkloadKind::Deployment
            | WorkloadKind::ReplicaSet
            | WorkloadKind::StatefulSet
            | WorkloadKind::DaemonSet => "apps",
            WorkloadKind::Job | WorkloadKind::CronJob => "batch",
            WorkloadKind::Sandbox => "agents.x-k8s.io",
            WorkloadKind::Pod | WorkloadKind::Unknown => "",
        }
    }

    /// Group and version, as an AgentRuntime's `targetRef` names them.
    #[must_use]
    pub fn api_version(self) -> &'static str {
        match self {
            WorkloadKind::Deployment
            | WorkloadKind::ReplicaSet
            | WorkloadKind::StatefulSet
            | WorkloadKind::DaemonSet => "apps/v1",
            WorkloadKind::Job | WorkloadKind::CronJob => "batch/v1",
            WorkloadKind::Sandbox => "agents.x-k8s.io/v1alpha1",
            WorkloadKind::Pod | WorkloadKind::Unknown => "v1",
        }
    }

    /// The kind that an AgentRuntime's `targetRef` names, when its Pods can be enrolled.
    #[must_use]
    pub fn of_target(api_version: &str, kind: &str) -> Option<Self> {
        Self::TARGETS.into_iter().find(|known| known.api_version() == api_version && known.as_str() == kind)
    }

    /// Path from a workload of the kind to its Pod template; empty for a Pod, which is its own.
    #[must_use]
    pub fn template_path(self) -> &'static [&'static str] {
        match self {
            WorkloadKind::Pod => &[],
            WorkloadKind::CronJob => &["spec", "jobTemplate", "spec", "template"],
            WorkloadKind::Sandbox => &["spec", "podTemplate"],
            _ => &["spec", "template"],
        }
    }

    /// How a person replaces the Pods of that workload by Pods of the present configuration.
    #[must_use]
    pub fn restart(self, namespace: &str, name: &str) -> String {
        let kind = self.as_str().to_lowercase();
        match self {
            WorkloadKind::Deployment | WorkloadKind::StatefulSet | WorkloadKind::DaemonSet => {
                format!("kubectl -n {namespace} rollout restart {kind}/{name}")
            }
            // kubectl restarts no others; a Sandbox keeps its Pod when its template changes.
            WorkloadKind::Sandbox => format!(
                "kubectl -n {namespace} patch {kind} {name} --type merge -p '{{\"spec\":{{\"replicas\":0}}}}', and the same with its \
                 number of replicas once the Pod is gone"
            ),
            WorkloadKind::Pod => {
                format!("kubectl -n {namespace} get pod {name} -o yaml > pod.yaml; kubectl replace --force -f pod.yaml")
            }
            WorkloadKind::ReplicaSet => {
                format!(
                    "kubectl -n {namespace} scale {kind}/{name} --replicas=0, and the same with its number of replicas"
                )
            }
            WorkloadKind::CronJob => "its next Job has what is wanted".to_owned(),
            WorkloadKind::Job => format!("a Job keeps its Pods' template: delete {kind}/{name} and create it again"),
            WorkloadKind::Unknown => "delete them so that they are made again".to_owned(),
        }
    }

    /// The kind of that group and name, when it is one of ours.
    #[must_use]
    pub fn from_group_kind(group: &str, kind: &str) -> Option<Self> {
        Self::WITH_TEMPLATE
            .into_iter()
            .chain([WorkloadKind::Pod])
            .find(|known| known.group() == group && known.as_str() == kind)
    }
}

/// The workload a Pod belongs to: what names its ServiceAccount and its OAuth client.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Workload {
    /// What makes the Pods.
    pub kind: WorkloadKind,
    /// Its name; for a Pod without owner the Pod's own.
    pub name: String,
}

impl Workload {
    /// The workload of a ReplicaSet: the Deployment whose hash its name ends in, or itself. `hash` is label
    /// `pod-template-hash` of its template.
    #[must_use]
    pub fn of_replica_set(name: &str, hash: Option<&str>) -> Self {
        let deployment = hash
            .filter(|hash| !hash.is_empty())
            .and_then(|hash| name.strip_suffix(hash)?.strip_suffix('-'))
            .filter(|rest| !rest.is_empty());
        match deployment {
            Some(deployment) => Self { kind: WorkloadKind::Deployment, name: deployment.to_owned() },
            None => Self { kind: WorkloadKind::ReplicaSet, name: name.to_owned() },
        }
    }

    /// The workload of a Job whose controller is `controller` (group, kind, name): its CronJob, also for
    /// `kubectl create job --from=cronjob/…`, or itself.
    #[must_use]
    pub fn of_job(name: &str, controller: Option<(&str, &str, &str)>) -> Self {
        match controller {
            Some((group, kind, owner)) if WorkloadKind::from_group_kind(group, kind) == Some(WorkloadKind::CronJob) => {
                Self { kind: WorkloadKind::CronJob, name: owner.to_owned() }
            }
            _ => Self { kind: WorkloadKind::Job, name: name.to_owned() },
        }
    }

    /// The dedicated ServiceAccount of this workload.
    #[must_use]
    pub fn service_account(&self) -> &str {
        &self.name
    }
}
