//! More cases of KAOS, places where a reconciler of theirs goes wrong (`regression_NN`), and rulings about what is written when.

use serde_json::{Value, json};

use super::{
    AGENT_ROW, IMAGES, MODEL_API_ROW, ROWS, agent, bench, condition, converge, hosted, is, made, running, says, status,
    variable,
};
use crate::controllers::agent::tests::bench::{Bench, TEAM, owns};
use crate::controllers::scaffold::plan::Op;
use crate::store::{Key, Kind};

const CLOSED: &str =
    "  kaosAgent: agent:1\n  kaosLitellm: litellm:1\n  kaosOllama: ollama:1\nkaos: {restrictModelAPIs: true}\n";

fn let_in(bench: &Bench) -> Value {
    let policy = bench.object(Kind::NetworkPolicy, "modelapi-m");
    policy["spec"]["ingress"][0]["from"][0]["podSelector"]["matchExpressions"][0]["values"].clone()
}

/// Ruling 13: with `kaos.restrictModelAPIs` a ModelAPI lets its Agents in, and follows them; without, nothing is made.
#[test]
fn ruling_13_a_restricted_model_api_lets_in_who_names_it_and_follows_them() {
    let mut open = running();
    assert!(open.find(Kind::NetworkPolicy, "modelapi-m").is_none());
    converge(&mut open);
    let mut bench = bench(CLOSED);
    hosted(&mut bench);
    converge(&mut bench);
    assert_eq!(bench.object(Kind::NetworkPolicy, "modelapi-m")["spec"]["ingress"], json!([]), "nobody names it");
    agent(&mut bench, "a", json!({}));
    agent(&mut bench, "b", json!({"modelAPI": "other"}));
    converge(&mut bench);
    assert_eq!(let_in(&bench), json!(["a"]));
    bench.edit(Kind::KaosAgent, "b", json!({"spec": {"modelAPI": "m"}}));
    converge(&mut bench);
    assert_eq!(let_in(&bench), json!(["a", "b"]));
    bench.edit(Kind::KaosAgent, "a", json!({"spec": {"modelAPI": "other"}}));
    converge(&mut bench);
    assert_eq!(let_in(&bench), json!(["b"]), "who names it no more is let in no more");
    assert_eq!(converge(&mut bench), []);
    agent(&mut bench, &"n".repeat(70), json!({}));
    converge(&mut bench);
    assert_eq!(
        let_in(&bench),
        json!(["b"]),
        "a name that is no value of a label would have the API server refuse the whole policy"
    );
}

/// Nothing of an object is read that is over a bound: what was made of it, and what names it, stays as it is.
#[test]
fn mend_02_what_is_over_a_bound_is_not_taken_for_an_empty_object() {
    let mut bench = bench(CLOSED);
    hosted(&mut bench);
    agent(&mut bench, "a", json!({}));
    converge(&mut bench);
    bench.rolled_out("modelapi-m");
    converge(&mut bench);
    bench.rolled_out("agent-a");
    converge(&mut bench);
    let all = [(Kind::Deployment, "agent-a"), (Kind::Deployment, "modelapi-m"), (Kind::NetworkPolicy, "modelapi-m")];
    let made = |bench: &Bench| all.map(|(kind, name)| bench.object(kind, name));
    let before = made(&bench);
    let large = json!({"metadata": {"annotations": {"large": "x".repeat(400 * 1024)}}});
    let small = json!({"metadata": {"annotations": {"large": null}}});
    bench.edit(Kind::ModelApi, "m", large.clone());
    converge(&mut bench);
    assert_eq!(made(&bench), before, "an Agent asks where it asked");
    bench.edit(Kind::KaosAgent, "a", large);
    agent(&mut bench, "b", json!({"waitForDependencies": false}));
    converge(&mut bench);
    assert_eq!(made(&bench), before);
    let url = "http://modelapi-m.team.svc.cluster.local:11434";
    assert_eq!(variable(&bench, "agent-b", "MODEL_API_URL").as_deref(), Some(url), "its status says where it listens");
    for (kind, name) in [(Kind::KaosAgent, "a"), (Kind::ModelApi, "m")] {
        let (phase, ready, message) = says(&bench, kind, name);
        assert_eq!((&*phase, ready), ("Ready", true), "what runs is ready: {message}");
        assert!(message.contains("384 KiB"), "{message}");
        assert_eq!(condition(&bench, kind, name, "Stalled"), "True/InvalidSpec");
        assert!(status(&bench, kind, name)["endpoint"].is_string());
    }
    assert_eq!(status(&bench, Kind::KaosAgent, "a")["linkedResources"]["modelapiEndpoint"], url);
    assert_eq!(condition(&bench, Kind::KaosAgent, "a", "DependenciesReady"), "True/DependenciesReady");
    bench.edit(Kind::ModelApi, "m", small.clone());
    converge(&mut bench);
    assert_eq!(let_in(&bench), json!(["a"]), "it may be one of those that are let in");
    assert_eq!(condition(&bench, Kind::ModelApi, "m", "Restricted"), "True/FieldInvalid");
    bench.edit(Kind::KaosAgent, "a", small);
    let touched = bench.cluster.touched(MODEL_API_ROW, Kind::KaosAgent, &Key::new(TEAM, "a"));
    assert_eq!(touched, [Key::new(TEAM, "m")]);
    converge(&mut bench);
    assert_eq!(let_in(&bench), json!(["a", "b"]));
    assert_eq!(condition(&bench, Kind::ModelApi, "m", "Restricted"), "");
}

