//! The graph as text, as Mermaid and as DOT.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use super::live::{Outcome, Tried};
use super::wiring::{Edge, Graph, Id, Node, State};
use crate::cli::io::{Io, Tone, shown};

/// For people: every agent with what it names, then what nobody names.
pub(super) fn text(graph: &Graph, io: &mut Io<'_>) -> anyhow::Result<()> {
    if graph.nodes.is_empty() {
        writeln!(io.out, "no Agent, ModelAPI or MCPServer of kaos.tools")?;
        return Ok(());
    }
    let mut namespace = None;
    for node in graph.nodes.values() {
        let is_named = graph.edges.iter().any(|edge| edge.to == node.id);
        if namespace != Some(&node.id.namespace) {
            writeln!(io.out, "namespace {}", shown(&node.id.namespace))?;
            namespace = Some(&node.id.namespace);
        }
        if node.id.kind != "Agent" && is_named {
            continue;
        }
        let unused = if node.id.kind == "Agent" { "" } else { "  (no agent names it)" };
        writeln!(io.out, "  {}{unused}", line(node, io))?;
        for edge in graph.edges_of(&node.id) {
            let Some(to) = graph.nodes.get(&edge.to) else { continue };
            let label = if edge.label.is_empty() { String::new() } else { format!(" for {}", shown(&edge.label)) };
            let wrong = match () {
                () if edge.wrong.is_empty() || to.state == State::Missing => String::new(),
                () => format!("  {}", io.paint(Tone::Bad, &shown(&edge.wrong))),
            };
            let tried = edge.tried.as_ref().map_or_else(String::new, |tried| format!("  {}", outcome(tried, io)));
            writeln!(io.out, "    {}{label} {}{wrong}{tried}", edge.how, line(to, io))?;
        }
    }
    Ok(())
}

fn line(node: &Node, io: &Io<'_>) -> String {
    let what = if node.what.is_empty() { String::new() } else { format!(" ({})", shown(&node.what)) };
    let state = match node.state {
        State::Ready => io.paint(Tone::Good, "ready"),
        State::NotReady => format!("{} {}", io.paint(Tone::Warn, "not ready"), shown(&node.why)),
        State::Faulty => format!("{} {}", io.paint(Tone::Bad, "faulty"), shown(&node.why)),
        State::Missing => io.paint(Tone::Bad, "is not there"),
        State::Written => String::new(),
        State::Unseen => io.paint(Tone::Warn, &node.why),
    };
    format!("{} {}{what}  {state}", node.id.kind, shown(&node.id.name)).trim_end().to_owned()
}

/// What came of an edge, in words.
fn outcome(tried: &Tried, io: &Io<'_>) -> String {
    let (word, tone) = match tried.outcome {
        Outcome::Works => ("works:", Tone::Good),
        Outcome::Broken => ("broken:", Tone::Bad),
        Outcome::Unknown => ("nobody can tell:", Tone::Warn),
    };
    format!("{} {}", io.paint(tone, word), shown(&tried.why))
}

/// Names that both languages take.
fn numbered(graph: &Graph) -> BTreeMap<&Id, String> {
    graph.nodes.keys().enumerate().map(|(number, id)| (id, format!("n{number}"))).collect()
}

fn by_namespace(graph: &Graph) -> BTreeMap<&str, Vec<&Node>> {
    let mut spaces: BTreeMap<&str, Vec<&Node>> = BTreeMap::new();
    graph.nodes.values().for_each(|node| spaces.entry(&node.id.namespace).or_default().push(node));
    spaces
}

fn state(node: &Node) -> &'static str {
    match node.state {
        State::Ready => "ready",
        State::NotReady => "not ready",
        State::Faulty => "faulty",
        State::Missing => "missing",
        State::Written => "",
        State::Unseen => "not seen",
    }
}

