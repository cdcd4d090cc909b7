//! `build logs`: the lines of the Pods of a build's last run, task by task in the order in which they began.
//!
//! With `--follow` it stays until the build has been judged, whatever its containers do then: steps are read while they
//! write, anything beside them (a sidecar may never end) once it has ended. A line is printed once, also where a kubelet
//! is started anew or a connection breaks meanwhile. What could not be read, and the tasks whose Pods are gone, by clean-up or
//! otherwise, are named.

use std::collections::{BTreeMap, BTreeSet};
use std::pin::pin;
use std::time::Duration;

use anyhow::bail;
use futures::StreamExt;
use serde::Serialize;
use serde_json::Value;

use super::news::News;
use super::{Found, Of, is_under_way, line, status};
use crate::cli::cluster::Answer;
use crate::cli::cluster::log::Place;
use crate::cli::io::{Io, shown};
use crate::cli::survey::{label, text};
use crate::cli::{Exit, Format, Unseen};
use crate::domain::keys;
use crate::store::Kind;

/// How soon a run that is followed is looked at again where nothing tells of it.
const INTERVAL: Duration = Duration::from_secs(1);
/// How long a container is silent before the lines of a build that has been judged are at their end.
const SILENCE: Duration = Duration::from_secs(2);
/// What the containers of steps are called by Tekton, before the step's name.
const STEP: &str = "step-";

/// Arguments of `build logs`.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// Which build; as JSON or YAML a line is one document.
    #[command(flatten)]
    pub of: Of,
    /// Stay until the run has ended.
    #[arg(short, long)]
    pub follow: bool,
    /// Only this task.
    #[arg(long, value_name = "NAME")]
    pub task: Option<String>,
}

/// One line.
#[derive(Debug, Serialize)]
struct Line<'a> {
    task: &'a str,
    step: &'a str,
    text: &'a str,
}

/// What has been read of a container.
#[derive(Debug, Default)]
struct Reading {
    task: String,
    /// The last line that was printed.
    place: Place,
    /// Something was there to be read, if only the end.
    begun: bool,
    /// Nothing more will come.
    over: bool,
    /// Why it could not be read when it was last asked for.
    trouble: Option<String>,
}

/// What has been read of a run: by Pod and container.
type Progress = BTreeMap<(String, String), Reading>;

/// One invocation.
struct Reader<'a> {
    args: &'a Args,
    found: Found,
    /// Where the build is followed.
    news: Option<News>,
    /// The run that is read.
    run: String,
    progress: Progress,
    /// The tasks whose Pods were there when they were last listed.
    there: BTreeSet<String>,
}

pub(super) async fn print(args: Args, io: &mut Io<'_>) -> anyhow::Result<Exit> {
    let found = args.of.find(args.follow).await?;
    let news = args.follow.then(|| News::of(&found));
    let (run, progress, there) = (String::new(), Progress::new(), BTreeSet::new());
    let mut reader = Reader { args: &args, found, news, run, progress, there };
    loop {
        if !is_under_way(&reader.found.object) {
            reader.news = None;
        }
        // What ends meanwhile has been printed by the time that is noticed.
        reader.pods(io).await?;
        match &mut reader.news {
            Some(news) => news.within(INTERVAL).await,
            None => return reader.conclude(io),
        }
        reader.found.object = reader.found.read().await?;
    }
}

