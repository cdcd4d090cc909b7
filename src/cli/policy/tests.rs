//! Who is meant by what was written; and what would be cut, from objects to sentences.

use clap::Parser;
use serde_json::{Value, json};

use super::population::Population;
use super::preview::{Objects, Preview, compared, placed, printed, rehearsed, with};
use super::target::{Found, Wanted, absent, find};
use crate::cli::io::Io;
use crate::cli::offline::world::{Facts, World as Settings};
use crate::cli::{Cli, Exit, conclude};
use crate::config::trust::VerifiedPeers;
use crate::domain::trust::TrustLevel;
use crate::store::Kind;

fn pod(namespace: &str, name: &str, labels: &Value, owner: Option<(&str, &str)>) -> Value {
    let owners: Vec<_> = owner
        .into_iter()
        .map(|(kind, name)| json!({"apiVersion": "apps/v1", "kind": kind, "name": name, "controller": true, "uid": format!("{kind}-{name}")}))
        .collect();
    json!({"apiVersion": "v1", "kind": "Pod",
        "metadata": {"namespace": namespace, "name": name, "uid": name, "resourceVersion": "1", "labels": labels, "ownerReferences": owners},
        "spec": {"serviceAccountName": "sa", "containers": [{"name": "c", "image": "i", "ports": [{"name": "http", "containerPort": 8080}]}]},
        "status": {"phase": "Running", "podIPs": [{"ip": format!("10.0.0.{}", name.len())}]}})
}

fn set(namespace: &str, name: &str, labels: &Value) -> Value {
    json!({"apiVersion": "apps/v1", "kind": "StatefulSet",
        "metadata": {"namespace": namespace, "name": name, "uid": format!("StatefulSet-{name}"), "resourceVersion": "1", "generation": 1},
        "spec": {"selector": {"matchLabels": {"app": name}}, "template": {"metadata": {"labels": labels},
            "spec": {"serviceAccountName": "sa", "containers": [{"name": "c", "image": "i"}]}}}})
}

fn everybody() -> Population {
    let mut population = Population::default();
    let service = |name: &str, target: Value| {
        json!({"apiVersion": "v1", "kind": "Service", "metadata": {"namespace": "team", "name": name},
            "spec": {"selector": {"app": "db"}, "ports": [{"name": "sql", "port": 5432, "targetPort": target}]}})
    };
    for object in [
        pod("team", "db-0", &json!({"app": "db"}), Some(("StatefulSet", "db"))),
        pod("team", "db-1", &json!({"app": "db"}), Some(("StatefulSet", "db"))),
        pod("team", "both", &json!({}), None),
        pod("team", "both-0", &json!({}), Some(("StatefulSet", "both"))),
        set("team", "empty", &json!({"app": "empty"})),
        set("team", "db", &json!({"app": "db"})),
        service("data", json!("http")),
        service("data2", json!(9000)),
    ] {
        population.observe(&object, "");
    }
    population
}

/// What is found, in words: kind, name and ports of each Pod.
fn found(text: &str) -> Result<String, String> {
    let population = everybody();
    let settled = population.settle();
    let wanted = Wanted::read(text, "team").map_err(|error| error.to_string())?;
    let found = find(&wanted, &settled, &population).map_err(|error| error.to_string())?;
    Ok(match found {
        None => return Err(absent(&wanted, &settled)),
        Some(Found::Address(address, ports)) => {
            format!("{address} {}", ports.map_or_else(|| "any".to_owned(), |p| p.to_string()))
        }
        Some(Found::Pods { of, pods }) => {
            let ports = |ports: &Option<crate::policy::ports::PortSet>| {
                ports.as_ref().map_or_else(|| "any".to_owned(), ToString::to_string)
            };
            let each: Vec<_> = pods
                .iter()
                .map(|(pod, wanted)| format!("{} {}", settled.world.pods()[*pod].name, ports(wanted)))
                .collect();
            format!("{} {}: {}", of.1, of.2, each.join("; "))
        }
    })
}

