//! The loop with a controller that asks hosts which do not answer for a long time.

use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use serde_json::json;

use super::{Bench, Server};
use crate::controllers::scaffold::fixtures::{change, workload};
use crate::controllers::scaffold::lane::{Adapter, Ask, AskError, Attempt, Host, Question};
use crate::controllers::scaffold::plan::{AskingRow, Name, Op, Plan, Report};
use crate::controllers::scaffold::runner::Runner;
use crate::domain::reason::Reason;
use crate::store::{Key, Kind};

/// Who does not answer for a long time, by number of the item.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct Silent(u16);

/// How long each of them takes.
const SILENCE: Duration = Duration::from_secs(30);
/// As many as there are hosts.
const HOSTS: u16 = 64;

impl Question for Silent {
    type Fact = ();

    fn host(&self) -> Host {
        Host::At(([10, 0, 0, 1], self.0).into())
    }

    fn namespace(&self) -> Arc<str> {
        "team".into()
    }
}

#[derive(Clone, Default)]
struct SilentHosts {
    asked: Arc<Mutex<Vec<u16>>>,
}

impl Adapter<Silent> for SilentHosts {
    async fn ask(&self, question: Silent, _: Attempt) -> Result<(), AskError> {
        self.asked.lock().push(question.0);
        tokio::time::sleep(SILENCE).await;
        Ok(())
    }
}

/// Every namespace has an item for each host, which is told about once its host has answered.
const ASKS: AskingRow<Silent> = AskingRow {
    controller: Name::new("asks"),
    touched: |_, _, _, _| Vec::new(),
    of_namespace: |_, namespace| match namespace {
        "team" => (0..HOSTS).map(|port| Key::new(namespace, &port.to_string())).collect(),
        _ => Vec::new(),
    },
    plan: |cx, facts| {
        let port = cx.key.name.parse().unwrap();
        let ask = Ask { question: Silent(port), since: Duration::ZERO };
        let ops = facts.fresh(&ask).map(|fact| {
            Op::Report(Report {
                kind: Kind::Namespace,
                about: cx.key.clone(),
                uid: port.to_string(),
                reason: Reason::InternalError,
                message: format!("answered at {:?}", fact.at),
                since: String::new(),
            })
        });
        (Plan::of(ops.into_iter().collect()), vec![ask])
    },
};

/// How long it takes, in the clock of the trial, until fifty workloads have their account.
async fn until_enrolled(asking: Vec<Box<dyn Runner>>) -> (Duration, Bench) {
    let server = Server { takes: Duration::from_millis(20), ..Server::default() };
    let first =
        (0..50).map(|number| change(Kind::Deployment, workload(Kind::Deployment, &format!("w{number}"), json!({}))));
    let bench = Bench::with(server, first.collect(), asking).await;
    let begun = tokio::time::Instant::now();
    bench.terms.send_replace(Some(1));
    let made =
        |bench: &Bench| bench.server.objects.lock().keys().filter(|path| path.contains("serviceaccounts")).count();
    while made(&bench) < 50 {
        tokio::time::sleep(Duration::from_millis(1)).await;
        assert!(begun.elapsed() < SILENCE, "{} accounts", made(&bench));
    }
    (begun.elapsed(), bench)
}

#[tokio::test(start_paused = true)]
async fn writes_take_no_longer_beside_64_hosts_that_do_not_answer() {
    let (alone, bench) = until_enrolled(Vec::new()).await;
    bench.task.abort();
    let hosts = SilentHosts::default();
    let (beside, bench) = until_enrolled(vec![ASKS.runner(hosts.clone())]).await;
    assert_eq!(hosts.asked.lock().len(), usize::from(HOSTS), "all of them are waited for at the same time");
    assert!(beside <= alone.mul_f64(1.2), "{beside:?} beside them, {alone:?} alone");
    // What they answer in the end arrives.
    bench.server.asked();
    tokio::time::sleep(2 * SILENCE).await;
    let asked = bench.server.asked();
    let told = asked.iter().filter(|line| line.starts_with("POST events")).count();
    assert_eq!(told, usize::from(HOSTS), "{asked:?}");
    bench.task.abort();
}

#[tokio::test(start_paused = true)]
async fn only_the_leader_asks_and_a_new_term_knows_nothing_of_the_old_one() {
    let hosts = SilentHosts::default();
    let bench = Bench::with(Server::default(), Vec::new(), vec![ASKS.runner(hosts.clone())]).await;
    bench.settle().await;
    assert_eq!(hosts.asked.lock().len(), 0, "not the leader");
    bench.lead(Some(1)).await;
    assert_eq!(hosts.asked.lock().len(), usize::from(HOSTS));
    bench.lead(None).await;
    tokio::time::sleep(2 * SILENCE).await;
    assert_eq!(bench.server.asked(), Vec::<String>::new(), "nobody is told what an ended term asked");
    bench.lead(Some(2)).await;
    assert_eq!(hosts.asked.lock().len(), 2 * usize::from(HOSTS));
    bench.task.abort();
}
