//! Instances that are moved to another version of their definition.

use swirl_model::data;
use swirl_model::event::{Command, Event, EventMatch, HistoryEntry, Input, Subscription};
use swirl_model::ids::{DefinitionId, InstanceId, ScopeId};
use swirl_model::instance::{Header, Status};
use swirl_model::scope::{BranchResult, ForkOrigin, Merge, Role, Scope, Work};
use swirl_model::workflow::{EventId, PathId, StateId};
use swirl_ports::execution::Record;
use swirl_ports::{Acquired, Filter, Migrated, Migration, Whole};

use crate::Backend;
use crate::kit::*;

async fn whole(b: &Backend, id: &str) -> Whole {
    let whole = b.store.whole(&InstanceId::new(id)).await.unwrap();
    whole.unwrap()
}

fn line() -> HistoryEntry {
    HistoryEntry {
        at: at(5),
        scope: ScopeId::root(),
        event: Event::Operated {
            action: "migrate".into(),
            by: None,
            reason: None,
            state: None,
            from: Some("1.0.0".to_owned()),
            to: Some("2.0.0".to_owned()),
            batch: None,
            with: None,
        },
        data: None,
        data_until: None,
    }
}

/// The same in the next version, which has the same numbers.
fn moved(whole: Whole) -> Migration {
    let header = Header {
        definition: DefinitionId {
            version: "2.0.0".into(),
            ..whole.header.definition.clone()
        },
        version: "2.0.0".to_owned(),
        ..(*whole.header).clone()
    };
    let scopes = whole.scopes.into_iter();
    Migration {
        header,
        scopes: scopes.map(|scope| (scope, Vec::new())).collect(),
        forks: whole.forks,
        inbox: whole.inbox,
        entry: line(),
        mark: None,
        read: whole.read,
    }
}

async fn migrate(b: &Backend, id: &str, migration: Migration) -> Migrated {
    let id = InstanceId::new(id);
    b.store.migrate(&id, migration).await.unwrap()
}

fn answer(call: u32) -> Input {
    Input::CallDone {
        call,
        result: Ok(data!(call)),
    }
}

async fn listed(b: &Backend, version: &str) -> usize {
    let filter = Filter {
        workflow: Some("flow".to_owned()),
        version: Some(version.to_owned()),
        limit: 10,
        ..Filter::default()
    };
    b.store.list(&filter).await.unwrap().len()
}

/// An instance with three branches: one sleeps, one is done, and one has not begun.
async fn forking(b: &Backend, id: &str) {
    b.create(new(id)).await;
    let Command::Fork(mut wide) = fork("r", 1, 3, 3, 3) else {
        panic!("no fork")
    };
    // Large enough for stores to keep only the difference.
    let list: Vec<_> = (0..400).map(|n| data!({"id": n})).collect();
    wide.data.set("items", swirl_model::Data::array(list));
    let begun = change(vec![Command::Fork(wide)]).at(forked(1, 3));
    b.act(&root(id), begun).await;
    let sleeps = change(vec![Command::Arm(timer(4, 50))])
        .at(blocked(Work::Sleep))
        .timers(vec![timer(4, 50)]);
    b.act(&scope(id, "r.1.0"), sleeps).await;
    let result = BranchResult::Done {
        merges: vec![Merge::new(Some(PathId(3)), data!(7))],
        result: None,
        ended: None,
        context: None,
    };
    b.act(
        &scope(id, "r.1.1"),
        Change {
            cursor: Some(swirl_model::scope::Cursor::Ended),
            ..change(vec![Command::Report(result)])
        },
    )
    .await;
}

