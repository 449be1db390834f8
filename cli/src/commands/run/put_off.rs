//! Effects of a run (events, starts of sub-workflows, messages between instances) that are committed but could not be
//! carried out. Each is retried every few seconds, and the cause of a failure may be permanent.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use swirl_model::event::Command;
use swirl_model::ids::InstanceId;
use swirl_ports::ExecutionStore;
use swirl_ports::OutboxEntry;

/// The number of effects that are read at a time.
const PAGE: usize = 200;

/// An effect that is pending for longer than this is reported.
const SAID_AFTER: Duration = Duration::from_secs(1);

/// The run gives up when an effect is pending for this long.
pub(super) const GIVEN_UP_AFTER: Duration = Duration::from_secs(30);

/// The interval at which the store is checked.
const EVERY: Duration = Duration::from_millis(200);

/// An effect could not be carried out for too long.
#[derive(Debug, thiserror::Error)]
#[error("giving up, because these were not carried out within {} s: {names}", GIVEN_UP_AFTER.as_secs())]
pub(super) struct GivenUp {
    names: String,
}

/// The pending effects of one run, each with the time when it was first seen.
pub(super) struct PutOff<S> {
    /// The root of the traces of everything that the run started.
    root: String,
    seen: HashMap<u64, Instant>,
    looked: Option<Instant>,
    /// Receives the names of the pending effects, once.
    say: Option<S>,
}

impl<S: FnOnce(String)> PutOff<S> {
    pub fn new(root: String, say: S) -> PutOff<S> {
        PutOff {
            root,
            seen: HashMap::new(),
            looked: None,
            say: Some(say),
        }
    }

    /// Call this repeatedly while waiting for the run.
    ///
    /// # Errors
    /// [`GivenUp`]: an effect could not be carried out for too long.
    pub async fn look(&mut self, store: &dyn ExecutionStore, now: Instant) -> anyhow::Result<()> {
        if self.looked.is_some_and(|at| now.duration_since(at) < EVERY) {
            return Ok(());
        }
        self.looked = Some(now);
        let entries = of_run(store, &self.root).await?;
        Ok(self.judge(&entries, now)?)
    }

    fn judge(&mut self, entries: &[OutboxEntry], now: Instant) -> Result<(), GivenUp> {
        self.seen
            .retain(|id, _| entries.iter().any(|entry| entry.id == *id));
        for entry in entries {
            self.seen.entry(entry.id).or_insert(now);
        }
        let late = |after: Duration| {
            let is_late = |entry: &&OutboxEntry| {
                let since = self.seen.get(&entry.id);
                since.is_some_and(|since| now.duration_since(*since) >= after)
            };
            let names: Vec<String> = entries.iter().filter(is_late).map(name).collect();
            (!names.is_empty()).then(|| names.join(", "))
        };
        if let Some(names) = late(GIVEN_UP_AFTER) {
            return Err(GivenUp { names });
        }
        if let Some(names) = late(SAID_AFTER)
            && let Some(say) = self.say.take()
        {
            say(names);
        }
        Ok(())
    }
}

/// The effects of the run whose traces have this root.
pub(super) async fn of_run(
    store: &dyn ExecutionStore,
    root: &str,
) -> swirl_ports::Result<Vec<OutboxEntry>> {
    let mut found = store.unflushed(PAGE).await?;
    let mut known: HashMap<InstanceId, bool> = HashMap::new();
    for entry in &found {
        if !known.contains_key(&entry.instance) {
            let instance = store.instance(&entry.instance).await?;
            let is_ours = instance.is_some_and(|it| it.header.trace_root() == root);
            known.insert(entry.instance.clone(), is_ours);
        }
    }
    found.retain(|entry| known.get(&entry.instance) == Some(&true));
    Ok(found)
}

/// Describes the effect for people.
fn name(entry: &OutboxEntry) -> String {
    let what = match &entry.command {
        Command::Publish(event) => format!("the event {} of type '{}'", event.id, event.kind),
        Command::Start(start) => format!("the start of '{}'", start.workflow),
        Command::EndInstance { id, .. } => format!("the end of instance {id}"),
        Command::SuspendAwaited => format!("suspending what instance {} waits for", entry.instance),
        Command::Send { to, .. } => format!("the answer to instance {}", to.instance),
        _ => "an effect".to_owned(),
    };
    format!("{what} (of instance {})", entry.instance)
}

#[cfg(test)]
mod tests {
    use super::*;
    use swirl_model::instance::EndStatus;

    fn entry(id: u64) -> OutboxEntry {
        OutboxEntry {
            instance: InstanceId::new("a"),
            id,
            command: Command::EndInstance {
                id: InstanceId::new(format!("child-{id}")),
                status: EndStatus::Terminated,
            },
        }
    }

    #[test]
    fn pending_effects_are_named_once_and_abandoned_at_last() {
        let mut said = Vec::new();
        let mut put_off = PutOff::new("root".to_owned(), |names| said.push(names));
        let begun = Instant::now();
        let at = |ms| begun + Duration::from_millis(ms);
        put_off.judge(&[entry(1), entry(2)], at(0)).unwrap();
        put_off.judge(&[entry(2)], at(900)).unwrap();
        put_off.judge(&[entry(2), entry(3)], at(1_000)).unwrap();
        put_off.judge(&[entry(2), entry(3)], at(29_999)).unwrap();
        // If another effect takes its place, that one has its own time limit.
        put_off.judge(&[entry(3)], at(30_500)).unwrap();
        let error = put_off.judge(&[entry(3)], at(31_000)).unwrap_err();
        assert!(
            error.to_string().contains("30 s")
                && error.names == "the end of instance child-3 (of instance a)",
            "{error}"
        );
        assert_eq!(said, ["the end of instance child-2 (of instance a)"]);
    }

    #[test]
    fn effects_carried_out_in_time_are_not_reported() {
        let mut put_off = PutOff::new("root".to_owned(), |names| panic!("{names}"));
        let begun = Instant::now();
        for round in 0..100 {
            let now = begun + Duration::from_millis(900 * round);
            put_off.judge(&[entry(round)], now).unwrap();
        }
    }
}
