//! Limits on the rate of starts, per workflow and in total.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use swirl_model::time::Timestamp;
use swirl_ports::PendingStartsMax;

use crate::put_off::PutOff;

/// A burst may have as many starts as are allowed in this many seconds.
const BURST_S: f64 = 10.0;
/// The number of workflows that are counted separately. Beyond it, idle ones are forgotten.
const WORKFLOWS_MAX: usize = 10_000;

/// Limits on the instances that one process starts; 0 means no limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct StartLimits {
    /// Instances of one workflow per second.
    pub workflow: u32,
    /// The part of them that other instances start: as sub-workflows, by `continueAs`, by events.
    pub chained: u32,
    /// The part of them that are far down such a chain and that nothing waits for.
    pub runaway: u32,
    /// Instances of all workflows per second.
    pub all: u32,
    /// The minimum time between two instances of a schedule.
    pub schedule_ms: i64,
    /// The limits on postponed starts by other instances, in all processes together.
    pub pending: PendingStartsMax,
}

/// The cause of a start.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StartCause {
    Request,
    /// An event or another instance.
    Chain,
    /// The same, far down a chain of instances that start each other, if nothing waits for the end of this one.
    Runaway,
}

/// Counts starts against the limits.
#[derive(Debug, Default)]
pub struct Rates {
    limits: StartLimits,
    buckets: Mutex<Buckets>,
    put_off: PutOff,
}

#[derive(Debug, Default)]
struct Buckets {
    all: Bucket,
    workflows: HashMap<Arc<str>, [Bucket; 3]>,
}

/// A token bucket, as the amount taken from it, which decreases with time.
#[derive(Debug, Default, Clone, Copy)]
struct Bucket {
    taken: f64,
    at_ms: i64,
}

impl Bucket {
    /// Milliseconds until another one fits; 0 if it does now.
    fn wait(&mut self, rate: u32, now: i64) -> i64 {
        if rate == 0 {
            return 0;
        }
        let rate = f64::from(rate);
        let passed = now.saturating_sub(self.at_ms).max(0) as f64 / 1_000.0;
        self.taken = (self.taken - passed * rate).max(0.0);
        self.at_ms = self.at_ms.max(now);
        let beyond = self.taken + 1.0 - rate * BURST_S;
        if beyond <= 0.0 {
            return 0;
        }
        (beyond / rate * 1_000.0).ceil() as i64
    }
}

impl Rates {
    /// Creates the counters for these limits.
    pub fn new(limits: StartLimits) -> Rates {
        Rates {
            limits,
            buckets: Mutex::default(),
            put_off: PutOff::default(),
        }
    }

    /// The starts that this process has postponed.
    pub fn put_off(&self) -> &PutOff {
        &self.put_off
    }

    /// The limits in force.
    pub fn limits(&self) -> StartLimits {
        self.limits
    }

    /// Counts a start.
    ///
    /// # Errors
    /// There were too many starts. The error is the number of milliseconds after which to try again.
    pub fn start(&self, workflow: &Arc<str>, cause: StartCause, now: Timestamp) -> Result<(), i64> {
        let Some(rates) = self.of(cause) else {
            return Ok(());
        };
        let mut buckets = self.buckets.lock().unwrap_or_else(PoisonError::into_inner);
        let Buckets { all, workflows } = &mut *buckets;
        if workflows.len() >= WORKFLOWS_MAX && !workflows.contains_key(workflow) {
            let minute = now.0.saturating_sub(60_000);
            workflows.retain(|_, buckets| buckets.iter().any(|bucket| bucket.at_ms > minute));
            if workflows.len() >= WORKFLOWS_MAX {
                workflows.clear();
            }
        }
        let [any, further, far] = workflows.entry(workflow.clone()).or_default();
        let mut buckets = [all, any, further, far];
        let waits = buckets.iter_mut().zip(rates);
        let wait = waits.map(|(bucket, rate)| bucket.wait(rate, now.0)).max();
        if let Some(wait) = wait.filter(|wait| *wait > 0) {
            return Err(wait);
        }
        for (bucket, rate) in buckets.into_iter().zip(rates) {
            if rate > 0 {
                bucket.taken += 1.0;
            }
        }
        Ok(())
    }

