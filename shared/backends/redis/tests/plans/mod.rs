//! A commit that is planned from what its lease knows leaves the same data as one that is planned from a second read:
//! the same random operations run in two namespaces, one for each, and all of Redis is compared after every step.

mod creations;
mod operations;
mod side;
mod together;

use std::collections::BTreeSet;
use std::sync::Arc;

use swirl_contract::Backend;
use swirl_contract::kit::*;
use swirl_model::event::{Command, Input};
use swirl_model::ids::{InstanceId, ScopeRef};
use swirl_model::instance::EndStatus;
use swirl_model::scope::{BranchResult, Cursor};
use swirl_ports::execution::Record;
use swirl_ports::{
    Acquired, Committed, Created, ExecutionStore, Held, InboxItem, InstanceRecords, NewRecords,
    ReadMark, Released,
};
use swirl_servers::RedisServer;

use crate::plans::operations::{
    Known, SHORT_MS, pause, some_attributes, some_commit, some_input, some_scope,
};
use crate::plans::side::{Dice, Side, masked};

/// The outcome, without tokens.
fn notified(committed: &Committed) -> String {
    match committed {
        Committed::Done {
            outbox,
            wake,
            joins,
            released,
            token,
        } => {
            let wake: BTreeSet<_> = wake.iter().collect();
            masked(&format!(
                "{outbox:?} {wake:?} {joins:?} {released} {token:?}"
            ))
        }
        Committed::InboxChanged => "news".to_owned(),
        Committed::Full(room) => format!("full {}", room.bytes),
        Committed::Refused => "refused".to_owned(),
    }
}

fn short(text: &str) -> String {
    text.chars().take(200).collect()
}

fn named(command: &Command) -> &'static str {
    match command {
        Command::CloseFork(_) => "close",
        Command::Fork(_) => "fork",
        Command::Report(BranchResult::Done { .. }) => "done",
        Command::Report(_) => "failed",
        Command::End {
            status: EndStatus::Faulted,
            ..
        } => "fault",
        Command::End { .. } => "end",
        Command::Publish(_) => "effect",
        Command::Index => "index",
        Command::Subscribe(_) => "subscribe",
        Command::Unsubscribe(_) => "unsubscribe",
        Command::Take { .. } => "take",
        Command::Correlate(_) => "correlate",
        Command::Arm(_) => "arm",
        Command::Disarm(_) => "disarm",
        Command::ExtendFork { .. } => "extend",
        Command::ReviveBranch { .. } => "revive",
        Command::Detach(_) => "detach",
        Command::Reopen => "reopen",
        Command::Drop => "drop",
        _ => "other",
    }
}

/// Both sides, kept in step.
struct Pair {
    again: Side,
    known: Side,
    /// The commits that took effect: their commands, and whether the lease was held.
    seen: BTreeSet<String>,
    /// How many commits exceeded the size limit of the instance.
    full: u32,
    /// The last commit, for messages of failures.
    last: String,
}

impl Pair {
    fn compare(&mut self, what: &str) {
        let (again, known) = (self.again.dump(), self.known.dump());
        if again != known {
            let only = |of: &[String], other: &[String]| -> Vec<String> {
                of.iter()
                    .filter(|line| !other.contains(line))
                    .cloned()
                    .collect()
            };
            panic!(
                "after {what}, {}: only after a second read {:#?}, only without one {:#?}",
                self.last,
                only(&again, &known),
                only(&known, &again)
            );
        }
    }

    async fn hold(&self, scope: &ScopeRef, lazily: bool) -> Option<(Held, Held)> {
        self.hold_for(scope, lazily, LEASE_MS).await
    }

    async fn hold_for(&self, scope: &ScopeRef, lazily: bool, ms: u64) -> Option<(Held, Held)> {
        let take = async |side: &Side| {
            let taken = if lazily {
                side.store.read_snapshot(scope, ms).await
            } else {
                side.store.acquire(scope, ms).await
            };
            taken.unwrap()
        };
        match (take(&self.again).await, take(&self.known).await) {
            (Acquired::Held(again), Acquired::Held(known)) => Some((*again, *known)),
            (Acquired::Busy, Acquired::Busy) | (Acquired::Gone, Acquired::Gone) => None,
            // Only this side has made forks of which it believes that their branches can begin. It changes nothing.
            (Acquired::Busy | Acquired::Gone, Acquired::Held(guess)) if lazily => {
                let known = Backend::of(Arc::new(self.known.store.clone()), ());
                let committed = known.commit_of(&guess, change(vec![])).await;
                assert!(matches!(committed, Committed::Refused), "{committed:?}");
                None
            }
            (again, known) => panic!("{scope}: {again:?} and {known:?}"),
        }
    }

