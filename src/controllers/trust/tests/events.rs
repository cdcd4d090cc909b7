//! What a change enqueues is enough: whoever looks only at that ends where one ends who looks at everything.

use super::*;

/// One thing that happens to somebody's objects.
#[derive(Debug, Clone)]
enum Event {
    Level(&'static str, Option<&'static str>),
    Card(&'static str, Option<&'static str>),
    /// The Deployment goes, and perhaps comes back as another one.
    Deployment(&'static str, Option<&'static str>),
    ReplicaSet(&'static str, bool),
    /// A Pod as somebody made it: with these labels, under that account.
    Pod(&'static str, [bool; 2], &'static str),
    Policy(&'static str),
}

fn events() -> impl Strategy<Value = Event> {
    let who = || prop::sample::select(vec!["good", "bad"]);
    let maybe = |values: Vec<&'static str>| prop::option::of(prop::sample::select(values));
    prop_oneof![
        (
            prop::sample::select(vec!["off", "audit", "enforced", "enforced-all"]),
            maybe(vec!["good", "bad", "good, bad", "*"])
        )
            .prop_map(|(level, who)| Event::Level(level, who)),
        (who(), maybe(vec!["True", "False", "Unknown"])).prop_map(|(who, verified)| Event::Card(who, verified)),
        (who(), maybe(vec!["first", "second"])).prop_map(|(who, uid)| Event::Deployment(who, uid)),
        (who(), any::<bool>()).prop_map(|(who, there)| Event::ReplicaSet(who, there)),
        (who(), any::<[bool; 2]>(), prop::sample::select(vec!["good", "bad", "default"]))
            .prop_map(|(who, labels, account)| Event::Pod(who, labels, account)),
        prop::sample::select(vec![DENY, "drawbridge-quarantine", "good-signature-policy"]).prop_map(Event::Policy),
    ]
}

impl Scene {
    fn happens(&mut self, event: &Event) {
        match event {
            Event::Level(level, who) => {
                let mut object =
                    json!({"metadata": {"name": "team", "uid": "team", "labels": {"agent.kagenti.dev/trust": level}}});
                if let Some(who) = who {
                    object["metadata"]["annotations"] = json!({"agent.kagenti.dev/quarantine": who});
                }
                self.put(Kind::Namespace, object);
            }
            Event::Card(who, Some(verified)) => self.put(Kind::AgentCard, card(who, verified)),
            Event::Card(who, None) => self.gone(Kind::AgentCard, &format!("{who}-card")),
            Event::Deployment(who, Some(uid)) => {
                let uid = if *uid == "first" { format!("deployments-{who}") } else { format!("second-{who}") };
                let more = json!({"metadata": {"uid": uid}, "spec": {"selector": {"matchLabels": {"app": who}}}});
                self.put(Kind::Deployment, workload(Kind::Deployment, who, more));
            }
            Event::Deployment(who, None) => self.gone(Kind::Deployment, who),
            Event::ReplicaSet(who, true) => self.put(Kind::ReplicaSet, replica_set(who, &format!("deployments-{who}"))),
            Event::ReplicaSet(who, false) => self.gone(Kind::ReplicaSet, who),
            Event::Pod(who, [verified, quarantined], account) => {
                let mut object = pod(&format!("{who}-1"), who);
                object["spec"]["serviceAccountName"] = (*account).into();
                let labels = object["metadata"]["labels"].as_object_mut().unwrap();
                if *verified {
                    labels.insert("agent.kagenti.dev/signature-verified".into(), "true".into());
                }
                if *quarantined {
                    labels.insert("agent.kagenti.dev/quarantined".into(), (*who).into());
                }
                self.put(Kind::Pod, object);
            }
            Event::Policy(name) => self.gone(Kind::NetworkPolicy, name),
        }
    }

    fn gone(&mut self, kind: Kind, name: &str) {
        if self.objects.contains_key(&(kind, name.to_owned())) {
            self.lose(kind, name);
        }
    }

    /// Plans what changes enqueued, and what a plan itself asked to have looked at again, until neither writes anything.
    fn follow(&mut self) {
        let mut again = BTreeSet::new();
        for _ in 0..40 {
            let mut due = std::mem::take(&mut self.due);
            due.append(&mut std::mem::take(&mut again));
            let mut wrote = false;
            for (row, key) in due {
                let plan = ROWS[row].planned(&mut self.cluster, &key, s(100));
                if plan.again.is_some() {
                    again.insert((row, key));
                }
                wrote |= !self.carry_out(plan).is_empty();
            }
            if !wrote && self.due.is_empty() {
                return;
            }
        }
        panic!("it never ends");
    }
}

/// It was there before anything was enforced, under a name that ends as ours do; whoever opens others by it later is heard.
#[test]
fn a_policy_of_somebody_else_that_is_called_as_ours_is_followed_by_whom_it_opens() {
    let mut scene = Scene::new("");
    let theirs = |egress: Value| {
        json!({"metadata": {"name": "old-signature-policy", "uid": "theirs"},
            "spec": {"podSelector": {}, "policyTypes": ["Egress"], "egress": egress}})
    };
    scene.put(Kind::NetworkPolicy, theirs(json!([])));
    scene.level("enforced");
    scene.follow();
    assert!(scene.spec(DENY).is_some() && !scene.told.contains(&Reason::PolicyOverridden), "{:?}", scene.told);
    scene.put(Kind::NetworkPolicy, theirs(json!([{}])));
    scene.follow();
    assert!(scene.told.contains(&Reason::PolicyOverridden), "{:?}", scene.told);
}

proptest! {
    #[test]
    fn nothing_is_left_to_be_done_by_who_follows_what_is_enqueued(story in prop::collection::vec(events(), 1..25)) {
        let mut scene = Scene::new("");
        scene.follow();
        for event in &story {
            scene.happens(event);
            scene.follow();
            let objects = scene.objects.clone();
            let left = scene.settle();
            prop_assert!(left.is_empty(), "after {:?}: {:?}", event, left);
            prop_assert_eq!(objects, scene.objects.clone());
        }
    }
}
