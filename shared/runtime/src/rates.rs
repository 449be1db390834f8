//! Limits on the rate of starts: by workflow, and in total.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use swirl_model::time::Timestamp;

/// A burst may have this many seconds' worth of starts.
const BURST_S: f64 = 10.0;
/// The number of workflows that are counted separately; beyond it, idle ones are forgotten.
const WORKFLOWS_MAX: usize = 10_000;

/// The maximum number of instances that one process starts. 0: without a limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct StartLimits {
    /// Instances of one workflow in a second.
    pub workflow: u32,
    /// Those of them that other instances start: as sub-workflows, by `continueAs`, by events.
    pub chained: u32,
    /// Instances of all workflows in a second.
    pub all: u32,
    /// The least time between two instances of a schedule.
    pub schedule_ms: i64,
}

/// Counts starts.
#[derive(Debug, Default)]
pub struct Rates {
    limits: StartLimits,
    buckets: Mutex<Buckets>,
}

#[derive(Debug, Default)]
struct Buckets {
    all: Bucket,
    workflows: HashMap<Arc<str>, [Bucket; 2]>,
}

/// The amount taken from the bucket, which is refilled with time.
#[derive(Debug, Default, Clone, Copy)]
struct Bucket {
    taken: f64,
    at_ms: i64,
}

impl Bucket {
    /// Milliseconds until there is room for another one; 0 if there is.
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
    /// Within these.
    pub fn new(limits: StartLimits) -> Rates {
        Rates {
            limits,
            buckets: Mutex::default(),
        }
    }

    /// The limits in force.
    pub fn limits(&self) -> StartLimits {
        self.limits
    }

    /// Takes a start. The error is the number of milliseconds after which it may be tried again.
    ///
    /// # Errors
    /// There were too many.
    pub fn start(&self, workflow: &Arc<str>, chained: bool, now: Timestamp) -> Result<(), i64> {
        let limits = self.limits;
        if limits.workflow == 0 && limits.all == 0 && (limits.chained == 0 || !chained) {
            return Ok(());
        }
        let mut buckets = self.buckets.lock().unwrap_or_else(PoisonError::into_inner);
        let Buckets { all, workflows } = &mut *buckets;
        if workflows.len() >= WORKFLOWS_MAX && !workflows.contains_key(workflow) {
            let minute = now.0.saturating_sub(60_000);
            workflows.retain(|_, [any, _]| any.at_ms > minute);
            if workflows.len() >= WORKFLOWS_MAX {
                workflows.clear();
            }
        }
        let [any, further] = workflows.entry(workflow.clone()).or_default();
        let wait = all.wait(limits.all, now.0);
        let wait = wait.max(any.wait(limits.workflow, now.0));
        let wait = match chained {
            true => wait.max(further.wait(limits.chained, now.0)),
            false => wait,
        };
        if wait > 0 {
            return Err(wait);
        }
        all.taken += 1.0;
        any.taken += 1.0;
        any.at_ms = any.at_ms.max(now.0);
        if chained {
            further.taken += 1.0;
        }
        Ok(())
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
            schedule_ms: 0,
        });
        let (one, other): (Arc<str>, Arc<str>) = ("one".into(), "other".into());
        let at = |ms: i64| Timestamp(1_000_000 + ms);
        let many = |workflow: &Arc<str>, chained: bool, ms: i64| {
            (0..1_000)
                .take_while(|_| rates.start(workflow, chained, at(ms)).is_ok())
                .count()
        };
        assert_eq!(many(&one, true, 0), 50);
        assert_eq!(rates.start(&one, true, at(0)), Err(200));
        assert_eq!(many(&one, false, 0), 50);
        assert_eq!(many(&other, false, 0), 50, "all together");
        // A second later there is room for as many as a second has.
        assert_eq!(many(&one, true, 1_000), 5);
        assert_eq!(many(&one, false, 1_000), 5);
        assert_eq!(many(&other, false, 1_000), 5);
        // A clock that goes back refills nothing.
        assert_eq!(many(&one, false, 0), 0);
        let none = Rates::new(StartLimits::default());
        assert!((0..100_000).all(|_| none.start(&one, true, at(0)).is_ok()));
    }
}
