//! Matches the instances of two runs, and removes names that differ in each run from their histories.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

use serde_json::{Value, json};
use swirl_model::Data;
use swirl_model::event::{Event, HistoryEntry};

use swirl_scenario::{Observed, ObservedInstance};

/// The number of digits in an instance's id.
const ID_DIGITS: usize = 24;

/// Names that occur in a run, and their replacements.
#[derive(Debug, Default)]
pub struct Ids {
    instances: HashMap<String, String>,
    /// Events that the run's instances produced.
    produced: BTreeSet<String>,
}

/// An instance in both runs.
pub struct Pair<'o> {
    pub recorded: &'o ObservedInstance,
    pub new: &'o ObservedInstance,
    pub ids: Arc<Ids>,
    pub new_ids: Arc<Ids>,
}

pub struct Pairs<'o> {
    /// The first one is the instance itself.
    pub pairs: Vec<Pair<'o>>,
    /// A run has instances that the other one lacks.
    pub unpaired: bool,
}

/// The nth instance of a workflow in one run corresponds to the nth in the other.
pub fn pairs<'o>(recorded: &'o Observed, new: &'o Observed) -> Pairs<'o> {
    let (before, after) = (ranked(recorded), ranked(new));
    let common: Vec<_> = before
        .iter()
        .filter_map(|(rank, one)| Some((*one, *after.get(rank)?, rank)))
        .collect();
    let ids = |observed: &Observed, ranked: &BTreeMap<Rank<'o>, &'o ObservedInstance>| {
        let names = ranked.iter().map(|((_, workflow, nth), one)| {
            let name = format!("<the id of {workflow} {}>", nth + 1);
            (one.id.clone(), name)
        });
        let histories = observed.instances.iter().flat_map(|one| &one.history);
        let produced = histories.filter_map(|entry| match &entry.event {
            Event::EventProduced { id, .. } => Some(id.clone()),
            _ => None,
        });
        Arc::new(Ids {
            instances: names.collect(),
            produced: produced.collect(),
        })
    };
    let (ids, new_ids) = (ids(recorded, &before), ids(new, &after));
    let mut pairs: Vec<Pair<'o>> = common
        .into_iter()
        .map(|(recorded, new, _)| Pair {
            recorded,
            new,
            ids: ids.clone(),
            new_ids: new_ids.clone(),
        })
        .collect();
    let order = |pair: &Pair<'_>| {
        let mut all = recorded.instances.iter();
        all.position(|one| one.id == pair.recorded.id)
    };
    pairs.sort_by_key(order);
    Pairs {
        unpaired: pairs.len() != before.len() || pairs.len() != after.len(),
        pairs,
    }
}

/// Whether it is a sub-workflow, its workflow, and its number among instances of the same kind.
type Rank<'o> = (bool, &'o str, usize);

fn ranked(observed: &Observed) -> BTreeMap<Rank<'_>, &ObservedInstance> {
    let mut counts: BTreeMap<(bool, &str), usize> = BTreeMap::new();
    let ranked = observed.instances.iter().map(|one| {
        let count = counts.entry((one.subflow, &one.workflow)).or_default();
        *count += 1;
        ((one.subflow, one.workflow.as_str(), *count - 1), one)
    });
    ranked.collect()
}

impl Ids {
    /// Returns a text in which the names of this run are replaced.
    pub fn text(&self, text: &str) -> String {
        let mut replaced = String::with_capacity(text.len());
        let mut rest = text;
        while let Some(at) = rest.find(is_digit) {
            let (before, from) = rest.split_at(at);
            let end = from.find(|c| !is_digit(c)).unwrap_or(from.len());
            let (digits, after) = from.split_at(end);
            replaced.push_str(before);
            match self.instances.get(digits) {
                Some(name) if digits.len() == ID_DIGITS => replaced.push_str(name),
                _ => replaced.push_str(digits),
            }
            rest = after;
        }
        replaced.push_str(rest);
        replaced
    }

