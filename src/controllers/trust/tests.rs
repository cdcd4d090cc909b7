//! Label and NetworkPolicies together, against a small API server: what stands after each single write, in any order of the items.

use std::collections::{BTreeMap, BTreeSet};

use proptest::prelude::*;
use serde_json::{Value, json};

use crate::config::gates::Gates;
use crate::controllers::scaffold::fixtures::{Cluster, OWN, Rowed, s, workload};
use crate::controllers::scaffold::plan::{Op, Plan};
use crate::controllers::{network_policy, trust_label};
use crate::domain::reason::Reason;
use crate::policy::desired::is_permissive;
use crate::store::{Key, Kind, Reach};

mod cluster;
mod declared;
mod events;
mod kaos;
mod opened;
mod quarantine;
mod unread;

const ROWS: [&dyn Rowed; 2] = [&network_policy::plan::ROW, &trust_label::plan::ROW];
const DENY: &str = "drawbridge-default-deny";

/// The cluster, and its objects as the API server has them.
struct Scene {
    cluster: Cluster,
    objects: BTreeMap<(Kind, String), Value>,
    version: u64,
    told: Vec<Reason>,
    /// What changes since it was last emptied concern, as the loop would enqueue it.
    due: BTreeSet<(usize, Key)>,
}

impl Scene {
    /// Two agents in namespace `team`: `good` is verified, `bad` is not; each with one Pod.
    fn new(platform: &str) -> Self {
        let mut cluster = Cluster::with(platform, Gates::default());
        for kind in Kind::ALL {
            cluster.store.set_reach(*kind, Reach::Listed);
        }
        cluster.store.set_reach(Kind::ClusterNetworkPolicy, Reach::Absent);
        let mut scene =
            Self { cluster, objects: BTreeMap::new(), version: 100, told: Vec::new(), due: BTreeSet::new() };
        for name in ["good", "bad"] {
            scene.agent(Kind::Deployment, name);
            scene.card(name, name == "good");
        }
        scene
    }

    fn put(&mut self, kind: Kind, mut object: Value) {
        self.version += 1;
        let metadata = &mut object["metadata"];
        metadata["resourceVersion"] = self.version.to_string().into();
        if kind.is_namespaced() && metadata.get("namespace").is_none() {
            metadata["namespace"] = "team".into();
        }
        let name = metadata["name"].as_str().unwrap().to_owned();
        let key = key_of(&object);
        self.objects.insert((kind, name), object.clone());
        self.is_due(kind, &key);
        self.cluster.see(kind, object);
        self.is_due(kind, &key);
    }

    fn is_due(&mut self, kind: Kind, key: &Key) {
        for (index, row) in ROWS.iter().enumerate() {
            self.due.extend(row.touched(&self.cluster, kind, key).into_iter().map(|key| (index, key)));
        }
    }

    fn lose(&mut self, kind: Kind, name: &str) {
        let object = self.objects.remove(&(kind, name.to_owned())).unwrap();
        let key = key_of(&object);
        self.is_due(kind, &key);
        self.cluster.lose(kind, object);
        self.is_due(kind, &key);
    }

    fn agent(&mut self, kind: Kind, name: &str) {
        let plural = kind.plural();
        let selector = json!({"spec": {"selector": {"matchLabels": {"app": name}}}});
        self.put(kind, workload(kind, name, selector));
        if kind == Kind::Deployment {
            self.put(Kind::ReplicaSet, replica_set(name, &format!("{plural}-{name}")));
        }
        self.put(Kind::Pod, pod(&format!("{name}-1"), name));
    }

    fn card(&mut self, name: &str, verified: bool) {
        self.put(Kind::AgentCard, card(name, if verified { "True" } else { "False" }));
    }

    fn level(&mut self, level: &str) {
        let labels = json!({"agent.kagenti.dev/trust": level});
        self.put(Kind::Namespace, json!({"metadata": {"name": "team", "uid": "team", "labels": labels}}));
    }

    fn keys(&self) -> Vec<(usize, Key)> {
        let of = |(index, row): (usize, &&dyn Rowed)| {
            let keys = row.keys(&self.cluster, "team");
            keys.into_iter().map(move |key| (index, key)).collect::<Vec<_>>()
        };
        ROWS.iter().enumerate().flat_map(of).collect()
    }

    /// Plans one item and carries it out; what was written, in words.
    fn step(&mut self, (row, key): &(usize, Key)) -> Vec<String> {
        let plan = ROWS[*row].planned(&mut self.cluster, key, s(100));
        self.carry_out(plan)
    }

