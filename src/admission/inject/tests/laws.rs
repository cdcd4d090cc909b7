//! Laws for any Pod and any configuration: the patch applies, a second call is silent, uninject gives the Pod back.

use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::{select, subsequence};

use super::*;
use crate::config::resolved::{NativeSidecars, SpireSwitch};
use crate::config::view::PodSecurity;
use crate::domain::keys;

fn port() -> impl Strategy<Value = Value> {
    (
        prop_oneof![Just(8000_u32), Just(8080), Just(8081), Just(9089), Just(65535), Just(15124), 1_u32..70_000],
        select(vec![Value::Null, json!("http"), json!("forward-proxy"), json!("a/b~c")]),
        select(vec![Value::Null, json!("TCP"), json!("UDP")]),
    )
        .prop_map(|(number, name, protocol)| json!({"containerPort": number, "name": name, "protocol": protocol, "x-future": {"a": [1, null]}}))
}

fn variable() -> impl Strategy<Value = Value> {
    let name = select(vec!["PORT", "HTTP_PROXY", "no_proxy", "OTEL_TRACES_SAMPLER", "A", "ISSUER"]);
    (name, select(vec![json!("8000"), json!("x"), Value::Null]))
        .prop_map(|(name, value)| json!({"name": name, "value": value, "x-future": 1.5}))
}

fn optional(list: impl Strategy<Value = Vec<Value>>) -> impl Strategy<Value = Option<Value>> {
    prop_oneof![1 => Just(None), 1 => Just(Some(Value::Null)), 1 => Just(Some(json!([]))), 5 => list.prop_map(|list| Some(Value::Array(list)))]
}

fn container(name: String) -> impl Strategy<Value = Value> {
    let mounts = vec(
        select(vec![
            json!({"name": "shared-data", "mountPath": "/creds"}),
            json!({"name": "own", "mountPath": "/shared/client-id.txt"}),
        ]),
        0..2,
    );
    let probe = select(vec![
        Value::Null,
        json!({"httpGet": {"port": 8000}}),
        json!({"tcpSocket": {"port": "http"}}),
        json!("odd"),
    ]);
    let user = select(vec![Value::Null, json!({"runAsUser": 1000}), json!({"runAsUser": 1337})]);
    (optional(vec(port(), 0..3)), optional(vec(variable(), 0..4)), optional(mounts), probe, user).prop_map(
        move |(ports, env, mounts, probe, user)| {
            let mut container = json!({"name": name, "image": "i", "x/f~1": {"deep": [{}]}, "livenessProbe": probe, "securityContext": user});
            for (key, value) in [("ports", ports), ("env", env), ("volumeMounts", mounts)] {
                if let Some(value) = value {
                    container[key] = value;
                }
            }
            container
        },
    )
}

fn containers(prefix: &'static str) -> impl Strategy<Value = Vec<Value>> {
    (0_usize..4).prop_flat_map(move |count| (0..count).map(|i| container(format!("{prefix}{i}"))).collect::<Vec<_>>())
}

fn annotations() -> impl Strategy<Value = Option<Value>> {
    let pairs = vec![
        (keys::ANNOTATION_MODE, "proxy-sidecar"),
        (keys::ANNOTATION_MODE, "waypoint"),
        (keys::ANNOTATION_NATIVE_SIDECARS, "auto"),
        (keys::ANNOTATION_OUTBOUND_EXCLUDE, "1,x,99999, 22"),
        (keys::ANNOTATION_CREDENTIALS, "secret"),
        (keys::ANNOTATION_CONFIG_HASH, "template"),
        (keys::ANNOTATION_SIGN, "true"),
        (keys::ANNOTATION_SIGN, keys::SIGN_SIDECAR),
        (keys::ANNOTATION_MOUNT_SIGNED, "true"),
        ("a/b~1", "c"),
    ];
    let some = subsequence(pairs, 0..5).prop_map(|pairs| {
        Some(Value::Object(pairs.into_iter().map(|(key, value)| (key.to_owned(), json!(value))).collect()))
    });
    prop_oneof![1 => Just(None), 1 => Just(Some(Value::Null)), 6 => some]
}

