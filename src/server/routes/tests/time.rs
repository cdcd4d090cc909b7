//! What a review costs, and when it is given up. No verdict depends on how fast the machine is.

use parking_lot::{Condvar, Mutex};

use super::*;

/// What this thread has worked so far. Time that the machine gave to others is not in it.
fn worked() -> Duration {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap();
    Duration::from_nanos(text.split(' ').next().unwrap().parse().unwrap())
}

/// All of a review but the sockets, on this thread.
fn decided(body: &[u8], snapshot: &Snapshot) -> Answer {
    let request = review::parse(body, review::Phase::Mutate).unwrap();
    let verdict = crate::admission::evaluate(&request, snapshot);
    Answer::review(review::API_VERSION, &request.uid, &verdict).unwrap()
}

#[test]
fn a4_the_cost_of_many_keys_is_linear() {
    let snapshot = snapshots().load().unwrap();
    let mut spent = Vec::new();
    for count in [10_000_u32, 40_000] {
        let labels: serde_json::Map<String, Value> = (0..count).map(|i| (format!("l{i}"), json!("v"))).collect();
        let env: Vec<Value> = (0..count).map(|i| json!({"name":format!("E{i}"),"value":"v"})).collect();
        let containers: Vec<Value> = (0..keys::CONTAINERS_MOST)
            .map(|i| json!({"name":format!("c{i}"),"ports":[{"containerPort": 8000 + i}]}))
            .collect();
        let mut pod = json!({"metadata":{"name":"p","labels":labels},"spec":{"containers":containers}});
        pod["metadata"]["labels"]["kagenti.io/type"] = json!("agent");
        pod["spec"]["containers"][0]["env"] = json!(env);
        let body = body_of("u-1", &pod);
        // The best of five: caches are shared with whatever else runs.
        let mut best = Duration::MAX;
        for _ in 0..5 {
            let begun = worked();
            assert_eq!(decided(&body, &snapshot).http, StatusCode::OK);
            best = best.min(worked() - begun);
        }
        spent.push(best);
    }
    assert!(spent[1] < spent[0] * 10, "four times the input, quadratic would be sixteen: {spent:?}");
}

