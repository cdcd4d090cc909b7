//! `build explain`: what would be built now, each parameter with the place it came from, and the PipelineRun itself.
//!
//! In: an AgentBuild, the ConfigMaps that it and its mode name, the platform file. Out: what the controller would
//! compose from the same facts by the same function; or everything that is wrong. Secrets are not read: only named.

use std::collections::BTreeSet;
use std::io::Write;

use serde::Serialize;
use serde_json::Value;

use super::{Found, Of};
use crate::api::findings::{Fault, Findings as ApiFindings};
use crate::cli::Exit;
use crate::cli::given;
use crate::cli::io::{self, Io};
use crate::cli::offline::world::{Facts, World};
use crate::cli::survey::{self, label};
use crate::cli::yaml::emit;
use crate::domain::keys;
use crate::pipelines::agent_build::{Change, Origin, drift, read, validate};
use crate::pipelines::beeai_build;
use crate::pipelines::compose::{Composition, Surroundings, compose};
use crate::pipelines::names;
use crate::pipelines::params::{Origin as Given, Traced};
use crate::pipelines::request::{BuildRequest, FrontEnd};
use crate::pipelines::settings::Settings;
use crate::pipelines::templates::{ConfigMapText, TemplatesView};
use crate::store::Kind;

/// Arguments of `build explain`.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// Which build.
    #[command(flatten)]
    pub of: Of,
    /// Namespace of the operator.
    #[arg(long, value_name = "NAME", default_value = keys::OPERATOR_NAMESPACE, value_parser = given::namespace)]
    pub operator_namespace: String,
}

/// What is printed.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Report {
    namespace: String,
    name: String,
    mode: String,
    /// `template/<mode>` or `user`.
    steps_from: String,
    /// Identity of the inputs; empty while they cannot be composed.
    build_hash: String,
    /// Whether the status speaks of these very inputs.
    current: bool,
    parameters: Vec<Parameter>,
    warnings: Vec<String>,
    faults: Vec<String>,
    /// Null while it cannot be composed.
    pipeline_run: Value,
}

/// One parameter of one step.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct Parameter {
    /// Empty for what concerns the whole run.
    step: String,
    name: String,
    value: Value,
    from: &'static str,
    path: String,
    shadowed: Vec<Shadowed>,
}

/// A value that lost.
#[derive(Debug, Serialize)]
struct Shadowed {
    value: Value,
    from: &'static str,
    path: String,
}

/// What a composition depends on besides the AgentBuild.
pub(super) struct Known {
    pub(super) settings: Settings,
    pub(super) view: TemplatesView,
    pub(super) accounts: BTreeSet<String>,
}

pub(super) async fn explain(args: Args, io: &mut Io<'_>) -> anyhow::Result<Exit> {
    let found = args.of.find(false).await?;
    let mut notes = Vec::new();
    let known = known(&found, &args.operator_namespace, &mut notes).await?;
    let mut report = match found.kind {
        Kind::BeeaiBuild | Kind::BeeaiCompatBuild => beeai(&found.object, (found.front(), &*found.namespace), &known),
        _ => report(&found.object, &found.namespace, &known),
    };
    report.warnings.extend(notes);
    io::print(args.of.output, &report, io.out, |out| table(out, &report))?;
    Ok(if report.faults.is_empty() { Exit::Ok } else { Exit::Findings })
}

/// Reads settings, templates, steps and accounts.
async fn known(found: &Found, operator: &str, notes: &mut Vec<String>) -> anyhow::Result<Known> {
    let facts = Facts {
        platform_file: None,
        feature_gates_path: None,
        server_version: (1, 33),
        spire_driver: false,
        operator_namespace: operator.to_owned(),
    };
    let mut world = World::new(&facts)?;
    survey::of_the_cluster(&found.cluster, &mut world, notes).await?;
    let openshift = found.cluster.get("/apis/config.openshift.io/v1").await?.object().is_some();
    let settings = world.platform()?.builds(operator, openshift).pipelines;
    let written = survey::text(&found.object, "/spec/pipeline/namespace");
    let places: BTreeSet<&str> =
        [operator, written, &found.namespace].into_iter().filter(|it| !it.is_empty()).collect();
    let mut view = TemplatesView::new(operator, settings.privileged_steps);
    for place in places {
        for object in found.cluster.list(&Kind::ConfigMap.path(place), notes).await? {
            view.insert(&config_map(&object));
        }
    }
    let accounts = found.cluster.list(&Kind::ServiceAccount.path(&found.namespace), notes).await?;
    let for_builds = accounts.iter().filter(|one| label(one, keys::LABEL_BUILD_ACCOUNT) == Some("true"));
    let accounts = for_builds.map(|one| survey::text(one, "/metadata/name").to_owned()).collect();
    Ok(Known { settings, view, accounts })
}

fn config_map(object: &Value) -> ConfigMapText {
    let texts = |pointer: &str| {
        let members = object.pointer(pointer).and_then(Value::as_object).into_iter().flatten();
        members.filter_map(|(key, value)| Some((key.clone(), value.as_str()?.to_owned()))).collect()
    };
    ConfigMapText {
        namespace: survey::text(object, "/metadata/namespace").to_owned(),
        name: survey::text(object, "/metadata/name").to_owned(),
        labels: texts("/metadata/labels"),
        data: texts("/data"),
    }
}

