//! Cases 32 to 61 of the card controller, without sockets.

use super::*;

fn after(cluster: &mut Cluster, object: &Value) -> (Vec<Reason>, Value) {
    settle(cluster, object, &Facts::default(), s(100))
}

#[test]
fn case_032_033_034_whom_a_card_is_of_has_to_be_there_and_an_agent() {
    for (what, object, deployment_seen, reason) in [
        ("no such workload", card(json!({"spec": {"targetRef": {"name": "x"}}})), None, "WorkloadNotFound"),
        (
            "no agent",
            card(json!({})),
            Some(deployment(json!({"metadata": {"labels": {"kagenti.io/type": "tool"}}}))),
            "NotAgentWorkload",
        ),
        ("unknown kind", card(json!({"spec": {"targetRef": {"kind": "Machine"}}})), None, "WorkloadError"),
        ("malformed version", card(json!({"spec": {"targetRef": {"apiVersion": "a/b/c"}}})), None, "WorkloadError"),
        ("no target", card(json!({"spec": {"targetRef": null}})), None, "WorkloadError"),
    ] {
        for bound in [false, true] {
            let mut cluster = cluster();
            let mut object = object.clone();
            if bound {
                object["spec"]["identityBinding"] = json!({});
            }
            deployment_seen.iter().for_each(|seen| cluster.see(Kind::Deployment, seen.clone()));
            cluster.see(Kind::AgentCard, object.clone());
            let (told, stored) = after(&mut cluster, &object);
            assert_eq!(judged(&stored, "Synced"), ("False", reason), "{what}");
            assert_eq!(judged(&stored, "Bound"), if bound { ("False", "AgentNotFound") } else { ("", "") }, "{what}");
            assert_eq!(
                stored["status"]["bindingStatus"]["bound"],
                if bound { json!(false) } else { Value::Null },
                "{what}"
            );
            assert_eq!(told.len(), 1 + usize::from(bound), "{what}: {told:?}");
            assert_eq!(plan(&cluster), (Plan::nothing(), vec![]), "{what}: nothing twice");
        }
    }
}

/// Case 31 as the rulings leave it: nothing has to be taken back when a card goes, so it needs no finalizer, and the first look asks already.
#[test]
fn case_031_a_new_card_is_asked_about_at_once_and_gets_no_finalizer() {
    let mut cluster = cluster();
    let facts = answer(&cluster, s(100), Ok(json!({"name": "A"})));
    let (_, object) = settle(&mut cluster, &card(json!({})), &facts, s(100));
    assert_eq!(object["metadata"].get("finalizers"), None);
    assert_eq!(judged(&object, "Synced"), ("True", "SyncSucceeded"));
}

/// Case 61: what is noted at the workload by us, or was by the Go operator, is no news of its card.
#[test]
fn case_061_what_is_noted_at_a_workload_writes_nothing_and_asks_nobody_else() {
    let mut cluster = cluster();
    let facts = answer(&cluster, s(100), Ok(json!({"name": "A"})));
    settle(&mut cluster, &card(json!({})), &facts, s(100));
    let before = plan_at(&cluster, &facts, s(110));
    assert_eq!(before.0.ops, []);
    let noted = json!({"agentcard.kagenti.dev/bundle-hash": "ab", "verified-state.agent.kagenti.dev/w-deployment-card": "true"});
    cluster.see(Kind::Deployment, deployment(json!({"metadata": {"annotations": noted}})));
    assert_eq!(plan_at(&cluster, &facts, s(110)), before);
}

#[test]
fn case_035_036_060_nobody_is_asked_before_the_workload_is_ready() {
    let mut cluster = cluster();
    cluster.see(
        Kind::Deployment,
        deployment(json!({"status": {"conditions": [{"type": "Available", "status": "False"}]}})),
    );
    let (told, stored) = after(&mut cluster, &card(json!({})));
    assert_eq!((judged(&stored, "Synced"), told), (("False", "WorkloadNotReady"), vec![]));
    assert_eq!(plan(&cluster), (Plan::nothing(), vec![]));
    // Case 60: its readiness concerns the card at once.
    cluster.see(Kind::Deployment, deployment(json!({})));
    assert_eq!(cluster.touched_of(ROW, Kind::Deployment, &Key::new("team", "w")), [Key::new("team", CARD)]);
    assert_eq!(plan(&cluster).1.len(), 1);
}

