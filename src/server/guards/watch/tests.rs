//! The guards against an API server in memory, with the clock paused.

use std::sync::Arc;
use std::time::Duration;

use serde_json::json;

use super::*;
use crate::domain::reason::Reason;
use crate::server::testing::lines::Lines;
use crate::server::testing::server::Server;

struct Watched {
    server: Server,
    metrics: GuardMetrics,
    told: Arc<Mutex<Vec<Notice>>>,
    task: tokio::task::JoinHandle<()>,
}

impl Drop for Watched {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl Watched {
    /// Guards over `a` and `b` of one kind, of which `there` exist.
    fn over(kind: Kind, there: &[&str]) -> Self {
        Self::with(kind, there, |guards| guards)
    }

    /// The same, made up as `more` says.
    fn with(kind: Kind, there: &[&str], more: impl FnOnce(Guards) -> Guards) -> Self {
        let server = Server::new(kind.as_str());
        for name in there {
            server.put(name, json!({"apiVersion": "v1", "kind": kind.as_str()}));
        }
        let told = Arc::new(Mutex::new(Vec::new()));
        let heard = told.clone();
        let listener: Listener = Arc::new(move |notice: &Notice| heard.lock().push(notice.clone()));
        let metrics = GuardMetrics::default();
        let installed = ["a", "b"].map(|name| (kind, name.to_owned())).into();
        let cluster = (server.client(), Watching::default());
        let guards = Guards::new(
            cluster,
            (listener, metrics.clone()),
            "kagenti-system",
            (installed, Box::new(|| "kubectl apply -f x.yaml".to_owned())),
        );
        Self { server, metrics, told, task: tokio::spawn(more(guards).run()) }
    }

    fn missing(&self, part: Part) -> i64 {
        self.metrics.missing.get_or_create(&Label { part }).get()
    }

