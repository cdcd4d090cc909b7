//! The graph of manifests and of what a cluster says.

use serde_json::{Value, json};

use super::live::{Outcome, Tried};
use super::print;
use super::wiring::{Graph, State};
use crate::cli::Exit;
use crate::cli::cluster::fake;
use crate::cli::io::Io;
use crate::store::Kind;

fn object(kind: &str, name: &str, spec: Value, status: Value) -> Value {
    json!({"apiVersion": "kaos.tools/v1alpha1", "kind": kind, "metadata": {"name": name, "namespace": "shop"}, "spec": spec, "status": status})
}

fn shop() -> Graph {
    let mut graph = Graph::default();
    let ready = json!({"ready": true, "phase": "Ready"});
    let waits = json!({"phase": "Waiting", "message": "MCPServer stock is not ready"});
    let clerk = json!({"modelAPI": "llm", "model": "slow", "mcpServers": ["stock", "none"], "agentNetwork": {"access": ["auditor", "clerk"]}});
    let hidden = json!({"modelAPI": "llm", "model": "fast", "agentNetwork": {"expose": false}});
    graph.take(Kind::KaosAgent, &object("Agent", "clerk", clerk, waits), "", true);
    graph.take(Kind::KaosAgent, &object("Agent", "auditor", hidden, ready.clone()), "", true);
    let proxy = json!({"mode": "Proxy", "proxyConfig": {"models": ["fast"]}});
    graph.take(Kind::ModelApi, &object("ModelAPI", "llm", proxy, ready), "", true);
    graph.take(Kind::McpServer, &object("MCPServer", "stock", json!({}), Value::Null), "", true);
    graph.take(Kind::McpServer, &object("MCPServer", "spare", json!({"runtime": "slack"}), Value::Null), "", true);
    graph.settle();
    graph
}

fn text(graph: &Graph) -> String {
    let (mut out, mut err, mut stdin) = (Vec::new(), Vec::new(), &b""[..]);
    print::text(graph, &mut Io { stdin: &mut stdin, out: &mut out, err: &mut err, colour: false }).unwrap();
    String::from_utf8(out).unwrap()
}

#[test]
fn what_is_not_ready_missing_hidden_or_not_offered_is_said() {
    let graph = shop();
    let said = text(&graph);
    for line in [
        "namespace shop",
        "  Agent auditor  ready",
        "  Agent clerk  not ready Waiting: MCPServer stock is not ready",
        "    asks for slow ModelAPI llm (Proxy: fast)  ready  does not offer slow",
        "    uses MCPServer none  is not there",
        "    calls Agent auditor  ready  is not exposed, so it is left out",
        "  MCPServer spare (slack)  not ready no controller has written its status yet  (no agent names it)",
    ] {
        assert!(said.lines().any(|one| one == line), "{line:?} is missing in\n{said}");
    }
    assert!(said.contains("    uses MCPServer stock (python-string)  faulty spec.runtime is required"), "{said}");
    assert!(graph.needs_attention());
}

/// What was tried is said in every drawing, and only what is broken needs a person.
#[test]
fn what_came_of_an_edge_stands_in_every_drawing() {
    let mut graph = Graph::default();
    let ready = json!({"ready": true, "phase": "Ready"});
    let spec = json!({"modelAPI": "llm", "model": "fast", "mcpServers": ["stock"]});
    graph.take(Kind::KaosAgent, &object("Agent", "clerk", spec, ready.clone()), "", true);
    let proxy = json!({"mode": "Proxy", "proxyConfig": {"models": ["fast"]}});
    graph.take(Kind::ModelApi, &object("ModelAPI", "llm", proxy, ready.clone()), "", true);
    graph.take(Kind::McpServer, &object("MCPServer", "stock", json!({"runtime": "slack"}), ready), "", true);
    graph.settle();
    assert!(!graph.needs_attention());
    let says = |outcome, why: &str| Some(Tried { outcome, why: why.to_owned() });
    graph.edges[0].tried = says(Outcome::Works, "lists fast");
    graph.edges[1].tried = says(Outcome::Unknown, "it wants a credential");
    assert!(!graph.needs_attention(), "what nobody can tell is not broken");
    let said = text(&graph);
    assert!(said.contains("    asks for fast ModelAPI llm (Proxy: fast)  ready  works: lists fast\n"), "{said}");
    assert!(said.contains("ready  nobody can tell: it wants a credential\n"), "{said}");
    assert!(!print::mermaid(&graph).contains("-.->") && print::mermaid(&graph).contains("asks fast works"));
    graph.edges[1].tried = says(Outcome::Broken, "no \"Pod\" is ready");
    assert!(graph.needs_attention());
    assert!(text(&graph).contains("ready  broken: no \"Pod\" is ready\n"));
    let (mermaid, dot) = (print::mermaid(&graph), print::dot(&graph));
    assert!(mermaid.contains("-.->|\"uses broken: no #34;Pod#34; is ready\"|"), "{mermaid}");
    assert!(dot.contains("[label=\"uses broken: no \\\"Pod\\\" is ready\", style=dashed, color=red]"), "{dot}");
    let json = serde_json::to_value(&graph).unwrap();
    assert_eq!(json["edges"][1]["tried"], json!({"outcome": "broken", "why": "no \"Pod\" is ready"}));
}

