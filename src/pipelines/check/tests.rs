//! Fields of the source, the output, metadata and parameters: what is refused, and what a refusal never repeats.

use crate::api::findings::{Findings, printed};
use crate::domain::reason::Reason;
use crate::pipelines::fixtures::{entry, examined, from_template, parameters, request, steps, task_spec};
use crate::pipelines::request::{BuildRequest, SecretUse};

fn found(edit: impl FnOnce(&mut BuildRequest)) -> Findings {
    let spec = task_spec("");
    let mut request = request(vec![entry("a", "one")]);
    edit(&mut request);
    examined(&request, &steps(&[("one", &spec)]))
}

fn reasons(findings: &Findings, path: &str) -> Vec<Reason> {
    findings.faults.iter().filter(|fault| fault.path.starts_with(path)).map(|fault| fault.reason).collect()
}

#[test]
fn repositories() {
    let told = |url: &str| found(|request| request.source.repository = url.to_owned());
    for url in [
        "github.com/kagenti/agent-examples.git",
        "https://github.com/kagenti/agent-examples",
        "HTTPS://github.com/x/y",
        "https://git.acme.example:8443/a/b.git",
        "ssh://git@github.com:22/x/y.git",
        "SSH://git@github.com/x/y.git",
        "ssh://github.com/x/y.git",
        "git@github.com:x/y.git",
        "gitea:3000/x/y",
        "https://[::1]:3000/x",
        "dev.azure.com/org/project/_git/repo%20x",
    ] {
        assert_eq!(told(url).faults, [], "{url}");
    }
    for url in [
        "",
        "http://github.com/x",
        "file:///etc",
        "/etc/passwd",
        "./x",
        "../x",
        "ext::sh -c id",
        "ext::x",
        "git://github.com/x",
        "-x/y",
        "https://-x/y",
        "https://",
        "https://github.com",
        "github.com",
        "https:///x",
        "https://a b/c",
        "https://a/b\n",
        "https://a/$(id)",
        "https://a/`id`",
        "https://a/b;c",
        "https://a/'b",
        "https://a\\b/c",
        "git@-x:y",
        "@github.com:x",
        "host:path/x",
        "ssh://-o@x/y",
        "git@host:",
        "git@host:-x",
        "https://host:99999/x",
        "ftp://x/y",
        &"a/".repeat(2000),
    ] {
        let findings = told(url);
        assert!(!reasons(&findings, "spec.source.sourceRepository").is_empty(), "{url:.80} is accepted");
    }
    assert!(printed(&told("").faults).contains("spec.source.sourceRepository is required"));
}

#[test]
fn case_b20_a_credential_is_refused_and_not_repeated() {
    for url in [
        "https://user:s3cr3t@host/r.git",
        "https://s3cr3t@host/r.git",
        "https://s3cr3t:x-oauth-basic@host/r.git",
        "ssh://user:s3cr3t@host/r.git",
        "SSH://user:s3cr3t@host/r.git",
        "user:s3cr3t@host/r.git",
        "s3cr3t@host/r.git",
        "http://user:s3cr3t@host/r.git",
        "https://user:s3cr3t@host/r.git; rm -rf /",
        "user:s3cr3t@host:r.git",
        "ftp://user:s3cr3t@host/r.git",
        "https://user:a/s3cr3t@host/r.git",
        "https://user:s3cr3t/x@host/r.git",
        "https:/user:s3cr3t@host/r.git",
        "https//user:s3cr3t@host/r.git",
        "//user:s3cr3t@host/r.git",
    ] {
        let findings = found(|request| request.source.repository = url.to_owned());
        assert_eq!(reasons(&findings, "spec.source.sourceRepository"), [Reason::CredentialInText], "{url}");
        assert!(!format!("{findings:?}").contains("s3cr3t"), "{findings:?}");
        for value in [url.to_owned(), format!("{url}$(x)")] {
            let findings = found(|request| request.parameters = parameters(&[("repo-url", &value)]));
            let findings = Findings { notes: Vec::new(), ..findings };
            assert_eq!(findings.faults.len(), 1, "{value}: {findings:?}");
            assert!(!format!("{findings:?}").contains("s3cr3t"), "{findings:?}");
        }
    }
    // A step of the user's own is as public as the field whose place its parameter takes; what a reference puts there stands nowhere.
    for (url, is_there) in [
        ("https://user:s3cr3t@host/r.git", true),
        ("https://user:s3cr3t@host/$(context.pipelineRun.name)", true),
        ("https://$(context.pipelineRun.name)@host/r.git", false),
        ("git@host:r.git", false),
        ("http://host/r.git", false),
    ] {
        for enabled in [true, false] {
            let findings = found(|request| {
                request.steps[0].parameters = parameters(&[("repo-url", url), ("other", "https://user:x@host/r")]);
                request.steps[0].enabled = enabled;
            });
            let path = "spec.pipeline.steps[0].parameters";
            let expected = if is_there { vec![Reason::CredentialInText] } else { Vec::new() };
            assert_eq!(reasons(&findings, path), expected, "{url}, enabled: {enabled}");
            assert!(!format!("{findings:?}").contains("s3cr3t"), "{findings:?}");
        }
    }
    let findings = found(|request| request.source.repository = "https://host/r?access_token=s3cr3t".to_owned());
    assert_eq!(reasons(&findings, "spec.source.sourceRepository"), [Reason::FieldInvalid]);
    assert!(!format!("{findings:?}").contains("s3cr3t"), "{findings:?}");
    for url in ["https://host:8443/a@b", "host/a@v1:b"] {
        assert_eq!(found(|request| request.source.repository = url.to_owned()).faults, [], "{url}");
    }
}

