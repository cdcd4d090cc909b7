//! Bad TaskSpecs, each with its fault.

use super::{Kind, parse};
use crate::api::findings::{KEPT, count, printed};

fn faults(text: &str) -> String {
    parse("ns/x", text, false).err().map(|faults| printed(&faults)).unwrap_or_default()
}

#[test]
fn what_is_refused_and_how_it_is_named() {
    let over = |count: usize| {
        let steps: Vec<_> = (0..count).map(|index| format!("{{name: s{index}, image: i}}")).collect();
        format!("steps: [{}]", steps.join(", "))
    };
    for (text, path) in [
        ("steps: [", "task-spec.yaml"),
        ("- a", "task-spec.yaml"),
        ("", "task-spec.yaml"),
        ("params: []", "task-spec.yaml has no steps"),
        ("steps: {}", "steps is not a list"),
        ("steps: [x]", "steps[0] is not a mapping"),
        ("apiVersion: tekton.dev/v1\nkind: Task\nspec: {}\nsteps: [{image: i}]", "apiVersion"),
        ("resources: {}\nsteps: [{image: i}]", "resources is not a field"),
        ("steps: [{image: i, resources: {}}]", "steps[0].resources"),
        ("stepTemplate: {resources: {}}\nsteps: [{image: i}]", "stepTemplate.resources"),
        ("steps: [{image: i}]\nsidecars: [{image: i, resources: {}}]", "sidecars[0].resources"),
        ("steps: [{image: i, tty: true}]", "steps[0].tty"),
        ("steps: [{image: i, Script: x}]", "steps[0].Script is spelled in another case"),
        ("Steps: [{image: i}]", "write steps"),
        ("steps: [{name: a}]", "steps[0].image is required"),
        ("steps: [{image: i, script: x, command: [y]}]", "steps[0].script stands together with command"),
        ("steps: [{name: A b, image: i}]", "steps[0].name"),
        ("steps: [{name: a, image: i}, {name: a, image: i}]", "steps[1].name occurs twice"),
        ("steps: [{ref: {name: x}}]", "steps[0].ref"),
        (&over(1000), "steps has 1000 entries"),
        ("params: [{name: 1a}]\nsteps: [{image: i}]", "params[0].name"),
        ("params: [{name: a}, {name: a}]\nsteps: [{image: i}]", "params[1].name occurs twice"),
        ("params: [{name: a, type: 5}]\nsteps: [{image: i}]", "params[0].type must be a string"),
        ("params: [{name: a, type: number}]\nsteps: [{image: i}]", "params[0].type"),
        ("params: [{name: a, type: array, default: x}]\nsteps: [{image: i}]", "params[0].default is not of type array"),
        ("params: [{name: a, default: [[x]]}]\nsteps: [{image: i}]", "params[0].default[0] is a list"),
        ("params: [{name: a.b, type: object, properties: {k: {type: string}}}]\nsteps: [{image: i}]", "has a dot"),
        ("results: [{name: -a}]\nsteps: [{image: i}]", "results[0].name"),
        ("results: [{name: a}, {name: a}]\nsteps: [{image: i}]", "results[1].name occurs twice"),
        ("workspaces: [{name: foo}]\nsteps: [{image: i}]", "workspaces[0].name needs a workspace"),
        ("workspaces: [{name: source}, {name: source}]\nsteps: [{image: i}]", "workspaces[1].name occurs twice"),
        (
            "volumes: [{name: v, hostPath: {path: /}}]\nsteps: [{image: i}]",
            "volumes[0].hostPath mounts files of the node",
        ),
        (
            "volumes: [{name: v, emptyDir: {}}, {name: v, emptyDir: {}}]\nsteps: [{image: i}]",
            "volumes[1].name occurs twice",
        ),
        (
            "volumes: [{name: tekton-internal-x, emptyDir: {}}]\nsteps: [{image: i}]",
            "volumes[0].name begins like the names of Tekton's",
        ),
        (&mount("/workspace/source/"), "steps[0].volumeMounts[0].mountPath is a path at which a workspace is mounted"),
        (
            &mount("/workspace/x/../source"),
            "steps[0].volumeMounts[0].mountPath is a path at which a workspace is mounted",
        ),
        (&mount("/x/../tekton/bin"), "lies in Tekton's own folder"),
        (&mount("/tekton/bin"), "lies in Tekton's own folder"),
        (&mount("/tekton"), "lies in Tekton's own folder"),
        (&mount(""), "mountPath is required"),
        ("steps: [{image: i, volumeMounts: [{name: gone, mountPath: /x}]}]", "is not a volume of the TaskSpec"),
        (
            "workspaces: [{name: artifacts, mountPath: /out}]\nvolumes: [{name: v, emptyDir: {}}]\nsteps: [{image: i, volumeMounts: [{name: v, mountPath: /out/}]}]",
            "is a path at which a workspace is mounted",
        ),
        (
            "volumes: [{name: v, emptyDir: {}}]\nsteps: [{image: i, volumeMounts: [{name: v, mountPath: /a}, {name: v, mountPath: /a/}]}]",
            "is mounted twice",
        ),
        ("params: [{name: l, type: array}]\nsteps: [{image: i, script: 'echo $(params.l[*])'}]", "takes parameter l"),
        ("params: [{name: l, type: array}]\nsteps: [{image: i, args: ['x$(params.l[*])']}]", "takes parameter l"),
        ("params: [{name: t}]\nsteps: [{image: i, args: ['$(params.t[*])']}]", "takes parameter t"),
        ("steps: [{image: i, script: 'echo > $(results.r.path)'}]", "names result r"),
        ("steps: [{image: i, workingDir: $(workspaces.source.path)}]", "names workspace source"),
        (
            "volumes: [{name: v, secret: {secretName: s, defaultMode: 0400}}]\nsteps: [{image: i}]",
            "volumes[0].secret.defaultMode",
        ),
        ("steps: [{image: i}]\nsidecars: [{name: s}]", "sidecars[0].image is required"),
    ] {
        let told = faults(text);
        assert!(told.contains(path) && told.contains("ConfigMap ns/x: "), "{text:.120} gave {told:?}, not {path}");
    }
}