/// A kind that is not built in says of itself that it is ready.
#[test]
fn case_037_a_sandbox_is_ready_when_its_condition_says_so() {
    for (ready, asked) in [("True", 1), ("False", 0)] {
        let mut cluster = cluster();
        cluster.store.set_reach(Kind::Sandbox, Reach::Listed);
        let sandbox = json!({
            "metadata": {"name": "w", "namespace": "team", "uid": "sandbox-w", "resourceVersion": "13",
                "labels": {"kagenti.io/type": "agent", "protocol.kagenti.io/a2a": ""}},
            "spec": {"podTemplate": {"metadata": {"labels": {"kagenti.io/type": "agent"}}, "spec": {"containers": []}}},
            "status": {"conditions": [{"type": "Ready", "status": ready}]},
        });
        cluster.see(Kind::Sandbox, sandbox);
        let owner = json!([{"apiVersion": "agents.x-k8s.io/v1alpha1", "kind": "Sandbox", "name": "w", "uid": "sandbox-w", "controller": true}]);
        cluster.see(Kind::Pod, pod("w", "", "10.244.0.9", json!({"metadata": {"ownerReferences": owner}})));
        let target = json!({"apiVersion": "agents.x-k8s.io/v1alpha1", "kind": "Sandbox", "name": "w"});
        cluster.see(Kind::AgentCard, card(json!({"spec": {"targetRef": target}})));
        assert_eq!(plan(&cluster).1.len(), asked, "Ready={ready}");
    }
}

#[test]
fn case_038_039_048_protocol_and_service() {
    let labels = |labels: Value| deployment(json!({"metadata": {"labels": labels}}));
    for (what, seen, reason, words) in [
        ("no protocol", labels(json!({"protocol.kagenti.io/a2a": null})), "NoProtocol", "protocol.kagenti.io/"),
        (
            "mcp only",
            labels(json!({"protocol.kagenti.io/a2a": null, "protocol.kagenti.io/mcp": ""})),
            "FetchFailed",
            "unsupported protocol: mcp",
        ),
    ] {
        let mut cluster = cluster();
        cluster.see(Kind::Deployment, seen);
        let (_, stored) = after(&mut cluster, &card(json!({})));
        assert_eq!(judged(&stored, "Synced"), ("False", reason), "{what}");
        assert!(stored["status"]["conditions"][0]["message"].as_str().unwrap().contains(words), "{what}: {stored}");
    }
    let mut cluster = empty();
    cluster.see(Kind::Deployment, deployment(json!({})));
    cluster.see(Kind::AgentCard, card(json!({})));
    let (_, stored) = after(&mut cluster, &card(json!({})));
    assert_eq!(judged(&stored, "Synced"), ("False", "ServiceNotFound"));
    // Before Services have been read nothing is said.
    cluster.store.set_reach(Kind::Service, Reach::Unknown);
    cluster.see(Kind::AgentCard, card(json!({})));
    assert_eq!(plan(&cluster), (Plan::nothing(), vec![]));
}

/// Section 5.6: the name of such a Service is somebody else's, and would be published.
#[test]
fn an_agent_whose_service_leads_to_another_name_is_not_asked() {
    let of = |more: Value| {
        let mut cluster = cluster();
        let mut service = service(json!([{"name": "http", "port": 8000}]));
        json_patch::merge(&mut service["spec"], &more);
        cluster.see(Kind::Service, service);
        cluster
    };
    let mut away = of(json!({"type": "ExternalName", "externalName": "evil.example.com"}));
    assert!(plan(&away).1.is_empty());
    let (_, stored) = after(&mut away, &card(json!({})));
    assert_eq!(judged(&stored, "Synced"), ("False", "ServiceNotFound"));
    assert!(stored["status"]["conditions"][0]["message"].as_str().unwrap().contains("ExternalName"), "{stored}");
    for asked in [json!({}), json!({"clusterIP": "None"})] {
        assert_eq!(plan(&of(asked)).1.len(), 1);
    }
}

