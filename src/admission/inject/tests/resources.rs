//! A Pod's own resources against what its containers and the sidecars ask for together.

use super::*;
use crate::config::layers::Field;
use crate::config::resolved::NativeSidecars;

/// An agent that requests 100m of CPU, in a Pod with these resources of its own.
fn rationed(resources: Value) -> Value {
    let mut pod = fixtures::pod();
    pod["spec"]["containers"][0]["resources"] = json!({"requests": {"cpu": "100m"}});
    pod["spec"]["resources"] = resources;
    pod
}

#[test]
fn a_pods_own_resources_have_room_for_the_sidecars_or_it_is_refused() {
    let at = |version, native: NativeSidecars| {
        let mut snapshot = with(|resolved| resolved.native_sidecars = Field::built_in(native));
        snapshot.view.server_version = version;
        snapshot
    };
    let new = || at((1, 34), NativeSidecars::Auto);
    // The agent's 100m, envoy-proxy's and spiffe-helper's 50m each; proxy-init's 10m are over by then.
    let refused = refusal(&rationed(json!({"requests": {"cpu": "199m"}})), &new());
    assert_eq!(refused.reason, Reason::PodResourcesExceeded);
    assert_eq!(
        (refused.field.as_deref(), refused.seen.as_deref()),
        (Some("spec.resources.requests.cpu"), Some("199m"))
    );
    assert!(refused.remedy.contains("200m"), "{refused}");
    for enough in [
        json!({"requests": {"cpu": "200m"}}),
        json!({"requests": {"cpu": 0.2}}),
        json!({"requests": {"cpu": "1", "memory": "1Gi"}}),
        json!({"limits": {"memory": "128Mi"}, "requests": {"cpu": "200m"}}),
        json!({}),
    ] {
        assert_eq!(fixtures::review_pod(&rationed(enough.clone()), &new()).reason, Reason::Injected, "{enough}");
        // Also on the way on which container resources are passed over.
        assert_eq!(fixtures::review_sent(&rationed(enough.clone()), &new()).reason, Reason::Injected, "{enough}");
    }
    for (little, field, remedy) in [
        // The API server fills in requests where there are limits: those of the agent, or the limits themselves.
        (json!({"limits": {"cpu": "2"}}), "spec.resources.requests.cpu", "200m"),
        (json!({"limits": {"memory": "127Mi"}, "requests": {"cpu": "1"}}), "spec.resources.requests.memory", "128Mi"),
    ] {
        for verdict in
            [fixtures::review_pod(&rationed(little.clone()), &new()), fixtures::review_sent(&rationed(little), &new())]
        {
            let Outcome::Deny(denial) = verdict.outcome else { panic!("{:?}", verdict.outcome) };
            assert_eq!((denial.reason, denial.field.as_deref()), (Reason::PodResourcesExceeded, Some(field)));
            assert!(denial.remedy.contains(remedy), "{denial}");
        }
    }
    // A limit is compared with each regular container's.
    let limits = json!({"limits": {"cpu": "150m"}, "requests": {"cpu": "150m"}});
    let refused = refusal(
        &rationed(json!({"limits": {"memory": "200Mi"}, "requests": {"cpu": 1}})),
        &at((1, 34), NativeSidecars::Disabled),
    );
    assert_eq!(refused.field.as_deref(), Some("spec.resources.limits.memory"));
    assert!(refused.sentence.contains("envoy-proxy") && refused.remedy.contains("256Mi"), "{refused}");
    // Before that the field says nothing.
    assert_eq!(fixtures::review_pod(&rationed(limits), &at((1, 33), NativeSidecars::Auto)).reason, Reason::Injected);
}

#[test]
fn an_init_container_that_needs_more_than_all_others_decides() {
    let mut snapshot = with(|resolved| resolved.native_sidecars = Field::built_in(NativeSidecars::Auto));
    snapshot.view.server_version = (1, 36);
    let mut pod = rationed(json!({"requests": {"cpu": "1099m"}}));
    pod["spec"]["initContainers"] = json!([{"name": "migrate", "resources": {"limits": {"cpu": 1}}}]);
    assert!(refusal(&pod, &snapshot).remedy.contains("1100m"), "beside both sidecars");
    pod["spec"]["resources"]["requests"]["cpu"] = json!("1100m");
    assert_eq!(fixtures::review_pod(&pod, &snapshot).reason, Reason::Injected);
}
