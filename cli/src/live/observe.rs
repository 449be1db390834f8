//! The outcome of a run, from the store, the mock and NATS.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::{Arc, Mutex, PoisonError};

use futures::StreamExt;
use swirl_model::CloudEvent;
use swirl_nats::Streams;
use swirl_ports::{Filter, InstanceQueries};
use swirl_scenario::places::Places;
use swirl_scenario::run::observed;
use swirl_scenario::{Observed, ObservedCall, RunError};

use super::mock::Mock;

/// Produced events, as received from NATS.
#[derive(Clone, Default)]
pub struct Produced {
    events: Arc<Mutex<Vec<CloudEvent>>>,
}

impl Produced {
    /// Starts listening.
    ///
    /// # Errors
    /// NATS refuses the subscription.
    pub async fn listen(nats: &async_nats::Client, namespace: &str) -> anyhow::Result<Produced> {
        let subject = format!("{}.>", Streams::default_events(namespace));
        let mut messages = nats.subscribe(subject).await?;
        nats.flush().await?;
        let produced = Produced::default();
        let events = produced.events.clone();
        tokio::spawn(async move {
            let mut known = HashSet::new();
            while let Some(message) = messages.next().await {
                let Ok(event) = serde_json::from_slice::<CloudEvent>(&message.payload) else {
                    continue;
                };
                if event.attribute("swirlorigin").is_some() && known.insert(event.key()) {
                    let mut events = events.lock().unwrap_or_else(PoisonError::into_inner);
                    events.push(event);
                }
            }
        });
        Ok(produced)
    }

    fn by_instance(&self) -> BTreeMap<String, Vec<CloudEvent>> {
        let mut all: BTreeMap<String, Vec<CloudEvent>> = BTreeMap::new();
        for event in self
            .events
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .iter()
        {
            let origin = event.attribute("swirlorigin").unwrap_or_default();
            all.entry(origin).or_default().push(event.clone());
        }
        all
    }
}

/// The observations so far.
pub async fn observe(
    queries: &dyn InstanceQueries,
    mock: &Mock,
    produced: &Produced,
    places: &Places,
) -> Result<Observed, RunError> {
    let failed = |error: swirl_ports::Error| RunError::Failed(error.to_string());
    let mut calls: BTreeMap<String, Vec<ObservedCall>> = BTreeMap::new();
    // Whether the last call with each key was open.
    let mut keys = HashMap::new();
    // Requests for tokens name no instance: they belong to the call that follows, or else to the last one.
    let (mut tokens, mut caller) = (Vec::new(), String::new());
    for call in mock.calls()? {
        let is_request = call.request.is_some();
        // A repeat has the same key and isn't a separate call. A retry may have the same key too.
        if !is_request && !keys.insert(call.key, call.open).unwrap_or(true) {
            continue;
        }
        let observed = ObservedCall {
            function: call.function,
            arguments: call.arguments,
            at_ms: 0,
            place: call.place,
            request: call.request,
        };
        if call.instance.is_empty() {
            tokens.push(observed);
            continue;
        }
        caller.clone_from(&call.instance);
        let own = calls.entry(call.instance).or_default();
        own.append(&mut tokens);
        own.push(observed);
    }
    calls.entry(caller).or_default().append(&mut tokens);
    let mut produced = produced.by_instance();
    let filter = Filter {
        limit: 10_000,
        ..Filter::default()
    };
    let mut all = queries.list(&filter).await.map_err(failed)?;
    all.reverse();
    let mut instances = Vec::new();
    for summary in all {
        let header = &summary.header;
        let Some(found) = queries.instance(&header.id).await.map_err(failed)? else {
            continue;
        };
        let history = queries.history(&header.id).await.map_err(failed)?;
        let id = header.id.as_str();
        let mut instance = observed(
            header,
            found.state,
            history,
            calls.remove(id).unwrap_or_default(),
            produced.remove(id).unwrap_or_default(),
        );
        instance.take_tasks(places);
        instances.push(instance);
    }
    Ok(Observed {
        instances,
        ..Observed::default()
    })
}