    /// What was told since the last call.
    fn heard(&self) -> Vec<String> {
        std::mem::take(&mut *self.told.lock()).into_iter().map(|notice| notice.message).collect()
    }
}

async fn passes(seconds: u64) {
    tokio::time::sleep(Duration::from_secs(seconds)).await;
}

#[tokio::test(start_paused = true)]
async fn mend_14_what_is_missing_already_at_the_start_is_told_as_an_event_of_the_guards_own() {
    let watched = Watched::over(Kind::MutatingBinding, &["b"]);
    passes(1).await;
    assert_eq!((watched.missing(Part::MutatingBinding), watched.missing(Part::Policy)), (1, 0));
    let told = watched.told.lock().clone();
    assert_eq!(told.len(), 1, "{told:?}");
    assert_eq!((told[0].teller, told[0].reason), ("drawbridge/policies", Reason::PolicyMissing));
    assert_eq!((&*told[0].about.kind, &*told[0].about.name), ("Deployment", "drawbridge-controllers"));
    assert!(told[0].message.starts_with("MutatingAdmissionPolicyBinding a: not installed"), "{}", told[0].message);
    assert!(told[0].message.contains("unprotected"), "what it means in gate mode: {}", told[0].message);
    let asked = watched.server.asked();
    assert!(asked.iter().all(|(_, asked)| asked.contains("/mutatingadmissionpolicybindings?")), "{asked:?}");
}

#[tokio::test(start_paused = true)]
async fn answers_05_a_webhook_configuration_that_goes_is_told_at_once_with_the_command_that_puts_it_back() {
    let watched = Watched::over(Kind::MutatingWebhook, &["a", "b"]);
    passes(1).await;
    assert!(watched.heard().is_empty());
    let asked = watched.server.asked();
    assert!(asked.iter().all(|(_, asked)| asked.contains("fieldSelector=metadata.name%3Ddrawbridge")), "{asked:?}");
    watched.server.delete("a");
    passes(1).await;
    let missing = |part| watched.metrics.webhooks.get_or_create(&Label { part }).get();
    assert_eq!((missing(Part::MutatingWebhook), watched.missing(Part::Policy)), (1, 0));
    let told = watched.told.lock().clone();
    assert_eq!(told.len(), 1, "{told:?}");
    assert_eq!(told[0].reason, Reason::WebhookMissing);
    assert!(told[0].message.contains("put it back with kubectl apply -f x.yaml"), "{}", told[0].message);
    assert!(told[0].message.contains("without sidecars"), "{}", told[0].message);
}

#[tokio::test(start_paused = true)]
async fn mend_03_an_hour_of_silence_is_one_list_and_renewals_for_policies_too() {
    let lines = Lines::default();
    let _guard = lines.collect();
    let watched = Watched::over(Kind::Policy, &["a", "b"]);
    passes(3600).await;
    let asked = watched.server.asked();
    let watches = asked.iter().filter(|(_, asked)| asked.contains("watch=true")).count();
    assert_eq!(asked.len() - watches, 1, "one list: {asked:#?}");
    assert!((144..=146).contains(&watches), "one in 25 s: {watches}");
    assert!(lines.text().is_empty() && watched.heard().is_empty(), "{}", lines.text());
    watched.server.delete("a");
    passes(1).await;
    assert_eq!((watched.missing(Part::Policy), watched.heard().len()), (1, 0), "counted at once");
    passes(2).await;
    assert_eq!(watched.heard().len(), 1);
}

#[tokio::test(start_paused = true)]
async fn mend_14_what_is_replaced_within_two_seconds_alarms_nobody() {
    let lines = Lines::default();
    let _guard = lines.collect();
    let watched = Watched::over(Kind::Policy, &["a", "b"]);
    passes(1).await;
    watched.server.delete("a");
    passes(1).await;
    watched.server.put("a", json!({"apiVersion": "v1", "kind": "ValidatingAdmissionPolicy"}));
    passes(10).await;
    assert_eq!((watched.missing(Part::Policy), watched.heard()), (0, vec![]));
    let text = lines.text();
    assert!(!text.contains("WARN") && text.matches("was gone for a moment").count() == 1, "{text}");
}

/// The deletion lies after the backup: once that is put back the policy is there, under a lower version.
#[tokio::test(start_paused = true)]
async fn mend_03_a_cluster_that_went_back_is_followed_to_its_policies() {
    let lines = Lines::default();
    let _guard = lines.collect();
    let watched = Watched::over(Kind::Binding, &["a", "b"]);
    let backup = watched.server.backup();
    passes(1).await;
    watched.server.delete("a");
    watched.server.pass(1000);
    passes(30).await;
    assert_eq!((watched.missing(Part::Binding), watched.heard().len()), (1, 1));
    watched.server.restore(backup, true);
    passes(30).await;
    assert_eq!(watched.missing(Part::Binding), 0, "{}", lines.text());
    watched.server.delete("b");
    passes(1).await;
    assert_eq!(watched.missing(Part::Binding), 1, "numbers that were given before are given again");
    assert_eq!(lines.text().matches("the cluster went back").count(), 1, "{}", lines.text());
}

/// The publisher of the caBundle watches both configurations already.
#[tokio::test(start_paused = true)]
async fn mend_03_what_somebody_watches_already_is_heard_of_and_not_watched_once_more() {
    let server = Server::new("MutatingWebhookConfiguration");
    let told = Arc::new(Mutex::new(Vec::new()));
    let heard = told.clone();
    let listener: Listener = Arc::new(move |notice: &Notice| heard.lock().push(notice.message.clone()));
    let metrics = GuardMetrics::default();
    let installed = [Kind::MutatingWebhook, Kind::ValidatingWebhook].map(|kind| (kind, "drawbridge".to_owned())).into();
    let cluster = (server.client(), Watching::default());
    let (news, of) = tokio::sync::watch::channel(Installed::default());
    let command = Arc::new(Mutex::new("kubectl apply -f x.yaml"));
    let current = command.clone();
    let repair: Repair = Box::new(move || current.lock().to_string());
    let guards = Guards::new(cluster, (listener, metrics.clone()), "kagenti-system", (installed, repair));
    let task = tokio::spawn(guards.hearing(Some(of)).run());
    let missing = |part| metrics.webhooks.get_or_create(&Label { part }).get();
    news.send_replace(Installed { mutating: Some(true), validating: Some(true) });
    passes(5).await;
    assert!(told.lock().is_empty());
    *command.lock() = "kubectl apply -f y.yaml";
    news.send_replace(Installed { mutating: Some(false), validating: Some(true) });
    passes(1).await;
    assert_eq!((missing(Part::MutatingWebhook), missing(Part::ValidatingWebhook)), (1, 0));
    assert_eq!(told.lock().len(), 1, "{told:?}");
    assert!(told.lock()[0].contains("put it back with kubectl apply -f y.yaml"), "as it is by then: {told:?}");
    news.send_replace(Installed { mutating: Some(true), validating: Some(true) });
    passes(1).await;
    assert_eq!(missing(Part::MutatingWebhook), 0);
    assert!(server.asked().is_empty(), "nothing is asked: {:?}", server.asked());
    task.abort();
}

fn policy() -> serde_json::Value {
    json!({"apiVersion": "v1", "kind": "ValidatingAdmissionPolicy"})
}

/// The policies of a group that comes with a manifest of its own: deleted while it is served, they are told with what puts them back.
#[tokio::test(start_paused = true)]
async fn a_policy_of_a_group_that_is_served_is_told_once_it_is_gone_for_good() {
    let (says, served) = watch::channel(false);
    let group = vec![(Kind::Policy, "of-group".to_owned())];
    let watched = Watched::with(Kind::Policy, &["a", "b"], |guards| guards.with_group(group, served));
    passes(100).await;
    assert_eq!((watched.missing(Part::Policy), watched.heard()), (0, vec![]), "nobody serves the group");
    watched.server.put("of-group", policy());
    says.send_replace(true);
    passes(100).await;
    watched.server.delete("of-group");
    passes(50).await;
    assert_eq!((watched.missing(Part::Policy), watched.heard()), (0, vec![]), "the group may be about to go");
    passes(15).await;
    assert_eq!(watched.missing(Part::Policy), 1);
    let heard = watched.heard();
    assert_eq!(heard.len(), 1, "{heard:?}");
    assert!(
        heard[0].contains("ValidatingAdmissionPolicy of-group is gone") && heard[0].contains(APPLY_COMPAT),
        "{heard:?}"
    );
    watched.server.delete("a");
    passes(5).await;
    let heard = watched.heard();
    assert!(heard.len() == 1 && heard[0].contains(APPLY), "{heard:?}");
    watched.server.put("a", policy());
    says.send_replace(false);
    passes(5).await;
    assert_eq!(watched.missing(Part::Policy), 0, "the group went");
}

#[tokio::test(start_paused = true)]
async fn a_group_that_is_removed_with_its_policies_alarms_nobody() {
    let (says, served) = watch::channel(true);
    let group = vec![(Kind::Policy, "of-group".to_owned())];
    let watched = Watched::with(Kind::Policy, &["a", "b", "of-group"], |guards| guards.with_group(group, served));
    passes(10).await;
    watched.server.delete("of-group");
    passes(40).await;
    says.send_replace(false);
    passes(600).await;
    assert_eq!((watched.missing(Part::Policy), watched.heard()), (0, vec![]));
}

#[test]
fn a_kind_is_served_once_it_was_listed_and_until_it_certainly_is_not() {
    let keeper = Keeper::new("own", crate::cluster::keeper::Keeps::Slim);
    let kind = StoreKind::BeeaiCompatAgent;
    let early = served(&keeper, kind);
    assert!(!*early.borrow());
    for (reach, is_served) in [
        (Reach::Absent, false),
        (Reach::Listed, true),
        (Reach::Unknown, true),
        (Reach::Absent, false),
        (Reach::Listed, true),
    ] {
        keeper.reach(kind, reach);
        assert_eq!(*early.borrow(), is_served, "{reach:?}");
    }
    keeper.reach(StoreKind::BeeaiAgent, Reach::Absent);
    assert!(*early.borrow() && *served(&keeper, kind).borrow(), "who comes later hears the same");
}
