//! Everything has a limit. Anything beyond it is refused, or the oldest is dropped.

use std::sync::Arc;

use futures::executor::block_on;
use swirl_contract::Backend;
use swirl_contract::kit::*;
use swirl_embedded::{Embedded, Options, raw};
use swirl_model::Data;
use swirl_model::event::{Command, Event, HistoryEntry, Input};
use swirl_model::ids::{InstanceId, ScopeId};
use swirl_model::instance::{EndStatus, Retention};
use swirl_model::scope::{Cursor, Said, Work};
use swirl_ports::execution::Record;
use swirl_ports::{
    Commit, Error, ExecutionStore, Filter, InboxItem, InstanceKey, KeyHolder, Listening,
};

fn backend(store: Embedded) -> Backend {
    let store = Arc::new(store);
    Backend::of(store, ())
}

fn ids(b: &Backend) -> Vec<String> {
    let all = block_on(b.store.list(&Filter {
        limit: 100,
        ..Filter::default()
    }))
    .unwrap();
    all.iter()
        .map(|summary| summary.header.id.to_string())
        .collect()
}

async fn end(b: &Backend, id: &str, status: EndStatus) {
    b.create(new(id)).await;
    let end = Command::End {
        status,
        output: None,
        error: None,
    };
    let cursor = if status == EndStatus::Faulted {
        blocked(Work::Begin)
    } else {
        Cursor::Ended
    };
    let timers = vec![timer(1, 50)];
    b.act(
        &root(id),
        change(vec![Command::Arm(timers[0]), end])
            .timers(timers)
            .at(cursor),
    )
    .await;
}

/// Removing an instance removes its key, unless another instance has taken the key.
#[test]
fn removing_an_instance_removes_its_key() {
    let folder = tempfile::tempdir().unwrap();
    let options = Options {
        keep_ended_ms: 100,
        ..Options::default()
    };
    let open = || backend(Embedded::open(folder.path(), options.clone()).unwrap());
    let b = open();
    let key = |id: &str| InstanceKey {
        workflow: "flow".into(),
        key: format!("key of {id}").into(),
    };
    let holder = |id: &str| KeyHolder {
        instance: InstanceId::new(id),
        since: at(0),
    };
    for id in ["a", "b"] {
        let mut new = new(id);
        new.header.instance_key = Some(key(id).key.to_string());
        let end = Command::End {
            status: EndStatus::Completed,
            output: None,
            error: None,
        };
        block_on(async {
            let taken = b.store.take_key(&key(id), &holder(id), None).await;
            assert!(taken.unwrap());
            b.create(new).await;
            b.act(&root(id), change(vec![end]).at(Cursor::Ended)).await;
        });
    }
    let (name, next, before) = (key("b"), holder("next"), holder("b"));
    let taken = b.store.take_key(&name, &next, Some(&before));
    assert!(block_on(taken).unwrap());
    block_on(b.events.expire(at(101))).unwrap();
    assert!(ids(&b).is_empty());
    drop(b);
    let b = open();
    assert_eq!(block_on(b.store.key_holder(&key("a"))).unwrap(), None);
    let found = block_on(b.store.key_holder(&key("b"))).unwrap();
    assert_eq!(found, Some(holder("next")));
}

