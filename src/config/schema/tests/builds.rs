//! What the platform file decides about builds and agents, and what of it cannot be.

use super::{Platform, read, refused};
use crate::config::builds::Settings;
use crate::workloads::settings::Lockdown;

#[test]
fn what_is_decided_about_builds_and_agents() {
    let settings = |text: &str| read(text).builds("ours", false).pipelines;
    let agents = |text: &str| read(text).builds("ours", false).workloads;
    let built_in = Settings::new("ours");
    assert_eq!(Platform::built_in().builds("ours", false), built_in);
    assert_eq!(agents("agents: {lockdown: enforce}").lockdown, Lockdown::Enforce);
    assert!(settings("builds: {insecureGit: true}").insecure_git);
    assert!(settings("builds: {requireGitHosts: true}").require_git_hosts);
    assert!(settings("builds: {privilegedSteps: true}").privileged_steps);
    assert!(agents("beeai: {allowBaseline: true}").beeai_baseline);
    assert!(agents("{}").beeai && !agents("beeai: {enabled: false}").beeai);
    assert!(!settings("beeai: {registrySecrets: false}").registry_secrets);
    let registries = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect();
    assert_eq!(
        settings("beeai: {tokenRegistries: [GHCR.io, 'reg.io:5000']}").token_registries,
        registries(&["ghcr.io", "reg.io:5000"])
    );
    assert_eq!(settings("beeai: {tokenRegistries: []}").token_registries, registries(&[]));
    assert_eq!(settings("builds: {insecureRegistries: ['reg:5000']}").insecure_registries, registries(&["reg:5000"]));
    for (text, history, lost_runs) in
        [("{}", 3, 3), ("builds: {history: 0}", 0, 3), ("builds: {history: 100, lostRuns: 1}", 100, 1)]
    {
        assert_eq!((settings(text).history, settings(text).lost_runs), (history, lost_runs), "{text}");
    }
    assert!(settings("builds: {pipelineNamespaces: [shared, other]}").allows_pipeline_namespace("shared", "team1"));
    assert_eq!(settings("builds: {trustBundle: corporate-ca}").trust_bundle.as_deref(), Some("corporate-ca"));
    let author =
        settings("builds: {environment: {GIT_AUTHOR_EMAIL: bot@example.com, GOSUMDB: sum.golang.org}}").environment;
    assert_eq!(author.len(), 2, "an address of mail is no credential");
    let proxy = settings("builds: {environment: {HTTPS_PROXY: 'http://proxy:3128', NO_PROXY: .svc}}").environment;
    assert_eq!(proxy.get("HTTPS_PROXY").map(String::as_str), Some("http://proxy:3128"));
    assert_eq!(settings("builds: {nodeSelector: {pool: builds}}").node_selector.len(), 1);
    assert_eq!(settings("builds: {tolerations: [{key: builds, operator: Exists}]}").tolerations.len(), 1);
    let resources = settings("builds: {resources: {limits: {memory: 4Gi, cpu: 2}}}").resources.unwrap();
    assert_eq!(resources.to_string(), r#"{"limits":{"cpu":"2","memory":"4Gi"}}"#);
    let spelled = settings("builds: {resources: {limits: {cpu: 0.072}, requests: {cpu: 72m}}}").resources.unwrap();
    assert_eq!(spelled["requests"]["cpu"], "72m", "one amount in two spellings is no more than itself");
    for (text, seen, openshift) in [
        ("{}", true, true),
        ("{}", false, false),
        ("distribution: kubernetes", true, false),
        ("distribution: openshift", false, true),
    ] {
        let settings = read(text).builds("ours", seen);
        assert_eq!((settings.pipelines.openshift, settings.workloads.openshift), (openshift, openshift), "{text}");
    }
}

#[test]
fn settings_of_builds_that_cannot_be_are_refused_by_path() {
    for (text, told) in [
        ("builds: {pipelineNamespaces: [a.b]}", "builds.pipelineNamespaces[0]: \"a.b\" is not the name of a namespace"),
        (
            "builds: {environment: {HTTP_PROXY: 'http://me:secret@proxy'}}",
            "builds.environment.HTTP_PROXY: contains a user",
        ),
        // Without a scheme, and behind another address: curl, git and Go take both for a login.
        (
            "builds: {environment: {HTTPS_PROXY: 'me:secret@proxy:3128'}}",
            "builds.environment.HTTPS_PROXY: contains a user",
        ),
        (
            "builds: {environment: {GOPROXY: 'https://proxy.example,https://me:secret@goproxy'}}",
            "builds.environment.GOPROXY: contains a user",
        ),
        ("builds: {environment: {A: 1}}", "put it in quotes"),
        ("builds: {environment: {a-b: x}}", "builds.environment.a-b: is not the name"),
        ("builds: {nodeSelector: {a b: x}}", "is not a label that a node can have"),
        ("builds: {tolerations: [{kee: x}]}", "did you mean key?"),
        ("builds: {tolerations: [{operator: Equal, value: x}]}", "builds.tolerations[0]: needs a key"),
        ("builds: {tolerations: [{key: a, operator: Exists, value: x}]}", "does not take"),
        ("builds: {tolerations: [{key: a, tolerationSeconds: 3}]}", "NoExecute"),
        ("builds: {resources: {limits: {memory: lots}}}", "builds.resources.limits.memory: \"lots\" is not a quantity"),
        ("builds: {resources: {limits: {cpu: 1}, requests: {cpu: 2}}}", "is more than limits.cpu"),
        ("builds: {resources: {requests: {hugepages-2Mi: 4Mi}}}", "in limits.hugepages-2Mi, which is absent"),
        ("builds: {resources: {limits: {example.com/gpu: 2}, requests: {example.com/gpu: 1}}}", "has to be the same"),
        ("builds: {trustBundle: A_b}", "is not the name of a ConfigMap"),
        ("builds: {requireGitHosts: github.com}", "builds.requireGitHosts: "),
        ("builds: {history: 101}", "builds.history: a number from 0 to 100 is expected, 101 was found"),
        ("builds: {history: '3'}", "builds.history: a number from 0 to 100 is expected, a string was found"),
        ("builds: {history: -1}", "builds.history: a number from 0 to 100 is expected, -1 was found"),
        ("builds: {lostRuns: 0}", "builds.lostRuns: a number from 1 to 100 is expected, 0 was found"),
        ("builds: {lostRuns: 1.5}", "builds.lostRuns: a number from 1 to 100"),
        ("agents: {lockdown: enforced}", "did you mean enforce?"),
        ("beeai: {takeover: lockdwn}", "did you mean lockdown?"),
        ("distribution: open-shift", "did you mean openshift?"),
    ] {
        let error = refused(text);
        assert!(error.contains(told), "{text}: {error}");
        assert!(!error.contains("secret"), "{error}");
    }
}
