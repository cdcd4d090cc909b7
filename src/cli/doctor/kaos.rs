//! Whether what KAOS's Agents, ModelAPIs and MCPServers need is there: images, the registry of runtimes, the Gateway; and whether the operator
//! that was here before still writes.
//!
//! In: the objects, the platform file, ConfigMap `kaos-mcp-runtimes`, Gateways, Leases, Deployments of that operator. Out: nothing where there is no
//! object of KAOS, but the other operator; else a check for each.

use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, SystemTime};

use k8s_openapi::apimachinery::pkg::apis::meta::v1::MicroTime;
use serde_json::Value;

use super::surroundings::PlatformFile;
use super::{Seen, Status, Visit, surroundings, text};
use crate::api::kaos_tools::read;
use crate::api::kaos_tools::shape::{Mode, Runtime};
use crate::config::schema::Platform;
use crate::domain::keys;
use crate::domain::printable::printable;
use crate::server::clock;
use crate::server::guards::watch::APPLY;
use crate::store::Kind;
use crate::workloads::kaos::names::STATUS_TAKEOVER;
use crate::workloads::kaos::registry::{KEY, Registry};
use crate::workloads::kaos::settings::Settings;
use crate::workloads::kaos::takeover::Row;

/// What is said of one thing: how it is, what was seen, what to do.
type Said = (Status, String, Option<String>);

/// The objects of all three kinds.
#[derive(Default)]
struct Objects {
    agents: Vec<Value>,
    apis: Vec<Value>,
    servers: Vec<Value>,
}

impl Objects {
    fn is_empty(&self) -> bool {
        self.agents.is_empty() && self.apis.is_empty() && self.servers.is_empty()
    }

    fn all(&self) -> impl Iterator<Item = &Value> {
        self.agents.iter().chain(&self.apis).chain(&self.servers)
    }
}

pub(super) async fn check(visit: &mut Visit, file: &PlatformFile) -> anyhow::Result<()> {
    let mut notes = Vec::new();
    let mut objects = Objects::default();
    for (kind, list) in [
        (Kind::KaosAgent, &mut objects.agents),
        (Kind::ModelApi, &mut objects.apis),
        (Kind::McpServer, &mut objects.servers),
    ] {
        *list = visit.list(kind, "", &mut notes).await?;
    }
    if let Some(note) = notes.into_iter().next() {
        visit.unknown("objects of KAOS", note, "run doctor as somebody who may list them");
    }
    other_operator(visit, !objects.is_empty(), file).await?;
    if objects.is_empty() {
        return Ok(());
    }
    let Some(platform) = surroundings::platform(visit, "images of KAOS").await? else { return Ok(()) };
    let settings = platform.kaos().clone();
    say(visit, "images of KAOS", images(&settings, &objects));
    registry(visit, &settings, &objects).await?;
    gateway(visit, &settings, objects.all()).await?;
    say(visit, "open proxies", proxies(&objects, &settings));
    say(visit, "takeover", takeover(objects.all()));
    Ok(())
}

fn say(visit: &mut Visit, name: &str, (status, seen, remedy): Said) {
    visit.add(name, status, (seen, remedy));
}

fn ok(seen: impl Into<String>) -> Said {
    (Status::Ok, seen.into(), None)
}

fn finding(seen: impl Into<String>, remedy: impl Into<String>) -> Said {
    (Status::Finding, seen.into(), Some(remedy.into()))
}

fn title(object: &Value) -> String {
    format!("{}/{}", text(object, "/metadata/namespace"), text(object, "/metadata/name"))
}

/// A few of many, by name.
fn some(names: &[String]) -> String {
    let head = names.iter().take(3).cloned().collect::<Vec<_>>().join(", ");
    if names.len() > 3 { format!("{head} and {} more", names.len() - 3) } else { head }
}

/// Whether an object names the image of its container itself.
fn has_image(object: &Value) -> bool {
    !text(object, "/spec/container/image").is_empty()
}

