//! The activity of instances as log lines. The store is polled a few times a second, so a line appears a moment later,
//! but has the entry's own time.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use swirl_model::event::HistoryEntry;
use swirl_model::ids::InstanceId;
use swirl_model::instance::Status;
use swirl_ports::{Filter, HistoryPart, InstanceQueries, Summary};
use swirl_presentation::timeline;

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
    /// The number of logged history entries, and whether the instance had ended at that time.
    printed: HashMap<InstanceId, (u64, bool)>,
}

impl Log {
    pub fn new(queries: Arc<dyn InstanceQueries>) -> Log {
        Log {
            queries,
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
            self.printed
                .insert(id.clone(), (known, summary.status.ended()));
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
                tracing::warn!("the log is late: {error}");
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
            let (mut known, had_ended) = self.printed.get(id).copied().unwrap_or_default();
            let ended = summary.status.ended();
            if had_ended && ended {
                continue;
            }
            loop {
                let part = HistoryPart::After {
                    known,
                    limit: ENTRIES,
                };
                let page = self.queries.history_page(id, part).await?;
                if page.entries.is_empty() {
                    break;
                }
                known = page.before + page.entries.len() as u64;
                for entry in &page.entries {
                    write(summary, entry);
                }
            }
            self.printed.insert(id.clone(), (known, ended));
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

fn write(summary: &Summary, entry: &HistoryEntry) {
    let value = serde_json::to_value(entry).unwrap_or_default();
    let line = timeline::describe(&value);
    let (id, workflow) = (&summary.header.id, &summary.header.definition.workflow);
    let text = || format!("{workflow} {id} {}{}", line.place(), line.text);
    crate::logging::happened(entry.at, || match line.tone {
        timeline::Tone::Bad => tracing::warn!("{}", text()),
        timeline::Tone::Plain | timeline::Tone::Good => tracing::info!("{}", text()),
        timeline::Tone::Dim => tracing::debug!("{}", text()),
    });
}