    fn carry_out(&mut self, plan: Plan) -> Vec<String> {
        let mut written = Vec::new();
        for op in plan.ops {
            match op {
                Op::Create { kind, body, .. } => {
                    let mut object = body;
                    let name = object["metadata"]["name"].as_str().unwrap().to_owned();
                    assert!(!self.objects.contains_key(&(kind, name.clone())), "{name} is there");
                    object["metadata"]["uid"] = format!("uid-{name}-{}", self.version).into();
                    written.push(format!("create {name}{}", shape(&object)));
                    self.put(kind, stored(object));
                }
                Op::Edit { kind, key, operations } => {
                    let mut object = self.objects[&(kind, key.name.to_string())].clone();
                    let operations: json_patch::Patch = serde_json::from_value(operations).unwrap();
                    json_patch::patch(&mut object, &operations).unwrap();
                    let word = if kind == Kind::Pod { "label" } else { "edit" };
                    written.push(format!("{word} {}{}", key.name, shape(&object)));
                    self.put(kind, stored(object));
                }
                Op::Delete { kind, key, .. } => {
                    written.push(format!("delete {}", key.name));
                    self.lose(kind, &key.name);
                }
                Op::Report(report) => self.told.push(report.reason),
                other => panic!("{other:?}"),
            }
        }
        written
    }

    /// Until nothing is left to be written.
    fn settle(&mut self) -> Vec<String> {
        let mut written = Vec::new();
        for _ in 0..20 {
            let before = written.len();
            for key in self.keys() {
                written.extend(self.step(&key));
            }
            if written.len() == before {
                return written;
            }
        }
        panic!("it never ends: {written:#?}");
    }

    fn spec(&self, name: &str) -> Option<&Value> {
        self.objects.get(&(Kind::NetworkPolicy, name.to_owned())).map(|object| &object["spec"])
    }

    fn is_labelled(&self, pod: &str) -> bool {
        let labels = &self.objects[&(Kind::Pod, pod.to_owned())]["metadata"]["labels"];
        labels.get("agent.kagenti.dev/signature-verified").is_some()
    }

    fn is_open(&self, name: &str) -> bool {
        self.spec(&format!("{name}-signature-policy")).is_some_and(is_permissive)
    }

    /// Nobody who is verified is cut: no deny, or his Pod is labelled and opened.
    fn nobody_verified_is_cut(&self) {
        assert!(
            self.spec(DENY).is_none() || (self.is_labelled("good-1") && self.is_open("good")),
            "{:#?}",
            self.objects
        );
    }
}

fn key_of(object: &Value) -> Key {
    let text = |member: &str| object["metadata"][member].as_str().unwrap_or_default();
    Key::new(text("namespace"), text("name"))
}

fn shape(object: &Value) -> &'static str {
    match &object["spec"] {
        spec if is_permissive(spec) => " open",
        _ => "",
    }
}

/// As the API server stores it.
fn stored(mut object: Value) -> Value {
    for direction in ["ingress", "egress"] {
        if object["spec"].get(direction) == Some(&json!([])) {
            object["spec"].as_object_mut().unwrap().remove(direction);
        }
    }
    object
}

fn replica_set(name: &str, of: &str) -> Value {
    let owner = json!([{"apiVersion": "apps/v1", "kind": "Deployment", "name": name, "uid": of, "controller": true}]);
    workload(Kind::ReplicaSet, name, json!({"metadata": {"ownerReferences": owner}}))
}

fn pod(pod: &str, of: &str) -> Value {
    let owner = json!([{"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": of, "uid": format!("replicasets-{of}"),
        "controller": true}]);
    json!({"metadata": {"name": pod, "uid": pod, "labels": {"kagenti.io/type": "agent", "app": of}, "ownerReferences": owner},
        "spec": {"serviceAccountName": of, "containers": [{"name": "a"}]}, "status": {"phase": "Running"}})
}

fn card(name: &str, verified: &str) -> Value {
    let condition = json!({"type": "Verified", "status": verified, "reason": "x", "observedGeneration": 1});
    let mut status = json!({"targetUID": format!("deployments-{name}"), "conditions": [condition]});
    if verified == "True" {
        status["trustedAccount"] = name.into();
    }
    json!({"metadata": {"name": format!("{name}-card"), "uid": format!("card-{name}"), "generation": 1},
        "spec": {"targetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": name}}, "status": status})
}

