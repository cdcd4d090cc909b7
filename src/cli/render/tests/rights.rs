//! Rights of the operator and of people.

use super::*;

#[test]
fn g9_rights_have_no_wildcard_and_no_way_up() {
    const NEVER: &[&str] = &["*", "escalate", "bind", "impersonate", "deletecollection"];
    for right in [FailureMode::Fail, FailureMode::Gate].into_iter().flat_map(rbac::rights) {
        assert!(right.verbs.iter().all(|verb| !NEVER.contains(verb)), "{right:?}");
        assert!(!right.group.contains('*') && !right.resource.contains('*'), "{right:?}");
        assert!(!["pods/exec", "serviceaccounts/token"].contains(&right.resource), "{right:?}");
        if right.resource == "secrets" && right.verbs == ["get"] && right.scope == rbac::Scope::Cluster {
            // Which keys a Secret has that a build names: by name, never listed or watched.
            assert_eq!(right.role, rbac::Role::Controllers, "{right:?}");
        } else if right.resource == "secrets" && right.verbs == ["create", "patch"] {
            // The login that a build of BeeAI pushes with; which Secrets those are is bound by the policy for our own account.
            assert_eq!(right.role, rbac::Role::Controllers, "{right:?}");
        } else if right.resource == "secrets" {
            assert_eq!(right.scope, rbac::Scope::Own, "Secrets only at home: {right:?}");
            assert!(right.name.is_some() || right.verbs == ["create"], "Secrets only by name: {right:?}");
        }
    }
}

/// OpenShift asks whoever changes the owners of an object for the right to delete it. With the right alone nothing is deleted: the policy for our own
/// account knows no such operation.
#[test]
fn where_owners_are_enforced_every_kind_whose_owners_change_may_be_deleted_and_by_policy_is_not() {
    let rendered = |openshift: bool| -> Vec<Value> {
        let mut install = install(FailureMode::Fail);
        install.values.openshift = openshift;
        parts(&install).into_iter().flat_map(|part| part.objects).collect()
    };
    let may_delete = |objects: &[Value], role: &str, resource: &str| {
        let rules = one(objects, "ClusterRole", role)["rules"].as_array().unwrap();
        let has = |list: &Value, word: &str| list.as_array().unwrap().iter().any(|one| one == word);
        rules.iter().any(|rule| has(&rule["resources"], resource) && has(&rule["verbs"], "delete"))
    };
    let (plain, openshift) = (rendered(false), rendered(true));
    for resource in ["serviceaccounts", "secrets"] {
        assert!(!may_delete(&plain, "drawbridge-controllers", resource), "{resource}");
        assert!(may_delete(&openshift, "drawbridge-controllers", resource), "{resource}");
        assert!(!may_delete(&openshift, "drawbridge-webhook", resource), "{resource}");
        let reach = one(&openshift, "ValidatingAdmissionPolicy", "drawbridge-own-reach").to_string();
        assert!(!reach.contains(&format!("'DELETE /{resource}'")), "{resource}");
    }
    // What is owned and deleted by the table of rights.
    for resource in ["configmaps", "services", "deployments", "agentcards", "networkpolicies", "roles", "httproutes"] {
        assert!(may_delete(&plain, "drawbridge-controllers", resource), "{resource}");
    }
}

#[test]
fn only_mode_gate_may_make_pods_and_builds_only_take_theirs_away() {
    let writes = |verb: &&'static str| !["get", "list", "watch"].contains(verb);
    let on_pods = |mode| {
        let rights = rbac::rights(mode).into_iter().filter(|right| right.resource == "pods");
        rights.flat_map(|right| right.verbs).copied().filter(writes).collect::<Vec<_>>()
    };
    // The trust label is patched, and by the API server's own policy nothing else.
    assert_eq!(on_pods(FailureMode::Fail), ["delete", "patch"]);
    assert_eq!(on_pods(FailureMode::Gate), ["delete", "patch", "create", "delete"]);
}

#[test]
fn the_webhook_only_reads() {
    for right in rbac::rights(FailureMode::Gate).into_iter().filter(|right| right.role == rbac::Role::Webhook) {
        assert!(right.verbs.iter().all(|verb| ["get", "list", "watch"].contains(verb)), "{right:?}");
    }
}

