//! The schemas against the conformance suite: they accept the same documents as the reader.

#![allow(clippy::unwrap_used, reason = "a test")]

mod suite;

use std::collections::BTreeMap;

use swirl_authoring::schema::schema;
use swirl_expr::{JsonSchema, Limits as SchemaLimits};
use swirl_spec::diagnostic::Severity;
use swirl_spec::edition::Edition;
use swirl_spec::resource::MapResources;
use swirl_spec::{Options, Reading, codes, read_node};

#[test]
fn what_the_reader_accepts_the_schema_accepts() {
    let all = suite::documents();
    let schemas: BTreeMap<Edition, JsonSchema> = std::thread::scope(|scope| {
        let each = Edition::ALL.map(|edition| (edition, scope.spawn(move || schema(edition))));
        let each = each.into_iter();
        each.map(|(edition, schema)| {
            let schema = schema.join().unwrap();
            (edition, JsonSchema::compile_draft7(&schema).unwrap())
        })
        .collect()
    });
    let resources = MapResources::default();
    let mut wrong = Vec::new();
    let (mut accepted, mut loose) = (0, 0);
    // Documents that are wrong in themselves, and those of them that the schema refuses.
    let (mut shapeless, mut refused) = (0, 0);
    let mut let_through = Vec::new();
    for (name, node, provided) in all {
        let options = Options {
            provided,
            ..Options::default()
        };
        let reading = read_node(&node, &resources, &options);
        let Some(edition) = &reading.edition else {
            continue;
        };
        let checked = schemas[&edition.edition].check(&node.to_data(), &SchemaLimits::default());
        match (&reading.workflow, checked) {
            (Some(_), Ok(())) => {
                accepted += 1;
                loose += usize::from(is_loose(&reading));
            }
            (Some(_), Err(error)) => {
                accepted += 1;
                wrong.push(format!("{name} ({}): {error}", edition.edition));
            }
            (None, checked) if is_shapeless(&reading) => {
                shapeless += 1;
                match checked {
                    Err(_) => refused += 1,
                    Ok(()) => let_through.push(name),
                }
            }
            // Names, ways, expressions: nothing that a schema could say.
            (None, _) => {}
        }
    }
    assert!(
        wrong.is_empty(),
        "{} of {accepted}:\n{}",
        wrong.len(),
        wrong.join("\n")
    );
    assert!(accepted > 1300, "{accepted}");
    // Documents with harmless habits are among them.
    assert!(loose > 5, "{loose}");
    println!("{accepted} accepted ({loose} loose), {refused} of {shapeless} refused");
    assert!(
        refused * 10 >= shapeless * 7,
        "{refused} of {shapeless} are refused, not\n{}",
        let_through.join("\n")
    );
}

fn is_loose(reading: &Reading) -> bool {
    let mut findings = reading.diagnostics.iter();
    findings.any(|finding| finding.code == codes::LOOSE_FORM)
}

/// Whether a document is refused for a value at one place, or a missing one.
fn is_shapeless(reading: &Reading) -> bool {
    let shape = [
        codes::BAD_DURATION,
        codes::EMPTY_LIST,
        codes::EXCLUSIVE_PROPERTIES,
        codes::MISSING_PROPERTY,
        codes::UNKNOWN_PROPERTY,
        codes::UNKNOWN_VALUE,
        codes::WRONG_TYPE,
    ];
    let mut all = reading.diagnostics.iter();
    all.any(|found| found.severity == Severity::Error && shape.contains(&found.code))
}