#[test]
fn case_b21_subfolders_stay_inside() {
    for folder in
        ["../x", "a/../x", "/x", "a;b", "$(id)", "-x", "a b", "a\tb", "a\"b", "a'b", "a\\b", "a`b`", "a\u{0}b", ".."]
    {
        let findings = found(|request| request.source.subfolder = folder.to_owned());
        assert!(!reasons(&findings, "spec.source.sourceSubfolder").is_empty(), "{folder:?}");
    }
    for folder in ["", ".", "a", "a/b.c/d-e_f", "a..b", "ä/ö"] {
        assert_eq!(found(|request| request.source.subfolder = folder.to_owned()).faults, [], "{folder:?}");
    }
}

#[test]
fn case_b22_revisions_are_names() {
    for revision in [
        "",
        "--upload-pack=x",
        "-x",
        "a..b",
        "a b",
        "a:b",
        "+a",
        "a^",
        "a~1",
        "HEAD@{1}",
        "$(id)",
        "a\nb",
        &"x".repeat(256),
    ] {
        let findings = found(|request| request.source.revision = revision.to_owned());
        assert!(!reasons(&findings, "spec.source.sourceRevision").is_empty(), "{revision:?}");
    }
    for revision in
        ["main", "v1.2.3", "feature/#123-x", "refs/heads/x", "0123456789012345678901234567890123456789", "a+b"]
    {
        assert_eq!(found(|request| request.source.revision = revision.to_owned()).faults, [], "{revision:?}");
    }
}

#[test]
fn case_b23_secrets_have_names() {
    for name in ["", "A", "a/b", "../x", &"a".repeat(254)] {
        let secret = SecretUse { secret: name.to_owned(), items: Vec::new(), as_parameter: true, optional: false };
        let findings = found(|request| {
            request.git_auth = Some(secret.clone());
            request.registry_auth = Some(secret);
        });
        assert_eq!(reasons(&findings, "spec.source.sourceCredentials.name").len(), 1, "{name:?}");
        assert_eq!(reasons(&findings, "spec.buildOutput.imageRepoCredentials.name").len(), 1, "{name:?}");
    }
}

/// The tag of a candidate is made of it before anybody has said that it is none.
#[test]
fn a_tag_of_other_letters_is_refused_in_gated_modes_too() {
    for gated in [false, true] {
        let findings = found(|request| {
            request.gated = gated;
            request.image.as_mut().unwrap().tag = "é".repeat(100);
        });
        assert_eq!(reasons(&findings, "spec.buildOutput.imageTag"), [Reason::FieldInvalid], "{findings:?}");
    }
}

