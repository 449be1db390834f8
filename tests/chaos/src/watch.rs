//! Polls instances until they have ended, and checks each at its end, so that a long run needs little memory.

use std::collections::VecDeque;
use std::convert::Infallible;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use anyhow::{Result, bail};
use futures::{StreamExt, stream};
use serde_json::Value;

use crate::api::Api;
use crate::check::{Ended, Report};
use crate::instance::Planned;
use crate::run::Options;

/// The number of instances that are polled at a time while others are started.
const BATCH: usize = 64;
const PAUSE: Duration = Duration::from_millis(500);

#[derive(Default)]
pub struct Watch {
    state: Mutex<State>,
    /// Redis may lose instances, which are started again.
    starts_again: bool,
}

/// An instance, its id, and the time of the client's request (in milliseconds since the epoch).
#[derive(Debug, Clone)]
pub struct Started {
    pub planned: Planned,
    pub id: String,
    pub asked_ms: i64,
}

#[derive(Default)]
struct State {
    /// Ordered by their last check, oldest first.
    under_way: VecDeque<Started>,
    ended: Vec<Planned>,
    report: Report,
}

/// The result of polling one instance.
enum Looked {
    Running,
    Ended(Box<Ended>),
    /// It was lost, and is started again.
    Again(Started),
}

fn has_ended(history: &Value) -> bool {
    let mut entries = history["entries"].as_array().into_iter().flatten();
    entries.any(|entry| entry["event"] == "ended")
}

impl Watch {
    /// `starts_again`: Redis may lose instances.
    pub fn new(starts_again: bool) -> Watch {
        Watch {
            starts_again,
            ..Watch::default()
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub fn add(&self, started: Started) {
        self.lock().under_way.push_back(started);
    }

    pub fn left(&self) -> usize {
        self.lock().under_way.len()
    }

    /// The running instances.
    pub fn all(&self) -> Vec<Started> {
        self.lock().under_way.iter().cloned().collect()
    }

    /// The number of started instances.
    pub fn started(&self) -> usize {
        let state = self.lock();
        state.under_way.len() + state.ended.len()
    }

    /// The number of ended instances.
    pub fn ended_count(&self) -> usize {
        self.lock().ended.len()
    }

    /// The ended instances.
    pub fn ended(&self) -> Vec<Planned> {
        self.lock().ended.clone()
    }

    /// Polls some instances regularly, for as long as the future is polled. It ends only with an error.
    pub async fn run(&self, api: &Api) -> Result<()> {
        let failed: Result<Infallible> = async {
            loop {
                self.look(api, BATCH).await?;
                tokio::time::sleep(PAUSE).await;
            }
        }
        .await;
        failed.map(|never| match never {})
    }

    /// Polls until none is left, or until the time for that is over. Instances that are left are differences, and `false` is
    /// returned.
    pub async fn finish(
        &self,
        options: &Options,
        api: &Api,
        progress: &(dyn Fn(&str) + Sync),
    ) -> Result<bool> {
        let begun = Instant::now();
        loop {
            self.look(api, usize::MAX).await?;
            let left = self.all();
            if left.is_empty() {
                return Ok(true);
            }
            if begun.elapsed() > options.liveness {
                progress(&format!("{} instances haven't ended", left.len()));
                for started in &left {
                    let (name, id) = (started.planned.id(), &started.id);
                    progress(&format!(
                        "{name} ({id}):\n{:#}\n{:#}",
                        api.instance(id).await?,
                        api.history(id).await?
                    ));
                }
                let mut state = self.lock();
                for Started { planned, id, .. } in left {
                    state.report.never_ended(planned, &id);
                }
                return Ok(false);
            }
            progress(&format!("{} instances are under way", left.len()));
            tokio::time::sleep(PAUSE).await;
        }
    }

    pub fn into_report(self) -> (Report, Vec<Planned>) {
        let state = self.state.into_inner();
        let state = state.unwrap_or_else(PoisonError::into_inner);
        (state.report, state.ended)
    }

    /// Polls up to `count` of the instances whose last check was longest ago. The future may be dropped at any point,
    /// because polled instances are removed only at the end.
    async fn look(&self, api: &Api, count: usize) -> Result<()> {
        let batch: Vec<_> = self.lock().under_way.iter().take(count).cloned().collect();
        let looks = batch.iter().map(|started| async move {
            let id = &started.id;
            let view = match api.find(id).await? {
                Some(view) => view,
                None if self.starts_again => {
                    let id = api.start(&started.planned).await?;
                    let started = started.clone();
                    return Ok(Looked::Again(Started { id, ..started }));
                }
                None => bail!("there is no instance {id}"),
            };
            if view["status"] == "running" {
                return Ok(Looked::Running);
            }
            let history = api.history(id).await?;
            if self.starts_again && !has_ended(&history) {
                // Its end was lost between the two requests.
                return Ok(Looked::Running);
            }
            Ok(Looked::Ended(Box::new(Ended {
                planned: started.planned.clone(),
                asked_ms: started.asked_ms,
                view,
                history,
            })))
        });
        let looked: Vec<Result<Looked>> = stream::iter(looks).buffered(16).collect().await;
        let looked: Vec<Looked> = looked.into_iter().collect::<Result<_>>()?;
        let mut state = self.lock();
        // Others were only added at the end meanwhile.
        state.under_way.drain(..batch.len());
        for (one, found) in batch.into_iter().zip(looked) {
            match found {
                Looked::Ended(ended) => {
                    state.report.look_at(&ended);
                    state.ended.push(ended.planned);
                }
                Looked::Running => state.under_way.push_back(one),
                Looked::Again(started) => {
                    state.report.again.insert(started.planned.number);
                    state.under_way.push_back(started);
                }
            }
        }
        Ok(())
    }
}