/// Nothing is left of a removed instance, even after a restart.
#[test]
fn ended_instances_are_removed_by_age_and_number() {
    let folder = tempfile::tempdir().unwrap();
    let options = Options {
        keep_ended_ms: 100,
        keep_ended_max: 1,
        keep_faulted_ms: 100,
        ..Options::default()
    };
    let open = || backend(Embedded::open(folder.path(), options.clone()).unwrap());
    let b = open();
    block_on(async {
        b.create(new("alive")).await;
        for id in ["a", "b", "c"] {
            end(&b, id, EndStatus::Completed).await;
        }
        end(&b, "faulted", EndStatus::Faulted).await;
        b.create(new("says")).await;
        let end = Command::End {
            status: EndStatus::Completed,
            output: None,
            error: None,
        };
        let publish = Command::Publish(event("1", "t", &[]));
        b.act(&root("says"), change(vec![publish, end]).at(Cursor::Ended))
            .await;
        b.events.expire(at(0)).await.unwrap();
    });
    assert_eq!(ids(&b), ["says", "faulted", "alive"]);
    block_on(b.events.expire(at(100))).unwrap();
    assert_eq!(ids(&b), ["says", "faulted", "alive"]);
    block_on(b.events.expire(at(101))).unwrap();
    assert_eq!(
        ids(&b),
        ["says", "alive"],
        "an instance with pending effects stays until they are carried out"
    );
    let outbox = block_on(b.store.unflushed(10)).unwrap();
    block_on(b.store.flushed(&outbox)).unwrap();
    block_on(b.events.expire(at(101))).unwrap();
    assert_eq!(ids(&b), ["alive"]);
    drop(b);
    let b = open();
    assert_eq!(ids(&b), ["alive"]);
    assert_eq!(block_on(b.store.next_timer()).unwrap(), None);
    drop(b);
    // The counter, and the header, state and scope of one instance remain.
    let records = raw::records(folder.path()).unwrap().into_iter();
    let kept = ["history/", "trend/"];
    let state = records.filter(|(key, _)| !kept.iter().any(|prefix| key.starts_with(prefix)));
    assert_eq!(state.count(), 4);
}

#[test]
fn the_oldest_history_is_dropped() {
    for durable in [false, true] {
        let folder = tempfile::tempdir().unwrap();
        let options = Options {
            history_max: 3,
            ..Options::default()
        };
        let b = backend(match durable {
            true => Embedded::open(folder.path(), options).unwrap(),
            false => Embedded::memory_with(options),
        });
        let found = block_on(async {
            b.create(new("a")).await;
            let entry = |fork| HistoryEntry {
                data: None,
                at: at(0),
                scope: ScopeId::root(),
                event: Event::Joined {
                    fork,
                    in_state: None,
                },
                data_until: None,
            };
            // The last commit has more entries than may be kept.
            let (mut found, mut gone) = (Vec::new(), Vec::new());
            for forks in [0..2, 2..4, 4..6, 6..11] {
                let held = b.hold(&root("a")).await;
                let Record::Scope(scope) = held.record else {
                    panic!("no record")
                };
                let commit = Commit {
                    lease: held.lease,
                    scope,
                    consumed: vec![],
                    refused: Vec::new(),
                    history: forks.map(entry).collect(),
                    commands: vec![],
                    at: at(0),
                    require_unchanged_inbox: false,
                    fits: false,
                    release: true,
                    lease_ms: 1,
                };
                b.store.commit(commit).await.unwrap();
                let kept = b.store.kept_history(&InstanceId::new("a")).await.unwrap();
                let history = kept.entries;
                gone.push(kept.gone);
                let forks = history.into_iter().map(|entry| match entry.event {
                    Event::Joined { fork, .. } => fork,
                    _ => panic!("{entry:?}"),
                });
                found.push(forks.collect::<Vec<_>>());
            }
            assert_eq!(gone, [0, 1, 3, 8]);
            found
        });
        let wanted = [vec![0, 1], vec![1, 2, 3], vec![3, 4, 5], vec![8, 9, 10]];
        assert_eq!(found, wanted, "durable: {durable}");
        drop(b);
        if durable {
            assert_eq!(history_records(folder.path()), 1);
        }
    }
}

fn history_records(folder: &std::path::Path) -> usize {
    let records = raw::records(folder).unwrap().into_iter();
    records
        .filter(|(key, _)| key.starts_with("history/"))
        .count()
}