/// One list is not copied into the status of everybody who names it.
#[test]
fn case_46_a_status_stays_small_however_much_a_model_api_lists() {
    let mut bench = bench(IMAGES);
    let models: Vec<String> = (0..50).map(|number| format!("m{number}-{}", "x".repeat(7 * 1024))).collect();
    made(&mut bench, Kind::ModelApi, "m", json!({"mode": "Proxy", "proxyConfig": {"models": models}}));
    agent(&mut bench, "a", json!({"model": "y"}));
    agent(&mut bench, "b", json!({"modelAPI": "z".repeat(100 * 1024)}));
    let ops = converge(&mut bench);
    for op in &ops {
        let Op::Status { kind: Kind::KaosAgent, patch, .. } = op else { continue };
        let bytes = patch.to_string().len();
        assert!(bytes < 8 * 1024, "{bytes}");
    }
    let (phase, _, message) = says(&bench, Kind::KaosAgent, "a");
    assert_eq!(phase, "Failed", "{message}");
    assert!(message.starts_with("model \"y\" not supported by ModelAPI \"m\" (supported: [m0-xxx"), "{message}");
    assert!(message.ends_with(" and 42 more])"), "{message}");
}

#[test]
fn case_100_a_configuration_that_offers_what_the_list_has_not_is_not_made_until_one_of_them_is_corrected() {
    let mut bench = bench(IMAGES);
    let of = |name: &str| format!("model_list:\n- model_name: {name}\n  litellm_params: {{model: openai/{name}}}\n");
    let spec = json!({"mode": "Proxy", "proxyConfig": {"models": ["a"], "configYaml": {"fromString": of("z")}}});
    for name in ["m", "n"] {
        made(&mut bench, Kind::ModelApi, name, spec.clone());
    }
    converge(&mut bench);
    for name in ["m", "n"] {
        let text = "model_name \"z\" in configYaml not found in models list [a]";
        assert_eq!(says(&bench, Kind::ModelApi, name), is("Failed", false, text));
        assert!(bench.find(Kind::Deployment, &format!("modelapi-{name}")).is_none());
        assert!(bench.find(Kind::ConfigMap, &format!("litellm-config-{name}")).is_none());
    }
    bench.edit(Kind::ModelApi, "m", json!({"spec": {"proxyConfig": {"models": ["*"]}}}));
    bench.edit(Kind::ModelApi, "n", json!({"spec": {"proxyConfig": {"configYaml": {"fromString": of("a")}}}}));
    converge(&mut bench);
    for name in ["modelapi-m", "modelapi-n"] {
        assert!(bench.find(Kind::Deployment, name).is_some(), "{name}");
    }
}

/// Ruling 20: while the Lease of the operator before is held freshly, nothing is written; once it runs out or is let go, everything is.
#[test]
fn ruling_20_nothing_is_written_while_the_operator_before_holds_its_lease() {
    let mut bench = bench(IMAGES);
    let lease = |holder: &str, renewed: &str| {
        json!({"metadata": {"name": "kaos-operator.kaos.tools", "namespace": "kaos-system", "uid": "l", "resourceVersion": renewed},
            "spec": {"holderIdentity": holder, "leaseDurationSeconds": 600, "renewTime": renewed}})
    };
    bench.cluster.see(Kind::Lease, lease("go", "500"));
    hosted(&mut bench);
    agent(&mut bench, "a", json!({}));
    assert_eq!(converge(&mut bench), [], "two operators never write the same objects");
    bench.cluster.see(Kind::Lease, lease("", "501"));
    let ops = converge(&mut bench);
    assert!(!ops.is_empty(), "it was let go");
    assert!(bench.find(Kind::Deployment, "modelapi-m").is_some());
}

