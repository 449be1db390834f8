//! The lane of a crowded workflow.
//!
//! A workflow keeps the lane in which its tasks are the majority, and otherwise gets the lane with the fewest tasks of
//! others. So it doesn't wait behind a flood of another workflow while there is a lane without one. Workers needn't agree,
//! because any worker takes a task from any lane: each looks at the stream's counts from time to time.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// The number of lanes. Each has a consumer, which costs the server some memory and a heartbeat.
pub(crate) const LANES: usize = 16;

/// How long the counts of the stream are used. Tasks that this process adds meanwhile count at once.
const COUNTS_MAX_AGE: Duration = Duration::from_secs(1);

/// The number of tasks of each workflow in each lane.
pub(crate) type LaneCounts = [HashMap<String, usize>; LANES];

#[derive(Default)]
pub(crate) struct Lanes {
    seen: Mutex<Seen>,
}

#[derive(Default)]
struct Seen {
    counted_at: Option<Instant>,
    counts: LaneCounts,
}

impl Lanes {
    /// Whether the caller should count the tasks and report them. Only one caller at a time is asked to.
    pub(crate) fn needs_counts(&self) -> bool {
        let mut seen = self.lock();
        let is_due = seen
            .counted_at
            .is_none_or(|at| at.elapsed() > COUNTS_MAX_AGE);
        if is_due {
            seen.counted_at = Some(Instant::now());
        }
        is_due
    }

    pub(crate) fn counted(&self, counts: LaneCounts) {
        self.lock().counts = counts;
    }

    /// The lane for one more task of a workflow.
    pub(crate) fn add(&self, workflow: &str) -> usize {
        let mut seen = self.lock();
        let lane = choose(&seen.counts, workflow);
        *seen.counts[lane].entry(workflow.to_owned()).or_default() += 1;
        lane
    }

    fn lock(&self) -> MutexGuard<'_, Seen> {
        self.seen.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The name of a workflow as a part of a subject.
pub(crate) fn key_of(workflow: &str) -> String {
    blake3::hash(workflow.as_bytes()).to_hex()[..16].to_owned()
}

fn choose(counts: &LaneCounts, workflow: &str) -> usize {
    let own = |lane: usize| counts[lane].get(workflow).copied().unwrap_or_default();
    let others = |lane: usize| counts[lane].values().sum::<usize>() - own(lane);
    // Workers with the same counts choose different lanes for different workflows.
    let first = usize::from(blake3::hash(workflow.as_bytes()).as_bytes()[0]) % LANES;
    let lanes = (0..LANES).map(|step| (first + step) % LANES);
    lanes
        .min_by_key(|lane| {
            let (own, others) = (own(*lane), others(*lane));
            match own > others {
                true => (0, usize::MAX - own),
                false => (1, others),
            }
        })
        .unwrap_or(first)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_workflow_avoids_the_floods_of_others() {
        let lanes = Lanes::default();
        let flooded: Vec<String> = (0..LANES - 1).map(|n| format!("flood-{n}")).collect();
        let mut taken = Vec::new();
        for workflow in &flooded {
            let lane = lanes.add(workflow);
            assert!(!taken.contains(&lane), "{workflow}: {lane} in {taken:?}");
            taken.push(lane);
            for _ in 0..100 {
                assert_eq!(lanes.add(workflow), lane, "it keeps its lane");
            }
        }
        let free = lanes.add("small");
        assert!(!taken.contains(&free));
        assert_eq!(lanes.add("small"), free);
        // Without a free lane it goes where least wait.
        let mut counts = LaneCounts::default();
        for (lane, of_lane) in counts.iter_mut().enumerate() {
            of_lane.insert(format!("flood-{lane}"), 1_000 + lane);
        }
        counts[7].insert("flood-7".to_owned(), 3);
        lanes.counted(counts);
        assert_eq!(lanes.add("small"), 7);
        assert_eq!(lanes.add("flood-7"), 7);
    }

    #[test]
    fn a_workflow_leaves_a_lane_that_another_one_floods() {
        let lanes = Lanes::default();
        let lane = lanes.add("small");
        let mut counts = LaneCounts::default();
        counts[lane].extend([("small".to_owned(), 5), ("flood".to_owned(), 900)]);
        lanes.counted(counts);
        assert_eq!(lanes.add("flood"), lane);
        assert_ne!(lanes.add("small"), lane);
    }

    #[test]
    fn counts_are_asked_for_from_time_to_time() {
        let lanes = Lanes::default();
        assert!(lanes.needs_counts());
        assert!(!lanes.needs_counts());
    }
}