impl Reader<'_> {
    /// Everything of the run that can be read now.
    async fn pods(&mut self, io: &mut Io<'_>) -> anyhow::Result<()> {
        let run = self.found.status("pipelineRunName").to_owned();
        if run != self.run {
            self.run.clone_from(&run);
            self.progress.clear();
        }
        if run.is_empty() {
            if self.news.is_some() {
                return Ok(());
            }
            bail!("AgentBuild {} has no run yet: {}", self.found.name, self.found.status("message"));
        }
        let pods = pods(&self.found, &run).await?;
        self.there = pods.iter().map(|pod| task(pod).to_owned()).collect();
        for pod in &pods {
            let task = task(pod);
            if self.args.task.as_deref().is_none_or(|wanted| wanted == task) {
                for container in begun(pod, self.news.is_some()) {
                    self.container(pod, task, container, io).await?;
                }
            }
        }
        Ok(())
    }

    /// The lines of a container that were not printed yet; where the build is followed, to the end of one of the two.
    async fn container(&mut self, pod: &Value, task: &str, container: &str, io: &mut Io<'_>) -> anyhow::Result<()> {
        let Self { args, found, news, run, progress, .. } = self;
        let pod_name = text(pod, "/metadata/name");
        let key = (pod_name.to_owned(), container.to_owned());
        let reading = progress.entry(key).or_insert_with(|| Reading { task: task.to_owned(), ..Reading::default() });
        let mut ended = is(pod, container, "terminated");
        while !reading.over {
            let follow = news.is_some() && !ended;
            let lines = match found.cluster.log(&found.namespace, (pod_name, container), reading.place, follow).await? {
                Ok(lines) => lines,
                Err(Answer::Refused(403, message)) => {
                    return Err(Unseen(format!("the lines of Pod {pod_name} cannot be read (403: {message})")).into());
                }
                Err(Answer::Refused(code, message)) => {
                    // Its kubelet does not answer, or has not started it after all.
                    reading.trouble = Some(format!("{code}: {message}"));
                    return Ok(());
                }
                Err(_) => {
                    reading.over = true;
                    if !reading.begun {
                        reading.trouble = Some("its Pod is gone".to_owned());
                    }
                    return Ok(());
                }
            };
            (reading.begun, reading.trouble) = (true, None);
            let mut lines = pin!(lines);
            let whole = loop {
                let next = tokio::select! {
                    biased;
                    next = lines.next() => next,
                    () = silence(news.as_ref()) => break false,
                };
                match next {
                    Some(Ok((text, place))) => {
                        one_line(&Line { task, step: step(container), text: &text }, args.of.output, io)?;
                        reading.place = place;
                    }
                    Some(Err(error)) => {
                        reading.trouble = Some(format!("they broke off: {error}"));
                        break false;
                    }
                    None => break true,
                }
            };
            reading.over = ended && whole;
            let Some(news) = news.as_mut().filter(|news| !ended && !news.is_judged()) else { return Ok(()) };
            // A stream ends with its container, but also with a kubelet or a connection: the Pod knows, if a little later.
            let now = pods(found, run).await?;
            let Some(pod) = now.iter().find(|pod| text(pod, "/metadata/name") == pod_name) else { return Ok(()) };
            ended = is(pod, container, "terminated");
            if !ended {
                news.within(INTERVAL).await;
            }
        }
        Ok(())
    }

    /// What there is to say of what was not printed, and how the build ended.
    fn conclude(&self, io: &mut Io<'_>) -> anyhow::Result<Exit> {
        let Self { args, found, progress, there, .. } = self;
        let mut whole = !progress.is_empty();
        for ((_, container), Reading { task, trouble, .. }) in progress {
            if let Some(why) = trouble {
                whole = false;
                let step = step(container);
                writeln!(io.err, "drawbridge: the lines of task {task}, step {step}, could not be read: {why}")?;
            }
        }
        let known: Vec<&Value> =
            found.object.pointer("/status/tasks").and_then(Value::as_array).into_iter().flatten().collect();
        if progress.is_empty() {
            writeln!(io.err, "drawbridge: {}", nothing(found, args.task.as_deref(), &known))?;
        } else {
            let read = progress.values().map(|reading| reading.task.as_str());
            let not_gone = read.chain(there.iter().map(String::as_str)).collect();
            for task in gone(&known, args.task.as_deref(), &not_gone) {
                writeln!(io.err, "drawbridge: task {task} has no log lines; its Pod is gone, or it never had one")?;
            }
        }
        let failed = found.status("phase") == "Failed";
        if failed {
            writeln!(io.err, "Failed: {}", shown(status(&found.object, "message")))?;
        }
        Ok(if failed || !whole { Exit::Findings } else { Exit::Ok })
    }
}

/// Why nothing at all was printed.
fn nothing(found: &Found, wanted: Option<&str>, known: &[&Value]) -> String {
    let run = found.status("pipelineRunName");
    let names: Vec<&str> = known.iter().filter_map(|task| task["name"].as_str()).collect();
    if let Some(wanted) = wanted.filter(|wanted| !names.is_empty() && !names.contains(wanted)) {
        return format!("run {run} has no task {wanted}; its tasks are {}", names.join(", "));
    }
    let of = wanted.map_or(String::new(), |task| format!(" of task {task}"));
    let why = match found.status("phase") {
        "Building" => "no container has begun yet, and --follow waits for them",
        "Succeeded" => "its Pods go with cleanupAfterBuild once the build has succeeded",
        _ => "its Pods are gone, or it ended before one began",
    };
    format!("no log lines{of} of run {run} exist; {why}")
}

/// The tasks that have ended and are not among those that were read or can be, in their order.
fn gone<'v>(known: &[&'v Value], wanted: Option<&str>, not_gone: &BTreeSet<&str>) -> Vec<&'v str> {
    let ended =
        known.iter().filter(|task| matches!(task["state"].as_str(), Some("Succeeded" | "Failed" | "Cancelled")));
    let names = ended.filter_map(|task| task["name"].as_str());
    names.filter(|name| wanted.is_none_or(|wanted| wanted == *name) && !not_gone.contains(name)).collect()
}

/// The task of a Pod.
fn task(pod: &Value) -> &str {
    label(pod, keys::LABEL_PIPELINE_TASK).unwrap_or(text(pod, "/metadata/name"))
}