/// Tekton's admission reads a field that is spelled in another case as the one that it resembles, and stores it so.
#[test]
fn what_resembles_a_field_is_named_wherever_it_gives_more() {
    for (text, path) in [
        (
            "volumes: [{name: v, HostPath: {path: /}}]\nsteps: [{image: i}]",
            "volumes[0].HostPath is spelled in another case",
        ),
        ("volumes: [{name: v, ho\u{17f}tPath: {path: /}}]\nsteps: [{image: i}]", "write hostPath"),
        (
            "steps: [{image: i, securityContext: {Privileged: true}}]",
            "securityContext.Privileged is spelled in another",
        ),
        ("stepTemplate: {securityContext: {PRIVILEGED: true}}\nsteps: [{image: i}]", "write privileged"),
        ("steps: [{image: i}]\nsidecars: [{image: i, \u{17f}ecurityContext: {}}]", "write securityContext"),
    ] {
        let told = faults(text);
        assert!(told.contains(path), "{text:.120} gave {told:?}, not {path}");
    }
}

/// Tekton admits sidecars of any name; a Pod has containers with names, and each once.
#[test]
fn sidecars_become_containers_of_one_pod() {
    let with = |names: &[&str]| {
        let sidecars: Vec<_> = names.iter().map(|name| format!("{{name: '{name}', image: i}}")).collect();
        faults(&format!("steps: [{{image: i}}]\nsidecars: [{}]", sidecars.join(", ")))
    };
    // Of what ends in a dash Tekton makes a name that does not, and of no name one as well.
    let long = "a".repeat(63);
    for names in [&["a", "b"][..], &["a", "b-", ""], &["$(params.x)", "$(params.x)"], &[&*long]] {
        assert_eq!(with(names), "", "{names:?}");
    }
    for (names, told) in [
        (&["A b"][..], "sidecars[0].name is not a DNS label"),
        (&["a", "a.b"], "sidecars[1].name is not a DNS label"),
        (&["a", "a"], "sidecars[1].name gives its container the name of another sidecar's"),
        (&["", ""], "sidecars[1].name gives its container the name of another sidecar's"),
        (&["a", "a-"], "sidecars[1].name gives its container the name of another sidecar's"),
        (&["tekton-log-results"], "sidecars[0].name is reserved by Tekton"),
    ] {
        let all = with(names);
        assert!(all.contains(told) && all.lines().count() == 1, "{names:?}: {all}");
    }
}

