//! `drawbridge-trust-addresses`: where the API server is, the API server says. Every agent that is cut off reaches those addresses, so whoever may
//! write them in namespace `default` alone would open every such agent of the cluster. The right to write EndpointSlices is asked for in the
//! whole cluster: the API server has it, and so have the two controllers of slices.
//!
//! EndpointSlices of Service `kubernetes` are held, and its Endpoints: the API server puts right the addresses in these, and takes the
//! ports of its slice from them (`checkEndpointSubsetFormatWithLease`, up to 1.36). The controller of Endpoints has no right to write slices, so it is
//! refused, too: it writes these only once somebody gives that Service a selector of Pods, whose ports they would then have.

use k8s_openapi::api::admissionregistration::v1::NamedRuleWithOperations;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector;
use serde_json::Value;

use super::super::super::selectors::{LABEL_NAMESPACE_NAME, condition, requirement};
use super::super::super::{Install, object};
use super::super::{Refusal, refusal, written_in};
use crate::store::kinds::endpoint_slice::{NAME as SERVICE, NAMESPACE};

/// Its name.
const NAME: &str = "drawbridge-trust-addresses";
/// Says of a slice whose it is.
const LABEL_SERVICE: &str = "kubernetes.io/service-name";

pub(super) fn policy(install: &Install) -> [Value; 2] {
    let of_service =
        |of: &str| format!("({of} != null && {of}.metadata.?labels[?'{LABEL_SERVICE}'].orValue('') == '{SERVICE}')");
    let is_named = format!("(oldObject != null ? oldObject : object).metadata.?name.orValue('') == '{SERVICE}'");
    let says_where = format!(
        "request.resource.resource == 'endpoints' ? {is_named} : ({} || {})",
        of_service("object"),
        of_service("oldObject")
    );
    let rule = Refusal {
        applies: vec![condition("says-where-the-api-server-is", &says_where)],
        variables: Vec::new(),
        holds: "authorizer.group('discovery.k8s.io').resource('endpointslices').check('update').allowed()".to_owned(),
        message: format!(
            "Endpoints {SERVICE} and the EndpointSlices of that Service say where the API server is, and every agent that is cut off reaches what they \
             name, so they are written by who may update endpointslices in the whole cluster. What to do: nothing, the API server writes them; give \
             slices of your own another value of label {LABEL_SERVICE}"
        ),
        message_expression: None,
    };
    let mut both = refusal(install, NAME, matched("discovery.k8s.io", "endpointslices"), rule);
    let constraints = &mut both[0]["spec"]["matchConstraints"];
    constraints["namespaceSelector"] = object(&namespaces(install));
    if let Some(rules) = constraints["resourceRules"].as_array_mut() {
        rules.push(object(&matched("", "endpoints")));
    }
    both
}

/// `default`, where it is served: elsewhere nobody reads what such slices say.
fn namespaces(install: &Install) -> LabelSelector {
    let mut expressions = vec![requirement(LABEL_NAMESPACE_NAME, "In", [NAMESPACE])];
    if !install.namespaces.is_empty() {
        expressions.push(requirement(LABEL_NAMESPACE_NAME, "In", install.namespaces.iter().map(String::as_str)));
    }
    LabelSelector { match_expressions: Some(expressions), ..LabelSelector::default() }
}

/// One that is deleted is made anew by the API server, and until then nobody knows where it is.
fn matched(group: &str, resource: &str) -> NamedRuleWithOperations {
    let operations = ["CREATE", "UPDATE", "DELETE"].map(str::to_owned);
    NamedRuleWithOperations { operations: Some(operations.into()), ..written_in((group, "v1"), resource) }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::cli::render::FailureMode;
    use crate::domain::keys;

    /// Without these namespaces nobody of them would be held by it: `default` is a namespace as any other.
    #[test]
    fn it_is_about_default_whichever_namespaces_are_served() {
        for (served, wanted) in [
            (Vec::new(), vec![vec!["default"]]),
            (vec!["default", "team1"], vec![vec!["default"], vec!["default", "team1"]]),
        ] {
            let mut install = Install::new(FailureMode::Fail, keys::OPERATOR_NAMESPACE, "drawbridge:test");
            install.namespaces = served.into_iter().map(str::to_owned).collect();
            let spec = policy(&install)[0]["spec"].clone();
            let expressions = wanted
                .into_iter()
                .map(|names| json!({"key": "kubernetes.io/metadata.name", "operator": "In", "values": names}))
                .collect::<Vec<_>>();
            assert_eq!(spec["matchConstraints"]["namespaceSelector"], json!({"matchExpressions": expressions}));
            let rules = spec["matchConstraints"]["resourceRules"].as_array().unwrap();
            let resources: Vec<_> = rules.iter().map(|rule| &rule["resources"]).collect();
            assert_eq!(resources, [&json!(["endpointslices"]), &json!(["endpoints"])]);
            let applies = spec["matchConditions"][0]["expression"].as_str().unwrap();
            for of in ["object", "oldObject"] {
                let says = format!("{of}.metadata.?labels[?'kubernetes.io/service-name'].orValue('') == 'kubernetes'");
                assert!(applies.contains(&says), "{applies}");
            }
            assert_eq!(spec["failurePolicy"], "Fail");
        }
    }
}
