//! What is printed, also where a cluster stops answering.

use std::sync::atomic::{AtomicUsize, Ordering};

use serde_json::{Value, json};

use super::*;
use crate::cli::Unreachable;
use crate::cli::cluster::fake::{self, Said};

const PATIENCE: Duration = Duration::from_millis(1);

fn options() -> Options {
    Options { operator_namespace: "own".to_owned(), crds: false, keep_policies: false, keep_pods: false }
}

fn path_of(root: &str, plural: &str, name: &str) -> String {
    format!("{root}/namespaces/own/{plural}/{name}")
}

fn secret() -> String {
    path_of("/api/v1", "secrets", keys::SECRET_AUTHORITY)
}

fn found(path: &str) -> Said {
    let name = path.rsplit('/').next();
    let labels = json!({"app.kubernetes.io/managed-by": "drawbridge"});
    (200, json!({"metadata": {"name": name, "namespace": "own", "uid": "u", "labels": labels}}))
}

/// How it ends, and what it prints.
async fn ends(cluster: &Cluster, patience: Option<Duration>, output: Format) -> (anyhow::Result<Exit>, String) {
    let (mut stdin, mut out, mut err) = (&b""[..], Vec::new(), Vec::new());
    let mut io = Io { stdin: &mut stdin, out: &mut out, err: &mut err, colour: false };
    let exit = Box::pin(ended(cluster, &options(), (patience, output), &mut io)).await;
    (exit, String::from_utf8(out).unwrap())
}

/// A cluster with the authority's Secret and a Lease; from the deletion of the Lease on it does not know any more who asks.
async fn lost_halfway() -> Cluster {
    let lease = path_of("/apis/coordination.k8s.io/v1", "leases", keys::LEASE);
    let asked = AtomicUsize::new(0);
    fake::cluster(move |path| match path {
        _ if path == secret() => found(path),
        _ if path == lease && asked.fetch_add(1, Ordering::Relaxed) == 0 => found(path),
        _ if path == lease => {
            let says = json!({"kind": "Status", "apiVersion": "v1", "status": "Failure", "message": "no", "reason": "X", "code": 401});
            (401, says)
        }
        _ => fake::absent(),
    })
    .await
}

#[tokio::test]
async fn what_was_done_is_printed_though_the_cluster_is_lost_halfway() {
    let (exit, out) = ends(&lost_halfway().await, Some(PATIENCE), Format::Json).await;
    let error = exit.unwrap_err();
    assert!(error.is::<Unreachable>(), "{error:#}");
    let report: Value = serde_json::from_str(&out).unwrap();
    let (secret, lease) = (format!("Secret own/{}", keys::SECRET_AUTHORITY), format!("Lease own/{}", keys::LEASE));
    let done: Vec<_> = report["done"].as_array().unwrap().iter().map(|one| (&one["object"], &one["outcome"])).collect();
    assert_eq!(done, [(&json!(secret), &json!("done"))]);
    let left: Vec<_> = report["left"].as_array().unwrap().iter().map(|one| &one["object"]).collect();
    assert_eq!(left, [&json!(lease)]);
    assert_eq!(report["notes"], json!([CUT_SHORT]));
    let (exit, out) = ends(&lost_halfway().await, Some(PATIENCE), Format::Table).await;
    assert!(exit.unwrap_err().is::<Unreachable>());
    for says in ["\n1 steps done, ", &*format!("left undone:\n   - {lease}: not known to be done, "), CUT_SHORT] {
        assert!(out.contains(says), "{says}: {out}");
    }
    assert!(!out.contains("the plan was carried out"), "{out}");
}

/// The plan of whoever may not see all of it looked like a whole one to a script.
#[tokio::test]
async fn a_part_of_the_installation_that_may_not_be_seen_counts_as_unseen() {
    let cluster = fake::cluster(|path| if path == secret() { fake::refused() } else { fake::absent() }).await;
    let (exit, out) = ends(&cluster, None, Format::Table).await;
    assert_eq!(exit.unwrap(), Exit::Partial, "{out}");
    assert!(out.contains("nothing that Drawbridge made that could be read is left"), "{out}");
    assert!(out.contains(&format!("note: {} could not be read (403: no); nothing", secret())), "{out}");
}

/// Where Pods may not be listed nobody is known to use a ConfigMap, and it was deleted under Pods that run.
#[tokio::test]
async fn what_pods_may_need_stays_where_they_may_not_be_seen() {
    for seen in [true, false] {
        let cluster = fake::cluster(move |path| match path {
            "/api/v1/configmaps" => {
                let data = json!({});
                let digest = crate::config::content::digest(&Default::default());
                let metadata = json!({"name": keys::NAMESPACE_CONFIG_MAPS[0], "namespace": "team", "uid": "u",
                    "annotations": {keys::ANNOTATION_CONTENT_DIGEST: digest}});
                fake::list("ConfigMap", "v1", &[json!({"metadata": metadata, "data": data})])
            }
            "/api/v1/namespaces/team/pods" if !seen => fake::refused(),
            _ => fake::absent(),
        })
        .await;
        let (exit, out) = ends(&cluster, None, Format::Json).await;
        assert_eq!(exit.unwrap(), if seen { Exit::Ok } else { Exit::Partial }, "{out}");
        let report: Value = serde_json::from_str(&out).unwrap();
        let name = json!(format!("ConfigMap team/{}", keys::NAMESPACE_CONFIG_MAPS[0]));
        let (goes, stays) = (&report["plan"]["steps"][0]["object"], &report["plan"]["later"][0]["object"]);
        assert_eq!((goes == &name, stays == &name), (seen, !seen), "{out}");
    }
}

#[test]
fn words_of_others_cannot_pass_for_a_line_of_the_plan() {
    const HOSTILE: &str = "held\n   - Namespace team: deleted\u{1b}[2J";
    let kept = |planned| Kept { object: "Namespace team".to_owned(), why: HOSTILE.to_owned(), planned };
    let step = Step {
        phase: Phase::Rest,
        object: "Lease own/l".to_owned(),
        path: String::new(),
        action: plan::Action::Delete { uid: String::new() },
        effect: HOSTILE.to_owned(),
    };
    let plan = Plan { steps: vec![step], later: vec![kept(true)], stays: vec![kept(true)] };
    let notes = vec![HOSTILE.to_owned()];
    let dry = Report { plan: plan.clone(), done: None, left: None, notes: notes.clone() };
    let done = Report { plan, done: Some(Vec::new()), left: Some(vec![kept(false), kept(true)]), notes };
    for report in [dry, done] {
        let mut out = Vec::new();
        print::report(&mut out, &report).unwrap();
        let out = String::from_utf8(out).unwrap();
        assert!(!out.contains('\u{1b}') && !out.contains("\n   - Namespace team: deleted"), "{out:?}");
        assert!(out.contains("held\\n   - Namespace team: deleted\\u{1b}[2J"), "{out:?}");
    }
}
