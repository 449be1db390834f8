use swirl_model::data;

use super::*;
use crate::types::rest::request_line;

fn direct_of(operation: &str) -> Direct {
    let rest = operation.strip_prefix("rest:").unwrap();
    let (method, url) = rest.split_once(':').unwrap();
    let (server, path) = parts(url).unwrap();
    let names = path
        .split('{')
        .skip(1)
        .filter_map(|part| Some(part.split_once('}')?.0.to_owned()));
    Direct {
        id: operation.to_owned(),
        method: method_of(method).unwrap(),
        server: server.to_owned(),
        path: path.to_owned(),
        names: names.collect(),
        as_body: false,
    }
}

#[test]
fn arguments_may_be_the_body_whatever_their_names() {
    let direct = Direct {
        names: Vec::new(),
        as_body: true,
        ..direct_of("rest:POST:http://h/x")
    };
    for (arguments, expected) in [
        (data!({"body": "x", "z": 5}), r#"{"body":"x","z":5}"#),
        (data!({"body": "x"}), r#"{"body":"x"}"#),
        (
            data!({"QUERY_q": 1, "HEADER_h": 2}),
            r#"{"QUERY_q":1,"HEADER_h":2}"#,
        ),
        (data!([1]), "[1]"),
        (data!({}), "{}"),
        (Data::NULL, "{}"),
    ] {
        let (made, sent) = direct.request(&arguments).unwrap();
        let line = request_line(&made, &sent).unwrap();
        assert_eq!(line, format!("POST http://h/x {expected}"));
    }
}

#[test]
fn arguments_go_to_the_url_the_query_and_the_body() {
    for (operation, arguments, expected) in [
        (
            "rest:get:http://h/items/{id}",
            data!({"id": "a b", "n": 2}),
            "GET http://h/items/a%20b?n=2 ",
        ),
        ("rest:GET:http://h:8080", data!({}), "GET http://h:8080/ "),
        (
            "rest:get:http://h/x?a=1",
            data!({"b": 2}),
            "GET http://h/x?a=1&b=2 ",
        ),
        (
            "rest:post:http://h/x",
            data!({"a": 1, "QUERY_q": "z"}),
            r#"POST http://h/x?q=z {"a":1}"#,
        ),
        (
            "rest:put:http://h/x",
            data!({"body": [1]}),
            "PUT http://h/x [1]",
        ),
    ] {
        let (made, sent) = direct_of(operation).request(&arguments).unwrap();
        assert_eq!(request_line(&made, &sent).unwrap(), expected, "{operation}");
    }
}

#[test]
fn http_takes_everything_from_its_arguments() {
    let arguments =
        data!({"method": "post", "url": "http://h/x?a=1", "query": {"b": 2}, "body": {"c": 3}});
    let (made, sent) = Http::request(&arguments).unwrap();
    assert_eq!(
        request_line(&made, &sent).unwrap(),
        r#"POST http://h/x?a=1&b=2 {"c":3}"#
    );
    for (arguments, reason) in [
        (data!({}), "`url` is missing"),
        (
            data!({"url": "file:///etc/passwd"}),
            "must be an http or https URL",
        ),
        (
            data!({"url": "http://h", "method": "steal"}),
            "is not one of",
        ),
        (
            data!({"url": "http://h", "header": {}}),
            "no argument `header`",
        ),
    ] {
        let error = Http::request(&arguments).unwrap_err();
        assert!(error.message.contains(reason), "{}", error.message);
    }
}

#[test]
fn built_in_operations_are_recognised() {
    let found = |operation: &str, servers: &[&str]| {
        let function = Function {
            name: "f".into(),
            kind: swirl_model::workflow::FunctionKind::Custom("custom".to_owned()),
            operation: operation.to_owned(),
            place: String::new(),
            resource_auth: None,
            auth: None,
            metadata: data!({}),
            within: None,
        };
        let settings = crate::Settings {
            servers: crate::servers::Servers::parse(servers).unwrap(),
            ..crate::Settings::default()
        };
        let documents = Documents {
            resources: &[],
            settings: &settings,
        };
        find(&function, &documents)
    };
    let refused = |operation: &str| found(operation, &[]).and_then(Result::err);
    for operation in [
        "sysout",
        "sysout:INFO",
        "sysout:debug",
        "rest:get:http://h/x",
        "http",
    ] {
        assert!(
            found(operation, &[]).is_some_and(|found| found.is_ok()),
            "{operation}"
        );
    }
    assert!(found("script:python:x", &[]).is_none() && found("http://h/x", &[]).is_none());
    assert!(refused("sysout:LOUD").is_some_and(|why| why.reason.contains("INFO")));
    assert!(refused("rest:fetch:http://h").is_some());
    assert!(refused("rest:post:").is_some());
    // Only a path: whether it can be called depends on the operator's addresses.
    let unaddressed = |servers: &[&str]| {
        let compiled = found("rest:post:/path", servers).unwrap();
        let compiled = compiled.unwrap_or_else(|why| panic!("{}", why.reason));
        compiled.unaddressed().map(str::to_owned)
    };
    let reason = unaddressed(&[]).unwrap();
    assert!(
        reason.contains("--function-server f=http://host"),
        "{reason}"
    );
    for server in ["f=http://h:1", "rest:post:/path=http://h:1"] {
        assert_eq!(unaddressed(&[server]), None, "{server}");
    }
}

#[test]
fn a_message_of_sysout_is_one_line() {
    for (message, expected) in [
        ("caf\u{e9}\t7", "caf\u{e9}\t7"),
        ("a\nINFO b\r\n", "a\\nINFO b\\r\\n"),
        ("\u{1b}[31mred\u{2028}", "\\u{1b}[31mred\\u{2028}"),
    ] {
        assert_eq!(one_line(message), expected);
    }
}
