//! The size of a run: a full report, or a little of everything.

use std::time::Duration;

#[derive(Debug, Clone)]
pub struct Plan {
    pub quick: bool,
    /// The duration of one measurement, and the number of repetitions, of which the median is shown.
    pub seconds: f64,
    pub repeats: usize,
    /// Instances that are started without waiting for their results.
    pub burst: usize,
    /// Instances that wait for events.
    pub waiting: usize,
    /// The number of timers that become due while no coordinator runs, and the duration of their sleep.
    pub timers: usize,
    pub nap: Duration,
    pub definitions: usize,
}

impl Plan {
    pub fn new(quick: bool) -> Plan {
        if quick {
            Plan {
                quick,
                seconds: 1.0,
                repeats: 1,
                burst: 5_000,
                waiting: 2_000,
                timers: 2_000,
                nap: Duration::from_secs(6),
                definitions: 100,
            }
        } else {
            Plan {
                quick,
                seconds: 2.5,
                repeats: 3,
                burst: 30_000,
                waiting: 100_000,
                timers: 10_000,
                nap: Duration::from_secs(20),
                definitions: 1_000,
            }
        }
    }

    /// The number of concurrent instances.
    pub fn in_flight(&self) -> Vec<usize> {
        if self.quick {
            vec![1, 64]
        } else {
            vec![1, 64, 256]
        }
    }

    /// The number of concurrent instances with a hundred scopes each.
    pub fn in_flight_of_forks(&self) -> Vec<usize> {
        vec![1, 16]
    }

    /// Sizes of state data, in bytes.
    pub fn sizes(&self) -> Vec<usize> {
        let all = [1_000, 10_000, 100_000, 1_000_000];
        all[..if self.quick { 3 } else { 4 }].to_vec()
    }

    /// Numbers of iterations of a foreach.
    pub fn fan_outs(&self) -> Vec<usize> {
        let all = [10, 100, 1_000, 10_000, 100_000];
        all[..if self.quick { 3 } else { 5 }].to_vec()
    }

    pub fn fan_outs_of_calls(&self) -> Vec<usize> {
        let all = [10, 100, 1_000, 10_000];
        all[..if self.quick { 3 } else { 4 }].to_vec()
    }

    /// Numbers of states that an instance goes through.
    pub fn lengths(&self) -> Vec<usize> {
        let all = [10, 100, 1_000, 10_000, 100_000];
        all[..if self.quick { 4 } else { 5 }].to_vec()
    }

    /// Numbers of waiting instances.
    pub fn crowds(&self) -> Vec<usize> {
        let all = [100, 1_000, 10_000, 100_000, 1_000_000];
        all[..if self.quick { 2 } else { 5 }].to_vec()
    }

    pub fn workers(&self) -> Vec<usize> {
        if self.quick {
            vec![1, 2]
        } else {
            vec![1, 2, 4, 8]
        }
    }
}
