//! Looks at instances until they have ended, and compares each when it has: a long run keeps little.

use std::collections::VecDeque;
use std::convert::Infallible;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use anyhow::{Result, bail};
use futures::{StreamExt, stream};

use crate::api::Api;
use crate::check::{Ended, Report};
use crate::instance::Planned;
use crate::run::Options;

/// How many are looked at in one go while others are started.
const BATCH: usize = 64;
const PAUSE: Duration = Duration::from_millis(500);

#[derive(Default)]
pub struct Watch {
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    /// With their ids; who was looked at last stands last.
    under_way: VecDeque<(Planned, String)>,
    ended: Vec<Planned>,
    report: Report,
}

impl Watch {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub fn add(&self, planned: Planned, id: String) {
        self.lock().under_way.push_back((planned, id));
    }

    pub fn left(&self) -> usize {
        self.lock().under_way.len()
    }

    /// Those that are under way.
    pub fn all(&self) -> Vec<(Planned, String)> {
        self.lock().under_way.iter().cloned().collect()
    }

    /// Those that have ended.
    pub fn ended(&self) -> Vec<Planned> {
        self.lock().ended.clone()
    }

    /// Looks at some now and then, for as long as it is polled; ends only if a look fails.
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

    /// Looks until none is left.
    pub async fn finish(
        &self,
        options: &Options,
        api: &Api,
        tell: &(dyn Fn(&str) + Sync),
    ) -> Result<()> {
        let begun = Instant::now();
        loop {
            self.look(api, usize::MAX).await?;
            let first = self.lock().under_way.front().cloned();
            let Some((planned, id)) = first else {
                return Ok(());
            };
            if begun.elapsed() > options.liveness {
                let view = api.instance(&id).await?;
                let history = api.history(&id).await?;
                bail!(
                    "{} instances never end, such as {} ({id}):\n{view:#}\n{history:#}",
                    self.left(),
                    planned.id()
                );
            }
            tell(&format!("{} instances are under way", self.left()));
            tokio::time::sleep(PAUSE).await;
        }
    }

    pub fn into_report(self) -> (Report, Vec<Planned>) {
        let state = self.state.into_inner();
        let state = state.unwrap_or_else(PoisonError::into_inner);
        (state.report, state.ended)
    }

    /// Looks at up to `count` of those that have waited longest. It may be dropped half-way: what
    /// was looked at is taken out at the end only.
    async fn look(&self, api: &Api, count: usize) -> Result<()> {
        let batch: Vec<_> = self.lock().under_way.iter().take(count).cloned().collect();
        let looks = batch.iter().map(|(planned, id)| async move {
            let view = api.instance(id).await?;
            if view["status"] == "running" {
                return Ok(None);
            }
            let history = api.history(id).await?;
            let planned = planned.clone();
            Ok(Some(Ended {
                planned,
                view,
                history,
            }))
        });
        let looked: Vec<Result<Option<Ended>>> = stream::iter(looks).buffered(16).collect().await;
        let looked: Vec<Option<Ended>> = looked.into_iter().collect::<Result<_>>()?;
        let mut state = self.lock();
        // Others were only added at the end in the meantime.
        state.under_way.drain(..batch.len());
        for (one, found) in batch.into_iter().zip(looked) {
            match found {
                Some(ended) => {
                    state.report.look_at(&ended);
                    state.ended.push(ended.planned);
                }
                None => state.under_way.push_back(one),
            }
        }
        Ok(())
    }
}