/// A review of an object of KAOS with that spec; with a stored one, its update.
fn of_kaos(kind: &str, spec: &Value, old: Option<&Value>) -> Vec<u8> {
    let object = |spec: &Value| json!({"apiVersion": "kaos.tools/v1alpha1", "kind": kind, "metadata": {"name": "a", "namespace": "team1"}, "spec": spec});
    let body = String::from_utf8(body_of("u-1", &object(spec))).unwrap();
    let of = format!(r#"{{"group":"kaos.tools","version":"v1alpha1","kind":"{kind}"}}"#);
    let body = body.replace(r#"{"group":"","version":"v1","kind":"Pod"}"#, &of);
    let Some(old) = old else { return body.into_bytes() };
    let update = format!(r#""operation":"UPDATE","oldObject":{},"#, object(old));
    body.replace(r#""operation":"CREATE","#, &update).into_bytes()
}

/// Bodies of this size are decided where they are read, and everybody else waits: a list that is written to cost much costs a few times what the tree
/// of it does, which is all that a list costs that nobody reads. Comparing its items with each other would be hundreds of times.
#[test]
fn a4_no_list_of_a_tenants_costs_more_than_its_length() {
    const TIMES: u32 = 16;
    let snapshot = snapshots().load().unwrap();
    let cost = |body: &[u8]| {
        assert!(body.len() <= INLINE, "{}", body.len());
        // The best of five: caches are shared with whatever else runs.
        let once = || {
            let begun = worked();
            let request = review::parse(body, review::Phase::Validate).unwrap();
            let verdict = crate::admission::evaluate(&request, &snapshot);
            assert_ne!(verdict.reason, Reason::NotRegistered);
            assert_eq!(Answer::review(review::API_VERSION, &request.uid, &verdict).unwrap().http, StatusCode::OK);
            worked() - begun
        };
        (0..5).map(|_| once()).min().unwrap()
    };
    // As many items as there is room for, in half of it: an update brings them twice.
    let many = |item: &dyn Fn(usize) -> Value| {
        let (mut items, mut bytes) = (Vec::new(), 0);
        while bytes < INLINE / 2 - 4096 {
            items.push(item(items.len()));
            bytes += items[items.len() - 1].to_string().len() + 1;
        }
        json!(items)
    };
    let (twin, name) = (many(&|_| json!("a")), many(&|number| json!(format!("n{number}"))));
    let variable = many(&|_| json!({"name": "A"}));
    let agent = |more: Value| {
        let mut spec = json!({"modelAPI": "m", "model": "x"});
        json_patch::merge(&mut spec, &more);
        ("Agent", spec)
    };
    let proxy = |config: Value| ("ModelAPI", json!({"mode": "Proxy", "proxyConfig": config}));
    let main = |list: &str, items: &Value| json!({"podSpec": {"containers": [{ "name": "agent", list: items }]}});
    for (what, items, (kind, spec)) in [
        ("one tool server", &twin, agent(json!({"mcpServers": twin}))),
        ("tool servers", &name, agent(json!({"mcpServers": name}))),
        ("one peer", &twin, agent(json!({"agentNetwork": {"access": twin}}))),
        ("one variable", &variable, agent(json!({"container": {"env": variable}}))),
        ("one variable of the Pod", &variable, agent(main("env", &variable))),
        ("one model", &twin, proxy(json!({"models": twin}))),
        ("models", &name, proxy(json!({"models": name}))),
        ("tools", &variable, ("MCPServer", json!({"runtime": "x", "config": {"env": variable}}))),
    ] {
        let mut unread = json!({"modelAPI": "m", "model": "x", "nobody": items});
        let control = cost(&of_kaos("Agent", &unread, None));
        let created = cost(&of_kaos(kind, &spec, None));
        assert!(created < control * TIMES, "{what}: {created:?}, and {control:?} where nobody reads them");
        let mut before = spec.clone();
        (unread["replicas"], before["replicas"]) = (json!(1), json!(1));
        let control = cost(&of_kaos("Agent", &json!({"modelAPI": "m", "nobody": items}), Some(&unread)));
        let updated = cost(&of_kaos(kind, &spec, Some(&before)));
        assert!(updated < control * TIMES, "{what}, updated: {updated:?}, and {control:?} where nobody reads them");
    }
}

#[tokio::test(start_paused = true)]
async fn a15_a_body_that_comes_too_slowly_is_answered_before_the_caller_gives_up() {
    let fixture = fixture(allow);
    for (timeout, patience) in [("1s", 0.9), ("10s", 9.0), ("99s", 27.0), ("nonsense", 9.0), ("500ms", 0.4)] {
        let request = Request::post(format!("{}?x=1&timeout={timeout}", keys::PATH_INJECT))
            .header(CONTENT_TYPE, "application/json")
            .body(trickle(b" ", Duration::from_millis(10)))
            .unwrap();
        let begun = Instant::now();
        let (status, text) = fixture.send(request).await;
        assert_eq!(status, StatusCode::REQUEST_TIMEOUT);
        assert!(text.starts_with(b"DeadlineExceeded: "), "{text:?}");
        let took = begun.elapsed().as_secs_f64();
        assert!((patience..patience + 0.05).contains(&took), "{timeout}: {took}");
    }
}

/// Closed until the test has its answers: then they were given while every decision was still waiting.
static DOOR: (Mutex<bool>, Condvar) = (Mutex::new(false), Condvar::new());

#[tokio::test]
async fn a15_a_decision_that_takes_too_long_is_refused_with_its_uid_in_time() {
    fn waits(_: &review::Request<'_>, _: &Snapshot) -> Verdict {
        let mut open = DOOR.0.lock();
        DOOR.1.wait_while(&mut open, |open| !*open);
        Verdict::skipped(Reason::NothingToInject)
    }
    let fixture = fixture(waits);
    let mut body = body_of("u-1", &json!({}));
    body.resize(INLINE + 1, b' ');
    let request = || {
        Request::post(format!("{}?timeout=1s", keys::PATH_INJECT))
            .header(CONTENT_TYPE, "application/json")
            .body(Body::from(body.clone()))
            .unwrap()
    };
    let answers = futures::future::join_all((0..=LARGE_AT_ONCE).map(|_| fixture.send(request()))).await;
    *DOOR.0.lock() = true;
    DOOR.1.notify_all();
    let codes: Vec<Value> = answers
        .iter()
        .map(|(_, bytes)| serde_json::from_slice::<Value>(bytes).unwrap()["response"].take())
        .inspect(|response| assert_eq!((&response["uid"], &response["allowed"]), (&json!("u-1"), &json!(false))))
        .map(|response| response["status"]["code"].clone())
        .collect();
    assert_eq!(codes.iter().filter(|code| **code == 504).count(), LARGE_AT_ONCE);
    assert_eq!(codes.iter().filter(|code| **code == 429).count(), 1, "one too many was shed at once");
    assert_eq!((fixture.shed("deadline"), fixture.shed("review_limit")), (LARGE_AT_ONCE as u64, 1));
}

/// Seven bytes of text may become seven hundred of a tree, so there has to be room for the tree before it is made. The clock stands
/// still: however long the machine takes for seven megabytes, no deadline comes before the answer.
#[tokio::test(start_paused = true)]
async fn mend_04_a_review_whose_tree_there_is_no_room_for_is_refused_before_it_is_read() {
    fn never(_: &review::Request<'_>, _: &Snapshot) -> Verdict {
        Verdict::denied(Denial::new(Reason::BadReview, 400, "it was read", "look at the bound"))
    }
    let fixture = fixture(never);
    let member = "{\"name\":\"A\"},";
    let dense = |bytes: usize| member.repeat(bytes / member.len()).trim_end_matches(',').to_owned();
    let body = |text: &str| String::from_utf8(body_of("u-1", &json!(["DENSE"]))).unwrap().replace("\"DENSE\"", text);
    let refused = fixture.review(body(&dense(6 * 1024 * 1024)).into_bytes()).await;
    assert_eq!((&refused["uid"], &refused["status"]["code"]), (&json!("u-1"), &json!(429)));
    let read = fixture.review(body(&dense(128 * 1024)).into_bytes()).await;
    assert_eq!(read["status"]["code"], 400, "one that fits is read");
    let long = format!("\"{}\"", "x".repeat(6 * 1024 * 1024));
    assert_eq!(fixture.review(body(&long).into_bytes()).await["status"]["code"], 400, "text alone makes no tree");
    let advised = advised(&fixture, body(&dense(6 * 1024 * 1024)).as_bytes()).await;
    let_through(&advised, Reason::Overloaded);

    // A list within a list needs neither a brace nor a comma, and takes room for four elements all the same.
    let nested = format!("{}0{},", "[".repeat(60), "]".repeat(60));
    let nested = |bytes: usize| nested.repeat(bytes / nested.len()).trim_end_matches(',').to_owned();
    let refused = fixture.review(body(&nested(6 * 1024 * 1024)).into_bytes()).await;
    assert_eq!((&refused["uid"], &refused["status"]["code"]), (&json!("u-1"), &json!(429)));
    let read = fixture.review(body(&nested(128 * 1024)).into_bytes()).await;
    assert_eq!(read["status"]["code"], 400, "one that fits is read");
    let letters = format!("\"{}\"", "[".repeat(6 * 1024 * 1024));
    assert_eq!(fixture.review(body(&letters).into_bytes()).await["status"]["code"], 400, "nor do brackets in a text");
}

/// A Pod whose Job becomes known while its review is decided is let in; one whose Job never does is refused, half a second later.
#[tokio::test(start_paused = true)]
async fn answers_03_a_job_that_is_as_new_as_its_pod_costs_no_refusal() {
    let evaluate: Evaluate = |_, snapshot| match snapshot.view.server_version {
        (1, 33) => Verdict::denied(Denial::new(Reason::OwnerPending, 409, "Job x is not known", "wait")),
        _ => Verdict::skipped(Reason::NothingToInject),
    };
    let cell = snapshots();
    let metrics = Metrics::new();
    let router = Reviews::new(cell.clone(), metrics.clone()).decided_by(evaluate).router();
    let fixture = Fixture { router, metrics };
    let begun = Instant::now();
    let refused = fixture.review(body_of("u-1", &json!({}))).await;
    assert_eq!((&refused["allowed"], &refused["status"]["code"]), (&json!(false), &json!(409)));
    let waited = begun.elapsed();
    assert!((Duration::from_millis(500)..Duration::from_millis(600)).contains(&waited), "{waited:?}");

    let begun = Instant::now();
    let comes = async {
        tokio::time::sleep(Duration::from_millis(100)).await;
        let newer = Snapshot::clone(&cell.load().unwrap());
        cell.store(Snapshot { view: ClusterView { server_version: (1, 34), ..newer.view.clone() }, ..newer });
    };
    let (answer, ()) = tokio::join!(fixture.review(body_of("u-2", &json!({}))), comes);
    assert_eq!(answer["allowed"], true, "{answer}");
    assert!(begun.elapsed() < Duration::from_millis(200));
    // What was waited for is counted once, as it ended.
    assert_eq!((fixture.decisions(Reason::OwnerPending), fixture.decisions(Reason::NothingToInject)), (1, 1));
}

/// The account of a new workload is waited for, as its Job is; a namespace in which it does not come is held up once, not with every Pod.
#[tokio::test(start_paused = true)]
async fn answers_03_an_account_that_is_made_for_a_new_pod_costs_no_refusal() {
    let evaluate: Evaluate = |_, snapshot| match snapshot.view.server_version {
        (1, 33) => Verdict::denied(Denial::new(Reason::OwnerPending, 409, "Job x is not known", "wait")),
        (1, 34) => Verdict::denied(Denial::new(Reason::ServiceAccountPending, 409, "x is being made", "wait")),
        _ => Verdict::skipped(Reason::NothingToInject),
    };
    let cell = snapshots();
    let metrics = Metrics::new();
    let router = Reviews::new(cell.clone(), metrics.clone()).decided_by(evaluate).router();
    let fixture = Fixture { router, metrics };
    let becomes = async |version, after: u64| {
        tokio::time::sleep(Duration::from_millis(after)).await;
        let newer = Snapshot::clone(&cell.load().unwrap());
        cell.store(Snapshot { view: ClusterView { server_version: version, ..newer.view.clone() }, ..newer });
    };
    let take = async |uid: &str, coming: &[((u32, u32), u64)]| {
        let begun = Instant::now();
        let comes = async {
            for (version, after) in coming {
                becomes(*version, *after).await;
            }
        };
        let (answer, ()) = tokio::join!(fixture.review(body_of(uid, &json!({}))), comes);
        (answer["allowed"] == true, begun.elapsed().as_millis())
    };
    // First the Job becomes known, then its account: later than a Job would be waited for.
    let (allowed, took) = take("u-1", &[((1, 34), 300), ((1, 35), 1200)]).await;
    assert!(allowed && (1500..1600).contains(&took), "{took}");
    // It does not come: one review is held, those after it are not, and a while later one is again.
    becomes((1, 34), 0).await;
    for (uid, pause, held) in [("u-2", 0, 3000..3100), ("u-3", 0, 0..10), ("u-4", 30, 3000..3100)] {
        tokio::time::sleep(Duration::from_secs(pause)).await;
        let (allowed, took) = take(uid, &[]).await;
        assert!(!allowed && held.contains(&took), "{uid}: {took}");
    }
    assert_eq!((fixture.decisions(Reason::OwnerPending), fixture.decisions(Reason::ServiceAccountPending)), (0, 3));
}

/// Pods that say they are of a Job that there is none of cost their own namespace the places to wait in, and no other.
#[tokio::test(start_paused = true)]
async fn answers_03_reviews_of_one_namespace_leave_those_of_others_places_to_wait_in() {
    let fixture = fixture(|_, _| Verdict::denied(Denial::new(Reason::OwnerPending, 409, "Job x is not known", "wait")));
    let loud = futures::future::join_all((0..64).map(|_| fixture.review(body_of("u-1", &json!({})))));
    let other = async {
        tokio::time::sleep(Duration::from_millis(10)).await;
        let body = String::from_utf8(body_of("u-2", &json!({}))).unwrap().replace("team1", "team2");
        let begun = Instant::now();
        assert_eq!(fixture.review(body.into_bytes()).await["status"]["code"], 409);
        begun.elapsed()
    };
    let (refused, held) = tokio::join!(loud, other);
    assert!(refused.iter().all(|answer| answer["status"]["code"] == 409));
    assert!((Duration::from_millis(500)..Duration::from_millis(600)).contains(&held), "{held:?}");
}
