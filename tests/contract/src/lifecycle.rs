//! Instances from creation to their end, and their listings.

use swirl_model::event::{Command, Event, HistoryEntry, Input};
use swirl_model::ids::{InstanceId, ScopeRef};
use swirl_model::instance::{EndStatus, Status};
use swirl_model::scope::{BranchResult, Cursor, Role, Scope, Work};
use swirl_model::workflow::ListId;
use swirl_model::{Data, data};
use swirl_ports::{Acquired, Commit, Committed, Created, Filter, Removed};

use crate::Backend;
use crate::kit::*;

fn end(status: EndStatus) -> Command {
    let error = (status == EndStatus::Faulted).then(fault);
    let output = (status == EndStatus::Completed).then(|| data!({"out": 1}));
    Command::End {
        status,
        output,
        error,
    }
}

async fn status(b: &Backend, id: &str) -> Status {
    let id = InstanceId::new(id);
    let status = b.store.instance(&id).await.unwrap().unwrap().state.status;
    let has_ended = b.store.has_ended(&id).await.unwrap();
    assert_eq!(has_ended, Some(status.ended()));
    status
}

pub async fn a_key_identifies_one_instance(b: Backend) {
    let a = InstanceId::new("a");
    assert_eq!(b.store.has_ended(&a).await.unwrap(), None);
    b.create(new("a")).await;
    assert_eq!(
        b.store.create(new("a")).await.unwrap(),
        Created::Exists { conflict: false }
    );
    let mut other = new("a");
    other.header.input = data!({"n": 2});
    assert_eq!(
        b.store.create(other).await.unwrap(),
        Created::Exists { conflict: true }
    );
    let mut other = new("a");
    other.header.definition = definition("other");
    assert_eq!(
        b.store.create(other).await.unwrap(),
        Created::Exists { conflict: true }
    );
    let found = b
        .store
        .instance(&InstanceId::new("a"))
        .await
        .unwrap()
        .unwrap();
    assert_eq!(found.header.input, data!({"n": 1}));
    assert!(
        b.store
            .instance(&InstanceId::new("b"))
            .await
            .unwrap()
            .is_none()
    );
}

pub async fn suspended_instances_do_not_continue(b: Backend) {
    let id = InstanceId::new("a");
    assert_eq!(b.store.suspend(&id, true, None).await.unwrap(), None);
    b.create(new("a")).await;
    let held = b.hold(&root("a")).await;
    assert!(b.store.is_active(&id).await.unwrap());
    let done = b.store.suspend(&id, true, None).await.unwrap().unwrap();
    assert_eq!(done.wake, []);
    // Until it is carried out, the outbox says that its sub-workflows must follow.
    let [entry] = &done.outbox[..] else {
        panic!("{done:?}");
    };
    assert_eq!(entry.command, Command::SuspendAwaited);
    assert_eq!(b.store.unflushed(10).await.unwrap(), done.outbox);
    b.store.flushed(&done.outbox).await.unwrap();
    assert!(b.store.unflushed(10).await.unwrap().is_empty());
    assert!(!b.store.is_active(&id).await.unwrap());
    b.add(
        &root("a"),
        Input::CallDone {
            call: 1,
            result: Ok(Data::NULL),
        },
    )
    .await;
    assert!(
        b.store
            .drain(&held.lease)
            .await
            .unwrap()
            .unwrap()
            .0
            .is_empty()
    );
    b.release(&held).await;
    assert!(b.is_busy(&root("a")).await);
    assert!(b.store.runnable(10).await.unwrap().is_empty());
    // Only an operator's inputs are still delivered.
    b.add(
        &root("a"),
        Input::Cancel {
            status: EndStatus::Cancelled,
        },
    )
    .await;
    assert_eq!(b.store.runnable(10).await.unwrap(), [root("a")]);
    let held = b.hold(&root("a")).await;
    assert_eq!(held.inbox.len(), 1);
    b.release(&held).await;
    let done = b.store.suspend(&id, false, None).await.unwrap().unwrap();
    assert_eq!(done.wake, [root("a")]);
    b.store.flushed(&done.outbox).await.unwrap();
    assert_eq!(b.inbox(&root("a")).await.len(), 2);
    b.act(
        &root("a"),
        change(vec![end(EndStatus::Cancelled)]).at(Cursor::Ended),
    )
    .await;
    assert_eq!(b.store.suspend(&id, true, None).await.unwrap(), None);
}

