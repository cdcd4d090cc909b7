//! A cluster in memory: objects as JSON, plans carried out on them one operation at a time, a clock that is driven.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};

use crate::config::builds::Builds;
use crate::controllers::agent_build::memory::{AgentBuilds, Plan};
use crate::controllers::agent_build::plan::ROW;
use crate::controllers::scaffold::answers::{SecretFact, SecretSeen};
use crate::controllers::scaffold::apply::{Learned, unkept};
use crate::controllers::scaffold::consent::refusal;
use crate::controllers::scaffold::controller::Controller;
use crate::controllers::scaffold::fixtures::{Cluster, s};
use crate::controllers::scaffold::fixtures::{step_map, template_map};
use crate::controllers::scaffold::login::Login;
use crate::controllers::scaffold::plan::{Item, NOW, Op, Row};
use crate::domain::keys;
use crate::domain::reason::Reason;
use crate::pipelines::settings::Settings;
use crate::pipelines::templates::ConfigMapText;
use crate::store::{Key, Kind, Reach};

pub(in crate::controllers::agent_build) const TEAM: &str = "team";
pub(in crate::controllers::agent_build) const NAME: &str = "weather-build";

/// A TaskSpec that tells an image, and one that does not.
pub(super) const TELLS: &str = "results: [{name: IMAGE_URL}, {name: IMAGE_DIGEST}]\nsteps: [{name: build, image: i}]\n";
pub(super) const SILENT: &str = "steps: [{name: run, image: i}]\n";

pub(in crate::controllers::agent_build) fn digest(letter: &str) -> String {
    format!("sha256:{}", letter.repeat(64))
}

/// An AgentBuild of mode custom with steps `clone` and `push`.
pub(super) fn build() -> Value {
    json!({
        "apiVersion": "agent.kagenti.dev/v1alpha1", "kind": "AgentBuild",
        "metadata": {"name": NAME, "namespace": TEAM, "uid": "bu", "generation": 1, "creationTimestamp": "2026-05-01T00:00:00Z"},
        "spec": {
            "source": {"sourceRepository": "github.com/a/b", "sourceRevision": "v1.0.0"},
            "buildOutput": {"imageRegistry": "reg.io:5000", "image": "weather", "imageTag": "v1"},
            "mode": "custom",
            "pipeline": {"namespace": "kagenti-system", "steps": [
                {"name": "clone", "configMap": "silent"}, {"name": "push", "configMap": "tells"},
            ]},
        },
    })
}