/// The images that the platform file has to name, each with who needs it.
fn images(settings: &Settings, objects: &Objects) -> Said {
    let modes = |mode: Mode| {
        objects.apis.iter().filter(move |api| !has_image(api) && read::model_api(api).value.mode == mode).count()
    };
    let packages = objects
        .servers
        .iter()
        .filter(|server| !has_image(server) && matches!(read::mcp_server(server).value.runtime, Runtime::Package(_)))
        .count();
    let wanted = [
        (
            "images.kaosAgent",
            &settings.image_agent,
            objects.agents.iter().filter(|agent| !has_image(agent)).count(),
            "Agents",
        ),
        ("images.kaosLitellm", &settings.image_litellm, modes(Mode::Proxy), "proxies"),
        ("images.kaosOllama", &settings.image_ollama, modes(Mode::Hosted), "hosted models"),
        ("images.kaosPython", &settings.image_python, packages, "MCPServers of packages"),
    ];
    let missing: Vec<String> = wanted
        .iter()
        .filter(|(_, image, count, _)| image.is_none() && *count > 0)
        .map(|(key, _, count, what)| format!("{key} is not set, and {count} {what} wait for it"))
        .collect();
    if !missing.is_empty() {
        return finding(missing.join("; "), "set it in the platform file; drawbridge render prints one that has them");
    }
    let floating: Vec<String> = wanted
        .iter()
        .filter_map(|(key, image, ..)| Some((key, image.as_deref().filter(|image| is_floating(image))?)))
        .map(|(key, image)| format!("{key} is {image}"))
        .collect();
    if floating.is_empty() {
        return ok("the platform file names every image that is needed, by version");
    }
    let seen = format!("{}: what runs changes when its publisher pushes", floating.join("; "));
    finding(seen, "name a version or a digest in the platform file")
}

/// A reference that may mean another image tomorrow.
fn is_floating(image: &str) -> bool {
    if image.contains('@') {
        return false;
    }
    let last = image.rsplit('/').next().unwrap_or(image);
    match last.split_once(':') {
        None => true,
        Some((_, tag)) => tag == "latest" || !tag.bytes().any(|byte| byte.is_ascii_digit()),
    }
}

async fn registry(visit: &mut Visit, settings: &Settings, objects: &Objects) -> anyhow::Result<()> {
    let name = "runtimes of tools";
    let mut used = Used::new();
    for server in &objects.servers {
        if let Runtime::Registered(name) = read::mcp_server(server).value.runtime {
            *used.entry(name).or_default() |= !has_image(server);
        }
    }
    let place = settings.registry_namespace.clone().unwrap_or_else(|| visit.operator.clone());
    let path = format!("{}/{}", Kind::ConfigMap.path(&place), keys::CONFIG_MAP_MCP_RUNTIMES);
    let map = match visit.read(name, &path).await? {
        Seen::Hidden => return Ok(()),
        Seen::Absent => None,
        Seen::Is(map) => Some(map),
    };
    say(visit, name, runtimes(map.as_ref(), &place, &used));
    Ok(())
}

/// The runtimes that MCPServers name, and whether one of them has no image but its runtime's.
type Used = BTreeMap<String, bool>;

fn runtimes(map: Option<&Value>, place: &str, used: &Used) -> Said {
    let called = format!("ConfigMap {place}/{}", keys::CONFIG_MAP_MCP_RUNTIMES);
    let Some(map) = map else {
        let seen = format!("{called} is not there");
        return if used.is_empty() { ok(format!("{seen}, and no MCPServer needs it")) } else { finding(seen, APPLY) };
    };
    let Some(list) = map["data"][KEY].as_str() else {
        return finding(format!("{called} has no key {KEY}"), APPLY);
    };
    let registry = match Registry::read(list) {
        Ok(registry) => registry,
        Err(fault) => return finding(format!("{called}: {fault}"), "correct the text"),
    };
    let fault = |(name, needs_image): (&String, &bool)| match registry.runtime(name) {
        Err(fault) => Some(fault.to_string()),
        Ok(runtime) if *needs_image && runtime.image.is_none() => {
            Some(format!("runtime {name} names no image, nor does an MCPServer that uses it"))
        }
        Ok(_) => None,
    };
    let wrong: Vec<String> = used.iter().filter_map(fault).collect();
    if wrong.is_empty() {
        return ok(format!("{called} lists {} runtimes, all that are used among them", registry.names().count()));
    }
    finding(format!("{called}: {}", some(&wrong)), "add the runtime or its image there, or correct spec.runtime")
}