/// Whether an instance is suspended because of another one or by itself, the last command counts.
pub async fn a_suspension_replaces_an_earlier_one(b: Backend) {
    let (id, other) = (InstanceId::new("a"), InstanceId::new("b"));
    b.create(new("a")).await;
    let suspend = async |on: bool, with: Option<&InstanceId>| {
        let done = b.store.suspend(&id, on, with).await.unwrap();
        done.unwrap().outbox
    };
    let own = suspend(false, None).await;
    let followed = suspend(true, Some(&other)).await;
    let with = other.clone();
    assert_eq!(
        followed[0].command,
        Command::FollowSuspended { with, on: true }
    );
    let left = |outbox: &[swirl_ports::OutboxEntry]| [&own[..], outbox].concat();
    assert_eq!(b.store.unflushed(10).await.unwrap(), left(&followed));
    let followed = suspend(false, Some(&other)).await;
    assert_eq!(b.store.unflushed(10).await.unwrap(), left(&followed));
    let last = suspend(true, None).await;
    assert_eq!(b.store.unflushed(10).await.unwrap(), left(&last));
    // The process that left it may still confirm it.
    b.store.flushed(&followed).await.unwrap();
    assert_eq!(b.store.unflushed(10).await.unwrap(), left(&last));
}

pub async fn null_is_an_output(b: Backend) {
    for (id, output) in [("a", Some(Data::NULL)), ("b", None)] {
        b.create(new(id)).await;
        let end = Command::End {
            status: EndStatus::Completed,
            output: output.clone(),
            error: None,
        };
        b.act(&root(id), change(vec![end]).at(Cursor::Ended)).await;
        let found = b.store.instance(&InstanceId::new(id)).await;
        assert_eq!(found.unwrap().unwrap().state.output, output, "{id}");
    }
    // An iteration may return null, or nothing.
    for (id, result) in [("c", Some(Data::NULL)), ("d", None)] {
        b.create(new(id)).await;
        let change_to = change(vec![fork("r", 1, 1, 1, 1)]).at(forked(1, 1));
        b.act(&root(id), change_to).await;
        let report = Command::Report(BranchResult::Done {
            merges: Vec::new(),
            result: result.clone(),
            ended: None,
            context: None,
        });
        b.act(&scope(id, "r.1.0"), change(vec![report]).at(Cursor::Ended))
            .await;
        let inbox = b.inbox(&root(id)).await;
        let [item] = inbox.as_slice() else {
            panic!("{inbox:?}")
        };
        let Input::Joined { results, .. } = &item.input else {
            panic!("{item:?}")
        };
        assert!(
            matches!(&results[0].1, BranchResult::Done { result: found, .. } if *found == result),
            "{id}: {results:?}"
        );
    }
}

pub async fn an_end_closes_remaining_work(b: Backend) {
    b.create(new("a")).await;
    let mut held = b.hold(&root("a")).await;
    b.commit(
        &mut held,
        change(vec![fork("r", 1, 2, 2, 2)]).at(forked(1, 2)),
    )
    .await;
    let mut branch = b.hold(&scope("a", "r.1.0")).await;
    b.commit(&mut branch, change(vec![]).at(blocked(Work::Sleep)))
        .await;
    let outcome = b.commit(
        &mut held,
        change(vec![end(EndStatus::Completed)]).at(Cursor::Ended),
    );
    assert_eq!(outcome.await.wake, [scope("a", "r.1.0")]);
    let found = b
        .store
        .instance(&InstanceId::new("a"))
        .await
        .unwrap()
        .unwrap()
        .state;
    assert_eq!(found.status, Status::Completed);
    assert_eq!(
        (found.output, found.ended_at),
        (Some(data!({"out": 1})), Some(at(0)))
    );
    assert!(b.is_gone(&scope("a", "r.1.1")).await);
    let mut late = b.store.drain(&branch.lease).await.unwrap().unwrap();
    assert!(late.1 && matches!(late.0.remove(0).input, Input::Cancel { .. }));
    // Work no longer continues, but the instance can still end.
    let dropped = change(vec![Command::Drop])
        .at(Cursor::Ended)
        .consumed(&["cancel"]);
    b.commit(&mut branch, dropped).await;
    assert_eq!(
        b.store.scopes(&InstanceId::new("a")).await.unwrap().len(),
        1
    );
    b.create(new("b")).await;
    b.act(
        &root("b"),
        change(vec![fork("r", 1, 2, 2, 2)]).at(forked(1, 2)),
    )
    .await;
    let mut branch = b.hold(&scope("b", "r.1.0")).await;
    b.commit(&mut branch, change(vec![]).at(blocked(Work::Sleep)))
        .await;
    b.act(
        &root("b"),
        change(vec![end(EndStatus::Completed)]).at(Cursor::Ended),
    )
    .await;
    assert!(b.try_commit(&mut branch, change(vec![])).await.is_none());
}

