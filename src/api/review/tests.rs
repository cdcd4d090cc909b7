//! Bytes in, request or fault out; answers as the API server reads them.

use super::*;

fn review(request: &str) -> String {
    format!(r#"{{"kind":"AdmissionReview","apiVersion":"admission.k8s.io/v1","request":{request}}}"#)
}

const MINIMAL: &str = r#"{"uid":"u-1","operation":"CREATE","object":{"a":[1,2]}}"#;

fn fault(body: &[u8]) -> BadReview {
    parse(body, Phase::Mutate).expect_err("a fault")
}

#[test]
fn a_review_is_borrowed_and_its_object_stays_as_sent() {
    let body = review(
        r#"{"uid":"u-1","kind":{"group":"","version":"v1","kind":"Pod"},"name":"p","namespace":"team1",
        "operation":"CREATE","userInfo":{"username":"x","extra":{"k":["v"]}},"object":{ "b" : 1,  "a":2 },
        "oldObject":null,"dryRun":true,"options":{"apiVersion":"meta.k8s.io/v1"},"subResource":"status"}"#,
    );
    let request = parse(body.as_bytes(), Phase::Validate).unwrap();
    assert_eq!(request.phase, Phase::Validate);
    assert_eq!(request.object.unwrap().get(), r#"{ "b" : 1,  "a":2 }"#);
    assert!(request.old_object.is_none());
    assert_eq!(request.dry_run, Some(true));
    assert_eq!(request.sub_resource.as_deref(), Some("status"));
    assert!(matches!(request.name, Some(Cow::Borrowed("p"))));
    assert!(matches!(request.namespace, Some(Cow::Borrowed("team1"))));
}

#[test]
fn a_delete_has_no_object() {
    let body = review(r#"{"uid":"u-1","operation":"DELETE","object":null,"oldObject":{"a":1}}"#);
    let request = parse(body.as_bytes(), Phase::Mutate).unwrap();
    assert!(request.object.is_none());
    assert_eq!(request.old_object.unwrap().get(), r#"{"a":1}"#);
}

#[test]
fn a1_bodies_that_are_no_review_are_faults_without_uid() {
    let utf16: Vec<u8> = review(MINIMAL).encode_utf16().flat_map(u16::to_le_bytes).collect();
    let bom = [b"\xef\xbb\xbf".as_slice(), review(MINIMAL).as_bytes()].concat();
    let nul = [review(MINIMAL).as_bytes(), b"\0".as_slice()].concat();
    let bodies: [&[u8]; 10] =
        [b"", b"null", b"[]", b"\"x\"", b"{", b"garbage", b"\0\0\0", &utf16, &bom, b"{\"kind\":\"AdmissionReview\"}"];
    for body in bodies {
        assert_eq!(fault(body).uid, None, "{}", String::from_utf8_lossy(body));
    }
    assert_eq!(fault(&nul).uid.as_deref(), Some("u-1"));
    assert_eq!(fault(b"").fault, Fault::Empty);
}

#[test]
fn a1_the_uid_is_known_wherever_the_body_breaks_off_after_it() {
    let body = review(MINIMAL);
    let after = body.find(r#""u-1""#).unwrap() + 5;
    for end in 1..body.len() {
        let expected = (end >= after).then_some("u-1");
        let bad = fault(&body.as_bytes()[..end]);
        assert_eq!(bad.uid.as_deref(), expected, "cut at {end}");
        assert!(matches!(bad.fault, Fault::Unreadable(_)));
    }
}

#[test]
fn a3_a_million_levels_are_passed_over_in_every_position() {
    const DEEP: usize = 1_000_000;
    let array = format!("{}{}", "[".repeat(DEEP), "]".repeat(DEEP));
    let object = format!("{}1{}", r#"{"a":"#.repeat(DEEP / 5), "}".repeat(DEEP / 5));
    for deep in [&array, &object] {
        for request in [
            format!(r#"{{"uid":"u-1","operation":"CREATE","object":{deep}}}"#),
            format!(r#"{{"uid":"u-1","operation":"CREATE","future":{deep}}}"#),
            format!(r#"{{"future":{deep},"uid":"u-1","operation":"CREATE"}}"#),
        ] {
            let body = review(&request);
            assert_eq!(parse(body.as_bytes(), Phase::Mutate).unwrap().uid, "u-1");
        }
        let known = review(&format!(r#"{{"uid":"u-1","name":{deep},"operation":"CREATE"}}"#));
        assert_eq!(fault(known.as_bytes()).uid.as_deref(), Some("u-1"));
        let unclosed = review(&format!(r#"{{"uid":"u-1","operation":"CREATE","object":{}"#, &deep[..DEEP / 2]));
        assert_eq!(fault(unclosed.as_bytes()).uid.as_deref(), Some("u-1"));
        assert_eq!(fault(deep.as_bytes()).uid, None);
    }
}

#[test]
fn an_api_version_of_another_type_does_not_hide_the_uid() {
    for version in ["null", "5", "[]", "{}", "true"] {
        let body = review(MINIMAL).replace(r#""admission.k8s.io/v1""#, version);
        assert!(body.contains(&format!("{version},")), "{body}");
        assert_eq!(super::uid(body.as_bytes()).as_deref(), Some("u-1"), "{version}");
        assert_eq!(fault(body.as_bytes()).uid.as_deref(), Some("u-1"), "{version}");
    }
}

#[test]
fn a_field_that_stands_twice_is_refused() {
    for twice in [
        r#"{"uid":"u-1","uid":"u-2","operation":"CREATE"}"#,
        r#"{"uid":"u-1","operation":"CREATE","operation":"DELETE"}"#,
        r#"{"uid":"u-1","operation":"CREATE","object":{},"object":{}}"#,
        r#"{"uid":"u-1","operation":"CREATE","kind":{"kind":"Pod","kind":"Job"}}"#,
    ] {
        let bad = fault(review(twice).as_bytes());
        assert!(bad.to_string().contains("duplicate field"), "{bad}");
        assert_eq!(bad.uid.as_deref(), Some("u-1"));
    }
    let unknown_twice = r#"{"uid":"u-1","operation":"CREATE","x":1,"x":2}"#;
    assert!(parse(review(unknown_twice).as_bytes(), Phase::Mutate).is_ok());
}

#[test]
fn a6_other_versions_and_kinds_are_clean_errors() {
    let beta = review(MINIMAL).replace("admission.k8s.io/v1", "admission.k8s.io/v1beta1");
    let bad = fault(beta.as_bytes());
    assert_eq!((bad.uid.as_deref(), bad.version), (Some("u-1"), "admission.k8s.io/v1beta1"));
    assert!(bad.to_string().contains("only admission.k8s.io/v1 is answered"), "{bad}");

    let later = review(MINIMAL).replace("admission.k8s.io/v1", "admission.k8s.io/v2");
    assert_eq!(fault(later.as_bytes()).version, API_VERSION);
    assert_eq!(fault(later.as_bytes()).fault, Fault::Version("admission.k8s.io/v2".to_owned()));

    let missing = format!(r#"{{"apiVersion":"{API_VERSION}","request":{MINIMAL}}}"#);
    assert_eq!(fault(missing.as_bytes()).fault, Fault::Kind("missing".to_owned()));
    let other = review(MINIMAL).replace("AdmissionReview", "ConversionReview");
    assert_eq!(fault(other.as_bytes()).uid.as_deref(), Some("u-1"));
    let empty = format!(r#"{{"apiVersion":"{API_VERSION}","kind":"AdmissionReview"}}"#);
    assert_eq!(fault(empty.as_bytes()).fault, Fault::NoRequest);
}

#[test]
fn messages_and_uids_do_not_grow_with_the_body() {
    let long = "x".repeat(1 << 20);
    let operation = review(&format!(r#"{{"uid":"u-1","operation":"{long}"}}"#));
    assert!(fault(operation.as_bytes()).to_string().len() < 512);
    let uid = review(&format!(r#"{{"uid":"{long}","operation":"CREATE"}}"#));
    assert_eq!(fault(uid.as_bytes()).fault, Fault::Uid);
    let empty = review(r#"{"uid":"","operation":"CREATE"}"#);
    assert_eq!(fault(empty.as_bytes()).fault, Fault::Uid);
}

fn answer<'a>(uid: &'a str, allowed: bool, code: u16, message: &'a str) -> Response<'a> {
    let status = Status { code, message };
    Response { version: API_VERSION, uid, allowed, status, patch: None, warnings: &[], audit: &[] }
}

fn decoded(response: &Response<'_>) -> serde_json::Value {
    serde_json::from_slice(&encode(response).unwrap()).unwrap()
}

#[test]
fn a_patch_goes_out_as_base64_and_is_the_list_that_was_given() {
    use base64::Engine;
    for size in 0..50_usize {
        let operations = vec![serde_json::json!({"op":"add","path":"/a","value":"x".repeat(size)}); size % 3 + 1];
        let mut response = answer("u-1", true, 200, "Injected");
        let patch = serde_json::to_vec(&operations).unwrap();
        let patch = Encoded::of(&patch);
        response.patch = Some(&patch);
        let out = decoded(&response);
        assert_eq!(out["apiVersion"], API_VERSION);
        assert_eq!(out["response"]["patchType"], "JSONPatch");
        let patch = out["response"]["patch"].as_str().unwrap();
        let patch = base64::engine::general_purpose::STANDARD.decode(patch).unwrap();
        assert_eq!(serde_json::from_slice::<Vec<serde_json::Value>>(&patch).unwrap(), operations);
    }
}

#[test]
fn a_refusal_has_code_reason_and_message() {
    let out = decoded(&answer("u-\"1\"", false, 409, "ServiceAccountPending: not yet"));
    let expected = serde_json::json!({
        "uid": "u-\"1\"", "allowed": false,
        "status": {"status":"Failure","code":409,"reason":"Conflict","message":"ServiceAccountPending: not yet"},
    });
    assert_eq!(out["response"], expected);
    let allowed = decoded(&answer("u", true, 200, "OptedOut"));
    assert_eq!(allowed["response"]["status"], serde_json::json!({"code":200,"message":"OptedOut"}));
}

#[test]
fn warnings_are_whole_until_the_api_server_would_cut_them() {
    let fitting = vec!["ä".repeat(2000), "b".repeat(2000)];
    let mut response = answer("u", true, 200, "x");
    response.warnings = &fitting;
    assert_eq!(decoded(&response)["response"]["warnings"], serde_json::json!(fitting));

    let many = vec!["ä".repeat(300); 40];
    response.warnings = &many;
    let out = decoded(&response);
    let shown = out["response"]["warnings"].as_array().unwrap();
    assert!(shown.iter().all(|text| text.as_str().unwrap().chars().count() <= WARNING_ITEM));
    assert!(shown.iter().map(|text| text.as_str().unwrap().chars().count()).sum::<usize>() <= 4096);
    let last = shown.last().unwrap().as_str().unwrap();
    assert!(last.starts_with("25 more") && last.contains("drawbridge explain -f"));
    const WARNING_ITEM: usize = 256;
}

#[test]
fn audit_annotations_are_a_map() {
    let mut response = answer("u", true, 200, "x");
    response.audit = &[("reason", "Injected"), ("mode", "waypoint")];
    let expected = serde_json::json!({"reason":"Injected","mode":"waypoint"});
    assert_eq!(decoded(&response)["response"]["auditAnnotations"], expected);
}