/// What real Tekton refused of generated steps that had passed all other checks.
#[test]
fn what_tekton_refuses_is_refused_here() {
    for (text, path) in [
        ("steps: [{image: i, env: {A: b}}]", "steps[0].env has a wrong type"),
        ("steps: [{image: i, args: x}]", "steps[0].args has a wrong type"),
        ("steps: [{image: i, workingDir: [x]}]", "steps[0].workingDir has a wrong type"),
        ("steps: [{image: i, script: 5}]", "steps[0].script must be a string"),
        ("steps: [{image: i, securityContext: {runAsUser: '1'}}]", "steps[0].securityContext has a wrong type"),
        ("steps: [{image: i, timeout: soon}]", "steps[0].timeout is not a length of time"),
        ("steps: [{image: i, timeout: -1s}]", "steps[0].timeout is not a length of time"),
        ("steps: [{image: i, computeResources: {limits: {cpu: much}}}]", "limits.cpu is not a quantity"),
        ("volumes: [{name: v, emptyDir: {sizeLimit: much}}]\nsteps: [{image: i}]", "sizeLimit is not a quantity"),
        ("volumes: [{name: v, emptyDir: x}]\nsteps: [{image: i}]", "volumes[0] is not a volume"),
        ("steps: [{image: i, onError: ignore}]", "steps[0].onError is neither"),
        ("steps: [{image: i, stdoutConfig: {path: x}}]", "steps[0].stdoutConfig needs a feature"),
        ("steps: [{image: i, params: [{name: x, value: y}]}]", "steps[0].params are for step actions"),
        ("steps: [{image: i, workspaces: [{name: gone}]}]", "steps[0].workspaces names a workspace"),
        ("steps: [{image: i, when: [{input: a, operator: eq, values: [b]}]}]", "when[0].operator is neither"),
        ("steps: [{image: i, when: [{input: a, operator: in, values: []}]}]", "when[0].values is empty"),
        ("steps: [{image: i, results: [{name: a b}]}]", "steps[0].results[0].name is not a result's name"),
        ("steps: [{image: i, script: 'x $(steps.a.results.b)'}]", "reads a step's result where Tekton allows none"),
        ("steps: [{image: i, script: 'x $(steps.a.outputs.b)'}]", "uses artifacts"),
        ("steps: [{image: i, script: 'x $(context.taskRun.x)'}]", "Tekton's context does not have"),
        ("steps: [{image: i, script: 'x $(tasks.a.results.b)'}]", "which only parameters may"),
        ("steps: [{image: i, script: 'x $(tasks.a.status)'}]", "which only parameters may"),
        ("steps: [{image: i, script: 'x $(params.a.b.c.d)'}]", "names no parameter"),
        ("steps: [{image: i, script: '#!win'}]", "is for Windows"),
        ("results: [{name: a.b}]\nsteps: [{image: i, script: 'x $(results.a.b.path)'}]", "a result with a dot"),
        ("stepTemplate: {command: [x]}\nsteps: [{image: i, script: y}]", "command of the stepTemplate"),
        ("stepTemplate: {env: [{name: A}, {name: A}]}\nsteps: [{image: i}]", "stepTemplate.env[1].name occurs twice"),
        ("params: [{name: a, enum: [x]}]\nsteps: [{image: i}]", "params[0].enum needs a feature"),
        ("params: [{name: a, default: {k: v}}]\nsteps: [{image: i}]", "params[0].properties is required"),
        (
            "params: [{name: a, properties: {k: {type: array}}}]\nsteps: [{image: i}]",
            "properties.k.type must be string",
        ),
        (
            "params: [{name: a, properties: {k: {}}}]\nsteps: [{image: i, script: 'x $(params.a.j)'}]",
            "names no member of parameter a",
        ),
        ("results: [{name: a, type: object}]\nsteps: [{image: i}]", "results[0].properties is required"),
        ("results: [{name: a, value: x}]\nsteps: [{image: i}]", "results[0].value is not the result of a step"),
        (
            "workspaces: [{name: source}, {name: artifacts, mountPath: /workspace/source}]\nsteps: [{image: i}]",
            "workspaces[1].mountPath is a path at which another workspace is mounted",
        ),
    ] {
        let told = faults(text);
        assert!(told.contains(path) && told.contains("ConfigMap ns/x: "), "{text:.120} gave {told:?}, not {path}");
    }
}

