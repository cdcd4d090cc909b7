//! Who is let in, how often the API server is asked, and how often anybody may ask.

use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use http::{Request, Response};
use k8s_openapi::api::authentication::v1::TokenReviewStatus;
use kube::Client;
use kube::client::Body;
use serde_json::{Value, json};
use tokio::time::Instant;

use super::super::caller::{Stranger, bearer, caller, plausible};
use super::super::judged::Judged;
use super::super::metrics::CatalogueMetrics;
use super::super::rate::{CALLERS, Rate, Rates};
use super::super::tokens::{AT_ONCE, BAD, GOOD, REQUESTS, REVIEWS, Refusal, Tokens};

/// Seconds since 1970 in these tests.
pub(super) const NOW: i64 = 1_800_000_000;

/// A token that says that of itself.
pub(super) fn token(claims: &Value) -> String {
    format!("e30.{}.c2ln", URL_SAFE_NO_PAD.encode(claims.to_string()))
}

/// A token of ServiceAccount `me` of that namespace.
pub(super) fn of(namespace: &str) -> String {
    token(
        &json!({"aud": ["drawbridge-catalogue"], "exp": NOW + 600, "sub": format!("system:serviceaccount:{namespace}:me")}),
    )
}

/// An API server that takes a token for what it says of itself, unless it says `bad`; and counts.
pub(super) fn api_server(asked: Arc<AtomicUsize>, delay: Duration) -> Client {
    let service = tower::service_fn(move |request: Request<Body>| {
        let asked = asked.clone();
        async move {
            asked.fetch_add(1, Ordering::Relaxed);
            tokio::time::sleep(delay).await;
            assert_eq!(request.uri().path(), "/apis/authentication.k8s.io/v1/tokenreviews");
            let bytes = request.into_body().collect_bytes().await.unwrap();
            let review: Value = serde_json::from_slice(&bytes).unwrap();
            assert_eq!(review["spec"]["audiences"], json!(["drawbridge-catalogue"]));
            let payload = review["spec"]["token"].as_str().unwrap().split('.').nth(1).unwrap().to_owned();
            let claims: Value = serde_json::from_slice(&URL_SAFE_NO_PAD.decode(payload).unwrap()).unwrap();
            let (code, answer) = match (claims.get("bad"), claims.get("code")) {
                (Some(_), _) => (201, json!({"status": {"authenticated": false, "error": "no"}})),
                (_, Some(code)) => (
                    u16::try_from(code.as_u64().unwrap()).unwrap(),
                    json!({"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure", "message": "no", "reason": "No", "code": code}),
                ),
                _ => (
                    201,
                    json!({"status": {"authenticated": true, "audiences": claims["aud"], "user": {"username": claims["sub"]}}}),
                ),
            };
            let answer = Response::builder().status(code).body(Body::from(answer.to_string().into_bytes())).unwrap();
            Ok::<_, tower::BoxError>(answer)
        }
    });
    Client::new(service, "default")
}

#[test]
fn a_token_comes_in_one_way() {
    for (header, wanted) in [
        (Some("Bearer a.b.c"), Some("a.b.c")),
        (Some("bearer  a.b.c "), Some("a.b.c")),
        (Some("Basic a"), None),
        (Some("Bearer"), None),
        (Some(""), None),
        (None, None),
    ] {
        assert_eq!(bearer(header).ok(), wanted, "{header:?}");
    }
}

