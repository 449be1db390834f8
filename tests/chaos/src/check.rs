//! Checks the outcome of a run.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::time::Duration;

use serde_json::Value;
use swirl_model::time::Timestamp;

use crate::hostile::Hostility;
use crate::instance::{Calls, Planned};
use crate::memory::Memory;
use crate::run::Options;
use crate::service::Seen;
use crate::tasks::TICK_MS;

const DIFFERENCES_SHOWN: usize = 50;
/// The factor by which an instance may be slower beside hostile ones, and the minimum time that it is compared with (in
/// milliseconds).
const SLOWER_MAX: i64 = 10;
const TOOK_MIN: i64 = 1_000;
/// Instants that a schedule misses, while nothing can be stored, are caught up once. So not each of them has an instance,
/// but one of so many.
const TICKS_MISSED: i64 = 4;

/// Events of `type` `chaos.done`, with their ids and data.
#[derive(Debug, Default)]
pub struct Produced {
    /// The ids of the events, by their data as text.
    pub ids: BTreeMap<String, BTreeSet<String>>,
    /// The number of messages, including repeats.
    pub messages: usize,
}

/// The servers' losses that the comparison allows for.
#[derive(Debug, Clone, Copy)]
pub struct Losses {
    /// NATS lost streams, so a published event may be missing.
    pub events: bool,
    /// Redis lost its last writes, so an instance may have begun twice.
    pub writes: bool,
}

/// An instance that has ended.
#[derive(Debug, Clone)]
pub struct Ended {
    pub planned: Planned,
    /// The time of the client's request.
    pub asked_ms: i64,
    /// The instance in the API's form.
    pub view: Value,
    pub history: Value,
}

/// The times of the client's request and of the instance's end, in milliseconds since the epoch.
#[derive(Debug, Clone)]
pub struct Time {
    pub number: usize,
    pub asked: i64,
    pub ended: i64,
    /// The longest pauses in the history of one scope.
    pub pauses: String,
}

impl Time {
    fn took(&self) -> i64 {
        self.ended - self.asked
    }
}

#[derive(Debug, Default)]
pub struct Report {
    pub instances: usize,
    pub calls: usize,
    /// Calls that were repeated with the same key.
    pub repeated: usize,
    pub produced: usize,
    /// The instances that a schedule has started.
    pub ticks: usize,
    /// Produced events that were not received because NATS lost its streams.
    pub unseen: usize,
    /// The numbers of instances that Redis lost, and that were started again.
    pub again: BTreeSet<usize>,
    pub requests_failed: usize,
    pub faults: BTreeMap<&'static str, usize>,
    /// The number of instances that were running when the faults ended.
    pub left: usize,
    pub under_faults: Duration,
    /// The time from the end of the faults to the end of the last instance, or until they were no longer waited for.
    pub healed_after: Duration,
    /// For each workflow, the times of its instances.
    pub times: BTreeMap<&'static str, Vec<Time>>,
    pub hostility: Option<Hostility>,
    pub memory: Memory,
    /// Instances that have not ended in time. Their calls and events are not compared.
    pub unended: Vec<Planned>,
    /// Empty if everything is correct.
    pub differences: Vec<String>,
}

impl Report {
    /// The label and value of each line.
    pub fn rows(&self) -> Vec<(String, String)> {
        let faults: Vec<String> = self
            .faults
            .iter()
            .map(|(word, count)| format!("{word} {count}"))
            .collect();
        let mut rows: Vec<(String, String)> = vec![
            ("instances", self.instances.to_string()),
            ("faults", faults.join(", ")),
            ("under faults", format!("{:.1?}", self.under_faults)),
            ("under way when they ended", self.left.to_string()),
            ("all ended after", format!("{:.1?}", self.healed_after)),
            ("have not ended", self.unended.len().to_string()),
            ("calls", self.calls.to_string()),
            ("calls made again", self.repeated.to_string()),
            ("produced events", self.produced.to_string()),
            ("started by a schedule", self.ticks.to_string()),
            ("lost with NATS's streams", self.unseen.to_string()),
            ("lost with Redis' writes", self.again.len().to_string()),
            ("requests again", self.requests_failed.to_string()),
            ("differences", self.differences.len().to_string()),
        ]
        .into_iter()
        .map(|(label, value)| (label.to_owned(), value))
        .collect();
        for (workflow, times) in &self.times {
            rows.push((format!("{workflow} took"), spread(times)));
        }
        if let Some(hostility) = &self.hostility {
            rows.push(("hostile definitions".to_owned(), hostility.text()));
        }
        rows.extend(self.memory.rows());
        rows
    }

