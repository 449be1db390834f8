//! Instances that have already ended when they are created.

use swirl_model::data;
use swirl_model::event::{Command, Event, HistoryEntry};
use swirl_model::ids::{InstanceId, ScopeId};
use swirl_model::instance::{EndStatus, Status};
use swirl_model::scope::Cursor;
use swirl_ports::{Created, Filter, InlineRun, NewRecords, Removed};

use crate::Backend;
use crate::kit::*;

/// This many history entries.
pub fn history(entries: u32) -> Vec<HistoryEntry> {
    let entry = |fork| HistoryEntry {
        data: None,
        at: at(7),
        scope: ScopeId::root(),
        event: Event::Joined {
            fork,
            in_state: None,
        },
        data_until: None,
    };
    (0..entries).map(entry).collect()
}

pub fn inline_run(id: &str, entries: u32) -> NewRecords {
    let mut new = new(id);
    let mut root = new.root.clone();
    root.cursor = Cursor::Ended;
    root.data = data!({"end": true});
    new.inline_run = Some(Box::new(InlineRun {
        root,
        history: history(entries),
        status: EndStatus::Completed,
        output: Some(data!({"out": 1})),
        error: None,
        at: at(7),
        effects: Vec::new(),
    }));
    new
}

/// The results are the same as for an instance that was driven to its end.
pub async fn an_inline_run_has_ended(b: Backend) {
    b.create(new("driven")).await;
    let end = Command::End {
        status: EndStatus::Completed,
        output: Some(data!({"out": 1})),
        error: None,
    };
    b.act(&root("driven"), change(vec![end]).at(Cursor::Ended))
        .await;
    let mut wanted = inline_run("a", 1200);
    wanted.header.key = Some("k".to_owned());
    b.create(wanted).await;
    let id = InstanceId::new("a");
    let found = b.store.instance(&id).await.unwrap().unwrap();
    assert_eq!(found.header.key.as_deref(), Some("k"));
    assert_eq!(found.state.status, Status::Completed);
    assert_eq!(found.state.output, Some(data!({"out": 1})));
    assert_eq!(found.state.ended_at, Some(at(7)));
    assert!(found.state.error.is_none() && !found.state.suspended);
    assert_eq!(b.store.history(&id).await.unwrap(), history(1200));
    let scopes = b.store.scopes(&id).await.unwrap();
    let driven = b.store.scopes(&InstanceId::new("driven")).await.unwrap();
    assert_eq!((scopes.len(), scopes[0].rev), (1, driven[0].rev));
    assert_eq!(scopes[0].data, data!({"end": true}));
    assert_eq!(b.store.view(&id).await.unwrap().unwrap().1, []);

    assert!(b.is_gone(&root("a")).await);
    assert!(b.store.runnable(10).await.unwrap().is_empty());
    assert!(b.store.unflushed(10).await.unwrap().is_empty());
    assert_eq!(b.store.suspend(&id, true, at(8)).await.unwrap(), None);
    for (status, wanted) in [
        (Status::Running, &[][..]),
        (Status::Completed, &["a", "driven"]),
    ] {
        let filter = Filter {
            statuses: vec![status],
            limit: 10,
            ..Filter::default()
        };
        let found = b.store.list(&filter).await.unwrap();
        let mut found: Vec<_> = found.iter().map(|line| line.header.id.as_str()).collect();
        found.sort_unstable();
        assert_eq!(found, wanted, "{status:?}");
    }
}

pub async fn an_inline_run_may_exist_already(b: Backend) {
    // A running instance isn't affected by an ended one.
    b.create(new("a")).await;
    let again = b.store.create(inline_run("a", 3)).await.unwrap();
    assert_eq!(again, Created::Exists { conflict: false });
    let id = InstanceId::new("a");
    let found = b.store.instance(&id).await.unwrap().unwrap();
    assert_eq!(found.state.status, Status::Running);
    assert_eq!(b.store.history(&id).await.unwrap(), []);
    assert_eq!(b.store.runnable(10).await.unwrap(), [root("a")]);

    b.create(inline_run("b", 3)).await;
    for inline_run in [inline_run("b", 5), new("b")] {
        let again = b.store.create(inline_run).await.unwrap();
        assert_eq!(again, Created::Exists { conflict: false });
    }
    let mut other = inline_run("b", 3);
    other.header.input = data!({"n": 2});
    let again = b.store.create(other).await.unwrap();
    assert_eq!(again, Created::Exists { conflict: true });
    let id = InstanceId::new("b");
    assert_eq!(b.store.history(&id).await.unwrap(), history(3));
    assert_eq!(b.store.runnable(10).await.unwrap(), [root("a")]);
}

/// None of its effects are lost if the process dies right after its creation.
pub async fn effects_of_an_inline_run_stay_until_flushed(b: Backend) {
    let commands = ["1", "2", "3"].map(|number| Command::Publish(event(number, "t", &[])));
    let made = || {
        let mut new = inline_run("a", 3);
        let run = new.inline_run.as_mut().unwrap();
        run.effects = commands.to_vec();
        new
    };
    let Created::WithEffects(outbox) = b.store.create(made()).await.unwrap() else {
        panic!("its effects are not there")
    };
    let sent: Vec<Command> = outbox.iter().map(|entry| entry.command.clone()).collect();
    assert_eq!(sent, commands);
    let id = InstanceId::new("a");
    let found = b.store.instance(&id).await.unwrap().unwrap();
    assert_eq!(found.state.status, Status::Completed);
    assert_eq!(b.store.unflushed(10).await.unwrap(), outbox);
    let again = b.store.create(made()).await.unwrap();
    assert_eq!(again, Created::Exists { conflict: false });
    assert_eq!(b.store.unflushed(10).await.unwrap(), outbox);
    assert_eq!(b.store.remove(&id).await.unwrap(), Removed::Busy);
    b.store.flushed(&outbox[..1]).await.unwrap();
    assert_eq!(b.store.unflushed(10).await.unwrap(), outbox[1..]);
    b.store.flushed(&outbox).await.unwrap();
    assert!(b.store.unflushed(10).await.unwrap().is_empty());
    assert_eq!(b.store.remove(&id).await.unwrap(), Removed::Done);
}
