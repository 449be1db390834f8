use swirl_model::workflow::{Next, StateKind, Workflow};

use crate::build::parts::testing::show;
use crate::options::Options;
use crate::reader::{self, Reading};
use crate::resource::MapResources;

const HEAD: &str = "document: {dsl: 1.0.3, namespace: test, name: w, version: 1.0.0}\n";

fn reading(body: &str) -> Reading {
    let text = format!("{HEAD}{body}");
    reader::read(
        text.as_bytes(),
        &MapResources::default(),
        &Options::default(),
    )
}

fn findings(body: &str) -> String {
    show(&reading(body))
}

fn workflow(body: &str) -> Workflow {
    let reading = reading(body);
    let shown = show(&reading);
    reading.workflow.unwrap_or_else(|| panic!("{shown}"))
}

#[test]
fn a_list_of_tasks_is_a_flow() {
    let found =
        workflow("do: [{a: {set: {x: 1}}}, {b: {do: [{c: {wait: {seconds: 1}}}], then: exit}}]\n");
    assert_eq!(found.id, "test.w");
    assert_eq!(found.flows.len(), 2);
    let names: Vec<&str> = found.states.iter().map(|state| &*state.name).collect();
    assert_eq!(names, ["a", "b", "c"]);
    assert_eq!(found.states[2].pointer, "/do/1/b/do/0/c");
    assert!(matches!(found.states[0].next, Some(Next::Transition(_))));
    assert!(matches!(found.states[1].next, Some(Next::Leave)));
    assert!(matches!(found.states[1].kind, StateKind::Do(_)));
}

#[test]
fn mistakes_are_reported_at_their_place() {
    for (body, expected) in [
        (
            "do: [{a: {set: {x: 1}, then: b}}]",
            "error unknown-state /do/0/a/then 2",
        ),
        (
            "do: [{a: {sett: {x: 1}}}]",
            "error unknown-property /do/0/a/sett 2",
        ),
        ("do: [{a: {then: end}}]", "error missing-property /do/0/a 2"),
        (
            "do: [{a: {set: {x: 1}, call: http}}]",
            "error exclusive-properties /do/0/a 2",
        ),
        (
            "do: [{set: {x: 1}, then: end}]",
            "error task-without-name /do/0 2",
        ),
        (
            "do: [{a: {set: {x: '${ $output }'}}}]",
            "error bad-expression /do/0/a/set/x 2",
        ),
        (
            "do: [{a: {set: {x: 1}, input: {from: '$input'}}}]",
            "error bad-expression /do/0/a/input/from 2",
        ),
        (
            "do: [{a: {wait: {second: 1}}}]",
            "error unknown-property /do/0/a/wait/second 2",
        ),
        (
            "do: [{a: {wait: soon}}]",
            "error bad-duration /do/0/a/wait 2",
        ),
        (
            "do: [{a: {raise: {error: gone}}}]",
            "error unknown-reference /do/0/a/raise/error 2",
        ),
        (
            "do: [{a: {raise: {error: {type: 't'}}}}]",
            "error missing-property /do/0/a/raise/error 2",
        ),
        (
            "do: [{a: {call: grpc, with: {proto: {endpoint: p}, method: m}}}]",
            "error missing-property /do/0/a/with 2",
        ),
        (
            "do: [{a: {listen: {to: {any: []}}}}]",
            "warning any-event /do/0/a/listen/to/any 2",
        ),
        (
            "do: [{a: {call: http, with: {method: get}}}]",
            "error missing-property /do/0/a/with 2",
        ),
        (
            "do: [{a: {switch: [{b: {when: .x}}]}}]",
            "error missing-property /do/0/a/switch/0/b 2",
        ),
        (
            "do: [{a: {set: {x: .y}}}]",
            "warning expression-not-marked /do/0/a/set/x 2",
        ),
        (
            "do: [{a: {set: {x: 1}, then: c}}, {b: {set: {x: 1}}}, {c: {set: {x: 1}}}]",
            "warning unreachable-state /do/1/b 2",
        ),
        (
            "do: [{a: {set: {x: 1}, then: c}}, {b: {set: {x: 1}, if: .x, then: a}}, {c: {set: {x: 1}, then: b}}]",
            "",
        ),
        (
            "do: [{a: {fork: {branches: [{b: {set: {x: 1}, then: c}}, {c: {set: {x: 1}}}]}}}]",
            "error unknown-state /do/0/a/fork/branches/0/b/then 2",
        ),
        (
            "use: {secrets: [s]}\ndo: [{a: {for: {in: '${ [$secrets.s] }'}, do: [{b: {set: {x: '${ $item }'}}}]}}]",
            "warning secret-in-data /do/0/a/for/in 3",
        ),
        (
            "use: {secrets: [s]}\ndo: [{a: {set: {x: '${ $secrets.t }'}}}]",
            "warning secret-in-data /do/0/a/set/x 3\nerror unknown-secret /do/0/a/set/x 3",
        ),
        (
            "do: []\nevaluate: {language: javascript}",
            "error expression-language /evaluate/language 3",
        ),
    ] {
        assert_eq!(findings(&format!("{body}\n")), expected, "{body}");
    }
}