    pub fn text(&self) -> String {
        let mut text = String::new();
        for (label, value) in self.rows() {
            let _ = writeln!(text, "{label:26} {value}");
        }
        for difference in self.differences.iter().take(DIFFERENCES_SHOWN) {
            let _ = writeln!(text, "  {difference}");
        }
        text
    }

    /// The report in Markdown.
    pub fn markdown(&self, options: &Options) -> String {
        let mut text = String::from("# A run under faults\n\n");
        let _ = writeln!(
            text,
            "Seed {}, {} workers, {} coordinators, {} instances at once, {} elements in each foreach, a \
             fault every {:?}, outages of {:?}, leases of {:?}.\n",
            options.seed,
            options.workers,
            options.coordinators,
            options.at_once,
            options.fan,
            options.pause,
            options.outage,
            options.lease
        );
        let _ = writeln!(text, "| what | |\n| --- | --- |");
        for (label, value) in self.rows() {
            let _ = writeln!(text, "| {label} | {value} |");
        }
        if !self.differences.is_empty() {
            let _ = writeln!(text, "\nDifferences:\n");
        }
        for difference in self.differences.iter().take(DIFFERENCES_SHOWN) {
            let _ = writeln!(text, "- {difference}");
        }
        text
    }

    /// Checks the state and history of an instance.
    pub fn look_at(&mut self, ended: &Ended) {
        self.instances += 1;
        self.output(ended);
        self.history(ended);
        self.time(ended);
    }

    /// Checks the calls and events of all instances.
    pub fn effects(&mut self, all: &[Planned], seen: &Seen, produced: &Produced, losses: Losses) {
        self.calls = seen.total;
        self.produced = produced.ids.len();
        let distinct: usize = seen.keys.values().map(Vec::len).sum();
        self.repeated = seen.total.saturating_sub(distinct);
        self.calls(all, seen, losses);
        self.events(all, produced, losses.events);
    }

    /// Checks the instances that a schedule has started: at most one for each instant, and all completed. The last one may
    /// be under way.
    pub fn ticks(&mut self, ticks: &[Value], lasted: Duration) {
        let mut instants = BTreeSet::new();
        let newest = ticks
            .iter()
            .filter_map(|tick| tick["scheduledAt"].as_str())
            .max();
        for tick in ticks {
            let at = tick["scheduledAt"].as_str().unwrap_or_default();
            if !instants.insert(at) {
                self.note(format!("the schedule started two instances for {at}"));
            }
            if tick["status"] != "completed" && Some(at) != newest {
                self.note(format!(
                    "the instance of the schedule for {at} is {}",
                    tick["status"]
                ));
            }
        }
        self.ticks = instants.len();
        let due = lasted.as_millis() as i64 / TICK_MS;
        if (instants.len() as i64) < due / TICKS_MISSED {
            self.note(format!(
                "the schedule started {} instances, and {due} were due",
                instants.len()
            ));
        }
    }

    /// `id`: the id of the instance in the API.
    pub fn never_ended(&mut self, planned: Planned, id: &str) {
        let (workflow, name) = (planned.workflow(), planned.id());
        self.note(format!("{workflow} {name} ({id}): has not ended"));
        self.unended.push(planned);
    }

    fn time(&mut self, ended: &Ended) {
        let at = ended.view["endedAt"].as_str();
        if let Some(Ok(at)) = at.map(Timestamp::parse) {
            let times = self.times.entry(ended.planned.workflow()).or_default();
            times.push(Time {
                number: ended.planned.number,
                asked: ended.asked_ms,
                ended: at.0,
                pauses: pauses(&ended.history),
            });
        }
    }

    /// Compares the durations of instances since `attacked` with those of earlier instances of the same workflow, under
    /// the same load and faults.
    pub fn hold_up(&mut self, attacked: i64) {
        let mut late = Vec::new();
        for (workflow, times) in &self.times {
            let (before, since): (Vec<&Time>, Vec<&Time>) =
                times.iter().partition(|time| time.ended < attacked);
            let Some(slowest) = before.iter().map(|time| time.took()).max() else {
                late.push(format!("{workflow}: nothing ended before the attack"));
                continue;
            };
            let most = SLOWER_MAX * slowest.max(TOOK_MIN);
            let too_late = since.iter().filter(|time| time.took() > most);
            late.extend(too_late.map(|time| {
                format!(
                    "{workflow} n{}: took {} ms beside hostile ones, and at most {slowest} ms before; {}",
                    time.number,
                    time.took(),
                    time.pauses
                )
            }));
        }
        self.differences.extend(late);
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

    /// Each state of the root path is entered as often as planned, and the instance ends once.
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
        // A call that failed for the lost instance succeeds for the one that was started again.
        let is_again = self.again.contains(&ended.planned.number);
        for (state, count) in entered {
            if !is_again && count != ended.planned.entered(state) {
                self.note(format!("{name}: {state} was entered {count} times"));
            }
        }
    }