/// Whoever has ClusterRole `edit` in one namespace writes Leases there; and what goes waits for nobody.
#[test]
fn ruling_20_a_lease_of_a_tenant_holds_nothing_and_under_one_that_counts_deletion_goes_on() {
    let mut bench = bench(IMAGES);
    let lease = |namespace: &str| {
        json!({"metadata": {"name": "kaos-operator.kaos.tools", "namespace": namespace, "uid": namespace, "resourceVersion": "500"},
            "spec": {"holderIdentity": "x", "leaseDurationSeconds": 3600, "renewTime": "500"}})
    };
    for namespace in [TEAM, "charts"] {
        bench.cluster.see(Kind::Lease, lease(namespace));
    }
    hosted(&mut bench);
    agent(&mut bench, "a", json!({}));
    converge(&mut bench);
    assert!(bench.find(Kind::Deployment, "modelapi-m").is_some());
    bench.cluster.configure(&format!("{IMAGES}kaos: {{operatorNamespaces: [charts]}}\n"));
    agent(&mut bench, "b", json!({}));
    assert_eq!(converge(&mut bench), [], "it counts where the platform says so");
    let plan = bench.cluster.plan_at(AGENT_ROW, &Key::new(TEAM, "b"), bench.now);
    let minute = crate::controllers::scaffold::fixtures::s(60);
    assert_eq!(plan.again, Some(minute), "nobody tells when it is let go there");
    bench.edit(Kind::KaosAgent, "a", json!({"metadata": {"deletionTimestamp": "2026-05-01T00:00:00Z"}}));
    converge(&mut bench);
    assert!(bench.find(Kind::KaosAgent, "a").is_none());
}

#[test]
fn ruling_17_an_object_that_refers_to_more_than_are_followed_says_so() {
    let from = |number: usize| json!({"configMapKeyRef": {"name": format!("c{number:03}"), "key": "k"}});
    let env: Vec<Value> =
        (0..70).map(|number| json!({"name": format!("V{number}"), "valueFrom": from(number)})).collect();
    for (platform, said) in [("", ""), ("kaos: {rollOnSecretChange: true}\n", "True/FieldInvalid")] {
        let mut bench = bench(&format!("{IMAGES}{platform}"));
        agent(&mut bench, "few", json!({"container": {"env": env[..64]}}));
        agent(&mut bench, "many", json!({"container": {"env": env}}));
        converge(&mut bench);
        assert_eq!(condition(&bench, Kind::KaosAgent, "few", "ReferencesUnfollowed"), "");
        assert_eq!(condition(&bench, Kind::KaosAgent, "many", "ReferencesUnfollowed"), said);
    }
}

#[test]
fn case_32_and_regressions_40_and_42_an_agent_goes_on_when_its_tool_server_becomes_ready() {
    let mut bench = bench(IMAGES);
    hosted(&mut bench);
    converge(&mut bench);
    bench.rolled_out("modelapi-m");
    made(&mut bench, Kind::McpServer, "t", json!({"runtime": "python-string", "params": "x"}));
    agent(&mut bench, "a", json!({"mcpServers": ["t"]}));
    converge(&mut bench);
    assert_eq!(says(&bench, Kind::KaosAgent, "a"), is("Waiting", false, "MCPServer t is not ready"));
    bench.rolled_out("mcpserver-t");
    bench.converge_with(&[&super::MCP_SERVER_ROW]);
    let touched = bench.cluster.touched(AGENT_ROW, Kind::McpServer, &Key::new(TEAM, "t"));
    assert_eq!(touched, [Key::new(TEAM, "a")], "the tool server's status brings the Agent back");
    let touched = bench.cluster.touched(AGENT_ROW, Kind::ModelApi, &Key::new(TEAM, "m"));
    assert_eq!(touched, [Key::new(TEAM, "a")], "and so does its ModelAPI's, while it waits");
    converge(&mut bench);
    assert!(bench.find(Kind::Deployment, "agent-a").is_some());
}

#[test]
fn case_40_an_agent_whose_pods_go_is_not_ready_any_more() {
    let mut bench = running();
    assert!(says(&bench, Kind::KaosAgent, "a").1);
    let status = json!({"status": {"readyReplicas": 0, "availableReplicas": 0, "unavailableReplicas": 1}});
    bench.edit(Kind::Deployment, "agent-a", status);
    converge(&mut bench);
    assert_eq!(says(&bench, Kind::KaosAgent, "a"), is("Pending", false, "Deployment ready replicas: 0/1"));
}