#[test]
fn names_kinds_services_and_addresses_are_found() {
    for (text, wanted) in [
        ("db", "StatefulSet db: db-0 any; db-1 any"),
        ("team/db:8080", "StatefulSet db: db-0 8080/TCP; db-1 8080/TCP"),
        ("team/db-0:53/udp", "Pod db-0: db-0 53/UDP"),
        ("team/db-0:http", "Pod db-0: db-0 8080/TCP"),
        ("team/sts/both", "StatefulSet both: both-0 any"),
        ("team/pod/both", "Pod both: both any"),
        ("team/empty", "StatefulSet empty: empty any"),
        ("team/data:5432", "Service data: db-0 8080/TCP; db-1 8080/TCP"),
        ("team/svc/data2:sql", "Service data2: db-0 9000/TCP; db-1 9000/TCP"),
        ("10.0.0.1:443", "10.0.0.1 443/TCP"),
        ("[fd00::1]:53/UDP", "fd00::1 53/UDP"),
        ("fd00::1", "fd00::1 any"),
    ] {
        assert_eq!(found(text).as_deref(), Ok(wanted), "{text}");
    }
}

#[test]
fn what_cannot_be_meant_is_said() {
    for (text, wanted) in [
        ("team/both", "say which: team/statefulset/both, team/pod/both"),
        ("team/bd", "did you mean team/db?"),
        ("team/deployment/db", "no deployment is called team/db"),
        ("elsewhere/db", "namespace elsewhere has no Pods"),
        ("team/db:htpp", "calls a port htpp"),
        ("team/data:80", "it has 5432/TCP"),
        ("team/data:0", "is not a port"),
        ("team/data:1/ICMP", "is not a protocol"),
        ("team/node/x", "node is not a type that makes Pods"),
        ("a/b/c/d", "is not NAMESPACE/NAME"),
        ("team/", "is not NAMESPACE/NAME"),
        ("10.0.0.1:http", "an address has no port called http"),
        ("[fd00::1", "the bracket is not closed"),
    ] {
        let said = found(text).unwrap_err();
        assert!(said.contains(wanted), "{text}: {said}");
    }
}

/// A cluster in which `good` is verified and `bad` is not, a friend calls both, and both call him.
fn cluster() -> Objects {
    let agent = |name: &str| json!({"app": name, "kagenti.io/type": "agent"});
    let card = |name: &str, verified: &str| {
        json!({"apiVersion": "agent.kagenti.dev/v1alpha1", "kind": "AgentCard",
            "metadata": {"namespace": "team", "name": format!("{name}-card"), "uid": format!("card-{name}"), "resourceVersion": "1", "generation": 1},
            "spec": {"targetRef": {"apiVersion": "apps/v1", "kind": "StatefulSet", "name": name}},
            "status": {"targetUID": format!("StatefulSet-{name}"), "trustedAccount": "sa",
                "conditions": [{"type": "Verified", "status": verified, "observedGeneration": 1, "reason": "x", "message": "", "lastTransitionTime": "2026-01-01T00:00:00Z"}]}})
    };
    let namespace = |name: &str| json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name, "uid": name, "resourceVersion": "1"}});
    let slice = json!({"apiVersion": "discovery.k8s.io/v1", "kind": "EndpointSlice",
        "metadata": {"namespace": "default", "name": "kubernetes", "resourceVersion": "1", "uid": "slice", "labels": {"kubernetes.io/service-name": "kubernetes"}},
        "endpoints": [{"addresses": ["192.0.2.1"]}], "ports": [{"port": 6443, "protocol": "TCP"}]});
    let mut job = pod("team", "batch", &agent("batch"), None);
    job["metadata"]["ownerReferences"] =
        json!([{"apiVersion": "batch/v1", "kind": "Job", "name": "batch", "controller": true, "uid": "j"}]);
    vec![
        (Some(Kind::Namespace), namespace("team")),
        (Some(Kind::Namespace), namespace("friends")),
        (Some(Kind::EndpointSlice), slice),
        (Some(Kind::StatefulSet), set("team", "good", &agent("good"))),
        (Some(Kind::StatefulSet), set("team", "bad", &agent("bad"))),
        (Some(Kind::Pod), pod("team", "good-0", &agent("good"), Some(("StatefulSet", "good")))),
        (Some(Kind::Pod), pod("team", "bad-0", &agent("bad"), Some(("StatefulSet", "bad")))),
        (Some(Kind::Pod), job),
        (Some(Kind::Pod), pod("friends", "friend", &json!({}), None)),
        (Some(Kind::AgentCard), card("good", "True")),
        (Some(Kind::AgentCard), card("bad", "False")),
    ]
}