/// A refusal: for which reason, if trying again does not help, and the server's words.
pub(super) type Answer = (Option<Reason>, &'static str);

pub(in crate::controllers::agent_build) struct Bench {
    kind: Kind,
    row: Row<AgentBuilds>,
    /// The member of the status that holds the phase.
    phase: &'static str,
    /// Logins that were made, by their Secrets.
    pub(in crate::controllers::agent_build) logins: BTreeMap<String, Login>,
    pub(in crate::controllers::agent_build) cluster: Cluster,
    pub(in crate::controllers::agent_build) objects: BTreeMap<(Kind, String), Value>,
    pub(in crate::controllers::agent_build) now: Duration,
    version: u64,
    /// Writes and questions, in order.
    pub(in crate::controllers::agent_build) done: Vec<Op>,
    /// Events, each once as their names would make them.
    pub(in crate::controllers::agent_build) events: Vec<(Reason, String)>,
    pub(in crate::controllers::agent_build) secrets: BTreeMap<String, SecretFact>,
    /// What the server answers to an operation instead of carrying it out.
    pub(in crate::controllers::agent_build) refuses: fn(&Op) -> Option<Answer>,
    pub(in crate::controllers::agent_build) maps: Vec<ConfigMapText>,
    /// What is deleted stays for as long as somebody else's finalizer holds it.
    pub(in crate::controllers::agent_build) lingers: bool,
    /// What no watch shows though it is there.
    pub(in crate::controllers::agent_build) hidden: BTreeSet<(Kind, String)>,
    /// The installed definition has subresource `status`.
    pub(in crate::controllers::agent_build) keeps: bool,
}

impl Bench {
    pub(in crate::controllers::agent_build) fn new(build: Value) -> Self {
        Self::of((Kind::AgentBuild, ROW, "phase"), build)
    }

    /// A build of that kind.
    pub(in crate::controllers::agent_build) fn of(
        (kind, row, phase): (Kind, Row<AgentBuilds>, &'static str),
        build: Value,
    ) -> Self {
        let mut bench = Self {
            kind,
            row,
            phase,
            logins: BTreeMap::new(),
            cluster: Cluster::new(),
            objects: BTreeMap::new(),
            now: s(1000),
            version: 100,
            done: Vec::new(),
            events: Vec::new(),
            secrets: BTreeMap::new(),
            refuses: |_| None,
            maps: vec![step_map("kagenti-system", "silent", SILENT), step_map("kagenti-system", "tells", TELLS)],
            lingers: false,
            hidden: BTreeSet::new(),
            keeps: true,
        };
        bench.configure();
        for kind in [Kind::PipelineRun, Kind::TaskRun] {
            bench.cluster.store.set_reach(kind, Reach::Listed);
        }
        bench.put(kind, build);
        bench
    }

    /// The platform file says so from now on.
    pub(in crate::controllers::agent_build) fn decide(&mut self, decide: impl FnOnce(&mut Settings)) {
        let snapshot = (*self.cluster.facts.snapshot).clone();
        let mut builds: Builds = (*snapshot.builds).clone();
        decide(&mut builds.settings.pipelines);
        self.cluster.facts.snapshot = Arc::new(snapshot.with_builds(Arc::new(builds)));
        self.cluster.facts.settled = Arc::clone(&self.cluster.facts.snapshot);
    }

    /// The ConfigMaps come into force.
    pub(in crate::controllers::agent_build) fn configure(&mut self) {
        let snapshot = (*self.cluster.facts.snapshot).clone();
        let mut builds: Builds = (*snapshot.builds).clone();
        builds.view = crate::pipelines::templates::TemplatesView::new("kagenti-system", false).with(self.maps.clone());
        self.cluster.facts.snapshot = Arc::new(snapshot.with_builds(Arc::new(builds)));
        self.cluster.facts.settled = Arc::clone(&self.cluster.facts.snapshot);
    }

    pub(in crate::controllers::agent_build) fn template(&mut self, mode: &str, template: &Value) {
        self.maps.push(template_map("kagenti-system", mode, &template.to_string()));
        self.configure();
    }

    /// An object as it is from now on.
    pub(in crate::controllers::agent_build) fn put(&mut self, kind: Kind, mut object: Value) {
        self.version += 1;
        object["metadata"]["resourceVersion"] = json!(self.version.to_string());
        let name = object["metadata"]["name"].as_str().unwrap().to_owned();
        if !self.hidden.contains(&(kind, name.clone())) {
            self.cluster.see(kind, object.clone());
        }
        self.objects.insert((kind, name), object);
    }

    /// Somebody takes the label of builds off an object: for its watch it is gone.
    pub(in crate::controllers::agent_build) fn hide(&mut self, kind: Kind, name: &str) {
        self.edit(kind, name, |object| {
            if let Some(labels) = object["metadata"]["labels"].as_object_mut() {
                labels.remove(keys::LABEL_AGENT_BUILD);
            }
        });
        let mut shown = self.objects[&(kind, name.to_owned())].clone();
        shown["metadata"]["resourceVersion"] = json!((self.version - 1).to_string());
        self.cluster.lose(kind, shown);
        self.hidden.insert((kind, name.to_owned()));
    }

    pub(in crate::controllers::agent_build) fn lose(&mut self, kind: Kind, name: &str) {
        if let Some(object) = self.objects.remove(&(kind, name.to_owned())) {
            self.cluster.lose(kind, object);
        }
    }

    /// Changes an object.
    pub(in crate::controllers::agent_build) fn edit(&mut self, kind: Kind, name: &str, edit: impl FnOnce(&mut Value)) {
        let mut object = self.objects[&(kind, name.to_owned())].clone();
        edit(&mut object);
        self.put(kind, object);
    }

    /// The user changes the build: a new generation.
    pub(in crate::controllers::agent_build) fn user(&mut self, edit: impl FnOnce(&mut Value)) {
        self.edit(self.kind, NAME, |build| {
            edit(build);
            build["metadata"]["generation"] = json!(build["metadata"]["generation"].as_i64().unwrap() + 1);
        });
    }

    pub(in crate::controllers::agent_build) fn build(&self) -> &Value {
        &self.objects[&(self.kind, NAME.to_owned())]
    }

    pub(in crate::controllers::agent_build) fn status(&self) -> Value {
        self.build().get("status").cloned().unwrap_or_default()
    }

    pub(in crate::controllers::agent_build) fn phase(&self) -> String {
        self.status()[self.phase].as_str().unwrap_or_default().to_owned()
    }

    pub(in crate::controllers::agent_build) fn condition(&self, type_: &str) -> (String, String) {
        let status = self.status();
        let all = status["conditions"].as_array().cloned().unwrap_or_default();
        let one = all.into_iter().find(|one| one["type"] == type_).unwrap_or_default();
        (one["status"].as_str().unwrap_or_default().to_owned(), one["reason"].as_str().unwrap_or_default().to_owned())
    }

    pub(in crate::controllers::agent_build) fn message(&self) -> String {
        self.status()["message"].as_str().unwrap_or_default().to_owned()
    }

    pub(in crate::controllers::agent_build) fn names(&self, kind: Kind) -> Vec<String> {
        self.objects.keys().filter(|(known, _)| *known == kind).map(|(_, name)| name.clone()).collect()
    }

    pub(in crate::controllers::agent_build) fn told(&self, reason: Reason) -> usize {
        self.events.iter().filter(|(known, _)| *known == reason).count()
    }

    pub(in crate::controllers::agent_build) fn plan(&self) -> Plan {
        self.cluster.plan_at(self.row, &Key::new(TEAM, NAME), self.now)
    }

    fn item(&self) -> Item {
        Item { controller: self.row.controller, key: Key::new(TEAM, NAME) }
    }

    /// Makes a login of a token.
    fn log_in(&mut self, login: &Login) -> Result<(), (Option<Reason>, String)> {
        let fact = match self.secrets.get(&login.source) {
            Some(SecretFact::Is(seen)) if seen.keys.contains(&login.token) => {
                let owners = login.owners.iter().map(|owner| owner.uid.clone()).collect();
                self.logins.insert(login.key.name.to_string(), login.clone());
                SecretFact::Is(SecretSeen { owners, ..SecretSeen::default() })
            }
            _ if login.optional => SecretFact::Absent,
            _ => return Err((Some(Reason::PrerequisitesMissing), format!("Secret {} has no key", login.source))),
        };
        self.cluster.memory.answers.secret(login.key.clone(), fact, self.now);
        Ok(())
    }

    /// Reads an object by its name.
    fn find(&mut self, kind: Kind, key: &Key) {
        match self.objects.get(&(kind, key.name.to_string())) {
            Some(found) => self.cluster.see(kind, found.clone()),
            None => self.cluster.lose(kind, json!({"metadata": {"name": &*key.name, "namespace": TEAM}})),
        }
    }

    fn delete(&mut self, kind: Kind, key: &Key, uid: &str) {
        assert_eq!(self.objects[&(kind, key.name.to_string())]["metadata"]["uid"], *uid);
        if self.lingers {
            let deleting = json!("2026-05-02T00:00:00Z");
            self.edit(kind, &key.name, |object| object["metadata"]["deletionTimestamp"] = deleting);
        } else {
            self.lose(kind, &key.name);
        }
    }

    /// Carries out one operation; `Err` as the executor says it.
    fn carry_out(&mut self, op: &Op) -> Result<(), (Option<Reason>, String)> {
        if let Some((reason, words)) = (self.refuses)(op) {
            return Err((reason, words.to_owned()));
        }
        let name_of = |body: &Value| body["metadata"]["name"].as_str().unwrap().to_owned();
        match op {
            Op::Consent { demands, .. } => {
                let fact = |name: &str| self.secrets.get(name).cloned().unwrap_or(SecretFact::Absent);
                if let Some(words) = demands.iter().find_map(|demand| refusal(&fact(&demand.secret), demand)) {
                    return Err((Some(Reason::SecretNotUsable), words));
                }
            }
            Op::Look { key } => {
                let fact = self.secrets.get(&*key.name).cloned().unwrap_or(SecretFact::Absent);
                self.cluster.memory.answers.secret(key.clone(), fact, self.now);
            }
            Op::Login(login) => self.log_in(login)?,
            Op::Find { kind, key } => self.find(*kind, key),
            Op::Create { kind, body, .. } => {
                let mut body = body.clone();
                body["metadata"]["uid"] = json!(format!("{}-{}", kind.label(), name_of(&body)));
                body["metadata"]["generation"] = json!(1);
                self.put(*kind, body);
            }
            Op::Try { kind, body, owner, .. } | Op::Ensure { kind, body, owner, .. } => {
                let name = name_of(body);
                match self.objects.get(&(*kind, name.clone())) {
                    // What has the name is read, and known from then on.
                    Some(found) if found["metadata"]["ownerReferences"][0]["uid"] == **owner => {
                        self.cluster.see(*kind, found.clone());
                    }
                    Some(_) => return Err((Some(Reason::NameConflict), format!("{name} is somebody else's"))),
                    None if matches!(op, Op::Ensure { .. }) => {
                        let mut body = body.clone();
                        body["metadata"]["uid"] = json!(format!("{}-{name}", kind.plural()));
                        body["metadata"]["creationTimestamp"] = json!(format!("2026-05-01T00:{:05}Z", self.version));
                        self.put(*kind, body);
                    }
                    None => {}
                }
                if let Op::Try { namespace, shape, .. } = op {
                    let (by, item) = (self.row.controller, self.item());
                    let learned = Learned::Taken(namespace.clone(), shape.clone());
                    AgentBuilds::answered(self.cluster.owns.of_mut(by), &item.key, &learned, self.now);
                }
            }
            Op::Merge { kind, key, patch } | Op::Status { kind, key, patch } => {
                let version = self.objects[&(*kind, key.name.to_string())]["metadata"]["resourceVersion"].clone();
                let planned = patch["metadata"]["resourceVersion"].clone();
                assert!(planned.is_null() || planned == version, "a conflict: {patch}");
                let mut patch = patch.clone();
                let text = patch.to_string().replace(&format!("{NOW:?}"), "\"2026-05-01T00:00:00Z\"");
                patch.clone_from(&serde_json::from_str(&text).unwrap());
                self.edit(*kind, &key.name, |object| {
                    if let Some(metadata) = patch.get_mut("metadata").and_then(Value::as_object_mut) {
                        metadata.remove("resourceVersion");
                    }
                    json_patch::merge(object, &patch);
                    for one in object["status"]["conditions"].as_array_mut().into_iter().flatten() {
                        if one["lastTransitionTime"].is_null() {
                            one["lastTransitionTime"] = json!("now");
                        }
                    }
                });
                let gone = self.build()["metadata"]["finalizers"].is_null()
                    && !self.build()["metadata"]["deletionTimestamp"].is_null();
                if gone {
                    self.lose(self.kind, NAME);
                }
            }
            Op::Edit { kind, key, operations } => {
                let patch: json_patch::Patch = serde_json::from_value(operations.clone()).unwrap();
                self.edit(*kind, &key.name, |object| json_patch::patch(object, &patch).unwrap());
                // The answer to a write is known, whatever its watch shows.
                self.cluster.see(*kind, self.objects[&(*kind, key.name.to_string())].clone());
            }
            Op::Delete { kind, key, uid } => self.delete(*kind, key, uid),
            Op::Report(report) => {
                let event = (report.reason, report.message.clone());
                if !self.events.contains(&event) {
                    self.events.push(event);
                }
            }
            other => panic!("not planned by this controller: {other:?}"),
        }
        Ok(())
    }

    /// One plan, carried out up to `most` operations; the plan, and how many of them were.
    pub(in crate::controllers::agent_build) fn step(&mut self, most: usize) -> (Plan, usize) {
        let mut plan = self.plan();
        let item = self.item();
        self.cluster.note::<AgentBuilds>(item.controller, &item.key, std::mem::take(&mut plan.note));
        for (number, op) in plan.ops.iter().enumerate() {
            if number == most {
                return (plan, number);
            }
            self.done.push(op.clone());
            if !self.keeps && matches!(op, Op::Status { .. }) {
                let learned = Learned::Unkept(Vec::new());
                AgentBuilds::answered(self.cluster.owns.of_mut(item.controller), &item.key, &learned, self.now);
                if unkept(op, &learned, &plan.ops[number + 1..]).is_some() {
                    return (plan, number + 1);
                }
                continue;
            }
            if let Err((reason, words)) = self.carry_out(op) {
                AgentBuilds::failed(self.cluster.owns.of_mut(item.controller), &item.key, op);
                self.cluster.memory.failure(&item, self.now, (op.clone(), reason, words));
                return (plan, number + 1);
            }
        }
        let settles = plan.ops.iter().any(Op::settles);
        if !plan.ops.is_empty() {
            self.cluster.memory.success(&item, settles);
        }
        let count = plan.ops.len();
        (plan, count)
    }

    /// Plans until there is nothing to do at this moment; returns when to look again.
    pub(in crate::controllers::agent_build) fn settle(&mut self) -> Option<Duration> {
        for _ in 0..40 {
            let (plan, _) = self.step(usize::MAX);
            // What was told once is not told again.
            if plan.ops.iter().all(|op| matches!(op, Op::Report(_))) && plan.again != Some(Duration::ZERO) {
                return plan.again;
            }
        }
        panic!("it never settles: {:?}", self.done.iter().rev().take(3).collect::<Vec<_>>());
    }

    /// Time passes, with a look whenever one is due; returns the writes in it.
    pub(in crate::controllers::agent_build) fn pass(&mut self, seconds: u64) -> usize {
        let before = self.writes();
        let end = self.now + s(seconds);
        while self.now < end {
            let again = self.settle().unwrap_or(s(seconds)).max(s(1));
            self.now = (self.now + again).min(end);
        }
        self.settle();
        self.writes() - before
    }

    /// Everything but questions.
    pub(in crate::controllers::agent_build) fn writes(&self) -> usize {
        self.done
            .iter()
            .filter(|op| {
                !matches!(op, Op::Look { .. } | Op::Find { .. } | Op::Try { .. } | Op::Consent { .. } | Op::Login(_))
            })
            .count()
    }

    /// The process ends and another one starts: what was only remembered is gone.
    pub(in crate::controllers::agent_build) fn restart(&mut self) {
        self.cluster.forget();
        self.now += s(7);
    }

    /// The one run.
    pub(in crate::controllers::agent_build) fn run(&self) -> String {
        let name = self.status()["pipelineRunName"].as_str().unwrap_or_default().to_owned();
        assert!(
            self.objects.contains_key(&(Kind::PipelineRun, name.clone())),
            "{name}: {:?}",
            self.names(Kind::PipelineRun)
        );
        name
    }

    /// A TaskRun of the present run ends so, telling these results.
    pub(in crate::controllers::agent_build) fn task(
        &mut self,
        task: &str,
        succeeded: bool,
        results: Value,
        more: Value,
    ) {
        let run = self.run();
        let uid = self.objects[&(Kind::PipelineRun, run.clone())]["metadata"]["uid"].clone();
        let name = format!("{run}-{task}");
        let mut object = json!({
            "metadata": {"name": name, "namespace": TEAM, "uid": format!("tr-{name}"),
                "labels": {"tekton.dev/pipelineTask": task, keys::LABEL_PIPELINE_RUN: run},
                "creationTimestamp": "2026-05-01T00:00:02Z",
                "ownerReferences": [{"apiVersion": "tekton.dev/v1", "kind": "PipelineRun", "name": run, "uid": uid, "controller": true}]},
            "status": {"startTime": "s", "completionTime": "c", "podName": format!("{name}-pod"), "results": results,
                "conditions": [{"type": "Succeeded", "status": if succeeded { "True" } else { "False" },
                    "reason": if succeeded { "Succeeded" } else { "Failed" }, "message": "words"}]},
        });
        json_patch::merge(&mut object, &more);
        self.put(Kind::TaskRun, object);
        self.edit(Kind::PipelineRun, &run, |run| {
            let child = json!({"kind": "TaskRun", "name": name, "pipelineTaskName": task});
            let children = run["status"]["childReferences"].as_array().cloned().unwrap_or_default();
            let children: Vec<_> = children.into_iter().filter(|one| one["name"] != *name).chain([child]).collect();
            run["status"]["childReferences"] = json!(children);
        });
    }

    /// The present run is under way, or ends.
    pub(in crate::controllers::agent_build) fn run_is(&mut self, status: &str, reason: &str, message: &str) {
        let run = self.run();
        self.edit(Kind::PipelineRun, &run, |run| {
            run["status"]["startTime"] = json!("2026-05-01T00:00:01Z");
            if status != "Unknown" {
                run["status"]["completionTime"] = json!("2026-05-01T00:10:00Z");
            }
            run["status"]["conditions"] =
                json!([{"type": "Succeeded", "status": status, "reason": reason, "message": message}]);
        });
    }

    /// Both tasks succeed and tell this image, then the run.
    pub(in crate::controllers::agent_build) fn succeed(&mut self, letter: &str) {
        self.task("clone", true, json!([{"name": "commit", "value": "0123abc4"}]), json!({}));
        let results = json!([{"name": "IMAGE_URL", "value": "reg.io:5000/weather:v1\n"}, {"name": "IMAGE_DIGEST", "value": digest(letter)}]);
        self.task("push", true, results, json!({}));
        self.run_is("True", "Succeeded", "Tasks Completed: 2");
    }
}
