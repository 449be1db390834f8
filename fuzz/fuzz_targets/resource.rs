//! Any bytes as the document that functions refer to: OpenAPI (and Swagger), a proto file, a GraphQL
//! document, an OData address, an AsyncAPI document. The first byte says which. Compiling the
//! functions must not panic, and what is refused says why.

#![no_main]

use std::sync::LazyLock;

use libfuzzer_sys::fuzz_target;
use swirl_engine::Definition;
use swirl_model::workflow::Workflow;
use swirl_spec::resource::MapResources;
use swirl_spec::{Options, read};
use swirl_functions::Caller;
use swirl_functions::types::rest::OpenApi;
use swirl_functions::http::{Http, HttpConfig};

/// Type, and operation in the document.
const FUNCTIONS: [(&str, &str); 6] = [
    ("rest", "doc#op"),
    ("rpc", "doc#S#m"),
    ("asyncapi", "doc#op"),
    ("rest", "doc#put"),
    ("rpc", "doc#p.S#m"),
    ("asyncapi", "doc#send"),
];

static CALLER: LazyLock<Caller> =
    LazyLock::new(|| Caller::new(Http::new(HttpConfig::default()).expect("a client can be made")));

static WORKFLOWS: LazyLock<Vec<Workflow>> = LazyLock::new(|| {
    let all = FUNCTIONS.iter();
    all.map(|(kind, operation)| workflow(kind, operation).expect("it is a definition"))
        .collect()
});

fn workflow(kind: &str, operation: &str) -> Option<Workflow> {
    let document = serde_json::json!({
        "id": "f", "version": "1", "specVersion": "0.8", "start": "A",
        "functions": [{"name": "f", "type": kind, "operation": operation}],
        "states": [{"name": "A", "type": "operation", "actions": [{"functionRef": "f"}], "end": true}],
    });
    let text = document.to_string();
    read(
        text.as_bytes(),
        &MapResources::default(),
        &Options::default(),
    )
    .workflow
}

fuzz_target!(|input: &[u8]| {
    let Some((&which, document)) = input.split_first() else {
        return;
    };
    let which = which as usize;
    // GraphQL: the document belongs to the definition.
    if which % 8 >= 6 {
        let Ok(text) = std::str::from_utf8(document) else {
            return;
        };
        let (kind, operation) = match which % 8 {
            6 => ("graphql", format!("http://h/graphql#query#{text}")),
            _ => ("odata", format!("http://h/odata#{text}")),
        };
        if let Some(workflow) = workflow(kind, &operation) {
            let id = Definition::id_of(&workflow);
            let _ = CALLER.prepare(&id, &workflow, &[]);
        }
        return;
    }
    let workflow = &WORKFLOWS[which % 8];
    if which % 8 == 0
        && let Ok(openapi) = OpenApi::parse(document, "http://h/doc")
    {
        let _ = openapi.operation("op");
    }
    let content = String::from_utf8_lossy(document).into_owned();
    let resources = [("doc".to_owned(), content)];
    let _ = CALLER.gather(workflow).missing(&resources);
    let _ = CALLER.check(workflow, &resources);
    let id = Definition::id_of(workflow);
    if let Err(problems) = CALLER.prepare(&id, workflow, &resources) {
        assert!(!problems.is_empty());
        assert!(problems.iter().all(|problem| !problem.message.is_empty()));
    }
});