#[test]
fn whatever_the_watches_and_controllers_ask_for_is_granted() {
    use crate::controllers::rbac::ASKS;
    use crate::store::{Kind, UsedBy};
    let (installed, compat) = (objects(FailureMode::Gate), compat::objects(&install(FailureMode::Gate)));
    for ask in ASKS {
        let is_compat =
            Kind::ALL.iter().any(|kind| kind.group() == ask.group && kind.descriptor().origin == KindOrigin::Compat);
        let (objects, of) = if is_compat { (&compat, "-beeai-compat") } else { (&installed, "") };
        let roles: &[&str] = match ask.asker {
            UsedBy::Every => &["drawbridge-webhook", "drawbridge-controllers"],
            UsedBy::Controllers | UsedBy::Gate => &["drawbridge-controllers"],
        };
        let kind = if ask.own_namespace { "Role" } else { "ClusterRole" };
        for role in roles {
            let rules = one(objects, kind, &format!("{role}{of}"))["rules"].as_array().unwrap();
            for verb in ask.verbs {
                let has = |rule: &Value, key: &str, word: &str| {
                    rule[key].as_array().is_some_and(|words| words.iter().any(|seen| seen == word))
                };
                let granted = rules.iter().any(|rule| {
                    has(rule, "apiGroups", ask.group)
                        && has(rule, "resources", ask.resource)
                        && has(rule, "verbs", verb)
                        && (rule.get("resourceNames").is_none()
                            || ask.name.is_some_and(|name| has(rule, "resourceNames", name)))
                });
                assert!(granted, "{role} may not {verb} {}", ask.resource);
            }
        }
    }
}

#[test]
fn roles_for_people_are_three_for_each_of_our_kinds_and_have_no_wildcard() {
    for (origin, least) in [(KindOrigin::Ours, 3), (KindOrigin::Compat, 1)] {
        let names: Vec<_> = rbac::people(origin, super::super::kinds::Kinds::All)
            .iter()
            .map(|role| role["metadata"]["name"].as_str().unwrap().to_owned())
            .collect();
        let ours = || Kind::ALL.iter().filter(|kind| kind.descriptor().origin == origin);
        let name = |kind: &Kind, who: &str| format!("{}-{who}-role", kind.label().to_lowercase());
        let mut wanted: Vec<_> =
            ours().flat_map(|kind| ["admin", "editor", "viewer"].map(|who| name(kind, who))).collect();
        wanted.sort_unstable();
        assert_eq!(names, wanted);
        assert!(ours().count() >= least, "the table is not empty");
        assert!(
            !rbac::people(origin, super::super::kinds::Kinds::All).iter().any(|role| role.to_string().contains('*'))
        );
    }
}

/// `kubectl scale agent/x` asks for a right on the subresource: the one on the object is not enough.
#[test]
fn who_may_change_an_object_may_scale_it_and_who_may_look_sees_its_scale() {
    let mut scaled = Vec::new();
    for origin in [KindOrigin::Ours, KindOrigin::Compat] {
        let people = rbac::people(origin, super::super::kinds::Kinds::All);
        for kind in Kind::ALL.iter().filter(|kind| kind.descriptor().origin == origin) {
            let definition = serde_json::to_value(kind.descriptor().crd.unwrap()()).unwrap();
            let has_scale = definition["spec"]["versions"][0]["subresources"]["scale"].is_object();
            let resource = format!("{}/scale", kind.plural());
            for (who, verbs) in [
                ("admin", &["get", "update", "patch"][..]),
                ("editor", &["get", "update", "patch"]),
                ("viewer", &["get"]),
            ] {
                let role = one(&people, "ClusterRole", &format!("{}-{who}-role", kind.label().to_lowercase()));
                let mut rules = role["rules"].as_array().unwrap().iter();
                let found = rules.find(|rule| rule["resources"][0] == *resource);
                let wanted = serde_json::json!({"apiGroups": [kind.group()], "resources": [resource], "verbs": verbs});
                assert_eq!(found, has_scale.then_some(&wanted), "{kind:?} {who}");
            }
            scaled.extend(has_scale.then(|| kind.group()));
        }
    }
    scaled.sort_unstable();
    assert_eq!(scaled, ["agent.kagenti.dev", "kaos.tools"], "Agents of both");
}

