//! The rule of `drawbridge-weakened-proxy`: who changes an injected Pod hears it when the proxy is gone round or starved afterwards.
//!
//! No webhook is asked about ephemeral containers and resizes, and both are a right of their own, so they are not refused: the rule
//! warns, and says nothing where it cannot be evaluated. In: nothing. Out: when it applies, and what is said of which containers.

use k8s_openapi::api::admissionregistration::v1::{MatchCondition, NamedRuleWithOperations, Validation, Variable};

use super::super::selectors::condition;
use super::pods;
use crate::domain::keys;

/// The updates that no webhook is asked about.
pub(super) fn resources() -> NamedRuleWithOperations {
    let parts = ["pods/ephemeralcontainers", "pods/resize"];
    NamedRuleWithOperations { resources: Some(parts.map(str::to_owned).to_vec()), ..pods("UPDATE") }
}

/// When it applies, the parts of what it says, and what it says.
pub(super) fn rule() -> (Vec<MatchCondition>, Vec<Variable>, Vec<Validation>) {
    let injected = format!("'{}' in object.metadata.?annotations.orValue({{}})", keys::ANNOTATION_STATUS);
    let said = |list: &str, text: &str| Validation {
        expression: format!("variables.{list}.size() == 0"),
        message: Some(text.to_owned()),
        message_expression: Some(format!("variables.{list}.join(', ') + ': {}'", text.replace('\'', "\\'"))),
        reason: None,
    };
    (
        vec![condition("injected", &injected)],
        vec![
            variable("users", &users()),
            variable("user", "object.spec.?securityContext.?runAsUser.orValue(-2)"),
            variable("passing", &passing()),
            variable("starved", &starved()),
        ],
        vec![
            said(
                "passing",
                "an ephemeral container with the proxy's user, such a capability, or a sidecar as its target can go around the proxy \
                 and read the agent's credentials; leave that out unless it is what you debug, and delete the Pod afterwards",
            ),
            said(
                "starved",
                "the sidecar has less CPU or memory than before, and where it comes to a halt so does the agent's traffic; set \
                 resources of sidecars in the platform file, or in a ConfigMap labelled kagenti.io/defaults=true",
            ),
        ],
    )
}

fn variable(name: &str, expression: &str) -> Variable {
    Variable { name: name.to_owned(), expression: expression.to_owned() }
}

fn listed<'t>(texts: impl IntoIterator<Item = &'t str>) -> String {
    texts.into_iter().map(|text| format!("'{text}'")).collect::<Vec<_>>().join(", ")
}

/// An expression about both lists of containers, which cannot be joined as they are.
fn of_both(expression: impl Fn(&str) -> String) -> String {
    ["containers", "?initContainers.orValue([])"].map(expression).join(" + ")
}

/// The users that the proxies of the Pod run as.
fn users() -> String {
    let proxies = listed(keys::PROXY_CONTAINERS);
    of_both(|list| {
        format!("object.spec.{list}.filter(c, c.name in [{proxies}]).map(c, c.?securityContext.?runAsUser.orValue(-1))")
    })
}

/// Names of new ephemeral containers that can pass for the proxy.
fn passing() -> String {
    let capabilities =
        keys::CAPABILITIES_AROUND_PROXY.iter().flat_map(|name| [(*name).to_owned(), format!("CAP_{name}")]);
    let capabilities: Vec<String> = capabilities.collect();
    let capabilities = listed(capabilities.iter().map(String::as_str));
    format!(
        "object.spec.?ephemeralContainers.orValue([]).filter(e, \
         !oldObject.spec.?ephemeralContainers.orValue([]).exists(o, o.name == e.name) && \
         (e.?securityContext.?runAsUser.orValue(variables.user) in variables.users || \
         e.?securityContext.?privileged.orValue(false) || \
         e.?securityContext.?capabilities.?add.orValue([]).exists(c, c in [{capabilities}]) || \
         e.?targetContainerName.orValue('') in [{}])).map(e, e.name)",
        listed(keys::OUR_CONTAINERS)
    )
}

/// Names of sidecars that have less than before.
fn starved() -> String {
    let less = |part: &str| {
        format!(
            "(c.?resources.?{part}[?r].hasValue() && o.?resources.?{part}[?r].hasValue() && \
             quantity(c.resources.{part}[r]).isLessThan(quantity(o.resources.{part}[r])))"
        )
    };
    let capped = "(c.?resources.?limits[?r].hasValue() && !o.?resources.?limits[?r].hasValue())";
    let ours = listed(keys::OUR_CONTAINERS);
    of_both(|list| {
        format!(
            "object.spec.{list}.filter(c, c.name in [{ours}] && oldObject.spec.{list}.exists(o, o.name == c.name && \
             ['cpu', 'memory'].exists(r, {} || {} || {capped}))).map(c, c.name)",
            less("limits"),
            less("requests"),
        )
    })
}