fn mount(path: &str) -> String {
    format!(
        "volumes: [{{name: v, emptyDir: {{}}}}]\nsteps: [{{image: i, volumeMounts: [{{name: v, mountPath: '{path}'}}]}}]"
    )
}

#[test]
fn what_is_accepted() {
    for text in [
        "steps: [{image: i}]",
        "stepTemplate: {image: i}\nsteps: [{script: x}]",
        "steps: [{image: i, script: 'x=$(date); echo $(cat /etc/hostname)'}]",
        "params: [{name: l, type: array, default: [a, 1]}]\nsteps: [{image: i, args: [a, '$(params.l[*])', '$(params.l[0])']}]",
        "results: [{name: r.x}]\nsteps: [{image: i, script: \"echo > $(results['r.x'].path)\"}]",
        "workspaces: [{name: registry-auth, optional: true}]\nsteps: [{image: i, env: [{name: A, value: $(workspaces.registry-auth.bound)}]}]",
        "volumes: [{name: v, emptyDir: {}}]\nsteps: [{image: i, volumeMounts: [{name: v, mountPath: /tekton/home/x}]}]",
        "volumes: [{name: v, secret: {secretName: $(params.registry-secret)}}]\nparams: [{name: registry-secret, default: x}]\nsteps: [{image: i, volumeMounts: [{name: v, mountPath: /v}]}]",
        "workspaces: []\nsteps: [{image: i}]",
        "steps: [{image: i, timeout: 90s, onError: continue, computeResources: {limits: {cpu: 1, memory: 1Gi}}}]",
        "results: [{name: r, value: $(steps.a.results.b)}]\nsteps: [{name: a, image: i, results: [{name: b}]}]",
        "params: [{name: a, properties: {k: {}}}]\nsteps: [{image: i, env: [{name: A, value: $(params.a.k)}, {name: A, value: b}]}]",
        "workspaces: [{name: source}]\nsteps: [{image: i, workspaces: [{name: source, mountPath: /w}]}]",
    ] {
        assert_eq!(faults(text), "", "{text}");
    }
}

#[test]
fn everything_wrong_is_told_at_once() {
    let told = faults("params: [{name: 1a}]\nworkspaces: [{name: foo}]\nsteps: [{name: A, resources: {}}]");
    assert_eq!(told.lines().count(), 5, "{told}");
    assert_eq!(faults("steps: [{image: i}]\nparams: {}").lines().count(), 1, "once each");
}

/// What is wrong in thousands of places costs no more to tell than what is wrong in a hundred.
#[test]
fn of_thousands_of_faults_the_first_are_kept_and_the_others_counted() {
    let script: String = (0..5_000).map(|number| format!("$(tasks.t{number}) ")).collect();
    let faults = parse("ns/x", &format!("steps: [{{image: i, script: '{script}'}}]"), false).unwrap_err();
    assert_eq!((faults.len(), count(&faults)), (KEPT + 1, 5_000));
    assert!(faults[0].to_string().starts_with("ConfigMap ns/x: steps[0].script reads another task"), "{}", faults[0]);
    assert!(faults[KEPT].to_string().starts_with("ConfigMap ns/x has 4872 more faults than"), "{}", faults[KEPT]);
}

#[test]
fn what_composition_reads() {
    let step = parse(
        "ns/x",
        "params: [{name: a, default: [x]}, {name: b}]\nresults: [{name: IMAGE_URL}]\nsteps: [{image: i, args: [$(params.c), $(params.b)]}]",
        false,
    )
    .unwrap();
    assert_eq!(step.param("a").map(|param| param.kind), Some(Kind::List));
    assert!(step.param("b").is_some_and(|param| param.default.is_none()));
    assert_eq!(step.propagated.iter().collect::<Vec<_>>(), [(&"c".to_owned(), &"steps[0].args[0]".to_owned())]);
}

#[test]
fn large_texts_are_refused_and_not_feared() {
    let told = faults(&format!("description: {}\nsteps: [{{image: i}}]", "x".repeat(1 << 20)));
    assert!(told.contains("more than the 1048576 that are read"), "{told:.200}");
    let told = faults(&"[".repeat(100_000));
    assert!(told.contains("nested deeper") || told.contains("recursion limit"), "{told:.200}");
}
