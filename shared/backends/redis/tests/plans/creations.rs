//! A creation with a first turn leaves the same data as a creation and a commit.

use swirl_contract::first_turn::ended_as;
use swirl_contract::kit::*;
use swirl_model::attribute::Attributes;
use swirl_model::event::Command;
use swirl_model::instance::EndStatus;
use swirl_ports::{Acquired, Commit, Committed, Created, ExecutionStore, Held, NewRecords};
use swirl_servers::RedisServer;

use crate::plans::operations::{Known, some_attributes, some_commit};
use crate::plans::side::{Dice, Side};

/// The same instance before its first turn.
fn before(new: &NewRecords) -> NewRecords {
    NewRecords {
        header: new.header.clone(),
        root: new.root.clone(),
        ..self::new("a")
    }
}

async fn held(side: &Side) -> Held {
    match side.store.read_snapshot(&root("a"), 1).await.unwrap() {
        Acquired::Held(held) => *held,
        other => panic!("it doesn't exist: {other:?}"),
    }
}

#[tokio::test]
async fn with_an_end() {
    for entries in [0, 5, 1200] {
        for (key, status, attributes) in [
            (None, EndStatus::Completed, Attributes::new()),
            (None, EndStatus::Completed, some_attributes()),
            (
                Some("k".to_owned()),
                EndStatus::Terminated,
                Attributes::new(),
            ),
        ] {
            let server = RedisServer::start().unwrap();
            let mut two = Side::new(&server, "two", 100_000).await;
            let mut one = Side::new(&server, "one", 100_000).await;
            for side in [&two, &one] {
                side.store.set_following(entries > 0).await.unwrap();
            }
            let mut new = ended_as("a", entries, status);
            new.header.key = key;
            new.header.retention.terminated = Some(5_000);
            let begins = before(&new);
            let turn = new.first_turn.as_mut().unwrap();
            if !attributes.is_empty() {
                turn.commands.insert(0, Command::Index);
            }
            turn.scope.attributes = attributes;
            two.store.create(begins).await.unwrap();
            let commit = Commit {
                lease: held(&two).await.lease,
                lease_ms: 1,
                ..Commit::first(
                    new.header.id.clone(),
                    turn.scope.clone(),
                    turn.history.clone(),
                    turn.commands.clone(),
                    turn.at,
                )
            };
            let committed = two.store.commit(commit).await.unwrap();
            assert!(matches!(committed, Committed::Done { .. }), "{committed:?}");
            let created = one.store.create(new).await.unwrap();
            assert!(matches!(created, Created::WithTurn { .. }), "{created:?}");
            let (two, one) = (two.dump(), one.dump());
            assert!(two.len() > 6, "{two:?}");
            assert_eq!(two, one, "with {entries} entries");
        }
    }
}

/// Random turns, among them forks, timers, waits, attributes and ends, of instances with timers, keys and correlations.
#[tokio::test]
async fn with_any_turn() {
    let server = RedisServer::start().unwrap();
    let (mut turns, mut left, mut full) = (0, 0, 0);
    for seed in 1..=600_u64 {
        server.cli(&["FLUSHALL"]).unwrap();
        let mut two = Side::new(&server, "two", 3).await;
        let mut one = Side::new(&server, "one", 3).await;
        for side in [&two, &one] {
            side.store.set_following(seed % 3 == 0).await.unwrap();
        }
        let dice = Dice(0x9e37_79b9_7f4a_7c15 ^ (seed << 32 | seed));
        let new = || {
            let mut new = new("a");
            if seed % 2 == 0 {
                new.header.key = Some("k".to_owned());
                new.header.retention.completed = Some(5_000);
            }
            if seed % 5 == 0 {
                new.root.timers = vec![timer(70, 3_000_000_000_000)];
            }
            new
        };
        two.store.create(new()).await.unwrap();
        let held = held(&two).await;
        // Each side has its own data.
        let commit = || {
            let commit = some_commit(&mut Dice(dice.0), &mut Known::default(), &held, false);
            Commit {
                lease_ms: 1,
                release: true,
                fits: false,
                ..commit
            }
        };
        let twin = commit();
        let is_new = |command: &Command| {
            !matches!(
                command,
                Command::CloseFork(_) | Command::ReviveBranch { .. } | Command::Reopen
            )
        };
        if !twin.commands.iter().all(is_new) {
            continue;
        }
        let mut new = new();
        new.first_turn = Some(Box::new(Commit::first(
            new.header.id.clone(),
            twin.scope,
            twin.history,
            twin.commands,
            twin.at,
        )));
        let created = one.store.create(new).await.unwrap();
        let Created::WithTurn { outbox, wake } = created else {
            // A worker has to carry out its effects while it holds the scope, or the turn is too large, or it ends the
            // instance together with other scopes.
            let first = commit();
            let is_end = |command: &Command| matches!(command, Command::End { .. });
            let ends = first.commands.iter().any(is_end);
            match two.store.commit(first).await.unwrap() {
                Committed::Full(_) => full += 1,
                Committed::Done { released, .. } => {
                    assert!(!released || ends, "seed {seed}");
                    left += 1;
                }
                other => panic!("seed {seed}: {other:?}"),
            }
            continue;
        };
        let committed = two.store.commit(commit()).await.unwrap();
        let Committed::Done {
            outbox: effects,
            wake: woken,
            released,
            ..
        } = committed
        else {
            panic!("seed {seed}: {committed:?}")
        };
        assert!(released, "seed {seed}");
        let commands = |entries: Vec<swirl_ports::OutboxEntry>| {
            let commands = entries.into_iter().map(|entry| entry.command);
            commands.collect::<Vec<_>>()
        };
        assert_eq!((commands(outbox), wake), (commands(effects), woken));
        assert_eq!(two.dump(), one.dump(), "seed {seed}");
        one.check_weight();
        turns += 1;
    }
    assert!(turns > 300 && left > 20, "{turns}, {left}, {full}");
}