async fn gateway(visit: &mut Visit, settings: &Settings, objects: impl Iterator<Item = &Value>) -> anyhow::Result<()> {
    let name = "Gateway of KAOS";
    let gateway = &settings.gateway;
    if !gateway.enabled {
        visit.ok(name, "kaos.gateway.enabled is false: no routes are made");
        return Ok(());
    }
    let group = format!("/apis/{}/{}", Kind::HttpRoute.group(), Kind::HttpRoute.version());
    match visit.read(name, &group).await? {
        Seen::Hidden => return Ok(()),
        Seen::Absent => {
            let remedy = "install Gateway API, or set kaos.gateway.enabled to false";
            visit.finding(name, "the API server does not serve HTTPRoutes, so no route is made", remedy);
            return Ok(());
        }
        Seen::Is(_) => {}
    }
    let place = gateway.namespace.clone().unwrap_or_else(|| visit.operator.clone());
    let path = format!("{group}/namespaces/{place}/gateways/{}", gateway.name);
    let there = match visit.read(name, &path).await? {
        Seen::Hidden => return Ok(()),
        Seen::Absent => None,
        Seen::Is(there) => Some(there),
    };
    let refused: Vec<String> = objects.filter(|object| is(object, "RouteAccepted", "False")).map(title).collect();
    say(visit, name, routes(there.as_ref(), (&place, &gateway.name), &refused));
    Ok(())
}

fn routes(there: Option<&Value>, (place, name): (&str, &str), refused: &[String]) -> Said {
    let called = format!("Gateway {place}/{name}");
    let Some(there) = there else {
        return finding(
            format!("{called} does not exist: routes lead nowhere"),
            "make it (drawbridge render --kinds kaos --gateway-class CLASS prints one), or correct kaos.gateway.name and .namespace",
        );
    };
    if is(there, "Programmed", "False") || is(there, "Accepted", "False") {
        let remedy = format!("kubectl -n {place} describe gateway {name}");
        return finding(format!("{called} is not accepted or not programmed by its controller"), remedy);
    }
    if refused.is_empty() {
        return ok(format!("{called} exists, and refuses no route"));
    }
    let seen = format!("{called} refuses the routes of {}", some(refused));
    finding(seen, "let its listener allow routes from their namespaces; drawbridge explain shows what the Gateway says")
}

fn is(object: &Value, kind: &str, status: &str) -> bool {
    let all = object.pointer("/status/conditions").and_then(Value::as_array).into_iter().flatten();
    all.into_iter().any(|one| one["type"] == kind && one["status"] == status)
}

fn proxies(objects: &Objects, settings: &Settings) -> Said {
    let open: Vec<String> = objects.apis.iter().filter(|api| is(api, "ProxyOpen", "True")).map(title).collect();
    if open.is_empty() {
        return ok("no proxy is known to be open");
    }
    if settings.restrict_model_apis {
        return ok(format!("{} have no master key, and kaos.restrictModelAPIs lets only their Agents in", some(&open)));
    }
    let seen = format!("{} have no master key: every Pod that reaches them can spend the provider's key", some(&open));
    finding(seen, "set kaos.restrictModelAPIs to true, or give them a master key")
}

