//! The meter of the running evaluation: steps, time, memory and stack.
//!
//! jaq fetches a term at each step of an evaluation (it runs on [`crate::value`] and [`crate::engine`]), so these
//! places call [`tick`]. When a limit is reached, the evaluation is aborted by unwinding: no jq `try` can catch that,
//! and no thread has to be killed.
//!
//! Each thread has its own meter, which measures only during evaluations.

use std::any::Any;
use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::time::{Duration, Instant};

use crate::alloc;

/// The number of steps between two checks of time and memory.
const QUANTUM: u32 = 64;
/// An evaluation that begins with less stack than this gets a new one.
const STACK_MIN: usize = 1 << 20;
/// The stack for expressions that recurse deeply. Only touched pages cost memory.
const STACK_BIG: usize = 64 << 20;
/// The maximum number of links in one chain (of a path, or of function arguments that refer to earlier ones), on the
/// current stack and on the big one. A chain is dropped recursively at its end.
const CHAIN_MAX: u32 = 1_000;
const CHAIN_MAX_BIG: u32 = 40_000;
/// Without the counting allocator: the total bytes allocated, as a multiple of the limit.
const ESTIMATE: usize = 4;

/// The limits of an evaluation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// The steps of one evaluation. They are the same on any machine; about twenty million take a second. Default
    /// 20,000,000.
    pub steps: u64,
    /// The thread's processor time in one evaluation, for costs that steps don't reflect. The load of other processes
    /// doesn't count. Default 2 s.
    pub time: Duration,
    /// The evaluation is aborted when this thread's [`spent`] exceeds this. For callers that evaluate several
    /// expressions within a common limit. Default: never.
    pub spent_max: Option<u64>,
    /// The bytes that one evaluation may hold at once. This is accurate to about 1 MiB if the
    /// [`crate::CountingAllocator`] is installed. Otherwise an estimate of all allocated bytes, freed or not, must stay
    /// below four times this. Default 64 MiB. The stack, at most 64 MiB more, isn't counted.
    pub memory_bytes: usize,
    /// The approximate size of the result as JSON text. Default 16 MiB.
    pub output_bytes: usize,
    /// The nesting of the result. Deeper data can be written but not read back. Default 100.
    pub output_depth: usize,
}

impl Default for Limits {
    fn default() -> Limits {
        Limits {
            steps: 20_000_000,
            time: Duration::from_secs(2),
            spent_max: None,
            memory_bytes: 64 << 20,
            output_bytes: 16 << 20,
            output_depth: 100,
        }
    }
}

/// The reason why an evaluation was aborted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Abort {
    Steps,
    Time,
    Memory,
    Stack,
    Depth,
    Output,
    /// jaq panicked.
    Panic,
}

struct Meter {
    active: Cell<bool>,
    /// The number of steps until the next look at the clock.
    fuel: Cell<u32>,
    /// The lowest address that the stack may reach.
    floor: Cell<usize>,
    big_stack: Cell<bool>,
    /// The number of calls of recursive functions that take functions.
    calls: Cell<u32>,
    time: Cell<Duration>,
    spent_max: Cell<u64>,
    /// The value of `spent` at which this evaluation is aborted.
    spent_end: Cell<u64>,
    /// The steps of all evaluations of this thread, except those since the last look.
    spent: Cell<u64>,
    /// Set at the first look at the clock, which short evaluations never do. Before this time the processor time cannot
    /// be used up; reading the processor time is expensive.
    deadline: Cell<Option<Instant>>,
    /// The thread's processor time at that first look.
    begun: Cell<Duration>,
    memory: Cell<usize>,
    held_before: Cell<isize>,
    /// The bytes allocated, if the memory in use isn't counted.
    made: Cell<usize>,
    counted: Cell<bool>,
    now_ms: Cell<i64>,
}

thread_local! {
    static METER: Meter = const {
        Meter {
            active: Cell::new(false),
            fuel: Cell::new(QUANTUM),
            floor: Cell::new(0),
            big_stack: Cell::new(false),
            calls: Cell::new(0),
            time: Cell::new(Duration::ZERO),
            spent_max: Cell::new(u64::MAX),
            spent_end: Cell::new(u64::MAX),
            spent: Cell::new(0),
            deadline: Cell::new(None),
            begun: Cell::new(Duration::ZERO),
            memory: Cell::new(0),
            held_before: Cell::new(0),
            made: Cell::new(0),
            counted: Cell::new(false),
            now_ms: Cell::new(0),
        }
    };
}

/// One step of the evaluation.
#[inline]
pub(crate) fn tick() {
    work(1);
}

/// As many steps at once. Bulk operations count about one step for 64 bytes.
#[inline]
pub(crate) fn work(steps: usize) {
    METER.with(|meter| {
        let here = 0u8;
        if std::ptr::from_ref(&here) as usize <= meter.floor.get() {
            meter.abort(Abort::Stack);
        }
        let fuel = meter.fuel.get();
        if (fuel as usize) > steps {
            meter.fuel.set(fuel - steps as u32);
        } else {
            meter.spend(steps as u64);
            meter.look(0);
        }
    });
}

/// The steps that this thread has evaluated so far: the same for the same expressions on any machine.
pub fn spent() -> u64 {
    METER.with(|meter| {
        let since = QUANTUM.saturating_sub(meter.fuel.get());
        meter.spent.get().saturating_add(since.into())
    })
}

/// Bytes about to be allocated and written.
pub(crate) fn charge(bytes: usize) {
    METER.with(|meter| {
        if meter.active.get() {
            meter.made.set(meter.made.get().saturating_add(bytes));
            // Small pieces are noticed at the next look.
            if bytes > 16 << 10 {
                meter.look(bytes);
            }
        }
    });
    work(1 + bytes / 64);
}

