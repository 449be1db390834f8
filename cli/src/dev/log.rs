//! The activity of instances as log lines. The store is polled a few times a second, so a line appears a moment later,
//! but has the entry's own time.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use swirl_model::event::{Event, HistoryEntry};
use swirl_model::ids::InstanceId;
use swirl_model::instance::Status;
use swirl_ports::{Filter, HistoryPart, InstanceQueries, Summary};
use swirl_presentation::Names;
use swirl_presentation::timeline::{self, Told};
use swirl_runtime::Registry;

const LOOK: Duration = Duration::from_millis(250);
/// A poll may take long if many instances run. The pause after it is at least this many times as long, so that the log
/// doesn't compete with the instances for the store.
const PAUSE_TIMES: u32 = 10;
/// How many entries are read at once.
const ENTRIES: usize = 1_000;
/// The number of instances that are followed at a time: the newest ones, and the newest running ones.
const FOLLOWED_MAX: usize = 100;

pub struct Log {
    queries: Arc<dyn InstanceQueries>,
    registry: Arc<Registry>,
    printed: HashMap<InstanceId, Printed>,
}

/// The logged part of a history.
#[derive(Default)]
struct Printed {
    entries: u64,
    /// The instance had ended at that time.
    had_ended: bool,
    /// The entries that say where branches belong.
    forks: Vec<HistoryEntry>,
    told: Told,
}

impl Log {
    pub fn new(queries: Arc<dyn InstanceQueries>, registry: Arc<Registry>) -> Log {
        Log {
            queries,
            registry,
            printed: HashMap::new(),
        }
    }

    /// Treats all existing entries as logged.
    pub async fn skip(&mut self) {
        let found = self.followed().await.unwrap_or_default();
        for summary in &found {
            let id = &summary.header.id;
            let last = self.queries.history_page(id, HistoryPart::Last(1)).await;
            let known = last.map_or(0, |page| page.total);
            let printed = Printed {
                entries: known,
                had_ended: summary.status.ended(),
                ..Printed::default()
            };
            self.printed.insert(id.clone(), printed);
        }
        let running = found.iter().filter(|found| !found.status.ended()).count();
        if running > 0 {
            tracing::info!("{running} earlier instances continue");
        }
    }

    /// Logs forever.
    pub async fn follow(mut self) {
        let mut pause = LOOK;
        loop {
            tokio::time::sleep(pause).await;
            let begun = Instant::now();
            if let Err(error) = self.look().await {
                tracing::warn!("the log lags behind: {error}");
            }
            pause = LOOK.max(begun.elapsed() * PAUSE_TIMES);
        }
    }

    async fn look(&mut self) -> Result<(), swirl_ports::Error> {
        let found = self.followed().await?;
        self.printed
            .retain(|id, _| found.iter().any(|found| found.header.id == *id));
        for summary in found.iter().rev() {
            let id = &summary.header.id;
            let printed = self.printed.entry(id.clone()).or_default();
            let ended = summary.status.ended();
            if printed.had_ended && ended {
                continue;
            }
            loop {
                let part = HistoryPart::After {
                    known: printed.entries,
                    limit: ENTRIES,
                };
                let page = self.queries.history_page(id, part).await?;
                if page.entries.is_empty() {
                    break;
                }
                printed.entries = page.before + page.entries.len() as u64;
                let forks = page.entries.iter().filter(|entry| is_fork(entry));
                printed.forks.extend(forks.cloned());
                let definition = self.registry.get(&summary.header.definition).await.ok();
                let mut names = definition.as_ref().map(|it| Names::new(&it.workflow));
                if let Some(names) = &mut names {
                    names.learn(&printed.forks);
                }
                for entry in &page.entries {
                    let name = names.as_ref().and_then(|names| names.name_of(&entry.scope));
                    write(summary, entry, name, &mut printed.told);
                }
            }
            printed.had_ended = ended;
        }
        Ok(())
    }

    async fn followed(&self) -> Result<Vec<Summary>, swirl_ports::Error> {
        let newest = Filter {
            limit: FOLLOWED_MAX,
            ..Filter::default()
        };
        let running = Filter {
            statuses: vec![Status::Running],
            ..newest.clone()
        };
        let mut found = self.queries.list(&newest).await?;
        for summary in self.queries.list(&running).await? {
            if !found
                .iter()
                .any(|other| other.header.id == summary.header.id)
            {
                found.push(summary);
            }
        }
        Ok(found)
    }
}

fn is_fork(entry: &HistoryEntry) -> bool {
    matches!(entry.event, Event::Forked { .. })
}

fn write(summary: &Summary, entry: &HistoryEntry, name: Option<String>, told: &mut Told) {
    let line = told.describe(&swirl_api::history::HistoryEntry {
        place: name,
        ..entry.into()
    });
    if line.repeats {
        return;
    }
    let (id, workflow) = (&summary.header.id, &summary.header.definition.workflow);
    let text = || format!("{workflow} {id} {}{}", line.place(), line.text);
    crate::logging::happened(entry.at, || match line.tone {
        timeline::Tone::Bad => tracing::warn!("{}", text()),
        timeline::Tone::Plain | timeline::Tone::Good => tracing::info!("{}", text()),
        timeline::Tone::Dim => tracing::debug!("{}", text()),
    });
}