fn takeover<'o>(objects: impl Iterator<Item = &'o Value>) -> Said {
    let pending: Vec<&Value> = objects.filter(|object| is(object, "TakeoverPending", "True")).collect();
    if pending.is_empty() {
        return ok("no Deployment is left as the KAOS operator made it");
    }
    let changes = |object: &&Value| {
        let all = object.pointer(&format!("/status/{STATUS_TAKEOVER}/changes")).and_then(Value::as_array);
        all.into_iter().flatten().filter_map(Value::as_str).map(|one| printable(one, 256)).collect::<Vec<_>>()
    };
    let told = |object: &&Value| match changes(object) {
        all if all.is_empty() => title(object),
        all => format!("{} ({})", title(object), all.join("; ")),
    };
    let all: Vec<String> = pending.iter().map(told).collect();
    let open = |object: &&&Value| changes(object).iter().any(|one| one.starts_with(Row::Open.words()));
    let ends: Vec<String> = pending.iter().filter(open).map(|object| title(object)).collect();
    let mut seen = format!(
        "run as the KAOS operator made them; what else their next change does is in parentheses: {}",
        some(&all)
    );
    if !ends.is_empty() {
        seen.push_str(&format!(
            "; a Pod of {} that is restarted with a current LiteLLM does not start, because LiteLLM exits without a master key",
            some(&ends)
        ));
    }
    finding(seen, "change each at a time that suits; condition TakeoverPending goes with it")
}

/// The Go operator: its Lease, wherever it is and whether or not it is believed there, and its Deployment.
async fn other_operator(visit: &mut Visit, objects: bool, file: &PlatformFile) -> anyhow::Result<()> {
    let name = "operator of KAOS before";
    let mut notes = Vec::new();
    let query = format!("fieldSelector=metadata.name%3D{}", keys::LEASE_KAOS_BEFORE);
    let leases = visit.cluster.list(&format!("/apis/coordination.k8s.io/v1/leases?{query}"), &mut notes).await?;
    let label = "labelSelector=app.kubernetes.io%2Fname%3Dkaos-operator";
    let deployments = visit.cluster.list(&format!("/apis/apps/v1/deployments?{label}"), &mut notes).await?;
    if let Some(note) = notes.into_iter().next() {
        if objects {
            visit.unknown(name, note, "run doctor as somebody who may list Leases and Deployments everywhere");
        }
        return Ok(());
    }
    let platform = file.platform().unwrap_or_else(Platform::built_in);
    let operator = visit.operator.clone();
    let believed = platform.kaos().believed(&operator);
    let said = before((&leases, &believed), &deployments, clock::now());
    if objects || said.0 != Status::Ok {
        say(visit, name, said);
    }
    Ok(())
}

/// `believed` are the namespaces in which a Lease holds the controllers up.
fn before((leases, believed): (&[Value], &BTreeSet<&str>), deployments: &[Value], now: SystemTime) -> Said {
    let is_believed = |lease: &&Value| believed.contains(text(lease, "/metadata/namespace"));
    let mut held = leases.iter().filter(|lease| is_held(lease, now));
    if let Some(lease) = held.clone().find(is_believed) {
        let seen = format!(
            "Lease {} is held by {}: while it is, the controllers of KAOS's kinds wait, so that two operators never write the same objects",
            title(lease),
            text(lease, "/spec/holderIdentity")
        );
        return finding(
            seen,
            "scale the other operator to 0; its names are kaos-operator-controller-manager or kaos-kaos-operator-controller-manager",
        );
    }
    if let Some(lease) = held.next() {
        let seen = format!(
            "Lease {} is held by {}, and nobody waits for it: it is not believed in that namespace, where others may write Leases",
            title(lease),
            text(lease, "/spec/holderIdentity")
        );
        return finding(
            seen,
            "if the Go operator of KAOS runs there, name the namespace in platform key kaos.operatorNamespaces, or scale it to 0; else delete the Lease",
        );
    }
    let running: Vec<String> =
        deployments.iter().filter(|deployment| deployment["spec"]["replicas"].as_i64() != Some(0)).map(title).collect();
    if running.is_empty() {
        return ok("none writes");
    }
    finding(
        format!("Deployment {} is not scaled to 0", some(&running)),
        "scale it to 0: two operators of the same kinds undo each other's work",
    )
}