#[test]
fn outputs() {
    let told = |registry: &str, image: &str, tag: &str| {
        let (registry, image, tag) = (registry.to_owned(), image.to_owned(), tag.to_owned());
        found(|request| request.image = Some(crate::pipelines::request::ImageParts { registry, image, tag }))
    };
    assert_eq!(told("ghcr.io/acme", "a/b", "v1").faults, []);
    let findings = told("", "", "");
    for path in ["spec.buildOutput.imageRegistry", "spec.buildOutput.image", "spec.buildOutput.imageTag"] {
        assert!(printed(&findings.faults).contains(&format!("{path} is required")), "{findings:?}");
    }
    for (registry, image, tag) in [
        ("acme", "a", "v"),
        ("https://ghcr.io", "a", "v"),
        ("ghcr.io/", "a", "v"),
        ("ghcr.io", "A", "v"),
        ("ghcr.io", "/a", "v"),
        ("ghcr.io", "a:b", "v"),
        ("ghcr.io", "a@sha256:0", "v"),
        ("ghcr.io", "../a", "v"),
        ("ghcr.io", "a", "-v"),
        ("ghcr.io", "a", "v v"),
        ("ghcr.io", "a", "$(x)"),
        ("ghcr.io@evil.io", "a", "v"),
        ("ghcr.io", &"a".repeat(300), "v"),
    ] {
        assert_eq!(told(registry, image, tag).faults.len(), 1, "{registry} {image:.20} {tag}");
    }
    let findings = told("ghcr.io", "a", "latest");
    assert_eq!(findings.notes[0].reason, Reason::MovingReference);
    assert!(found(|request| request.image = None).faults.is_empty());
    assert!(
        !found(|request| {
            request.image = None;
            request.gated = true
        })
        .faults
        .is_empty()
    );
}

#[test]
fn case_b24_and_the_shape_of_the_list() {
    let told = |names: &[&str]| found(|request| request.steps = names.iter().map(|name| entry(name, "one")).collect());
    assert_eq!(reasons(&told(&["Git_Clone"]), "spec.pipeline.steps[0].name"), [Reason::FieldInvalid]);
    assert_eq!(reasons(&told(&[&"a".repeat(64)]), "spec.pipeline.steps[0].name"), [Reason::FieldInvalid]);
    assert_eq!(reasons(&told(&["a", "a"]), "spec.pipeline.steps[1].name"), [Reason::DuplicateName]);
    assert_eq!(reasons(&told(&["", "a"]), "spec.pipeline.steps[0].name"), [Reason::FieldRequired]);
    assert_eq!(reasons(&told(&[]), "spec.pipeline.steps"), [Reason::FieldRequired]);
    let many: Vec<_> = (0..33).map(|index| format!("s{index}")).collect();
    assert_eq!(reasons(&told(&many.iter().map(String::as_str).collect::<Vec<_>>()), "spec.pipeline.steps").len(), 1);
    let findings = found(|request| request.steps[0].enabled = false);
    assert!(printed(&findings.faults).contains("no enabled step"));
    let findings = found(|request| request.steps[0].config_map = String::new());
    assert!(printed(&findings.faults).contains("spec.pipeline.steps[0].configMap is required"));
}

#[test]
fn case_b25_conditions_need_values() {
    let mut condition = crate::pipelines::fixtures::when("a", "b");
    condition.values.clear();
    condition.operator = "eq".to_owned();
    let findings = found(|request| request.steps[0].when = vec![condition]);
    assert_eq!(reasons(&findings, "spec.pipeline.steps[0].whenExpressions[0].values").len(), 1);
    assert_eq!(reasons(&findings, "spec.pipeline.steps[0].whenExpressions[0].operator").len(), 1);
    for (input, fits) in [
        ("$(params.image)", true),
        ("$(params.mine)", true),
        ("$(params.none)", false),
        ("$(params.pipeline-timeout)", false),
        ("$(workspaces.x.bound)", false),
    ] {
        let findings = found(|request| {
            request.parameters = parameters(&[("mine", "x"), ("pipeline-timeout", "5m")]);
            request.steps[0].when = vec![crate::pipelines::fixtures::when(input, "b")];
        });
        assert_eq!(findings.faults.is_empty(), fits, "{input}: {findings:?}");
    }
}