#[test]
fn the_document_names_the_workflow() {
    let of = |document: &str| {
        let text = format!("document: {{{document}}}\ndo: []\n");
        show(&reader::read(
            text.as_bytes(),
            &MapResources::default(),
            &Options::default(),
        ))
    };
    for (document, expected) in [
        (
            "dsl: 1.0.0-alpha5, namespace: a, name: b, version: 1.0.0",
            "",
        ),
        (
            "dsl: 1.0.0-alpha1, namespace: a, name: b, version: 1.0.0",
            "error edition-not-supported /document/dsl 1",
        ),
        (
            "dsl: 1.1.0, namespace: a, name: b, version: 1.0.0",
            "error edition-not-supported /document/dsl 1",
        ),
        (
            "dsl: 1.0.3, name: b, version: 1.0.0",
            "error missing-property /document 1",
        ),
        (
            "dsl: 1.0.3, namespace: a, name: b.c, version: 1.0.0",
            "error bad-name /document/name 1",
        ),
        (
            "dsl: 1.0.3, namespace: a, name: b, version: '1'",
            "error version-not-semver /document/version 1",
        ),
        (
            "dsl: 1.0.3, namespace: a, name: b, version: 1.0.0, taskQueue: q",
            "warning additional-property /document/taskQueue 1",
        ),
    ] {
        assert_eq!(of(document), expected, "{document}");
    }
}

#[test]
fn own_metadata_is_in_the_documents_metadata() {
    let text = "document: {dsl: 1.0.3, namespace: a, name: b, version: 1.0.0, metadata: {team: x, swirl: {search: \
        {n: {value: '${ $context.n }', type: number}}, retention: {completed: P1D}}}}\ndo: []\n";
    let reading = reader::read(
        text.as_bytes(),
        &MapResources::default(),
        &Options::default(),
    );
    let shown = show(&reading);
    let found = reading.workflow.unwrap_or_else(|| panic!("{shown}"));
    assert_eq!(found.search.len(), 1);
    assert_eq!(found.retention.completed, Some(86_400_000));
    assert_eq!(found.metadata.to_string(), "{\"team\":\"x\"}");
}

#[test]
fn a_call_has_its_own_copy_of_a_function() {
    let found = workflow(
        "use: {functions: {f: {do: [{x: {set: {n: 1}}}]}, unused: {set: {x: 1}}}}\ndo: [{a: {call: f}}, {b: {call: f}}]\n",
    );
    let places: Vec<&str> = found.states.iter().map(|state| &*state.pointer).collect();
    let (a, b) = ("/do/0/a", "/do/1/b");
    assert_eq!(places, [a, b, a, a, b, b]);
    let inner = found.states[3].task.as_ref().unwrap();
    assert_eq!(inner.reference.as_deref(), Some("/use/functions/f/do/0/x"));
    assert!(inner.is_inner);
}

#[test]
fn functions_are_counted() {
    // Each function calls the next one twice.
    let mut body = String::from("use:\n  functions:\n    f30: {set: {x: 1}}\n");
    for n in 0..30 {
        let next = n + 1;
        body.push_str(&format!(
            "    f{n}: {{do: [{{a: {{call: f{next}}}}}, {{b: {{call: f{next}}}}}]}}\n"
        ));
    }
    body.push_str("do: [{a: {call: f0}}]\n");
    let shown = findings(&body);
    assert!(shown.contains("error too-deep"), "{shown}");
}

#[test]
fn loose_texts_are_expressions_if_they_can_be() {
    let found = workflow(
        "evaluate: {mode: loose}\ndo: [{a: {set: {x: .y, z: plain text, k: '${ .u }'}}}]\n",
    );
    let StateKind::Set(template) = &found.states[0].kind else {
        panic!()
    };
    let shown = format!("{template:?}");
    assert!(shown.contains("Loose(ExprId(0), \".y\")"), "{shown}");
    assert!(shown.contains("plain text"), "{shown}");
    assert_eq!(found.expressions.len(), 2);
}

