//! Histories that are read in parts.

use swirl_model::Data;
use swirl_model::event::{Event, HistoryEntry};
use swirl_model::ids::{InstanceId, ScopeId};
use swirl_ports::execution::Record;
use swirl_ports::{Commit, HISTORY_BYTES_MAX, HistoryPage, HistoryPart};

use crate::Backend;
use crate::kit::*;

fn entry(fork: u32, data: Option<Data>) -> HistoryEntry {
    HistoryEntry {
        data,
        at: at(0),
        scope: ScopeId::root(),
        event: Event::Joined {
            fork,
            in_state: None,
        },
        data_until: None,
    }
}

/// Commits these entries.
pub async fn append(b: &Backend, history: Vec<HistoryEntry>) {
    let held = b.hold_lazily(&root("a")).await;
    let Record::Scope(scope) = held.record else {
        panic!("no record")
    };
    let commit = Commit {
        lease: held.lease,
        scope,
        consumed: vec![],
        refused: vec![],
        history,
        commands: vec![],
        at: at(0),
        require_unchanged_inbox: false,
        fits: false,
        release: true,
        lease_ms: LEASE_MS,
    };
    b.store.commit(commit).await.unwrap();
}

pub async fn history_is_read_in_parts(b: Backend) {
    let id = InstanceId::new("a");
    b.create(new("a")).await;
    // Commits with one entry, some entries, and more entries than are written together.
    let mut count = 0;
    for length in [1, 1, 5, 240, 1, 100, 2] {
        let entries = (count..count + length).map(|n| entry(n, None));
        append(&b, entries.collect()).await;
        count += length;
    }
    let all = b.store.history(&id).await.unwrap();
    assert_eq!(all.len(), 350);
    for known in [
        0, 1, 2, 6, 7, 100, 174, 176, 246, 247, 248, 347, 349, 350, 1_000,
    ] {
        for limit in [0, 1, 3, 101, 1_000] {
            let part = HistoryPart::After {
                known: known as u64,
                limit,
            };
            let page = b.store.history_page(&id, part).await.unwrap();
            let first = known.min(350);
            assert_eq!((page.before, page.total), (first as u64, 350), "{part:?}");
            let last = (first + limit).min(350);
            assert_eq!(page.entries, all[first..last], "{part:?}");
        }
    }
    for count in [0, 1, 2, 3, 102, 103, 104, 349, 350, 351] {
        let part = HistoryPart::Last(count);
        let page = b.store.history_page(&id, part).await.unwrap();
        let first = 350 - count.min(350);
        assert_eq!((page.before, page.total), (first as u64, 350), "{part:?}");
        assert_eq!(page.entries, all[first..], "{part:?}");
    }
    let nobody = InstanceId::new("b");
    let part = HistoryPart::Last(10);
    let page = b.store.history_page(&nobody, part).await.unwrap();
    assert_eq!(page, Default::default());
}

/// A request may ask for more than a process should hold at a time.
pub async fn large_entries_lead_to_short_parts(b: Backend) {
    let id = InstanceId::new("a");
    b.create(new("a")).await;
    let large = Data::string("x".repeat(HISTORY_BYTES_MAX / 3));
    for n in 0..8 {
        let noted = b.store.note(&id, entry(n, Some(large.clone()))).await;
        assert!(noted.unwrap());
    }
    let forks = |page: &HistoryPage| -> Vec<u32> {
        let entries = page.entries.iter();
        entries
            .map(|entry| match entry.event {
                Event::Joined { fork, .. } => fork,
                _ => panic!("{entry:?}"),
            })
            .collect()
    };
    for (known, wanted) in [(1, 1..4), (4, 4..7), (7, 7..8)] {
        let part = HistoryPart::After { known, limit: 8 };
        let page = b.store.history_page(&id, part).await.unwrap();
        assert_eq!((page.before, page.total), (known, 8));
        assert_eq!(forks(&page), wanted.collect::<Vec<_>>());
    }
    let page = b.store.history_page(&id, HistoryPart::Last(8)).await;
    let page = page.unwrap();
    assert_eq!((page.before, forks(&page)), (5, vec![5, 6, 7]));
}

/// Data with a retention of its own is removed while its entries stay.
pub async fn recorded_data_is_removed_before_its_entries(b: Backend) {
    let id = InstanceId::new("a");
    b.create(new("a")).await;
    let recorded = |fork: u32, until: Option<i64>| HistoryEntry {
        data_until: until.map(at),
        ..entry(fork, Some(Data::string(format!("d{fork}"))))
    };
    // Several in one commit, and one without a retention of its own.
    append(
        &b,
        vec![
            recorded(0, Some(100)),
            recorded(1, None),
            recorded(2, Some(300)),
        ],
    )
    .await;
    append(&b, vec![entry(3, None)]).await;
    for fork in 4..150 {
        append(
            &b,
            vec![recorded(fork, Some(200)), entry(1_000 + fork, None)],
        )
        .await;
    }
    let kept = async || -> Vec<u32> {
        let history = b.store.history(&id).await.unwrap();
        assert_eq!(history.len(), 4 + 2 * 146, "an entry is lost");
        let with_data = history.iter().filter(|entry| entry.data.is_some());
        let forks = with_data.map(|entry| match entry.event {
            Event::Joined { fork, .. } => fork,
            _ => panic!("{entry:?}"),
        });
        forks.collect()
    };
    let before = kept().await;
    assert_eq!(before.len(), 149);
    b.events.expire(at(99)).await.unwrap();
    assert_eq!(kept().await, before, "none is due yet");
    b.events.expire(at(100)).await.unwrap();
    assert_eq!(kept().await, before[1..]);
    b.events.expire(at(250)).await.unwrap();
    assert_eq!(kept().await, [1, 2]);
    // Later entries are found too.
    append(&b, vec![recorded(500, Some(280))]).await;
    let history = b.store.history(&id).await.unwrap();
    assert_eq!(history.last().unwrap().data, Some(Data::string("d500")));
    b.events.expire(at(280)).await.unwrap();
    let history = b.store.history(&id).await.unwrap();
    assert_eq!(history.last().unwrap().data, None);
    assert_eq!(
        history.last().unwrap().data_until,
        Some(at(280)),
        "it says until when there was data"
    );
    b.events.expire(at(10_000)).await.unwrap();
    let history = b.store.history(&id).await.unwrap();
    let left = history.iter().filter(|entry| entry.data.is_some());
    assert_eq!(left.count(), 1, "only the one without a time of its own");
}
