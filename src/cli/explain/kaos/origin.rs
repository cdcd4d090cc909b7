//! Where a variable of a container comes from, in the words of whoever wrote the object.
//!
//! In: the field of today that a variable was made of, the object, the old spellings that it uses. Out: the field as it was written, or that
//! it is built in; and the text of a variable as it may be printed.

use serde_json::Value;

use crate::api::kaos_tools::read::{Alias, OldSpelling};
use crate::domain::userinfo::without_userinfo;

/// Longest value of a variable that is printed, in characters.
const VALUE: usize = 120;
/// Words of names of variables whose literal may be a credential, in the singular.
const WORDS: [&str; 4] = ["KEY", "CRED", "PWD", "HEADER"];
/// Words that say so at the end of a name alone: `BASIC_AUTH`, and not `AUTH_MODE`.
const LAST_WORDS: [&str; 1] = ["AUTH"];
/// How a word may end that says the same, with or without another one before it: `PGPASSWORD`. `KEY` alone ends words that say nothing: `MONKEY`.
const ENDINGS: [&str; 19] = [
    "TOKEN",
    "SECRET",
    "PASS",
    "PASSWORD",
    "PASSWD",
    "PASSPHRASE",
    "PASSCODE",
    "CREDENTIAL",
    "AUTHORIZATION",
    "APIKEY",
    "ACCESSKEY",
    "SECRETKEY",
    "PRIVATEKEY",
    "SIGNINGKEY",
    "ENCRYPTIONKEY",
    "MASTERKEY",
    "AUTHKEY",
    "ACCOUNTKEY",
    "COOKIE",
];
/// Words that end so and are something else.
const HARMLESS: [&str; 3] = ["BYPASS", "COMPASS", "ENCOMPASS"];

/// The field as it was written: `from` is the field of today, or already a sentence.
pub(super) fn field(from: &str, object: &Value, old: &[OldSpelling]) -> String {
    let Some(path) = from.strip_prefix("spec.") else { return from.to_owned() };
    let pointer = format!("/spec/{}", path.replace('.', "/"));
    if path.contains('[') || object.pointer(&pointer).is_some_and(|value| !value.is_null()) {
        return from.to_owned();
    }
    let used = |alias: Alias| old.iter().find(|one| one.alias == alias).map(|one| one.path.clone());
    let first = |aliases: &[Alias]| aliases.iter().find_map(|alias| used(*alias));
    let written = match path {
        "model" => first(&[Alias::ModelVariable]),
        "config.reasoningLoopMaxSteps" => first(&[Alias::LoopMaxSteps]),
        "params" => first(&[Alias::ToolsText, Alias::ToolsString, Alias::ToolsSecret]),
        // A switch of the loop is a variable today.
        "config.agenticLoop.enableTools" | "config.agenticLoop.enableDelegation" => {
            first(&[Alias::AgentEnv]).or_else(|| Some("spec.container.env".to_owned()))
        }
        _ => None,
    };
    written.unwrap_or_else(|| format!("built in, since {from} is not set"))
}

/// The value of an entry of an environment, for people.
pub(super) fn value(entry: &Value) -> String {
    let name = entry["name"].as_str().unwrap_or_default();
    if let Some(from) = entry.get("valueFrom").filter(|from| !from.is_null()) {
        let text = |at: &Value, key: &str| at[key].as_str().unwrap_or_default().to_owned();
        for (source, words) in [("secretKeyRef", "Secret"), ("configMapKeyRef", "ConfigMap")] {
            if let Some(at) = from.get(source) {
                return format!("(key {} of {words} {})", text(at, "key"), text(at, "name"));
            }
        }
        return match from.pointer("/fieldRef/fieldPath").and_then(Value::as_str) {
            Some(path) => format!("(field {path} of the Pod)"),
            None => "(read from elsewhere)".to_owned(),
        };
    }
    let text = entry.get("value").and_then(Value::as_str).unwrap_or_default();
    if may_be_credential(name, text) && !text.is_empty() {
        return format!("(a literal of {} characters, which is not shown)", text.chars().count());
    }
    let text = without_pairs(&without_userinfo(text));
    let length = text.chars().count();
    match () {
        () if length > VALUE => {
            let head: String = text.chars().take(VALUE).collect();
            format!("{head:?}... ({length} characters)")
        }
        () if text.chars().any(char::is_control) => format!("{text:?}"),
        () => text,
    }
}

/// The text less the values of pairs in it whose key says that they are credentials: `?password=x`, `Server=h;Password=x`.
fn without_pairs(text: &str) -> String {
    let ends_pair = |letter: char| letter.is_whitespace() || matches!(letter, '?' | '&' | ';' | ',' | '"');
    let pieces = text.split_inclusive(ends_pair).map(|piece| {
        let (pair, end) = piece.split_at(piece.trim_end_matches(ends_pair).len());
        match pair.split_once('=') {
            Some((key, value)) if !value.is_empty() && may_be_credential(key, value) => format!("{key}=…{end}"),
            _ => piece.to_owned(),
        }
    });
    pieces.collect()
}

/// Whether the name says that the text is a credential.
fn may_be_credential(name: &str, text: &str) -> bool {
    // The shell's folder.
    if name == "PWD" {
        return false;
    }
    let is_count = text.bytes().all(|byte| byte.is_ascii_digit());
    // Both as it is divided by signs and as it is by capitals: `API_KEY`, `apiKey`, `APIKey`.
    [name, &by_capitals(name)].into_iter().any(|name| {
        let mut words = name.split(|letter: char| !letter.is_alphanumeric());
        let last = words.clone().next_back().unwrap_or_default().to_ascii_uppercase();
        LAST_WORDS.contains(&&*last)
            || words.any(|word| {
                let word = word.trim_end_matches(|letter: char| letter.is_ascii_digit()).to_ascii_uppercase();
                // A number of tokens is how many of them a model may write: `MAX_TOKENS`.
                !(is_count && word == "TOKENS") && says_credential(&word)
            })
    })
}

