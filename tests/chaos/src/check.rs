//! What must have come of a run.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::time::Duration;

use serde_json::Value;

use crate::faults::Fault;
use crate::instance::{Calls, Planned};
use crate::service::Seen;

/// Events with `type` `chaos.done`: their ids, and how often each data came with how many ids.
#[derive(Debug, Default)]
pub struct Produced {
    /// Data as text, to the ids that it came with.
    pub ids: BTreeMap<String, BTreeSet<String>>,
    /// Messages, repeats included.
    pub messages: usize,
}

/// What was seen of an instance at its end.
#[derive(Debug, Clone)]
pub struct Ended {
    pub planned: Planned,
    /// As the API shows it.
    pub view: Value,
    pub history: Value,
}

#[derive(Debug, Default)]
pub struct Report {
    pub instances: usize,
    pub calls: usize,
    /// Calls that were made again with the same key.
    pub repeated: usize,
    pub produced: usize,
    pub requests_failed: usize,
    pub faults: BTreeMap<&'static str, usize>,
    pub under_faults: Duration,
    /// From the end of the faults to the end of the last instance.
    pub healed_after: Duration,
    /// Empty if all is as it must be.
    pub differences: Vec<String>,
}

impl Report {
    pub fn new(faults: &[Fault]) -> Report {
        let mut report = Report::default();
        for fault in faults {
            *report.faults.entry(fault.word()).or_default() += 1;
        }
        report
    }

    pub fn text(&self) -> String {
        let mut text = String::new();
        let faults: Vec<String> = self
            .faults
            .iter()
            .map(|(word, count)| format!("{word} {count}"))
            .collect();
        let _ = writeln!(text, "instances          {}", self.instances);
        let _ = writeln!(text, "faults             {}", faults.join(", "));
        let _ = writeln!(text, "under faults       {:.1?}", self.under_faults);
        let _ = writeln!(text, "all ended after    {:.1?}", self.healed_after);
        let _ = writeln!(text, "calls              {}", self.calls);
        let _ = writeln!(text, "  made again       {}", self.repeated);
        let _ = writeln!(text, "produced events    {}", self.produced);
        let _ = writeln!(text, "requests again     {}", self.requests_failed);
        let _ = writeln!(text, "differences        {}", self.differences.len());
        for difference in self.differences.iter().take(50) {
            let _ = writeln!(text, "  {difference}");
        }
        text
    }

    /// Compares everything.
    ///
    /// `is_wiped`: NATS forgot streams, so that an event may have been published and be gone.
    pub fn check(&mut self, all: &[Ended], seen: &Seen, produced: &Produced, is_wiped: bool) {
        self.instances = all.len();
        self.calls = seen.total;
        self.produced = produced.ids.len();
        let distinct: usize = seen.keys.values().map(Vec::len).sum();
        self.repeated = seen.total.saturating_sub(distinct);
        for ended in all {
            self.output(ended);
            self.history(ended);
        }
        self.calls(all, seen);
        self.events(all, produced, is_wiped);
    }

    fn note(&mut self, text: String) {
        self.differences.push(text);
    }

    fn output(&mut self, ended: &Ended) {
        let (planned, view) = (&ended.planned, &ended.view);
        let name = format!("{} {}", planned.workflow(), planned.id());
        if view["status"] != "completed" {
            self.note(format!(
                "{name}: status {}: {}",
                view["status"], view["error"]
            ));
        } else if view["output"] != planned.output() {
            let (got, wanted) = (&view["output"], planned.output());
            self.note(format!("{name}: output {got}, not {wanted}"));
        }
    }

    /// A state of the root path is entered and left once, the instance ends once.
    fn history(&mut self, ended: &Ended) {
        let name = ended.planned.id();
        let mut entered: BTreeMap<&str, i64> = BTreeMap::new();
        let mut ends = 0;
        for entry in ended.history["entries"].as_array().into_iter().flatten() {
            let state = entry["name"].as_str().unwrap_or_default();
            match (entry["event"].as_str(), entry["scope"].as_str()) {
                (Some("state_entered"), Some("r")) => *entered.entry(state).or_default() += 1,
                (Some("ended"), _) => ends += 1,
                _ => {}
            }
        }
        if ends != 1 {
            self.note(format!("{name}: its history has {ends} ends"));
        }
        for (state, count) in entered {
            if count != 1 {
                self.note(format!("{name}: {state} was entered {count} times"));
            }
        }
    }

    fn calls(&mut self, all: &[Ended], seen: &Seen) {
        let mut by_instance: BTreeMap<&str, Calls> = BTreeMap::new();
        for ((id, step, item), keys) in &seen.keys {
            let calls = by_instance.entry(id).or_default();
            calls.insert((step.clone(), *item), keys.len());
        }
        for ended in all {
            let id = ended.planned.id();
            let got = by_instance.remove(id.as_str()).unwrap_or_default();
            let wanted = ended.planned.calls();
            if got != wanted {
                self.note(format!("{id}: calls {got:?}, not {wanted:?}"));
            }
        }
        for id in by_instance.keys() {
            self.note(format!("{id}: calls of an instance that nobody started"));
        }
        for key in &seen.shared {
            self.note(format!("two calls have the key {key}"));
        }
        if seen.without_key > 0 {
            self.note(format!("{} calls have no key", seen.without_key));
        }
    }

    fn events(&mut self, all: &[Ended], produced: &Produced, is_wiped: bool) {
        let mut left: BTreeMap<&String, &BTreeSet<String>> = produced.ids.iter().collect();
        for ended in all {
            let Some(data) = ended.planned.produced() else {
                continue;
            };
            match left.remove(&data.to_string()) {
                None if is_wiped => {}
                None => self.note(format!("{}: its event is missing", ended.planned.id())),
                Some(ids) if ids.len() != 1 => {
                    self.note(format!(
                        "{}: its event has the ids {ids:?}",
                        ended.planned.id()
                    ));
                }
                Some(_) => {}
            }
        }
        for data in left.keys() {
            self.note(format!("nobody was to produce {data}"));
        }
    }
}