#[test]
fn answers_04_people_get_our_kinds_by_the_roles_they_have_and_may_look_without_secrets() {
    let people = rbac::people(KindOrigin::Ours, super::super::kinds::Kinds::All);
    for role in &people {
        let name = role["metadata"]["name"].as_str().unwrap();
        let labels = role["metadata"]["labels"].to_string();
        let (view, edit) = (labels.contains("aggregate-to-view"), labels.contains("aggregate-to-edit"));
        assert_eq!((view, edit), (name.contains("-viewer-"), name.contains("-editor-")), "{name}");
    }
    let looks = rbac::diagnosis(super::super::kinds::Kinds::All);
    // What `doctor` and `explain` read of routes, and what all of them list of the compatible group: without a right on a kind that is not
    // served the API server answers that it may not be read, so that all would end as partial.
    for (group, resource) in [
        ("gateway.networking.k8s.io", "gateways"),
        ("gateway.networking.k8s.io", "httproutes"),
        ("beeai.beeai.dev", "agents"),
        ("beeai.beeai.dev", "agentbuilds"),
    ] {
        let mut rules = looks["rules"].as_array().unwrap().iter();
        let has = |list: &Value, word: &str| list.as_array().unwrap().iter().any(|one| one == word);
        let given = rules.any(|rule| has(&rule["apiGroups"], group) && has(&rule["resources"], resource));
        assert!(given, "{resource}.{group}");
    }
    for rule in looks["rules"].as_array().unwrap() {
        let text = rule.to_string();
        assert!(!text.contains("secrets") && !text.contains('*'), "{text}");
        let asks = text.contains("subjectaccessreviews");
        assert!(
            asks || !["create", "update", "patch", "delete"].iter().any(|verb| text.contains(&format!("\"{verb}\""))),
            "{text}"
        );
    }
}

/// What serves the original operator's group stands in a manifest of its own, rights included; but for those of people who look and change nothing
/// (the test of that role says why).
#[test]
fn nothing_of_an_installation_gives_a_right_on_the_compatible_group_and_its_manifest_gives_all() {
    let install = install(FailureMode::Fail);
    let mut installed: Vec<Value> = parts(&install).into_iter().flat_map(|part| part.objects).collect();
    let with_people = installed.len();
    installed.retain(|object| object["metadata"]["name"] != "drawbridge-diagnosis");
    assert_eq!(installed.len() + 1, with_people);
    let granting = |objects: &[Value]| {
        let rules = objects.iter().flat_map(|object| object["rules"].as_array().cloned().unwrap_or_default());
        rules.filter(|rule| rule["apiGroups"].to_string().contains("beeai.beeai.dev")).count()
    };
    let definitions = |objects: &[Value]| {
        let all = objects.iter().filter(|object| object["kind"] == "CustomResourceDefinition");
        all.filter(|object| object["spec"]["group"] == "beeai.beeai.dev").count()
    };
    let compat = compat::objects(&install);
    assert_eq!((granting(&installed), definitions(&installed)), (0, 0));
    assert!(granting(&compat) > 3 && definitions(&compat) == 2);
    assert_eq!(compat[0]["kind"], "CustomResourceDefinition", "ahead of everything that speaks of it");
    let wide = compat.iter().any(|object| object["rules"].to_string().contains('*'));
    assert!(!wide, "no wildcard");
}