fn label(edge: &Edge) -> String {
    let tried = match &edge.tried {
        None => String::new(),
        Some(Tried { outcome: Outcome::Works, .. }) => "works".to_owned(),
        Some(Tried { outcome: Outcome::Broken, why }) => format!("broken: {why}"),
        Some(Tried { outcome: Outcome::Unknown, why }) => format!("nobody can tell: {why}"),
    };
    let texts = [edge.how, &edge.label, &edge.wrong, &tried];
    texts.into_iter().filter(|text| !text.is_empty()).collect::<Vec<_>>().join(" ")
}

/// A text that means nothing in Mermaid: entities for what would end it.
fn plain(text: &str) -> String {
    let mut out = String::new();
    for letter in text.chars().filter(|letter| !letter.is_control()).take(120) {
        match letter {
            'a'..='z' | 'A'..='Z' | '0'..='9' | ' ' | '-' | '.' | '/' | ':' | ',' | '_' => out.push(letter),
            other => {
                // Writing into a text takes everything.
                let _ = write!(out, "#{};", u32::from(other));
            }
        }
    }
    out
}

/// A flowchart.
pub(super) fn mermaid(graph: &Graph) -> String {
    let names = numbered(graph);
    let mut out = "flowchart LR\n".to_owned();
    for (number, (namespace, nodes)) in by_namespace(graph).into_iter().enumerate() {
        let _ = writeln!(out, "  subgraph s{number}[\"{}\"]", plain(namespace));
        for node in nodes {
            let words = [node.id.kind, &node.id.name].map(plain).join(" ");
            let more: Vec<_> =
                [&*node.what, state(node)].into_iter().filter(|text| !text.is_empty()).map(plain).collect();
            let more = more.iter().map(|text| format!("<br/>{text}")).collect::<String>();
            let class =
                if matches!(node.state, State::Ready | State::Written | State::Unseen) { "" } else { ":::wrong" };
            let (open, close) = match node.id.kind {
                "Agent" => ("(", ")"),
                "ModelAPI" => ("[(", ")]"),
                _ => ("[", "]"),
            };
            let _ = writeln!(out, "    {}{open}\"{words}{more}\"{close}{class}", names[&node.id]);
        }
        out.push_str("  end\n");
    }
    for edge in &graph.edges {
        let arrow = if edge.wrong.is_empty() && !edge.is_broken() { "-->" } else { "-.->" };
        let _ = writeln!(out, "  {} {arrow}|\"{}\"| {}", names[&edge.from], plain(&label(edge)), names[&edge.to]);
    }
    out.push_str("  classDef wrong stroke:#b00,stroke-dasharray:4\n");
    out
}

/// A quoted text of DOT.
fn quoted(text: &str) -> String {
    let text: String = text.chars().filter(|letter| !letter.is_control()).take(120).collect();
    format!("\"{}\"", text.replace('\\', "\\\\").replace('"', "\\\""))
}

/// A digraph.
pub(super) fn dot(graph: &Graph) -> String {
    let names = numbered(graph);
    let mut out = "digraph kaos {\n  rankdir=LR;\n  node [shape=box];\n".to_owned();
    for (number, (namespace, nodes)) in by_namespace(graph).into_iter().enumerate() {
        let _ = writeln!(out, "  subgraph cluster_{number} {{\n    label={};", quoted(namespace));
        for node in nodes {
            let words = format!("{} {} {} {}", node.id.kind, node.id.name, node.what, state(node));
            let style = match (node.state, node.id.kind) {
                (State::Ready | State::Written | State::Unseen, "Agent") => ", style=rounded",
                (State::Ready | State::Written | State::Unseen, _) => "",
                _ => ", style=dashed, color=red",
            };
            let _ = writeln!(out, "    {} [label={}{style}];", names[&node.id], quoted(words.trim_end()));
        }
        out.push_str("  }\n");
    }
    for edge in &graph.edges {
        let style = if edge.wrong.is_empty() && !edge.is_broken() { "" } else { ", style=dashed, color=red" };
        let _ =
            writeln!(out, "  {} -> {} [label={}{style}];", names[&edge.from], names[&edge.to], quoted(&label(edge)));
    }
    out.push_str("}\n");
    out
}
