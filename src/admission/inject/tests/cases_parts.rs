//! What the parts of an injected Pod look like: cases of the webhook (docs/cases.md) from 28 to 53 that are neither goldens nor
//! about names and decisions, and case 13.
//! A case that a row of docs/deviations.md overrides asserts that row's outcome and names it.

use super::*;
use crate::config::view::Ownership;
use crate::domain::keys;

#[test]
fn case_013_an_unknown_field_stays() {
    let mut pod = proxy_mode();
    pod["spec"]["containers"][0]["ports"][0]["fromTheFuture"] = json!({"deep": [1.0, {"er": null}]});
    pod["spec"]["fromTheFuture"] = json!([0.1]);
    pod["spec"]["containers"][0]["env"][0]["fromTheFuture"] = json!(1);
    let seen = injected(&pod, &fixtures::snapshot());
    assert_eq!(seen["spec"]["containers"][0]["ports"][0]["fromTheFuture"], json!({"deep": [1.0, {"er": null}]}));
    assert_eq!(seen["spec"]["fromTheFuture"], json!([0.1]));
    assert_eq!(seen["spec"]["containers"][0]["env"][0], json!({"name": "PORT", "value": "8001", "fromTheFuture": 1}));
}

/// Without SPIRE, as label `spiffe-helper-inject: false` leaves it.
fn without_spire() -> Value {
    labelled(&[(keys::LABEL_SPIFFE_HELPER, "false")])
}

#[test]
fn case_028_a_missing_service_account_is_waited_for() {
    // docs/deviations.md, ServiceAccount: a controller makes it; the webhook answers 409 until the view knows it as ours.
    for named in ["", "default"] {
        let mut pod = fixtures::pod();
        pod["spec"]["serviceAccountName"] = json!(named);
        let denial = refusal(&pod, &observing(|view| view.service_accounts.clear()));
        assert_eq!((denial.code, denial.reason), (409, Reason::ServiceAccountPending));
        assert_eq!(injected(&pod, &fixtures::snapshot())["spec"]["serviceAccountName"], "weather-agent");
    }
}

#[test]
fn case_029_a_foreign_service_account_is_not_used() {
    // docs/deviations.md, ServiceAccount: one without the label is a conflict with two ways out.
    let foreign = observing(|view| {
        view.service_accounts.insert("weather-agent".into(), Ownership::Foreign);
    });
    let denial = refusal(&fixtures::pod(), &foreign);
    assert_eq!(denial.reason, Reason::ServiceAccountConflict);
    assert!(denial.remedy.contains("spec.serviceAccountName") && denial.remedy.contains("kubectl label"), "{denial}");
}

/// Every Pod of the namespace that names none runs under it, whoever labelled it.
#[test]
fn the_default_account_is_nobodys_dedicated_one() {
    let mut pod = fixtures::pod();
    pod["metadata"]["ownerReferences"][0]["name"] = json!("default-7d4f8b9c5");
    for whose in [Some(Ownership::Ours), Some(Ownership::Foreign), None] {
        let known = |view: &mut NamespaceView| {
            view.service_accounts = whose.map(|whose| ("default".into(), whose)).into_iter().collect();
        };
        let denial = refusal(&pod, &observing(known));
        assert_eq!((denial.code, denial.reason), (409, Reason::ServiceAccountConflict), "{whose:?}");
        assert!(denial.remedy.contains("another name") && !denial.remedy.contains("kubectl"), "{denial}");
    }
}

#[test]
fn case_030_a_service_account_of_the_users_own_stays() {
    let nobody = observing(|view| view.service_accounts.clear());
    let mut pod = fixtures::pod();
    pod["spec"]["serviceAccountName"] = json!("custom");
    assert_eq!(injected(&pod, &nobody)["spec"]["serviceAccountName"], "custom");
    let mut alias = fixtures::pod();
    alias["spec"]["serviceAccount"] = json!("custom");
    alias["spec"].as_object_mut().unwrap().remove("serviceAccountName");
    assert_eq!(injected(&alias, &nobody)["spec"]["serviceAccountName"], Value::Null);
}

#[test]
fn case_031_nothing_is_written_so_nothing_can_be_forbidden() {
    // docs/deviations.md, side effects: the webhook writes nothing; a ServiceAccount nobody could make stays pending.
    let denial = refusal(&fixtures::pod(), &observing(|view| view.service_accounts.clear()));
    assert_eq!(denial.code, 409);
}

#[test]
fn case_032_without_the_helper_no_service_account() {
    let nobody = observing(|view| view.service_accounts.clear());
    assert_eq!(injected(&without_spire(), &nobody)["spec"]["serviceAccountName"], "default");
}