pub async fn faulted_instances_continue_after_a_retry(b: Backend) {
    let id = InstanceId::new("a");
    b.create(new("a")).await;
    b.act(
        &root("a"),
        change(vec![end(EndStatus::Faulted)]).at(blocked(Work::Begin)),
    )
    .await;
    let found = b.store.instance(&id).await.unwrap().unwrap().state;
    assert_eq!(
        (found.status, found.error),
        (Status::Faulted, Some(fault()))
    );
    assert!(!b.store.is_active(&id).await.unwrap());
    assert!(b.is_busy(&root("a")).await);
    b.add(
        &root("a"),
        Input::CallDone {
            call: 1,
            result: Ok(Data::NULL),
        },
    )
    .await;
    assert!(b.is_busy(&root("a")).await);
    b.add(&root("a"), Input::Retry).await;
    let mut held = b.hold(&root("a")).await;
    assert!(!held.closed && held.inbox.len() == 1);
    b.commit(
        &mut held,
        change(vec![Command::Reopen]).consumed(&["retry"]),
    )
    .await;
    let found = b.store.instance(&id).await.unwrap().unwrap().state;
    assert_eq!(
        (found.status, found.error, found.ended_at),
        (Status::Running, None, None)
    );
    assert_eq!(
        b.store.drain(&held.lease).await.unwrap().unwrap().0.len(),
        1
    );
    assert!(b.store.is_active(&id).await.unwrap());
}

pub async fn children_end_with_their_parent(b: Backend) {
    b.create(new("p")).await;
    b.create(child("c", "p")).await;
    let mut free = child("free", "p");
    free.ends_with_parent = false;
    b.create(free).await;
    let outcome = b
        .act(
            &root("p"),
            change(vec![end(EndStatus::Completed)]).at(Cursor::Ended),
        )
        .await;
    let expected = Command::EndInstance {
        id: InstanceId::new("c"),
        status: EndStatus::Terminated,
    };
    let commands: Vec<&Command> = outcome.outbox.iter().map(|entry| &entry.command).collect();
    assert_eq!(commands, [&expected]);
    // A late child finds that its parent has ended.
    b.create(child("late", "p")).await;
    assert_eq!(
        b.inbox(&root("late")).await[0].input,
        Input::Cancel {
            status: EndStatus::Terminated
        }
    );
}

pub async fn the_outbox_stays_until_flushed(b: Backend) {
    b.create(new("a")).await;
    let commands = vec![
        Command::Publish(event("1", "t", &[])),
        Command::Send {
            to: root("x"),
            input: Box::new(Input::Wake),
        },
    ];
    let outcome = b.act(&root("a"), change(commands.clone())).await;
    let sent: Vec<Command> = outcome
        .outbox
        .iter()
        .map(|entry| entry.command.clone())
        .collect();
    assert_eq!(sent, commands);
    assert_eq!(b.store.unflushed(10).await.unwrap(), outcome.outbox);
    assert_eq!(b.store.unflushed(1).await.unwrap(), outcome.outbox[..1]);
    b.store.flushed(&outcome.outbox[..1]).await.unwrap();
    assert_eq!(b.store.unflushed(10).await.unwrap(), outcome.outbox[1..]);
    b.store.flushed(&outcome.outbox).await.unwrap();
    assert!(b.store.unflushed(10).await.unwrap().is_empty());
}

