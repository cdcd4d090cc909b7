//! Do the API server's own policies hold what this version promises of them? They refuse what no webhook may decide: what depends on
//! the rights of the person, and what must hold while no replica is there. A missing one is silent everywhere else.
//!
//! In: the policies and bindings as installed, the platform file of the cluster, and which kinds of the compatible group are served. Out: one
//! check a policy, compared with what `render` writes for this installation. What the API server fills in besides is no difference; whatever
//! has a policy hold less is one, also where nothing is rendered.

use serde_json::{Map, Value};

use super::surroundings::PlatformFile;
use super::{Seen, Visit, text};
use crate::cli::cluster::Cluster;
use crate::cli::render::{Install, policies};
use crate::server::guards::Kind as Guard;
use crate::server::guards::watch::{APPLY, APPLY_COMPAT};
use crate::store::Kind;

const ROOT: &str = "/apis/admissionregistration.k8s.io/v1";
/// Kinds of policies, each with that of what binds them.
const PAIRS: [(Guard, Guard); 2] = [(Guard::Policy, Guard::Binding), (Guard::MutatingPolicy, Guard::MutatingBinding)];
/// What says whom a policy or its binding is about, and what it compares with.
const NARROWING: [&str; 5] = ["matchConditions", "matchConstraints", "matchResources", "paramKind", "paramRef"];
/// What the API server fills in there where nothing is said.
const FILLED_IN: [(&str, &str); 2] = [("matchPolicy", "Equivalent"), ("scope", "*")];
/// A platform file that no installation without one is like.
const OTHERWISE: &str = "cards: {trust: enforced-all}\n";

/// One object as it is rendered.
#[derive(Debug, Clone, PartialEq)]
struct Part {
    kind: Guard,
    object: Value,
    /// Whether it is rendered so whatever the platform file says, or that is known.
    is_known: bool,
}

impl Part {
    fn name(&self) -> &str {
        text(&self.object, "/metadata/name")
    }

    /// Such as `ValidatingAdmissionPolicy drawbridge-trust-pods`.
    fn called(&self) -> String {
        format!("{} {}", self.kind.as_str(), self.name())
    }
}

/// A policy with whatever binds it.
#[derive(Debug)]
struct Wanted {
    name: String,
    parts: Vec<Part>,
    /// What puts it back.
    apply: &'static str,
}

pub(super) async fn check(visit: &mut Visit, file: &PlatformFile) -> anyhow::Result<()> {
    let install = visit.install();
    let mut all = wanted(&rendered(&install, file), APPLY);
    let compat = compat(&visit.cluster, &install).await?;
    let known = |object| (object, true);
    all.extend(wanted(&compat.into_iter().map(known).collect::<Vec<_>>(), APPLY_COMPAT));
    for policy in &all {
        judge(visit, policy, file).await?;
    }
    Ok(())
}

/// The policies that have to be there for the kinds of the compatible group: for those that the API server serves, each with its binding.
///
/// # Errors
/// [`crate::cli::Unreachable`] when nobody answers.
pub(in crate::cli) async fn compat(cluster: &Cluster, install: &Install) -> anyhow::Result<Vec<Value>> {
    let of = Kind::BeeaiCompatAgent;
    if !install.kinds.serves(of.group()) {
        return Ok(Vec::new());
    }
    // What is served is told to everybody; there is none where the definitions are not there.
    let served = cluster.get(&format!("/apis/{}", of.api_version())).await?.object().unwrap_or_default();
    Ok(of_served(policies::compat(install), &served))
}

/// Those of the policies that are about resources which are served, with their bindings.
fn of_served(objects: Vec<Value>, served: &Value) -> Vec<Value> {
    let resources = served["resources"].as_array().into_iter().flatten();
    let resources: Vec<&str> = resources.map(|one| text(one, "/name")).collect();
    let about =
        |object: &&Value| resources.contains(&text(object, "/spec/matchConstraints/resourceRules/0/resources/0"));
    let names: Vec<String> = objects.iter().filter(about).map(|one| text(one, "/metadata/name").to_owned()).collect();
    let is_one = |name: &str| names.iter().any(|known| known == name);
    let belongs = |one: &Value| is_one(text(one, "/metadata/name")) || is_one(text(one, "/spec/policyName"));
    objects.into_iter().filter(belongs).collect()
}