/// Whether somebody holds a Lease and has renewed it within its duration.
fn is_held(lease: &Value, now: SystemTime) -> bool {
    let seconds = lease["spec"]["leaseDurationSeconds"].as_u64().unwrap_or(15);
    let renewed = serde_json::from_value::<MicroTime>(lease["spec"]["renewTime"].clone()).ok();
    let renewed = renewed.map(|time| SystemTime::from(time.0));
    !text(lease, "/spec/holderIdentity").is_empty()
        && renewed.is_some_and(|renewed| renewed + Duration::from_secs(seconds) > now)
}

#[cfg(test)]
mod tests {
    use std::time::UNIX_EPOCH;

    use serde_json::json;

    use super::*;

    fn object(name: &str, spec: Value, conditions: Value) -> Value {
        json!({"metadata": {"name": name, "namespace": "shop"}, "spec": spec, "status": {"conditions": conditions}})
    }

    #[test]
    fn an_image_that_is_needed_and_missing_or_floating_is_a_finding() {
        let objects = Objects {
            agents: vec![object("a", json!({"modelAPI": "m"}), json!([]))],
            apis: vec![object("m", json!({"mode": "Hosted", "hostedConfig": {"model": "x"}}), json!([]))],
            ..Objects::default()
        };
        let with = |agent: Option<&str>, ollama: Option<&str>| {
            let of = |image: Option<&str>| image.map(str::to_owned);
            images(&Settings { image_agent: of(agent), image_ollama: of(ollama), ..Settings::default() }, &objects)
        };
        let (status, seen, _) = with(None, Some("o:1"));
        assert_eq!((status, &*seen), (Status::Finding, "images.kaosAgent is not set, and 1 Agents wait for it"));
        let (status, seen, _) = with(Some("r/a:latest"), Some("h:5000/o"));
        assert!(
            status == Status::Finding && seen.contains("images.kaosAgent is r/a:latest; images.kaosOllama is h:5000/o"),
            "{seen}"
        );
        assert_eq!(with(Some("a:main-stable"), Some("o:1")).0, Status::Finding);
        assert_eq!(with(Some("a@sha256:0"), Some("python:3.12-slim")).0, Status::Ok);
    }

    #[test]
    fn a_runtime_that_is_used_has_to_be_listed() {
        let map = |text: &str| json!({"data": {"runtimes.yaml": text}});
        let used = Used::from([("slack".to_owned(), true)]);
        let own = Used::from([("slack".to_owned(), false)]);
        for (map, used, status, words) in [
            (None, Used::new(), Status::Ok, "no MCPServer needs it"),
            (None, used.clone(), Status::Finding, "is not there"),
            (Some(json!({"data": {}})), used.clone(), Status::Finding, "has no key"),
            (Some(map("runtimes: [")), used.clone(), Status::Finding, "line"),
            (Some(map("runtimes: {a: {image: 'i:1'}}")), used.clone(), Status::Finding, "unknown runtime: slack"),
            (Some(map("runtimes: {slack: {command: [run]}}")), used.clone(), Status::Finding, "slack names no image"),
            (Some(map("runtimes: {slack: {command: [run]}}")), own, Status::Ok, "lists 1 runtimes"),
            (Some(map("runtimes: {slack: {image: 'i:1'}}")), used, Status::Ok, "lists 1 runtimes"),
        ] {
            let (found, seen, _) = runtimes(map.as_ref(), "kaos-system", &used);
            assert!(found == status && seen.contains(words), "{seen}");
        }
    }

