//! `build logs`: the lines of the Pods of a build's last run, task by task in the order in which they began.
//!
//! With `--follow` it stays until the run has ended; a line is printed once. What Pods are gone, by clean-up or
//! otherwise, is said.

use std::collections::BTreeSet;
use std::pin::pin;
use std::time::Duration;

use anyhow::bail;
use futures::StreamExt;
use serde::Serialize;
use serde_json::Value;

use super::{Found, Of, line, status};
use crate::api::observed::Kind;
use crate::cli::cluster::Answer;
use crate::cli::io::Io;
use crate::cli::survey::{label, text};
use crate::cli::{Exit, Format};
use crate::domain::keys;

/// How often a run that is followed is looked at again.
const INTERVAL: Duration = Duration::from_secs(1);

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

/// The containers that have been printed to their end: Pod and name.
type Printed = BTreeSet<(String, String)>;

pub(super) async fn print(args: Args, io: &mut Io<'_>) -> anyhow::Result<Exit> {
    let mut found = args.of.find(args.follow).await?;
    let mut printed = Printed::new();
    loop {
        // What ends meanwhile has been printed by the time that is noticed.
        let building = matches!(found.status("phase"), "" | "Pending" | "Building");
        let run = found.status("pipelineRunName").to_owned();
        if run.is_empty() && !args.follow {
            bail!("AgentBuild {} has no run yet: {}", found.name, found.status("message"));
        }
        let pods = if run.is_empty() { Vec::new() } else { pods(&found, &run).await? };
        for pod in &pods {
            if args.task.as_deref().is_none_or(|task| label(pod, keys::LABEL_PIPELINE_TASK) == Some(task)) {
                one_pod(&found, pod, (&args, &mut printed), io).await?;
            }
        }
        if !args.follow || !building {
            return conclude(&found, &args, &printed, io);
        }
        tokio::time::sleep(INTERVAL).await;
        found.object = found.read().await?;
    }
}

fn conclude(found: &Found, args: &Args, printed: &Printed, io: &mut Io<'_>) -> anyhow::Result<Exit> {
    if printed.is_empty() {
        let of = args.task.as_ref().map_or(String::new(), |task| format!(" of task {task}"));
        let why = match found.status("phase") {
            "Building" => "no container has begun yet, and --follow waits for them",
            _ => "its Pods go with cleanupAfterBuild once the build has succeeded",
        };
        let run = found.status("pipelineRunName");
        writeln!(io.err, "drawbridge: no lines{of} of run {run} are there; {why}")?;
    }
    let failed = found.status("phase") == "Failed";
    if failed {
        writeln!(io.err, "Failed: {}", status(&found.object, "message"))?;
    }
    Ok(if failed || printed.is_empty() { Exit::Findings } else { Exit::Ok })
}

/// The Pods of a run, those that began first at the beginning.
async fn pods(found: &Found, run: &str) -> anyhow::Result<Vec<Value>> {
    let path = format!("{}?labelSelector={}%3D{run}", Kind::Pod.path(&found.namespace), keys::LABEL_PIPELINE_RUN);
    let path = path.replace("tekton.dev/", "tekton.dev%2F");
    let mut notes = Vec::new();
    let mut pods = found.cluster.list(&path, &mut notes).await?;
    if let Some(note) = notes.into_iter().next() {
        bail!(note);
    }
    pods.sort_by_key(|pod| {
        (text(pod, "/metadata/creationTimestamp").to_owned(), text(pod, "/metadata/name").to_owned())
    });
    Ok(pods)
}

/// The lines of the containers that have begun and were not printed yet.
async fn one_pod(
    found: &Found,
    pod: &Value,
    (args, printed): (&Args, &mut Printed),
    io: &mut Io<'_>,
) -> anyhow::Result<()> {
    let name = text(pod, "/metadata/name");
    let task = label(pod, keys::LABEL_PIPELINE_TASK).unwrap_or(name);
    for container in begun(pod) {
        let key = (name.to_owned(), container.to_owned());
        if printed.contains(&key) {
            continue;
        }
        let step = container.strip_prefix("step-").unwrap_or(container);
        let lines = match found.cluster.log(&found.namespace, (name, container), args.follow).await? {
            Ok(lines) => lines,
            Err(Answer::Refused(403, message)) => bail!("the lines of {name} may not be read: {message}"),
            // The Pod is gone, or its kubelet does not answer.
            Err(_) => continue,
        };
        let mut lines = pin!(lines);
        while let Some(text) = lines.next().await {
            one_line(&Line { task, step, text: &text? }, args.of.output, io)?;
        }
        printed.insert(key);
    }
    Ok(())
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

/// The containers of a Pod that have begun, in the order of the Pod.
fn begun(pod: &Value) -> Vec<&str> {
    let states = pod.pointer("/status/containerStatuses").and_then(Value::as_array);
    let has_begun = |name: &str| {
        states.into_iter().flatten().any(|status| {
            let state = |key: &str| status["state"].get(key).is_some_and(|state| !state.is_null());
            status["name"] == name && (state("running") || state("terminated"))
        })
    };
    let containers = pod.pointer("/spec/containers").and_then(Value::as_array).into_iter().flatten();
    containers.filter_map(|one| one["name"].as_str()).filter(|name| has_begun(name)).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::begun;

    #[test]
    fn only_containers_that_have_begun_have_lines_in_the_order_of_the_pod() {
        let state = |name: &str, state: &str| json!({"name": name, "state": {state: {}}});
        let pod = json!({
            "spec": {"containers": [{"name": "step-clone"}, {"name": "step-build"}, {"name": "step-push"}]},
            "status": {"containerStatuses": [
                state("step-push", "waiting"), state("step-build", "running"), state("step-clone", "terminated")]},
        });
        assert_eq!(begun(&pod), ["step-clone", "step-build"]);
        assert!(begun(&json!({"spec": {"containers": [{"name": "a"}]}})).is_empty());
    }
}
