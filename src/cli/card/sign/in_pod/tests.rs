//! What the environment says, what ends the program, and what is written; SPIRE itself stands in the suite of peers.

use std::collections::BTreeMap;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::time::Duration;

use serde_json::Value;

use super::{Asked, Settings, run, write};
use crate::cli::Exit;
use crate::cli::io::Io;

fn environment<'e>(set: &'e [(&'e str, String)]) -> impl Fn(&str) -> Option<String> + 'e {
    let set: BTreeMap<_, _> = set.iter().map(|(name, value)| (*name, value.clone())).collect();
    move |name| set.get(name).cloned()
}

/// How it ended, and what was logged.
fn ran(if_present: bool, set: &[(&str, String)]) -> (Exit, Vec<Value>) {
    let (mut stdin, mut out, mut err) = (&b""[..], Vec::new(), Vec::new());
    let exit = {
        let mut io = Io { stdin: &mut stdin, out: &mut out, err: &mut err, colour: false };
        run(Asked::Once, if_present, &environment(set), &mut io).unwrap()
    };
    assert!(out.is_empty(), "the log stands on standard error");
    let lines = String::from_utf8(err).unwrap();
    (exit, lines.lines().map(|line| serde_json::from_str(line).unwrap()).collect())
}

#[test]
fn the_environment_is_read_as_the_page_says() {
    let read = |set: &[(&str, &str)]| {
        let set: Vec<_> = set.iter().map(|(name, value)| (*name, (*value).to_owned())).collect();
        Settings::of(&environment(&set))
    };
    let plain = read(&[]).unwrap();
    assert_eq!(plain.unsigned, Path::new("/etc/agentcard/agent.json"));
    assert_eq!(plain.signed, Path::new("/app/.well-known/agent-card.json"));
    assert_eq!((plain.timeout, plain.config_map), (Duration::from_secs(30), None));
    let all = read(&[
        ("SPIFFE_ENDPOINT_SOCKET", "unix:///a/b.sock"),
        ("UNSIGNED_CARD_PATH", "/in.json"),
        ("AGENT_CARD_PATH", "/out/x.json"),
        ("SIGN_TIMEOUT", "1m30s"),
        ("AGENT_NAME", "weather"),
        ("POD_NAMESPACE", "team1"),
    ])
    .unwrap();
    let expected = Settings {
        socket: "/a/b.sock".into(),
        unsigned: "/in.json".into(),
        signed: "/out/x.json".into(),
        timeout: Duration::from_secs(90),
        config_map: Some(("team1".to_owned(), "weather-card-signed".to_owned())),
    };
    assert_eq!(all, expected);
    for half in ["AGENT_NAME", "POD_NAMESPACE"] {
        assert_eq!(read(&[(half, "x")]).unwrap().config_map, None, "case_143: {half} alone names nothing");
    }
    for (name, value) in [
        ("SIGN_TIMEOUT", "soon"),
        ("SIGN_TIMEOUT", "0s"),
        ("SIGN_TIMEOUT", "-3s"),
        ("SPIFFE_ENDPOINT_SOCKET", "tcp://127.0.0.1:1"),
    ] {
        let error = format!("{:#}", read(&[(name, value)]).unwrap_err());
        assert!(error.starts_with(name), "case_142: {error}");
    }
}

#[test]
fn case_142_what_is_wrong_is_one_line_of_json_and_exit_1() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name).display().to_string();
    std::fs::write(path("card"), r#"{"name": "x"}"#).unwrap();
    std::fs::write(path("torn"), "{").unwrap();
    let absent = path("absent");
    for (set, says) in [
        (vec![("SIGN_TIMEOUT", "soon".to_owned())], "SIGN_TIMEOUT"),
        (vec![("UNSIGNED_CARD_PATH", absent.clone())], "absent"),
        (
            vec![
                ("UNSIGNED_CARD_PATH", path("card")),
                ("SPIFFE_ENDPOINT_SOCKET", path("agent.sock")),
                ("SIGN_TIMEOUT", "1ms".to_owned()),
            ],
            "SPIFFE agent",
        ),
    ] {
        let (exit, lines) = ran(false, &set);
        assert_eq!(exit, Exit::Findings, "{says}");
        let errors: Vec<_> = lines.iter().filter(|line| line["level"] == "error").collect();
        assert_eq!(errors.len(), 1, "{lines:?}");
        assert!(errors[0]["error"].as_str().unwrap().contains(says), "{lines:?}");
        assert!(errors[0]["ts"].as_str().unwrap().ends_with('Z') && errors[0]["msg"].is_string());
    }
}

#[test]
fn nothing_to_sign_holds_nobody_up_where_that_is_said() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name).display().to_string();
    let set = [("UNSIGNED_CARD_PATH", path("absent")), ("AGENT_CARD_PATH", path("out"))];
    let (exit, lines) = ran(true, &set);
    assert_eq!((exit, lines.len()), (Exit::Ok, 1));
    assert_eq!(lines[0]["level"], "warn");
    assert!(lines[0]["msg"].as_str().unwrap().contains("no card to sign"), "{lines:?}");
    assert!(!Path::new(&path("out")).exists());
}

#[test]
fn the_file_is_written_whole_and_everybody_may_read_it() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a/b/agent-card.json");
    for text in ["a longer first text", "short"] {
        write(&path, text.as_bytes()).unwrap();
        assert_eq!(std::fs::read_to_string(&path).unwrap(), text);
        assert_eq!(std::fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o644);
    }
    let beside: Vec<_> =
        std::fs::read_dir(path.parent().unwrap()).unwrap().map(|one| one.unwrap().file_name()).collect();
    assert_eq!(beside, ["agent-card.json"]);
}