/// The maximum length of a string created by an expression, so that a string created from it stays near the limit.
pub(crate) fn text(bytes: usize) {
    METER.with(|meter| {
        if meter.active.get() && bytes > meter.memory.get() / 4 {
            meter.abort(Abort::Memory);
        }
    });
    charge(bytes);
}

/// Checks a chain with this many links.
pub(crate) fn chain(links: u32) {
    METER.with(|meter| {
        if links > CHAIN_MAX && (!meter.big_stack.get() || links > CHAIN_MAX_BIG) {
            meter.abort(Abort::Stack);
        }
    });
}

/// Counts a call of a recursive function that takes functions. Each call may lengthen a chain.
pub(crate) fn chained_call() {
    let calls = METER.with(|meter| {
        meter.calls.set(meter.calls.get() + 1);
        meter.calls.get()
    });
    chain(calls);
}

/// The time that jq's `now` returns, in ms since 1970.
pub(crate) fn now_ms() -> i64 {
    METER.with(|meter| meter.now_ms.get())
}

/// Aborts the evaluation.
pub(crate) fn abort(why: Abort) {
    METER.with(|meter| meter.abort(why));
}

impl Meter {
    fn abort(&self, why: Abort) {
        if self.active.get() && !std::thread::panicking() {
            // Code that runs during unwinding isn't measured.
            self.active.set(false);
            self.floor.set(0);
            // `resume_unwind` instead of `panic!`, so that nothing is printed.
            resume_unwind(Box::new(why));
        }
    }

    fn spend(&self, steps: u64) {
        self.spent.set(self.spent.get().saturating_add(steps));
    }

    /// Counts the work since the last look.
    fn refuel(&self) {
        self.spend(QUANTUM.saturating_sub(self.fuel.get()).into());
        self.fuel.set(QUANTUM);
    }

    #[cold]
    fn look(&self, planned: usize) {
        self.refuel();
        if !self.active.get() {
            return;
        }
        if self.spent.get() > self.spent_max.get() {
            self.abort(Abort::Time);
        }
        if self.spent.get() > self.spent_end.get() {
            self.abort(Abort::Steps);
        }
        self.look_at_the_clock();
        let (used, limit) = if self.counted.get() {
            let held = alloc::held().wrapping_sub(self.held_before.get()).max(0) as usize;
            (held.saturating_add(planned), self.memory.get())
        } else {
            (self.made.get(), self.memory.get().saturating_mul(ESTIMATE))
        };
        if used > limit || planned > self.memory.get() {
            self.abort(Abort::Memory);
        }
    }

    fn look_at_the_clock(&self) {
        let now = Instant::now();
        let left = match self.deadline.get() {
            Some(deadline) if now <= deadline => return,
            None => {
                self.begun.set(processor_time());
                self.time.get()
            }
            Some(_) => {
                let used = processor_time().saturating_sub(self.begun.get());
                self.time.get().saturating_sub(used)
            }
        };
        if left.is_zero() {
            self.abort(Abort::Time);
        }
        self.deadline.set(now.checked_add(left));
    }

    fn begin(&self, big_stack: bool) {
        let here = 0u8;
        let here = std::ptr::from_ref(&here) as usize;
        // Half of the rest is reserved for dropping values.
        let left = stacker::remaining_stack().unwrap_or(STACK_MIN);
        self.floor.set(here.saturating_sub(left / 2));
        self.big_stack.set(big_stack);
        self.calls.set(0);
        self.refuel();
        self.made.set(0);
        self.held_before.set(alloc::held());
        self.active.set(true);
    }

    fn end(&self) {
        self.active.set(false);
        self.floor.set(0);
    }
}

/// Runs `f` within the limits. If it needs more stack, it is run again from its beginning on a bigger stack, within the
/// same time limit. So `f` must have no side effects.
pub(crate) fn run<T>(limits: &Limits, now_ms: i64, f: impl Fn() -> T) -> Result<T, Abort> {
    METER.with(|meter| {
        meter.time.set(limits.time);
        meter.spent_max.set(limits.spent_max.unwrap_or(u64::MAX));
        meter.deadline.set(None);
        meter.memory.set(limits.memory_bytes);
        meter.counted.set(alloc::installed());
        meter.now_ms.set(now_ms);
        meter.refuel();
        meter
            .spent_end
            .set(meter.spent.get().saturating_add(limits.steps));
    });
    if limits.spent_max.is_some_and(|most| spent() > most) {
        return Err(Abort::Time);
    }
    let enough = stacker::remaining_stack().is_none_or(|left| left >= STACK_MIN);
    if enough {
        match attempt(false, &f) {
            Err(Abort::Stack) => {}
            done => return done,
        }
    }
    stacker::grow(STACK_BIG, || attempt(true, &f))
}

/// The processor time that this thread has used so far.
fn processor_time() -> Duration {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
    let nanoseconds = u32::try_from(time.tv_nsec).unwrap_or_default();
    Duration::new(u64::try_from(time.tv_sec).unwrap_or_default(), nanoseconds)
}

fn attempt<T>(big_stack: bool, f: &impl Fn() -> T) -> Result<T, Abort> {
    METER.with(|meter| meter.begin(big_stack));
    let result = catch_unwind(AssertUnwindSafe(f));
    METER.with(Meter::end);
    result.map_err(|payload: Box<dyn Any + Send>| {
        payload
            .downcast_ref::<Abort>()
            .copied()
            .unwrap_or(Abort::Panic)
    })
}