    /// Returns whether the holder continues.
    async fn commit(
        &mut self,
        seed: u64,
        known: &mut Known,
        held: &mut (Held, Held),
        again: bool,
    ) -> bool {
        let (mut before, mut copy) = (known.clone(), known.clone());
        let mut commit = some_commit(&mut Dice(seed), &mut copy, &held.0, again);
        commit.lease.read = ReadMark::default();
        let twin = some_commit(&mut Dice(seed), known, &held.1, again);
        // Each side has its own data, since the same object in memory is stored as the same.
        let scopes = (commit.scope.clone(), twin.scope.clone());
        let what: Vec<&str> = commit.commands.iter().map(named).collect();
        let held_before = commit.lease.is_taken();
        let parts = what.iter().map(|part| format!("{part} held {held_before}"));
        let parts: Vec<String> = parts.collect();
        let what = format!("{} held {held_before}", what.join(" "));
        self.last = format!(
            "{} consumed {:?} release {} ended {} {:?}",
            held.0.lease.scope,
            commit.consumed,
            commit.release,
            commit.scope.ended(),
            commit
                .commands
                .iter()
                .map(|command| short(&format!("{command:?}")))
                .collect::<Vec<_>>()
        );
        self.again.age_ready();
        self.known.age_ready();
        let is_short = commit.lease_ms == SHORT_MS;
        let first = self.again.store.commit(commit).await.unwrap();
        let second = self.known.store.commit(twin).await.unwrap();
        assert_eq!(notified(&first), notified(&second), "{}", self.last);
        if matches!(first, Committed::Done { .. }) {
            self.seen.insert(what);
            self.seen.extend(parts);
        }
        self.full += u32::from(matches!(first, Committed::Full(_)));
        if is_short {
            pause().await;
        }
        if seed % 16 == 3 {
            let mut copy = before.clone();
            let commit = some_commit(&mut Dice(seed), &mut copy, &held.0, again);
            let twin = some_commit(&mut Dice(seed), &mut before, &held.1, again);
            let first = self.again.store.commit(commit).await.unwrap();
            let second = self.known.store.commit(twin).await.unwrap();
            assert_eq!(notified(&first), notified(&second), "again {}", self.last);
        }
        self.again.check_weight();
        self.known.check_weight();
        let (
            Committed::Done {
                released, token, ..
            },
            Committed::Done { token: other, .. },
        ) = (first, second)
        else {
            return false;
        };
        let (mine, twins) = scopes;
        for (side, mut scope, token) in [(&mut held.0, mine, token), (&mut held.1, twins, other)] {
            scope.rev += 1;
            side.record = Record::Scope(scope);
            side.inbox.clear();
            side.lease.token = token.unwrap_or(side.lease.token);
        }
        !released
    }

    /// A commit, and the leases that are still held after it.
    async fn turn(
        &mut self,
        dice: &mut Dice,
        known: &mut Known,
        mut held: (Held, Held),
        again: bool,
    ) -> Option<(Held, Held)> {
        let seed = dice.roll(u64::MAX) | 1;
        if self.commit(seed, known, &mut held, again).await {
            return Some(held);
        }
        self.give_back(&held).await;
        None
    }

    async fn give_back(&self, held: &(Held, Held)) {
        loop {
            let again = self.again.store.release(&held.0.lease).await.unwrap();
            let known = self.known.store.release(&held.1.lease).await.unwrap();
            assert_eq!(again, known);
            if again != Released::More {
                return;
            }
            let again = self.again.store.drain(&held.0.lease).await.unwrap();
            let known = self.known.store.drain(&held.1.lease).await.unwrap();
            assert_eq!(again, known);
        }
    }

    async fn add(&self, scope: &ScopeRef, input: Input) {
        for side in [&self.again, &self.known] {
            let item = InboxItem::new(input.clone());
            side.store.add_input(scope, item).await.unwrap();
        }
    }
}

/// An end counts the fields of the instance, those of its attributes too.
#[tokio::test]
async fn the_end_with_attributes_needs_no_second_read() {
    let server = RedisServer::start().unwrap();
    let side = Side::new(&server, "short", 100_000).await;
    let b = Backend::of(std::sync::Arc::new(side.store.clone()), ());
    b.create(new("a")).await;
    let found = change(vec![Command::Index]).attributes(some_attributes());
    b.act(&root("a"), found).await;
    let before = side.store.second_reads();
    let end = Command::End {
        status: EndStatus::Completed,
        output: None,
        error: None,
    };
    let last = Change {
        release: true,
        ..change(vec![end]).at(Cursor::Ended)
    };
    let held = b.hold_lazily(&root("a")).await;
    let committed = b.commit_of(&held, last).await;
    assert!(matches!(committed, Committed::Done { .. }), "{committed:?}");
    assert_eq!(side.store.second_reads(), before);
    let instance = side.store.instance(&InstanceId::new("a")).await.unwrap();
    assert_eq!(instance.unwrap().state.attributes, some_attributes());
}