#[test]
fn a_default_leaves_no_other_way() {
    let warned = |body: &str| {
        let shown = findings(body);
        let all = shown.lines().filter(|it| it.contains("unreachable-state"));
        all.map(|it| it.split_whitespace().nth(2).unwrap().to_owned())
            .collect::<Vec<_>>()
    };
    let cases = "a: {switch: [{one: {when: .x, then: end}}, {other: {then: c}}]";
    let after = "{b: {set: 1x}}, {c: {set: 2x}}]\n";
    assert_eq!(warned(&format!("do: [{{{cases}}}}}, {after}")), ["/do/1/b"]);
    // Its own way is never taken either.
    let then = format!("do: [{{{cases}, then: b}}}}, {after}");
    assert_eq!(warned(&then), ["/do/1/b"]);
    // It may be skipped, or no case may hold.
    let skipped = format!("do: [{{{cases}, if: .y}}}}, {after}");
    assert_eq!(warned(&skipped), [""; 0]);
    let without =
        "do: [{a: {switch: [{one: {when: .x, then: c}}]}}, {b: {set: 1x}}, {c: {set: 2x}}]\n";
    assert_eq!(warned(without), [""; 0]);
    let goes_on = "do: [{a: {switch: [{one: {then: continue}}]}}, {b: {set: 1x}}]\n";
    assert_eq!(warned(goes_on), [""; 0]);
}

#[test]
fn tasks_nest_up_to_the_limit_of_documents() {
    let nested = |count: usize| {
        let (open, close) = ("do: [{a: {".repeat(count), "}}]".repeat(count));
        findings(&format!("{open}set: {{x: 1}}{close}\n"))
    };
    assert_eq!(nested(20), "");
    let shown = nested(22);
    let place = "/do/0/a".repeat(21);
    let expected = format!("error too-deep {place}/do 2");
    assert!(shown.starts_with(&expected), "{shown}");
}

/// The hints and messages for a document, one a line.
fn texts(body: &str) -> String {
    let found = reading(body).diagnostics.into_iter();
    let lines = found.map(|it| format!("{}: {}", it.message, it.hint.unwrap_or_default()));
    lines.collect::<Vec<_>>().join("\n")
}

#[test]
fn messages_say_what_to_write() {
    for (body, expected) in [
        (
            "do: [{a: {set: {x: 1}, timeout: PT5S}}]",
            "write 'timeout: {after: PT5S}'",
        ),
        (
            "do: [{a: {call: openapi, with: {operationId: o, document: 'https://e/o.json'}}}]",
            "write '{endpoint: https://e/o.json}'",
        ),
        (
            "do: [{a: {call: http, with: {method: get, endpoint: 'http://a', query: q}}}]",
            "'query' must be an object or an expression, but is a string",
        ),
        (
            "do: [{a: {set: {x: '${ $secrets.k }'}}}]",
            "add 'k' to the list 'use.secrets'",
        ),
        (
            "do: [{a: {do: [{b: {set: {x: 1}, then: c}}]}}, {c: {set: {x: 1}}}]",
            "'c' is a task of a list around this one: write 'exit', and lead there",
        ),
        (
            "do: [{a: {try: [], catch: {retry: {delay: PT1S, backoff: {linear: {f: 1}}}}}}]",
            "'linear' has no property 'f': it has no effect: remove it",
        ),
        (
            "do: [{a: {emit: {event: {with: {type: t}, note: x}}}}]",
            "'event' has no property 'note': it has no effect",
        ),
        (
            "do: [{a: {try: [], catch: {errors: {with: {title: '${ .t }'}}}}}]",
            "'title' is compared as it is written",
        ),
    ] {
        let found = texts(body);
        assert!(found.contains(expected), "{body}: {found}");
    }
}

#[test]
fn what_is_right_gives_no_finding() {
    for body in [
        "do: [{a: {set: {x: '.nan', y: '$${ .a }'}}}]",
        "use: {retries: {p: {when: $error.status == 503, delay: PT1S}}}\ndo: []",
        "use: {errors: {e: {type: t, status: 400, detail: '${ $order }'}}}\n\
         do: [{a: {for: {each: order, in: '[1]'}, do: []}}]",
        "timeout: {after: '${ $workflow.input.d }'}\ndo: []",
    ] {
        assert_eq!(texts(body), "", "{body}");
    }
}

#[test]
fn regular_expressions_have_limits() {
    let filter = |number| format!("{{with: {{type: '\\w{{20}}{number}.*'}}}}");
    let all: Vec<String> = (0..30).map(filter).collect();
    let body = format!("do: [a: {{listen: {{to: {{any: [{}]}}}}}}]", all.join(", "));
    let found = texts(&body);
    assert_eq!(found.matches("16 MiB").count(), 1, "{found}");
    let schema = |number| format!("p{number}: {{pattern: '(?=x)\\w{{20}}{number}'}}");
    let task = |count| {
        let all: Vec<String> = (0..count).map(schema).collect();
        let all = all.join(", ");
        format!("{{input: {{schema: {{document: {{properties: {{{all}}}}}}}}}, set: {{a: 1}}}}")
    };
    let found = texts(&format!("do: [a: {}, b: {}]", task(5), task(12)));
    assert_eq!(found.matches("16 MiB").count(), 1, "{found}");
}
