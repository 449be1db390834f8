//! The faults of a run, derived from the seed, and the variants that are broken on purpose.

use crate::random::Random;

/// Probabilities are per thousand.
#[derive(Debug, Clone)]
pub struct Faults {
    pub seed: u64,
    pub processes: usize,
    /// How long faults last, in virtual milliseconds.
    pub until_ms: i64,
    /// For a message: it is lost, duplicated or delayed.
    pub lost: usize,
    pub doubled: usize,
    pub delayed: usize,
    /// For a turn of the scheduler: a process is killed, or frozen for longer than a lease.
    pub killed: usize,
    pub paused: usize,
    /// For a call of the store: it fails before or after it took effect.
    pub refused: usize,
    pub answer_lost: usize,
    /// For a commit: the lease expires just before it.
    pub lease_lost: usize,
    /// The largest difference of clocks from the true time.
    pub skew_ms: i64,
    /// For a client's request: it is sent twice.
    pub repeated: usize,
    /// The maximum delay of inputs beyond the plan.
    pub late_ms: i64,
    /// The store is in a folder, which is reopened after all processes died together.
    pub durable: bool,
    /// Coordinators join forks with more than one result, as if they were many or large.
    pub coordinators_join: bool,
    /// The process is killed once, in this turn.
    pub killed_at: Option<usize>,
    /// All processes die together once, and the store returns to an earlier state.
    pub rollback: bool,
}

impl Faults {
    /// No faults: one process after another does its work immediately.
    pub fn none(seed: u64) -> Faults {
        Faults {
            seed,
            processes: 1,
            until_ms: 0,
            lost: 0,
            doubled: 0,
            delayed: 0,
            killed: 0,
            paused: 0,
            refused: 0,
            answer_lost: 0,
            lease_lost: 0,
            skew_ms: 0,
            repeated: 0,
            late_ms: 0,
            durable: false,
            coordinators_join: false,
            killed_at: None,
            rollback: false,
        }
    }

    /// Each kind of fault is on or off, with a random strength.
    pub fn of_seed(seed: u64) -> Faults {
        let mut random = Random::new(seed ^ 0xfa17);
        let mut some = |most: usize| match random.percent(60) {
            true => 1 + random.below(most),
            false => 0,
        };
        Faults {
            seed,
            lost: some(400),
            doubled: some(400),
            delayed: some(500),
            killed: some(12),
            paused: some(12),
            refused: some(60),
            answer_lost: some(60),
            lease_lost: some(120),
            skew_ms: some(2000) as i64,
            repeated: some(900),
            late_ms: some(5000) as i64,
            until_ms: 5_000 + some(25_000) as i64,
            processes: 2 + some(3),
            durable: false,
            coordinators_join: seed.is_multiple_of(2),
            killed_at: None,
            rollback: false,
        }
    }

    pub fn durable(seed: u64) -> Faults {
        Faults {
            durable: true,
            killed: 6,
            ..Faults::of_seed(seed)
        }
    }

    pub fn rollback(seed: u64) -> Faults {
        Faults {
            rollback: true,
            ..Faults::durable(seed)
        }
    }

    /// Faults stop: the remaining work is bounded by the work before.
    pub fn over(&self) -> Faults {
        Faults {
            skew_ms: self.skew_ms,
            processes: self.processes,
            durable: self.durable,
            ..Faults::none(self.seed)
        }
    }
}

/// Bugs that a checker must find, not faults that the system must tolerate.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mutant {
    None,
    /// The store accepts a commit with a lost lease and an old revision.
    NoRevisionCheck,
    /// Inputs are delivered twice.
    InboxTwice,
    /// A join counts reports instead of keeping a set of branches.
    JoinCounts,
    /// Workers' clocks are further ahead than permitted.
    TimersEarly,
    /// A call gets a different key each time.
    DrawnKeys,
    /// A produced event gets a different id each time.
    DrawnEvents,
    /// Events that nothing waits for yet are dropped.
    EarlyEventDropped,
    /// The effects of a commit are lost when its process crashes.
    LostOutbox,
    /// The history of a commit is written in another order.
    HistoryReordered,
    /// An ended instance is changed.
    EndedChanged,
    /// Work of lost messages is never recovered.
    NeverSweeps,
    /// An accepted operator's command is lost.
    LostCommand,
}

pub const MUTANTS: &[Mutant] = &[
    Mutant::NoRevisionCheck,
    Mutant::InboxTwice,
    Mutant::JoinCounts,
    Mutant::TimersEarly,
    Mutant::DrawnKeys,
    Mutant::DrawnEvents,
    Mutant::EarlyEventDropped,
    Mutant::LostOutbox,
    Mutant::HistoryReordered,
    Mutant::EndedChanged,
    Mutant::NeverSweeps,
    Mutant::LostCommand,
];
