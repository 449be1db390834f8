//! The language's own examples in editions 0.6, 0.7 and 0.9: `text/<edition>/` has the definitions in each release that
//! have at least states. The complete ones are read without errors. The findings about the others (outlines without the
//! definitions that they refer to, and examples that contradict their specification) are in one snapshot each.

use std::fmt::Write as _;
use std::path::Path;

use swirl_documents::diagnostic::Severity;
use swirl_spec::Options;
use swirl_spec::reader;
use swirl_spec::resource::MapResources;

/// Complete definitions, which can be deployed without errors.
const COMPLETE: [(&str, &[&str]); 3] = [
    (
        "0.6",
        &[
            "01-greet-customers-workflow.json",
            "07-send-confirm-workflow.json",
            "08-send-confirm-workflow.yaml",
        ],
    ),
    (
        "0.7",
        &[
            "01-greet-customers-workflow.json",
            "07-send-confirm-workflow.json",
            "08-send-confirm-workflow.yaml",
        ],
    ),
    (
        "0.9",
        &[
            "08-simpleadd.json",
            "12-send-confirmation-for-completed-orders.json",
            "13-send-confirmation-for-completed-orders.yaml",
        ],
    ),
];

fn names(edition: &str) -> Vec<String> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("tests/text")
        .join(edition);
    let entries = std::fs::read_dir(folder).unwrap();
    let mut names: Vec<String> = entries
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    names
}

#[test]
fn complete_definitions_have_no_errors_and_others_the_expected_ones() {
    for (edition, complete) in COMPLETE {
        let mut shown = String::new();
        for name in names(edition) {
            let path = format!("tests/text/{edition}/{name}");
            let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(path);
            let bytes = std::fs::read(path).unwrap();
            let reading = reader::read(&bytes, &MapResources::default(), &Options::default());
            let known = reading.edition.as_ref().map(|known| known.edition.as_str());
            writeln!(shown, "{name}: {}", known.unwrap_or("none")).unwrap();
            for finding in reading.diagnostics.iter() {
                let severity = match finding.severity {
                    Severity::Error => "error",
                    Severity::Warning => "warning",
                    Severity::Info => "info",
                };
                let (code, pointer) = (&finding.code, &finding.pointer);
                writeln!(shown, "  {severity} {code} {pointer}: {}", finding.message).unwrap();
            }
            if complete.contains(&name.as_str()) {
                let errors = reading.diagnostics.has_errors();
                assert!(!errors && reading.workflow.is_some(), "{edition}/{name}");
            }
        }
        insta::with_settings!({prepend_module_to_snapshot => false, omit_expression => true}, {
            insta::assert_snapshot!(format!("text-{edition}"), shown);
        });
    }
}
