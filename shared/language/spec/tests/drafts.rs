//! The drafts of 0.1: their specifications contain no complete definition, so the documents here use every property,
//! word and operator in their tables, and are read without findings.

use swirl_model::workflow::{Body, StateKind, Workflow};
use swirl_spec::Options;
use swirl_spec::reader;
use swirl_spec::resource::MapResources;

const DOCUMENTS: [(&str, &str); 2] = [
    (
        "0.1 (early draft)",
        include_str!("examples-0.1/every-part-early.yaml"),
    ),
    ("0.1", include_str!("examples-0.1/every-part.yaml")),
];

fn read(text: &str) -> (String, Workflow) {
    let options = Options::default();
    let reading = reader::read(text.as_bytes(), &MapResources::default(), &options);
    let all: Vec<String> = reading
        .diagnostics
        .iter()
        .map(ToString::to_string)
        .collect();
    assert!(all.is_empty(), "{all:#?}");
    let edition = reading.edition.unwrap().edition.to_string();
    (edition, reading.workflow.unwrap())
}

#[test]
fn every_part_is_read_without_findings() {
    for (edition, text) in DOCUMENTS {
        let (found, workflow) = read(text);
        assert_eq!(found, edition);
        let kinds: Vec<&str> = workflow
            .states
            .iter()
            .filter(|state| state.flow == Workflow::ROOT)
            .map(|state| state.kind.as_str())
            .collect();
        assert_eq!(
            kinds[..5],
            ["event", "operation", "switch", "sleep", "parallel"]
        );
        assert_eq!(workflow.events.len(), 2);
        assert_eq!(&*workflow.events[1].correlation[0].attribute, "claimid");
    }
}

#[test]
fn branches_are_separate_flows() {
    for (_, text) in DOCUMENTS {
        let (_, workflow) = read(text);
        let parallel = workflow.states.iter().find_map(|state| match &state.kind {
            StateKind::Parallel(parallel) => Some(parallel),
            _ => None,
        });
        let branches = &parallel.unwrap().branches;
        let awaited: Vec<bool> = branches.iter().map(|branch| branch.awaited).collect();
        assert_eq!(awaited, [false, true]);
        for branch in branches {
            let Body::Flow(flow) = branch.body else {
                panic!("'{}' has no states", branch.name);
            };
            let start = workflow[flow].start;
            assert!(workflow[flow].states.contains(&start));
            assert_eq!(workflow[start].flow, flow);
        }
    }
}