fn labels() -> impl Strategy<Value = Value> {
    let pairs = vec![
        (keys::LABEL_INJECT, "disabled"),
        (keys::LABEL_ENVOY_PROXY, "false"),
        (keys::LABEL_SPIFFE_HELPER, "false"),
        (keys::LABEL_CLIENT_REGISTRATION, "true"),
        (keys::LABEL_CLIENT_REGISTRATION, "odd"),
    ];
    (subsequence(pairs, 0..3), select(vec!["agent", "agent", "agent", "tool", "other"])).prop_map(|(pairs, kind)| {
        let mut labels = json!({keys::LABEL_TYPE: kind, keys::LABEL_POD_TEMPLATE_HASH: "7d4f8b9c5"});
        pairs.into_iter().for_each(|(key, value)| labels[key] = json!(value));
        labels
    })
}

fn volumes() -> impl Strategy<Value = Option<Value>> {
    let some = vec![
        json!({"name": "own", "emptyDir": {}}),
        json!({"name": "shared-data", "emptyDir": {"medium": "Memory"}}),
        json!({"name": "svid-output", "hostPath": {"path": "/x"}}),
        json!({"name": "kube-api-access-x", "projected": {"x-future": [1]}}),
    ];
    optional(subsequence(some, 0..4))
}

prop_compose! {
    fn pod()(
        regular in containers("c"),
        init in optional(containers("i")),
        volumes in volumes(),
        annotations in annotations(),
        labels in labels(),
        account in select(vec![Value::Null, json!(""), json!("default"), json!("own")]),
        context in select(vec![Value::Null, json!({}), json!({"fsGroup": 5}), json!({"runAsUser": 1337})]),
        gates in select(vec![Value::Null, json!([{"name": "x"}])]),
        collision in prop::bool::weighted(0.05),
    ) -> Value {
        let mut pod = fixtures::pod();
        pod["metadata"]["labels"] = labels;
        pod["spec"] = json!({"containers": regular, "x-future": {"a/b~": [null]}, "schedulingGates": gates,
            "serviceAccountName": account, "securityContext": context});
        if let Some(annotations) = annotations { pod["metadata"]["annotations"] = annotations; }
        if let Some(init) = init { pod["spec"]["initContainers"] = init; }
        if let Some(volumes) = volumes { pod["spec"]["volumes"] = volumes; }
        if collision { pod["spec"]["containers"].as_array_mut().unwrap().push(json!({"name": "envoy-proxy"})); }
        pod
    }
}

prop_compose! {
    fn snapshot()(
        gates in any::<[bool; 4]>(),
        rare in (prop::bool::weighted(0.1), prop::bool::weighted(0.1), prop::bool::weighted(0.1)),
        native in any::<bool>(),
        spire in select(vec![SpireSwitch::Auto, SpireSwitch::Required, SpireSwitch::Disabled]),
        driver in any::<bool>(),
        traced in any::<bool>(),
        known in any::<bool>(),
    ) -> Snapshot {
        let mut snapshot = fixtures::snapshot_with(|resolved| {
            resolved.native_sidecars.value = if native { NativeSidecars::Auto } else { NativeSidecars::Disabled };
            resolved.spire.value = spire;
            resolved.trace.sampling_ratio.value = traced.then_some(0.5);
            if rare.0 { resolved.images.envoy_proxy.value = None; }
        }, |view| {
            if rare.1 { view.pod_security = PodSecurity::Restricted; }
            if !known { view.authbridge_config = None; }
        });
        snapshot.view.spiffe_driver = driver;
        let out = &mut snapshot.gates;
        [out.inject_tools, out.per_workload_config_resolution, out.combined_sidecar, out.client_registration] = gates;
        out.envoy_proxy = !rare.2;
        snapshot
    }
}

/// Absent, null and empty mean the same to the API server.
fn canonical(value: &Value) -> Value {
    match value {
        Value::Object(members) => Value::Object(
            members
                .iter()
                .map(|(key, value)| (key.clone(), canonical(value)))
                .filter(|(_, value)| !matches!(value, Value::Null) && *value != json!([]) && *value != json!({}))
                .collect(),
        ),
        Value::Array(items) => items.iter().map(canonical).collect(),
        other => other.clone(),
    }
}