/// The seeds: from the first to the usual number, and more if something hasn't been seen.
fn seeds() -> (u64, u64, u64) {
    match std::env::var("SWIRL_SEEDS").map(|text| text.parse()) {
        Ok(Ok(seeds)) => (601, seeds, seeds),
        _ => (1, 150, 600),
    }
}

#[tokio::test]
async fn a_second_read_makes_no_difference() {
    let mut commits = 0;
    let mut seen = BTreeSet::new();
    let (mut reads, mut full) = (0, 0);
    let server = RedisServer::start().unwrap();
    let wanted = || {
        let kinds = [
            "",
            "fork",
            "close",
            "close fork",
            "done",
            "failed",
            "end",
            "close end",
            "arm",
            "disarm",
            "effect",
            "effect end",
            "index",
            "fault",
            "subscribe",
            "unsubscribe",
            "correlate",
            "extend",
            "revive",
            "detach",
            "reopen",
            "drop",
        ];
        let with_lease = |kind: &'static str| {
            // Two of them under a lease are too rare.
            let held: &[bool] = match kind.contains(' ') {
                true => &[false],
                false => &[false, true],
            };
            held.iter().map(move |held| format!("{kind} held {held}"))
        };
        kinds.into_iter().flat_map(with_lease)
    };
    // Some kinds are rare.
    let (first, usual, last) = seeds();
    for seed in first..=last {
        if seed > usual && wanted().all(|what| seen.contains(&what)) {
            break;
        }
        server.cli(&["FLUSHALL"]).unwrap();
        let mut pair = Pair {
            again: Side::new(&server, "again", 3).await,
            known: Side::new(&server, "known", 3).await,
            seen: std::mem::take(&mut seen),
            full,
            last: String::new(),
        };
        for side in [&pair.again, &pair.known] {
            side.store.set_following(seed % 3 == 0).await.unwrap();
        }
        let mut dice = Dice(0x9e37_79b9_7f4a_7c15 ^ (seed << 32 | seed));
        let mut known = Known::default();
        let watched = dice.one_in(2);
        for side in [&mut pair.again, &mut pair.known] {
            let mut begins = NewRecords {
                watched,
                ..new("a")
            };
            if seed % 2 == 0 {
                begins.header.retention.completed = Some(5_000);
                begins.header.retention.faulted = Some(6_000);
            }
            assert_eq!(side.store.create(begins).await.unwrap(), Created::New);
            side.count_from_one("a");
        }
        pair.compare("the start");
        let mut kept: Vec<(Held, Held)> = Vec::new();
        for step in 0..60 {
            let what = format!("step {step} of seed {seed}");
            match dice.roll(12) {
                0 => {
                    let scope = some_scope(&mut dice, &known);
                    let input = some_input(&mut dice, &mut known);
                    pair.add(&scope, input).await;
                }
                1 if dice.one_in(4) => {
                    let on = dice.one_in(2);
                    for side in [&pair.again, &pair.known] {
                        let id = InstanceId::new("a");
                        side.store.suspend(&id, on, None).await.unwrap();
                    }
                }
                2 | 3 if !kept.is_empty() => {
                    let held = kept.swap_remove(dice.roll(kept.len() as u64) as usize);
                    commits += 1;
                    kept.extend(pair.turn(&mut dice, &mut known, held, true).await);
                }
                3 if dice.one_in(8) => {
                    known.children += 1;
                    let id = format!("c{}", known.children);
                    for side in [&pair.again, &pair.known] {
                        side.store.create(child(&id, "a")).await.unwrap();
                    }
                }
                _ => {
                    let scope = some_scope(&mut dice, &known);
                    let lazily = dice.roll(3) > 0;
                    if let Some(held) = pair.hold(&scope, lazily).await {
                        // Another process may be faster.
                        let other = if dice.one_in(8) {
                            pair.hold(&scope, true).await
                        } else {
                            None
                        };
                        // It may take a lease, and lose it.
                        if dice.one_in(12) {
                            pair.hold_for(&scope, false, SHORT_MS).await;
                            pause().await;
                        }
                        commits += 1;
                        kept.extend(pair.turn(&mut dice, &mut known, held, false).await);
                        if let Some(other) = other {
                            commits += 1;
                            pair.compare(&what);
                            kept.extend(pair.turn(&mut dice, &mut known, other, false).await);
                        }
                    }
                }
            }
            pair.compare(&what);
        }
        reads += pair.known.store.second_reads();
        seen = pair.seen;
        full = pair.full;
    }
    println!("{commits} commits needed {reads} second reads, {full} had no room");
    assert!(full > 20, "{full} had no room");
    for what in wanted() {
        assert!(seen.contains(&what), "'{what}' never took effect: {seen:?}");
    }
}