pub async fn an_instance_moves_as_a_whole(b: Backend) {
    let id = InstanceId::new("a");
    assert!(b.store.whole(&id).await.unwrap().is_none());
    forking(&b, "a").await;
    assert_eq!(
        (listed(&b, "1.0.0").await, listed(&b, "2.0.0").await),
        (1, 0)
    );
    let before = whole(&b, "a").await;
    assert_eq!((before.status, before.suspended), (Status::Running, false));
    assert_eq!(
        *before.header,
        *b.store.instance(&id).await.unwrap().unwrap().header
    );
    let names: Vec<&str> = before
        .scopes
        .iter()
        .map(|scope| scope.id.as_str())
        .collect();
    assert_eq!(names, ["r", "r.1.0"]);
    assert!(before.held.is_empty() && before.inbox.is_empty());
    let [fork] = &before.forks[..] else {
        panic!("{:?}", before.forks)
    };
    assert_eq!((fork.total, fork.open, fork.results.len()), (3, 3, 1));
    let data = before.scopes[1].data.to_string();

    let mut migration = moved(before);
    for (scope, _) in &mut migration.scopes {
        if let Role::Branch { index, .. } = scope.role {
            scope.role = Role::Branch {
                state: StateId(9),
                index,
            };
        }
    }
    let fork = &mut migration.forks[0];
    fork.origin = ForkOrigin::Parallel(StateId(9));
    let BranchResult::Done { merges, .. } = fork.results.get_mut(&1).unwrap() else {
        panic!("it isn't done")
    };
    merges[0].to = Some(PathId(12));
    let Migrated::Done(wake) = migrate(&b, "a", migration).await else {
        panic!("it isn't moved")
    };
    assert_eq!(wake, [scope("a", "r.1.2")], "the branch that has not begun");

    let instance = b.store.instance(&id).await.unwrap().unwrap();
    assert_eq!(&*instance.header.definition.version, "2.0.0");
    assert_eq!(
        (listed(&b, "1.0.0").await, listed(&b, "2.0.0").await),
        (0, 1)
    );
    let after = whole(&b, "a").await;
    let branch: &Scope = &after.scopes[1];
    assert_eq!(branch.data.to_string(), data);
    assert_eq!(
        branch.role,
        Role::Branch {
            state: StateId(9),
            index: 0
        }
    );
    assert_eq!((after.scopes[0].rev, branch.rev), (2, 2));
    let due = b.store.due_timers(at(60), 10).await.unwrap();
    assert_eq!(due.len(), 1, "its timer is still armed");
    let history = b.store.history(&id).await.unwrap();
    assert_eq!(history, [line()]);

    // The others continue in the new version.
    for (name, is_new) in [("r.1.0", false), ("r.1.2", true)] {
        let mut held = b.hold_lazily(&scope("a", name)).await;
        assert_eq!(&*held.header.definition.version, "2.0.0");
        match &held.record {
            Record::Branch { fork, .. } => {
                assert!(is_new);
                assert_eq!(fork.origin, ForkOrigin::Parallel(StateId(9)));
            }
            Record::Scope(scope) => assert_eq!((scope.rev, is_new), (2, false)),
        }
        let result = change(vec![Command::Report(done())]).at(swirl_model::scope::Cursor::Ended);
        b.commit(&mut held, result).await;
    }
    let joined = b.inbox(&root("a")).await;
    let [item] = &joined[..] else {
        panic!("{joined:?}")
    };
    let Input::Joined { results, .. } = &item.input else {
        panic!("{item:?}")
    };
    let BranchResult::Done { merges, .. } = &results[1].1 else {
        panic!("{results:?}")
    };
    assert_eq!((results.len(), merges[0].to), (3, Some(PathId(12))));
}

pub async fn an_instance_that_changes_is_not_moved(b: Backend) {
    forking(&b, "a").await;
    // A commit, an input, and a holder that may commit.
    let seen = moved(whole(&b, "a").await);
    b.act(&scope("a", "r.1.0"), change(vec![])).await;
    assert_eq!(migrate(&b, "a", seen).await, Migrated::Changed);
    let seen = moved(whole(&b, "a").await);
    b.add(&root("a"), answer(1)).await;
    assert_eq!(migrate(&b, "a", seen).await, Migrated::Changed);
    let seen = moved(whole(&b, "a").await);
    let held = b.hold(&scope("a", "r.1.2")).await;
    assert_eq!(migrate(&b, "a", seen).await, Migrated::Changed);
    let now = whole(&b, "a").await;
    assert_eq!(now.held, [ScopeId::new("r.1.2")]);
    assert_eq!(migrate(&b, "a", moved(now)).await, Migrated::Changed);
    b.release(&held).await;
    assert_eq!(listed(&b, "2.0.0").await, 0);
    assert!(
        b.store
            .history(&InstanceId::new("a"))
            .await
            .unwrap()
            .is_empty()
    );
    let now = moved(whole(&b, "a").await);
    assert!(matches!(migrate(&b, "a", now).await, Migrated::Done(_)));
    let other = moved(whole(&b, "a").await);
    assert_eq!(migrate(&b, "x", other).await, Migrated::Unknown);
}

/// Whether or not the store acquires scopes for reading: records read in the former version are void.
pub async fn a_reader_of_the_former_version_commits_nothing(b: Backend) {
    forking(&b, "a").await;
    for name in ["r.1.0", "r.1.2"] {
        let mut late = b.hold_lazily(&scope("a", name)).await;
        if late.lease.is_taken() {
            assert_eq!(
                migrate(&b, "a", moved(whole(&b, "a").await)).await,
                Migrated::Changed
            );
            b.release(&late).await;
            continue;
        }
        let now = moved(whole(&b, "a").await);
        assert!(matches!(migrate(&b, "a", now).await, Migrated::Done(_)));
        let leaves = Change {
            release: true,
            ..change(vec![]).at(blocked(Work::Sleep))
        };
        assert!(b.try_commit(&mut late, leaves).await.is_none(), "{name}");
        // The same for a commit that changes timers.
        let mut late = b.hold_lazily(&scope("a", name)).await;
        let now = moved(whole(&b, "a").await);
        assert!(matches!(migrate(&b, "a", now).await, Migrated::Done(_)));
        let arms = change(vec![Command::Arm(timer(8, 90))]).at(blocked(Work::Sleep));
        assert!(b.try_commit(&mut late, arms).await.is_none(), "{name}");
    }
    let next = b.store.read_snapshot(&scope("a", "r.1.2"), LEASE_MS).await;
    assert!(
        matches!(next.unwrap(), Acquired::Held(_)),
        "nobody holds it"
    );
}