#[test]
fn cases_126_115_where_nothing_is_enforced_nothing_is_written() {
    let mut scene = Scene::new("");
    assert_eq!(scene.settle(), Vec::<String>::new());
    scene.level("off");
    assert_eq!(scene.settle(), Vec::<String>::new());
}

/// Case 122 has the label on the template: it is on the Pod alone.
#[test]
fn case_122_in_audit_the_pods_of_verified_agents_are_labelled_and_nobody_is_cut() {
    let mut scene = Scene::new("");
    scene.level("audit");
    assert_eq!(scene.settle(), ["label good-1"]);
    assert_eq!(scene.settle(), Vec::<String>::new(), "a second time nothing is written");
    scene.level("off");
    assert_eq!(scene.settle(), ["label good-1"]);
    assert!(!scene.is_labelled("good-1"));
}

#[test]
fn cases_127_to_132_enforced_the_verified_agent_is_open_and_a_flip_changes_the_same_policy() {
    let mut scene = Scene::new("");
    scene.level("enforced");
    let written = scene.settle();
    let place =
        |what: &str| written.iter().position(|one| one == what).unwrap_or_else(|| panic!("{what}: {written:?}"));
    let deny = place(&format!("create {DENY}"));
    assert!(place("label good-1") < deny && place("create good-signature-policy open") < deny);
    assert!(written.contains(&"create bad-signature-policy".to_owned()));
    assert_eq!(scene.settle(), Vec::<String>::new(), "also though what is empty is stored as absent");

    let uid = scene.objects[&(Kind::NetworkPolicy, "good-signature-policy".to_owned())]["metadata"]["uid"].clone();
    scene.card("good", false);
    let mut written = scene.settle();
    written.sort();
    assert_eq!(written, ["edit good-signature-policy", "label good-1"]);
    assert!(!scene.is_open("good") && !scene.is_labelled("good-1"));
    let now = &scene.objects[&(Kind::NetworkPolicy, "good-signature-policy".to_owned())]["metadata"];
    assert_eq!(now["uid"], uid);
    assert_eq!(now["ownerReferences"][0]["uid"], "card-good");
    assert_eq!(now["labels"]["kagenti.dev/agentcard"], "good-card");
}

#[test]
fn case_133_a_policy_that_somebody_edited_is_put_back() {
    let mut scene = Scene::new("");
    scene.level("enforced");
    scene.settle();
    for name in [DENY, "bad-signature-policy"] {
        let mut object = scene.objects[&(Kind::NetworkPolicy, name.to_owned())].clone();
        object["spec"]["egress"] = json!([{}]);
        scene.put(Kind::NetworkPolicy, object);
        assert_eq!(scene.settle(), [format!("edit {name}")]);
        assert_eq!(scene.spec(name).unwrap().get("egress"), None);
    }
}

/// Case 62 as the rulings leave it: the label is one of Pods, and of the workload nothing is written.
#[test]
fn case_062_with_its_card_an_agent_loses_the_label_of_its_pods_and_its_workload_stays_as_it_is() {
    let mut scene = Scene::new("");
    scene.level("enforced");
    scene.settle();
    assert!(scene.is_labelled("good-1"));
    let before = scene.objects[&(Kind::Deployment, "good".to_owned())].clone();
    scene.lose(Kind::AgentCard, "good-card");
    scene.settle();
    assert!(!scene.is_labelled("good-1") && !scene.is_open("good"));
    assert_eq!(scene.objects[&(Kind::Deployment, "good".to_owned())], before);
}

/// Case 124 as the rulings leave it: what another operator wrote is not ours to take off, and proves nothing.
#[test]
fn case_124_what_the_go_operator_noted_at_a_workload_counts_for_nothing() {
    let mut scene = Scene::new("");
    let noted =
        json!({"agent.kagenti.dev/last-verified-state": "true", "verified-state.agent.kagenti.dev/bad-card": "true"});
    let more = json!({"metadata": {"annotations": noted}, "spec": {"selector": {"matchLabels": {"app": "bad"}}}});
    scene.put(Kind::Deployment, workload(Kind::Deployment, "bad", more));
    scene.level("enforced");
    scene.settle();
    assert!(scene.is_labelled("good-1") && !scene.is_labelled("bad-1"));
    assert!(scene.is_open("good") && !scene.is_open("bad"));
}

