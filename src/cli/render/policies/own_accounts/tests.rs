use std::collections::BTreeMap;

use kube::core::Status;

use super::*;
use crate::api::refusal::is_of_the_moment;
use crate::cli::reference::keys::{Carrier, ROWS};
use crate::cli::render::FailureMode;
use crate::cli::render::kinds::Kinds;
use crate::cli::render::rbac::rights;

fn install(mode: FailureMode) -> Install {
    Install::new(mode, "somewhere", "drawbridge:test")
}

fn specs(mode: FailureMode, kind: &str) -> Vec<Value> {
    let all = policies(&install(mode)).into_iter().filter(|object| object["kind"] == kind);
    all.map(|object| object["spec"].clone()).collect()
}

#[test]
fn mend_14_only_our_own_account_is_ever_asked_and_a_policy_that_fails_refuses() {
    for spec in specs(FailureMode::Gate, "ValidatingAdmissionPolicy") {
        assert_eq!(
            spec["matchConditions"][0]["expression"],
            "request.userInfo.username == 'system:serviceaccount:somewhere:drawbridge-controllers'"
        );
        assert_eq!(spec["failurePolicy"], "Fail");
    }
    for spec in specs(FailureMode::Gate, "ValidatingAdmissionPolicyBinding") {
        assert_eq!(spec["validationActions"], serde_json::json!(["Deny"]));
        assert_eq!(spec.get("matchResources"), None);
    }
}

/// A missing parameter is answered before any condition: people are matched by labels alone, and nobody by a policy without them.
#[test]
fn mend_14_policies_with_parameters_match_only_what_carries_our_labels() {
    let with: Vec<_> = specs(FailureMode::Fail, "ValidatingAdmissionPolicy")
        .into_iter()
        .filter(|spec| spec.get("paramKind").is_some())
        .collect();
    assert_eq!(with.len(), 12);
    for spec in with {
        let selector = &spec["matchConstraints"]["objectSelector"];
        assert!(selector.get("matchLabels").is_some() || selector.get("matchExpressions").is_some(), "{spec}");
    }
}

/// What such a policy compares with may be heard of a moment later: who is refused by one tries again, and nobody is told of a failure.
#[test]
fn a_refusal_by_a_policy_with_parameters_is_one_of_the_moment() {
    let all = policies(&install(FailureMode::Gate));
    let with = all.iter().filter(|object| object["spec"].get("paramKind").is_some());
    for policy in with.filter_map(|object| object["metadata"]["name"].as_str()) {
        let message = format!("ValidatingAdmissionPolicy '{policy}' with binding '{policy}' denied request: x");
        assert!(is_of_the_moment(&Status { message, ..Status::default() }), "{policy}");
    }
}

/// Whoever asks for a right to write says here what of the kind is ours: nothing is written that only rights bind.
#[test]
fn mend_14_every_kind_that_is_written_is_bound_by_more_than_its_name() {
    // Who is evicted the API server does not tell a policy.
    const BY_NAMESPACE: [&str; 1] = ["pods/eviction"];
    let policies = specs(FailureMode::Gate, "ValidatingAdmissionPolicy");
    let rules: Vec<_> = policies
        .iter()
        .flat_map(|spec| spec["matchConstraints"]["resourceRules"].as_array().unwrap())
        .filter(|rule| rule["apiGroups"] != serde_json::json!(["*"]))
        .collect();
    for right in rights(FailureMode::Gate).iter().filter(|right| right.role == Role::Controllers) {
        let writes = right.verbs.iter().any(|verb| !["get", "list", "watch"].contains(verb));
        // A status says what we found; of finalizers there is a right and no request.
        let said = right.resource.ends_with("/status") || right.resource.ends_with("/finalizers");
        if !writes || said || BY_NAMESPACE.contains(&right.resource) {
            continue;
        }
        let bound = rules.iter().any(|rule| {
            rule["apiGroups"] == serde_json::json!([right.group])
                && rule["resources"].as_array().unwrap().iter().any(|resource| resource == right.resource)
        });
        assert!(bound, "{}/{} is written and not bound", right.group, right.resource);
    }
}

