//! Quarantine and release, by the policies that stand after each single write.

use super::*;
use crate::policy::network_policy::{Direction, NetworkPolicy};
use crate::policy::pod::labels;

const QUARANTINE: &str = "drawbridge-quarantine";

impl Scene {
    /// The level, and who is in quarantine.
    pub(super) fn hold(&mut self, level: &str, who: Option<&str>) {
        let mut object =
            json!({"metadata": {"name": "team", "uid": "team", "labels": {"agent.kagenti.dev/trust": level}}});
        if let Some(who) = who {
            object["metadata"]["annotations"] = json!({"agent.kagenti.dev/quarantine": who});
        }
        self.put(Kind::Namespace, object);
    }

    /// Policies that select the Pod, and the ways that they open.
    pub(super) fn ways(&self, pod: &str) -> (usize, usize) {
        let pod = labels(&self.objects[&(Kind::Pod, pod.to_owned())]);
        let policies = self.objects.iter().filter(|((kind, _), _)| *kind == Kind::NetworkPolicy);
        let read: Vec<_> = policies.map(|(_, object)| NetworkPolicy::read(object, "team").unwrap()).collect();
        let selecting: Vec<_> = read.iter().filter(|policy| policy.selects.matches(&pod)).collect();
        let rules =
            |direction| selecting.iter().map(|policy| policy.rules(direction).unwrap_or_default().len()).sum::<usize>();
        (selecting.len(), Direction::ALL.into_iter().map(rules).sum())
    }

    /// The Pod fails, and its object stays.
    fn ends(&mut self, pod: &str) {
        let mut object = self.objects[&(Kind::Pod, pod.to_owned())].clone();
        object["status"]["phase"] = "Failed".into();
        self.put(Kind::Pod, object);
    }

    fn label(&self, pod: &str) -> Option<&str> {
        self.objects[&(Kind::Pod, pod.to_owned())]["metadata"]["labels"]["agent.kagenti.dev/quarantined"].as_str()
    }

    /// What a person would compare before and after.
    fn state(&self) -> BTreeMap<(Kind, String), Value> {
        let mut all = self.objects.clone();
        all.retain(|(kind, _), _| matches!(kind, Kind::Pod | Kind::NetworkPolicy));
        for object in all.values_mut() {
            let metadata = object["metadata"].as_object_mut().unwrap();
            metadata.retain(|key, _| !matches!(key.as_str(), "resourceVersion" | "uid"));
        }
        all
    }
}

#[test]
fn who_is_in_quarantine_is_cut_off_from_everybody_and_release_gives_back_what_was() {
    for level in ["off", "audit", "enforced", "enforced-all"] {
        let mut scene = Scene::new("");
        scene.put(
            Kind::EndpointSlice,
            json!({"metadata": {"name": "kubernetes", "namespace": "default", "uid": "slice"},
            "endpoints": [{"addresses": ["10.0.0.1"]}], "ports": [{"port": 6443, "protocol": "TCP"}]}),
        );
        scene.hold(level, None);
        scene.settle();
        let before = scene.state();
        scene.hold(level, Some("good, nobody"));
        scene.settle();
        assert_eq!(scene.ways("good-1").1, 0, "{level}: {:#?}", scene.objects);
        assert!(scene.ways("good-1").0 > 0 && !scene.is_labelled("good-1"), "{level}");
        assert_eq!((scene.label("good-1"), scene.label("bad-1")), (Some("good"), None), "{level}");
        assert!(scene.told.contains(&Reason::Quarantined), "{level}");
        if level.starts_with("enforced") {
            assert!(scene.ways("bad-1").1 > 0, "{level}: others keep what they need");
        }
        assert_eq!(scene.settle(), Vec::<String>::new(), "{level}: at rest nothing is written");
        scene.hold(level, None);
        scene.settle();
        assert_eq!(scene.state(), before, "{level}");
    }
}

