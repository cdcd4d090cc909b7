//! How an agent learns the port it is moved to (docs/deviations.md).
//!
//! In: the Pod, its container, the port it moves from. Out: the variable that tells the container, or the refusal that nothing
//! can: proxy and agent would both listen on the old port, and whoever came second would never start. What the image does
//! with the variable is not seen here; what the manifest itself fixes is.

use super::pod::{PodView, items, text};
use crate::admission::verdict::Denial;
use crate::domain::keys;
use crate::domain::reason::Reason;
use serde_json::Value;

/// The variable, where nobody names another.
const DEFAULT: &str = "PORT";
/// The annotation's word for: there is none.
const NOTHING: &str = "none";
/// Flags that take an address or a port, besides those that end with `port`.
const FLAGS: [&str; 9] = ["p", "b", "l", "bind", "listen", "addr", "address", "listen-address", "http-address"];
/// Programs of one word whose argument is a port.
const SERVERS: [&str; 2] = ["http.server", "runserver"];
/// Hosts of an address that is one's own.
const HERE: [&str; 8] = ["", "0.0.0.0", "127.0.0.1", "localhost", "[::]", "[::1]", "::", "*"];

/// Whether a variable may have the name: as the API server takes it without a gate, and every shell.
fn is_name(name: &str) -> bool {
    name.starts_with(|letter: char| letter.is_ascii_alphabetic() || letter == '_')
        && name.chars().all(|letter| letter.is_ascii_alphanumeric() || letter == '_')
}

/// The variable that tells the container at `index` its port.
pub(super) fn variable<'a>(pod: PodView<'a>, index: usize, from: u16) -> Result<&'a str, Box<Denial>> {
    let container = &pod.list("containers")[index];
    let name = text(container, "name");
    let named = pod.annotation(keys::ANNOTATION_PORT_VARIABLE);
    let variable = named.unwrap_or(DEFAULT);
    let is_ours = variable != DEFAULT && keys::AGENT_VARIABLES.contains(&variable);
    if named == Some(NOTHING) || !is_name(variable) || is_ours {
        let why = match named {
            Some(NOTHING) => "says that no variable does",
            _ if is_ours => "names a variable that Drawbridge sets to something else",
            _ => "names no variable",
        };
        let sentence = format!(
            "mode proxy-sidecar gives port {from} to the proxy, and container {name} cannot be told another one: annotation {} {why}",
            keys::ANNOTATION_PORT_VARIABLE
        );
        let field = format!("metadata.annotations[{}]", keys::ANNOTATION_PORT_VARIABLE);
        return Err(refused(sentence, variable, &field, variable));
    }
    match fixed(container, variable, from) {
        None => Ok(variable),
        Some((list, at, words)) => {
            let sentence = format!(
                "mode proxy-sidecar gives port {from} to the proxy, and container {name} cannot be told another one: its {list} fixes the port"
            );
            let seen: String = words.chars().take(200).collect();
            Err(refused(sentence, variable, &format!("spec.containers[{index}].{list}[{at}]"), &seen))
        }
    }
}

fn refused(sentence: String, variable: &str, field: &str, seen: &str) -> Box<Denial> {
    let is_free = is_name(variable) && variable != NOTHING && !keys::AGENT_VARIABLES.contains(&variable);
    let variable = if is_free { variable } else { DEFAULT };
    let remedy = format!(
        "let the application listen on $({variable}), name the variable it reads in annotation {}, or use mode envoy-sidecar, which \
         moves no port",
        keys::ANNOTATION_PORT_VARIABLE
    );
    Box::new(Denial::new(Reason::PortFixed, 422, sentence, remedy).at(field, seen))
}

/// The argument that fixes the port: list, index, and of its text the words that do, since what else stands there may be for nobody to read. None does
/// where one of them reads the variable.
fn fixed(container: &Value, variable: &str, port: u16) -> Option<(&'static str, usize, String)> {
    let arguments = || {
        ["command", "args"].into_iter().flat_map(|list| {
            let texts = items(container, list).iter().enumerate();
            texts.filter_map(move |(at, value)| Some((list, at, value.as_str()?)))
        })
    };
    if arguments().any(|(_, _, argument)| reads(argument, variable)) {
        return None;
    }
    let port = port.to_string();
    let mut before = "";
    for (list, at, argument) in arguments() {
        for word in argument.split(|letter: char| letter.is_whitespace() || "\"';&|()".contains(letter)) {
            if word.is_empty() {
                continue;
            }
            if is_fixing("", word, &port) {
                return Some((list, at, word.to_owned()));
            }
            if is_fixing(before, word, &port) {
                return Some((list, at, format!("{before} {word}")));
            }
            before = word;
        }
    }
    None
}