#[test]
fn case_b26_references_in_parameters_of_the_run() {
    for value in ["$(FOO)", "$(tasks.a.results.b)", "a$(", "$(params.image)"] {
        let findings = found(|request| request.parameters = parameters(&[("A", value)]));
        assert_eq!(reasons(&findings, "spec.pipeline.parameters[0].value"), [Reason::ReferenceInvalid], "{value}");
    }
}

#[test]
fn case_b27_and_b28_references_to_later_and_disabled_steps() {
    for (value, word) in [
        ("$(tasks.later.results.x)", "runs later"),
        ("$(tasks.off.results.x)", "disabled"),
        ("$(tasks.none.results.x)", "does not exist"),
        ("$(tasks.a.results.x)", "itself"),
    ] {
        let findings = found(|request| {
            let mut off = entry("off", "one");
            off.enabled = false;
            request.steps[0].parameters = parameters(&[("A", value)]);
            request.steps.insert(0, off);
            request.steps.push(entry("later", "one"));
        });
        assert_eq!(
            reasons(&findings, "spec.pipeline.steps[1].parameters[0].value"),
            [Reason::ReferenceInvalid],
            "{value}"
        );
        assert!(printed(&findings.faults).contains(word), "{findings:?}");
    }
}

#[test]
fn case_b29_names_of_builds() {
    for name in [&"a".repeat(49), "a.b", "A", "", "-a"] {
        assert_eq!(reasons(&found(|request| request.owner.name = name.to_owned()), "metadata.name").len(), 1, "{name}");
    }
    assert_eq!(found(|request| request.owner.name = "a".repeat(48)).faults, []);
}

#[test]
fn parameters_names_sizes_and_build_arguments() {
    let findings = found(|request| {
        request.parameters = parameters(&[("1a", ""), ("b", ""), ("b", ""), ("", ""), ("c", &"x".repeat(1 << 20))])
    });
    let paths: Vec<_> = findings.faults.iter().map(|fault| fault.path.as_str()).collect();
    let at = |index: usize, member: &str| format!("spec.pipeline.parameters[{index}].{member}");
    assert_eq!(paths, [at(0, "name"), at(2, "name"), at(3, "name"), at(4, "value")]);
    assert!(printed(&findings.faults).len() < 2000, "a value of 1 MiB is not repeated");
    let findings = found(|request| request.build_arguments = parameters(&[("A-B", "x"), ("C", "a\nb"), ("C", "$(x)")]));
    assert_eq!(findings.faults.len(), 4, "{findings:?}");
    assert!(findings.faults.iter().all(|fault| fault.path.starts_with("spec.buildArgs[")));
}

#[test]
fn labels_and_annotations_are_kubernetes_own() {
    let findings = found(|request| {
        request.labels.insert("a b".to_owned(), "x".to_owned());
        request.labels.insert("ok".to_owned(), "not ok".to_owned());
        request.annotations.insert("/x".to_owned(), "anything goes\n".to_owned());
        request.annotations.insert("big".to_owned(), "x".repeat(256 * 1024));
    });
    assert_eq!(findings.faults.len(), 4, "{findings:?}");
}

#[test]
fn required_parameters_of_templates_and_steps() {
    let template = serde_json::json!({"name": "t", "requiredParameters": ["image", "team"], "steps": [
        {"name": "a", "configMap": "one", "requiredParameters": ["own", "kept"], "defaultParameters": [{"name": "kept", "value": "x"}]},
        {"name": "off", "configMap": "one", "enabled": false, "requiredParameters": ["never"]},
    ], "globalParameters": [{"name": "g", "value": "x"}]});
    let spec = task_spec("params: [{name: own, default: ''}]");
    let steps = steps(&[("one", &spec)]);
    let mut build = from_template(request(Vec::new()), &template);
    build.image = None;
    build.parameters = parameters(&[("own", "")]);
    let findings = examined(&build, &steps);
    let told = printed(&findings.faults);
    for name in ["image is not provided", "team is not provided", "own is not provided, and step a needs it"] {
        assert!(told.contains(name), "{told}");
    }
    assert!(told.contains("spec.buildOutput leaves"), "{told}");
    assert_eq!(findings.faults.len(), 3, "{told}");
    build.parameters = parameters(&[("own", "x"), ("image", "r/x:1"), ("team", "t")]);
    assert_eq!(examined(&build, &steps).faults, []);
}