/// What an installation has, and whether that is known: where nobody knows its platform file, what would be another with another file is not.
fn rendered(install: &Install, file: &PlatformFile) -> Vec<(Value, bool)> {
    let with = |file: Option<String>| policies::objects(&Install { platform_file: file, ..install.clone() });
    match file {
        PlatformFile::Known(text) => with(text.clone()).into_iter().map(|object| (object, true)).collect(),
        PlatformFile::Unknown(_) => {
            let others = with(Some(OTHERWISE.to_owned()));
            let compared = |object| {
                let is_known = others.contains(&object);
                (object, is_known)
            };
            with(None).into_iter().map(compared).collect()
        }
    }
}

/// The policies among these, each with every binding that names it.
fn wanted(objects: &[(Value, bool)], apply: &'static str) -> Vec<Wanted> {
    let of_kind = |kind: Guard| {
        let of_kind = objects.iter().filter(move |(object, _)| object["kind"] == kind.as_str());
        of_kind.map(move |(object, is_known)| Part { kind, object: object.clone(), is_known: *is_known })
    };
    let mut all = Vec::new();
    for (of_policies, of_bindings) in PAIRS {
        for policy in of_kind(of_policies) {
            let name = policy.name().to_owned();
            let bindings = of_kind(of_bindings).filter(|binding| text(&binding.object, "/spec/policyName") == name);
            let parts = std::iter::once(policy).chain(bindings).collect();
            all.push(Wanted { name, parts, apply });
        }
    }
    all
}

async fn judge(visit: &mut Visit, policy: &Wanted, file: &PlatformFile) -> anyhow::Result<()> {
    let check = format!("policy {}", policy.name);
    let before = visit.checks.len();
    let (mut wrong, mut changed, mut is_known) = (Vec::new(), Vec::new(), true);
    for part in &policy.parts {
        let called = part.called();
        match visit.read(&check, &format!("{ROOT}/{}/{}", part.kind.plural(), part.name())).await? {
            Seen::Hidden => {}
            Seen::Absent => wrong.push(format!("there is no {called}")),
            Seen::Is(_) if !part.is_known => is_known = false,
            Seen::Is(installed) => {
                let fields = differences(&installed["spec"], &part.object["spec"], &NARROWING);
                if !fields.is_empty() {
                    wrong.push(format!("{called} is not as this version renders it: {}", fields.join(", ")));
                    changed.push(format!("kubectl edit {} {}", part.kind.as_str().to_lowercase(), part.name()));
                }
            }
        }
    }
    match file {
        _ if !wrong.is_empty() => visit.finding(&check, wrong.join("; "), remedy(policy.apply, &changed)),
        PlatformFile::Unknown(why) if !is_known => visit.unknown(
            &check,
            format!("exists; what it says follows from the platform file, and {why}, so it is not compared"),
            "see the check of that ConfigMap below, and run doctor again",
        ),
        _ if visit.checks.len() == before => visit.ok(&check, "in force"),
        _ => {}
    }
    Ok(())
}

/// What to do where something is missing, or is another by what those commands show.
pub(super) fn remedy(apply: &str, changed: &[String]) -> String {
    if changed.is_empty() {
        return apply.to_owned();
    }
    format!("{apply}; what somebody added stays there all the same, and is taken out with {}", changed.join("; "))
}

/// The fields of `installed` that are not as `rendered` has them. Those that narrow are compared whole: whatever stands there besides is
/// said of fewer objects.
pub(super) fn differences(installed: &Value, rendered: &Value, narrowing: &[&str]) -> Vec<String> {
    let narrowed = narrowing.iter().filter(|key| plain(&installed[**key]) != plain(&rendered[**key]));
    let said = rendered.as_object().into_iter().flatten().filter(|(key, _)| !narrowing.contains(&key.as_str()));
    let other = said.filter(|(key, value)| !holds(&installed[key.as_str()], value)).map(|(key, _)| key.clone());
    narrowed.map(|key| (*key).to_owned()).chain(other).collect()
}