/// Deleting a card, every card, or a workload never opens anything.
#[test]
fn cases_134_and_135_a_card_that_is_gone_takes_its_policy_along_and_opens_nothing() {
    let mut scene = Scene::new("");
    scene.level("enforced");
    scene.settle();
    scene.lose(Kind::AgentCard, "bad-card");
    assert_eq!(scene.settle(), ["delete bad-signature-policy"]);
    scene.lose(Kind::AgentCard, "good-card");
    let mut written = scene.settle();
    written.sort();
    assert_eq!(written, ["delete good-signature-policy", "label good-1"]);
    assert!(scene.spec(DENY).is_some());
}

#[test]
fn case_139_a_policy_of_its_name_that_is_somebody_elses_is_left_and_told() {
    let mut scene = Scene::new("");
    let theirs = json!({"metadata": {"name": "good-signature-policy", "uid": "theirs"}, "spec": {"podSelector": {}}});
    scene.put(Kind::NetworkPolicy, theirs);
    scene.level("enforced");
    let written = scene.settle();
    assert!(written.iter().all(|one| !one.contains("good-signature-policy")), "{written:?}");
    assert!(
        scene.told.contains(&Reason::NameConflict) && scene.spec(DENY).is_some(),
        "who cannot be opened holds nobody up"
    );
}

/// Of two kinds of one name one has the policy; the other holds nobody up, and hears of it.
#[test]
fn a_namesake_of_another_kind_does_not_hold_up_what_cuts_off_and_is_told() {
    let mut scene = Scene::new("");
    scene.agent(Kind::Deployment, "w");
    scene.card("w", false);
    scene.put(
        Kind::StatefulSet,
        workload(Kind::StatefulSet, "w", json!({"spec": {"selector": {"matchLabels": {"app": "w", "kind": "set"}}}})),
    );
    let mut member = pod("w-0", "w");
    member["metadata"]["ownerReferences"] = json!([{"apiVersion": "apps/v1", "kind": "StatefulSet", "name": "w", "uid": "statefulsets-w", "controller": true}]);
    scene.put(Kind::Pod, member);
    let mut of_set = card("w", "True");
    of_set["metadata"]["name"] = "set-card".into();
    of_set["metadata"]["uid"] = "card-set".into();
    of_set["spec"]["targetRef"]["kind"] = "StatefulSet".into();
    of_set["status"]["targetUID"] = "statefulsets-w".into();
    scene.put(Kind::AgentCard, of_set);
    scene.level("enforced");
    scene.settle();
    assert!(scene.spec(DENY).is_some() && scene.is_labelled("w-0") && !scene.is_open("w"), "{:#?}", scene.objects);
    assert!(scene.told.contains(&Reason::NameConflict));
    let plan = scene.cluster.plan_at(network_policy::plan::ROW, &Key::new("team", "w-signature-policy"), s(100));
    let [Op::Report(report)] = &plan.ops[..] else { panic!("{plan:?}") };
    assert_eq!((report.kind, &*report.uid), (Kind::StatefulSet, "statefulsets-w"));
    assert!(report.message.contains("Deployment w has NetworkPolicy w-signature-policy"), "{}", report.message);
    // Once the first has no card any more, the policy is the other one's.
    scene.lose(Kind::AgentCard, "w-card");
    scene.settle();
    assert!(scene.is_open("w"));
}

#[test]
fn what_the_go_operator_made_is_taken_over_where_it_is() {
    let mut scene = Scene::new("");
    let theirs = json!({"metadata": {"name": "good-signature-policy", "uid": "theirs", "labels": {"managed-by": "kagenti-operator",
        "kagenti.dev/agentcard": "good-card"}, "managedFields": [{"manager": "manager", "operation": "Update"}],
        "ownerReferences": [{"apiVersion": "agent.kagenti.dev/v1alpha1", "kind": "AgentCard", "name": "good-card",
            "uid": "card-good", "controller": true}]}, "spec": {"podSelector": {"matchLabels": {"app": "good"}}}});
    scene.put(Kind::NetworkPolicy, theirs);
    scene.level("enforced");
    assert!(scene.settle().contains(&"edit good-signature-policy open".to_owned()));
    let now = &scene.objects[&(Kind::NetworkPolicy, "good-signature-policy".to_owned())]["metadata"];
    assert_eq!((&now["uid"], &now["labels"]["managed-by"]), (&json!("theirs"), &json!("drawbridge")));
    assert_eq!((now["ownerReferences"].as_array().unwrap().len(), &now["managedFields"]), (1, &json!([{}])));
}