    pub fn data(&self, data: &Data) -> Data {
        let text = self.text(&data.to_string());
        Data::parse(text.as_bytes()).unwrap_or_else(|_| data.clone())
    }

    /// Returns an entry without times, numbers and ids, so that it is equal in two runs that take the same path.
    pub fn plain(&self, entry: &HistoryEntry) -> Data {
        let mut value = serde_json::to_value(entry).unwrap_or_default();
        let is_own = value["id"]
            .as_str()
            .is_some_and(|id| self.produced.contains(id));
        if let Some(members) = value.as_object_mut() {
            // Recordings of older versions have no state in an action's entry.
            for name in ["at", "scope", "call", "fork", "in_state", "data_until"] {
                members.remove(name);
            }
            if members.get("state").is_some_and(Value::is_number) {
                members.remove("state");
            }
            if is_own {
                members.remove("id");
            }
        }
        // The same holds for the data of states, which is all that their entries record.
        if let Some(members) = value.as_object_mut()
            && members
                .get("data")
                .is_some_and(|data| data.get("state_data").is_some())
        {
            members.remove("data");
        }
        if let Some(again) = value.get_mut("retry_ms") {
            *again = json!(!again.is_null());
        }
        if let Some(timer) = value.get_mut("timer") {
            *timer = timer["kind"].take();
        }
        if let Some(event) = value
            .pointer_mut("/data/event")
            .and_then(Value::as_object_mut)
        {
            let id = event.get("id").and_then(Value::as_str).unwrap_or_default();
            let is_own = self.produced.contains(id);
            for name in ["traceparent", "tracestate"] {
                event.remove(name);
            }
            if is_own {
                for name in ["id", "time"] {
                    event.remove(name);
                }
            }
        }
        let text = self.text(&value.to_string());
        Data::parse(text.as_bytes()).unwrap_or_default()
    }
}

fn is_digit(c: char) -> bool {
    c.is_ascii_digit() || ('a'..='f').contains(&c)
}

/// The path of a scope: the fork in the parent scope, and the branch. Forks are renumbered, because their numbers
/// depend on everything before them.
pub type Path = Vec<(usize, u32)>;

/// The entries of each scope, in order.
pub fn by_scope(history: &[HistoryEntry]) -> BTreeMap<Path, Vec<&HistoryEntry>> {
    let mut forks: BTreeMap<String, BTreeSet<u32>> = BTreeMap::new();
    for entry in history {
        let mut above = "r".to_owned();
        for (fork, index) in steps(entry) {
            forks.entry(above.clone()).or_default().insert(fork);
            above.push_str(&format!(".{fork}.{index}"));
        }
    }
    let mut scopes: BTreeMap<Path, Vec<&HistoryEntry>> = BTreeMap::new();
    // Recordings of older versions lack entries for sub-workflows that were suspended with their parent.
    let follows =
        |entry: &&HistoryEntry| matches!(entry.event, Event::Operated { with: Some(_), .. });
    for entry in history.iter().filter(|entry| !follows(entry)) {
        let mut above = "r".to_owned();
        let mut path = Path::new();
        for (fork, index) in steps(entry) {
            let known = forks.get(&above);
            let nth = known.and_then(|known| known.iter().position(|one| *one == fork));
            path.push((nth.unwrap_or_default(), index));
            above.push_str(&format!(".{fork}.{index}"));
        }
        scopes.entry(path).or_default().push(entry);
    }
    scopes
}

/// The forks and branches in the id of an entry's scope.
fn steps(entry: &HistoryEntry) -> Vec<(u32, u32)> {
    let id = entry.scope.to_string();
    let numbers: Vec<u32> = id
        .split('.')
        .skip(1)
        .filter_map(|part| part.parse().ok())
        .collect();
    numbers
        .chunks_exact(2)
        .map(|pair| (pair[0], pair[1]))
        .collect()
}
