//! A Pod's own requests and limits (`spec.resources`), which are for all its containers together.
//!
//! The API server compares them with the Pod as we make it, and speaks of sums that the requester never saw. Its rules are
//! followed here (Kubernetes 1.36, validation of Pod-level resources); what it would fill in before is filled in.

use std::collections::BTreeMap;

use serde_json::Value;

use crate::admission::inject::context::Context;
use crate::admission::inject::plan::InjectionPlan;
use crate::admission::inject::pod::{PodView, text};
use crate::admission::verdict::Denial;
use crate::domain::quantity::quantity;
use crate::domain::reason::Reason;

/// The first API server that reads the field without being told to.
const SINCE: (u32, u32) = (1, 34);
/// What can be set for a whole Pod; huge pages, the third, are nothing we ask for.
const RESOURCES: [&str; 2] = ["cpu", "memory"];

/// What is requested, by resource.
type Amounts = BTreeMap<&'static str, f64>;

fn amount(resources: &Value, part: &str, name: &str) -> Option<f64> {
    match resources.get(part)?.get(name)? {
        Value::String(text) => quantity(text),
        Value::Number(number) => number.as_f64(),
        _ => None,
    }
}

/// What a container requests; a limit alone is also a request.
fn requests(resources: &Value) -> Amounts {
    let one = |name| Some((name, amount(resources, "requests", name).or_else(|| amount(resources, "limits", name))?));
    RESOURCES.into_iter().filter_map(one).collect()
}

fn add(sum: &mut Amounts, more: &Amounts) {
    for (&name, amount) in more {
        *sum.entry(name).or_default() += amount;
    }
}

fn at_least(most: &mut Amounts, other: &Amounts) {
    for (&name, amount) in other {
        let most = most.entry(name).or_default();
        *most = most.max(*amount);
    }
}

/// An init container: what it requests, and whether it keeps running.
type Init = (Amounts, bool);

/// What containers request together: those that run side by side, or what the start needs where that is more.
fn together(init: impl Iterator<Item = Init>, regular: impl Iterator<Item = Amounts>) -> Amounts {
    let (mut sum, mut sidecars, mut start) = (Amounts::new(), Amounts::new(), Amounts::new());
    regular.for_each(|requests| add(&mut sum, &requests));
    for (mut requests, lasts) in init {
        if lasts {
            add(&mut sum, &requests);
            add(&mut sidecars, &requests);
            requests.clone_from(&sidecars);
        } else {
            add(&mut requests, &sidecars);
        }
        at_least(&mut start, &requests);
    }
    at_least(&mut sum, &start);
    sum
}

fn of_users(pod: PodView<'_>) -> (Vec<Init>, Vec<Amounts>) {
    let asked = |container: &Value| requests(container.get("resources").unwrap_or(&Value::Null));
    let init = pod.list("initContainers").iter().map(|one| (asked(one), text(one, "restartPolicy") == "Always"));
    (init.collect(), pod.list("containers").iter().map(asked).collect())
}

/// The request that the API server compares: as it is written, or, where the Pod has limits, as it was filled in from what the
/// Pod was before us.
fn own_request(own: &Value, name: &str, users: &Amounts) -> Option<f64> {
    let has_limits = own.get("limits").and_then(Value::as_object).is_some_and(|limits| !limits.is_empty());
    let filled_in = || users.get(name).copied().or_else(|| amount(own, "limits", name)).filter(|_| has_limits);
    amount(own, "requests", name).or_else(filled_in)
}

/// An amount as people write it, never less than it is.
fn shown(name: &str, amount: f64) -> String {
    match name {
        "cpu" => format!("{}m", (amount * 1e3 - 1e-6).ceil()),
        _ => format!("{}Mi", (amount / 1_048_576.0).ceil()),
    }
}

/// Whether `more` is more than `less` by more than the error of adding decimal fractions.
fn exceeds(more: f64, less: f64) -> bool {
    more > less + less.abs().max(more.abs()) * 1e-12
}

fn refused(own: &Value, (part, name): (&str, &str), sentence: String, (seen, wanted): (f64, f64)) -> Denial {
    let field = format!("spec.resources.{part}.{name}");
    let remedy = format!("set {field} to {} or more", shown(name, wanted));
    let seen = match own.get(part).and_then(|amounts| amounts.get(name)) {
        Some(Value::String(text)) => text.clone(),
        Some(other) => other.to_string(),
        None => format!("{}, which the API server fills in", shown(name, seen)),
    };
    Denial::new(Reason::PodResourcesExceeded, 422, sentence, remedy).at(field, seen)
}

/// The first amount of the Pod's own that has no room for our parts.
pub(super) fn of_pod(cx: &Context<'_>, plan: &InjectionPlan<'_>) -> Option<Denial> {
    let pod = cx.subject.pod;
    let own = pod.spec("resources").filter(|own| own.is_object())?;
    if cx.subject.snapshot.view.server_version < SINCE {
        return None;
    }
    let (init, regular) = of_users(pod);
    let users = together(init.iter().cloned(), regular.iter().cloned());
    let our_init = plan.init.iter().map(|ours| (requests(&ours.resources), ours.restart_policy.is_some()));
    let our_regular = plan.containers.iter().map(|ours| requests(&ours.resources));
    let regular = regular.into_iter().chain(our_regular);
    let all = if plan.init_first {
        together(our_init.chain(init), regular)
    } else {
        together(init.into_iter().chain(our_init), regular)
    };
    RESOURCES.into_iter().find_map(|name| {
        let request = own_request(own, name, &users);
        if let (Some(request), Some(wanted)) = (request, all.get(name).copied())
            && exceeds(wanted, request)
        {
            let sentence =
                format!("the Pod's containers and the sidecars request {} of {name} together", shown(name, wanted));
            return Some(refused(own, ("requests", name), sentence, (request, wanted)));
        }
        let limit = amount(own, "limits", name)?;
        plan.containers.iter().find_map(|ours| {
            let wanted = amount(&ours.resources, "limits", name).filter(|wanted| exceeds(*wanted, limit))?;
            let sentence = format!("sidecar {} has a limit of {} for {name}", ours.name, shown(name, wanted));
            Some(refused(own, ("limits", name), sentence, (limit, wanted)))
        })
    })
}