/// Case 123, with both cards: one counts, a person's before a controller's.
#[test]
fn case_123_of_two_cards_the_one_that_counts_decides() {
    let mut scene = Scene::new("");
    let mut automatic = card("good", "True");
    automatic["metadata"]["labels"] = json!({"app.kubernetes.io/managed-by": "drawbridge"});
    scene.put(Kind::AgentCard, automatic);
    let mut mine = card("good", "False");
    mine["metadata"]["name"] = "mine".into();
    mine["metadata"]["uid"] = "mine".into();
    scene.put(Kind::AgentCard, mine);
    scene.level("audit");
    assert_eq!(scene.settle(), Vec::<String>::new());
}

/// Trust is that of one workload: one of the same name that was made later has none, nor a Pod under another account, nor one that only
/// says whose it is.
#[test]
fn what_is_trusted_is_the_workload_of_that_uid_under_that_account() {
    let mut scene = Scene::new("");
    scene.level("audit");
    let mut other = pod("other", "good");
    other["spec"]["serviceAccountName"] = "default".into();
    scene.put(Kind::Pod, other);
    let mut stranger = pod("stranger", "good");
    stranger["metadata"]["ownerReferences"][0]["uid"] = "another".into();
    scene.put(Kind::Pod, stranger);
    let mut orphan = pod("orphan", "good");
    orphan["metadata"].as_object_mut().unwrap().remove("ownerReferences");
    orphan["metadata"]["labels"]["agent.kagenti.dev/signature-verified"] = "true".into();
    scene.put(Kind::Pod, orphan);
    let mut written = scene.settle();
    written.sort();
    assert_eq!(written, ["label good-1", "label orphan"]);
    assert!(!scene.is_labelled("orphan") && scene.is_labelled("good-1"));

    let mut again = workload(Kind::Deployment, "good", json!({"spec": {"selector": {"matchLabels": {"app": "good"}}}}));
    again["metadata"]["uid"] = "made-again".into();
    scene.put(Kind::Deployment, again);
    assert_eq!(scene.settle(), ["label good-1"]);
    assert!(!scene.is_labelled("good-1"));
}

/// Ruling 9: whatever its card says, a workload whose Pods do not stay is trusted by nobody.
#[test]
fn a_pod_of_a_job_or_of_a_bare_replica_set_is_never_labelled() {
    for (kind, version) in [(Kind::Job, "batch/v1"), (Kind::ReplicaSet, "apps/v1")] {
        let mut scene = Scene::new("");
        scene.put(kind, workload(kind, "once", json!({})));
        let uid = format!("{}-once", kind.plural());
        let mut runs = pod("once-1", "once");
        runs["metadata"]["ownerReferences"] =
            json!([{"apiVersion": version, "kind": kind.as_str(), "name": "once", "uid": uid, "controller": true}]);
        scene.put(Kind::Pod, runs);
        let mut its = card("once", "True");
        its["spec"]["targetRef"] = json!({"apiVersion": version, "kind": kind.as_str(), "name": "once"});
        its["status"]["targetUID"] = uid.into();
        scene.put(Kind::AgentCard, its);
        scene.level("audit");
        assert_eq!(scene.settle(), ["label good-1"], "{kind:?}");
        assert!(!scene.is_labelled("once-1"), "{kind:?}");
    }
}

/// A status that another operator left, or that is about an earlier spec, proves nothing.
#[test]
fn only_what_was_written_under_our_rules_about_the_present_card_counts() {
    let changes: [fn(&mut Value); 4] = [
        |card| drop(card["status"].as_object_mut().unwrap().remove("targetUID")),
        |card| drop(card["status"].as_object_mut().unwrap().remove("trustedAccount")),
        |card| card["metadata"]["generation"] = 2.into(),
        |card| card["status"]["targetUID"] = "another".into(),
    ];
    for change in changes {
        let mut scene = Scene::new("");
        let mut object = card("good", "True");
        change(&mut object);
        scene.put(Kind::AgentCard, object);
        scene.level("audit");
        assert_eq!(scene.settle(), Vec::<String>::new());
    }
}

/// While no bundle was ever readable: what is open stays open, and what is new is cut off.
#[test]
fn case_109_while_nothing_can_be_said_what_was_concluded_stays() {
    let mut scene = Scene::new("");
    scene.level("enforced");
    scene.settle();
    scene.put(Kind::AgentCard, card("good", "Unknown"));
    assert_eq!(scene.settle(), Vec::<String>::new());
    scene.agent(Kind::Deployment, "new");
    scene.put(Kind::AgentCard, card("new", "Unknown"));
    assert_eq!(scene.settle(), ["create new-signature-policy"]);
    assert!(!scene.is_labelled("new-1") && scene.is_open("good"));
}