pub async fn ended_and_faulted_instances_are_removed(b: Backend) {
    let remove = async |id: &str| b.store.remove(&InstanceId::new(id)).await.unwrap();
    assert_eq!(remove("a").await, Removed::Unknown);
    let wanted = filter("t", &[]);
    for id in ["a", "f"] {
        b.waiting(id, vec![wanted.clone()]).await;
        assert_eq!(remove(id).await, Removed::Running);
    }
    let commands = vec![
        Command::Publish(event("1", "t", &[])),
        end(EndStatus::Completed),
    ];
    let ended = b.act(&root("a"), change(commands).at(Cursor::Ended)).await;
    assert_eq!(remove("a").await, Removed::Busy, "it has to send an event");
    b.store.flushed(&ended.outbox).await.unwrap();
    let faulted = change(vec![end(EndStatus::Faulted)]).at(blocked(Work::Begin));
    b.act(&root("f"), faulted).await;
    let held = b.store.acquire(&root("f"), LEASE_MS).await.unwrap();
    assert!(matches!(held, Acquired::Busy), "{held:?}");
    for id in ["a", "f"] {
        assert_eq!(remove(id).await, Removed::Done, "{id}");
        assert_eq!(remove(id).await, Removed::Unknown, "{id}");
        let id = InstanceId::new(id);
        assert!(b.store.view(&id).await.unwrap().is_none());
        assert!(b.store.history(&id).await.unwrap().is_empty());
        assert!(!b.add(&ScopeRef::root(id), Input::Retry).await);
    }
    assert!(
        b.store
            .list(&Filter {
                limit: 10,
                ..Filter::default()
            })
            .await
            .unwrap()
            .is_empty()
    );
    // Nothing waits for it any more, and the id may be used again.
    let ingested = b.ingest(&event("2", "t", &[]), &[]).await;
    assert!(ingested.woken.is_empty(), "{ingested:?}");
    b.create(new("f")).await;
    assert_eq!(status(&b, "f").await, Status::Running);
}

pub async fn ended_scopes_are_not_listed(b: Backend) {
    let id = InstanceId::new("a");
    assert!(b.store.view(&id).await.unwrap().is_none());
    b.create(new("a")).await;
    let (instance, scopes) = b.store.view(&id).await.unwrap().unwrap();
    assert_eq!(instance.state.status, Status::Running);
    assert_eq!(scopes, b.store.scopes(&id).await.unwrap());
    assert_eq!(scopes.len(), 1);
    let last = change(vec![end(EndStatus::Completed)]).at(Cursor::Ended);
    b.act(&root("a"), last).await;
    let (instance, scopes) = b.store.view(&id).await.unwrap().unwrap();
    assert_eq!(instance.state.status, Status::Completed);
    assert_eq!(instance, b.store.instance(&id).await.unwrap().unwrap());
    assert_eq!(scopes, []);
}

pub async fn history_is_appended(b: Backend) {
    b.create(new("a")).await;
    let mut held = b.hold(&root("a")).await;
    let swirl_ports::execution::Record::Scope(mut scope) = held.record else {
        panic!("no record")
    };
    let entry = |event| HistoryEntry {
        data: None,
        at: at(5),
        scope: scope.id.clone(),
        event,
        data_until: None,
    };
    let batches = [
        vec![
            entry(Event::InstanceStarted { scheduled_at: None }),
            entry(Event::Forked {
                fork: 1,
                branches: 2,
                in_state: None,
            }),
        ],
        vec![entry(Event::Ended {
            status: EndStatus::Faulted,
            error: Some(fault()),
        })],
    ];
    for history in batches.clone() {
        let commit = Commit {
            lease: held.lease.clone(),
            scope: scope.clone(),
            consumed: vec![],
            refused: Vec::new(),
            history,
            commands: vec![],
            at: at(5),
            require_unchanged_inbox: false,
            fits: false,
            release: false,
            lease_ms: LEASE_MS,
        };
        assert!(matches!(
            b.store.commit(commit).await.unwrap(),
            Committed::Done { .. }
        ));
        scope.rev += 1;
    }
    held.record = swirl_ports::execution::Record::Scope(scope);
    assert_eq!(
        b.store.history(&InstanceId::new("a")).await.unwrap(),
        batches.concat()
    );
    assert!(
        b.store
            .history(&InstanceId::new("b"))
            .await
            .unwrap()
            .is_empty()
    );
}