    /// Whether [`Rates::start`] would allow it now. Counts nothing.
    ///
    /// # Errors
    /// As for [`Rates::start`].
    pub fn check(&self, workflow: &str, cause: StartCause, now: Timestamp) -> Result<(), i64> {
        let Some(rates) = self.of(cause) else {
            return Ok(());
        };
        let mut buckets = self.buckets.lock().unwrap_or_else(PoisonError::into_inner);
        let Buckets { all, workflows } = &mut *buckets;
        let Some([any, further, far]) = workflows.get_mut(workflow) else {
            return Ok(());
        };
        let waits = [all, any, further, far].into_iter().zip(rates);
        match waits.map(|(bucket, rate)| bucket.wait(rate, now.0)).max() {
            Some(wait) if wait > 0 => Err(wait),
            _ => Ok(()),
        }
    }

    /// The rates in force for a start: of all workflows, and three of its own workflow. A rate of 0 is no limit; `None`
    /// means that there is no limit at all.
    fn of(&self, cause: StartCause) -> Option<[u32; 4]> {
        let limits = self.limits;
        let chained = match cause {
            StartCause::Request => 0,
            StartCause::Chain | StartCause::Runaway => limits.chained,
        };
        let runaway = match cause {
            StartCause::Request | StartCause::Chain => 0,
            StartCause::Runaway => limits.runaway,
        };
        let rates = [limits.all, limits.workflow, chained, runaway];
        rates.iter().any(|rate| *rate > 0).then_some(rates)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_workflow_and_all_together_have_a_rate() {
        let rates = Rates::new(StartLimits {
            workflow: 10,
            chained: 5,
            all: 15,
            ..StartLimits::default()
        });
        let (one, other): (Arc<str>, Arc<str>) = ("one".into(), "other".into());
        let at = |ms: i64| Timestamp(1_000_000 + ms);
        let many = |workflow: &Arc<str>, chained: bool, ms: i64| {
            let cause = match chained {
                true => StartCause::Chain,
                false => StartCause::Request,
            };
            (0..1_000)
                .take_while(|_| rates.start(workflow, cause, at(ms)).is_ok())
                .count()
        };
        assert_eq!(many(&one, true, 0), 50);
        assert_eq!(rates.start(&one, StartCause::Chain, at(0)), Err(200));
        assert_eq!(many(&one, false, 0), 50);
        assert_eq!(many(&other, false, 0), 50, "all together");
        // A second later, as many fit as are allowed per second.
        assert_eq!(many(&one, true, 1_000), 5);
        assert_eq!(many(&one, false, 1_000), 5);
        assert_eq!(many(&other, false, 1_000), 5);
        // A clock that goes back refills nothing.
        assert_eq!(many(&one, false, 0), 0);
        let none = Rates::new(StartLimits::default());
        assert!((0..100_000).all(|_| none.start(&one, StartCause::Runaway, at(0)).is_ok()));
    }

    #[test]
    fn starts_far_down_a_chain_have_their_own_rate() {
        let rates = Rates::new(StartLimits {
            chained: 5,
            runaway: 2,
            ..StartLimits::default()
        });
        let one: Arc<str> = "one".into();
        let many = |cause: StartCause, ms: i64| {
            (0..1_000)
                .take_while(|_| rates.start(&one, cause, Timestamp(1_000_000 + ms)).is_ok())
                .count()
        };
        assert_eq!(many(StartCause::Runaway, 0), 20);
        assert_eq!(many(StartCause::Chain, 0), 30, "they count there, too");
        assert_eq!(many(StartCause::Runaway, 1_000), 2);
        assert_eq!(many(StartCause::Chain, 1_000), 3);
        assert_eq!(many(StartCause::Request, 1_000), 1_000);
    }
}
