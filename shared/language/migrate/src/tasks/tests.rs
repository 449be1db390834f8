use swirl_documents::source::{Limits, parse};
use swirl_spec::resource::MapResources;

use super::*;

fn migrated(document: &str) -> Result<Migrated, Vec<String>> {
    let root = parse(document.as_bytes(), &Limits::default()).unwrap();
    let reading = reader::read_node(&root, &MapResources::default(), &Options::default());
    let workflow = reading
        .workflow
        .unwrap_or_else(|| panic!("{:?}", reading.diagnostics));
    let done = migrate_to_tasks(
        &workflow,
        &root,
        Format::Yaml,
        &Target::default(),
        Assume::default(),
    );
    done.map_err(|obstacles| {
        let described = obstacles.into_iter().map(|obstacle| {
            let state = obstacle.state.unwrap_or_default();
            format!("{} {state}: {}", obstacle.place.line, obstacle.message)
        });
        described.collect()
    })
}

const OF_0_8: &str = "\
id: order
version: 1.0.0
specVersion: '0.8'
constants: {limit: 100}
functions: [{name: price, operation: 'shop.json#price'}, {name: sum, type: expression, operation: '.a + .b'}]
retries: [{name: often, delay: PT2S, maxAttempts: 3}]
errors: [{name: Gone, code: '404'}]
states:
- name: Begin
  type: inject
  data: {a: 1}
  transition: Ask
- name: Ask
  type: operation
  actions:
  - {functionRef: {refName: price, arguments: {id: '${ .id }'}}, retryRef: often, actionDataFilter: {toStateData: .price}}
  onErrors: [{errorRef: Gone, transition: Never}]
  transition: Choose
- name: Choose
  type: switch
  dataConditions: [{condition: '.price > $CONST.limit', transition: Wait}]
  defaultCondition: {end: true}
- {name: Wait, type: sleep, duration: PT1H, end: true}
- {name: Never, type: inject, data: {gone: true}, end: true}
";

#[test]
fn a_document_of_0_8() {
    insta::assert_snapshot!(migrated(OF_0_8).unwrap().text);
}

/// A definition of 0.8 with one call.
fn of_a_call(operation: &str, arguments: &str, auth: &str) -> String {
    format!(
        "id: c\nversion: 1.0.0\nspecVersion: '0.8'\nauth: [{{name: a, scheme: oauth2, properties: {{authority: 'https://idp.example.com/', {auth}}}}}]\nfunctions: [{{name: f, type: custom, operation: '{operation}', authRef: a}}]\nstates:\n- {{name: A, type: operation, actions: [{{functionRef: {{refName: f, arguments: {arguments}}}}}], end: true}}\n"
    )
}

const CLIENT: &str = "grantType: clientCredentials, clientId: c, clientSecret: s";

fn lines(document: &str, with: &str) -> Vec<String> {
    let done = migrated(document).unwrap().text;
    let found = done.lines().filter(|line| line.contains(with));
    found.map(|line| line.trim().to_owned()).collect()
}

#[test]
fn a_window_is_refused_with_events_too() {
    let document = "{id: w, name: w, version: 1.0.0, schemaVersion: '0.5', events: [{name: a, type: t, source: s}], \
        states: [{name: A, type: event, start: {kind: scheduled, schedule: {interval: '2024-01-01T01:00:00Z/PT1H', directInvoke: allow}}, \
        onEvents: [{eventRefs: [a], actions: []}], end: {kind: default}}]}";
    let refused = migrated(document).unwrap_err();
    assert!(
        refused.len() == 1 && refused[0].contains("only within a window of time"),
        "{refused:?}"
    );
}

#[test]
fn arguments_in_a_path_are_encoded() {
    let operation = "rest:GET:https://a.example.com/items/{id}/{part}";
    for (arguments, uri) in [
        (
            "{id: 'a/b?c=1', part: 7, page: 2}",
            "https://a.example.com/items/a%2Fb%3Fc%3D1/7",
        ),
        (
            "{id: '${ .id }', part: 'x-${ .n }'}",
            "https://a.example.com/items/${ .id | tostring | @uri }/${ \"x-\" + (.n | tostring) | tostring | @uri }",
        ),
    ] {
        let found = lines(&of_a_call(operation, arguments, CLIENT), "uri:");
        assert!(found.len() == 1 && found[0].contains(uri), "{found:?}");
    }
    let refused = migrated(&of_a_call(operation, "{id: [1], part: b}", CLIENT));
    assert!(refused.unwrap_err()[0].contains("is not a string"));
}

#[test]
fn arguments_that_dsl_1_0_has_no_place_for_are_reported() {
    for (operation, arguments, reason) in [
        (
            "rest:POST:https://a.example.com/p",
            "{body: text, z: 1}",
            "further arguments",
        ),
        (
            "rest:GET:https://a.example.com/p",
            "{q: {a: 1}}",
            "object in the query",
        ),
        (
            "rest:POST:https://a.example.com/p",
            "{QUERY_q: {a: '${ .a }'}}",
            "object in the query",
        ),
    ] {
        let refused = migrated(&of_a_call(operation, arguments, CLIENT)).unwrap_err();
        assert!(
            refused.len() == 1 && refused[0].contains(reason),
            "{refused:?}"
        );
    }
    // Without a body it is one argument among others.
    let query = of_a_call(
        "rest:GET:https://a.example.com/p",
        "{body: text, z: 1}",
        CLIENT,
    );
    assert_eq!(lines(&query, "body:"), ["body: text"]);
    assert_eq!(lines(&query, "query:").len(), 1);
}

#[test]
fn redirects_within_an_origin_are_followed_as_before() {
    for document in [
        OF_0_8.to_owned(),
        of_a_call("rest:GET:https://a.example.com/p", "{}", CLIENT),
    ] {
        assert_eq!(
            lines(&document, "redirect: true").len(),
            2,
            "the property and the note"
        );
    }
}

#[test]
fn tokens_are_asked_for_as_before_or_the_difference_is_reported() {
    let operation = "rest:GET:https://a.example.com/p";
    let of = |auth: &str| of_a_call(operation, "{}", &format!("{CLIENT}, {auth}"));
    let one = of("scopes: [a, b], audiences: [x]");
    assert_eq!(
        lines(&one, "authentication: client"),
        ["authentication: client_secret_basic"]
    );
    assert_eq!(lines(&one, "- x"), ["- x"]);
    for (auth, reason) in [
        ("audiences: [x, y]", "several audiences"),
        ("requestedSubject: s", "'requestedSubject'"),
        ("requestedIssuer: i", "'requestedIssuer'"),
    ] {
        let refused = migrated(&of(auth)).unwrap_err();
        assert!(
            refused.len() == 1 && refused[0].contains(reason),
            "{refused:?}"
        );
    }
}
