//! A new Agent whose objects the API server does not take.

use super::*;

#[test]
fn case_21_a_new_agent_whose_objects_are_refused_is_pending_and_not_ready() {
    let mut bench = running();
    agent(&mut bench, "new", json!({}));
    let is_own = |op: &Op| matches!(op, Op::Own { .. });
    let failed = (0..8).filter(|_| bench.round_that_fails(&AGENT_ROW, is_own)).count();
    assert!(failed >= 5, "{failed}");
    let (phase, ready, message) = says(&bench, Kind::KaosAgent, "new");
    assert_eq!((&*phase, ready), ("Pending", false), "{message}");
    assert!(message.contains("answered with 500"), "{message}");
    assert!(bench.find(Kind::Deployment, "agent-new").is_none());
}