    #[test]
    fn the_gateway_and_what_it_refuses() {
        let is = |kind: &str, status: &str| object("g", json!({}), json!([{"type": kind, "status": status}]));
        let refused = ["shop/a".to_owned()];
        for (there, refused, status, words) in [
            (None, &[][..], Status::Finding, "routes lead nowhere"),
            (Some(is("Programmed", "False")), &[][..], Status::Finding, "not programmed"),
            (Some(is("Programmed", "True")), &refused[..], Status::Finding, "refuses the routes of shop/a"),
            (Some(is("Programmed", "True")), &[][..], Status::Ok, "refuses no route"),
        ] {
            let (found, seen, _) = routes(there.as_ref(), ("infra", "edge"), refused);
            assert!(found == status && seen.contains(words), "{seen}");
        }
    }

    #[test]
    fn proxies_that_are_open_and_what_was_not_taken_over_are_told() {
        let open = json!([{"type": "ProxyOpen", "status": "True"}, {"type": "TakeoverPending", "status": "True"}]);
        let objects = Objects { apis: vec![object("m", json!({}), open)], ..Objects::default() };
        assert_eq!(proxies(&objects, &Settings::default()).0, Status::Finding);
        assert_eq!(proxies(&objects, &Settings { restrict_model_apis: true, ..Settings::default() }).0, Status::Ok);
        let (status, seen, _) = takeover(objects.all());
        assert!(status == Status::Finding && seen.ends_with("in parentheses: shop/m"), "{seen}");
        let mut one = objects.apis[0].clone();
        let open = format!("{}: LITELLM_X", Row::Open.words());
        one["status"]["takeover"] = json!({"changes": ["log level of the platform file: LITELLM_LOG", open]});
        let (_, seen, _) = takeover(std::iter::once(&one));
        assert!(seen.contains("shop/m (log level of the platform file: LITELLM_LOG; "), "{seen}");
        assert!(seen.contains("a Pod of shop/m that is restarted with a current LiteLLM does not start,"), "{seen}");
        assert_eq!(
            (proxies(&Objects::default(), &Settings::default()).0, takeover([].into_iter()).0),
            (Status::Ok, Status::Ok)
        );
    }

    #[test]
    fn the_operator_before_is_found_by_its_lease_and_by_its_deployment() {
        let believed = BTreeSet::from(["kaos-system"]);
        let now = UNIX_EPOCH + Duration::from_secs(1_800_000_010);
        let lease = |holder: &str, renewed: &str| {
            json!({"metadata": {"name": "kaos-operator.kaos.tools", "namespace": "kaos-system"},
                "spec": {"holderIdentity": holder, "leaseDurationSeconds": 15, "renewTime": renewed}})
        };
        // 1 800 000 000 seconds after 1970.
        let fresh = lease("pod-1", "2027-01-15T08:00:00.000000Z");
        let (status, seen, _) = before((std::slice::from_ref(&fresh), &believed), &[], now);
        assert!(
            status == Status::Finding && seen.contains("Lease kaos-system/kaos-operator.kaos.tools is held by pod-1"),
            "{seen}"
        );
        let mut elsewhere = fresh.clone();
        elsewhere["metadata"]["namespace"] = json!("team1");
        let (status, seen, _) = before((&[elsewhere.clone()], &believed), &[], now);
        assert!(
            status == Status::Finding
                && seen.contains("team1/kaos-operator.kaos.tools")
                && seen.contains("not believed"),
            "{seen}"
        );
        let (_, seen, _) = before((&[elsewhere, fresh.clone()], &believed), &[], now);
        assert!(seen.contains("Lease kaos-system/") && seen.contains("wait"), "{seen}");
        assert_eq!(before((&[fresh], &believed), &[], now + Duration::from_secs(6)).0, Status::Ok, "it has run out");
        assert_eq!(
            before((&[lease("", "2027-01-15T08:00:00.000000Z")], &believed), &[], now).0,
            Status::Ok,
            "it was released"
        );
        let deployment = |replicas: Option<i64>| json!({"metadata": {"name": "kaos-operator-controller-manager", "namespace": "k"}, "spec": {"replicas": replicas}});
        assert_eq!(before((&[], &believed), &[deployment(Some(0))], now).0, Status::Ok);
        assert_eq!(before((&[], &believed), &[deployment(None)], now).0, Status::Finding);
    }
}