fn anything() -> impl Strategy<Value = Value> {
    let keys = select(vec![
        "metadata",
        "spec",
        "labels",
        "annotations",
        "containers",
        "initContainers",
        "env",
        "ports",
        "volumeMounts",
        "name",
        "kagenti.io/type",
        "kagenti.io/authbridge-status",
        "kagenti.io/authbridge-mode",
        "template",
        "jobTemplate",
        "ownerReferences",
        "containerPort",
        "securityContext",
        "managedFields",
        "schedulingGates",
    ]);
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<i64>().prop_map(|number| json!(number)),
        select(vec!["agent", "envoy-proxy", "proxy-sidecar", "", "{}", "drawbridge/injection"])
            .prop_map(|text| json!(text)),
        Just(json!(8000)),
        Just(json!(true)),
    ];
    leaf.prop_recursive(6, 64, 6, move |inner| {
        prop_oneof![
            vec(inner.clone(), 0..4).prop_map(Value::Array),
            vec((keys.clone(), inner), 0..6).prop_map(|pairs| Value::Object(
                pairs.into_iter().map(|(key, value)| (key.to_owned(), value)).collect()
            )),
        ]
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 256, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn the_patch_applies_and_a_second_call_is_silent(pod in pod(), snapshot in snapshot()) {
        let first = fixtures::review_pod(&pod, &snapshot);
        let again = fixtures::review_pod(&pod, &snapshot);
        prop_assert_eq!(serde_json::to_string(&first.operations()).unwrap(), serde_json::to_string(&again.operations()).unwrap());
        prop_assert_eq!(&fixtures::review_sent(&pod, &snapshot), &first, "what is passed over decides nothing");
        if let Outcome::Deny(denial) = &first.outcome {
            prop_assert!(denial.to_string().contains("What to do"));
            return Ok(());
        }
        let seen = fixtures::applied(&pod, &first);
        let second = fixtures::review_pod(&seen, &snapshot);
        prop_assert_eq!(second.operations(), Vec::new(), "after {:?}", first.reason);
        prop_assert_eq!(&fixtures::review_sent(&seen, &snapshot), &second, "what is passed over decides nothing");
        if first.reason == Reason::Injected {
            prop_assert_eq!(second.reason, Reason::AlreadyInjected);
            let mut back = seen.clone();
            json_patch::patch(&mut back, &uninject(&seen)).unwrap();
            prop_assert_eq!(canonical(&back), canonical(&pod));
        }
    }

    #[test]
    fn whoever_was_here_in_between_the_second_call_settles(
        pod in pod(), snapshot in snapshot(), later in snapshot(), drop in any::<[u8; 3]>(), shuffle in any::<bool>(),
    ) {
        let first = fixtures::review_pod(&pod, &snapshot);
        if !first.allowed() { return Ok(()); }
        let mut seen = fixtures::applied(&pod, &first);
        for (list, which) in ["containers", "initContainers", "volumes"].into_iter().zip(drop) {
            if let Some(items) = seen["spec"][list].as_array_mut() {
                let ours = items.iter().position(|item| {
                    let name = text(item, "name");
                    keys::may_be_ours(name) || keys::OUR_VOLUMES.contains(&name)
                });
                if let Some(index) = ours.filter(|_| which % 2 == 0) { items.remove(index); }
                if shuffle { items.reverse(); }
                items.push(json!({"name": format!("late-{list}"), "emptyDir": {}}));
            }
        }
        let second = fixtures::review_pod(&seen, &later);
        if !second.allowed() { return Ok(()); }
        prop_assert_eq!(&fixtures::review_sent(&seen, &later), &second, "what is passed over decides nothing");
        let settled = fixtures::applied(&seen, &second);
        let third = fixtures::review_pod(&settled, &later);
        prop_assert_eq!(third.operations(), Vec::new());
        for list in ["containers", "initContainers", "volumes"] {
            let mut all = names(&settled["spec"][list]);
            all.retain(|name| keys::may_be_ours(name) || keys::OUR_VOLUMES.contains(name));
            let count = all.len();
            all.sort_unstable();
            all.dedup();
            prop_assert_eq!(all.len(), count, "once each in {}", list);
        }
    }

    #[test]
    fn any_json_gets_an_answer_that_applies(body in anything(), snapshot in snapshot()) {
        for (phase, operation, kind) in [
            (crate::api::review::Phase::Mutate, crate::api::review::Operation::Create, ("", "Pod")),
            (crate::api::review::Phase::Validate, crate::api::review::Operation::Update, ("apps", "Deployment")),
            (crate::api::review::Phase::Validate, crate::api::review::Operation::Create, ("batch", "CronJob")),
        ] {
            let verdict = fixtures::review(phase, operation, kind, &body, &snapshot);
            let _ = fixtures::applied(&body, &verdict);
        }
        let mut body = body;
        let operations = uninject(&body);
        json_patch::patch(&mut body, &operations).unwrap();
    }
}