/// Whether a word in capitals says so, in the singular or the plural.
fn says_credential(word: &str) -> bool {
    // `PASS` ends like a plural and is none.
    [word, word.strip_suffix('S').unwrap_or(word)].into_iter().any(|word| {
        WORDS.contains(&word) || (!HARMLESS.contains(&word) && ENDINGS.iter().any(|ending| word.ends_with(ending)))
    })
}

/// The name with a sign ahead of each word that begins with a capital.
fn by_capitals(name: &str) -> String {
    let letters: Vec<char> = name.chars().collect();
    let mut divided = String::with_capacity(name.len());
    for (place, letter) in letters.iter().enumerate() {
        let follows_small = place.checked_sub(1).is_some_and(|before| !letters[before].is_uppercase());
        let leads_small = letters.get(place + 1).is_some_and(|after| after.is_lowercase());
        if letter.is_uppercase() && (follows_small || leads_small) {
            divided.push('_');
        }
        divided.push(*letter);
    }
    divided
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_credential_is_never_printed_and_references_are_named() {
        for (entry, shown) in [
            (json!({"name": "PROXY_API_KEY", "value": "sk-1"}), "(a literal of 4 characters, which is not shown)"),
            (json!({"name": "my-token", "value": "t"}), "(a literal of 1 characters, which is not shown)"),
            (json!({"name": "MONKEY", "value": "t"}), "t"),
            (json!({"name": "K", "valueFrom": {"secretKeyRef": {"name": "s", "key": "k"}}}), "(key k of Secret s)"),
            (
                json!({"name": "K", "valueFrom": {"fieldRef": {"fieldPath": "status.podIP"}}}),
                "(field status.podIP of the Pod)",
            ),
            (json!({"name": "T", "value": "a\nb"}), "\"a\\nb\""),
        ] {
            assert_eq!(value(&entry), shown);
        }
        assert!(value(&json!({"name": "T", "value": "x".repeat(1000)})).ends_with("... (1000 characters)"));
    }

    #[test]
    fn a_credential_is_known_however_its_name_is_written_and_addresses_lose_theirs() {
        for name in [
            "OPENAI_APIKEY",
            "openai_apikeys",
            "DB_PASS",
            "DBPASS",
            "API_KEYS",
            "API_KEY2",
            "apiKey",
            "APIKey",
            "PGPASSWORD",
            "MYSQL_PWD",
            "MY_PASSPHRASE",
            "GITHUB_TOKENS",
            "authToken",
            "CLIENT_SECRETS",
            "AWS_CREDENTIALS",
            "spring.datasource.password",
            "OTEL_EXPORTER_OTLP_HEADERS",
            "BASIC_AUTH",
            "SESSION_COOKIE",
        ] {
            let said = value(&json!({"name": name, "value": "s3cr3t"}));
            assert_eq!(said, "(a literal of 6 characters, which is not shown)", "{name}");
        }
        for name in ["MONKEYS", "BYPASS", "KEYCLOAK_URL", "TOKENIZERS_PARALLELISM", "PWD", "PASSES", "secretary"] {
            assert_eq!(value(&json!({"name": name, "value": "t"})), "t", "{name}");
        }
        assert_eq!(value(&json!({"name": "MAX_TOKENS", "value": "4096"})), "4096");
        assert_eq!(value(&json!({"name": "AUTH_MODE", "value": "none"})), "none");
        for (text, shown) in [
            ("postgres://u:secret@h/db", "postgres://…@h/db"),
            ("https://user:S@h/v1", "https://…@h/v1"),
            ("postgres://h/db?sslmode=off&password=s&x=1", "postgres://h/db?sslmode=off&password=…&x=1"),
            ("Server=h;Password=s", "Server=h;Password=…"),
            ("host=h password=s\nport=1 token=", "\"host=h password=…\\nport=1 token=\""),
            ("https://h/v1?max_tokens=5", "https://h/v1?max_tokens=5"),
            ("http://modelapi-llm.shop.svc.cluster.local:8000", "http://modelapi-llm.shop.svc.cluster.local:8000"),
        ] {
            assert_eq!(value(&json!({"name": "ADDRESS", "value": text})), shown);
        }
        let long = format!("{} redis://u:hidden@h", "x".repeat(200));
        assert!(!value(&json!({"name": "T", "value": long})).contains("hidden"));
    }

    #[test]
    fn a_field_is_named_as_it_was_written() {
        let object = json!({"spec": {"model": "x", "config": {}}});
        let old = |alias, path: &str| OldSpelling { alias, path: path.to_owned() };
        assert_eq!(field("spec.model", &object, &[]), "spec.model");
        assert_eq!(field("kaos.logLevel of the platform file", &object, &[]), "kaos.logLevel of the platform file");
        assert_eq!(field("spec.container.env[2]", &object, &[]), "spec.container.env[2]");
        let none = json!({"spec": {}});
        let written = [old(Alias::ModelVariable, "spec.config.env[0]")];
        assert_eq!(field("spec.model", &none, &written), "spec.config.env[0]");
        let unset = field("spec.config.reasoningLoopMaxSteps", &object, &[]);
        assert_eq!(unset, "built in, since spec.config.reasoningLoopMaxSteps is not set");
        let text = [old(Alias::ToolsString, "spec.config.tools.fromString")];
        assert_eq!(field("spec.params", &none, &text), "spec.config.tools.fromString");
    }
}