/// The same without what says no more than nothing: `null`, `{}`, `[]` and what the API server fills in.
fn plain(value: &Value) -> Value {
    match value {
        Value::Object(members) => {
            let is_said = |key: &str, value: &Value| {
                !FILLED_IN.iter().any(|(of, word)| *of == key && value.as_str() == Some(*word))
            };
            let said = members.iter().filter(|(key, value)| is_said(key.as_str(), value));
            let said = said.map(|(key, value)| (key.clone(), plain(value))).filter(|(_, value)| !value.is_null());
            let said: Map<String, Value> = said.collect();
            if said.is_empty() { Value::Null } else { Value::Object(said) }
        }
        Value::Array(items) if items.is_empty() => Value::Null,
        Value::Array(items) => Value::Array(items.iter().map(plain).collect()),
        other => other.clone(),
    }
}

/// Whether `installed` says everything that `rendered` says.
fn holds(installed: &Value, rendered: &Value) -> bool {
    match (installed, rendered) {
        // What is empty is not stored.
        (Value::Null, Value::Array(rendered)) => rendered.is_empty(),
        (Value::Null, Value::Object(rendered)) => rendered.is_empty(),
        (Value::Object(installed), Value::Object(rendered)) => {
            rendered.iter().all(|(key, value)| holds(installed.get(key).unwrap_or(&Value::Null), value))
        }
        (Value::Array(installed), Value::Array(rendered)) => {
            installed.len() == rendered.len() && installed.iter().zip(rendered).all(|(one, other)| holds(one, other))
        }
        _ => installed == rendered,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::cli::render::FailureMode;
    use crate::domain::keys;

    #[test]
    fn what_the_api_server_fills_in_is_no_difference() {
        let rendered = json!({"validations": [{"expression": "a"}], "rules": ["x"]});
        for (installed, expected) in [
            (json!({"validations": [{"expression": "a", "reason": "r"}], "rules": ["x"], "more": {}}), true),
            (json!({"validations": [{"expression": "true"}], "rules": ["x"]}), false),
            (json!({"validations": [{"expression": "a"}], "rules": ["x", "y"]}), false),
            (json!({"validations": [{"expression": "a"}]}), false),
            (json!({"validations": [{"expression": "a"}], "rules": []}), false),
            (json!(null), false),
        ] {
            assert_eq!(holds(&installed, &rendered), expected, "{installed}");
        }
    }

    fn install(mode: FailureMode, file: Option<&str>) -> Install {
        let install = Install::new(mode, keys::OPERATOR_NAMESPACE, "");
        Install { platform_file: file.map(str::to_owned), ..install }
    }

    /// Everything that is rendered for both groups.
    fn everything(mode: FailureMode) -> Vec<Value> {
        let install = install(mode, None);
        let mut all = policies::objects(&install);
        all.extend(policies::compat(&install));
        all
    }

    /// The same as an API server stores it.
    fn stored(object: &Value) -> Value {
        let mut object = object.clone();
        for place in ["matchConstraints", "matchResources"] {
            let Some(matched) = object["spec"].get_mut(place).and_then(Value::as_object_mut) else { continue };
            for (key, filled) in [("namespaceSelector", json!({})), ("objectSelector", json!({}))] {
                matched.entry(key).or_insert(filled);
            }
            matched.entry("matchPolicy").or_insert(json!("Equivalent"));
            for rule in matched.get_mut("resourceRules").and_then(Value::as_array_mut).into_iter().flatten() {
                rule.as_object_mut().unwrap().entry("scope").or_insert(json!("*"));
            }
        }
        object
    }

    fn one<'o>(objects: &'o [Value], kind: &str, name: &str) -> &'o Value {
        objects.iter().find(|one| one["kind"] == kind && one["metadata"]["name"] == name).unwrap()
    }

    /// How an object differs once `value` stands at that path of its spec.
    fn with(object: &Value, path: &str, value: Value) -> Vec<String> {
        let mut changed = stored(object);
        let (parent, member) = path.rsplit_once('/').unwrap();
        changed["spec"].pointer_mut(parent).unwrap()[member] = value;
        differences(&changed["spec"], &object["spec"], &NARROWING)
    }

    #[test]
    fn what_was_applied_is_no_difference_once_it_is_stored() {
        for mode in [FailureMode::Fail, FailureMode::Gate] {
            for object in everything(mode) {
                let found = differences(&stored(&object)["spec"], &object["spec"], &NARROWING);
                assert!(found.is_empty(), "{}: {found:?}", object["metadata"]["name"]);
            }
        }
    }

    #[test]
    fn whatever_has_a_policy_hold_less_is_a_difference_also_where_nothing_is_rendered() {
        let never = json!([{"name": "x", "expression": "false"}]);
        let team = json!({"matchLabels": {"team": "x"}});
        let others = json!([{"apiGroups": ["*"], "apiVersions": ["*"], "operations": ["*"], "resources": ["*/*"]}]);
        let none = json!({"name": "none", "parameterNotFoundAction": "Allow"});
        let (labels, secret) = (json!({"team": "x"}), json!({"apiVersion": "v1", "kind": "Secret"}));
        let [(policy, binding), (mutating, mutated)] = PAIRS.map(|(of, bound)| (of.as_str(), bound.as_str()));
        let all = everything(FailureMode::Gate);
        for (kind, name, path, value) in [
            (policy, "drawbridge-trust-label", "/matchConditions", &never),
            (policy, "drawbridge-pod-bindings", "/matchConditions", &never),
            (policy, "drawbridge-own-reach", "/matchConditions", &never),
            (policy, "drawbridge-beeai-compat-agent-secrets", "/matchConditions", &never),
            (policy, "drawbridge-agent-secrets", "/matchConstraints/namespaceSelector", &team),
            (policy, "drawbridge-custom-steps", "/matchConstraints/objectSelector", &team),
            (policy, "drawbridge-runtime-config", "/matchConstraints/objectSelector/matchLabels", &labels),
            (policy, "drawbridge-own-objects", "/matchConstraints/excludeResourceRules", &others),
            (policy, "drawbridge-agent-pods", "/matchConstraints/resourceRules/0/resourceNames", &json!(["x"])),
            (policy, "drawbridge-own-webhooks", "/matchConstraints/resourceRules/0/scope", &json!("Namespaced")),
            (policy, "drawbridge-build-records", "/matchConstraints/matchPolicy", &json!("Exact")),
            (policy, "drawbridge-trust-switch", "/paramKind", &secret),
            (policy, "drawbridge-gate-removal", "/failurePolicy", &json!("Ignore")),
            (binding, "drawbridge-agent-secrets", "/matchResources", &json!({"namespaceSelector": team})),
            (binding, "drawbridge-own-agents-new", "/matchResources", &json!({"objectSelector": team})),
            (binding, "drawbridge-trust-all-pods", "/matchResources/objectSelector", &team),
            (binding, "drawbridge-trust-pods", "/paramRef/parameterNotFoundAction", &json!("Allow")),
            (binding, "drawbridge-build-secrets", "/paramRef", &none),
            (binding, "drawbridge-trust-cards", "/validationActions", &json!(["Audit"])),
            (mutating, keys::GATE, "/mutations/0/jsonPatch/expression", &json!("[]")),
            (mutating, keys::GATE, "/matchConstraints/excludeResourceRules", &others),
            (mutated, keys::GATE, "/matchResources", &json!({"objectSelector": team})),
        ] {
            let says = path.split('/').nth(1).unwrap();
            assert_eq!(with(one(&all, kind, name), path, value.clone()), [says], "{kind} {name} {path}");
        }
        // What says no more than nothing is none.
        for (kind, name, path, value) in [
            (policy, "drawbridge-trust-label", "/matchConditions", json!([])),
            (policy, "drawbridge-agent-secrets", "/matchConstraints/objectSelector", json!({"matchExpressions": []})),
            (binding, "drawbridge-agent-secrets", "/matchResources", json!({"matchPolicy": "Equivalent"})),
        ] {
            assert_eq!(with(one(&all, kind, name), path, value), [""; 0], "{kind} {name} {path}");
        }
    }

    #[test]
    fn a_policy_is_judged_with_every_binding_that_names_it_and_none_is_judged_alone() {
        for mode in [FailureMode::Fail, FailureMode::Gate] {
            let objects: Vec<_> = everything(mode).into_iter().map(|object| (object, true)).collect();
            let all = wanted(&objects, APPLY);
            assert_eq!(all.iter().map(|policy| policy.parts.len()).sum::<usize>(), objects.len(), "each once");
            assert!(all.iter().all(|policy| policy.parts.len() > 1), "{all:?}");
            let pods = all.iter().find(|policy| policy.name == "drawbridge-trust-pods").unwrap();
            let names: Vec<_> = pods.parts.iter().map(Part::called).collect();
            assert_eq!(
                names,
                [
                    "ValidatingAdmissionPolicy drawbridge-trust-pods",
                    "ValidatingAdmissionPolicyBinding drawbridge-trust-pods",
                    "ValidatingAdmissionPolicyBinding drawbridge-trust-all-pods",
                ]
            );
            assert_eq!(all.iter().any(|policy| policy.name == keys::GATE), mode == FailureMode::Gate);
        }
    }

    /// Objects of an installation that differ from what this one is compared with.
    fn different(installed: &Install, compared: &Install, file: &PlatformFile) -> Vec<String> {
        let installed: Vec<Value> = policies::objects(installed).iter().map(stored).collect();
        let mut found = Vec::new();
        for (object, is_known) in rendered(compared, file) {
            let (kind, name) = (text(&object, "/kind"), text(&object, "/metadata/name"));
            let there = one(&installed, kind, name);
            if is_known && !differences(&there["spec"], &object["spec"], &NARROWING).is_empty() {
                found.push(name.to_owned());
            }
        }
        found
    }

    #[test]
    fn policies_are_judged_by_the_platform_file_in_force() {
        let plain = install(FailureMode::Fail, None);
        for file in ["cards: {trust: enforced}\n", "cards: {trustFloor: enforced}\n", "cards: {trust: enforced-all}\n"]
        {
            let installed = install(FailureMode::Fail, Some(file));
            let known = PlatformFile::of(file);
            assert_eq!(different(&installed, &plain, &known), [""; 0], "{file}");
            // Where the file changed since, or the policies were put back as they are shipped, that is told.
            for (installed, known) in [(&installed, &PlatformFile::Known(None)), (&plain, &known)] {
                let found = different(installed, &plain, known);
                assert!(
                    found.len() >= 2 && found.iter().any(|name| name == "drawbridge-trust-pods"),
                    "{file}: {found:?}"
                );
                assert!(found.iter().all(|name| name.starts_with("drawbridge-trust-")), "{file}: {found:?}");
            }
            // Of a file that cannot be read nothing is concluded, and everything else is compared all the same.
            let broken = PlatformFile::of("cards: [\n");
            assert!(broken.trust().is_none());
            assert_eq!(different(&installed, &plain, &broken), [""; 0], "{file}");
        }
        let unknown = PlatformFile::Unknown("it may not be read".to_owned());
        let told = rendered(&plain, &unknown);
        let unsure: Vec<_> =
            told.iter().filter(|(_, known)| !known).map(|(one, _)| text(one, "/metadata/name")).collect();
        for name in [
            "drawbridge-trust-pods",
            "drawbridge-trust-all-pods",
            "drawbridge-trust-types",
            "drawbridge-trust-networks",
        ] {
            assert!(unsure.contains(&name), "{name}: {unsure:?}");
        }
        assert!(unsure.len() <= 5 && unsure.len() < told.len() / 4, "{unsure:?}");
    }

    #[test]
    fn the_policies_of_the_compatible_group_are_wanted_for_the_kinds_that_are_served() {
        let served = |names: &[&str]| {
            let resources: Vec<_> = names.iter().map(|name| json!({"name": name})).collect();
            let wanted =
                of_served(policies::compat(&install(FailureMode::Fail, None)), &json!({"resources": resources}));
            wanted.iter().map(|one| text(one, "/metadata/name").to_owned()).collect::<Vec<_>>()
        };
        let agents = ["drawbridge-beeai-compat-agent-secrets"; 2];
        let builds = ["drawbridge-beeai-compat-build-secrets"; 2];
        assert_eq!(served(&[]), [""; 0]);
        assert_eq!(served(&["agents", "agents/status"]), agents, "the policy and its binding");
        assert_eq!(served(&["agentbuilds"]), builds);
        assert_eq!(served(&["agents", "agentbuilds"]), [agents, builds].concat());
        assert!(of_served(policies::compat(&install(FailureMode::Fail, None)), &Value::Null).is_empty());
    }

    #[test]
    fn what_an_apply_leaves_is_taken_out_by_hand() {
        assert_eq!(remedy(APPLY, &[]), APPLY);
        let edits = ["kubectl edit validatingadmissionpolicy a".to_owned()];
        let said = remedy(APPLY, &edits);
        assert!(said.starts_with(APPLY) && said.ends_with(&edits[0]), "{said}");
    }
}