#[test]
fn a_namespace_in_quarantine_lets_nobody_in_or_out_whoever_made_the_pod() {
    for level in ["off", "enforced", "enforced-all"] {
        let mut scene = Scene::new("");
        scene.hold(level, None);
        scene.settle();
        let before = scene.state();
        let plain = json!({"metadata": {"name": "plain", "uid": "plain", "labels": {"kagenti.io/type": "tool"}},
            "spec": {"containers": [{"name": "a"}]}, "status": {"phase": "Running"}});
        scene.put(Kind::Pod, plain);
        scene.hold(level, Some("*"));
        scene.settle();
        for pod in ["good-1", "bad-1", "plain"] {
            let (selecting, ways) = scene.ways(pod);
            assert!(selecting > 0 && ways == 0, "{level} {pod}: {:#?}", scene.objects);
        }
        scene.hold(level, None);
        scene.settle();
        scene.lose(Kind::Pod, "plain");
        assert_eq!(scene.state(), before, "{level}");
    }
}

/// A tenant takes the labels off by which its workload selects a Pod, and it is nobody's: it stays where it is.
#[test]
fn a_pod_that_its_workload_let_go_stays_in_quarantine_until_the_workload_is_released() {
    let mut scene = Scene::new("");
    scene.hold("enforced", Some("good"));
    scene.settle();
    let mut pod = scene.objects[&(Kind::Pod, "good-1".to_owned())].clone();
    pod["metadata"].as_object_mut().unwrap().remove("ownerReferences");
    pod["metadata"]["labels"]["app"] = "other".into();
    scene.put(Kind::Pod, pod);
    assert_eq!(scene.settle(), Vec::<String>::new());
    assert_eq!((scene.label("good-1"), scene.ways("good-1").1), (Some("good"), 0));
    scene.hold("enforced", Some("bad"));
    scene.settle();
    assert_eq!(scene.label("good-1"), None);
}

/// What an agent may reach that is not verified, its policy opens for all Pods with the labels by which its workload selects; these labels a tenant can
/// put on a Pod in quarantine, and another workload may select by the same from the start.
#[test]
fn no_policy_of_another_agent_opens_a_pod_in_quarantine() {
    for level in ["enforced", "enforced-all"] {
        let mut scene = Scene::new("");
        scene.put(
            Kind::EndpointSlice,
            json!({"metadata": {"name": "kubernetes", "namespace": "default", "uid": "slice"},
            "endpoints": [{"addresses": ["10.0.0.1"]}], "ports": [{"port": 6443, "protocol": "TCP"}]}),
        );
        let same = json!({"spec": {"selector": {"matchLabels": {"app": "good"}}}});
        scene.put(Kind::Deployment, workload(Kind::Deployment, "twin", same));
        scene.card("twin", false);
        scene.hold(level, None);
        scene.settle();
        let before = scene.state();
        let free = scene.ways("bad-1");
        scene.hold(level, Some("good"));
        scene.settle();
        assert_eq!((scene.label("good-1"), scene.ways("good-1").1), (Some("good"), 0), "{level}: the twin's");
        let mut pod = scene.objects[&(Kind::Pod, "good-1".to_owned())].clone();
        pod["metadata"].as_object_mut().unwrap().remove("ownerReferences");
        pod["metadata"]["labels"]["app"] = "bad".into();
        scene.put(Kind::Pod, pod);
        assert_eq!(scene.settle(), Vec::<String>::new(), "{level}");
        assert_eq!((scene.label("good-1"), scene.ways("good-1").1), (Some("good"), 0), "{level}: relabelled");
        assert_eq!(scene.ways("bad-1"), free, "{level}: others keep what they need");
        scene.hold(level, None);
        scene.settle();
        let policies = |state: BTreeMap<(Kind, String), Value>| {
            state.into_iter().filter(|((kind, _), _)| *kind == Kind::NetworkPolicy).collect::<Vec<_>>()
        };
        assert_eq!(policies(scene.state()), policies(before), "{level}: release gives back what was");
    }
}

/// Nobody takes a label off a Pod that has ended, such as one of a Job or one that was evicted, and it may lie there for weeks.
#[test]
fn a_pod_that_has_ended_holds_up_no_release() {
    for (level, who) in [("off", "*"), ("enforced", "*"), ("enforced-all", "*"), ("enforced", "good"), ("off", "good")]
    {
        let mut scene = Scene::new("");
        scene.put(Kind::Pod, pod("good-2", "good"));
        scene.hold(level, None);
        scene.settle();
        let before = scene.spec(DENY).cloned();
        scene.hold(level, Some(who));
        scene.settle();
        assert_eq!(scene.label("good-2"), Some("good"), "{level} {who}");
        scene.ends("good-2");
        scene.settle();
        assert!(scene.spec(QUARANTINE).is_some() && scene.ways("good-1").1 == 0, "{level} {who}: others are held on");
        scene.hold(level, None);
        scene.settle();
        assert_eq!(scene.label("good-2"), Some("good"), "{level} {who}: nobody needs to touch it");
        assert_eq!((scene.spec(QUARANTINE), scene.spec(DENY)), (None, before.as_ref()), "{level} {who}");
    }
}