#[test]
fn case_033_fs_group() {
    let snapshot = fixtures::snapshot();
    let mut pod = fixtures::pod();
    pod["spec"]["securityContext"] = json!({"fsGroup": 2000});
    assert_eq!(injected(&pod, &snapshot)["spec"]["securityContext"], json!({"fsGroup": 2000}));
    pod["spec"]["securityContext"] = json!({"runAsUser": 5});
    assert_eq!(injected(&pod, &snapshot)["spec"]["securityContext"], json!({"fsGroup": 0, "runAsUser": 5}));
    assert_eq!(injected(&without_spire(), &snapshot)["spec"]["securityContext"], Value::Null);
}

#[test]
fn case_038_without_spire() {
    let pod = labelled(&[(keys::LABEL_SPIFFE_HELPER, "false"), (keys::LABEL_CLIENT_REGISTRATION, "true")]);
    let seen = injected(&pod, &fixtures::snapshot());
    let envoy = named(&seen["spec"]["containers"], "envoy-proxy");
    assert!(!envoy["volumeMounts"].as_array().unwrap().iter().any(|mount| mount["mountPath"] == "/opt"));
    assert_eq!(
        names(&seen["spec"]["volumes"]),
        ["shared-data", "envoy-config", "authproxy-routes", "authbridge-runtime-config"]
    );
    let script = named(&seen["spec"]["containers"], "kagenti-client-registration")["command"][2].as_str().unwrap();
    assert!(script.contains("$CLIENT_NAME") && !script.contains("jwt_svid"), "{script}");
}

#[test]
fn case_039_literal_values() {
    let mut snapshot = fixtures::snapshot();
    snapshot.gates.per_workload_config_resolution = true;
    let seen = injected(&labelled(&[(keys::LABEL_CLIENT_REGISTRATION, "true")]), &snapshot);
    let of_envoy = |name| env(&seen, "containers", "envoy-proxy", name);
    assert_eq!(of_envoy("ISSUER"), &json!({"name": "ISSUER", "value": "https://kc.example/realms/kagenti"}));
    assert_eq!(of_envoy("TOKEN_URL"), &json!({"name": "TOKEN_URL", "value": ""}));
    let admin = env(&seen, "containers", "kagenti-client-registration", "KEYCLOAK_ADMIN_PASSWORD");
    assert_eq!(admin["valueFrom"]["secretKeyRef"]["name"], "keycloak-admin-secret");
}

#[test]
fn case_040_which_references_are_optional() {
    let seen = injected(&labelled(&[(keys::LABEL_CLIENT_REGISTRATION, "true")]), &fixtures::snapshot());
    for variable in named(&seen["spec"]["containers"], "envoy-proxy")["env"].as_array().unwrap() {
        if let Some(reference) = variable.pointer("/valueFrom/configMapKeyRef") {
            assert_eq!(reference["optional"], json!(variable["name"] != "ISSUER"), "{variable}");
        }
    }
    let realm = env(&seen, "containers", "kagenti-client-registration", "KEYCLOAK_REALM");
    assert_eq!(realm["valueFrom"]["configMapKeyRef"], json!({"name": "authbridge-config", "key": "KEYCLOAK_REALM"}));
}

#[test]
fn case_041_names_of_the_client() {
    let seen = injected(&labelled(&[(keys::LABEL_CLIENT_REGISTRATION, "true")]), &fixtures::snapshot());
    let value = |name| env(&seen, "containers", "kagenti-client-registration", name)["value"].clone();
    assert_eq!(value("CLIENT_NAME"), "team1/weather-agent");
    assert_eq!(value("SECRET_FILE_PATH"), "/shared/client-secret.txt");
}

#[test]
fn case_042_ports_and_user_of_the_platform() {
    let snapshot = with(|resolved| {
        resolved.proxy.port.value = 16001;
        resolved.proxy.inbound_port.value = 16002;
        resolved.proxy.admin_port.value = 9902;
        resolved.proxy.uid.value = 2000;
    });
    let seen = injected(&fixtures::pod(), &snapshot);
    let envoy = named(&seen["spec"]["containers"], "envoy-proxy");
    let ports: Vec<_> = envoy["ports"].as_array().unwrap().iter().map(|port| port["containerPort"].clone()).collect();
    assert_eq!(ports, [16001, 16002, 9902, 9090]);
    assert_eq!(
        (&envoy["securityContext"]["runAsUser"], &envoy["securityContext"]["runAsGroup"]),
        (&json!(2000), &json!(2000))
    );
    for (name, value) in [("PROXY_PORT", "16001"), ("INBOUND_PROXY_PORT", "16002"), ("PROXY_UID", "2000")] {
        assert_eq!(env(&seen, "initContainers", "proxy-init", name)["value"], value);
    }
}