/// The API server is asked about nothing that it could not take.
#[test]
fn what_a_token_says_of_itself_only_saves_a_question() {
    let account = "system:serviceaccount:team:me";
    let table = [
        ("as it should be", json!({"aud": ["drawbridge-catalogue"], "exp": NOW + 1, "sub": account}), true),
        ("one audience", json!({"aud": "drawbridge-catalogue", "exp": NOW + 1, "sub": account}), true),
        ("one of many", json!({"aud": ["x", "drawbridge-catalogue"], "exp": NOW + 1, "sub": account}), true),
        (
            "for the API server",
            json!({"aud": ["https://kubernetes.default.svc"], "exp": NOW + 1, "sub": account}),
            false,
        ),
        ("for nobody", json!({"exp": NOW + 1, "sub": account}), false),
        ("expired", json!({"aud": ["drawbridge-catalogue"], "exp": NOW, "sub": account}), false),
        ("for ever", json!({"aud": ["drawbridge-catalogue"], "sub": account}), false),
        ("a person's", json!({"aud": ["drawbridge-catalogue"], "exp": NOW + 1, "sub": "alice"}), false),
        ("of nobody", json!({"aud": ["drawbridge-catalogue"], "exp": NOW + 1}), false),
        ("no object", json!(7), false),
    ];
    for (what, claims, wanted) in table {
        assert_eq!(plausible(&token(&claims), NOW).is_ok(), wanted, "{what}");
    }
    for odd in ["", "a", "a.b", "a.b.c", "a.b.c.d", "..", "e30.e30.", "e30.!!.c", &"x".repeat(9_000)] {
        assert_eq!(plausible(odd, NOW), Err(Stranger::Implausible), "{odd:.20}");
    }
    let good = of("team");
    assert!(plausible(&format!("{good}.more"), NOW).is_err());
}

#[test]
fn a_caller_is_whom_the_api_server_names_and_nobody_else() {
    let said = |authenticated: bool, audiences: Value, user: &str| {
        let status = json!({"authenticated": authenticated, "audiences": audiences, "user": {"username": user}});
        let status: TokenReviewStatus = serde_json::from_value(status).unwrap();
        caller(&status).map(|caller| format!("{}/{}", caller.namespace, caller.name))
    };
    let ours = || json!(["drawbridge-catalogue"]);
    assert_eq!(said(true, ours(), "system:serviceaccount:team:me"), Ok("team/me".to_owned()));
    for (authenticated, audiences, user, wanted) in [
        (false, ours(), "system:serviceaccount:team:me", Stranger::Unknown),
        // An API server that does not look at audiences names none.
        (true, json!([]), "system:serviceaccount:team:me", Stranger::Unknown),
        (true, json!(["https://kubernetes.default.svc"]), "system:serviceaccount:team:me", Stranger::Unknown),
        (true, ours(), "alice", Stranger::NoAccount),
        (true, ours(), "system:serviceaccount:team", Stranger::NoAccount),
        (true, ours(), "system:serviceaccount::me", Stranger::NoAccount),
        (true, ours(), "system:serviceaccount:team:", Stranger::NoAccount),
        (true, ours(), "", Stranger::NoAccount),
    ] {
        assert_eq!(said(authenticated, audiences.clone(), user), Err(wanted), "{authenticated} {audiences} {user}");
    }
    assert_eq!(caller(&TokenReviewStatus::default()), Err(Stranger::Unknown));
}

#[test]
fn each_has_a_purse_and_the_table_of_them_is_bounded() {
    let second = Duration::from_secs(1);
    let mut rates = Rates::new(Rate { burst: 3.0, per_second: 0.5 });
    let may = |rates: &mut Rates<u32>, who, now, count: usize| (0..count).filter(|_| rates.may(who, now)).count();
    assert_eq!(may(&mut rates, 1, second, 9), 3);
    assert_eq!(may(&mut rates, 2, second, 9), 3, "another one's");
    for (now, wanted) in [(2, 0), (3, 1), (4, 0), (60, 3), (10_000, 3)] {
        assert_eq!(may(&mut rates, 1, second * now, 9), wanted, "{now}");
    }
    assert_eq!(may(&mut rates, 1, second, 9), 0, "a clock that goes back fills nothing");
    let mut rates = Rates::new(Rate { burst: 3.0, per_second: 0.5 });
    assert!((0..CALLERS).all(|who| rates.may(u32::try_from(who).unwrap(), second)));
    assert!(!rates.may(u32::MAX, second), "nobody gets a second purse by filling the table");
    assert!(rates.may(7, second), "who is known goes on");
    assert!(rates.may(u32::MAX, second * 60), "full purses say nothing");
}

