//! The file as a whole; single keys have their table in `keys`.

#![allow(clippy::unwrap_used, reason = "a test says what is wrong by panicking")]

use super::Platform;

fn refused(text: &str) -> String {
    Platform::parse(text, "config.yaml").unwrap_err().to_string()
}

#[test]
fn an_empty_file_is_the_built_in_configuration() {
    for text in ["", "{}", "# nothing\n", "~", "images:\nproxy: {}\n", "\u{feff}"] {
        assert_eq!(Platform::parse(text, "f").unwrap(), Platform::built_in(), "{text:?}");
    }
}

#[test]
fn case_102_ports_out_of_range_are_refused_with_line_and_field() {
    for port in ["80", "70000", "0", "-1", "1023", "65536", "15123.5"] {
        let text = refused(&format!("images: {{}}\nproxy:\n  port: {port}\n"));
        assert!(text.starts_with("config.yaml:3: proxy.port: a port from 1024 to 65535 is expected"), "{text}");
    }
    assert!(refused("proxy: {port: '15123'}").contains("without quotes"));
}
