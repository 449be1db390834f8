//! A definition says which data the histories of its instances keep.

#![allow(clippy::unwrap_used, reason = "a test")]

use swirl_model::time::Timestamp;
use swirl_model::{Data, data};
use swirl_ports::{CallRequest, Filter, InstanceQueries as _};
use swirl_service::{Deployment, StartRequest};
use swirl_spec::resource::MapResources;
use swirl_virtual_time::{Act, Mock, World};

const DOCUMENT: &str = r#"
id: call
version: "1.0.0"
specVersion: "0.8"
metadata: {swirl: {history: {data: WORD}, retention: {completed: PT1H}}}
functions: [{name: call, type: rest, operation: "file://shop.json#call"}]
states:
  - {name: Call, type: operation, actions: [{functionRef: {refName: call, arguments: {a: 1}}}], end: true}
"#;

const TASKS: &str = r#"
document:
  dsl: 1.0.3
  namespace: shop
  name: call
  version: 1.0.0
  metadata: {swirl: {history: {data: WORD}, retention: {completed: PT1H}}}
do: [{call: {call: http, with: {method: get, endpoint: 'https://shop.example.com/orders'}}}]
"#;

fn kept(word: &str, all: bool) -> Vec<String> {
    kept_of(DOCUMENT, "call", word, all)
}

/// The data in the history of an instance, in a world that would keep all or none of it.
fn kept_of(document: &str, workflow: &str, word: &str, all: bool) -> Vec<String> {
    let answer = |_: &CallRequest| Mock::Answer {
        after_ms: 10,
        result: Ok(data!({"b": 7})),
    };
    let unknown = |record: &swirl_ports::DefinitionRecord| Err(record.id.to_string());
    let make = if all { World::recording } else { World::new };
    let (lower, answer) = (Box::new(unknown), Box::new(answer));
    let mut world = make(Timestamp(0), lower, answer, Data::NULL);
    let document = document.replace("WORD", word);
    let none = MapResources::default();
    let reading = swirl_spec::read(document.as_bytes(), &none, &Default::default());
    let deployment = Deployment {
        name: "call".to_owned(),
        document,
        resources: Vec::new(),
        workflow: reading.workflow.unwrap(),
    };
    let service = world.service.clone();
    world
        .wait(async move { service.deploy(deployment).await })
        .unwrap();
    let start = StartRequest {
        workflow: workflow.to_owned(),
        input: Data::object(),
        request: "start".to_owned(),
        ..StartRequest::default()
    };
    world
        .run(vec![(Timestamp(0), Act::Start(start))], Timestamp(60_000))
        .unwrap();
    let store = world.store.clone();
    world.wait(async move {
        let filter = Filter {
            limit: 1,
            ..Filter::default()
        };
        let found = store.list(&filter).await.unwrap().remove(0).header;
        assert_eq!(found.retention.completed, Some(3_600_000));
        let history = store.history(&found.id).await.unwrap();
        let data = history.into_iter().filter_map(|entry| entry.data);
        data.map(|data| data.to_string()).collect()
    })
}

#[test]
fn a_definition_says_which_data_is_kept() {
    let all = [
        r#"{"state_data":{}}"#,
        r#"{"arguments":{"a":1},"result":{"b":7}}"#,
    ];
    assert_eq!(kept("all", false), all);
    assert!(kept("errors", false).is_empty());
    // A recording needs all of it.
    assert_eq!(kept("none", true), all);
}

#[test]
fn so_does_a_document_of_tasks() {
    let kept = |word| kept_of(TASKS, "shop.call", word, false);
    let all = kept("all");
    let has = |part: &str| all.iter().any(|data| data.contains(part));
    assert!(has(r#""result":{"b":7}"#), "{all:?}");
    assert!(has("https://shop.example.com/orders"), "{all:?}");
    for word in ["errors", "none"] {
        assert_eq!(kept(word), [""; 0], "{word}");
    }
}