fn settings(with_bundle: bool) -> Settings {
    let facts = Facts {
        platform_file: None,
        feature_gates_path: None,
        server_version: (1, 36),
        spire_driver: false,
        operator_namespace: "kagenti-system".to_owned(),
    };
    let mut settings = Settings::new(&facts).unwrap();
    let file = "cards: {trustDomains: [example.org], trustBundle: {configMap: {name: spire-bundle}}}";
    settings.observe(
        &json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "kagenti-platform-config", "namespace": "kagenti-system"},
            "data": {"config.yaml": if with_bundle { file } else { "{}" }}}),
        "",
    );
    settings.observe(&json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "team"}}), "");
    settings
}

fn lines(preview: &Preview) -> Vec<String> {
    let mut out = Vec::new();
    printed(&mut out, preview, &["cut".to_owned(), "opened".to_owned()]).unwrap();
    String::from_utf8(out).unwrap().lines().map(str::to_owned).collect()
}

fn preview(level: TrustLevel) -> Preview {
    let mut notes = Vec::new();
    let after = rehearsed(&settings(true), &cluster(), ("team", level, None), false, &mut notes).unwrap();
    assert!(notes.is_empty(), "{notes:?}");
    compared("team", &cluster(), &after, level != TrustLevel::EnforcedAll)
}

#[test]
fn before_trust_is_enforced_the_preview_names_what_would_be_cut() {
    let preview = preview(TrustLevel::Enforced);
    let verified: Vec<_> = preview
        .agents
        .iter()
        .map(|agent| (agent.end.name.as_str(), agent.verified_pods, agent.note.is_some()))
        .collect();
    assert_eq!(verified, [("good", 1, false), ("bad", 0, false), ("batch", 0, true)]);
    let cut = |from: &str, to: &str| {
        let found =
            preview.changes.iter().find(|change| change.from.name.contains(from) && change.to.name.contains(to));
        found.map(|change| change.cut.to_string())
    };
    assert_eq!(cut("good", "friend"), None, "who is verified may send");
    assert_eq!(cut("friend", "good").as_deref(), Some("every port"), "but is reached by verified agents alone");
    assert_eq!(cut("bad", "friend").as_deref(), Some("every port"));
    assert_eq!(cut("friend", "bad").as_deref(), Some("every port"));
    assert_eq!(cut("bad", "good").as_deref(), Some("every port"));
    assert_eq!(cut("bad", "outside").as_deref(), Some("every port"));
    assert_eq!(cut("bad", "192.0.2.1").unwrap(), "1-6442/TCP, 6444-65535/TCP, */UDP, */SCTP", "but for the API server");
    let friend = preview.changes.iter().find(|change| change.from.name == "friend" && change.to.name == "bad").unwrap();
    let ingress = friend.after[0].ingress.as_ref().unwrap();
    assert!(ingress.isolated_by.contains(&"team/drawbridge-default-deny".to_owned()), "{ingress:?}");
    let lines = lines(&preview);
    assert!(
        lines.iter().any(
            |line| line.contains("team/statefulset/bad from friends/pod/friend: cut every port (isolated by team/")
        ),
        "{lines:#?}"
    );
}

