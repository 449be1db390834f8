use swirl_documents::codes;
use swirl_model::workflow::Language;

use super::other_language;
use crate::build::parts::testing::{findings, in_actions, of_actions, workflow};
use crate::options::Options;
use crate::reader::read;
use crate::resource::MapResources;

#[test]
fn errors_in_expressions() {
    let at = "/states/0/actions/0";
    for (action, expected) in [
        (
            "condition: '${ .a', functionRef: f",
            format!("error unclosed-expression {at}/condition 7"),
        ),
        (
            "condition: '${ .a } x', functionRef: f",
            format!("error bad-expression {at}/condition 7"),
        ),
        (
            "condition: '${ }', functionRef: f",
            format!("error bad-expression {at}/condition 7"),
        ),
        (
            "condition: '.a |', functionRef: f",
            format!("error bad-expression {at}/condition 7"),
        ),
        (
            "condition: '$nobody', functionRef: f",
            format!("error bad-expression {at}/condition 7"),
        ),
        (
            "condition: '$args', functionRef: f",
            format!("error bad-expression {at}/condition 7"),
        ),
        ("condition: '${ fn:e }', functionRef: f", String::new()),
        ("condition: 'fn:e', functionRef: f", String::new()),
        (
            "condition: '${ fn:g }', functionRef: f",
            format!("error unknown-function {at}/condition 7"),
        ),
        (
            "condition: '${ fn:e == 1 }', functionRef: f",
            format!("error unknown-function {at}/condition 7"),
        ),
        (
            "condition: '${ fn:f }', functionRef: f",
            format!("error not-an-expression-function {at}/condition 7"),
        ),
        (
            "condition: '$CONST.rate == $WORKFLOW.caller', functionRef: f",
            format!(
                "warning unknown-constant {at}/condition 7\nwarning unknown-context {at}/condition 7"
            ),
        ),
        (
            "condition: '$WORKFLOW.key == 1', functionRef: f",
            format!("warning unknown-context {at}/condition 7"),
        ),
        (
            "condition: '$SECRETS.X == 1', functionRef: f",
            format!("error unknown-secret {at}/condition 7"),
        ),
        (
            "functionRef: f, actionDataFilter: {results: '${ $SECRETS.X }'}",
            format!(
                "warning secret-in-data {at}/actionDataFilter/results 7\nerror unknown-secret {at}/actionDataFilter/results 7"
            ),
        ),
        (
            "functionRef: f, actionDataFilter: {toStateData: '.a[0].b'}",
            String::new(),
        ),
        (
            "functionRef: f, actionDataFilter: {toStateData: '.a, .b'}",
            format!("error bad-path {at}/actionDataFilter/toStateData 7"),
        ),
        (
            "functionRef: f, actionDataFilter: {useResults: false, results: .a}",
            format!("warning ignored-property {at}/actionDataFilter/results 7"),
        ),
        (
            "functionRef: {refName: f, arguments: {a: ['${ .x ', '${ $SECRETS }']}}",
            format!(
                "error unclosed-expression {at}/functionRef/arguments/a/0 7\nerror secret-not-allowed {at}/functionRef/arguments/a/1 7"
            ),
        ),
    ] {
        assert_eq!(of_actions(&format!("{{{action}}}")), expected, "{action}");
    }
}

#[test]
fn expressions_of_another_language_get_a_hint() {
    for (text, hint) in [
        ("$.a[?(@.b > 1)]", "JSONPath"),
        (".a[?(@.b > 1)]", "JSONPath"),
        ("$", "JSONPath"),
        ("{{ $.a }}", "'{{ }}' is of edition 0.5"),
        ("fn(e)", "'fn:NAME'"),
    ] {
        let body = in_actions(&format!("{{functionRef: f, condition: '{text}'}}"));
        let document = format!("id: t\nversion: 1.0.0\nspecVersion: '0.8'\n{body}");
        let resources = MapResources::default();
        let reading = read(document.as_bytes(), &resources, &Options::default());
        let hints: Vec<&str> = reading
            .diagnostics
            .iter()
            .filter(|finding| finding.code == codes::BAD_EXPRESSION)
            .filter_map(|finding| finding.hint.as_deref())
            .collect();
        assert!(
            matches!(hints[..], [one] if one.contains(hint)),
            "{text}: {hints:?}"
        );
    }
    assert_eq!(other_language(Language::Jq, ".a |"), None);
    assert_eq!(other_language(Language::JsonPath, "$.a"), None);
}

#[test]
fn equal_texts_share_an_expression() {
    let workflow = workflow(&in_actions(
        "{functionRef: f, condition: .a}, {functionRef: f, condition: '${ .a }'}",
    ));
    assert_eq!(workflow.expressions.len(), 1);
    assert_eq!(
        workflow.expressions[0].pointer,
        "/states/0/actions/0/condition"
    );
}

#[test]
fn iteration_parameters_are_visible_to_actions_only() {
    let body = |condition: &str, output: &str| {
        findings(&format!(
            "functions: [{{name: e, type: expression, operation: '$order.id'}}]\nstates:\n- {{name: A, type: foreach, inputCollection: .a, iterationParam: order, stateDataFilter: {{output: '{output}'}}, actions: [{{functionRef: e, condition: '{condition}'}}], end: true}}\n"
        ))
    };
    assert_eq!(body("$order.ok", "."), "");
    assert_eq!(body("fn:e", "."), "");
    assert_eq!(
        body("$item", "."),
        "error bad-expression /states/0/actions/0/condition 6"
    );
    assert_eq!(
        body(".", "fn:e"),
        "error bad-expression /states/0/stateDataFilter/output 6"
    );
}
