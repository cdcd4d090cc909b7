//! Keys of KAOS: below `kaos`, and its images.

use super::{Platform, read};
use crate::workloads::kaos::settings::{LogLevel, Settings};

#[test]
fn every_key_of_kaos_changes_what_its_row_says_and_nothing_else() {
    let built_in = Platform::built_in().kaos().clone();
    let changed = |text: &str, change: &dyn Fn(&mut Settings)| {
        let mut wanted = built_in.clone();
        change(&mut wanted);
        assert_ne!(wanted, built_in, "{text}");
        assert_eq!(*read(text).kaos(), wanted, "{text}");
    };
    let some = |text: &str| Some(text.to_owned());
    changed("images: {kaosAgent: a}", &|settings| settings.image_agent = some("a"));
    changed("images: {kaosLitellm: a}", &|settings| settings.image_litellm = some("a"));
    changed("images: {kaosOllama: a}", &|settings| settings.image_ollama = some("a"));
    changed("images: {kaosMcpServer: a}", &|settings| settings.image_mcp_server = some("a"));
    changed("images: {kaosPython: a}", &|settings| settings.image_python = some("a"));
    changed("kaos: {registryNamespace: a}", &|settings| settings.registry_namespace = some("a"));
    changed("kaos: {operatorNamespaces: [a]}", &|settings| {
        settings.operator_namespaces.insert("a".to_owned());
    });
    changed("kaos: {gateway: {enabled: true}}", &|settings| settings.gateway.enabled = true);
    changed("kaos: {gateway: {name: a}}", &|settings| settings.gateway.name = "a".to_owned());
    changed("kaos: {gateway: {namespace: a}}", &|settings| settings.gateway.namespace = some("a"));
    let timeouts = |kind: &str| format!("kaos: {{gateway: {{timeouts: {{{kind}: 5m}}}}}}");
    changed(&timeouts("agent"), &|settings| settings.gateway.agent_timeout = "5m".to_owned());
    changed(&timeouts("modelAPI"), &|settings| settings.gateway.model_api_timeout = "5m".to_owned());
    changed(&timeouts("mcp"), &|settings| settings.gateway.mcp_timeout = "5m".to_owned());
    changed("kaos: {telemetry: {enabled: true}}", &|settings| settings.telemetry.enabled = true);
    changed("kaos: {telemetry: {endpoint: 'http://c:4317'}}", &|settings| {
        settings.telemetry.endpoint = some("http://c:4317");
    });
    changed("kaos: {logLevel: DEBUG}", &|settings| settings.log_level = LogLevel::Debug);
    changed("kaos: {clusterDomain: corp.example}", &|settings| settings.cluster_domain = "corp.example".to_owned());
    changed("kaos: {rollOnSecretChange: true}", &|settings| settings.roll_on_secret_change = true);
    changed("kaos: {toolDiscovery: true}", &|settings| settings.tool_discovery = true);
    changed("kaos: {restrictModelAPIs: true}", &|settings| settings.restrict_model_apis = true);
    changed("kaos: {servicePort80: true}", &|settings| settings.service_port_80 = true);
}