/// The Pods of a run, those that began first at the beginning.
async fn pods(found: &Found, run: &str) -> anyhow::Result<Vec<Value>> {
    let path = format!("{}?labelSelector={}%3D{run}", Kind::Pod.path(&found.namespace), keys::LABEL_PIPELINE_RUN);
    let path = path.replace("tekton.dev/", "tekton.dev%2F");
    let mut notes = Vec::new();
    let mut pods = found.cluster.list(&path, &mut notes).await?;
    if !notes.is_empty() {
        return Err(unlisted(&found.namespace, run, &notes));
    }
    pods.sort_by_key(|pod| {
        (text(pod, "/metadata/creationTimestamp").to_owned(), text(pod, "/metadata/name").to_owned())
    });
    Ok(pods)
}

/// That the Pods of a run may not be seen, as their lines may not be.
fn unlisted(namespace: &str, run: &str, notes: &[String]) -> anyhow::Error {
    Unseen(format!("the Pods of run {run} in namespace {namespace} cannot be listed: {}", notes.join("; "))).into()
}

fn one_line(one: &Line<'_>, format: Format, io: &mut Io<'_>) -> anyhow::Result<()> {
    match format {
        Format::Table => line(io.out, &format!("[{}/{}] {}", one.task, one.step, one.text)),
        Format::Json => line(io.out, &serde_json::to_string(one)?),
        Format::Yaml => {
            let document = crate::cli::yaml::emit::document(&serde_json::to_value(one)?, None);
            line(io.out, &format!("---\n{}", document.trim_end()))
        }
    }
}

/// Ends when a build that is followed has been judged and its last lines have had time to come.
async fn silence(news: Option<&News>) {
    match news {
        Some(news) => news.judged().await,
        None => std::future::pending().await,
    }
    tokio::time::sleep(SILENCE).await;
}

/// What Tekton calls the step of a container; what is no step has a container's name.
fn step(container: &str) -> &str {
    container.strip_prefix(STEP).unwrap_or(container)
}

/// The containers of a Pod that have begun, in the order of the Pod; while the build is followed, of those that are no
/// steps only the ones that have ended.
fn begun(pod: &Value, follows: bool) -> Vec<&str> {
    let has_begun =
        |name: &str| is(pod, name, "terminated") || is(pod, name, "running") && (!follows || name.starts_with(STEP));
    let containers = pod.pointer("/spec/containers").and_then(Value::as_array).into_iter().flatten();
    containers.filter_map(|one| one["name"].as_str()).filter(|name| has_begun(name)).collect()
}

/// Whether a container is in a state.
fn is(pod: &Value, container: &str, state: &str) -> bool {
    let statuses = pod.pointer("/status/containerStatuses").and_then(Value::as_array);
    let mut statuses = statuses.into_iter().flatten().filter(|status| status["name"] == container);
    statuses.any(|status| status["state"].get(state).is_some_and(|state| !state.is_null()))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use serde_json::{Value, json};

    use super::{begun, gone, unlisted};
    use crate::cli::io::Io;
    use crate::cli::{Exit, conclude};

    #[test]
    fn pods_that_may_not_be_listed_end_it_as_lines_that_may_not_be_read() {
        let (mut stdin, mut out, mut err) = (&b""[..], Vec::new(), Vec::new());
        let mut io = Io { stdin: &mut stdin, out: &mut out, err: &mut err, colour: false };
        let error = unlisted("team1", "weather-1", &["/api/v1/pods could not be read (403: no)".to_owned()]);
        assert_eq!(conclude(Err(error), &mut io), Exit::Partial);
        let err = String::from_utf8(err).unwrap();
        assert!(err.contains("run weather-1 in namespace team1") && err.contains("403: no"), "{err}");
        assert!(err.contains("What to do: "), "{err}");
    }

    #[test]
    fn only_containers_that_have_begun_have_lines_in_the_order_of_the_pod() {
        let state = |name: &str, state: &str| json!({"name": name, "state": {state: {}}});
        let pod = json!({
            "spec": {"containers": [{"name": "step-clone"}, {"name": "step-build"}, {"name": "step-push"}, {"name": "proxy"}]},
            "status": {"containerStatuses": [state("proxy", "running"),
                state("step-push", "waiting"), state("step-build", "running"), state("step-clone", "terminated")]},
        });
        assert_eq!(begun(&pod, false), ["step-clone", "step-build", "proxy"]);
        assert_eq!(begun(&pod, true), ["step-clone", "step-build"], "what may never end is not waited for");
        assert!(begun(&json!({"spec": {"containers": [{"name": "a"}]}}), false).is_empty());
    }

    #[test]
    fn tasks_that_have_ended_and_have_no_pod_are_named() {
        let tasks =
            [("clone", "Succeeded"), ("build", "Failed"), ("sign", "NotRun"), ("push", "Skipped"), ("scan", "Running")];
        let tasks: Vec<Value> = tasks.iter().map(|(name, state)| json!({"name": name, "state": state})).collect();
        let tasks: Vec<&Value> = tasks.iter().collect();
        assert_eq!(gone(&tasks, None, &BTreeSet::new()), ["clone", "build"]);
        assert_eq!(gone(&tasks, Some("build"), &BTreeSet::new()), ["build"]);
        assert_eq!(gone(&tasks, None, &BTreeSet::from(["clone"])), ["build"]);
    }
}