#[test]
fn an_inbox_has_a_limit() {
    let store = Embedded::memory_with(Options {
        inbox_max: 2,
        ..Options::default()
    });
    let add = |call| {
        let input = Input::CallDone {
            call,
            result: Ok(Data::NULL),
        };
        block_on(store.add_input(&root("a"), InboxItem::new(input)))
    };
    block_on(store.create(new("a"))).unwrap();
    assert!(add(1).unwrap() && add(2).unwrap());
    let Err(Error::TooLarge {
        what,
        size: 2,
        limit: 2,
    }) = add(3)
    else {
        panic!("it was accepted")
    };
    assert_eq!(what, "the inbox of a/r");
    let input = Input::Waits {
        fork: 1,
        said: Said {
            index: 0,
            turn: 1,
            waits: true,
        },
    };
    let of_branch = block_on(store.add_input(&root("a"), InboxItem::new(input)));
    assert!(of_branch.unwrap(), "branches are limited already");
    assert!(!add(2).unwrap());
}

#[test]
fn the_numbers_of_kept_and_known_events_are_limited() {
    let options = Options {
        retain_max: 2,
        dedup_max: 2,
        sets_max: 1,
        ..Options::default()
    };
    let b = backend(Embedded::memory_with(options));
    let kept = [filter("t", &[("order", None)])];
    block_on(async {
        for id in ["1", "2", "3"] {
            let event = event(id, "t", &[("order", "7")]);
            b.ingest(&event, &kept).await;
            b.events.acknowledge(&event, at(0)).await.unwrap();
        }
        assert!(b.ingest(&event("3", "t", &[]), &[]).await.duplicate);
        let filters = vec![kept[0].clone(); 3];
        b.waiting("a", filters).await;
        assert_eq!(event_ids(&b.inbox(&root("a")).await), ["2", "3"]);
        assert!(!b.ingest(&event("1", "t", &[]), &[]).await.duplicate);
        let both = [trigger(vec![filter("x", &[]), filter("y", &[])], false)];
        b.events
            .ingest(&event("4", "x", &[]), Listening::new(&both, &[]), at(0))
            .await
            .unwrap();
        assert_eq!(
            b.events
                .ingest(&event("6", "y", &[]), Listening::new(&both, &[]), at(0))
                .await
                .unwrap()
                .starts
                .len(),
            1,
            "an event that completes a set needs no room"
        );
        b.events
            .ingest(&event("7", "x", &[]), Listening::new(&both, &[]), at(0))
            .await
            .unwrap();
        // The older of two sets makes room.
        let mut starts = Vec::new();
        for (id, kind) in [("5", "x"), ("8", "y"), ("9", "y")] {
            let event = event(id, kind, &[]);
            let listening = Listening::new(&both, &[]);
            let ingested = b.events.ingest(&event, listening, at(0)).await.unwrap();
            starts.extend(ingested.starts);
        }
        let [start] = &starts[..] else {
            panic!("{starts:?}")
        };
        let ids = start.events.iter().map(|start| &*start.event.id);
        assert_eq!(Vec::from_iter(ids), ["5", "8"]);
    });
}

/// However many instances complete, faulted ones stay until they expire.
#[test]
fn completed_instances_do_not_evict_faulted_ones() {
    let folder = tempfile::tempdir().unwrap();
    let options = Options {
        keep_ended_ms: 100,
        keep_ended_max: 2,
        keep_faulted_ms: 500,
        ..Options::default()
    };
    let open = || backend(Embedded::open(folder.path(), options.clone()).unwrap());
    let b = open();
    block_on(async {
        end(&b, "bad", EndStatus::Faulted).await;
        for number in 0..20 {
            end(&b, &format!("i{number}"), EndStatus::Completed).await;
        }
        b.events.expire(at(0)).await.unwrap();
    });
    assert_eq!(ids(&b), ["i19", "i18", "bad"]);
    drop(b);
    let b = open();
    block_on(b.events.expire(at(101))).unwrap();
    assert_eq!(ids(&b), ["bad"]);
    block_on(b.events.expire(at(500))).unwrap();
    assert_eq!(ids(&b), ["bad"]);
    block_on(b.events.expire(at(501))).unwrap();
    assert!(ids(&b).is_empty());
}