#[test]
fn mend_14_the_reach_is_the_table_of_rights() {
    let reach = |mode| specs(mode, "ValidatingAdmissionPolicy")[0]["validations"][0]["expression"].to_string();
    let (fail, gate) = (reach(FailureMode::Fail), reach(FailureMode::Gate));
    for one in ["CREATE /configmaps", "UPDATE apps/deployments", "UPDATE agent.kagenti.dev/agents/status"] {
        assert!(fail.contains(&format!("'{one}'")), "{fail}");
    }
    assert!(gate.contains("'CREATE /pods'") && !fail.contains("'CREATE /pods'"));
    // Of rights, only the one by which Pods publish their signed card, which the next policy binds to one ConfigMap.
    let group = "rbac.authorization.k8s.io/";
    let rights = gate.split('\'').filter_map(|one| one.split_once(group));
    assert!(
        rights.clone().count() > 0 && rights.clone().all(|(_, kind)| ["roles", "rolebindings"].contains(&kind)),
        "{gate}"
    );
    for never in
        ["clusterroles", "clusterrolebindings", "serviceaccounts/token", "pods/exec", "validatingadmissionpolicies"]
    {
        assert!(!gate.contains(never), "{gate}");
    }
}

/// (which kinds are served, parameters that are left)
#[test]
fn no_policy_asks_for_a_kind_that_is_not_served_and_nothing_is_made_for_one() {
    for (kinds, groups) in
        [(Kinds::Kaos, ["kaos.tools/"].as_slice()), (Kinds::Beeai, ["beeai.dev/", "beeai.beeai.dev/"].as_slice())]
    {
        let install = Install { kinds, ..install(FailureMode::Fail) };
        let specs = |kind: &str| {
            let all = policies(&install).into_iter().filter(|object| object["kind"] == kind).collect::<Vec<_>>();
            all.into_iter().map(|object| (object["metadata"]["name"].clone(), object["spec"].clone()))
        };
        for (name, spec) in specs("ValidatingAdmissionPolicy") {
            if let Some(kind) = spec["paramKind"]["apiVersion"].as_str() {
                assert!(groups.iter().any(|group| kind.starts_with(group)), "{name}: {kind}");
            } else if name.as_str().is_some_and(|name| name.ends_with("-new")) {
                assert_eq!(spec["validations"][0]["expression"], "false", "{name}");
            }
        }
        for (name, spec) in specs("ValidatingAdmissionPolicyBinding") {
            let policy = specs("ValidatingAdmissionPolicy").find(|(policy, _)| *policy == name).unwrap().1;
            assert_eq!(spec.get("paramRef").is_some(), policy.get("paramKind").is_some(), "{name}");
        }
    }
}

/// The API server compares a write with every parameter: all of a namespace's Agents, ModelAPIs or MCPServers may be thousands.
#[test]
fn nothing_is_compared_with_every_agent_but_what_that_agent_itself_must_say() {
    let every: Vec<_> = specs(FailureMode::Fail, "ValidatingAdmissionPolicyBinding")
        .into_iter()
        .filter(|spec| spec["paramRef"]["selector"] == serde_json::json!({}))
        .map(|spec| spec["policyName"].as_str().unwrap().to_owned())
        .collect();
    assert_eq!(
        every,
        [
            "drawbridge-own-agents",
            "drawbridge-own-builds-new",
            "drawbridge-own-beeai-builds-new",
            "drawbridge-own-beeai-compat-builds-new",
            // Of builds there are few, and of Agents that are made for them as well.
            "drawbridge-own-beeai-kept-new",
            "drawbridge-own-beeai-compat-kept-new"
        ]
    );
}

/// The variables of that policy as one text, and the expressions of its validations.
fn rules_of(name: &str) -> (String, Vec<String>) {
    let all = policies(&install(FailureMode::Fail));
    let found = all.iter().find(|one| one["kind"] == "ValidatingAdmissionPolicy" && one["metadata"]["name"] == name);
    let spec = &found.unwrap()["spec"];
    let validations = spec["validations"].as_array().unwrap().iter();
    let validations = validations.map(|one| one["expression"].as_str().unwrap().to_owned()).collect();
    (spec["variables"].to_string(), validations)
}

