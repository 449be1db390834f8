//! Deployed definitions, and marks.

use swirl_ports::{DefinitionRecord, Deleted};

use crate::Backend;
use crate::kit::*;

pub async fn definitions_are_replaced(b: Backend) {
    let record = |workflow: &str, document: &str| DefinitionRecord {
        deleted: None,
        id: definition(workflow),
        digest: document.to_owned(),
        name: "file".to_owned(),
        document: document.to_owned(),
        resources: Vec::new(),
        deployed_at: at(1),
    };
    for workflow in ["z", "a"] {
        b.definitions.put(record(workflow, "1")).await.unwrap();
    }
    let before = b.definitions.revision().await.unwrap();
    let mut deleted = record("z", "2");
    deleted.deleted = Some(Deleted {
        at: at(2),
        in_use: true,
    });
    b.definitions.replace(deleted.clone()).await.unwrap();
    let after = b.definitions.revision().await.unwrap();
    assert!(
        after > before || after == 0,
        "a backend of one process has none"
    );
    let found = b.definitions.get(&definition("z")).await.unwrap();
    assert_eq!(found, Some(deleted.clone()));
    let all = b.definitions.all().await.unwrap();
    assert_eq!(all, [record("a", "1"), deleted.clone()]);
    let put = b.definitions.put(record("z", "3")).await.unwrap();
    assert_eq!(put, Some(deleted), "it keeps its place");
}

pub async fn definitions_are_immutable(b: Backend) {
    let record = |workflow: &str, document: &str| DefinitionRecord {
        deleted: None,
        id: definition(workflow),
        digest: document.to_owned(),
        name: "file".to_owned(),
        document: document.to_owned(),
        resources: vec![("uri".to_owned(), "text".to_owned())],
        deployed_at: at(1),
    };
    assert_eq!(b.definitions.put(record("z", "1")).await.unwrap(), None);
    assert_eq!(b.definitions.put(record("a", "1")).await.unwrap(), None);
    assert_eq!(
        b.definitions.put(record("z", "2")).await.unwrap(),
        Some(record("z", "1"))
    );
    assert_eq!(
        b.definitions.get(&definition("z")).await.unwrap(),
        Some(record("z", "1"))
    );
    assert_eq!(b.definitions.get(&definition("x")).await.unwrap(), None);
    assert_eq!(
        b.definitions.all().await.unwrap(),
        [record("z", "1"), record("a", "1")]
    );
    assert_eq!(b.definitions.mark("z").await.unwrap(), None);
    b.definitions.set_mark("z", at(7)).await.unwrap();
    b.definitions.set_mark("z", at(8)).await.unwrap();
    assert_eq!(b.definitions.mark("z").await.unwrap(), Some(at(8)));
}
