//! Events in, events out: each caller publishes an event to NATS, and waits for the event that the receiving instance
//! produces at its end.

use std::collections::HashMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use anyhow::{Context, Result};
use async_trait::async_trait;
use futures::StreamExt;
use serde_json::{Value, json};
use tokio::sync::oneshot;
use tokio::task::JoinSet;
use tokio::time::timeout;

use super::process::Cluster;
use crate::measure::{Caller, Figure, closed_loop, counted};
use crate::usage::Meter;

pub const IN: &str = "swirl.events.bench.in";
pub const PRODUCED: &str = "swirl.events.bench.done";
const ANSWER_MAX: Duration = Duration::from_secs(60);

type Waiting = Arc<Mutex<HashMap<String, oneshot::Sender<()>>>>;

/// Receives the events that instances produce.
#[derive(Clone)]
pub struct Hub {
    nats: async_nats::Client,
    waiting: Waiting,
    next: Arc<AtomicUsize>,
    /// The receiving tasks end when the last clone is dropped.
    _receiving: Arc<JoinSet<()>>,
}

impl Hub {
    pub async fn open(nats: async_nats::Client) -> Result<Hub> {
        let mut produced = nats.subscribe(PRODUCED).await?;
        let waiting = Waiting::default();
        let open = waiting.clone();
        let mut receiving = JoinSet::new();
        receiving.spawn(async move {
            while let Some(message) = produced.next().await {
                let event: Value = serde_json::from_slice(&message.payload).unwrap_or_default();
                let key = event["data"]["key"].as_str().unwrap_or_default();
                let mut waiting = open.lock().unwrap_or_else(PoisonError::into_inner);
                if let Some(told) = waiting.remove(key) {
                    // A caller that has given up needs no answer.
                    let _ = told.send(());
                }
            }
        });
        Ok(Hub {
            nats,
            waiting,
            next: Arc::default(),
            _receiving: Arc::new(receiving),
        })
    }

    /// Sets the number of the next key.
    pub fn skip_to(&self, number: usize) {
        self.next.store(number, Ordering::Relaxed);
    }

    fn callers(&self, kind: Kind, in_flight: usize) -> Vec<Publisher> {
        let one = |_| Publisher {
            hub: self.clone(),
            kind,
        };
        (0..in_flight).map(one).collect()
    }
}

#[derive(Debug, Clone, Copy)]
enum Kind {
    /// An event that creates an instance.
    Go,
    /// An event for the instance with its key.
    Answer,
}

struct Publisher {
    hub: Hub,
    kind: Kind,
}

pub fn key(number: usize) -> String {
    format!("key-{number}")
}

#[async_trait]
impl Caller for Publisher {
    async fn once(&mut self) -> Result<()> {
        let key = key(self.hub.next.fetch_add(1, Ordering::Relaxed));
        let event = match self.kind {
            Kind::Go => json!({
                "specversion": "1.0", "id": format!("go-{key}"), "source": "/bench",
                "type": "bench.go", "data": {"key": key},
            }),
            Kind::Answer => json!({
                "specversion": "1.0", "id": format!("answer-{key}"), "source": "/bench",
                "type": "bench.answer", "orderid": key, "data": {"ok": true},
            }),
        };
        let (tell, told) = oneshot::channel();
        {
            let waiting = &self.hub.waiting;
            let mut waiting = waiting.lock().unwrap_or_else(PoisonError::into_inner);
            waiting.insert(key, tell);
        }
        let payload = event.to_string().into_bytes();
        self.hub.nats.publish(IN, payload.into()).await?;
        timeout(ANSWER_MAX, told)
            .await
            .context("no event came back")??;
        Ok(())
    }
}

/// Events that create instances.
pub async fn creating(hub: &Hub, in_flight: usize, seconds: f64, meter: &Meter) -> Result<Figure> {
    let callers = hub.callers(Kind::Go, in_flight);
    closed_loop(callers, seconds, meter).await
}

/// Events that create instances of a workflow of one edition.
pub async fn creating_of(
    cluster: &Cluster,
    hub: &Hub,
    in_flight: usize,
    count: usize,
) -> Result<Figure> {
    let callers = hub.callers(Kind::Go, in_flight);
    counted(callers, count, &cluster.meter()).await
}

/// Events for this many of the waiting instances.
pub async fn answering(
    cluster: &Cluster,
    hub: &Hub,
    in_flight: usize,
    count: usize,
) -> Result<Figure> {
    let callers = hub.callers(Kind::Answer, in_flight);
    counted(callers, count, &cluster.meter()).await
}