#[test]
fn enforced_all_selects_every_pod_and_a_floor_is_the_least() {
    let mut scene = Scene::new("cards: {trustFloor: enforced}\n");
    scene.level("off");
    scene.settle();
    assert_eq!(scene.spec(DENY).unwrap()["podSelector"], json!({"matchLabels": {"kagenti.io/type": "agent"}}));
    scene.level("enforced-all");
    assert_eq!(scene.settle(), [format!("edit {DENY}")]);
    assert_eq!(scene.spec(DENY).unwrap()["podSelector"], json!({}));
    let own = ROWS[0].keys(&scene.cluster, OWN);
    assert!(
        own.iter().all(|key| scene.cluster.plan_at(network_policy::plan::ROW, key, s(100)) == Plan::nothing()),
        "never our own namespace"
    );
}

#[test]
fn cases_129_and_137_addresses_of_the_api_server_come_from_its_slices_and_follow_them() {
    let mut scene = Scene::new("");
    let slice = |address: &str| {
        json!({"metadata": {"name": "kubernetes", "namespace": "default", "uid": "slice"},
        "endpoints": [{"addresses": [address]}], "ports": [{"port": 6443, "protocol": "TCP"}]})
    };
    scene.put(Kind::EndpointSlice, slice("10.0.0.1"));
    scene.level("enforced");
    scene.settle();
    let to = |scene: &Scene, name: &str| scene.spec(name).unwrap()["egress"][0]["to"][0]["ipBlock"]["cidr"].clone();
    assert_eq!((to(&scene, DENY), to(&scene, "bad-signature-policy")), (json!("10.0.0.1/32"), json!("10.0.0.1/32")));
    scene.put(Kind::EndpointSlice, slice("2001:db8::7"));
    let mut written = scene.settle();
    written.sort();
    assert_eq!(written, ["edit bad-signature-policy".to_owned(), format!("edit {DENY}")], "the open one names none");
    assert_eq!(to(&scene, DENY), "2001:db8::7/128");
    let mut tenants = slice("10.9.9.9");
    tenants["metadata"]["namespace"] = "team".into();
    scene.put(Kind::EndpointSlice, tenants);
    assert_eq!(scene.settle(), Vec::<String>::new(), "of a tenant's slice nothing is taken");
}

/// `default` is a namespace as any other: whoever may write slices there says nothing of where the API server is.
#[test]
fn another_slice_of_the_api_server_s_service_in_default_changes_no_policy() {
    let mut scene = Scene::new("");
    scene.cluster.store.set_reach(Kind::ClusterNetworkPolicy, Reach::Listed);
    let slice = |name: &str, address: &str| {
        json!({"metadata": {"name": name, "namespace": "default", "uid": name, "labels": {"kubernetes.io/service-name": "kubernetes"}},
            "endpoints": [{"addresses": [address]}], "ports": [{"port": 443, "protocol": "TCP"}]})
    };
    scene.put(Kind::EndpointSlice, slice("kubernetes", "192.0.2.1"));
    scene.level("enforced");
    scene.settle();
    for name in ["x", "kubernetes-abcde", "kubernetes-v6", "a"] {
        scene.put(Kind::EndpointSlice, slice(name, "198.51.100.77"));
        assert_eq!(scene.settle(), Vec::<String>::new(), "{name}");
    }
    let mut others = scene.objects.iter().filter(|((kind, _), _)| *kind != Kind::EndpointSlice);
    assert!(others.all(|(_, object)| !object.to_string().contains("198.51.100.77")));
}

