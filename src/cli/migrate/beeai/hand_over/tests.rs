//! Both directions on a cluster in memory: whole, cut after every write, with others at work, and with everything that stands in the way.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::desk::Desk;
use super::plan::{Action, Direction};
use super::{Handed, concerned, nobody, one};
use crate::cli::cluster::{Answer, fake};
use crate::cli::io::Io;
use crate::cli::{Unreachable, migrate};
use crate::domain::keys;
use crate::store::Kind;

const TEAM: &str = "team1";
const NAME: &str = "weather";

/// What somebody else does in the middle.
type Meanwhile = Box<dyn FnOnce(&mut BTreeMap<String, Value>)>;

/// Objects by path, as an API server keeps them.
#[derive(Default)]
struct Memory {
    objects: RefCell<BTreeMap<String, Value>>,
    version: Cell<u64>,
    writes: Cell<usize>,
    /// After so many writes the command is cut off.
    most: Cell<Option<usize>>,
    /// What happens before a write is carried out, once.
    meanwhile: RefCell<Option<Meanwhile>>,
    /// What a creation is answered.
    refuses: Option<(u16, &'static str)>,
}

impl Memory {
    fn put(&self, path: &str, mut object: Value) -> Value {
        self.version.set(self.version.get() + 1);
        object["metadata"]["resourceVersion"] = json!(self.version.get().to_string());
        self.objects.borrow_mut().insert(path.to_owned(), object.clone());
        object
    }

    fn at(&self, kind: Kind) -> Option<Value> {
        self.objects.borrow().get(&path(kind)).cloned()
    }

    fn edit(&self, kind: Kind, edit: impl FnOnce(&mut Value)) {
        let mut object = self.at(kind).unwrap();
        edit(&mut object);
        self.put(&path(kind), object);
    }

    fn merged(&self, path: &str, patch: &Value) -> Answer {
        let Some(mut object) = self.objects.borrow().get(path).cloned() else { return Answer::Absent };
        for key in ["uid", "resourceVersion"] {
            let wanted = &patch["metadata"][key];
            if !wanted.is_null() && *wanted != object["metadata"][key] {
                return Answer::Refused(409, format!("{key} mismatch"));
            }
        }
        json_patch::merge(&mut object, patch);
        Answer::Object(self.put(path, object))
    }
}

impl Desk for Memory {
    async fn get(&self, path: &str) -> anyhow::Result<Answer> {
        Ok(self.objects.borrow().get(path).cloned().map_or(Answer::Absent, Answer::Object))
    }

    async fn dry_run(&self, _: &str, _: &Value) -> anyhow::Result<Answer> {
        Ok(self.refuses.map_or(Answer::Object(Value::Null), |(code, text)| Answer::Refused(code, text.to_owned())))
    }

