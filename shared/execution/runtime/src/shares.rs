//! How workflows share the processors of a process. A turn of a scope needs a permit, and the number of permits is
//! limited. Workflows with expensive turns always leave one permit to others, and among waiting workflows, the one that
//! has used the least goes first. So instances of an expensive workflow wait for each other, while others hardly wait.
//!
//! Costs are counted in steps of the expressions' meter, not in time, so that the same work gets the same share on
//! every machine.

use std::cell::Cell;
use std::collections::{BTreeSet, HashMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use futures::channel::oneshot;

/// Workflows whose turns cost more than this on average are heavy. In steps of the meter: about ten milliseconds.
const LIGHT_MAX: u64 = 300_000;
/// The number of turns in the average.
const AVERAGED: u64 = 8;
/// The number of idle workflows that are remembered.
const KNOWN_MAX: usize = 1_000;

pub struct Shares {
    /// The number of turns that compute at the same time.
    permits: usize,
    aside: Option<Aside>,
    state: Mutex<State>,
}

/// Runs work that may take long, exactly once, in a way that doesn't block the other tasks of this thread.
pub type Aside = fn(&mut dyn FnMut());

#[derive(Default)]
struct State {
    /// All turns count the same.
    equal: bool,
    running: usize,
    /// The running turns of heavy workflows.
    heavy: usize,
    /// The amount that the last admitted workflow had used by then. A new workflow starts at this level, so that it
    /// isn't ahead.
    level: u64,
    workflows: HashMap<Arc<str>, Usage>,
    /// The waiting workflows, ordered by what they have used.
    queue: BTreeSet<(u64, Arc<str>)>,
}

#[derive(Default)]
struct Usage {
    /// The cost of a turn isn't known yet.
    is_new: bool,
    average: u64,
    used: u64,
    running: usize,
    waiting: VecDeque<oneshot::Sender<Permit>>,
}

/// The right to compute, until it is dropped.
pub struct Permit {
    shares: Arc<Shares>,
    workflow: Arc<str>,
    admitted: Admitted,
    waited: bool,
    /// The actual cost in steps of the meter; `None` if nothing was computed.
    cost: Cell<Option<u64>>,
}

/// The state of a workflow when it got a permit.
#[derive(Clone, Copy)]
struct Admitted {
    is_new: bool,
    is_heavy: bool,
    /// The expected cost. It counts at once, so that the next turns go to other workflows before this one ends.
    charged: u64,
}

impl Permit {
    /// Adds the cost of a computation, in steps of the meter.
    pub fn spend(&self, cost: u64) {
        let before = self.cost.get().unwrap_or(0);
        self.cost.set(Some(before.saturating_add(cost)));
    }

    /// Computes, and counts the cost.
    pub fn compute<T>(&self, spent: fn() -> u64, compute: impl FnOnce() -> T) -> T {
        let counting = || {
            let before = spent();
            let computed = compute();
            self.spend(spent().saturating_sub(before));
            computed
        };
        let Some(aside) = self.shares.aside.filter(|_| self.may_take_long()) else {
            return counting();
        };
        let (mut counting, mut computed) = (Some(counting), None);
        aside(&mut || {
            if let Some(counting) = counting.take() {
                computed = Some(counting());
            }
        });
        match (computed, counting) {
            (Some(computed), _) => computed,
            (None, Some(counting)) => counting(),
            (None, None) => unreachable!("it is taken to be computed"),
        }
    }

    /// Whether the cost of the workflow's turns is high or unknown.
    pub fn may_take_long(&self) -> bool {
        self.admitted.is_new || self.admitted.is_heavy
    }

    /// Whether the turn had to wait.
    pub fn waited(&self) -> bool {
        self.waited
    }
}

impl Shares {
    /// Creates permits for a process with this many threads. If there are at least two, heavy workflows leave one to
    /// others.
    pub fn new(threads: usize) -> Arc<Shares> {
        Shares::with(threads, None, false)
    }

    /// Creates this many permits, for turns that all count the same.
    pub fn equal(permits: usize) -> Arc<Shares> {
        Shares::with(permits, None, true)
    }

    /// Like [`Shares::new`], but runs turns that may take long through `aside`.
    pub fn aside(threads: usize, aside: Aside) -> Arc<Shares> {
        Shares::with(threads, Some(aside), false)
    }

    fn with(threads: usize, aside: Option<Aside>, equal: bool) -> Arc<Shares> {
        Arc::new(Shares {
            permits: threads.max(1),
            aside,
            state: Mutex::new(State {
                equal,
                ..State::default()
            }),
        })
    }

    /// Waits for a permit.
    pub async fn enter(self: &Arc<Shares>, workflow: &Arc<str>) -> Permit {
        loop {
            let mut permit = {
                let mut state = self.locked();
                match state.admit_at_once(self.permits, workflow) {
                    Some(admitted) => return self.permit(workflow.clone(), admitted, false),
                    None => state.wait(workflow),
                }
            };
            self.admit_waiting();
            // The others may wait for a reason that doesn't hold for this workflow.
            if let Ok(Some(mut permit)) = permit.try_recv() {
                permit.waited = false;
                return permit;
            }
            // The sender is dropped without an answer only if the shares are dropped.
            if let Ok(permit) = permit.await {
                return permit;
            }
        }
    }

    /// Whether the turns of a workflow are known to be short.
    pub fn are_short(&self, workflow: &Arc<str>) -> bool {
        let state = self.locked();
        let usage = state.workflows.get(workflow);
        usage.is_some_and(|usage| !usage.is_new && !usage.is_heavy())
    }

    fn permit(self: &Arc<Shares>, workflow: Arc<str>, admitted: Admitted, waited: bool) -> Permit {
        Permit {
            shares: self.clone(),
            workflow,
            admitted,
            waited,
            cost: Cell::new(None),
        }
    }

    fn admit_waiting(self: &Arc<Shares>) {
        loop {
            let next = self.locked().next(self.permits);
            let Some((workflow, admitted, waiting)) = next else {
                return;
            };
            // If the receiver is gone, the permit is dropped and returns here.
            drop(waiting.send(self.permit(workflow, admitted, true)));
        }
    }

    fn locked(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn usage(&mut self, workflow: &Arc<str>) -> &mut Usage {
        let (level, is_new) = (self.level, !self.equal);
        let usage = self.workflows.entry(workflow.clone());
        let usage = usage.or_insert_with(|| Usage {
            is_new,
            ..Usage::default()
        });
        if usage.running == 0 && usage.waiting.is_empty() {
            usage.used = usage.used.max(level);
        }
        usage
    }

    /// Admits a turn at once if no other is waiting.
    fn admit_at_once(&mut self, permits: usize, workflow: &Arc<str>) -> Option<Admitted> {
        if !self.queue.is_empty() || self.running >= permits {
            return None;
        }
        let heavy = self.heavy;
        let usage = self.usage(workflow);
        if !usage.may_run(permits, heavy) {
            return None;
        }
        let used = usage.used;
        let admitted = usage.admit();
        self.count(admitted.is_heavy, used);
        Some(admitted)
    }

    fn wait(&mut self, workflow: &Arc<str>) -> oneshot::Receiver<Permit> {
        let (waiting, permit) = oneshot::channel();
        let usage = self.usage(workflow);
        usage.waiting.push_back(waiting);
        let place = (usage.used, workflow.clone());
        self.queue.insert(place);
        permit
    }

    /// The next waiting turn that may compute.
    fn next(&mut self, permits: usize) -> Option<(Arc<str>, Admitted, oneshot::Sender<Permit>)> {
        if self.running >= permits {
            return None;
        }
        let (place, waiting) = loop {
            let may = |(_, workflow): &&(u64, Arc<str>)| {
                let usage = self.workflows.get(workflow);
                usage.is_some_and(|usage| usage.may_run(permits, self.heavy))
            };
            let place = self.queue.iter().find(may).cloned()?;
            let usage = self.workflows.get_mut(&place.1)?;
            let waiting = usage.next_waiting();
            if usage.waiting.is_empty() {
                self.queue.remove(&place);
            }
            if let Some(waiting) = waiting {
                break (place, waiting);
            }
        };
        let (used, workflow) = place;
        let usage = self.workflows.get_mut(&workflow)?;
        let admitted = usage.admit();
        let now = usage.used;
        self.requeue(used, now, &workflow);
        self.count(admitted.is_heavy, used);
        Some((workflow, admitted, waiting))
    }

    /// Updates the position of a waiting workflow in the queue.
    fn requeue(&mut self, before: u64, now: u64, workflow: &Arc<str>) {
        if before != now && self.queue.remove(&(before, workflow.clone())) {
            self.queue.insert((now, workflow.clone()));
        }
    }

    fn count(&mut self, is_heavy: bool, used: u64) {
        self.level = self.level.max(used);
        self.running += 1;
        self.heavy += usize::from(is_heavy);
    }

    fn release(&mut self, permit: &Permit) {
        self.running = self.running.saturating_sub(1);
        let Admitted {
            is_heavy, charged, ..
        } = permit.admitted;
        self.heavy = self.heavy.saturating_sub(usize::from(is_heavy));
        if let Some(usage) = self.workflows.get_mut(&permit.workflow) {
            usage.running = usage.running.saturating_sub(1);
            let before = usage.used;
            if !self.equal {
                usage.charge_actual(charged, permit.cost.get());
            }
            let now = usage.used;
            self.requeue(before, now, &permit.workflow);
        }
        if self.workflows.len() > KNOWN_MAX {
            self.workflows
                .retain(|_, usage| usage.running > 0 || !usage.waiting.is_empty());
        }
    }
}

impl Usage {
    /// Skips abandoned ones.
    fn next_waiting(&mut self) -> Option<oneshot::Sender<Permit>> {
        while let Some(waiting) = self.waiting.pop_front() {
            if !waiting.is_canceled() {
                return Some(waiting);
            }
        }
        None
    }

    /// `heavy`: the number of running turns of heavy workflows.
    fn may_run(&self, permits: usize, heavy: usize) -> bool {
        match (self.is_new, self.is_heavy()) {
            (true, _) => self.running == 0,
            (false, true) => heavy < permits.saturating_sub(1).max(1),
            (false, false) => true,
        }
    }

    fn is_heavy(&self) -> bool {
        self.average > LIGHT_MAX
    }

    /// Replaces the expected cost by the actual one.
    fn charge_actual(&mut self, charged: u64, cost: Option<u64>) {
        self.used = self.used.saturating_sub(charged);
        let Some(cost) = cost else { return };
        self.used = self.used.saturating_add(cost).saturating_add(1);
        self.average = match self.is_new {
            true => cost,
            false => self.average - self.average / AVERAGED + cost / AVERAGED,
        };
        self.is_new = false;
    }

    fn admit(&mut self) -> Admitted {
        let charged = self.average.saturating_add(1);
        self.running += 1;
        self.used = self.used.saturating_add(charged);
        Admitted {
            is_new: self.is_new,
            is_heavy: self.is_heavy(),
            charged,
        }
    }
}

impl Drop for Permit {
    fn drop(&mut self) {
        let waits = {
            let mut state = self.shares.locked();
            state.release(self);
            !state.queue.is_empty()
        };
        if waits {
            self.shares.admit_waiting();
        }
    }
}

#[cfg(test)]
mod tests {
    use futures::FutureExt;
    use futures::future::BoxFuture;

    use super::*;

    const MUCH: u64 = 30_000_000;

    fn enter<'a>(shares: &'a Arc<Shares>, workflow: &str) -> BoxFuture<'a, Permit> {
        let (shares, workflow) = (shares.clone(), Arc::from(workflow));
        async move { shares.enter(&workflow).await }.boxed()
    }

    fn spend(turn: Permit, cost: u64) {
        turn.spend(cost);
    }

    /// The first of these that gets its permit.
    fn first(waiting: &mut Vec<BoxFuture<'_, Permit>>) -> Option<Permit> {
        let found =
            (0..waiting.len()).find_map(|at| Some((at, (&mut waiting[at]).now_or_never()?)));
        found.map(|(at, turn)| {
            drop(waiting.remove(at));
            turn
        })
    }

    #[test]
    fn expensive_workflows_leave_a_permit_to_others() {
        let shares = Shares::new(2);
        spend(enter(&shares, "heavy").now_or_never().unwrap(), MUCH);
        assert!(!shares.are_short(&"heavy".into()));
        let mut heavy: Vec<_> = (0..16).map(|_| enter(&shares, "heavy")).collect();
        let one = first(&mut heavy).unwrap();
        assert!(first(&mut heavy).is_none(), "two at once");
        // This holds for any number of waiting turns, and wherever the cheap one stands among them.
        for _ in 0..100 {
            spend(enter(&shares, "light").now_or_never().unwrap(), 100);
        }
        assert!(first(&mut heavy).is_none());
        spend(one, MUCH);
        assert!(first(&mut heavy).is_some());
    }

    #[test]
    fn a_new_workflow_runs_one_turn_until_its_cost_is_known() {
        let shares = Shares::new(2);
        let mut new: Vec<_> = (0..16).map(|_| enter(&shares, "new")).collect();
        let one = first(&mut new).unwrap();
        assert!(!shares.are_short(&"new".into()));
        assert!(first(&mut new).is_none());
        let other = enter(&shares, "other").now_or_never().unwrap();
        spend(other, 100);
        // The workflow is light, so it may use all threads.
        spend(one, 100);
        assert!(shares.are_short(&"new".into()));
        let both = (first(&mut new).unwrap(), first(&mut new).unwrap());
        assert!(first(&mut new).is_none(), "{} turns", 2);
        drop(both);
    }

    #[test]
    fn the_workflow_that_used_least_goes_first() {
        let shares = Shares::new(1);
        let mut counts = [0, 0];
        let gate = enter(&shares, "gate").now_or_never().unwrap();
        let mut waiting: Vec<_> = (0..20)
            .flat_map(|_| [enter(&shares, "costly"), enter(&shares, "cheap")])
            .collect();
        assert!(first(&mut waiting).is_none(), "all wait");
        spend(gate, 1);
        let mut turns = Vec::new();
        while let Some(turn) = first(&mut waiting) {
            let is_cheap = &*turn.workflow == "cheap";
            counts[usize::from(is_cheap)] += 1;
            turns.push(is_cheap);
            spend(turn, if is_cheap { MUCH / 10 } else { MUCH });
        }
        assert_eq!(counts, [20, 20]);
        // Ten cheap turns cost as much as one costly turn.
        let cheap = turns[..12].iter().filter(|is_cheap| **is_cheap).count();
        assert!((9..=11).contains(&cheap), "{turns:?}");
        // A workflow that was idle has saved up nothing.
        spend(enter(&shares, "idle").now_or_never().unwrap(), 1);
        let gate = enter(&shares, "gate").now_or_never().unwrap();
        let mut waiting: Vec<_> = (0..4)
            .flat_map(|_| [enter(&shares, "idle"), enter(&shares, "cheap")])
            .collect();
        assert!(first(&mut waiting).is_none(), "all wait");
        spend(gate, 1);
        let mut idle = 0;
        for _ in 0..4 {
            let turn = first(&mut waiting).unwrap();
            idle += usize::from(&*turn.workflow == "idle");
            spend(turn, MUCH);
        }
        assert_eq!(idle, 2);
    }

    #[test]
    fn turns_count_from_their_beginning() {
        let shares = Shares::equal(6);
        let held: Vec<_> = (0..6)
            .map(|_| enter(&shares, "gate").now_or_never().unwrap())
            .collect();
        let mut waiting: Vec<_> = (0..20).map(|_| enter(&shares, "many")).collect();
        waiting.extend((0..3).map(|_| enter(&shares, "few")));
        assert!(first(&mut waiting).is_none(), "all wait");
        drop(held);
        // None of these turns has ended.
        let turns: Vec<_> = std::iter::from_fn(|| first(&mut waiting)).collect();
        let few = turns.iter().filter(|turn| &*turn.workflow == "few").count();
        assert_eq!((turns.len(), few), (6, 3));
        assert!(turns.iter().all(Permit::waited));
    }

    #[test]
    fn a_turn_that_is_admitted_at_once_has_not_waited() {
        let shares = Shares::new(2);
        spend(enter(&shares, "heavy").now_or_never().unwrap(), MUCH);
        let running = enter(&shares, "heavy").now_or_never().unwrap();
        let mut heavy = enter(&shares, "heavy");
        assert!((&mut heavy).now_or_never().is_none());
        let light = enter(&shares, "light").now_or_never().unwrap();
        assert!(!light.waited());
        spend(light, 1);
        spend(running, MUCH);
        assert!(heavy.now_or_never().unwrap().waited());
    }

    #[test]
    fn only_long_turns_are_computed_aside() {
        thread_local! { static ASIDE: Cell<u32> = const { Cell::new(0) } }
        let shares = Shares::aside(2, |work| {
            ASIDE.set(ASIDE.get() + 1);
            work();
        });
        let compute = |workflow: &str, cost: u64| {
            thread_local! { static SPENT: Cell<u64> = const { Cell::new(0) } }
            let turn = enter(&shares, workflow).now_or_never().unwrap();
            turn.compute(|| SPENT.get(), || SPENT.set(SPENT.get() + cost));
            ASIDE.replace(0)
        };
        assert_eq!(compute("light", 1), 1, "the cost isn't known yet");
        assert_eq!(compute("light", 1), 0);
        assert_eq!(compute("heavy", MUCH), 1);
        assert_eq!(compute("heavy", MUCH), 1);
        // Work that `aside` doesn't run is still done.
        let shares = Shares::aside(2, |_| ());
        let turn = enter(&shares, "light").now_or_never().unwrap();
        assert_eq!(turn.compute(|| 0, || 7), 7);
    }

    #[test]
    fn abandoned_waits_hold_no_permit() {
        let shares = Shares::new(1);
        let one = enter(&shares, "a").now_or_never().unwrap();
        let mut gone = enter(&shares, "b");
        assert!((&mut gone).now_or_never().is_none());
        let mut kept = enter(&shares, "c");
        assert!((&mut kept).now_or_never().is_none());
        drop(gone);
        drop(one);
        let turn = kept.now_or_never().unwrap();
        // This permit was given and never used.
        let mut unseen = enter(&shares, "b");
        assert!((&mut unseen).now_or_never().is_none());
        drop(turn);
        drop(unseen);
        assert!(enter(&shares, "d").now_or_never().is_some());
        for n in 0..2 * KNOWN_MAX {
            drop(enter(&shares, &format!("w{n}")).now_or_never().unwrap());
        }
        assert!(shares.locked().workflows.len() <= KNOWN_MAX + 1);
    }
}
