//! Traces as Jaeger shows them, of a cluster of two coordinators and three workers.

mod api;
mod shop;
mod spans;
mod trees;
mod workflows;

use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use async_nats::{HeaderMap, Subscriber};
use futures::StreamExt as _;
use serde_json::{Value, json};
use swirl_chaos::Cluster;
use swirl_servers::{NatsServer, PATIENCE, RedisServer, eventually};

use self::api::Jaeger;
use self::shop::Shop;
use self::spans::{Sender, random_context};
use crate::swirl::Swirl;

const LEASE: Duration = Duration::from_secs(5);

/// The instances, by workflow: what starts each, and how it ends.
const STARTS: [(&str, &str, &str); 4] = [
    ("real.order", r#"{"order": "A-7"}"#, "completed"),
    ("real.tasks", r#"{"order": "A-8"}"#, "completed"),
    ("real.faulty", "{}", "faulted"),
    ("real-keyed", r#"{"order": "order-9"}"#, "completed"),
];

/// The types of the events that the shop sends.
const SENT: [&str; 3] = ["real.paid", "real.packed", "real.order.placed"];
/// Only an instance that is listening already takes this one.
const REPLY: &str = "real.reply";

pub async fn check(swirl: PathBuf, jaeger: PathBuf) -> Result<()> {
    let (swirl, jaeger) = (crate::program(swirl)?, crate::program(jaeger)?);
    let jaeger = Jaeger::start(&jaeger).await?;
    let sender = Sender::connect(&jaeger.otlp).await?;
    let brokers = (NatsServer::start()?, RedisServer::start()?);
    let shop = Shop::start(sender.clone(), &brokers.0).await?;
    let cluster = cluster(&swirl, &jaeger, &shop, &brokers.0)?;
    let api = Swirl::new(cluster.apis())?;
    for (document, resources) in workflows::all(&shop, &brokers.0, &brokers.1) {
        api.deploy(&document, &resources).await?;
    }
    let nats = async_nats::connect(cluster.nats.url()).await?;
    let mut produced = nats.subscribe("swirl.events.real.>").await?;
    nats.flush().await?;

    let mut started = Vec::new();
    for (workflow, input, status) in STARTS {
        let id = api.start(workflow, input).await?;
        started.push((workflow, id, status));
    }
    let mut kinds = Vec::new();
    until_produced(&mut produced, &mut kinds, &["real.asked"]).await?;
    // The shop answers within a trace of its own.
    let visit = random_context(1);
    sender.send("shop", "visit", None, visit).await?;
    let send = async |kind: &str, id: String| {
        let event = json!({
            "specversion": "1.0", "id": id, "source": "/shop", "type": kind,
            "orderid": "A-7", "traceparent": visit.to_string(), "data": {},
        });
        let mut headers = HeaderMap::new();
        headers.insert("content-type", "application/cloudevents+json");
        let subject = format!("swirl.events.{kind}");
        nats.publish_with_headers(subject, headers, event.to_string().into())
            .await?;
        anyhow::Ok(nats.flush().await?)
    };
    for kind in SENT {
        send(kind, kind.to_owned()).await?;
    }
    let mut replies = 0;
    eventually("the end of the instance that listens", async || {
        replies += 1;
        send(REPLY, format!("{REPLY} {replies}")).await.ok()?;
        (api.status(&started[1].1).await.ok()? != "running").then_some(())
    })
    .await;
    for (workflow, id, status) in &started {
        let ended = api
            .end(id)
            .await
            .with_context(|| format!("{workflow} ({id})"))?;
        ensure!(ended == *status, "{workflow} ({id}) ended as {ended}");
    }
    until_produced(
        &mut produced,
        &mut kinds,
        &["real.told", "real.order.noted"],
    )
    .await?;

    let instances: Vec<_> = started
        .iter()
        .map(|(workflow, id, _)| (*workflow, id.clone()))
        .collect();
    trees::compare(&jaeger, &instances).await.with_context(|| {
        let logs = cluster
            .processes
            .iter()
            .map(|process| format!("{}:\n{}\n", process.name, process.tail()));
        logs.collect::<String>()
    })?;
    Ok(())
}

/// Adds the types of produced events, until all of these were there.
async fn until_produced(
    events: &mut Subscriber,
    kinds: &mut Vec<String>,
    all: &[&str],
) -> Result<()> {
    while let Some(missing) = all.iter().find(|kind| !kinds.iter().any(|it| it == *kind)) {
        let next = tokio::time::timeout(PATIENCE, events.next()).await;
        let message = next
            .with_context(|| format!("no event {missing}"))?
            .context("no NATS")?;
        let event: Value = serde_json::from_slice(&message.payload)?;
        kinds.push(event["type"].as_str().unwrap_or_default().to_owned());
    }
    Ok(())
}

fn cluster(
    swirl: &std::path::Path,
    jaeger: &Jaeger,
    shop: &Shop,
    nats: &NatsServer,
) -> Result<Cluster> {
    let connectors = format!(
        "post=http://{http}/connector, request=nats://{}/shop.request, command=exec:true",
        nats.address(),
        http = shop.http,
    );
    let flags = [
        "--telemetry-otlp-endpoint",
        &jaeger.otlp,
        "--telemetry-sampling-ratio",
        "1",
        "--functions-connectors",
        &connectors,
        "--functions-processes",
        "shell",
    ];
    Cluster::start_with(swirl, 3, 2, LEASE, false, &flags.map(str::to_owned))
}