#[test]
fn case_043_port_lists() {
    for (text, expected) in [
        ("", "8080"),
        ("11434", "8080,11434"),
        ("11434,4317", "8080,11434,4317"),
        ("8080,11434,8080", "8080,11434"),
        (" 11434 , 4317 ", "8080,11434,4317"),
        ("abc,11434,0,65536,-1,99999", "8080,11434"),
        ("1,65535", "8080,1,65535"),
        (",,", "8080"),
        ("08443,+80,8443", "8080,8443,80"),
    ] {
        let seen = injected(&annotated(&[(keys::ANNOTATION_OUTBOUND_EXCLUDE, text)]), &fixtures::snapshot());
        assert_eq!(env(&seen, "initContainers", "proxy-init", "OUTBOUND_PORTS_EXCLUDE")["value"], expected, "{text}");
        assert_eq!(env(&seen, "initContainers", "proxy-init", "INBOUND_PORTS_EXCLUDE"), &Value::Null);
    }
    let both =
        annotated(&[(keys::ANNOTATION_OUTBOUND_EXCLUDE, "1"), (keys::ANNOTATION_INBOUND_EXCLUDE, "8443,8443, x")]);
    let seen = injected(&both, &fixtures::snapshot());
    assert_eq!(env(&seen, "initContainers", "proxy-init", "INBOUND_PORTS_EXCLUDE")["value"], "8443");
    assert_eq!(env(&seen, "initContainers", "proxy-init", "OUTBOUND_PORTS_EXCLUDE")["value"], "8080,1");
    assert_eq!(warned(&both, &fixtures::snapshot()), [Reason::PortDropped]);
    let nothing = injected(&annotated(&[(keys::ANNOTATION_INBOUND_EXCLUDE, "abc")]), &fixtures::snapshot());
    assert_eq!(env(&nothing, "initContainers", "proxy-init", "INBOUND_PORTS_EXCLUDE"), &Value::Null);
}

#[test]
fn case_044_proxy_init_comes_last() {
    let mut pod = fixtures::pod();
    pod["spec"]["initContainers"] = json!([{"name": "migrate"}, {"name": "fetch"}]);
    let seen = injected(&pod, &fixtures::snapshot());
    assert_eq!(names(&seen["spec"]["initContainers"]), ["migrate", "fetch", "proxy-init"]);
}

#[test]
fn case_045_a_volume_of_the_same_source_is_shared() {
    let mut pod = fixtures::pod();
    pod["spec"]["volumes"] = json!([{"name": "shared-data", "emptyDir": {"medium": "Memory"}}]);
    let seen = injected(&pod, &fixtures::snapshot());
    let shared: Vec<_> = names(&seen["spec"]["volumes"]).into_iter().filter(|name| *name == "shared-data").collect();
    assert_eq!(shared.len(), 1);
    assert_eq!(seen["spec"]["volumes"][0], pod["spec"]["volumes"][0]);
}

fn combined() -> Snapshot {
    let mut snapshot = fixtures::snapshot();
    snapshot.gates.combined_sidecar = true;
    snapshot
}

#[test]
fn case_049_combined_without_envoy() {
    let pod = labelled(&[(keys::LABEL_ENVOY_PROXY, "false")]);
    assert_eq!(skipped(&pod, &combined()), Reason::NothingToInject);
    assert_eq!(warned(&pod, &combined()), [Reason::CombinedIncomplete]);
}

#[test]
fn case_050_combined_without_spire() {
    let seen = injected(&without_spire(), &combined());
    assert_eq!(env(&seen, "containers", "authbridge", "SPIRE_ENABLED")["value"], "false");
    let mounts = named(&seen["spec"]["containers"], "authbridge")["volumeMounts"].clone();
    assert_eq!(names(&mounts), ["envoy-config", "authproxy-routes", "shared-data"]);
}

#[test]
fn case_051_combined_without_registration() {
    let seen = injected(&fixtures::pod(), &combined());
    assert_eq!(env(&seen, "containers", "authbridge", "CLIENT_REGISTRATION_ENABLED")["value"], "false");
    let admin = env(&seen, "containers", "authbridge", "KEYCLOAK_ADMIN_USERNAME");
    assert_eq!(admin["valueFrom"]["secretKeyRef"]["name"], "keycloak-admin-secret");
}

#[test]
fn case_052_combined_has_no_runtime_configuration_of_its_own() {
    let seen = injected(&fixtures::pod(), &combined());
    assert_eq!(seen["metadata"]["annotations"].get(keys::ANNOTATION_RUNTIME_CONFIG), None);
    let volume = named(&seen["spec"]["volumes"], "authbridge-runtime-config");
    assert_eq!(volume["configMap"], json!({"name": "authbridge-runtime-config", "optional": true}));
}

#[test]
fn case_053_a_container_named_authbridge_that_we_did_not_add() {
    // What the status annotation does not name as ours is a collision, not a reason to skip.
    let mut pod = fixtures::pod();
    pod["spec"]["containers"][0]["name"] = json!("authbridge");
    assert_eq!(refusal(&pod, &combined()).reason, Reason::ContainerNameCollision);
    let ours = injected(&fixtures::pod(), &combined());
    assert_eq!(skipped(&ours, &combined()), Reason::AlreadyInjected);
}
