//! How late the work of the system is, and which processes do it, in plain words.

use serde_json::Value;

use crate::answer::{list, text};

/// A lateness above this is marked, in milliseconds.
const LATE_MS: i64 = 10_000;

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
    pub since: String,
    pub seen: String,
    pub is_alive: bool,
}

/// Queues, timers and lifecycle events, of an answer of the API.
pub fn facts(system: &Value) -> Vec<Fact> {
    let mut facts: Vec<Fact> = list(system, "queues").iter().filter_map(queue).collect();
    if system["queues"].is_null() {
        facts.push(Fact {
            name: "Tasks",
            text: "It is not known now how many are waiting.".to_owned(),
            is_late: false,
        });
    }
    let late = ms(&system["timers"]["lateMs"]);
    facts.push(Fact {
        name: "Timers",
        text: match late {
            0 => "None is late.".to_owned(),
            late => format!("The earliest one is {} late.", shown(late)),
        },
        is_late: late > LATE_MS,
    });
    let lifecycle = &system["lifecycle"];
    if lifecycle.is_object() {
        let (lag, count) = (ms(&lifecycle["lagMs"]), ms(&lifecycle["instances"]));
        facts.push(Fact {
            name: "Lifecycle events",
            text: match count {
                0 => "All are published.".to_owned(),
                1 => format!("1 instance has unpublished ones, for {}.", shown(lag)),
                count => format!(
                    "{count} instances have unpublished ones, the oldest for {}.",
                    shown(lag)
                ),
            },
            is_late: lag > LATE_MS,
        });
    }
    facts
}

fn ms(value: &Value) -> i64 {
    value.as_i64().unwrap_or_default()
}

fn queue(one: &Value) -> Option<Fact> {
    let (name, none) = match one["queue"].as_str()? {
        "tasks" => ("Tasks", "None waits for a worker."),
        "events" => ("Events", "None waits to be received."),
        "joins" => ("Joins", "No branches wait to be joined."),
        _ => return None,
    };
    let (pending, oldest) = (ms(&one["pending"]), ms(&one["oldestMs"]));
    Some(Fact {
        name,
        text: match pending {
            0 => none.to_owned(),
            1 => format!("1 waits, for {}.", shown(oldest)),
            count => format!("{count} wait, the oldest for {}.", shown(oldest)),
        },
        is_late: pending > 0 && oldest > LATE_MS,
    })
}

fn shown(ms: i64) -> String {
    match ms {
        ..1_000 => "less than a second".to_owned(),
        1_000..120_000 => format!("{} s", ms / 1_000),
        120_000..7_200_000 => format!("{} min", ms / 60_000),
        _ => format!("{} h", ms / 3_600_000),
    }
}

pub fn processes(system: &Value) -> Vec<Process> {
    let all = list(system, "processes").iter();
    all.map(|one| Process {
        id: text(one, "id"),
        role: match one["role"].as_str().unwrap_or_default() {
            "worker" => "worker",
            "coordinator" => "coordinator",
            "dev" => "everything (swirl dev)",
            _ => "other",
        },
        host: text(one, "host"),
        version: text(one, "version"),
        since: text(one, "since"),
        seen: text(one, "seenAt"),
        is_alive: one["alive"] == true,
    })
    .collect()
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
    use serde_json::json;

    use super::*;

    #[test]
    fn lateness_in_words() {
        let system = json!({
            "queues": [{"queue": "tasks", "pending": 3, "oldestMs": 65_000}, {"queue": "events", "pending": 0, "oldestMs": 0},
                       {"queue": "joins", "pending": 1, "oldestMs": 5}, {"queue": "later", "pending": 1, "oldestMs": 5}],
            "timers": {"lateMs": 7_300_000, "next": null},
            "lifecycle": {"lagMs": 200_000, "instances": 2},
        });
        let told: Vec<(&str, String, bool)> = facts(&system)
            .into_iter()
            .map(|fact| (fact.name, fact.text, fact.is_late))
            .collect();
        let fact = |name, text: &str, is_late| (name, text.to_owned(), is_late);
        assert_eq!(
            told,
            [
                fact("Tasks", "3 wait, the oldest for 65 s.", true),
                fact("Events", "None waits to be received.", false),
                fact("Joins", "1 waits, for less than a second.", false),
                fact("Timers", "The earliest one is 2 h late.", true),
                fact(
                    "Lifecycle events",
                    "2 instances have unpublished ones, the oldest for 3 min.",
                    true
                ),
            ]
        );
        let quiet = facts(&json!({"queues": null, "timers": {"lateMs": 0}, "lifecycle": null}));
        assert!(quiet.iter().all(|fact| !fact.is_late), "{quiet:?}");
        assert_eq!(quiet[1].text, "None is late.");
    }

    #[test]
    fn a_cluster_without_workers_is_noticed() {
        let of = |all: &[(&str, bool)]| {
            let all = all
                .iter()
                .map(|(role, alive)| json!({"role": role, "alive": alive}));
            let all = processes(&json!({"processes": all.collect::<Vec<_>>()}));
            !lacking(&all).is_empty()
        };
        assert!(of(&[("coordinator", true)]));
        assert!(of(&[("coordinator", true), ("worker", false)]));
        assert!(!of(&[("coordinator", true), ("worker", true)]));
        assert!(!of(&[("dev", true)]) && !of(&[]));
    }
}