/// The leader makes them anew once they were deleted; without one of them no agent's Pod begins.
#[test]
fn an_account_that_parametrises_policies_may_be_made_with_what_those_go_by() {
    let (_, validations) = rules_of("drawbridge-own-objects");
    let accounts = validations.iter().find(|one| one.contains("!= 'serviceaccounts'")).unwrap();
    let (made, changed) = accounts.split_once("request.operation == 'UPDATE'").unwrap();
    let words = listed(keys::ANNOTATIONS_OF_PARAMETERS);
    let only = format!(".all(k, k in [{words}])");
    assert!(made.contains(&only) && changed.contains(&words), "{accounts}");
    // What is made for a workload carries none of them.
    let (of_workloads, of_policies) = made.split_once(" || request.namespace == ").unwrap();
    assert!(of_workloads.contains(".all(k, k.startsWith('kagenti.io/'))") && !of_workloads.contains(&only), "{made}");
    assert!(of_policies.contains(&only) && !of_policies.contains("startsWith('kagenti.io/')"), "{made}");
}

/// A Deployment as the KAOS operator made it lacks our label, and its Pods follow a Secret all the same.
#[test]
fn of_a_deployment_of_kaos_the_annotation_that_rolls_for_a_secret_is_written_and_of_others_it_is_not() {
    let (variables, validations) = rules_of("drawbridge-own-workloads");
    let allowed = format!("(variables.of_kaos && k == '{}')", keys::ANNOTATION_KAOS_REFERENCES);
    assert_eq!(variables.matches(&allowed).count(), 2, "the template's, before and after: {variables}");
    assert_eq!(variables.matches(keys::ANNOTATION_KAOS_REFERENCES).count(), 2, "{variables}");
    assert!(!validations.iter().any(|one| one.contains(keys::ANNOTATION_KAOS_REFERENCES)), "{validations:?}");
}

/// Whether a selector, as it is rendered, selects what has these labels.
fn selects(selector: &Value, labels: &BTreeMap<&str, &str>) -> bool {
    let mut equal = selector["matchLabels"].as_object().into_iter().flatten();
    let mut expressions = selector["matchExpressions"].as_array().into_iter().flatten();
    let has = |key: &str, value: &Value| labels.get(key).is_some_and(|said| *value == *said);
    equal.all(|(key, value)| has(key, value))
        && expressions.all(|one| {
            let key = one["key"].as_str().unwrap();
            let among = || one["values"].as_array().unwrap().iter().any(|value| has(key, value));
            match one["operator"].as_str().unwrap() {
                "In" => among(),
                "NotIn" => !among(),
                "Exists" => labels.contains_key(key),
                "DoesNotExist" => !labels.contains_key(key),
                other => panic!("{other}"),
            }
        })
}

/// Which policy asks whether there is what something is made for follows from its labels, and those are written by whoever holds the token: with a
/// word that none of them knew, Deployments of any kind could be made in every namespace.
#[test]
fn whatever_its_labels_say_what_is_made_for_an_agent_or_a_build_is_asked_for() {
    let policies = specs(FailureMode::Fail, "ValidatingAdmissionPolicy");
    let asked = |resource: &str, labels: &BTreeMap<&str, &str>| {
        let mut policies = policies.iter().filter(|spec| spec["validations"][0]["expression"] == "params != null");
        policies.any(|spec| {
            let constraints = &spec["matchConstraints"];
            let mut rules = constraints["resourceRules"].as_array().unwrap().iter();
            rules.any(|rule| rule["resources"].as_array().unwrap().iter().any(|one| *one == resource))
                && selects(&constraints["objectSelector"], labels)
        })
    };
    let groups = [None, Some(keys::GROUP_BEEAI), Some(keys::GROUP_BEEAI_COMPAT), Some("other"), Some("")];
    let kinds = [None, Some("agent"), Some("modelapi"), Some("mcpserver"), Some("other"), Some("")];
    for (group, kind) in groups.into_iter().flat_map(|group| kinds.into_iter().map(move |kind| (group, kind))) {
        let with = |key: &'static str, value: &'static str| -> BTreeMap<&str, &str> {
            let words = [(keys::LABEL_BEEAI_GROUP, group), (keys::LABEL_KAOS_KIND, kind), (key, Some(value))];
            words.into_iter().filter_map(|(key, word)| Some((key, word?))).collect()
        };
        // Without it our account makes neither.
        let made = with(keys::LABEL_APP_MANAGED_BY, keys::MANAGED_BY_DRAWBRIDGE);
        for resource in ["deployments", "services"] {
            assert!(asked(resource, &made), "{resource}: {made:?}");
        }
        let run = with(keys::LABEL_AGENT_BUILD, "x");
        assert!(asked("pipelineruns", &run), "{run:?}");
    }
}