/// The retention in a definition overrides the settings.
#[test]
fn a_definition_may_set_the_retention_of_its_instances() {
    let folder = tempfile::tempdir().unwrap();
    let options = Options {
        keep_ended_ms: 100,
        keep_ended_max: 3,
        keep_faulted_ms: 100,
        ..Options::default()
    };
    let open = || backend(Embedded::open(folder.path(), options.clone()).unwrap());
    let b = open();
    let retention = Retention {
        completed: Some(500),
        faulted: Some(50),
        ..Retention::default()
    };
    block_on(async {
        for (id, status) in [
            ("long", EndStatus::Completed),
            ("brief", EndStatus::Faulted),
            ("usual", EndStatus::Cancelled),
        ] {
            let mut new = new(id);
            new.header.retention = retention;
            b.create(new).await;
            let end = Command::End {
                status,
                output: None,
                error: None,
            };
            let cursor = match status {
                EndStatus::Faulted => blocked(Work::Begin),
                _ => Cursor::Ended,
            };
            b.act(&root(id), change(vec![end]).at(cursor)).await;
        }
        end(&b, "other", EndStatus::Completed).await;
        b.events.expire(at(50)).await.unwrap();
    });
    assert_eq!(ids(&b), ["other", "usual", "brief", "long"]);
    block_on(b.events.expire(at(51))).unwrap();
    assert_eq!(ids(&b), ["other", "usual", "long"]);
    drop(b);
    let b = open();
    block_on(b.events.expire(at(101))).unwrap();
    assert_eq!(ids(&b), ["long"]);
    block_on(b.events.expire(at(500))).unwrap();
    assert_eq!(ids(&b), ["long"]);
    block_on(b.events.expire(at(501))).unwrap();
    assert!(ids(&b).is_empty());
}

/// The content of a store is private to its owner.
#[cfg(unix)]
#[test]
fn a_new_folder_is_private_to_its_owner() {
    use std::os::unix::fs::PermissionsExt;
    let rights = |path: &std::path::Path| {
        let found = std::fs::metadata(path).unwrap();
        found.permissions().mode() & 0o777
    };
    let parent = tempfile::tempdir().unwrap();
    let folder = parent.path().join(".swirl/store");
    drop(Embedded::open(&folder, Options::default()).unwrap());
    assert_eq!(rights(&folder), 0o700);
    assert_eq!(rights(&parent.path().join(".swirl")), 0o700);

    let shared = parent.path().join("shared");
    std::fs::create_dir(&shared).unwrap();
    let before = rights(&shared);
    drop(Embedded::open(&shared, Options::default()).unwrap());
    assert_eq!(rights(&shared), before, "existing permissions are kept");
    // A copy that was put back is readable by everyone.
    let data = shared.join("records");
    std::fs::set_permissions(&data, std::fs::Permissions::from_mode(0o755)).unwrap();
    drop(Embedded::open(&shared, Options::default()).unwrap());
    assert_eq!((rights(&data), rights(&shared)), (0o700, before));
}

/// No sweep comes.
#[test]
fn an_event_is_kept_no_longer_than_its_time() {
    let store = Embedded::memory_with(Options {
        retain_ms: 100,
        ..Options::default()
    });
    let b = backend(store);
    let kept = [filter("t", &[("order", None)])];
    let event = event("1", "t", &[("order", "1")]);
    for (id, ms, got) in [("in time", -100, 1), ("late", -101, 0)] {
        let listening = Listening::new(&[], &kept);
        block_on(b.events.ingest(&event, listening, at(ms))).unwrap();
        block_on(b.events.acknowledge(&event, at(ms))).unwrap();
        // Commits are at 0.
        block_on(b.waiting(id, kept.to_vec()));
        let inbox = block_on(b.inbox(&root(id)));
        assert_eq!(inbox.len(), got, "{id}");
        block_on(b.events.expire(at(1_000_000_000_000))).unwrap();
    }
}
