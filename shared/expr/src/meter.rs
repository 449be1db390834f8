//! The meter of the running evaluation: steps, time, memory and stack.
//!
//! jaq evaluates an expression by asking for a term at each step (it runs on [`crate::value`] and [`crate::engine`]),
//! so those places call [`tick`]. When a limit is reached the evaluation is left by unwinding: no jq `try` can catch
//! that, and no thread has to be killed.
//!
//! Each thread has its own meter, which measures only during evaluations.

use std::any::Any;
use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::time::{Duration, Instant};

use crate::alloc;

/// Steps between two checks of the clock and the memory.
const QUANTUM: u32 = 64;
/// The stack that an evaluation needs at its start; otherwise it gets a new one.
const STACK_MIN: usize = 1 << 20;
/// The stack for expressions that recurse deeply. Only pages that are touched cost memory.
const STACK_BIG: usize = 64 << 20;
/// Links of one chain (of a path, or of function arguments that refer to earlier ones), which is taken down recursively
/// at its end: on the current stack, and on the big one.
const CHAIN_MAX: u32 = 1_000;
const CHAIN_MAX_BIG: u32 = 40_000;
/// Without the counting allocator: bytes made altogether, in multiples of the limit.
const ESTIMATE: usize = 4;

/// The limits of an evaluation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Steps of one evaluation: the same on any machine, about twenty million in a second. Default 20,000,000.
    pub steps: u64,
    /// Processor time of the thread in one evaluation, for costs that steps don't show. The load of other processes
    /// doesn't count. Default 2 s.
    pub time: Duration,
    /// It is left when this thread's [`spent`] is beyond this. For callers that evaluate several expressions and bound
    /// them together. Default: never.
    pub spent_max: Option<u64>,
    /// Bytes that one evaluation may hold at once. Exact to within about 1 MiB if the
    /// [`crate::CountingAllocator`] is installed; else an estimate of the bytes made, freed or not,
    /// must stay below four times this. Default 64 MiB. The stack isn't counted: at most 64 MiB more.
    pub memory_bytes: usize,
    /// Size of the result as JSON text, about. Default 16 MiB.
    pub output_bytes: usize,
    /// Nesting of the result: deeper data can be written but not read back. Default 100.
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
    /// Steps left until the next look at the clock.
    fuel: Cell<u32>,
    /// The lowest address that the stack may reach.
    floor: Cell<usize>,
    big_stack: Cell<bool>,
    /// Calls of recursive functions that take functions.
    calls: Cell<u32>,
    time: Cell<Duration>,
    spent_max: Cell<u64>,
    /// The value of `spent` at the end of this evaluation.
    spent_end: Cell<u64>,
    /// Steps of all evaluations of this thread, less those since the last look.
    spent: Cell<u64>,
    /// Set at the first look at the clock: short evaluations never look. The time on the wall before which the processor
    /// time cannot be used up: reading that one is expensive.
    deadline: Cell<Option<Instant>>,
    /// The thread's processor time at that first look.
    begun: Cell<Duration>,
    memory: Cell<usize>,
    held_before: Cell<isize>,
    /// Bytes made, if the memory in use isn't counted.
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
            // Small pieces are seen at the next look.
            if bytes > 16 << 10 {
                meter.look(bytes);
            }
        }
    });
    work(1 + bytes / 64);
}

/// The longest that a string made by an expression may be, so that a new string made of it stays near the limit.
pub(crate) fn text(bytes: usize) {
    METER.with(|meter| {
        if meter.active.get() && bytes > meter.memory.get() / 4 {
            meter.abort(Abort::Memory);
        }
    });
    charge(bytes);
}

/// A chain of this many links exists.
pub(crate) fn chain(links: u32) {
    METER.with(|meter| {
        if links > CHAIN_MAX && (!meter.big_stack.get() || links > CHAIN_MAX_BIG) {
            meter.abort(Abort::Stack);
        }
    });
}

/// A recursive function that takes functions was called: each call may lengthen the chain of them.
pub(crate) fn chained_call() {
    let calls = METER.with(|meter| {
        meter.calls.set(meter.calls.get() + 1);
        meter.calls.get()
    });
    chain(calls);
}

/// The time that jq's `now` gives, in ms since 1970.
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
            // Code that runs while the stack is unwound isn't measured.
            self.active.set(false);
            self.floor.set(0);
            // `resume_unwind` rather than `panic!`: nothing is printed.
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
        // Half of the rest is kept for dropping values that were built up.
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

/// Runs `f` within the limits. If it needs more stack than there is it is run again from its
/// beginning on a bigger one, within the same time: `f` must be without side effects.
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
