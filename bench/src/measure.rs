//! Closed loops: concurrent callers, each of which continues as soon as it gets an answer.

use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Result, ensure};
use async_trait::async_trait;
use tokio::task::JoinSet;

use crate::usage::{Meter, Usage};

/// One of many concurrent callers, which repeats its operation.
#[async_trait]
pub trait Caller: Send {
    /// Performs the operation once, and checks its result.
    async fn once(&mut self) -> Result<()>;
}

#[derive(Debug, Clone, Default)]
pub struct Figure {
    pub in_flight: usize,
    /// Operations per second.
    pub rate: f64,
    pub p50_ms: f64,
    pub p99_ms: f64,
    pub usage: Usage,
}

const WARM: u8 = 0;
const COUNTS: u8 = 1;
const OVER: u8 = 2;

/// Runs callers for a few seconds, after warming up for a tenth of that time.
pub async fn closed_loop<C: Caller + 'static>(
    callers: Vec<C>,
    seconds: f64,
    meter: &Meter,
) -> Result<Figure> {
    let in_flight = callers.len();
    let phase = Arc::new(AtomicU8::new(WARM));
    let mut tasks = JoinSet::new();
    for mut caller in callers {
        let phase = phase.clone();
        tasks.spawn(async move {
            let mut times = Vec::new();
            while phase.load(Ordering::Relaxed) != OVER {
                let begun = Instant::now();
                caller.once().await?;
                if phase.load(Ordering::Relaxed) == COUNTS {
                    times.push(begun.elapsed());
                }
                // A caller that never waits would block the runtime's timer.
                tokio::task::yield_now().await;
            }
            anyhow::Ok(times)
        });
    }
    tokio::time::sleep(Duration::from_secs_f64((seconds / 10.0).max(0.2))).await;
    let before = meter.read().await?;
    let begun = Instant::now();
    phase.store(COUNTS, Ordering::Relaxed);
    tokio::time::sleep(Duration::from_secs_f64(seconds)).await;
    phase.store(OVER, Ordering::Relaxed);
    let took = begun.elapsed().as_secs_f64();
    let usage = meter.read().await?.since(&before);
    let mut times = Vec::new();
    while let Some(done) = tasks.join_next().await {
        times.extend(done??);
    }
    ensure!(!times.is_empty(), "nothing was done within {seconds} s");
    Ok(Figure::of(in_flight, times, took, usage))
}

impl Figure {
    pub fn of(in_flight: usize, mut times: Vec<Duration>, took: f64, usage: Usage) -> Figure {
        times.sort_unstable();
        let at = |share: f64| {
            let index = (times.len().saturating_sub(1) as f64 * share) as usize;
            times.get(index).map_or(0.0, |t| t.as_secs_f64() * 1e3)
        };
        Figure {
            in_flight,
            rate: times.len() as f64 / took,
            p50_ms: at(0.5),
            p99_ms: at(0.99),
            usage: usage.by(times.len() as f64),
        }
    }

    /// The same, if each counted unit consists of this many smaller ones.
    #[must_use]
    pub fn times(mut self, units: f64) -> Figure {
        self.rate *= units;
        self.usage = self.usage.by(units);
        self
    }
}

/// The result with the median rate.
pub fn median(mut figures: Vec<Figure>) -> Figure {
    figures.sort_by(|a, b| a.rate.total_cmp(&b.rate));
    let middle = figures.len() / 2;
    figures.into_iter().nth(middle).unwrap_or_default()
}

/// Runs callers until they have performed this many operations together. Each performs at least one.
pub async fn counted<C: Caller + 'static>(
    callers: Vec<C>,
    count: usize,
    meter: &Meter,
) -> Result<Figure> {
    let in_flight = callers.len();
    let left = Arc::new(std::sync::atomic::AtomicUsize::new(count));
    let before = meter.read().await?;
    let begun = Instant::now();
    let mut tasks = JoinSet::new();
    for mut caller in callers {
        let left = left.clone();
        let take = move || {
            let taken =
                left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |n| n.checked_sub(1));
            taken.is_ok()
        };
        tasks.spawn(async move {
            let mut times = Vec::new();
            while take() {
                let begun = Instant::now();
                caller.once().await?;
                times.push(begun.elapsed());
            }
            anyhow::Ok(times)
        });
    }
    let mut times = Vec::new();
    while let Some(done) = tasks.join_next().await {
        times.extend(done??);
    }
    let took = begun.elapsed().as_secs_f64();
    let usage = meter.read().await?.since(&before);
    Ok(Figure::of(in_flight, times, took, usage))
}