#[test]
fn names_never_become_structure() {
    let mut graph = Graph::default();
    let odd = json!({"modelAPI": "a\"]; x --> y\nz", "model": "<b>|\\\""});
    graph.take(Kind::KaosAgent, &object("Agent", "a", odd, Value::Null), "", false);
    graph.settle();
    let said = text(&graph);
    assert!(said.contains("ModelAPI a\"]; x --> y\\nz"), "a name stays on its line: {said}");
    let (mermaid, dot) = (print::mermaid(&graph), print::dot(&graph));
    assert_eq!(mermaid.lines().filter(|line| line.contains("-->") || line.contains("-.->")).count(), 1, "{mermaid}");
    assert!(!mermaid.contains("<b>") && mermaid.contains("#60;b#62;"), "{mermaid}");
    assert_eq!(dot.matches("->").count() - dot.matches("-->").count(), 1, "{dot}");
    assert!(dot.contains("\\\""), "{dot}");
    let named: Vec<_> = graph.nodes.values().map(|node| node.state).collect();
    assert_eq!(named, [State::Written, State::Missing]);
    let json = serde_json::to_value(&graph).unwrap();
    assert_eq!((&json["nodes"][0]["kind"], &json["edges"][0]["how"]), (&json!("Agent"), &json!("asks")));
}

#[test]
fn the_samples_are_drawn_without_a_finding() {
    use clap::Parser;
    for (name, sample) in [
        ("team", include_str!("../../../manifests/samples/kaos-m-team.yaml")),
        ("simple", include_str!("../../../manifests/samples/kaos-s3-simple.yaml")),
    ] {
        for output in ["text", "mermaid", "dot", "json"] {
            let (mut out, mut err, mut stdin) = (Vec::new(), Vec::new(), sample.as_bytes());
            let mut io = Io { stdin: &mut stdin, out: &mut out, err: &mut err, colour: false };
            let cli = crate::cli::Cli::try_parse_from(["drawbridge", "graph", "-f", "-", "-o", output]).unwrap();
            assert_eq!(cli.command.run(&mut io).unwrap(), crate::cli::Exit::Ok, "{name} {output}");
            assert!(!out.is_empty());
        }
    }
}

/// An object of a kind that may not be seen was called absent, and the command ended with 1.
#[tokio::test]
async fn what_may_not_be_seen_is_not_called_missing() {
    let agent = || {
        object("Agent", "clerk", json!({"modelAPI": "llm", "model": "fast"}), json!({"ready": true, "phase": "Ready"}))
    };
    let cluster = fake::cluster(move |path| match path {
        "/apis/kaos.tools/v1alpha1/namespaces/shop/agents" => fake::list("Agent", "kaos.tools/v1alpha1", &[agent()]),
        _ => fake::refused(),
    })
    .await;
    let mut notes = Vec::new();
    let graph = super::wired(&cluster, "shop", &mut notes).await.unwrap();
    assert!(!graph.needs_attention() && notes.len() == 2, "{notes:?}");
    assert_eq!(cluster.seen_all_or_partial(Exit::Ok), Exit::Partial);
    let said = text(&graph);
    assert!(said.contains("ModelAPI llm  may not be seen with your rights\n"), "{said}");
    assert!(!print::mermaid(&graph).contains(":::wrong") && !print::dot(&graph).contains("color=red"));
}