/// Everything about the clock in one place: it runs only when a test says so.
#[tokio::test(start_paused = true)]
async fn the_api_server_is_asked_once_in_a_while_about_a_token() {
    let asked = Arc::new(AtomicUsize::new(0));
    let tokens = Tokens::new(api_server(asked.clone(), Duration::ZERO), CatalogueMetrics::default());
    let from: IpAddr = "10.0.0.1".parse().unwrap();
    let ask = async |token: &str, now: i64| tokens.caller(Some(&format!("Bearer {token}")), from, now).await;
    let good = of("team");
    for _ in 0..5 {
        assert_eq!(&*ask(&good, NOW).await.unwrap().namespace, "team");
    }
    assert_eq!(asked.load(Ordering::Relaxed), 1, "remembered");
    tokio::time::sleep(GOOD).await;
    ask(&good, NOW + 30).await.unwrap();
    assert_eq!(asked.load(Ordering::Relaxed), 2, "a token that was taken back counts no longer than that");
    // One that ends sooner is not remembered for longer than it says.
    let short =
        token(&json!({"aud": ["drawbridge-catalogue"], "exp": NOW + 5, "sub": "system:serviceaccount:team:me"}));
    ask(&short, NOW).await.unwrap();
    assert_eq!(ask(&short, NOW + 5).await, Err(Refusal::Stranger(Stranger::Implausible)));
    let bad = token(
        &json!({"aud": ["drawbridge-catalogue"], "exp": NOW + 600, "sub": "system:serviceaccount:team:me", "bad": 1}),
    );
    let before = asked.load(Ordering::Relaxed);
    for _ in 0..5 {
        assert_eq!(ask(&bad, NOW).await, Err(Refusal::Stranger(Stranger::Unknown)));
    }
    assert_eq!(asked.load(Ordering::Relaxed), before + 1);
    tokio::time::sleep(BAD).await;
    assert!(ask(&bad, NOW).await.is_err());
    assert_eq!(asked.load(Ordering::Relaxed), before + 2);
    // Nothing that says of itself that it is for somebody else comes to the API server.
    let other = token(&json!({"aud": ["other"], "exp": NOW + 600, "sub": "system:serviceaccount:team:me"}));
    assert_eq!(ask(&other, NOW).await, Err(Refusal::Stranger(Stranger::Implausible)));
    assert_eq!(tokens.caller(None, from, NOW).await, Err(Refusal::Stranger(Stranger::Nobody)));
    assert_eq!(asked.load(Ordering::Relaxed), before + 2);
}

/// However many tokens somebody invents, the API server hears of few, and others are not held up.
#[tokio::test(start_paused = true)]
async fn no_address_burdens_the_api_server_and_nobody_waits_for_another() {
    let asked = Arc::new(AtomicUsize::new(0));
    let slow = Duration::from_secs(1);
    let tokens = Arc::new(Tokens::new(api_server(asked.clone(), slow), CatalogueMetrics::default()));
    let invented = |at: usize| {
        token(
            &json!({"aud": ["drawbridge-catalogue"], "exp": NOW + 600, "sub": "system:serviceaccount:team:me", "bad": at}),
        )
    };
    let ask = |token: String, from: &str| {
        let (tokens, from) = (tokens.clone(), from.parse::<IpAddr>().unwrap());
        async move { tokens.caller(Some(&format!("Bearer {token}")), from, NOW).await }
    };
    // At once: four are asked about, the others are told to come again.
    let at_once = futures::future::join_all((0..9).map(|at| ask(invented(at), &format!("10.0.1.{at}")))).await;
    let busy = at_once.iter().filter(|answer| **answer == Err(Refusal::Busy)).count();
    assert_eq!((busy, asked.load(Ordering::Relaxed)), (9 - AT_ONCE, AT_ONCE));
    // One after the other: what an address has at once, and then what the clock gives.
    let before = asked.load(Ordering::Relaxed);
    let begun = Instant::now();
    let mut too_often = 0;
    for at in 100..200 {
        too_often += usize::from(ask(invented(at), "10.0.0.1").await == Err(Refusal::TooOften));
    }
    let given = REVIEWS.burst + begun.elapsed().as_secs_f64() * REVIEWS.per_second;
    let heard = asked.load(Ordering::Relaxed) - before;
    assert!(f64::from(u32::try_from(heard).unwrap()) <= given && too_often == 100 - heard, "{heard} of {given}");
    assert_eq!(&*ask(of("team"), "10.0.0.2").await.unwrap().namespace, "team", "another address");
}

