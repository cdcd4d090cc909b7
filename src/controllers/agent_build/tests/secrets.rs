//! Secrets of a build that are used by their own consent, and the hosts that bind every Secret.

use serde_json::{Value, json};

use super::bench::{Bench, SILENT, TELLS, build};
use crate::controllers::scaffold::answers::{SecretFact, SecretSeen};
use crate::controllers::scaffold::fixtures::step_map;
use crate::controllers::scaffold::plan::Op;
use crate::domain::keys;
use crate::store::Kind;

fn secret(key: &str, annotations: &[(&str, &str)]) -> SecretFact {
    let says = |key: &str| annotations.iter().find(|(name, _)| *name == key).map(|(_, text)| (*text).to_owned());
    SecretFact::Is(SecretSeen {
        type_: "Opaque".to_owned(),
        keys: [key.to_owned()].into(),
        hosts: says("git-hosts"),
        registries: says("registry-hosts"),
        usable_by: says("usable-by"),
        ..SecretSeen::default()
    })
}

/// A build with that reference, of which these names are left to consent.
fn with(reference: &Value, consented: &str) -> Bench {
    let mut object = build();
    json_patch::merge(&mut object["spec"], reference);
    if !consented.is_empty() {
        object["metadata"]["annotations"] = json!({keys::ANNOTATION_SECRETS_BY_CONSENT: consented});
    }
    Bench::new(object)
}

fn stopped(bench: &Bench, reason: &str, text: &str) {
    assert_eq!((bench.phase(), bench.condition("Ready").1), ("Failed".into(), reason.into()), "{}", bench.message());
    assert!(bench.message().contains(text), "{text}: {}", bench.message());
    assert!(bench.names(Kind::PipelineRun).is_empty());
}

#[test]
fn mend_06_a_build_runs_with_a_secret_by_consent_once_it_is_given_with_its_hosts() {
    let git = json!({"source": {"sourceCredentials": {"name": "theirs"}}});
    let mut bench = with(&git, "theirs");
    for (annotations, text) in [
        (&[][..], "does not give it to builds"),
        (&[("usable-by", "agents"), ("git-hosts", "github.com")], "does not give it to builds"),
        (&[("usable-by", "builds")], "does not list the hosts"),
        (&[("usable-by", "builds"), ("git-hosts", "git.acme.example")], "send it to github.com"),
    ] {
        bench.secrets.insert("theirs".into(), secret("token", annotations));
        bench.pass(40);
        stopped(&bench, "SecretNotUsable", text);
    }
    assert_eq!(bench.pass(300), 0, "it is said once");
    let given = secret("token", &[("usable-by", "builds"), ("git-hosts", "github.com")]);
    bench.secrets.insert("theirs".into(), given.clone());
    bench.pass(40);
    assert_eq!((bench.phase(), bench.names(Kind::PipelineRun).len()), ("Building".into(), 1));
    // By a right of its author's the Secret needs no consent, and is not asked for it.
    let mut bench = with(&git, "");
    bench.secrets.insert("theirs".into(), secret("token", &[]));
    bench.settle();
    assert_eq!(bench.phase(), "Building");
    assert!(!bench.done.iter().any(|op| matches!(op, Op::Consent { .. })));
}

/// Between the look at its keys and the run, consent is taken back: what counts is what the Secret says at the write.
#[test]
fn mend_06_consent_is_asked_at_the_moment_of_the_write() {
    let mut bench = with(&json!({"source": {"sourceCredentials": {"name": "theirs"}}}), "theirs");
    let given = secret("token", &[("usable-by", "builds"), ("git-hosts", "github.com")]);
    bench.secrets.insert("theirs".into(), given);
    let run = |op: &Op| matches!(op, Op::Ensure { kind: Kind::PipelineRun, .. });
    while !bench.plan().ops.iter().any(run) {
        bench.step(usize::MAX);
    }
    bench.secrets.insert("theirs".into(), secret("token", &[("git-hosts", "github.com")]));
    bench.step(usize::MAX);
    bench.step(usize::MAX);
    stopped(&bench, "SecretNotUsable", "does not give it to builds");
    assert!(bench.names(Kind::PersistentVolumeClaim).is_empty());
}

/// What a template of the platform gives the steps was asked of nobody, whatever the annotation says.
#[test]
fn mend_06_what_a_template_gives_needs_consent() {
    let mut object = build();
    object["spec"]["mode"] = json!("dev");
    object["metadata"]["annotations"] = json!({"agent.kagenti.dev/pipeline-origin": "template/dev"});
    let mut bench = Bench::new(object);
    let takes = format!("params: [{{name: registry-secret}}]\n{TELLS}");
    bench.maps = vec![step_map("kagenti-system", "silent", SILENT), step_map("kagenti-system", "tells", &takes)];
    bench.template(
        "dev",
        &json!({"name": "t", "steps": [{"name": "clone", "configMap": "silent"}, {"name": "push", "configMap": "tells"}],
            "globalParameters": [{"name": "registry-secret", "value": "team-push"}]}),
    );
    bench.secrets.insert("team-push".into(), secret("config.json", &[]));
    bench.settle();
    stopped(&bench, "SecretNotUsable", "Secret team-push is used by its own consent");
    bench.secrets.insert("team-push".into(), secret("config.json", &[("usable-by", "builds")]));
    bench.pass(40);
    assert_eq!(bench.phase(), "Building", "{}", bench.message());
}

#[test]
fn mend_06_registries_that_a_secret_lists_bind_every_build() {
    let registry = json!({"buildOutput": {"imageRepoCredentials": {"name": "reg"}}});
    for (annotations, builds) in [
        (&[][..], true),
        (&[("registry-hosts", "reg.io")], true),
        (&[("registry-hosts", "ghcr.io, reg.io:5000")], true),
        (&[("registry-hosts", "ghcr.io")], false),
        (&[("git-hosts", "reg.io")], false),
    ] {
        let mut bench = with(&registry, "");
        bench.secrets.insert("reg".into(), secret("config.json", annotations));
        bench.settle();
        if builds {
            assert_eq!(bench.phase(), "Building", "{annotations:?}: {}", bench.message());
        } else {
            stopped(&bench, "PrerequisitesMissing", "would send it to reg.io:5000");
        }
    }
    // A parameter may say another place for the image, or for what is pushed in its place.
    for parameter in ["image", "push-image"] {
        let mut elsewhere = registry.clone();
        elsewhere["pipeline"] = json!({"parameters": [{"name": parameter, "value": "evil.example/a:1"}]});
        let mut bench = with(&elsewhere, "");
        bench.secrets.insert("reg".into(), secret("config.json", &[("registry-hosts", "reg.io")]));
        bench.settle();
        stopped(&bench, "PrerequisitesMissing", "would send it to evil.example");
    }
}
