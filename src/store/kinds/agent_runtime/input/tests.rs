use serde_json::json;

use super::*;

fn target(kind: &str, api_version: &str, name: &str) -> Value {
    json!({"apiVersion": api_version, "kind": kind, "name": name})
}

fn spec() -> Value {
    json!({
        "type": "agent",
        "targetRef": target("Deployment", "apps/v1", "weather"),
        "identity": {"spiffe": {"trustDomain": "Custom.example.com"}},
        "trace": {"endpoint": "http://otel:4317", "protocol": "http", "sampling": {"rate": 0.25}},
        "authBridgeMode": "proxy-sidecar"
    })
}

fn with(path: &str, value: Value) -> Value {
    let mut spec = spec();
    *spec.pointer_mut(path).unwrap() = value;
    spec
}

#[test]
fn every_field_is_read() {
    let read = AgentRuntimeInput::of_spec(&spec());
    assert_eq!(read.faults, []);
    assert_eq!(read.target, Some(Target { kind: WorkloadKind::Deployment, name: "weather".into() }));
    assert_eq!(read.agent_type, Some(AgentType::Agent));
    assert_eq!(read.trust_domain.as_deref(), Some("custom.example.com"));
    let trace =
        TraceInput { endpoint: Some("http://otel:4317".into()), protocol: Some(TraceProtocol::Http), rate: Some(0.25) };
    assert_eq!(read.trace, trace);
    assert_eq!(read.mode, Some(ModeInput::Available(Mode::ProxySidecar)));
}

#[test]
fn a_field_that_is_wrong_hides_no_other() {
    let whole = AgentRuntimeInput::of_spec(&spec());
    let cases = [
        ("/type", json!("service"), "spec.type", Reason::InvalidSpec),
        ("/targetRef/name", json!(""), "spec.targetRef.name", Reason::InvalidSpec),
        ("/targetRef/kind", json!("Job"), "spec.targetRef.kind", Reason::UnsupportedTarget),
        ("/targetRef/apiVersion", json!("extensions/v1beta1"), "spec.targetRef.kind", Reason::UnsupportedTarget),
        ("/identity/spiffe/trustDomain", json!("-bad-"), "spec.identity.spiffe.trustDomain", Reason::InvalidSpec),
        ("/trace/endpoint", json!(["a"]), "spec.trace.endpoint", Reason::InvalidSpec),
        ("/trace/endpoint", json!("a\nb"), "spec.trace.endpoint", Reason::InvalidSpec),
        ("/trace/endpoint", json!("otel-collector"), "spec.trace.endpoint", Reason::InvalidSpec),
        ("/trace/endpoint", json!("grpc://otel:4317"), "spec.trace.endpoint", Reason::InvalidSpec),
        ("/trace/protocol", json!("udp"), "spec.trace.protocol", Reason::InvalidSpec),
        ("/trace/sampling/rate", json!(1.5), "spec.trace.sampling.rate", Reason::InvalidSpec),
        ("/trace/sampling", json!({}), "spec.trace.sampling.rate", Reason::InvalidSpec),
        ("/authBridgeMode", json!("lite"), "spec.authBridgeMode", Reason::ModeNotAvailable),
    ];
    for (path, value, field, reason) in cases {
        let read = AgentRuntimeInput::of_spec(&with(path, value.clone()));
        let found: Vec<_> = read.faults.iter().map(|fault| (fault.field, fault.reason)).collect();
        assert_eq!(found, [(field, reason)], "{path} {value}");
        let rest = AgentRuntimeInput { faults: Vec::new(), ..read };
        let differing = [
            rest.agent_type != whole.agent_type,
            rest.target != whole.target,
            rest.trust_domain != whole.trust_domain,
            rest.trace.endpoint != whole.trace.endpoint,
            rest.trace.protocol != whole.trace.protocol,
            rest.trace.rate != whole.trace.rate,
            rest.mode != whole.mode,
        ];
        assert_eq!(differing.iter().filter(|differs| **differs).count(), 1, "{path} {value}: {rest:?}");
    }
}

#[test]
fn rate_zero_is_a_value_and_empty_texts_are_none() {
    let read = AgentRuntimeInput::of_spec(&with("/trace", json!({"endpoint": "", "sampling": {"rate": 0}})));
    assert_eq!(read.faults, []);
    assert_eq!(read.trace, TraceInput { rate: Some(0.0), ..TraceInput::default() });
}

#[test]
fn hostile_shapes_give_faults_and_nothing_else() {
    let deep = (0..100).fold(json!(1), |value, _| json!([value]));
    for value in
        [json!(null), json!([]), json!("x"), json!(1e308), json!({"targetRef": []}), json!({"trace": [1]}), deep]
    {
        for spec in [
            value.clone(),
            json!({"type": value, "targetRef": value, "trace": value, "identity": value, "authBridgeMode": value}),
        ] {
            let read = AgentRuntimeInput::of_spec(&spec);
            assert!(read.target.is_none() && !read.faults.is_empty(), "{spec}");
            assert!(read.faults.iter().all(|fault| fault.seen.len() <= 4 * SHOWN + 3), "{spec}");
        }
    }
}

#[test]
fn a_name_of_253_characters_is_read_whole() {
    let name = "n".repeat(253);
    let read = AgentRuntimeInput::of_spec(&with("/targetRef/name", json!(name)));
    assert_eq!(read.target.map(|target| target.name.to_string()), Some(name));
}

#[test]
fn wrong_pairs_are_told_the_right_one() {
    let message = |kind, api_version| {
        let read = AgentRuntimeInput::of_spec(&with("/targetRef", target(kind, api_version, "w")));
        read.faults[0].message.clone()
    };
    assert_eq!(message("CronJob", "apps/v1"), "CronJob belongs to apiVersion batch/v1, not apps/v1");
    assert!(message("Service", "v1").contains("DaemonSet (apps/v1), CronJob (batch/v1)"));
}

/// Ruling 22 of KAOS: who points at its Agent is told what runs it.
#[test]
fn a_target_that_is_an_object_of_kaos_is_told_its_deployment() {
    for (kind, deployment) in [("Agent", "agent-x"), ("ModelAPI", "modelapi-x"), ("MCPServer", "mcpserver-x")] {
        let read = AgentRuntimeInput::of_spec(&with("/targetRef", target(kind, "kaos.tools/v1alpha1", "x")));
        let [fault] = &read.faults[..] else { panic!("{:?}", read.faults) };
        assert!(fault.message.contains(&format!("is Deployment {deployment} of apps/v1")), "{}", fault.message);
    }
}

/// Whoever reads the status, a warning or an Event need not be who may read the spec.
#[test]
fn a_password_in_an_address_is_not_repeated() {
    for endpoint in
        ["grpc://user:canary@otel:4317", "http://user:can ary@otel", "http://user:can/ary@otel", "user:can ary@otel:1"]
    {
        let read = AgentRuntimeInput::of_spec(&with("/trace/endpoint", json!(endpoint)));
        let [fault] = &read.faults[..] else { panic!("{endpoint}: {:?}", read.faults) };
        assert!(fault.seen.ends_with(&endpoint[endpoint.rfind('@').unwrap()..]), "{}", fault.seen);
        assert!(!fault.seen.contains("can") && !fault.seen.contains("user"), "{}", fault.seen);
    }
    let taken = AgentRuntimeInput::of_spec(&with("/trace/endpoint", json!("http://user:secret@otel:4318")));
    assert_eq!(taken.trace.endpoint.as_deref(), Some("http://user:secret@otel:4318"), "what Pods are told stays");
}