#[test]
fn case_042_057_a_card_is_shown_and_the_same_card_writes_nothing() {
    let mut cluster = cluster();
    let document = |signature: &str| {
        json!({"name": "A", "version": "1", "url": "http://0.0.0.0:8000/rpc",
        "skills": [{"id": "say"}, {"id": "sing"}], "signatures": [{"protected": "e30", "signature": signature}]})
    };
    let facts = answer(&cluster, s(100), Ok(document("one")));
    let (told, object) = settle(&mut cluster, &card(json!({})), &facts, s(100));
    assert_eq!(told, []);
    let status = &object["status"];
    assert_eq!(
        (&status["card"]["name"], &status["card"]["url"]),
        (&json!("A"), &json!("http://w.team.svc.cluster.local:8000"))
    );
    assert_eq!(status["card"].get("signatures"), None, "they are of the document as served");
    assert_eq!(
        (&status["protocol"], &status["targetUID"], &status["skills"]),
        (&json!("a2a"), &json!("deployments-w"), &json!("say,sing"))
    );
    assert_eq!(status["targetRef"], json!({"apiVersion": "apps/v1", "kind": "Deployment", "name": "w"}));
    assert_eq!(
        status["endpoints"],
        json!([{"transport": "JSONRPC", "url": "http://w.team.svc.cluster.local:8000/rpc"}])
    );
    assert_eq!(
        (judged(&object, "Synced"), judged(&object, "Ready")),
        (("True", "SyncSucceeded"), ("True", "ReadyToServe"))
    );
    assert_eq!((&status["lastSyncTime"], status["observedGeneration"].as_i64()), (&json!("$now"), Some(1)));
    // Signed anew at every answer, the card is the same.
    for round in 2..12 {
        let facts = answer(&cluster, s(100 * round), Ok(document(&round.to_string())));
        let (plan, asks) = plan_at(&cluster, &facts, s(100 * round));
        assert_eq!((plan.ops, asks.len()), (vec![], 1));
    }
    let facts = answer(&cluster, s(2000), Ok(json!({"name": "B"})));
    let (told, object) = settle(&mut cluster, &object, &facts, s(2000));
    assert_eq!(told, [Reason::CardContentChanged]);
    assert_eq!(
        object["status"]["card"],
        json!({"name": "B", "url": "http://w.team.svc.cluster.local:8000"}),
        "nothing of the first"
    );
    assert_eq!((object["status"].get("skills"), object["status"].get("endpoints")), (None, None));
    assert_eq!(plan_at(&cluster, &facts, s(2000)).0.ops, []);
}

#[test]
fn case_049_a2a_is_chosen_whatever_else_is_spoken() {
    let mut cluster = cluster();
    let labels = json!({"protocol.kagenti.io/aaa": "", "protocol.kagenti.io/mcp": ""});
    cluster.see(Kind::Deployment, deployment(json!({"metadata": {"labels": labels}})));
    for second in 0..100 {
        assert_eq!(plan_at(&cluster, &Facts::default(), s(second)).1.len(), 1);
    }
}

/// Case 54, E4: a refusal that is worded anew each time is written once; the last good card stays and says so.
#[test]
fn case_054_a_failure_keeps_the_card_and_is_told_once() {
    let mut cluster = cluster();
    let facts = answer(&cluster, s(100), Ok(json!({"name": "A"})));
    let (_, object) = settle(&mut cluster, &card(json!({})), &facts, s(100));
    let facts = answer(&cluster, s(200), Err(refused(Reason::AnswerRefused, &"no, number 1".repeat(200))));
    let (told, object) = settle(&mut cluster, &object, &facts, s(200));
    assert_eq!(told, [Reason::FetchFailed]);
    assert_eq!(
        (judged(&object, "Synced"), judged(&object, "Reachable")),
        (("False", "FetchFailed"), ("False", "AnswerRefused"))
    );
    assert_eq!((judged(&object, "Ready"), &object["status"]["card"]["name"]), (("False", "FetchFailed"), &json!("A")));
    for condition in object["status"]["conditions"].as_array().unwrap() {
        assert!(condition["message"].as_str().unwrap().len() <= 1024);
    }
    let facts = answer(&cluster, s(300), Err(refused(Reason::AnswerRefused, "no, number 2")));
    assert_eq!(plan_at(&cluster, &facts, s(300)).0.ops, []);
    // Another reason is another judgement of the reach, and no other failure.
    let facts = answer(&cluster, s(400), Err(refused(Reason::AgentUnreachable, "gone")));
    let (told, object) = settle(&mut cluster, &object, &facts, s(400));
    assert_eq!((told, judged(&object, "Reachable")), (vec![], ("False", "AgentUnreachable")));
    let synced = object["status"]["conditions"].as_array().unwrap().iter().find(|one| one["type"] == "Synced").unwrap();
    assert!(synced["message"].as_str().unwrap().starts_with("gone"), "what fails now is said: {synced}");
    let facts = answer(&cluster, s(500), Ok(json!({"name": "A"})));
    let (told, object) = settle(&mut cluster, &object, &facts, s(500));
    assert_eq!((told, judged(&object, "Synced").0), (vec![], "True"), "the same card is no change");
}