#[test]
fn cases_44_and_141_and_regression_41_a_model_api_concerns_its_own_agents_each_once() {
    let mut bench = bench(IMAGES);
    for number in 0..200 {
        agent(&mut bench, &format!("a{number}"), json!({}));
    }
    agent(&mut bench, "other", json!({"modelAPI": "n"}));
    hosted(&mut bench);
    made(&mut bench, Kind::ModelApi, "n", json!({"mode": "Hosted", "hostedConfig": {"model": "x"}}));
    converge(&mut bench);
    let touched = |bench: &Bench, name: &str| {
        let mut keys = bench.cluster.touched(AGENT_ROW, Kind::ModelApi, &Key::new(TEAM, name));
        keys.sort();
        let all = keys.len();
        keys.dedup();
        (all, keys.len())
    };
    assert_eq!(touched(&bench, "m"), (200, 200));
    assert_eq!(touched(&bench, "n"), (1, 1));
}

#[test]
fn cases_74_and_76_what_people_set_on_the_deployment_outlives_a_change_of_the_spec() {
    let mut bench = running();
    let restarted = json!({"metadata": {"annotations": {"kubectl.kubernetes.io/restartedAt": "now"}}});
    bench.edit(Kind::Deployment, "agent-a", json!({"spec": {"replicas": 3, "template": restarted}}));
    converge(&mut bench);
    bench.edit(Kind::KaosAgent, "a", json!({"spec": {"config": {"description": "d"}}}));
    converge(&mut bench);
    let spec = &bench.object(Kind::Deployment, "agent-a")["spec"];
    assert_eq!(spec["replicas"], 3);
    assert_eq!(spec["template"]["metadata"]["annotations"]["kubectl.kubernetes.io/restartedAt"], "now");
    assert_eq!(variable(&bench, "agent-a", "AGENT_DESCRIPTION").as_deref(), Some("d"));
}

#[test]
fn cases_87_and_104_and_139_numbers_are_quantities_and_an_unreadable_object_stops_no_other() {
    let mut bench = running();
    let limits = json!([{"name": "agent", "resources": {"limits": {"cpu": 1, "memory": "1Gi"}}}]);
    bench.edit(Kind::KaosAgent, "a", json!({"spec": {"podSpec": {"containers": limits}}}));
    made(&mut bench, Kind::KaosAgent, "odd", json!({"modelAPI": 7, "config": "no", "mcpServers": {"a": 1}}));
    made(&mut bench, Kind::ModelApi, "odd", json!({"mode": 3, "podSpec": []}));
    converge(&mut bench);
    let cpu = bench.container("agent-a", 0)["resources"]["limits"]["cpu"].clone();
    assert!(cpu == json!(1) || cpu == json!("1"), "{cpu}");
    bench.edit(Kind::ModelApi, "m", json!({"spec": {"hostedConfig": {"model": "y"}}}));
    converge(&mut bench);
    let pod = bench.object(Kind::Deployment, "modelapi-m")["spec"]["template"]["spec"].clone();
    let pull =
        pod["initContainers"].as_array().unwrap().iter().find(|one| one["name"] == "pull-model").unwrap().clone();
    assert_eq!(pull["args"], json!(["pull", "y"]), "case 104");
    assert_eq!(says(&bench, Kind::KaosAgent, "odd").0, "Failed");
    assert_eq!(says(&bench, Kind::ModelApi, "odd").0, "Failed");
    assert!(bench.find(Kind::Deployment, "agent-odd").is_none());
}

/// Case 136: in a namespace that goes nothing is made again, and what goes waits for nothing.
#[test]
fn case_136_nothing_is_made_in_a_namespace_that_goes() {
    let mut bench = running();
    let going = json!({"metadata": {"name": TEAM, "uid": TEAM, "deletionTimestamp": "2026-05-01T00:00:00Z"}});
    bench.cluster.see(Kind::Namespace, going);
    bench.remove(Kind::Deployment, "agent-a");
    bench.remove(Kind::Service, "agent-a");
    assert_eq!(converge(&mut bench), []);
    bench.edit(Kind::KaosAgent, "a", json!({"metadata": {"deletionTimestamp": "2026-05-01T00:00:00Z"}}));
    converge(&mut bench);
    assert!(bench.find(Kind::KaosAgent, "a").is_none());
}