#[test]
fn in_namespaced_scope_no_right_on_namespaced_kinds_is_held_in_the_cluster() {
    /// Kinds without a namespace.
    const WITHOUT: [&str; 7] = [
        "namespaces",
        "csidrivers",
        "clusternetworkpolicies",
        "mutatingwebhookconfigurations",
        "validatingwebhookconfigurations",
        "validatingadmissionpolicies",
        "validatingadmissionpolicybindings",
    ];
    let mut install = install(FailureMode::Fail);
    install.namespaces = vec!["team1".to_owned(), "team2".to_owned()];
    let objects: Vec<Value> = parts(&install).into_iter().flat_map(|part| part.objects).collect();
    for role in ["drawbridge-webhook", "drawbridge-controllers"] {
        for rule in one(&objects, "ClusterRole", role)["rules"].as_array().unwrap() {
            let resource = rule["resources"][0].as_str().unwrap();
            assert!(WITHOUT.contains(&resource), "{rule}");
        }
        let roles = objects.iter().filter(|object| object["kind"] == "Role" && object["metadata"]["name"] == role);
        for rule in roles.flat_map(|object| object["rules"].as_array().unwrap()) {
            let resource = rule["resources"][0].as_str().unwrap();
            assert!(!WITHOUT.contains(&resource), "no Role can give that: {rule}");
        }
        let of = |kind: &str| -> Vec<&str> {
            let all = objects.iter().filter(|object| object["kind"] == kind && object["metadata"]["name"] == role);
            all.map(|object| object["metadata"]["namespace"].as_str().unwrap()).collect()
        };
        assert_eq!(of("Role"), ["kagenti-system", "team1", "team2"]);
        assert_eq!(of("RoleBinding"), ["kagenti-system", "team1", "team2"]);
    }
    let selector = serde_json::json!(
        {"key": "kubernetes.io/metadata.name", "operator": "In", "values": ["team1", "team2"]});
    for kind in ["MutatingWebhookConfiguration", "ValidatingWebhookConfiguration"] {
        for hook in one(&objects, kind, "drawbridge")["webhooks"].as_array().unwrap() {
            let expressions = hook["namespaceSelector"]["matchExpressions"].as_array().unwrap();
            assert!(expressions.contains(&selector), "{hook}");
        }
    }
    for name in ["drawbridge-custom-steps", "drawbridge-agent-pods"] {
        let policy = one(&objects, "ValidatingAdmissionPolicy", name);
        let expressions = &policy["spec"]["matchConstraints"]["namespaceSelector"]["matchExpressions"];
        assert_eq!(*expressions, serde_json::json!([selector]));
    }
    let deployment = one(&objects, "Deployment", "drawbridge-webhook");
    let env = &deployment["spec"]["template"]["spec"]["containers"][0]["env"];
    assert_eq!(env[1], serde_json::json!({"name": "NAMESPACES2WATCH", "value": "team1,team2"}));
}

/// SPIRE publishes its bundle in a namespace of its own, which nobody watches: the right to read it is for that one object, and it is there only
/// where no other right reaches it.
#[test]
fn a_trust_bundle_outside_of_the_watched_namespaces_is_read_by_a_role_of_its_own() {
    let with = |namespaces: &[&str], cards: &str| -> Vec<Value> {
        let mut install = install(FailureMode::Fail);
        install.namespaces = namespaces.iter().map(|name| (*name).to_owned()).collect();
        install.platform_file = Some(format!("{}{cards}", platform::platform_file()));
        let mut objects: Vec<Value> = parts(&install).into_iter().flat_map(|part| part.objects).collect();
        objects.retain(|object| object["metadata"]["name"] == rbac::TRUST_BUNDLE);
        objects
    };
    let named = |more: &str| format!("cards: {{trustBundle: {{configMap: {{name: spire-bundle{more}}}}}}}\n");
    for (more, namespace) in [("", "spire-system"), (", namespace: spire", "spire")] {
        let objects = with(&["team1", "team2"], &named(more));
        assert_eq!(objects.len(), 2, "{objects:#?}");
        let (role, binding) =
            (one(&objects, "Role", rbac::TRUST_BUNDLE), one(&objects, "RoleBinding", rbac::TRUST_BUNDLE));
        let rules = serde_json::json!([{"apiGroups": [""], "resources": ["configmaps"], "resourceNames": ["spire-bundle"],
            "verbs": ["get", "list", "watch"]}]);
        assert_eq!(role["rules"], rules);
        for object in [role, binding] {
            assert_eq!(object["metadata"]["namespace"], namespace);
            assert_eq!(object["metadata"]["labels"][keys::LABEL_APP_MANAGED_BY], keys::MANAGED_BY_DRAWBRIDGE);
        }
        let subjects = serde_json::json!([
            {"kind": "ServiceAccount", "name": "drawbridge-controllers", "namespace": keys::OPERATOR_NAMESPACE}]);
        assert_eq!(binding["subjects"], subjects);
        assert_eq!(
            (&binding["roleRef"]["kind"], &binding["roleRef"]["name"]),
            (&"Role".into(), &role["metadata"]["name"])
        );
    }
    let (all, some): (&[&str], &[&str]) = (&[], &["team1"]);
    for (namespaces, cards) in [
        (all, named("")),
        (some, named(", namespace: team1")),
        (some, named(", namespace: kagenti-system")),
        (some, String::new()),
        (some, "cards: {trustBundle: {file: /bundle.pem}}\n".to_owned()),
    ] {
        let objects = with(namespaces, &cards);
        assert!(objects.is_empty(), "{cards}: {objects:#?}");
    }
}