/// Whom it sends to has to be named; and the rule says by what.
#[test]
fn where_only_what_is_declared_is_open_the_preview_cuts_the_rest_and_names_the_declaration() {
    let mut objects = cluster();
    let service = |name: &str| {
        json!({"apiVersion": "v1", "kind": "Service", "metadata": {"namespace": "friends", "name": name, "uid": name, "resourceVersion": "1"},
            "spec": {"selector": {"app": name}, "ports": [{"port": 80, "targetPort": 8080}]}})
    };
    for name in ["friend", "stranger"] {
        objects.push((Some(Kind::Service), service(name)));
        objects.push((Some(Kind::Pod), pod("friends", &format!("{name}-0"), &json!({"app": name}), None)));
    }
    objects.push((
        Some(Kind::ConfigMap),
        json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"namespace": "team", "name": "authproxy-routes", "uid": "r", "resourceVersion": "1"},
            "data": {"routes.yaml": "- {host: friend.friends, target_audience: x}\n- {host: '*.friends'}\n"}}),
    ));
    let mut notes = Vec::new();
    let switch = ("team", TrustLevel::Enforced, Some(VerifiedPeers::Declared));
    let after = rehearsed(&settings(true), &objects, switch, false, &mut notes).unwrap();
    assert!(notes.len() == 1 && notes[0].contains("route *.friends is a pattern"), "{notes:?}");
    let preview = compared("team", &objects, &after, true);
    let cut = |to: &str| {
        let found = preview.changes.iter().find(|change| change.from.name == "good" && change.to.name == to);
        found.map(|change| change.cut.to_string()).unwrap_or_default()
    };
    assert_eq!(
        cut("friend-0"),
        "1-8079/TCP, 8081-65535/TCP, */UDP, */SCTP",
        "but for the port that the Service leads to"
    );
    assert_eq!(cut("stranger-0"), "every port");
    let egress = |to: &str| {
        let change = preview.changes.iter().find(|change| change.from.name == "good" && change.to.name == to).unwrap();
        change.after[0].egress.clone().unwrap()
    };
    let rule = &egress("friend-0").rules[0];
    assert_eq!(rule.declared.as_deref(), Some("route friend.friends in ConfigMap authproxy-routes"));
    assert_eq!(egress("stranger-0").undeclared, ["team/good-signature-policy"]);
    assert!(egress("friend-0").undeclared.is_empty());
}

#[test]
fn a_cluster_in_which_nobody_can_become_verified_is_told_so() {
    let mut notes = Vec::new();
    rehearsed(&settings(false), &cluster(), ("team", TrustLevel::Enforced, None), false, &mut notes).unwrap();
    assert!(notes.len() == 1 && notes[0].contains("no trust bundle is configured"), "{notes:?}");
}

#[test]
fn where_nothing_is_enforced_nothing_would_be_cut() {
    for level in [TrustLevel::Off, TrustLevel::Audit] {
        let preview = preview(level);
        assert!(preview.changes.is_empty(), "{:?}", lines(&preview));
    }
}