/// The same for an AgentBuild of BeeAI, whose steps are those of the operator's template.
pub(super) fn beeai(object: &Value, whose: (&FrontEnd, &str), known: &Known) -> Report {
    let Known { view, settings, .. } = known;
    let mut findings = beeai_build::validate((object, None), whose, view, settings);
    beeai_build::without_template(view).into_iter().for_each(|fault| findings.fault(fault));
    let from = beeai_build::template(view).map_or_else(|| "no template".to_owned(), |entry| entry.title());
    let request = beeai_build::read(object, whose, view, settings);
    composed(object, (request, findings), (from, beeai_build::leave_entries), known)
}

/// What is composed of an AgentBuild, or what is wrong: everything for which the controller would not start it.
pub(super) fn report(object: &Value, namespace: &str, known: &Known) -> Report {
    let (request, mut findings) = read(object, namespace, &known.view, 1);
    let change = Change { namespace, object, old: None };
    let judged = validate(&change, &known.view, &known.settings).faults;
    judged.into_iter().chain(drift(object, &known.view)).for_each(|fault| findings.fault(fault));
    composed(object, (request, findings), (Origin::of(object).value(), |_, _| ()), known)
}

/// Takes out of what composition found what the review of that kind has judged otherwise.
type Leave = fn(&FrontEnd, &mut ApiFindings);

fn composed(
    object: &Value,
    (mut request, mut findings): (BuildRequest, ApiFindings),
    (steps_from, leave): (String, Leave),
    known: &Known,
) -> Report {
    let namespace = request.owner.namespace.clone();
    if survey::text(object, "/status/buildHash") == names::build_hash(&request) {
        let attempts = object.pointer("/status/attempts").and_then(Value::as_u64).unwrap_or(1);
        request.attempt = u32::try_from(attempts).unwrap_or(1).max(1);
    }
    let written = Some(survey::text(object, "/spec/pipeline/namespace")).filter(|written| !written.is_empty());
    let steps = known.view.steps(written.unwrap_or(&request.steps_namespace));
    let around = Surroundings { steps, settings: &known.settings, accounts: Some(&known.accounts) };
    let composed = compose(&request, around);
    let mut unpinned = false;
    let mut report = Report {
        namespace,
        name: survey::text(object, "/metadata/name").to_owned(),
        mode: request.mode.clone(),
        steps_from,
        build_hash: String::new(),
        current: false,
        parameters: Vec::new(),
        warnings: Vec::new(),
        faults: Vec::new(),
        pipeline_run: Value::Null,
    };
    match composed {
        Ok(Composition { notes, .. }) if !findings.faults.is_empty() => findings.notes.extend(notes),
        Ok(Composition { run, build_hash, provenance, pinned, notes, .. }) => {
            unpinned = known.settings.by_content && !pinned;
            report.current = survey::text(object, "/status/buildHash") == build_hash;
            report.build_hash = build_hash;
            report.parameters = provenance.into_iter().map(parameter).collect();
            findings.notes.extend(notes);
            report.pipeline_run = run;
        }
        Err(mut found) => {
            leave(&request.front, &mut found);
            findings.extend(found);
        }
    }
    report.warnings = findings.notes.iter().map(ToString::to_string).collect();
    if unpinned {
        report.warnings.push(
            "builds.byContent has no effect on this build: a step runs in an image that is not named by digest. What to do: drawbridge render \
             --build-image NAME=IMAGE@sha256:… for the steps of the platform"
                .to_owned(),
        );
    }
    report.faults = findings.faults.iter().chain(&findings.content).map(Fault::to_string).collect();
    report
}

fn parameter(traced: Traced) -> Parameter {
    let Traced { step, parameter, origin, shadowed } = traced;
    let Given { layer, path, value } = origin;
    let shadowed =
        shadowed.into_iter().map(|one| Shadowed { value: one.value, from: one.layer.as_str(), path: one.path });
    Parameter {
        step: step.unwrap_or_default(),
        name: parameter,
        value,
        from: layer.as_str(),
        path,
        shadowed: shadowed.collect(),
    }
}

pub(super) fn table(out: &mut dyn Write, report: &Report) -> std::io::Result<()> {
    writeln!(
        out,
        "AgentBuild {} in namespace {}: mode {}, steps from {}",
        report.name, report.namespace, report.mode, report.steps_from
    )?;
    for fault in &report.faults {
        writeln!(out, "fault: {}", io::shown(fault))?;
    }
    for warning in &report.warnings {
        writeln!(out, "warning: {}", io::shown(warning))?;
    }
    let mut step = None;
    for parameter in &report.parameters {
        if step != Some(&parameter.step) {
            step = Some(&parameter.step);
            let title =
                if parameter.step.is_empty() { "the run".to_owned() } else { format!("step {}", parameter.step) };
            writeln!(out, "\n{title}")?;
        }
        writeln!(out, "  {} = {}", parameter.name, shown(&parameter.value))?;
        writeln!(out, "      from {} ({})", parameter.from, parameter.path)?;
        for lost in &parameter.shadowed {
            writeln!(out, "      over {} from {} ({})", shown(&lost.value), lost.from, lost.path)?;
        }
    }
    if !report.pipeline_run.is_null() {
        let word = if report.current { "is the one that the status speaks of" } else { "has not been built" };
        writeln!(out, "\nbuild {} {word}; its PipelineRun:\n", &report.build_hash[..12])?;
        write!(out, "{}", emit::document(&report.pipeline_run, None))?;
    }
    Ok(())
}

/// A value on the line of its parameter, whatever is in it.
fn shown(value: &Value) -> String {
    value.as_str().map_or_else(|| io::shown(&value.to_string()), io::shown)
}
