//! Trust before injection: a template says nothing of it, and Pods wait until something cuts them off.

use super::*;
use crate::domain::trust::TrustLevel;

const LABEL: &str = "agent.kagenti.dev/signature-verified";

fn at(level: TrustLevel, cut_off: bool) -> Snapshot {
    fixtures::snapshot_with(
        |_| {},
        |view| {
            view.trust = level;
            view.cut_off = cut_off;
        },
    )
}

#[test]
fn the_trust_label_of_a_template_is_taken_off_whether_injection_is_about_the_pod_or_not() {
    let outs: [fn(&mut Value); 4] = [
        |_| {},
        |pod| pod["metadata"]["labels"]["kagenti.io/inject"] = "disabled".into(),
        |pod| drop(pod["metadata"]["labels"].as_object_mut().unwrap().remove("kagenti.io/type")),
        |pod| pod["metadata"]["annotations"] = json!({"kubernetes.io/config.mirror": "x"}),
    ];
    for out in outs {
        let mut pod = fixtures::pod();
        out(&mut pod);
        let plain = injected(&pod, &fixtures::snapshot());
        for value in ["true", "false", ""] {
            let mut says = pod.clone();
            says["metadata"]["labels"][LABEL] = value.into();
            assert_eq!(injected(&says, &fixtures::snapshot()), plain);
            assert_eq!(warned(&says, &fixtures::snapshot()).last(), Some(&Reason::TrustLabelIgnored));
            assert_eq!(
                fixtures::review_sent(&says, &fixtures::snapshot()),
                fixtures::review_pod(&says, &fixtures::snapshot())
            );
        }
        assert!(!warned(&pod, &fixtures::snapshot()).contains(&Reason::TrustLabelIgnored));
    }
}

#[test]
fn who_applies_a_job_hears_that_its_pods_stay_cut_off() {
    use crate::api::review::{Operation, Phase};
    let template = |labels: Value| {
        json!({"metadata": {"labels": labels}, "spec": {"restartPolicy": "Never",
        "containers": [{"name": "a", "image": "i"}]}})
    };
    let told = |kind: &str, group: &str, spec: Value, snapshot: &Snapshot| {
        let object = json!({"apiVersion": format!("{group}/v1"), "kind": kind, "metadata": {"name": "w", "namespace": "team1"}, "spec": spec});
        let verdict = fixtures::review(Phase::Validate, Operation::Create, (group, kind), &object, snapshot);
        verdict.warnings.into_iter().map(|warning| warning.reason).collect::<Vec<_>>()
    };
    let agent = json!({"kagenti.io/type": "agent"});
    let (on, off) = (at(TrustLevel::Enforced, true), at(TrustLevel::Audit, true));
    let job = json!({"template": template(agent.clone())});
    let cron = json!({"jobTemplate": {"spec": {"template": template(agent.clone())}}});
    for (kind, spec) in [("Job", &job), ("CronJob", &cron)] {
        assert!(told(kind, "batch", spec.clone(), &on).contains(&Reason::UntrustableKind), "{kind}");
        assert!(!told(kind, "batch", spec.clone(), &off).contains(&Reason::UntrustableKind), "{kind}");
    }
    assert!(!told("Deployment", "apps", job.clone(), &on).contains(&Reason::UntrustableKind));
    let plain = json!({"template": template(json!({"app": "x"}))});
    assert!(!told("Job", "batch", plain, &on).contains(&Reason::UntrustableKind));
    let mut says = agent;
    says[LABEL] = "true".into();
    assert!(told("Deployment", "apps", json!({"template": template(says)}), &off).contains(&Reason::TrustLabelIgnored));
}

#[test]
fn what_has_to_prove_first_who_it_is_waits_until_something_cuts_it_off_injected_or_not() {
    let agent = fixtures::pod();
    let mut disabled = fixtures::pod();
    disabled["metadata"]["labels"]["kagenti.io/inject"] = "disabled".into();
    let mut plain = fixtures::pod();
    plain["metadata"]["labels"].as_object_mut().unwrap().remove("kagenti.io/type");
    for (level, waiting) in [
        (TrustLevel::Off, vec![]),
        (TrustLevel::Audit, vec![]),
        (TrustLevel::Enforced, vec![&agent, &disabled]),
        (TrustLevel::EnforcedAll, vec![&agent, &disabled, &plain]),
    ] {
        for pod in [&agent, &disabled, &plain] {
            assert!(fixtures::review_pod(pod, &at(level, true)).allowed(), "{level:?}: it is there");
            let verdict = fixtures::review_pod(pod, &at(level, false));
            let waits = waiting.contains(&pod);
            assert_eq!(verdict.reason == Reason::NetworkPolicyPending, waits, "{level:?}: {verdict:?}");
            if waits {
                let denial = refusal(pod, &at(level, false));
                assert_eq!(denial.code, 409);
            }
        }
    }
}
