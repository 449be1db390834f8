//! Deployed definitions, and marks.

use swirl_ports::{DefinitionRecord, Deleted};

use crate::Backend;
use crate::kit::*;

pub async fn definitions_are_replaced(b: Backend) {
    let record = |workflow: &str, document: &str| DefinitionRecord {
        deleted: None,
        activated: None,
        interests: swirl_ports::Interests::default(),
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
    let before = b.definitions.changes(0).await.unwrap();
    assert_eq!(
        before.heads,
        [record("z", "1").head(), record("a", "1").head()]
    );
    let mut deleted = record("z", "2");
    deleted.deleted = Some(Deleted {
        at: at(2),
        in_use: true,
        freed: false,
    });
    b.definitions.replace(deleted.clone()).await.unwrap();
    let after = b.definitions.changes(before.revision).await.unwrap();
    assert!(after.revision > before.revision);
    assert_eq!(
        after.heads,
        [deleted.head()],
        "what changed, and nothing else"
    );
    let nothing = b.definitions.changes(after.revision).await.unwrap();
    assert_eq!((nothing.revision, nothing.heads), (after.revision, vec![]));
    let found = b.definitions.get(&definition("z")).await.unwrap();
    assert_eq!(found, Some(deleted.clone()));
    let all = b.definitions.changes(0).await.unwrap();
    assert_eq!(all.heads, [record("a", "1").head(), deleted.head()]);
    let put = b.definitions.put(record("z", "3")).await.unwrap();
    assert_eq!(put, Some(deleted.clone()), "it keeps its place");
    let mut freed = deleted.clone();
    freed.document = String::new();
    let other = record("z", "1");
    let stale = b.definitions.replace_if(&other, freed.clone()).await;
    assert!(!stale.unwrap(), "another one is there");
    let found = b.definitions.get(&definition("z")).await.unwrap();
    assert_eq!(found.as_ref(), Some(&deleted));
    let replaced = b.definitions.replace_if(&deleted, freed.clone());
    assert!(replaced.await.unwrap());
    let changed = b.definitions.changes(all.revision).await.unwrap();
    assert_eq!(changed.heads, [freed.head()]);
    let found = b.definitions.get(&definition("z")).await.unwrap();
    assert_eq!(found, Some(freed));
    let unknown = record("x", "1");
    let missing = b.definitions.replace_if(&unknown, record("x", "2")).await;
    assert!(!missing.unwrap());
}

pub async fn definitions_are_immutable(b: Backend) {
    let record = |workflow: &str, document: &str| DefinitionRecord {
        deleted: None,
        activated: None,
        interests: swirl_ports::Interests::default(),
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
        b.definitions.changes(0).await.unwrap().heads,
        [record("z", "1").head(), record("a", "1").head()]
    );
    assert_eq!(b.definitions.mark("z").await.unwrap(), None);
    b.definitions.set_mark("z", at(7)).await.unwrap();
    b.definitions.set_mark("z", at(8)).await.unwrap();
    assert_eq!(b.definitions.mark("z").await.unwrap(), Some(at(8)));
    for (advanced, mark) in [(7, 8), (9, 9), (9, 9)] {
        b.definitions.advance_mark("z", at(advanced)).await.unwrap();
        assert_eq!(b.definitions.mark("z").await.unwrap(), Some(at(mark)));
    }
    b.definitions.advance_mark("new", at(1)).await.unwrap();
    assert_eq!(b.definitions.mark("new").await.unwrap(), Some(at(1)));
    let names = ["x", "z"].map(str::to_owned);
    let marks = b.definitions.marks(&names).await.unwrap();
    assert_eq!(marks, [None, Some(at(9))]);
    assert_eq!(b.definitions.marks(&[]).await.unwrap(), []);
}
