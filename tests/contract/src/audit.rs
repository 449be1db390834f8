//! The audit log of operators' actions.

use std::collections::BTreeMap;

use swirl_ports::{AuditEntry, AuditSubject};

use crate::Backend;
use crate::kit::at;

/// The entry with this number.
pub fn entry(n: i64) -> AuditEntry {
    AuditEntry {
        id: format!("{n:04}-x"),
        at: at(n),
        by: (n % 2 == 0).then(|| "ann".to_owned()),
        action: "rerun".to_owned(),
        subject: AuditSubject {
            kind: "instance".to_owned(),
            id: format!("i {n} \"ü\""),
            version: None,
        },
        reason: Some("the service is back\nagain".to_owned()),
        details: BTreeMap::from([("state".to_owned(), "Charge card".to_owned())]),
    }
}

async fn ids(b: &Backend, before: Option<&str>, limit: usize) -> Vec<String> {
    let found = b.audit.audit(before, limit).await.unwrap();
    found.into_iter().map(|entry| entry.id).collect()
}

pub async fn entries_are_listed_newest_first(b: Backend) {
    assert_eq!(b.audit.audit(None, 10).await.unwrap(), []);
    // Two processes, whose entries arrive in another order.
    for n in [1, 3, 2, 4] {
        b.audit.add_audit(&entry(n), 100).await.unwrap();
    }
    b.audit.add_audit(&entry(2), 100).await.unwrap();
    let all = b.audit.audit(None, 10).await.unwrap();
    assert_eq!(all, [4, 3, 2, 1].map(entry), "each is there once");
    assert_eq!(ids(&b, None, 2).await, ["0004-x", "0003-x"]);
    assert_eq!(ids(&b, Some("0003-x"), 2).await, ["0002-x", "0001-x"]);
    assert_eq!(ids(&b, Some("0001-x"), 2).await, Vec::<String>::new());
    // One that is gone, or never was.
    assert_eq!(ids(&b, Some("0002-y"), 1).await, ["0002-x"]);
}

pub async fn old_entries_make_room(b: Backend) {
    for n in 1..=7 {
        b.audit.add_audit(&entry(n), 5).await.unwrap();
    }
    let kept = ["0007-x", "0006-x", "0005-x", "0004-x", "0003-x"];
    assert_eq!(ids(&b, None, 100).await, kept);
    b.audit.add_audit(&entry(8), 2).await.unwrap();
    assert_eq!(ids(&b, None, 100).await, ["0008-x", "0007-x"]);
}