#[test]
fn what_an_agents_sidecars_need_is_open_to_one_that_is_not_verified_and_names_with_it() {
    let mut scene = Scene::new("keycloak: {url: \"http://keycloak-service.keycloak.svc:8080\"}\n");
    let service = |namespace: &str, name: &str, ports: Value| {
        json!({"metadata": {"name": name, "namespace": namespace, "uid": name},
        "spec": {"selector": {"app": name}, "ports": ports}})
    };
    scene.put(Kind::Service, service("keycloak", "keycloak-service", json!([{"port": 8080, "targetPort": 9000}])));
    let dns = json!([{"port": 53, "protocol": "UDP", "targetPort": 5353}, {"port": 53, "targetPort": "dns-tcp"}]);
    scene.put(Kind::Service, service("kube-system", "kube-dns", dns));
    scene.level("enforced");
    scene.settle();
    let egress = scene.spec("bad-signature-policy").unwrap()["egress"].to_string();
    for wanted in
        [r#""port":9000"#, r#""app":"keycloak-service""#, r#""port":5353"#, r#""port":"dns-tcp""#, "169.254.20.10/32"]
    {
        assert!(egress.contains(wanted), "{wanted}: {egress}");
    }
    assert_eq!(scene.spec(DENY).unwrap().get("egress"), None, "the deny opens none of it");
    assert_eq!(scene.settle(), Vec::<String>::new());
}

/// The name of a headless Service leads to its Pods, which are called at its own port; that of another name leads nowhere that a policy knows.
#[test]
fn what_is_open_to_a_service_goes_by_where_its_name_leads() {
    for (spec, wanted, others) in [
        (json!({}), &[9000][..], &[8080][..]),
        (json!({"clusterIP": "None"}), &[8080, 9000], &[]),
        (json!({"type": "ExternalName", "externalName": "login.example.com"}), &[], &[8080, 9000]),
    ] {
        let mut scene = Scene::new("keycloak: {url: \"http://keycloak-service.keycloak.svc:8080\"}\n");
        let mut service = json!({"metadata": {"name": "keycloak-service", "namespace": "keycloak", "uid": "k"},
            "spec": {"selector": {"app": "keycloak"}, "ports": [{"port": 8080, "targetPort": 9000}]}});
        json_patch::merge(&mut service["spec"], &spec);
        scene.put(Kind::Service, service);
        scene.level("enforced");
        scene.settle();
        let egress = scene.spec("bad-signature-policy").unwrap()["egress"].to_string();
        let is_open = |port: &i32| egress.contains(&format!("\"port\":{port}"));
        assert!(wanted.iter().all(is_open) && !others.iter().any(is_open), "{spec}: {egress}");
        assert_eq!(egress.contains("keycloak"), !wanted.is_empty(), "{spec}: {egress}");
        assert_eq!(scene.settle(), Vec::<String>::new());
    }
}

/// A13: what waits for somebody whom it does not reach stays unready, and nobody would ask it for its card.
#[test]
fn who_does_not_become_ready_behind_the_deny_is_told_of_with_the_ways_out() {
    let mut scene = Scene::new("");
    scene.level("enforced");
    scene.settle();
    let told = |scene: &Scene, name: &str, now: u64| {
        let plan = scene.cluster.plan_at(
            network_policy::plan::ROW,
            &Key::new("team", &format!("{name}-signature-policy")),
            s(now),
        );
        let ops = plan.ops.into_iter().map(|op| match op {
            Op::Report(report) => (report.reason, report.message),
            other => panic!("{other:?}"),
        });
        (ops.collect::<Vec<_>>(), plan.again)
    };
    assert_eq!(told(&scene, "bad", 170), (vec![], Some(s(10))), "looked at again when it is due");
    let (all, _) = told(&scene, "bad", 180);
    let [(reason, message)] = &all[..] else { panic!("{all:?}") };
    assert_eq!(*reason, Reason::NotReadyBehindDeny);
    assert!(message.contains("Deployment bad") && message.contains("cards.restrictiveEgress"), "{message}");
    assert_eq!(told(&scene, "good", 900).0, [], "who is open waits for nobody because of us");
    let mut ready = pod("bad-1", "bad");
    ready["status"]["conditions"] = json!([{"type": "Ready", "status": "True"}]);
    scene.put(Kind::Pod, ready);
    assert_eq!(told(&scene, "bad", 900).0, []);
}

/// Ruling 11: leaving is no secret.
#[test]
fn a_workload_that_is_no_agent_any_more_is_told_of_where_that_opens_it() {
    for (level, is_told) in [("enforced", true), ("enforced-all", false), ("off", false)] {
        let mut scene = Scene::new("");
        scene.level(if level == "off" { "enforced" } else { level });
        scene.settle();
        scene.level(level);
        let more = json!({"spec": {"selector": {"matchLabels": {"app": "bad"}}, "template": {"metadata": {"labels": {"kagenti.io/type": null}}}}});
        scene.put(Kind::Deployment, workload(Kind::Deployment, "bad", more));
        let written = scene.settle();
        assert!(written.contains(&"delete bad-signature-policy".to_owned()), "{level}: {written:?}");
        assert_eq!(scene.told.contains(&Reason::LeftEnforcement), is_told, "{level}");
    }
    // One whose card alone goes is an agent still.
    let mut scene = Scene::new("");
    scene.level("enforced");
    scene.settle();
    scene.lose(Kind::AgentCard, "bad-card");
    assert_eq!(scene.settle(), ["delete bad-signature-policy"]);
    assert!(!scene.told.contains(&Reason::LeftEnforcement));
}

#[test]
fn case_136_pods_of_both_revisions_are_those_of_the_verified_agent() {
    let mut scene = Scene::new("");
    let mut second = replica_set("good-2", "deployments-good");
    second["metadata"]["ownerReferences"][0]["name"] = "good".into();
    scene.put(Kind::ReplicaSet, second);
    let mut newer = pod("good-2-1", "good-2");
    newer["spec"]["serviceAccountName"] = "good".into();
    scene.put(Kind::Pod, newer);
    scene.level("enforced");
    scene.settle();
    assert!(scene.is_labelled("good-1") && scene.is_labelled("good-2-1") && scene.is_open("good"));
    let selector = &scene.spec("good-signature-policy").unwrap()["podSelector"]["matchLabels"];
    assert_eq!(
        *selector,
        json!({"app": "good", "agent.kagenti.dev/signature-verified": "true"}),
        "nothing of one revision"
    );
}

/// Whoever leads then: nothing of enforcement is left, and no card is held up (finalizers are taken off by the controller of cards).
#[test]
fn case_138_what_is_left_goes_when_enforcement_was_switched_off_while_nobody_led() {
    let mut scene = Scene::new("");
    scene.level("enforced");
    scene.settle();
    scene.cluster.forget();
    scene.level("off");
    scene.settle();
    assert!(scene.objects.keys().all(|(kind, _)| *kind != Kind::NetworkPolicy) && !scene.is_labelled("good-1"));
}

/// A policy of the deny's name that is not ours goes by nobody of ours, so nothing of ours waits for it.
#[test]
fn where_the_deny_is_somebody_elses_what_is_ours_goes_all_the_same() {
    let mut scene = Scene::new("");
    scene.put(Kind::NetworkPolicy, json!({"metadata": {"name": DENY, "uid": "theirs"}, "spec": {"podSelector": {}}}));
    scene.level("enforced");
    scene.settle();
    assert!(scene.is_open("good") && scene.spec("bad-signature-policy").is_some());
    assert!(scene.told.contains(&Reason::NameConflict));
    scene.level("off");
    scene.settle();
    let left: Vec<_> = scene.objects.keys().filter(|(kind, _)| *kind == Kind::NetworkPolicy).collect();
    assert!(matches!(&left[..], [(_, name)] if name == DENY), "{left:?}");
    assert!(!scene.is_labelled("good-1"));
}

#[test]
fn what_is_open_cut_off_and_armed_is_counted_for_metrics() {
    let mut scene = Scene::new("");
    let note = |scene: &Scene, name: &str| {
        scene.cluster.plan_at(network_policy::plan::ROW, &Key::new("team", name), s(100)).note
    };
    scene.level("audit");
    assert_eq!((note(&scene, DENY).armed, note(&scene, "good-signature-policy").opened), (None, None));
    scene.level("enforced");
    assert_eq!(note(&scene, DENY).armed, Some(false));
    scene.settle();
    assert_eq!(note(&scene, DENY).armed, Some(true));
    let opened = ["good", "bad"].map(|name| note(&scene, &format!("{name}-signature-policy")).opened);
    assert_eq!(opened, [Some(true), Some(false)]);
}

proptest! {
    /// Off, enforced and back, with the items in any order and the leader gone at any moment: who is verified is never cut, and who is not
    /// is never open while the deny stands.
    #[test]
    fn the_way_there_and_back_cuts_nobody_who_is_verified(order in proptest::collection::vec(any::<prop::sample::Index>(), 60)) {
        let mut scene = Scene::new("");
        for level in ["audit", "enforced", "audit", "off"] {
            scene.level(level);
            for index in &order {
                let keys = scene.keys();
                let key = index.get(&keys).clone();
                scene.step(&key);
                scene.nobody_verified_is_cut();
                prop_assert!(!scene.is_open("bad") && !scene.is_labelled("bad-1"));
                scene.cluster.forget();
            }
            scene.settle();
            scene.nobody_verified_is_cut();
            prop_assert_eq!(scene.spec(DENY).is_some(), level == "enforced");
            prop_assert_eq!(scene.is_labelled("good-1"), level != "off");
        }
        prop_assert!(scene.objects.keys().all(|(kind, _)| *kind != Kind::NetworkPolicy));
    }
}