    fn calls(&mut self, all: &[Planned], seen: &Seen, losses: Losses) {
        let mut by_instance: BTreeMap<&str, Calls> = BTreeMap::new();
        for ((id, step, item), keys) in &seen.keys {
            let calls = by_instance.entry(id).or_default();
            calls.insert((step.clone(), *item), keys.len());
        }
        for planned in all {
            let id = planned.id();
            let got = by_instance.remove(id.as_str()).unwrap_or_default();
            let wanted = planned.calls();
            // The instance or sub-workflow that was lost may have called too, under an id of its own.
            let may_differ = losses.writes
                && (self.again.contains(&planned.number) || planned.has_children())
                && got.keys().eq(wanted.keys());
            if got != wanted && !may_differ {
                self.note(format!("{id}: calls {got:?}, not {wanted:?}"));
            }
        }
        for planned in &self.unended {
            by_instance.remove(planned.id().as_str());
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

    fn events(&mut self, all: &[Planned], produced: &Produced, is_wiped: bool) {
        let mut left: BTreeMap<&String, &BTreeSet<String>> = produced.ids.iter().collect();
        for planned in all {
            let Some(data) = planned.produced() else {
                continue;
            };
            match left.remove(&data.to_string()) {
                None if is_wiped => self.unseen += 1,
                None => self.note(format!("{}: its event is missing", planned.id())),
                // The instance that was lost may have produced it too, under its own id.
                Some(ids) if ids.len() != 1 && !self.again.contains(&planned.number) => {
                    self.note(format!("{}: its event has the ids {ids:?}", planned.id()));
                }
                Some(_) => {}
            }
        }
        for data in self.unended.iter().filter_map(Planned::produced) {
            left.remove(&data.to_string());
        }
        for data in left.keys() {
            self.note(format!("nobody was to produce {data}"));
        }
    }
}

/// The three longest pauses between entries of one scope, longest first. A branch begins when its parent has forked.
fn pauses(history: &Value) -> String {
    let mut last: BTreeMap<&str, (i64, &str)> = BTreeMap::new();
    let mut pauses = Vec::new();
    for entry in history["entries"].as_array().into_iter().flatten() {
        let (Some(scope), Some(event), Some(at)) = (
            entry["scope"].as_str(),
            entry["event"].as_str(),
            entry["at"].as_str(),
        ) else {
            continue;
        };
        let Ok(at) = Timestamp::parse(at) else {
            continue;
        };
        let parent = scope.rsplitn(3, '.').nth(2).unwrap_or_default();
        let forked = last.get(parent).copied();
        if let Some((before, of)) = last.insert(scope, (at.0, event)).or(forked) {
            let waited = at.0 - before;
            pauses.push((
                waited,
                format!(
                    "{scope}: {waited} ms from {of} to {event} ({})",
                    entry["at"]
                ),
            ));
        }
    }
    pauses.sort_by_key(|(waited, _)| -waited);
    let longest = pauses.into_iter().take(3).map(|(_, text)| text);
    longest.collect::<Vec<String>>().join(", ")
}

/// Percentiles of durations.
fn spread(times: &[Time]) -> String {
    let mut sorted: Vec<i64> = times.iter().map(|time| time.took()).collect();
    sorted.sort_unstable();
    let at = |share: usize| {
        let index = (sorted.len() * share / 100).min(sorted.len().saturating_sub(1));
        sorted.get(index).copied().unwrap_or_default() as f64 / 1_000.0
    };
    let (half, most, all) = (at(50), at(99), at(100));
    format!("{half:.2} s (half of them), {most:.2} s (99 of 100), {all:.2} s (all)")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slowed_instances_are_reported() {
        let time = |number, asked, took| Time {
            number,
            asked,
            ended: asked + took,
            pauses: String::new(),
        };
        let mut report = Report::default();
        // One instance ended before the attack; the others take at least ten times as long.
        let times = vec![
            time(1, 0, 2_000),
            time(2, 5_000, 20_000),
            time(3, 5_000, 20_001),
        ];
        report.times.insert("chain", times);
        report
            .times
            .insert("pure", vec![time(4, 0, 5), time(5, 5_000, 9_000)]);
        report.hold_up(4_000);
        let found = &report.differences;
        assert!(
            found.len() == 1 && found[0].contains("chain n3"),
            "{found:?}"
        );
        report.times.insert("fan", vec![time(6, 5_000, 1)]);
        report.hold_up(4_000);
        assert!(
            report
                .differences
                .iter()
                .any(|found| found.starts_with("fan"))
        );
    }
}
