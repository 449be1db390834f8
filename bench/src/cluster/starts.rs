//! Instances that are started through the API.

use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Result, ensure};
use async_trait::async_trait;
use serde_json::Value;

use super::client::Client;
use super::process::Cluster;
use crate::measure::{Caller, Figure, closed_loop, counted};

/// The time in which instances must end after the last one was started.
const END_MAX: Duration = Duration::from_secs(120);

#[derive(Clone)]
pub struct Work {
    pub workflow: String,
    pub input: Arc<Vec<u8>>,
    /// The expected output, if it is known.
    pub output: Option<Value>,
}

impl Work {
    pub fn new(workflow: &str, input: &Value) -> Work {
        Work {
            workflow: workflow.to_owned(),
            input: Arc::new(input.to_string().into_bytes()),
            output: None,
        }
    }

    #[must_use]
    pub fn giving(mut self, output: Value) -> Work {
        self.output = Some(output);
        self
    }
}

struct Runner {
    client: Client,
    work: Work,
}

#[async_trait]
impl Caller for Runner {
    async fn once(&mut self) -> Result<()> {
        let output = self
            .client
            .run(&self.work.workflow, &self.work.input)
            .await?;
        if let Some(wanted) = &self.work.output {
            ensure!(output == *wanted, "{}: {output}", self.work.workflow);
        }
        Ok(())
    }
}

async fn runners(cluster: &Cluster, work: &Work, in_flight: usize) -> Result<Vec<Runner>> {
    let mut runners = Vec::new();
    for _ in 0..in_flight {
        runners.push(Runner {
            client: Client::open(cluster.api()).await?,
            work: work.clone(),
        });
    }
    Ok(runners)
}

/// From the start to the result, for which each caller waits.
pub async fn results(
    cluster: &Cluster,
    work: &Work,
    in_flight: usize,
    seconds: f64,
) -> Result<Figure> {
    let callers = runners(cluster, work, in_flight).await?;
    closed_loop(callers, seconds, &cluster.meter()).await
}

/// The same for this many instances.
pub async fn results_of(
    cluster: &Cluster,
    work: &Work,
    in_flight: usize,
    count: usize,
) -> Result<Figure> {
    let callers = runners(cluster, work, in_flight).await?;
    counted(callers, count, &cluster.meter()).await
}

pub struct Starter {
    pub client: Client,
    pub work: Work,
}

#[async_trait]
impl Caller for Starter {
    async fn once(&mut self) -> Result<()> {
        self.client
            .start(&self.work.workflow, &self.work.input)
            .await?;
        Ok(())
    }
}

/// Starts this many instances without waiting for their results, and measures until all have ended. The times are those
/// of the responses to the starts.
pub async fn started(
    cluster: &Cluster,
    work: &Work,
    in_flight: usize,
    count: usize,
) -> Result<Figure> {
    let mut callers = Vec::new();
    for _ in 0..in_flight {
        callers.push(Starter {
            client: Client::open(cluster.api()).await?,
            work: work.clone(),
        });
    }
    let meter = cluster.meter();
    let before = meter.read().await?;
    let begun = Instant::now();
    let mut figure = counted(callers, count, &meter).await?;
    let mut client = Client::open(cluster.api()).await?;
    client.until_none(&work.workflow, END_MAX).await?;
    let took = begun.elapsed().as_secs_f64();
    figure.rate = count as f64 / took;
    figure.usage = meter.read().await?.since(&before).by(count as f64);
    Ok(figure)
}