#[test]
fn case_058_059_periods_have_bounds() {
    let next = |period: Value| {
        let mut cluster = cluster();
        cluster.see(Kind::AgentCard, card(json!({"spec": {"syncPeriod": period}})));
        let (mut least, mut most) = (s(1_000_000), s(0));
        for now in (0..200).map(|step| s(step * 1_777)) {
            let again = plan_at(&cluster, &Facts::default(), now).0.again.unwrap();
            (least, most) = (least.min(again), most.max(again));
        }
        assert!(least >= Duration::from_millis(100));
        most
    };
    for (period, seconds) in [
        (json!("garbage"), 30),
        (json!(""), 30),
        (Value::Null, 30),
        (json!("0s"), 5),
        (json!("-5s"), 5),
        (json!("1ns"), 5),
        (json!("5m"), 300),
        (json!("10s"), 10),
    ] {
        let most = next(period.clone()).as_secs_f64();
        assert!(most <= f64::from(seconds) * 1.1 && most >= f64::from(seconds) * 0.7, "{period}: {most}");
    }
    assert!(next(json!("9000h")).as_secs() <= 86_400 * 11 / 10);
}

#[test]
fn a_refresh_is_asked_for_once_and_recorded() {
    let mut cluster = cluster();
    let facts = answer(&cluster, s(100), Ok(json!({"name": "A"})));
    let (_, object) = settle(&mut cluster, &card(json!({})), &facts, s(100));
    let (_, asks) = plan_at(&cluster, &facts, s(101));
    assert!(facts.fresh(&asks[0]).is_some(), "nothing new is asked at rest");
    let mut wished = object;
    wished["metadata"]["annotations"] = json!({"agentcard.kagenti.dev/refresh": "now"});
    cluster.see(Kind::AgentCard, wished.clone());
    let key = Key::new("team", CARD);
    // Not twice within five seconds.
    let (plan, asks) = plan_at(&cluster, &facts, s(102));
    assert!(facts.fresh(&asks[0]).is_some());
    assert!(plan.again.unwrap() <= s(3));
    cluster.note::<Cards>(NAME, &key, plan.note);
    let (plan, asks) = plan_at(&cluster, &facts, s(105));
    assert!(plan.ops.is_empty() && facts.fresh(&asks[0]).is_none(), "asked anew");
    cluster.note::<Cards>(NAME, &key, plan.note);
    let published = facts.get(&asks[0].question).unwrap().value.clone();
    let facts = Facts::default()
        .with(asks[0].question.clone(), Fact { value: published, asked: s(105), at: s(106), failures: 0 });
    let (_, object) = settle(&mut cluster, &wished, &facts, s(106));
    assert_eq!(object["status"]["handledRefresh"], "now");
    let (plan, asks) = plan_at(&cluster, &facts, s(107));
    assert!(plan.ops.is_empty() && facts.fresh(&asks[0]).is_some() && plan.note.refresh.is_none());
}

/// What was said of a workload that was away is not said of one that is there again, even where its agent does not answer.
#[test]
fn nothing_is_left_of_a_workload_that_was_away_once_it_is_back() {
    let mut cluster = cluster();
    let object = card(json!({"spec": {"identityBinding": {}}}));
    cluster.see(Kind::AgentCard, object.clone());
    cluster.see(
        Kind::Deployment,
        deployment(json!({"metadata": {"resourceVersion": "80", "labels": {"kagenti.io/type": null}}})),
    );
    let (_, object) = settle(&mut cluster, &object, &Facts::default(), s(100));
    assert_eq!(judged(&object, "Bound"), ("False", "AgentNotFound"));
    cluster.see(Kind::Deployment, deployment(json!({"metadata": {"resourceVersion": "90"}})));
    let facts = answer(&cluster, s(200), Err(refused(Reason::AnswerRefused, "HTTP status 404")));
    let (_, object) = settle(&mut cluster, &object, &facts, s(200));
    assert_eq!((judged(&object, "Bound"), object["status"].get("bindingStatus")), (("", ""), None), "{object}");
    assert_eq!(judged(&object, "Synced"), ("False", "FetchFailed"));
    assert_eq!(plan_at(&cluster, &facts, s(200)).0.ops, []);
}

#[test]
fn of_several_cards_of_one_workload_one_counts() {
    let mut cluster = cluster();
    let marks =
        json!({"labels": {"app.kubernetes.io/managed-by": "drawbridge"}, "creationTimestamp": "2025-01-01T00:00:00Z"});
    let automatic = card(json!({"metadata": marks}));
    let manual =
        card(json!({"metadata": {"name": "mine", "uid": "card-mine", "creationTimestamp": "2026-01-01T00:00:00Z"}}));
    cluster.see(Kind::AgentCard, automatic.clone());
    cluster.see(Kind::AgentCard, manual);
    let (told, stored) = after(&mut cluster, &automatic);
    assert_eq!((judged(&stored, "Synced"), told.len()), (("False", "DuplicateCard"), 0));
    let touched = cluster.touched_of(ROW, Kind::AgentCard, &Key::new("team", "mine"));
    assert_eq!(touched.len(), 2, "both are looked at");
}
