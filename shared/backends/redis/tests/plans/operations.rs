//! Random operations on an instance.

use swirl_contract::kit::*;
use swirl_model::Data;
use swirl_model::attribute::{Attribute, Attributes};
use swirl_model::data;
use swirl_model::event::{Command, Event, HistoryEntry, Input};
use swirl_model::ids::{InstanceId, ScopeId, ScopeRef};
use swirl_model::instance::EndStatus;
use swirl_model::scope::{BranchResult, Cursor, Role, Scope, Work};
use swirl_model::workflow::ListId;
use swirl_ports::{Commit, Held};

use crate::plans::side::Dice;

/// The test's knowledge about the instance: enough for operations that make sense, and for some that don't.
#[derive(Default, Clone)]
pub struct Known {
    pub forks: Vec<KnownFork>,
    /// The names of detached scopes.
    pub detached: Vec<String>,
    /// The last number of a fork or a detached scope.
    pub numbers: u32,
    pub inputs: u32,
    pub timers: u32,
    pub children: u32,
}

#[derive(Clone)]
pub struct KnownFork {
    pub parent: String,
    pub number: u32,
    pub total: u32,
}

impl Known {
    /// The newest fork of a scope.
    fn last_of(&self, parent: &str) -> Option<KnownFork> {
        let mut forks = self.forks.iter().rev();
        forks.find(|fork| fork.parent == parent).cloned()
    }

    fn number(&mut self) -> u32 {
        self.numbers += 1;
        self.numbers
    }
}

pub fn some_scope(dice: &mut Dice, known: &Known) -> ScopeRef {
    let scope = match known.forks.len() as u64 {
        _ if !known.detached.is_empty() && dice.one_in(6) => {
            let at = dice.roll(known.detached.len() as u64);
            known.detached[at as usize].clone()
        }
        0 => "r".to_owned(),
        _ if dice.one_in(3) => "r".to_owned(),
        forks => {
            // The newest scope most often.
            let back = if dice.one_in(4) { dice.roll(forks) } else { 0 };
            let fork = &known.forks[(forks - 1 - back) as usize];
            let index = dice.roll(u64::from(fork.total));
            format!("{}.{}.{index}", fork.parent, fork.number)
        }
    };
    ScopeRef {
        instance: InstanceId::new("a"),
        scope: ScopeId::new(scope),
    }
}

pub fn some_input(dice: &mut Dice, known: &mut Known) -> Input {
    known.inputs += 1;
    match dice.roll(8) {
        0 => Input::Cancel {
            status: EndStatus::Cancelled,
        },
        1 | 2 => Input::Timer {
            seq: 1 + dice.roll(u64::from(known.timers) + 1) as u32,
        },
        _ => Input::CallDone {
            call: known.inputs,
            result: Ok(data!({"n": 1})),
        },
    }
}

pub fn some_attributes() -> Attributes {
    [
        ("n".into(), Attribute::Number(1.0)),
        ("m".into(), Attribute::Boolean(true)),
    ]
    .into()
}

/// A lease that is over after [`pause`].
pub const SHORT_MS: u64 = 1;

pub async fn pause() {
    // Time has to pass: a lease ends.
    tokio::time::sleep(std::time::Duration::from_millis(3)).await;
}

/// Up to 7 KB.
fn some_data(dice: &mut Dice) -> Data {
    Data::string("x".repeat(dice.roll(7_000) as usize))
}

