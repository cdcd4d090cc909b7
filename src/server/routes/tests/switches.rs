//! Dry runs, and switches that are turned while reviews come.

use super::*;
use crate::config::inputs::NamespaceInputs;
use crate::config::view::{NamespaceView, namespace_view};

fn agent() -> Value {
    json!({"metadata":{"name":"a","labels":{"kagenti.io/type":"agent"}},"spec":{"containers":[{"name":"a","image":"x"}]}})
}

/// The view has no way to write, so equal answers are all that there is to a dry run; what the API server stores
/// and audits is held by the suite of injection.
#[tokio::test]
async fn a8_every_webhook_answers_a_dry_run_as_it_answers_a_creation() {
    let real = fixture(crate::admission::evaluate);
    let wet = String::from_utf8(body_of("u-1", &agent())).unwrap();
    let dry = wet.replace("\"operation\"", "\"dryRun\":true,\"operation\"");
    assert_ne!(wet, dry);
    for route in ROUTES {
        let send = |body: &str| {
            let request = Request::post(route.path).header(CONTENT_TYPE, "application/json");
            real.send(request.body(Body::from(body.to_owned())).unwrap())
        };
        let (one, other) = (send(&wet).await, send(&dry).await);
        assert_eq!(one.0, StatusCode::OK);
        assert_eq!(one, other, "{}", route.path);
    }
}

#[tokio::test]
async fn a16_what_is_switched_off_is_off_for_the_next_review() {
    let platform = Platform::built_in();
    let snapshot = |gates: Gates, label: Option<&str>| {
        let labels = label.map(|value| (keys::LABEL_NAMESPACE_ENABLED.to_owned(), value.to_owned()));
        let inputs = NamespaceInputs { labels: labels.into_iter().collect(), ..NamespaceInputs::default() };
        let team: NamespaceView = namespace_view(&platform, "team1", &inputs, None);
        let view = ClusterView {
            operator_namespace: "kagenti-system".into(),
            server_version: (1, 33),
            spiffe_driver: false,
            namespaces: HashMap::from([("team1".into(), Arc::new(team))]),
        };
        Snapshot::new(&platform, gates, view)
    };
    let (cell, metrics) = (SnapshotCell::new(), Metrics::new());
    let fixture = Fixture { router: Reviews::new(cell.clone(), metrics.clone()).router(), metrics };
    let off = Gates { global_enabled: false, ..Gates::default() };
    for (gates, label, expected) in [
        (Gates::default(), None, None),
        (off, None, Some(Reason::GlobalDisabled)),
        (Gates::default(), Some("false"), Some(Reason::NamespaceOptedOut)),
        (Gates::default(), Some("true"), None),
    ] {
        cell.store(snapshot(gates, label));
        let response = fixture.review(body_of("u-1", &agent())).await;
        let said = response["status"]["message"].as_str().unwrap();
        let switched_off =
            [Reason::GlobalDisabled, Reason::NamespaceOptedOut].into_iter().find(|reason| said == reason.code());
        assert_eq!(switched_off, expected, "{label:?}: {said}");
    }
}