    async fn act(&self, action: &Action) -> anyhow::Result<Answer> {
        if self.most.get() == Some(self.writes.get()) {
            anyhow::bail!("cut off");
        }
        self.writes.set(self.writes.get() + 1);
        if let Some(meanwhile) = self.meanwhile.take() {
            meanwhile(&mut self.objects.borrow_mut());
        }
        Ok(match action {
            Action::Create { path, body } => {
                let path = format!("{path}/{NAME}");
                if self.objects.borrow().contains_key(&path) {
                    return Ok(Answer::Refused(409, "already exists".to_owned()));
                }
                let mut body = body.clone();
                body["metadata"]["uid"] = json!(format!("made-{}", self.version.get()));
                body["metadata"]["generation"] = json!(1);
                Answer::Object(self.put(&path, body))
            }
            Action::Merge { path, patch } => self.merged(path, patch),
            Action::Orphan { path, uid, version } => {
                let found = self.objects.borrow().get(path).cloned();
                match found {
                    None => Answer::Absent,
                    Some(found)
                        if found["metadata"]["uid"] != **uid || found["metadata"]["resourceVersion"] != **version =>
                    {
                        Answer::Refused(409, "precondition failed".to_owned())
                    }
                    // Our finalizer keeps it for a while.
                    Some(found) if !found["metadata"]["finalizers"].is_null() => Answer::Object(
                        self.merged(path, &json!({"metadata": {"deletionTimestamp": "now"}})).object().unwrap_or(found),
                    ),
                    Some(found) => {
                        self.objects.borrow_mut().remove(path);
                        Answer::Object(found)
                    }
                }
            }
        })
    }
}

fn path(kind: Kind) -> String {
    format!("{}/{NAME}", kind.path(TEAM))
}

fn owner(kind: Kind, uid: &str) -> Value {
    json!({"apiVersion": kind.api_version(), "kind": kind.as_str(), "name": NAME, "uid": uid, "controller": true, "blockOwnerDeletion": true})
}

/// An Agent of BeeAI that runs.
fn running(kind: Kind) -> Memory {
    let memory = Memory::default();
    let agent = json!({
        "apiVersion": kind.api_version(), "kind": "Agent",
        "metadata": {"name": NAME, "namespace": TEAM, "uid": "old", "generation": 3, "labels": {"kagenti.io/type": "agent"},
            "annotations": {"beeai.dev/security-profile": "restricted"}},
        "spec": {"image": "reg/weather:v1", "env": [{"name": "A", "value": "b"}]},
        "status": {"ready": true},
    });
    memory.put(&path(kind), agent);
    let metadata = json!({"name": NAME, "namespace": TEAM, "ownerReferences": [{"uid": "other"}, owner(kind, "old")],
        "labels": {keys::LABEL_BEEAI_GROUP: kind.group(), "app": NAME}});
    for (kind, uid) in [(Kind::Deployment, "d"), (Kind::Service, "s")] {
        let mut object = json!({"metadata": metadata, "spec": {"template": {"metadata": {"labels": {}}, "spec": {"containers": [{"image": "reg/weather:v1"}]}}}});
        object["metadata"]["uid"] = json!(uid);
        memory.put(&path(kind), object);
    }
    memory
}

fn go(memory: &Memory, kind: Kind, direction: Direction, builds: &[Value], yes: bool) -> anyhow::Result<Handed> {
    crate::cli::cluster::block_on(one(memory, (TEAM, kind, NAME), (builds, direction), yes))
}

/// Who has the Deployment and the Service, and their other marks.
fn parts(memory: &Memory) -> Vec<Value> {
    [Kind::Deployment, Kind::Service]
        .map(|kind| {
            let object = memory.at(kind).unwrap();
            json!([
                object["metadata"]["ownerReferences"],
                object["metadata"]["labels"],
                object["metadata"]["uid"],
                object["spec"]
            ])
        })
        .to_vec()
}

fn is_handed_over(memory: &Memory, kind: Kind) -> bool {
    let new = memory.at(Kind::Agent).unwrap();
    let uid = new["metadata"]["uid"].as_str().unwrap();
    let owned = [Kind::Deployment, Kind::Service].iter().all(|part| {
        let object = memory.at(*part).unwrap();
        let owners = object["metadata"]["ownerReferences"].as_array().unwrap().clone();
        owners[0]["uid"] == "other"
            && owners[1] == owner(Kind::Agent, uid)
            && object["metadata"]["labels"] == json!({"app": NAME})
    });
    memory.at(kind).is_none() && new["metadata"]["annotations"][keys::ANNOTATION_PAUSED].is_null() && owned
}

/// What the Agent of BeeAI was, but for its uid and who owns what by it.
fn given_back(memory: &Memory, kind: Kind) -> (Value, Vec<Value>) {
    let agent = memory.at(kind).unwrap();
    let uid = agent["metadata"]["uid"].to_string();
    let parts =
        parts(memory).into_iter().map(|part| serde_json::from_str(&part.to_string().replace(&uid, "\"UID\"")).unwrap());
    (json!([agent["metadata"]["labels"], agent["metadata"]["annotations"], agent["spec"]]), parts.collect())
}

const KINDS: [Kind; 2] = [Kind::BeeaiAgent, Kind::BeeaiCompatAgent];

#[test]
fn an_agent_is_handed_over_and_given_back_as_it_was() {
    for kind in KINDS {
        let memory = running(kind);
        let before = given_back(&memory, kind);
        let plan = go(&memory, kind, Direction::Over, &[], false).unwrap();
        assert_eq!((plan.outcome, plan.steps.len(), memory.writes.get()), ("planned", 6, 0), "{:?}", plan.obstacles);
        let done = go(&memory, kind, Direction::Over, &[], true).unwrap();
        assert_eq!((done.outcome, memory.writes.get()), ("done", 6), "{:?}", done.obstacles);
        assert!(is_handed_over(&memory, kind));
        let again = go(&memory, kind, Direction::Over, &[], true).unwrap();
        assert_eq!((again.outcome, memory.writes.get()), ("done", 6), "twice is once");

        let back = go(&memory, kind, Direction::Back, &[], true).unwrap();
        assert_eq!((back.outcome, memory.writes.get()), ("done", 12), "{:?}", back.obstacles);
        assert_eq!(given_back(&memory, kind), before);
        assert!(memory.at(Kind::Agent).is_none());
        let none = concerned(&[(kind, memory.at(kind).unwrap())], Direction::Back);
        assert!(none.is_empty(), "nothing is left to give back");
        // And over again.
        assert_eq!(go(&memory, kind, Direction::Over, &[], true).unwrap().outcome, "done");
        assert!(is_handed_over(&memory, kind));
    }
}

/// After every write of either direction, and then on in the same direction or in the other one.
#[test]
fn whatever_interrupts_it_the_same_command_goes_on_and_the_other_one_gives_back() {
    for kind in KINDS {
        let before = given_back(&running(kind), kind);
        for (first, then) in
            [(Direction::Over, Direction::Over), (Direction::Over, Direction::Back), (Direction::Back, Direction::Back)]
        {
            for cut in 0..6 {
                let memory = running(kind);
                if first == Direction::Back {
                    go(&memory, kind, Direction::Over, &[], true).unwrap();
                }
                let most = memory.writes.get() + cut;
                memory.most.set(Some(most));
                go(&memory, kind, first, &[], true).unwrap_err();
                assert_eq!(memory.writes.get(), most);
                memory.most.set(None);
                let objects = KINDS.iter().chain(&[Kind::Agent]).filter_map(|kind| Some((*kind, memory.at(*kind)?)));
                let concerned = concerned(&objects.collect::<Vec<_>>(), then);
                if cut > 0 || first == Direction::Back || then == Direction::Over {
                    assert!(
                        concerned.contains(&(kind, NAME.to_owned())),
                        "{first:?} {cut} {then:?}: nobody would look"
                    );
                }
                let end = go(&memory, kind, then, &[], true).unwrap();
                assert_eq!(end.outcome, "done", "{first:?} {cut} {then:?}: {:?}", end.obstacles);
                match then {
                    Direction::Over => assert!(is_handed_over(&memory, kind), "{first:?} {cut}"),
                    Direction::Back => {
                        assert_eq!(given_back(&memory, kind), before, "{first:?} {cut}");
                        assert!(memory.at(Kind::Agent).is_none(), "{first:?} {cut}");
                    }
                }
            }
        }
    }
}

/// A giving back that was begun is ended before anything else.
#[test]
fn what_is_being_given_back_is_not_handed_over_in_the_middle() {
    let memory = running(Kind::BeeaiAgent);
    go(&memory, Kind::BeeaiAgent, Direction::Over, &[], true).unwrap();
    memory.most.set(Some(8));
    go(&memory, Kind::BeeaiAgent, Direction::Back, &[], true).unwrap_err();
    memory.most.set(None);
    let blocked = go(&memory, Kind::BeeaiAgent, Direction::Over, &[], true).unwrap();
    assert_eq!(blocked.outcome, "blocked");
    assert!(blocked.obstacles.iter().any(|one| one.contains("being given back")), "{:?}", blocked.obstacles);
}

/// A status that is written, a scale: the swap looks again. A foreign owner that comes in the middle is left alone.
#[test]
fn what_changes_meanwhile_is_looked_at_again() {
    let change = |change: fn(&mut Value)| {
        move |objects: &mut BTreeMap<String, Value>| {
            let object = objects.get_mut(&path(Kind::Deployment)).unwrap();
            change(object);
            object["metadata"]["resourceVersion"] = json!("meanwhile");
        }
    };
    for cut in 0..4 {
        let memory = running(Kind::BeeaiAgent);
        memory.most.set(Some(cut));
        let _ = go(&memory, Kind::BeeaiAgent, Direction::Over, &[], true);
        memory.most.set(None);
        *memory.meanwhile.borrow_mut() = Some(Box::new(change(|object| object["spec"]["replicas"] = json!(4))));
        assert_eq!(go(&memory, Kind::BeeaiAgent, Direction::Over, &[], true).unwrap().outcome, "done", "{cut}");
        assert_eq!(memory.at(Kind::Deployment).unwrap()["spec"]["replicas"], 4);
        assert!(is_handed_over(&memory, Kind::BeeaiAgent));
    }
    let memory = running(Kind::BeeaiAgent);
    memory.most.set(Some(2));
    let _ = go(&memory, Kind::BeeaiAgent, Direction::Over, &[], true);
    memory.most.set(None);
    *memory.meanwhile.borrow_mut() = Some(Box::new(change(|object| {
        object["metadata"]["ownerReferences"] =
            json!([{"apiVersion": "evil/v1", "kind": "Thing", "name": "x", "uid": "evil", "controller": true}]);
    })));
    let blocked = go(&memory, Kind::BeeaiAgent, Direction::Over, &[], true).unwrap();
    assert_eq!(blocked.outcome, "blocked");
    assert!(blocked.obstacles[0].contains("belongs to Thing x of evil/v1"), "{:?}", blocked.obstacles);
    assert!(memory.at(Kind::BeeaiAgent).is_some(), "nothing is deleted that has not given up what it has");
}

/// The Agent changes while it is held: it is not deleted with a change that nobody knows.
#[test]
fn a_change_of_the_agent_in_the_middle_is_not_lost() {
    let kind = Kind::BeeaiAgent;
    for cut in 2..5 {
        let memory = running(kind);
        memory.most.set(Some(cut));
        let _ = go(&memory, kind, Direction::Over, &[], true);
        memory.most.set(None);
        memory.edit(kind, |agent| agent["spec"]["image"] = json!("reg/weather:v2"));
        let blocked = go(&memory, kind, Direction::Over, &[], true).unwrap();
        assert_eq!(blocked.outcome, "blocked");
        assert!(blocked.obstacles[0].contains("was changed while"), "{:?}", blocked.obstacles);
        assert_eq!(go(&memory, kind, Direction::Back, &[], true).unwrap().outcome, "done");
        let agent = memory.at(kind).unwrap();
        assert_eq!((&agent["spec"]["image"], &agent["metadata"]["uid"]), (&json!("reg/weather:v2"), &json!("old")));
        assert_eq!(go(&memory, kind, Direction::Over, &[], true).unwrap().outcome, "done");
    }
    // Between the last look and the deletion.
    let memory = running(kind);
    memory.most.set(Some(4));
    let _ = go(&memory, kind, Direction::Over, &[], true);
    memory.most.set(None);
    *memory.meanwhile.borrow_mut() = Some(Box::new(|objects| {
        let agent = objects.get_mut(&path(Kind::BeeaiAgent)).unwrap();
        agent["spec"]["image"] = json!("reg/weather:v2");
        agent["metadata"]["resourceVersion"] = json!("meanwhile");
    }));
    assert_eq!(go(&memory, kind, Direction::Over, &[], true).unwrap().outcome, "blocked");
    assert_eq!(memory.at(kind).unwrap()["spec"]["image"], "reg/weather:v2");
}

/// What our finalizer or somebody else's holds is on its way out, and goes on holding nobody up.
#[test]
fn finalizers_hold_nobody_up() {
    let memory = running(Kind::BeeaiAgent);
    memory.edit(Kind::BeeaiAgent, |agent| agent["metadata"]["finalizers"] = json!([keys::FINALIZER_BEEAI]));
    assert_eq!(go(&memory, Kind::BeeaiAgent, Direction::Over, &[], true).unwrap().outcome, "done");
    assert_eq!(memory.at(Kind::BeeaiAgent).unwrap()["metadata"]["deletionTimestamp"], "now");
    let back = go(&memory, Kind::BeeaiAgent, Direction::Back, &[], true).unwrap();
    assert_eq!(back.outcome, "blocked");
    assert!(back.obstacles[0].contains("is being deleted; beeai.dev/finalizer hold it"), "{:?}", back.obstacles);
}

type Change = fn(&Memory);

#[test]
fn everything_that_stands_in_the_way_is_named_and_nothing_is_written() {
    let kind = Kind::BeeaiAgent;
    let build = |status: &str| {
        json!({"apiVersion": kind.api_version(), "kind": "AgentBuild", "metadata": {"name": "b", "namespace": TEAM},
            "spec": {"deployAfterBuild": true, "agent": {"name": NAME}}, "status": {"buildStatus": status}})
    };
    let nothing: Change = |_| {};
    let cases: Vec<(&str, Change, Vec<Value>)> = vec![
        (
            "Deployment weather does not exist",
            |memory| drop(memory.objects.borrow_mut().remove(&path(Kind::Deployment))),
            vec![],
        ),
        (
            "Service weather does not exist",
            |memory| drop(memory.objects.borrow_mut().remove(&path(Kind::Service))),
            vec![],
        ),
        (
            "belongs to nobody",
            |memory| memory.edit(Kind::Service, |object| object["metadata"]["ownerReferences"] = json!([])),
            vec![],
        ),
        (
            "belongs to Agent weather of kaos.tools/v1alpha1",
            |memory| {
                memory.edit(Kind::Deployment, |object| {
                    object["metadata"]["ownerReferences"] =
                        json!([{"apiVersion": "kaos.tools/v1alpha1", "kind": "Agent", "name": NAME, "uid": "k", "controller": true}]);
                });
            },
            vec![],
        ),
        (
            "exists already",
            |memory| {
                drop(memory.put(
                    &path(Kind::Agent),
                    json!({"apiVersion": "agent.kagenti.dev/v1alpha1", "metadata": {"name": NAME, "uid": "n"}}),
                ))
            },
            vec![],
        ),
        (
            "held still by somebody",
            |memory| {
                memory.edit(Kind::BeeaiAgent, |agent| {
                    agent["metadata"]["annotations"][keys::ANNOTATION_PAUSED] = json!("true")
                })
            },
            vec![],
        ),
        (
            "is being deleted",
            |memory| memory.edit(Kind::BeeaiAgent, |agent| agent["metadata"]["deletionTimestamp"] = json!("now")),
            vec![],
        ),
        (
            "too large to be remembered",
            |memory| memory.edit(Kind::BeeaiAgent, |agent| agent["spec"]["x"] = json!("x".repeat(200_000))),
            vec![],
        ),
        ("AgentBuild b is running", nothing, vec![build("Building")]),
        ("AgentBuild b keeps this Agent", nothing, vec![build("Completed")]),
        ("AgentBuild b writes this Agent once", nothing, vec![build("Failed")]),
    ];
    for (words, change, builds) in cases {
        let memory = running(kind);
        change(&memory);
        let before = memory.objects.borrow().clone();
        let blocked = go(&memory, kind, Direction::Over, &builds, true).unwrap();
        assert_eq!((blocked.outcome, memory.writes.get()), ("blocked", 0), "{words}: {:?}", blocked.obstacles);
        assert!(blocked.obstacles.iter().any(|one| one.contains(words)), "{words}: {:?}", blocked.obstacles);
        assert_eq!(*memory.objects.borrow(), before);
    }
    // What the API server would refuse, such as a name that is too long, is said before anything is held still.
    let memory = Memory { refuses: Some((422, "metadata.name: is too long")), ..running(kind) };
    let blocked = go(&memory, kind, Direction::Over, &[], true).unwrap();
    assert_eq!((blocked.outcome, memory.writes.get()), ("blocked", 0));
    assert!(
        blocked.obstacles[0].contains("would refuse") && blocked.obstacles[0].contains("too long"),
        "{:?}",
        blocked.obstacles
    );
    // A build of another group, and one that keeps no Agent, concern nobody here.
    let mut other = build("Building");
    other["apiVersion"] = json!("beeai.beeai.dev/v1");
    let mut none = build("Building");
    none["spec"]["deployAfterBuild"] = json!(false);
    assert_eq!(go(&running(kind), kind, Direction::Over, &[other, none], false).unwrap().outcome, "planned");
}

#[test]
fn what_would_restart_or_is_another_agents_is_not_given_back() {
    let kind = Kind::BeeaiAgent;
    let cases: [(&str, Change); 6] = [
        ("was changed since the hand-over", |memory| {
            memory.edit(Kind::Agent, |agent| agent["metadata"]["generation"] = json!(2))
        }),
        ("made otherwise than at the hand-over", |memory| {
            memory.edit(Kind::Deployment, |object| {
                object["spec"]["template"]["spec"]["containers"][0]["image"] = json!("x")
            })
        }),
        ("was made since", |memory| {
            memory.put(
                &path(Kind::BeeaiAgent),
                json!({"apiVersion": "beeai.dev/v1", "metadata": {"name": NAME, "uid": "new"}}),
            );
        }),
        ("does not say what had its Deployment before", |memory| {
            memory.edit(Kind::Agent, |agent| {
                agent["metadata"]["annotations"][keys::ANNOTATION_HANDED_OVER_FROM] = json!("{")
            })
        }),
        ("Deployment weather does not exist", |memory| {
            drop(memory.objects.borrow_mut().remove(&path(Kind::Deployment)))
        }),
        ("belongs to nobody", |memory| {
            memory.edit(Kind::Service, |object| object["metadata"]["ownerReferences"] = json!([]))
        }),
    ];
    for (words, change) in cases {
        let memory = running(kind);
        go(&memory, kind, Direction::Over, &[], true).unwrap();
        change(&memory);
        let writes = memory.writes.get();
        let objects = [(Kind::Agent, memory.at(Kind::Agent).unwrap())];
        assert_eq!(concerned(&objects, Direction::Back).len(), 1, "{words}");
        let blocked = go(&memory, kind, Direction::Back, &[], true).unwrap();
        assert_eq!((blocked.outcome, memory.writes.get()), ("blocked", writes), "{words}: {:?}", blocked.obstacles);
        assert!(blocked.obstacles.iter().any(|one| one.contains(words)), "{words}: {:?}", blocked.obstacles);
    }
    // Enrolment writes labels and annotations of the template: those are no change.
    let memory = running(kind);
    go(&memory, kind, Direction::Over, &[], true).unwrap();
    memory.edit(Kind::Deployment, |object| {
        object["spec"]["template"]["metadata"]["annotations"] = json!({"kagenti.io/config-hash": "x"})
    });
    assert_eq!(go(&memory, kind, Direction::Back, &[], true).unwrap().outcome, "done");
}

/// What Go's operator made carries no label of a group, and gets none when it is given back.
#[test]
fn a_label_that_was_not_there_does_not_come() {
    let kind = Kind::BeeaiCompatAgent;
    let memory = running(kind);
    memory.edit(Kind::Deployment, |object| object["metadata"]["labels"] = json!({"app": NAME}));
    let before = given_back(&memory, kind);
    go(&memory, kind, Direction::Over, &[], true).unwrap();
    go(&memory, kind, Direction::Back, &[], true).unwrap();
    assert_eq!(given_back(&memory, kind), before);
}

/// A webhook that takes back what is written makes an end, not a loop.
#[test]
fn what_never_takes_effect_is_given_up() {
    struct Deaf(Memory);
    impl Desk for Deaf {
        async fn get(&self, path: &str) -> anyhow::Result<Answer> {
            self.0.get(path).await
        }
        async fn dry_run(&self, path: &str, body: &Value) -> anyhow::Result<Answer> {
            self.0.dry_run(path, body).await
        }
        async fn act(&self, _: &Action) -> anyhow::Result<Answer> {
            self.0.writes.set(self.0.writes.get() + 1);
            Ok(Answer::Object(Value::Null))
        }
    }
    let deaf = Deaf(running(Kind::BeeaiAgent));
    let scene = (TEAM, Kind::BeeaiAgent, NAME);
    let handed = crate::cli::cluster::block_on(one(&deaf, scene, (&[], Direction::Over), true)).unwrap();
    assert_eq!((handed.outcome, deaf.0.writes.get()), ("refused", super::WRITES));
}

#[test]
fn that_no_agent_is_concerned_names_the_one_that_was_asked_for_and_claims_no_more_than_was_read() {
    for (name, direction, seen_all, wanted) in [
        (None, Direction::Over, true, "no Agent in namespace team1 is of BeeAI"),
        (Some("web"), Direction::Over, true, "no Agent web in namespace team1 is of BeeAI"),
        (Some("web"), Direction::Back, true, "no Agent web in namespace team1 was handed over"),
        (None, Direction::Over, false, "no Agent that could be read in namespace team1 is of BeeAI"),
    ] {
        assert_eq!(nobody((TEAM, name), direction, seen_all), wanted);
    }
}

/// What was done to the Agents before was not printed, neither for people nor as JSON.
#[tokio::test]
async fn what_became_of_agents_is_printed_though_the_cluster_is_lost_at_the_next_one() {
    use clap::Parser as _;
    let words = ["drawbridge", "migrate", "beeai", "--hand-over", "-n", TEAM, "-o", "json"];
    let crate::cli::Command::Migrate(asked) = crate::cli::Cli::try_parse_from(words).unwrap().command else {
        unreachable!("it is a migration");
    };
    let migrate::What::Beeai(args) = asked.what else { unreachable!("it is of BeeAI") };
    let collection = Kind::BeeaiAgent.path(TEAM);
    let agent =
        |name: &str| json!({"metadata": {"name": name, "namespace": TEAM, "uid": name}, "spec": {"image": "i"}});
    let (both, first) = ([agent("a"), agent("b")], agent("a"));
    let cluster = fake::cluster(move |path| {
        let says = json!({"kind": "Status", "apiVersion": "v1", "status": "Failure", "message": "no", "reason": "X", "code": 401});
        match path.strip_prefix(&*collection) {
            Some("") => fake::list("Agent", &Kind::BeeaiAgent.api_version(), &both),
            Some("/a") => (200, first.clone()),
            Some("/b") => (401, says),
            _ => fake::absent(),
        }
    })
    .await;
    let (mut stdin, mut out, mut err) = (&b""[..], Vec::new(), Vec::new());
    let mut io = Io { stdin: &mut stdin, out: &mut out, err: &mut err, colour: false };
    let error = super::run(&cluster, &args, &mut io).await.unwrap_err();
    assert!(error.chain().any(|cause| cause.is::<Unreachable>()), "{error:#}");
    assert!(error.to_string().starts_with("Agent b and those behind it"), "{error:#}");
    let report: Value = serde_json::from_slice(&out).unwrap();
    let names: Vec<_> = report["agents"].as_array().unwrap().iter().map(|one| &one["name"]).collect();
    assert_eq!(names, [&json!("a")], "{report}");
}