/// An Agent that our account made for nobody would open its namespace to Deployments of our account.
#[test]
fn an_agent_that_a_build_keeps_is_made_only_where_builds_of_its_group_are() {
    let all = policies(&install(FailureMode::Fail));
    let named = |kind: &str, name: &str| {
        let found = all.iter().find(|one| one["kind"] == kind && one["metadata"]["name"] == name);
        found.unwrap_or_else(|| panic!("{name}"))["spec"].clone()
    };
    for (name, group) in [
        (keys::POLICY_OWN_BEEAI_KEPT_NEW, keys::GROUP_BEEAI),
        (keys::POLICY_OWN_BEEAI_COMPAT_KEPT_NEW, keys::GROUP_BEEAI_COMPAT),
    ] {
        let (policy, binding) =
            (named("ValidatingAdmissionPolicy", name), named("ValidatingAdmissionPolicyBinding", name));
        let kind = serde_json::json!({"apiVersion": format!("{group}/v1"), "kind": "AgentBuild"});
        assert_eq!(policy["paramKind"], kind);
        assert_eq!(binding["paramRef"]["parameterNotFoundAction"], "Deny");
        let constraints = &policy["matchConstraints"];
        let rules = serde_json::json!([{"apiGroups": [group], "apiVersions": ["*"], "operations": ["CREATE"], "resources": ["agents"]}]);
        assert_eq!(constraints["resourceRules"], rules);
        // The label without which the policy about such Agents lets our account make none.
        let label = BTreeMap::from([(keys::LABEL_APP_MANAGED_BY, keys::BEEAI_BUILD_CONTROLLER)]);
        assert!(selects(&constraints["objectSelector"], &label));
        assert!(!selects(&constraints["objectSelector"], &BTreeMap::new()), "people's Agents are not asked about");
        let (_, validations) = rules_of(keys::POLICY_OWN_BEEAI_KEPT);
        let required =
            format!("labels[?'{}'].orValue('') == '{}'", keys::LABEL_APP_MANAGED_BY, keys::BEEAI_BUILD_CONTROLLER);
        assert!(validations[0].contains(&required), "{validations:?}");
    }
}

/// A stolen token would else have another Secret mounted into the sidecars of any workload, or leave its port as it is.
#[test]
fn what_steers_an_injection_is_for_people_to_write() {
    let of_pods = ROWS.iter().filter(|row| matches!(row.carrier, Carrier::PodLabel | Carrier::PodAnnotation));
    let steering: Vec<_> = of_pods.map(|row| row.key).filter(|key| key.starts_with(keys::PREFIX)).collect();
    assert!(steering.len() > 8, "{steering:?}");
    // What enrols is ours to write as well.
    for key in steering.into_iter().filter(|key| *key != keys::LABEL_TYPE) {
        assert!(workloads::OF_PEOPLE.contains(&key), "{key}");
    }
}

/// With another owner beside it, what is made for nobody would not be collected.
#[test]
fn what_is_made_beside_workloads_has_no_owner_but_what_it_is_made_for() {
    let (_, validations) = rules_of("drawbridge-own-objects");
    for (resource, times) in [("configmaps", 2), ("httproutes", 2), ("persistentvolumeclaims", 1)] {
        let rule = validations.iter().find(|one| one.contains(&format!("!= '{resource}'"))).unwrap();
        let alone = "variables.new.metadata.?ownerReferences.orValue([]).all(o, o.?controller.orValue(false)";
        assert_eq!(rule.matches(alone).count(), times, "{rule}");
    }
}
