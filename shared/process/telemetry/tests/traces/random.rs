//! The spans of random workflows are a tree: one root, no span without its parent, each within its parent, one for each
//! branch, and errors have names.

use std::collections::{HashMap, HashSet};
use std::fmt::Write;

use swirl_collector::{Receiver, Span};

use super::check_times;
use super::cluster::Cluster;

const WORKFLOWS: u64 = 12;

/// Numbers that look random, the same in each run.
pub struct Draw(pub u64);

impl Draw {
    pub fn below(&mut self, limit: u64) -> u64 {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % limit
    }
}

/// A workflow of three states, some of which fail and are handled. The last one may fail the instance.
fn document(seed: u64) -> String {
    let mut draw = Draw(seed);
    let mut text = format!(
        "id: random{seed}\nversion: \"1\"\nspecVersion: \"0.8\"\nfunctions:\n\
         \x20 - {{name: ok, type: expression, operation: \"{{done: true}}\"}}\n\
         \x20 - {{name: fails, type: expression, operation: 'error(\"no\")'}}\n\
         errors: [{{name: Any, code: \"*\"}}]\nstates:\n"
    );
    for state in 0..3 {
        let call = match draw.below(4) {
            0 => "fails",
            _ => "ok",
        };
        let kind = match draw.below(6) {
            0 => format!(
                "type: operation, actionMode: parallel, actions: [{{name: one, functionRef: ok}}, {{functionRef: {call}}}]"
            ),
            1 => format!(
                "type: parallel, branches: [{{name: left, actions: [{{functionRef: ok}}, {{functionRef: ok}}]}}, \
                 {{name: right, actions: [{{functionRef: {call}}}]}}, {{name: none, actions: [{{functionRef: ok, condition: \"${{ false }}\"}}]}}]"
            ),
            2 => format!(
                "type: foreach, inputCollection: \"${{ [1, 2, 3] }}\", mode: sequential, actions: [{{functionRef: {call}}}]"
            ),
            3 => format!(
                "type: foreach, inputCollection: \"${{ [1, 2, 3, 4, 5] }}\", mode: parallel, batchSize: 2, \
                 actions: [{{functionRef: {call}, sleep: {{before: PT0.01S}}}}]"
            ),
            4 => {
                format!("type: operation, actions: [{{functionRef: ok}}, {{functionRef: {call}}}]")
            }
            _ => "type: sleep, duration: PT0.01S".to_owned(),
        };
        let handler = match draw.below(4) {
            0 => String::new(),
            _ if state == 2 => ", onErrors: [{errorRef: Any, end: true}]".to_owned(),
            _ => format!(
                ", onErrors: [{{errorRef: Any, transition: S{}}}]",
                state + 1
            ),
        };
        let next = match state {
            2 => "end: true".to_owned(),
            _ => format!("transition: S{}", state + 1),
        };
        writeln!(text, "  - {{name: S{state}, {kind}{handler}, {next}}}").unwrap();
    }
    text
}

#[tokio::test(flavor = "multi_thread")]
async fn spans_of_random_workflows_are_a_tree() {
    let (receiver, endpoint) = Receiver::serve().await;
    let mut cluster = Cluster::new(Some(&endpoint), 1.0);
    for seed in 0..WORKFLOWS {
        cluster.deploy(&document(seed)).await;
        cluster.start(&format!("random{seed}"), None).await;
    }
    cluster.settle().await;
    cluster.shutdown().await;
    let spans = receiver.spans();
    check_times(&spans);
    let traces = tree_of(&spans);
    assert_eq!(traces.len() as u64, WORKFLOWS);
    let (mut branches, mut failed, mut batched) = (0, 0, 0);
    for spans in traces.values() {
        let mut named = HashSet::new();
        for span in spans.iter().filter(|span| span.name.starts_with("branch")) {
            branches += 1;
            assert_ne!(span.name, "branch", "it has a name or an index");
            let name = (&span.parent_span_id, &span.name);
            assert!(named.insert(name), "{span:#?}");
            batched += usize::from(span.name.ends_with("[4]"));
        }
        failed += usize::from(
            spans
                .iter()
                .any(|span| span.status.as_ref().is_some_and(|it| it.code == 2)),
        );
    }
    assert!(
        branches > 20 && failed > 2 && batched > 0,
        "{branches} {failed} {batched}"
    );
}

/// The spans of each trace, which are a tree with one root.
pub fn tree_of(spans: &[(String, Span)]) -> HashMap<&[u8], Vec<&Span>> {
    let ids: HashSet<&[u8]> = spans.iter().map(|(_, span)| &*span.span_id).collect();
    assert_eq!(ids.len(), spans.len(), "no span is sent twice");
    let mut traces: HashMap<&[u8], Vec<&Span>> = HashMap::new();
    for (_, span) in spans {
        traces.entry(&span.trace_id).or_default().push(span);
        let is_root = span.parent_span_id.is_empty();
        assert!(is_root || ids.contains(&*span.parent_span_id), "{span:#?}");
        let error = swirl_collector::attribute(span, "error.type");
        let unknown = swirl_collector::Value::StringValue("_OTHER".to_owned());
        assert_ne!(error, Some(unknown), "{span:#?}");
    }
    for spans in traces.values() {
        let roots = spans.iter().filter(|span| span.parent_span_id.is_empty());
        assert_eq!(roots.count(), 1, "{spans:#?}");
    }
    traces
}
