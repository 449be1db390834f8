//! How late the work of the system is, and which processes do it, in plain words.

use swirl_api::Instant;
use swirl_api::system::{self, Queue, System};

/// A lateness above this is marked, in milliseconds.
const LATE_MS: u64 = 10_000;

/// The work of workers.
const STEPS: &str = "Steps of instances";

/// A sentence about something that may be late.
#[derive(Debug, PartialEq)]
pub struct Fact {
    pub name: &'static str,
    pub text: String,
    pub is_late: bool,
}

pub struct Process {
    pub id: String,
    pub role: &'static str,
    pub host: String,
    pub version: String,
    pub since: Instant,
    pub seen: Instant,
    pub is_alive: bool,
    /// These are empty if they are not known.
    pub address: String,
    pub pid: String,
    pub processor: String,
    pub memory: String,
}

/// Queues, timers and lifecycle events.
pub fn facts(system: &System) -> Vec<Fact> {
    let mut facts: Vec<Fact> = match &system.queues {
        Some(queues) => queues.iter().filter_map(queue).collect(),
        None => vec![Fact {
            name: STEPS,
            text: "How many are waiting is not known at the moment.".to_owned(),
            is_late: false,
        }],
    };
    let late = system.timers.late_ms;
    facts.push(Fact {
        name: "Timers",
        text: match late {
            0 => "None is overdue.".to_owned(),
            late => format!("The earliest is {} overdue.", shown(late)),
        },
        is_late: late > LATE_MS,
    });
    if let Some(lifecycle) = &system.lifecycle {
        let lag = lifecycle.lag_ms;
        facts.push(Fact {
            name: "Events about instances",
            text: match lifecycle.instances {
                0 => "All are published.".to_owned(),
                1 => format!("Those of 1 instance have been waiting for {}.", shown(lag)),
                count => format!(
                    "Those of {count} instances are waiting, the oldest for {}.",
                    shown(lag)
                ),
            },
            is_late: lag > LATE_MS,
        });
    }
    facts
}

fn queue(one: &Queue) -> Option<Fact> {
    let (name, none) = match one.queue.as_str() {
        "tasks" => (STEPS, "None is waiting for a worker."),
        "events" => ("Received events", "None is waiting to be delivered."),
        "joins" => (
            "Parallel branches that have ended",
            "None is waiting to be merged.",
        ),
        _ => return None,
    };
    let (pending, oldest) = (one.pending, one.oldest_ms);
    Some(Fact {
        name,
        text: match pending {
            0 => none.to_owned(),
            1 => format!("1 has been waiting for {}.", shown(oldest)),
            count => format!("{count} are waiting, the oldest for {}.", shown(oldest)),
        },
        is_late: pending > 0 && oldest > LATE_MS,
    })
}

fn shown(ms: u64) -> String {
    match ms {
        ..1_000 => "less than a second".to_owned(),
        1_000..120_000 => format!("{} s", ms / 1_000),
        120_000..7_200_000 => format!("{} min", ms / 60_000),
        _ => format!("{} h", ms / 3_600_000),
    }
}

pub fn processes(all: Vec<system::Process>) -> Vec<Process> {
    let all = all.into_iter().map(|one| Process {
        id: one.id,
        role: match one.role.as_str() {
            "worker" => "worker",
            "coordinator" => "coordinator",
            "dev" => "everything (swirl dev)",
            _ => "other",
        },
        host: one.host,
        version: one.version,
        since: one.since,
        seen: one.seen_at,
        is_alive: one.alive,
        address: one.address.unwrap_or_default(),
        pid: one.pid.map(|pid| pid.to_string()).unwrap_or_default(),
        processor: one
            .processor_percent
            .map(|percent| format!("{percent} %"))
            .unwrap_or_default(),
        memory: one
            .memory_bytes
            .map(|bytes| format!("{} MiB", bytes >> 20))
            .unwrap_or_default(),
    });
    all.collect()
}

/// A sentence about a role that no process has; empty if all work is done.
pub fn lacking(processes: &[Process]) -> &'static str {
    let has = |role: &str| {
        let mut all = processes.iter();
        all.any(|one| one.is_alive && one.role == role)
    };
    let is_cluster = processes.iter().any(|one| one.role == "coordinator");
    match is_cluster && !has("worker") {
        true => "No worker is running: instances that need one wait until a worker starts.",
        false => "",
    }
}

#[cfg(test)]
mod tests {
    use swirl_api::system::{Lifecycle, Timers};
    use swirl_model::time::Timestamp;

    use super::*;

    fn system(queues: Option<Vec<Queue>>, late_ms: u64, lifecycle: Option<Lifecycle>) -> System {
        System {
            at: Instant(Timestamp(0)),
            processes: Vec::new(),
            queues,
            timers: Timers {
                late_ms,
                next: None,
            },
            lifecycle,
        }
    }

    #[test]
    fn lateness_in_words() {
        let queue = |name: &str, pending, oldest_ms| Queue {
            queue: name.to_owned(),
            pending,
            unacknowledged: None,
            oldest_ms,
        };
        let queues = vec![
            queue("tasks", 3, 65_000),
            queue("events", 0, 0),
            queue("joins", 1, 5),
            queue("later", 1, 5),
        ];
        let lifecycle = Lifecycle {
            lag_ms: 200_000,
            instances: 2,
        };
        let system = system(Some(queues), 7_300_000, Some(lifecycle));
        let told: Vec<(&str, String, bool)> = facts(&system)
            .into_iter()
            .map(|fact| (fact.name, fact.text, fact.is_late))
            .collect();
        let fact = |name, text: &str, is_late| (name, text.to_owned(), is_late);
        assert_eq!(
            told,
            [
                fact(STEPS, "3 are waiting, the oldest for 65 s.", true),
                fact("Received events", "None is waiting to be delivered.", false),
                fact(
                    "Parallel branches that have ended",
                    "1 has been waiting for less than a second.",
                    false
                ),
                fact("Timers", "The earliest is 2 h overdue.", true),
                fact(
                    "Events about instances",
                    "Those of 2 instances are waiting, the oldest for 3 min.",
                    true
                ),
            ]
        );
        let quiet = facts(&self::system(None, 0, None));
        assert!(quiet.iter().all(|fact| !fact.is_late), "{quiet:?}");
        assert_eq!(quiet[1].text, "None is overdue.");
    }

    #[test]
    fn a_cluster_without_workers_is_noticed() {
        let of = |all: &[(&str, bool)]| {
            let all = all.iter().map(|(role, alive)| system::Process {
                id: String::new(),
                role: (*role).to_owned(),
                host: String::new(),
                version: String::new(),
                since: Instant(Timestamp(0)),
                seen_at: Instant(Timestamp(0)),
                alive: *alive,
                address: None,
                pid: Some(7),
                processor_percent: Some(12),
                memory_bytes: Some(3 << 20),
            });
            let all = processes(all.collect());
            !lacking(&all).is_empty()
        };
        assert!(of(&[("coordinator", true)]));
        assert!(of(&[("coordinator", true), ("worker", false)]));
        assert!(!of(&[("coordinator", true), ("worker", true)]));
        assert!(!of(&[("dev", true)]) && !of(&[]));
    }
}