#[tokio::test(start_paused = true)]
async fn a_caller_has_so_many_requests() {
    let tokens = Tokens::new(api_server(Arc::default(), Duration::ZERO), CatalogueMetrics::default());
    let mut answered = 0.0;
    for at in 0_u8..200 {
        let from = IpAddr::from([10, 0, 0, at]);
        answered +=
            f64::from(u8::from(tokens.caller(Some(&format!("Bearer {}", of("team"))), from, NOW).await.is_ok()));
    }
    assert!((answered - REQUESTS.burst).abs() < 1.0, "{answered}");
    assert!(tokens.caller(Some(&format!("Bearer {}", of("other"))), IpAddr::from([10, 0, 0, 1]), NOW).await.is_ok());
}

#[tokio::test(start_paused = true)]
async fn an_api_server_that_does_not_say_lets_nobody_in_and_is_asked_again() {
    let asked = Arc::new(AtomicUsize::new(0));
    let tokens = Tokens::new(api_server(asked.clone(), Duration::ZERO), CatalogueMetrics::default());
    for (code, wanted) in [(403, Refusal::MayNot), (500, Refusal::Silent), (429, Refusal::Silent)] {
        let claims = json!({"aud": ["drawbridge-catalogue"], "exp": NOW + 600, "sub": "system:serviceaccount:team:me", "code": code});
        let header = format!("Bearer {}", token(&claims));
        for _ in 0..2 {
            let before = asked.load(Ordering::Relaxed);
            assert_eq!(tokens.caller(Some(&header), IpAddr::from([10, 0, 0, 1]), NOW).await, Err(wanted), "{code}");
            assert_eq!(asked.load(Ordering::Relaxed), before + 1, "{code}: that is no word on a token");
        }
    }
    let dead = Tokens::new(api_server(asked, Duration::from_secs(3_600)), CatalogueMetrics::default());
    let answer = dead.caller(Some(&format!("Bearer {}", of("team"))), IpAddr::from([10, 0, 0, 1]), NOW).await;
    assert_eq!(answer, Err(Refusal::Silent));
}

/// The clock of who renews decides at the first look alone.
#[test]
fn nobody_judges_once_the_lease_was_not_renewed_for_five_minutes() {
    let (start, minute) = (Instant::now() + Duration::from_secs(7_200), Duration::from_secs(60));
    let clock = |minutes: u32| -> SystemTime { UNIX_EPOCH + Duration::from_secs(1_800_000_000) + minute * minutes };
    let at = |minutes: u32| start + minute * minutes;
    let mut judged = Judged::new(start);
    assert!(!judged.is_over(at(4)) && judged.is_over(at(5)), "a Lease that cannot be read says nothing");
    // Renewed three minutes before the first look.
    judged.seen(clock(0), clock(3), at(3));
    assert!(!judged.is_over(at(4)) && judged.is_over(at(5)));
    judged.seen(clock(0), clock(4), at(4));
    assert!(judged.is_over(at(5)), "the same again is no renewal");
    // From then on what counts is when a renewal was seen, whatever its clock says.
    judged.seen(clock(1), clock(30), at(30));
    assert!(!judged.is_over(at(34)) && judged.is_over(at(35)));
    judged.seen(clock(500), clock(40), at(40));
    assert!(!judged.is_over(at(44)) && judged.is_over(at(45)));
    // A clock ahead of ours makes nothing younger than now.
    let mut ahead = Judged::new(start);
    ahead.seen(clock(50), clock(0), at(0));
    assert!(ahead.is_over(at(5)));
}