/// A step of a held scope. Returns true if its holder continues.
pub fn some_commit(dice: &mut Dice, known: &mut Known, held: &Held, quiet: bool) -> Commit {
    let name = held.lease.scope.scope.clone();
    let is_root = name.as_str() == "r";
    let mut scope = scope_of(&held.record);
    let mut release = true;
    scope.cursor = match dice.roll(6) {
        0 => Cursor::Fresh,
        1 => {
            release = false;
            calling(1)
        }
        _ => blocked(Work::Sleep),
    };
    if dice.one_in(3) {
        scope.data = some_data(dice);
    }
    let mut commands = Vec::new();
    let is_detached = matches!(scope.role, Role::Detached { .. });
    let depth = name.as_str().matches('.').count() / 2;
    if is_root || dice.one_in(3) {
        commands = own_forks(dice, known, name.as_str(), depth);
    }
    if is_root || is_detached {
        if known.timers > 0 && dice.one_in(6) {
            let seq = 1 + dice.roll(u64::from(known.timers)) as u32;
            scope.timers.retain(|timer| timer.seq != seq);
            commands.push(Command::Disarm(seq));
        }
        if dice.one_in(6) {
            known.timers += 1;
            let timer = timer(known.timers, 4_000_000_000_000);
            scope.timers.push(timer);
            commands.push(Command::Arm(timer));
        }
        if dice.one_in(9) {
            commands.push(Command::Unsubscribe(known.timers));
        }
        if dice.one_in(12) {
            let value = dice.roll(2).to_string();
            commands.push(Command::Correlate(vec![("Order".into(), value)]));
        }
        if dice.one_in(9) {
            commands.push(Command::Subscribe(subscription(
                known.timers,
                vec![filter("paid", &[])],
            )));
        }
        if dice.one_in(6) {
            commands.push(Command::Publish(event("e1", "told", &[])));
        }
        if dice.one_in(12) {
            let value = Attribute::Number(dice.roll(3) as f64);
            scope.attributes = match dice.one_in(4) {
                true => Attributes::new(),
                false => [("n".into(), value), ("m".into(), Attribute::Boolean(true))].into(),
            };
            commands.push(Command::Index);
        }
        let is_joined = held.inbox.iter().any(|item| item.id.starts_with("fork-"));
        let goes = dice.roll(3);
        if is_joined && goes < 2 {
            commands.clear();
            let last = known.last_of(name.as_str());
            commands.extend(last.map(|fork| Command::CloseFork(fork.number)));
        }
        if is_joined && goes == 1 {
            commands.push(some_fork(known, name.as_str(), 2, 2, 2));
        }
        if is_detached && dice.one_in(4) {
            scope.cursor = Cursor::Ended;
            commands.push(Command::Drop);
        }
        if is_root && (is_joined && goes == 0 || dice.one_in(20)) {
            let status = match dice.roll(5) {
                0 => EndStatus::Faulted,
                1 => EndStatus::Terminated,
                _ => EndStatus::Completed,
            };
            // The root of a failed instance may be retried.
            if status != EndStatus::Faulted || dice.one_in(8) {
                scope.cursor = Cursor::Ended;
            }
            if dice.one_in(3) {
                commands.push(Command::Publish(event("e2", "told", &[])));
            }
            commands.push(Command::End {
                status,
                output: Some(data!({"out": 1})),
                error: dice.one_in(2).then(fault),
            });
        }
        // Lets a faulted instance continue.
        if is_root && dice.one_in(10) {
            scope.cursor = blocked(Work::Sleep);
            commands = vec![Command::Reopen];
            if let Some(last) = known.last_of("r") {
                commands.push(revive(dice, &last));
            }
        }
    } else {
        match dice.roll(8) {
            0 | 1 => {}
            2 => {
                scope.cursor = Cursor::Ended;
                commands.push(Command::Report(BranchResult::Failed(fault())));
            }
            // It stays as it is.
            3 => commands.push(Command::Report(BranchResult::Failed(fault()))),
            4 => {
                scope.cursor = Cursor::Ended;
                commands.push(Command::Drop);
            }
            _ => {
                scope.cursor = Cursor::Ended;
                let mut result = done();
                if let BranchResult::Done { result, .. } = &mut result
                    && dice.one_in(2)
                {
                    *result = Some(some_data(dice));
                }
                commands.push(Command::Report(result));
            }
        }
    }
    if scope.ended() && !dice.one_in(6) {
        release = true;
    }
    let entry = HistoryEntry {
        data: None,
        data_until: None,
        at: at(0),
        scope: name,
        event: Event::InstanceStarted { scheduled_at: None },
    };
    let mut consumed: Vec<String> = held.inbox.iter().map(|item| item.id.clone()).collect();
    if dice.one_in(6) {
        consumed.pop();
    }
    if dice.one_in(4) {
        consumed.push("never-came".to_owned());
    }
    Commit {
        lease: held.lease.clone(),
        scope,
        consumed,
        refused: match dice.one_in(10) {
            true => vec![event("e3", "paid", &[])],
            false => Vec::new(),
        },
        history: vec![entry; dice.roll(3) as usize],
        commands,
        at: at(5),
        require_unchanged_inbox: quiet && dice.one_in(2),
        fits: dice.one_in(8),
        release,
        lease_ms: match dice.one_in(8) {
            true => SHORT_MS,
            false => LEASE_MS,
        },
    }
}

fn some_fork(known: &mut Known, parent: &str, total: u32, open: u32, needed: u32) -> Command {
    let number = known.number();
    known.forks.push(KnownFork {
        parent: parent.to_owned(),
        number,
        total,
    });
    fork(parent, number, total, open, needed)
}

fn revive(dice: &mut Dice, fork: &KnownFork) -> Command {
    Command::ReviveBranch {
        fork: fork.number,
        index: dice.roll(u64::from(fork.total)) as u32,
        input: Box::new(Input::Retry),
        others: dice.one_in(2),
    }
}

/// Changes of a scope's own forks, and scopes that it detaches.
fn own_forks(dice: &mut Dice, known: &mut Known, name: &str, depth: usize) -> Vec<Command> {
    let mut commands = Vec::new();
    if let Some(last) = known.last_of(name)
        && dice.one_in(2)
    {
        commands.push(Command::CloseFork(last.number));
    }
    if depth < 3 && dice.one_in(3) {
        let total = 1 + dice.roll(4) as u32;
        let open = 1 + dice.roll(u64::from(total)) as u32;
        let needed = 1 + dice.roll(u64::from(open)) as u32;
        let mut fork = some_fork(known, name, total, open, needed);
        if let Command::Fork(fork) = &mut fork
            && dice.one_in(2)
        {
            fork.items = Some(some_data(dice));
        }
        commands.push(fork);
    }
    // Nothing happens to a fork once it is closed.
    let closes = |commands: &[Command], fork: u32| commands.contains(&Command::CloseFork(fork));
    if let Some(last) = known.last_of(name)
        && dice.one_in(12)
        && !closes(&commands, last.number)
    {
        commands.push(Command::ExtendFork {
            fork: last.number,
            open: last.total,
            needed: 1 + dice.roll(u64::from(last.total)) as u32,
        });
    }
    if let Some(last) = known.last_of(name)
        && dice.one_in(12)
        && !closes(&commands, last.number)
    {
        commands.push(revive(dice, &last));
    }
    if depth < 3 && dice.one_in(12) {
        let role = Role::Detached {
            list: ListId(0),
            index: 0,
        };
        let id = ScopeId::new(name).child(known.number(), 0);
        known.detached.push(id.to_string());
        let mut scope = Scope::new(id, role, data!({"n": 1}));
        if dice.one_in(3) {
            scope.cursor = blocked(Work::Sleep);
        }
        if dice.one_in(3) {
            scope.data = some_data(dice);
        }
        commands.push(Command::Detach(Box::new(scope)));
    }
    commands
}