/// The API server answers with an error once, at each kind of call, and the Agent comes up all the same.
#[test]
fn regressions_6_7_10_to_14_and_20_one_call_that_fails_stops_nothing() {
    type Is = fn(&Op) -> bool;
    let calls: [(&str, Is); 4] = [
        ("finalizer", |op| matches!(op, Op::Edit { kind: Kind::KaosAgent, .. })),
        ("Service", |op| matches!(op, Op::Own { kind: Kind::Service, .. })),
        ("Deployment", |op| matches!(op, Op::Own { kind: Kind::Deployment, .. })),
        ("status", |op| matches!(op, Op::Status { kind: Kind::KaosAgent, .. })),
    ];
    for (call, is_it) in calls {
        let mut bench = bench(IMAGES);
        hosted(&mut bench);
        converge(&mut bench);
        bench.rolled_out("modelapi-m");
        bench.converge_with(&[&super::MODEL_API_ROW]);
        agent(&mut bench, "a", json!({}));
        let failed = (0..8).any(|_| bench.round_that_fails(&AGENT_ROW, is_it));
        assert!(failed, "{call} is written");
        bench.now += crate::controllers::scaffold::fixtures::s(60);
        converge(&mut bench);
        bench.rolled_out("agent-a");
        converge(&mut bench);
        assert_eq!(says(&bench, Kind::KaosAgent, "a"), is("Ready", true, "Deployment ready replicas: 1/1"), "{call}");
        assert!(bench.find(Kind::Service, "agent-a").is_some());
        assert_eq!(converge(&mut bench), [], "{call}");
    }
}

/// Bad input of people: three operators' kinds want one Deployment name.
#[test]
fn bad_input_of_three_agents_that_want_one_deployment_the_first_has_it_and_the_others_say_so() {
    let mut bench = running();
    bench.agent("agent-a", json!({}));
    bench.converge_with(&[&super::super::super::plan::ROW]);
    assert_eq!(bench.condition("agent-a", "Ready"), "False/NameConflict");
    assert_eq!(owns(&converge(&mut bench)), []);
    assert!(says(&bench, Kind::KaosAgent, "a").1, "who has it keeps it");
}

/// Bad input: a Deployment's condition with an empty reason does not stop a status.
#[test]
fn bad_input_an_empty_reason_in_a_deployments_condition_is_copied_as_it_is() {
    let mut bench = running();
    let odd = json!([{"type": "Available", "status": "True", "reason": "", "message": ""}]);
    bench.edit(Kind::Deployment, "agent-a", json!({"status": {"conditions": odd}}));
    converge(&mut bench);
    assert_eq!(status(&bench, Kind::KaosAgent, "a")["deployment"]["conditions"][0]["type"], "Available");
    assert_eq!(condition(&bench, Kind::KaosAgent, "a", "Ready"), "True/DeploymentReady");
}

/// Bad input: 200 peers, itself among them.
#[test]
fn bad_input_two_hundred_peers_stand_in_order_each_once() {
    let mut bench = bench(IMAGES);
    hosted(&mut bench);
    converge(&mut bench);
    bench.rolled_out("modelapi-m");
    let names: Vec<String> = (0..200).map(|number| format!("p{number:03}")).collect();
    // All of them exist; of the first, one in between and the last it is asked what they have to call.
    for (number, name) in names.iter().enumerate() {
        let access = if [0, 7, 199].contains(&number) { names.clone() } else { Vec::new() };
        agent(&mut bench, name, json!({"agentNetwork": {"access": access}}));
    }
    converge(&mut bench);
    for deployment in ["agent-p000", "agent-p007", "agent-p199"] {
        assert_eq!(variable(&bench, deployment, "PEER_AGENTS"), Some(names.join(",")));
    }
    assert_eq!(bench.converge_with(&ROWS), Vec::<Op>::new());
    let _: Value = bench.object(Kind::Deployment, "agent-p199");
}

/// Who begins anew, with nothing remembered, writes nothing.
#[test]
fn a_restart_writes_nothing() {
    let mut bench = running();
    bench.edit(Kind::KaosAgent, "a", json!({"spec": {"mcpServers": ["none"], "agentNetwork": {"access": ["a", "p"]}}}));
    converge(&mut bench);
    bench.rolled_out("agent-a");
    bench.now += crate::controllers::scaffold::fixtures::s(60);
    converge(&mut bench);
    bench.cluster.forget();
    bench.cluster.memory.surveyed = true;
    assert_eq!(bench.converge_with(&ROWS), Vec::<Op>::new());
}