pub async fn waits_follow_the_version(b: Backend) {
    let waiting = async |id: &str| {
        let with = subscription(1, vec![filter("was", &[])]);
        b.create(new(id)).await;
        let waits = change(vec![Command::Subscribe(with.clone())]);
        let mut held = b.hold(&root(id)).await;
        let mut scope = scope_of(&held.record);
        scope.wait = Some(with);
        held.record = Record::Scope(scope);
        b.commit(&mut held, waits).await;
        b.release(&held).await;
    };
    // One event has another number, and one wait is for another event.
    waiting("a").await;
    let mut same = moved(whole(&b, "a").await);
    let wait = Subscription {
        slots: vec![swirl_model::event::Slot {
            slot: 0,
            filters: vec![EventMatch {
                def: EventId(5),
                ..filter("was", &[])
            }],
        }],
        wait: 1,
    };
    same.scopes[0].1 = vec![Command::Unsubscribe(1), Command::Subscribe(wait)];
    assert!(matches!(migrate(&b, "a", same).await, Migrated::Done(_)));
    b.ingest(&event("1", "was", &[]), &[]).await;
    let items = b.inbox(&root("a")).await;
    assert!(
        matches!(
            items[..],
            [swirl_ports::InboxItem {
                input: Input::Event {
                    wait: 1,
                    def: EventId(5),
                    ..
                },
                ..
            }]
        ),
        "{items:?}"
    );

    waiting("b").await;
    let kept = [filter("is", &[("order", None)])];
    b.ingest(&event("2", "is", &[("order", "7")]), &kept).await;
    let mut other = moved(whole(&b, "b").await);
    let is = subscription(2, vec![filter("is", &[("order", Some("7"))])]);
    other.scopes[0].1 = vec![
        Command::Unsubscribe(1),
        Command::Correlate(vec![("order".into(), "7".to_owned())]),
        Command::Subscribe(is),
    ];
    let Migrated::Done(wake) = migrate(&b, "b", other).await else {
        panic!("it isn't moved")
    };
    assert_eq!(wake, [root("b")], "the event came before");
    assert_eq!(event_ids(&b.inbox(&root("b")).await), ["2"]);
    b.ingest(&event("3", "was", &[]), &[]).await;
    assert_eq!(event_ids(&b.inbox(&root("b")).await), ["2"]);
}

pub async fn a_marked_migration_is_carried_out_once(b: Backend) {
    b.create(new("a")).await;
    b.act(&root("a"), change(vec![]).at(blocked(Work::Sleep)))
        .await;
    b.add(&root("a"), answer(7)).await;
    let marked = |whole: Whole| Migration {
        mark: Some("m".to_owned()),
        ..moved(whole)
    };
    let first = marked(whole(&b, "a").await);
    let Migrated::Done(wake) = migrate(&b, "a", first).await else {
        panic!("it isn't moved")
    };
    assert_eq!(wake, [root("a")], "its input still waits");
    assert!(b.store.is_marked(&InstanceId::new("a"), "m").await.unwrap());
    let again = marked(whole(&b, "a").await);
    assert_eq!(again.inbox.len(), 1);
    assert_eq!(migrate(&b, "a", again).await, Migrated::Known);
    assert_eq!(
        b.store.history(&InstanceId::new("a")).await.unwrap(),
        [line()]
    );
    let scopes = b.store.scopes(&InstanceId::new("a")).await.unwrap();
    assert_eq!(scopes[0].rev, 2);
}

/// Failed instances keep their position among the failed ones, and the inputs that wait for the operator.
pub async fn a_failed_instance_moves(b: Backend) {
    b.create(new("a")).await;
    let failed = Command::End {
        status: swirl_model::instance::EndStatus::Faulted,
        output: None,
        error: Some(fault()),
    };
    b.act(&root("a"), change(vec![failed]).at(blocked(Work::Begin)))
        .await;
    let now = whole(&b, "a").await;
    assert_eq!(now.status, Status::Faulted);
    let Migrated::Done(wake) = migrate(&b, "a", moved(now)).await else {
        panic!("it isn't moved")
    };
    assert!(wake.is_empty());
    let filter = Filter {
        statuses: vec![Status::Faulted],
        version: Some("2.0.0".to_owned()),
        limit: 10,
        ..Filter::default()
    };
    assert_eq!(b.store.list(&filter).await.unwrap().len(), 1);
    assert!(b.is_busy(&root("a")).await, "it has failed");
    b.add(&root("a"), Input::Retry).await;
    let held = b.hold(&root("a")).await;
    assert_eq!(&*held.header.definition.version, "2.0.0");
    assert_eq!(held.inbox.len(), 1);
}