/// In our own namespace, and in those of the cluster itself, an annotation holds nobody.
#[test]
fn neither_the_operator_nor_the_cluster_is_ever_in_quarantine() {
    let mut scene = Scene::new("");
    for name in [OWN, "kube-system"] {
        let held = json!({"agent.kagenti.dev/quarantine": "*"});
        scene.put(Kind::Namespace, json!({"metadata": {"name": name, "uid": name, "annotations": held}}));
        let keys = ROWS[0].keys(&scene.cluster, name);
        assert!(
            keys.iter().all(|key| scene.cluster.plan_at(network_policy::plan::ROW, key, s(100)) == Plan::nothing()),
            "{name}"
        );
    }
}

#[test]
fn what_a_policy_of_somebody_else_opens_of_an_agent_that_is_cut_off_is_told() {
    let foreign = |selector: Value, direction: &str, rule: Value| json!({"metadata": {"name": "theirs", "uid": "theirs"}, "spec": {"podSelector": selector, "policyTypes": ["Ingress", "Egress"], direction: [rule]}});
    for (policy, told) in [
        (foreign(json!({}), "egress", json!({})), true),
        (foreign(json!({"matchLabels": {"app": "bad"}}), "ingress", json!({"ports": [{"port": 80}]})), true),
        (foreign(json!({"matchLabels": {"app": "good"}}), "ingress", json!({})), false),
        (
            json!({"metadata": {"name": "theirs", "uid": "theirs"}, "spec": {"podSelector": {}, "policyTypes": ["Ingress", "Egress"]}}),
            false,
        ),
    ] {
        let mut scene = Scene::new("");
        scene.put(Kind::NetworkPolicy, policy.clone());
        scene.hold("enforced", None);
        scene.settle();
        assert_eq!(scene.told.contains(&Reason::PolicyOverridden), told, "{policy}");
    }
}

/// Orders that are tried: each is a story of several hundred steps. `make test-long` tries as many as a property has elsewhere.
fn orders() -> ProptestConfig {
    ProptestConfig::with_cases(if std::env::var_os("DRAWBRIDGE_LONG").is_some() { 256 } else { 64 })
}

proptest! {
    #![proptest_config(orders())]

    /// Into quarantine and out, in any order of the items, with the leader gone at any moment and Pods that end: whoever carries the label, and where
    /// trust is enforced everybody, is selected by some policy; in the end nothing opens who is held, and nothing is left when nobody is.
    #[test]
    fn no_pod_falls_between_two_policies(
        order in proptest::collection::vec(any::<prop::sample::Index>(), 60),
        level in 0..3_usize,
        ends in (0..6_usize, 0..60_usize),
    ) {
        let level = ["off", "enforced", "enforced-all"][level];
        let mut scene = Scene::new("");
        scene.put(Kind::Pod, pod("good-2", "good"));
        scene.hold(level, None);
        scene.settle();
        for (at, who) in [Some("good"), Some("*"), Some("good"), None, Some("bad"), None].into_iter().enumerate() {
            scene.hold(level, who);
            for (step, index) in order.iter().enumerate() {
                if (at, step) == ends {
                    scene.ends("good-2");
                }
                let keys = scene.keys();
                let key = index.get(&keys).clone();
                scene.step(&key);
                for pod in ["good-1", "bad-1"] {
                    let selecting = scene.ways(pod).0;
                    let is_free = level == "off" && scene.label(pod).is_none();
                    prop_assert!(is_free || selecting > 0, "{} {:?} {:#?}", pod, who, scene.objects);
                }
                scene.cluster.forget();
            }
            scene.settle();
            for pod in ["good-1", "bad-1"] {
                let is_held = who.is_some_and(|who| who == "*" || pod.starts_with(who));
                prop_assert!(!is_held || scene.ways(pod).1 == 0);
                prop_assert_eq!(is_held, scene.label(pod).is_some());
            }
            prop_assert_eq!(scene.spec(QUARANTINE).is_some(), who.is_some());
        }
        prop_assert!(scene.spec(QUARANTINE).is_none());
    }
}