/// Who applies a build cannot correct what its template refers to: the remedy says where it stands.
#[test]
fn a_reference_of_the_template_is_the_templates_to_correct() {
    let template = serde_json::json!({"name": "t", "steps": [{"name": "off", "configMap": "one", "enabled": false},
        {"name": "a", "configMap": "one", "defaultParameters": [{"name": "A", "value": "$(tasks.off.results.r)"}]}]});
    let spec = task_spec("params: [{name: A}]");
    let findings = examined(&from_template(request(Vec::new()), &template), &steps(&[("one", &spec)]));
    assert!(printed(&findings.faults).contains("correct the template"), "{findings:?}");
}

#[test]
fn what_a_template_locks() {
    let template = serde_json::json!({"name": "t", "steps": [{"name": "a", "configMap": "one", "lockedParameters": ["FAIL_ON"],
        "defaultParameters": [{"name": "FAIL_ON", "value": "high"}]}]});
    let spec = task_spec("params: [{name: FAIL_ON}]");
    let steps = steps(&[("one", &spec)]);
    let mut build = from_template(request(Vec::new()), &template);
    build.parameters = parameters(&[("FAIL_ON", "never")]);
    let findings = examined(&build, &steps);
    assert_eq!(reasons(&findings, "spec.pipeline.parameters[0].name"), [Reason::ParameterLocked]);
    assert!(printed(&findings.faults).contains("locked parameter"));
}

/// Build arguments are a way to set that parameter, too.
#[test]
fn a_lock_on_the_list_of_build_arguments_holds_for_the_field_that_fills_it() {
    let found = |locked: &[&str], arguments: &[(&str, &str)]| {
        let template = serde_json::json!({"name": "t", "steps": [
            {"name": "a", "configMap": "one", "lockedParameters": locked},
            {"name": "off", "configMap": "one", "enabled": false, "lockedParameters": ["BUILD_ARGS"]},
        ]});
        let spec = task_spec("params: [{name: BUILD_ARGS, type: array, default: []}]");
        let mut build = from_template(request(Vec::new()), &template);
        build.build_arguments = parameters(arguments);
        examined(&build, &steps(&[("one", &spec)]))
    };
    let findings = found(&["BUILD_ARGS"], &[("PY", "3.13")]);
    assert_eq!(reasons(&findings, "spec.buildArgs"), [Reason::ParameterLocked], "{findings:?}");
    assert!(printed(&findings.faults).contains("step a of the template"), "{findings:?}");
    let one = [("PY", "3.13")];
    for (locked, arguments) in [(&["BUILD_ARGS"][..], &one[..0]), (&["OTHER"], &one[..]), (&[], &one[..])] {
        assert_eq!(found(locked, arguments).faults, [], "{locked:?}");
    }
    // Steps of the user's own know no locks.
    let own = self::found(|request| request.build_arguments = parameters(&one));
    assert_eq!(own.faults, []);
}

#[test]
fn derived_values_may_be_replaced_but_not_unnoticed() {
    let findings = found(|request| request.parameters = parameters(&[("image", "other.io/x:1")]));
    assert_eq!(findings.notes.iter().filter(|note| note.reason == Reason::DerivedOverridden).count(), 1);
}

#[test]
fn mend_12_an_output_with_capitals_says_so() {
    let told = |edit: fn(&mut BuildRequest)| printed(&found(edit).faults);
    for edit in [
        (|request| request.image.as_mut().unwrap().registry = "ghcr.io/Acme".to_owned()) as fn(&mut BuildRequest),
        |request| request.image.as_mut().unwrap().image = "Weather-Service".to_owned(),
        |request| request.parameters = parameters(&[("image", "ghcr.io/Acme/weather:v1")]),
    ] {
        let text = told(edit);
        assert!(text.contains("has capital letters, which the name of an image cannot have"), "{text}");
    }
    let text = told(|request| request.image.as_mut().unwrap().image = "Weather Service".to_owned());
    assert!(text.contains("is not an image's path") && !text.contains("capital"), "{text}");
    assert_eq!(told(|request| request.image.as_mut().unwrap().tag = "V1-RC".to_owned()), "");
}