/// Also entries without a commit, and the data of an entry.
pub async fn history_entries_can_be_added(b: Backend) {
    b.create(new("a")).await;
    let entry = |call: u32| HistoryEntry {
        at: at(5),
        scope: root("a").scope,
        event: Event::CallRepeated {
            function: "f".into(),
            call,
        },
        data: Some(data!({"arguments": {"n": call}})),
        data_until: None,
    };
    let id = InstanceId::new("a");
    for call in [1, 2] {
        assert!(b.store.note(&id, entry(call)).await.unwrap());
    }
    let history = b.store.history(&id).await.unwrap();
    assert_eq!(history, [entry(1), entry(2)]);
    let nobody = InstanceId::new("b");
    assert!(!b.store.note(&nobody, entry(1)).await.unwrap());
    assert!(b.store.history(&nobody).await.unwrap().is_empty());
    // The scope isn't affected: its next commit sees no change.
    b.act(
        &root("a"),
        change(vec![end(EndStatus::Faulted)]).at(blocked(Work::Begin)),
    )
    .await;
    let found = b.store.root(&id).await.unwrap().unwrap();
    assert!(found.id.is_root() && b.store.root(&nobody).await.unwrap().is_none());
    let all = Filter {
        limit: 1,
        ..Filter::default()
    };
    let listed = b.store.list(&all).await.unwrap();
    assert_eq!(
        listed[0].error,
        b.store.instance(&id).await.unwrap().unwrap().state.error
    );
    assert!(listed[0].error.is_some());
}

pub async fn detached_scopes_outlive_the_instance(b: Backend) {
    b.create(new("a")).await;
    let alone = scope("a", "r.4.0");
    let role = Role::Detached {
        list: ListId(0),
        index: 0,
    };
    let record = Scope::new(alone.scope.clone(), role, data!({}));
    let outcome = b
        .act(&root("a"), change(vec![Command::Detach(Box::new(record))]))
        .await;
    assert_eq!(outcome.wake, std::slice::from_ref(&alone));
    b.act(
        &root("a"),
        change(vec![end(EndStatus::Completed)]).at(Cursor::Ended),
    )
    .await;
    let mut held = b.hold(&alone).await;
    assert!(!held.closed);
    b.commit(&mut held, change(vec![])).await;
    b.commit(&mut held, change(vec![Command::Drop]).at(Cursor::Ended))
        .await;
    assert!(b.is_gone(&alone).await);
    assert_eq!(status(&b, "a").await, Status::Completed);
}

pub async fn runnable_scopes_are_found(b: Backend) {
    b.create(new("a")).await;
    assert_eq!(b.store.runnable(10).await.unwrap(), [root("a")]);
    let held = b.hold(&root("a")).await;
    assert!(
        b.store.runnable(10).await.unwrap().is_empty(),
        "somebody is at it"
    );
    b.release(&held).await;
    b.act(
        &root("a"),
        change(vec![fork("r", 1, 2, 2, 2)]).at(forked(1, 2)),
    )
    .await;
    let branches = [scope("a", "r.1.0"), scope("a", "r.1.1")];
    assert_eq!(b.store.runnable(10).await.unwrap(), branches);
    assert_eq!(b.store.runnable(1).await.unwrap(), branches[..1]);
    b.act(&branches[0], change(vec![]).at(blocked(Work::Sleep)))
        .await;
    b.act(&branches[1], change(vec![]).at(blocked(Work::Begin)))
        .await;
    assert_eq!(b.store.runnable(10).await.unwrap(), branches[1..]);
    b.add(
        &branches[0],
        Input::CallDone {
            call: 1,
            result: Ok(Data::NULL),
        },
    )
    .await;
    assert_eq!(b.store.runnable(10).await.unwrap(), branches);
}
