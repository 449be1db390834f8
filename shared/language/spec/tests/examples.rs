//! The specification's complete examples are read without errors, and no damaged document makes the reader panic.

use proptest::prelude::*;
use serde_json::Value;
use swirl_documents::diagnostic::Diagnostics;
use swirl_documents::source::{self, Limits};
use swirl_spec::Options;
use swirl_spec::reader;
use swirl_spec::resource::MapResources;

const EXAMPLES: [(&str, &str); 3] = [
    (
        "every-part.yaml",
        include_str!("examples-0.8/every-part.yaml"),
    ),
    (
        "greet-customers.json",
        include_str!("examples-0.8/greet-customers.json"),
    ),
    (
        "send-confirmation.yaml",
        include_str!("examples-0.8/send-confirmation.yaml"),
    ),
];

fn read(text: &str) -> (bool, Diagnostics) {
    let reading = reader::read(
        text.as_bytes(),
        &MapResources::default(),
        &Options::default(),
    );
    (reading.workflow.is_some(), reading.diagnostics)
}

#[test]
fn examples_are_read_without_findings() {
    for (name, text) in EXAMPLES {
        let (read, diagnostics) = read(text);
        let all: Vec<String> = diagnostics.iter().map(ToString::to_string).collect();
        assert!(read && all.is_empty(), "{name}: {all:#?}");
    }
}

#[test]
fn every_part_is_lowered() {
    let reading = reader::read(
        EXAMPLES[0].1.as_bytes(),
        &MapResources::default(),
        &Options::default(),
    );
    let workflow = reading.workflow.unwrap();
    let kinds: Vec<&str> = workflow
        .states
        .iter()
        .map(|state| state.kind.as_str())
        .collect();
    assert_eq!(
        kinds,
        [
            "inject",
            "operation",
            "operation",
            "sleep",
            "switch",
            "switch",
            "parallel",
            "foreach",
            "callback",
            "event",
            "inject"
        ]
    );
    let texts: Vec<&str> = workflow
        .expressions
        .iter()
        .map(|e| e.text.as_str())
        .collect();
    let adult = ".applicant | .age >= $CONST.AGE.MIN_ADULT";
    assert_eq!(texts.iter().filter(|text| **text == adult).count(), 1);
    assert!(workflow.schedule.is_some() && workflow.keep_active);
    assert_eq!(
        workflow.timeout.unwrap().run_before.map(|id| id.0),
        Some(10)
    );
}

/// A location in a document, and a change to make there.
#[derive(Debug, Clone)]
struct Damage {
    place: prop::sample::Index,
    with: Change,
}

#[derive(Debug, Clone)]
enum Change {
    Remove,
    Rename(&'static str),
    Replace(Value),
    Double,
    CopyFrom(prop::sample::Index),
}

fn change() -> impl Strategy<Value = Change> {
    let values = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i32>().prop_map(Value::from),
        Just(Value::from(-0.5)),
        Just(serde_json::json!([])),
        Just(serde_json::json!({})),
        Just(serde_json::json!([{}, [], ""])),
        "[ -~]{0,12}".prop_map(Value::from),
        prop::sample::select(vec![
            "${",
            "${ }",
            "${ . }",
            "$${ a",
            "${ fn: }",
            "${ fn:isAdult }",
            "fn:fn:",
            "*",
            "PT0S",
            "P",
            "R//",
            "* * * * *",
            "SimpleInjectState",
            "CancelPurchase",
            "é\u{0}",
            "${ \"\\(",
            ".a[",
        ])
        .prop_map(Value::from),
    ];
    let keys = vec![
        "end",
        "transition",
        "name",
        "type",
        "usedForCompensation",
        "states",
        "",
        "a/b~",
    ];
    prop_oneof![
        Just(Change::Remove),
        prop::sample::select(keys).prop_map(Change::Rename),
        values.prop_map(Change::Replace),
        Just(Change::Double),
        any::<prop::sample::Index>().prop_map(Change::CopyFrom),
    ]
}

/// The pointers of all values.
fn places(value: &Value, pointer: String, found: &mut Vec<String>) {
    match value {
        Value::Array(items) => {
            for (index, item) in items.iter().enumerate() {
                places(item, format!("{pointer}/{index}"), found);
            }
        }
        Value::Object(members) => {
            for (key, value) in members {
                let key = key.replace('~', "~0").replace('/', "~1");
                places(value, format!("{pointer}/{key}"), found);
            }
        }
        _ => {}
    }
    found.push(pointer);
}

fn apply(document: &mut Value, damage: &Damage) {
    let mut all = Vec::new();
    places(document, String::new(), &mut all);
    let pointer = damage.place.get(&all).clone();
    let other = match &damage.with {
        Change::CopyFrom(index) => document.pointer(index.get(&all).as_str()).cloned(),
        _ => None,
    };
    let Some((parent, last)) = pointer.rsplit_once('/') else {
        return;
    };
    let key = last.replace("~1", "/").replace("~0", "~");
    let Some(parent) = document.pointer_mut(parent) else {
        return;
    };
    let index = key.parse::<usize>().unwrap_or(0);
    match (&damage.with, parent) {
        (Change::Remove, Value::Object(members)) => drop(members.remove(&key)),
        (Change::Remove, Value::Array(items)) => drop(items.remove(index)),
        (Change::Rename(name), Value::Object(members)) => {
            if let Some(value) = members.remove(&key) {
                members.insert((*name).to_owned(), value);
            }
        }
        (Change::Double, Value::Array(items)) => items.push(items[index].clone()),
        (Change::Replace(value), Value::Object(members)) => {
            members.insert(key, value.clone());
        }
        (Change::Replace(value), Value::Array(items)) => items[index] = value.clone(),
        (Change::CopyFrom(_), Value::Object(members)) => {
            members.insert(key, other.unwrap_or_default());
        }
        (Change::CopyFrom(_), Value::Array(items)) => items[index] = other.unwrap_or_default(),
        _ => {}
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, ..ProptestConfig::default() })]

    #[test]
    fn damaged_documents_never_panic(
        example in 0..EXAMPLES.len(),
        damages in prop::collection::vec(
            (any::<prop::sample::Index>(), change()).prop_map(|(place, with)| Damage { place, with }),
            1..6,
        ),
    ) {
        let root = source::parse(EXAMPLES[example].1.as_bytes(), &Limits::default()).unwrap();
        let mut document = Value::from(&root.to_data());
        for damage in &damages {
            apply(&mut document, damage);
        }
        // Copies of parts into themselves result at worst in deep nesting, which is rejected.
        let (read, diagnostics) = read(&document.to_string());
        prop_assert_eq!(read, !diagnostics.has_errors());
    }

    #[test]
    fn arbitrary_text_never_panics(text in "[ -~\n\t]{0,200}") {
        read(&format!("id: a\nversion: 1.0.0\nspecVersion: '0.8'\n{text}"));
    }
}