/// What is passed over would pass for something that cuts nothing.
#[test]
fn a_policy_of_another_kind_or_api_is_refused_and_not_passed_over() {
    for (kind, version, says) in [
        ("NetworkPolicy", "projectcalico.org/v3", "NetworkPolicy own is of \"projectcalico.org/v3\""),
        ("NetworkPolicy", "extensions/v1beta1", "NetworkPolicy own is of \"extensions/v1beta1\""),
        ("NetworkPolicy", "networking.k8s.io/v1", "no usable kubeconfig"),
        ("ClusterNetworkPolicy", "policy.networking.k8s.io/v1alpha2", "no usable kubeconfig"),
        (
            "ClusterNetworkPolicy",
            "policy.networking.k8s.io/v1alpha3",
            "only NetworkPolicy of networking.k8s.io/v1 and ClusterNetworkPolicy of policy.networking.k8s.io/v1alpha2 are judged",
        ),
        ("AdminNetworkPolicy", "policy.networking.k8s.io/v1alpha1", "AdminNetworkPolicy own is of "),
        ("CiliumNetworkPolicy", "cilium.io/v2", "CiliumNetworkPolicy own is of "),
        ("ConfigMap", "v1", "no NetworkPolicy and no ClusterNetworkPolicy in -"),
    ] {
        let input = json!({"apiVersion": version, "kind": kind, "metadata": {"name": "own"}}).to_string();
        let (mut stdin, mut out, mut err) = (input.as_bytes(), Vec::new(), Vec::new());
        let mut io = Io { stdin: &mut stdin, out: &mut out, err: &mut err, colour: false };
        let words = ["drawbridge", "policy", "preview", "--apply", "-", "--kubeconfig", "/nowhere/at-all"];
        let result = Cli::try_parse_from(words).unwrap().command.run(&mut io);
        assert_eq!(conclude(result, &mut io), Exit::Usage, "{kind} {version}");
        let err = String::from_utf8(err).unwrap();
        assert!(err.contains(says), "{kind} {version}: {err}");
    }
}

/// As those that the cluster has: in their tier before NetworkPolicies, whatever `metadata.namespace` says, the later one of a name in place of the earlier.
#[test]
fn a_cluster_network_policy_of_a_file_is_judged_where_the_cluster_serves_it() {
    let policy = |name: &str, action: &str| {
        json!({"apiVersion": "policy.networking.k8s.io/v1alpha2", "kind": "ClusterNetworkPolicy", "metadata": {"name": name},
            "spec": {"tier": "Admin", "priority": 10,
                "subject": {"namespaces": {"matchLabels": {"kubernetes.io/metadata.name": "team"}}},
                "ingress": [{"action": action, "from": [{"namespaces": {"matchLabels": {"kubernetes.io/metadata.name": "friends"}}}]}]}})
    };
    let previewed = |there: &[Value], given: Value| {
        let mut before = cluster();
        before.extend(there.iter().map(|policy| (Some(Kind::ClusterNetworkPolicy), policy.clone())));
        let mut after = before.clone();
        after.extend(with(&[(Kind::ClusterNetworkPolicy, given)], "team", true).unwrap());
        compared("team", &before, &after, false)
    };
    let of_friend = |preview: &Preview| {
        let change = preview.changes.iter().find(|change| change.from.name == "friend" && change.to.name == "bad");
        change.map(|change| (change.cut.to_string(), !change.opened.is_empty()))
    };
    let cut = previewed(&[], policy("fence", "Deny"));
    assert_eq!(of_friend(&cut), Some(("every port".to_owned(), false)), "{:?}", lines(&cut));
    assert!(cut.unseen.is_empty(), "{:?}", cut.unseen);
    let opened = previewed(&[policy("fence", "Deny")], policy("fence", "Accept"));
    assert!(of_friend(&opened).is_some_and(|(_, opened)| opened), "{:?}", lines(&opened));
    let refused = with(&[(Kind::ClusterNetworkPolicy, policy("fence", "Deny"))], "team", false).unwrap_err();
    assert!(refused.to_string().contains("does not serve policy.networking.k8s.io/v1alpha2"), "{refused}");
}

#[test]
fn a_policy_gets_the_namespace_and_metadata_that_are_none_are_left_to_its_reader() {
    for (metadata, wanted) in [
        (json!({"name": "own"}), json!({"name": "own", "namespace": "team"})),
        (json!({"name": "own", "namespace": "other"}), json!({"name": "own", "namespace": "other"})),
        (Value::Null, json!({"namespace": "team"})),
        (json!("own"), json!("own")),
    ] {
        assert_eq!(placed(&json!({"kind": "NetworkPolicy", "metadata": metadata}), "team")["metadata"], wanted);
    }
}