/// The argument holds the variable, as the kubelet or a shell would fill it in.
fn reads(argument: &str, variable: &str) -> bool {
    argument.match_indices('$').any(|(at, _)| {
        let rest = argument[at + 1..].trim_start_matches(['(', '{']);
        rest.strip_prefix(variable)
            .is_some_and(|after| !after.starts_with(|letter: char| letter.is_ascii_alphanumeric() || letter == '_'))
    })
}

/// The word, behind that other one, makes a program listen on the port.
fn is_fixing(before: &str, word: &str, port: &str) -> bool {
    if let Some((flag, value)) = word.split_once('=') {
        return is_port_flag(flag) && is_address(value, port);
    }
    if word.contains(':') && is_address(word, port) {
        return true;
    }
    let is_asked = (before.starts_with('-') && is_port_flag(before)) || SERVERS.contains(&before);
    is_asked && is_address(word, port)
}

fn is_port_flag(flag: &str) -> bool {
    let name = flag.trim_start_matches('-').to_ascii_lowercase();
    name.ends_with("port") || FLAGS.contains(&name.as_str())
}

/// `8000`, or that port of an address of one's own.
fn is_address(value: &str, port: &str) -> bool {
    let value = value.split_once("://").map_or(value, |(_, rest)| rest).trim_end_matches('/');
    match value.rsplit_once(':') {
        None => value == port,
        Some((host, number)) => number == port && HERE.contains(&host),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn mend_15_a_port_in_the_arguments_is_fixed_unless_the_variable_is_read() {
        let seen = |command: Value, args: Value| {
            let container = json!({"name": "agent", "command": command, "args": args});
            fixed(&container, "PORT", 8000).map(|(list, at, _)| (list, at))
        };
        for (command, args, expected) in [
            (json!(["uvicorn", "app:app", "--port", "8000"]), json!(null), Some(("command", 3))),
            (json!(["uvicorn", "app:app"]), json!(["--port=8000"]), Some(("args", 0))),
            (json!(null), json!(["--host", "0.0.0.0", "--port", "8000"]), Some(("args", 3))),
            (json!(["gunicorn", "-b", "0.0.0.0:8000", "app"]), json!(null), Some(("command", 2))),
            (json!(["agent"]), json!(["--listen=:8000"]), Some(("args", 0))),
            (json!(["agent"]), json!(["-p", "8000"]), Some(("args", 1))),
            (json!(["agent", "--url", "http://0.0.0.0:8000/"]), json!(null), Some(("command", 2))),
            (json!(["python", "-m", "http.server", "8000"]), json!(null), Some(("command", 3))),
            (json!(["java", "-Dserver.port=8000", "-jar", "a.jar"]), json!(null), Some(("command", 1))),
            (json!(["sh", "-c", "exec uvicorn app:app --port 8000"]), json!(null), Some(("command", 2))),
            (json!(["sh", "-c", "PORT=8000 ./agent"]), json!(null), Some(("command", 2))),
            (json!(["sh", "-c", "exec uvicorn app:app --port ${PORT:-8000}"]), json!(null), None),
            (json!(["uvicorn", "--port", "$(PORT)"]), json!(["--proxy-port=8000"]), None),
            (json!(["sh", "-c", "run --port 8000 $PORTAL"]), json!(null), Some(("command", 2))),
            (json!(["agent", "--max-tokens", "8000", "--max=8000"]), json!(null), None),
            (json!(["agent", "--port", "9000", "--model-url=http://model:8000"]), json!(["8000", 8000]), None),
            (json!(["agent", "http://model.team1:8000/v1"]), json!(null), None),
            (json!("agent --port 8000"), json!({"a": 1}), None),
        ] {
            assert_eq!(seen(command.clone(), args.clone()), expected, "{command} {args}");
        }
    }

    /// Events and logs repeat the refusal, and people write tokens into commands.
    #[test]
    fn of_the_arguments_only_the_words_that_fix_the_port_are_shown() {
        for (command, expected) in [
            (json!(["sh", "-c", "API_KEY=hunter2 exec uvicorn app:app --port 8000 --log-level info"]), "--port 8000"),
            (json!(["sh", "-c", "TOKEN=hunter2 ./agent --listen=:8000"]), "--listen=:8000"),
            (json!(["agent", "--token", "hunter2", "-b", "0.0.0.0:8000"]), "0.0.0.0:8000"),
            (json!(["python", "-m", "http.server", "8000"]), "http.server 8000"),
            (json!(["agent", "--port", "8000"]), "--port 8000"),
        ] {
            let container = json!({"name": "agent", "command": command});
            let (_, _, words) = fixed(&container, "PORT", 8000).unwrap();
            assert_eq!(words, expected, "{command}");
        }
    }
}
