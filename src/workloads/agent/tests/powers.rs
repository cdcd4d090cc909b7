//! What an Agent's Pod may reach beyond itself, row by row.

use serde_json::{Value, json};

/// What reaches further than the Pod: other people's data, nodes, the kubelet's network.
#[test]
fn mend_06_every_power_over_others_is_found() {
    use crate::workloads::agent::privileges::asked;
    let volume = |source: Value| {
        let mut volume = json!({"name": "v"});
        json_patch::merge(&mut volume, &source);
        json!({"volumes": [volume]})
    };
    let container = |member: Value| json!({"containers": [member]});
    let probe = |kind: &str, handler: &str| json!({kind: {handler: {"host": "10.0.0.1", "port": 80}}});
    let mut cases = vec![
        (volume(json!({"csi": {"driver": "d"}})), ".volumes[0]".to_owned()),
        (volume(json!({"nfs": {"server": "s", "path": "/"}})), ".volumes[0]".to_owned()),
        (volume(json!({"kindOfTomorrow": {}})), ".volumes[0]".to_owned()),
        (
            volume(json!({"persistentVolumeClaim": {"claimName": "db"}})),
            ".volumes[0].persistentVolumeClaim.claimName".to_owned(),
        ),
        (json!({"nodeSelector": {"a": "b"}}), ".nodeSelector".to_owned()),
        (json!({"affinity": {"nodeAffinity": {}}}), ".affinity.nodeAffinity".to_owned()),
        (json!({"runtimeClassName": "kata"}), ".runtimeClassName".to_owned()),
        (json!({"priorityClassName": "batch"}), ".priorityClassName".to_owned()),
        (
            json!({"resourceClaims": [{"name": "g", "resourceClaimName": "gpu"}]}),
            ".resourceClaims[0].resourceClaimName".to_owned(),
        ),
    ];
    for source in ["dataSource", "dataSourceRef"] {
        let spec = json!({source: {"kind": "PersistentVolumeClaim", "name": "db"}});
        let at = format!(".volumes[0].ephemeral.volumeClaimTemplate.spec.{source}.name");
        cases.push((volume(json!({"ephemeral": {"volumeClaimTemplate": {"spec": spec}}})), at));
    }
    for profile in ["seccompProfile", "appArmorProfile"] {
        let context = json!({"securityContext": {profile: {"type": "Localhost", "localhostProfile": "p"}}});
        cases.push((context.clone(), format!(".securityContext.{profile}.type")));
        cases.push((container(context), format!(".containers[0].securityContext.{profile}.type")));
    }
    for handler in ["httpGet", "tcpSocket"] {
        for kind in ["livenessProbe", "readinessProbe", "startupProbe"] {
            cases.push((container(probe(kind, handler)), format!(".containers[0].{kind}.{handler}.host")));
        }
        for kind in ["postStart", "preStop"] {
            let hook = json!({"lifecycle": probe(kind, handler)});
            cases.push((container(hook), format!(".containers[0].lifecycle.{kind}.{handler}.host")));
        }
    }
    for (pod, at) in cases {
        let object = json!({"spec": {"podTemplateSpec": {"spec": pod}}});
        let found = asked(&object);
        assert_eq!(
            found.iter().map(|asked| &*asked.at).collect::<Vec<_>>(),
            [format!("spec.podTemplateSpec.spec{at}")]
        );
        assert!(found[0].privilege.weight.needs_right() && !found[0].privilege.weight.relaxes(), "{at}");
    }
    let plain = json!({
        "volumes": [
            {"name": "a", "emptyDir": {}}, {"name": "b", "secret": {"secretName": "s"}}, {"name": "c", "image": {"reference": "i"}},
            {"name": "d", "ephemeral": {"volumeClaimTemplate": {"spec": {"accessModes": ["ReadWriteOnce"]}}}},
        ],
        "affinity": {"podAntiAffinity": {}},
        "containers": [{"livenessProbe": {"httpGet": {"port": 80, "path": "/"}}, "readinessProbe": {"tcpSocket": {"port": 80}}}],
    });
    assert!(asked(&json!({"spec": {"podTemplateSpec": {"spec": plain}}})).is_empty());
    let key = "container.apparmor.security.beta.kubernetes.io/agent";
    assert_eq!(asked(&json!({"spec": {"annotations": {key: "localhost/profile"}}})).len(), 1);
}
