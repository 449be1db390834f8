//! The measurements of the real system, each row with the floor that it is compared with.

use std::time::{Duration, Instant};

use anyhow::{Result, ensure};
use serde_json::{Value, json};

use super::client::Client;
use super::events::{Hub, answering, creating};
use super::process::{Cluster, Setup};
use super::starts::{Work, results};
use super::waits::{burst, fill, late, overdue};
use super::{service, workflows};
use crate::measure::{Figure, median};
use crate::plan::Plan;

/// A row of the report.
#[derive(Debug, Clone)]
pub struct Case {
    pub name: String,
    /// The unit of the counts.
    pub unit: &'static str,
    pub figure: Figure,
    /// The floor that it is compared with.
    pub floor: Option<Floor>,
    /// The number of messages of one instance that are in flight at the same time. The floor needs this many times as
    /// many messages as there are instances.
    pub width: usize,
    /// Additional observations.
    pub note: String,
}

#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Floor {
    /// One message per transition.
    Message,
    /// Ten transitions per message, one commit.
    TenLocal,
    /// Ten calls of the service per message, one commit for each.
    TenCalls,
    /// An event in, a task, an event out.
    Event,
}

impl Case {
    fn new(name: impl Into<String>, unit: &'static str, figure: Figure) -> Case {
        Case {
            name: name.into(),
            unit,
            figure,
            floor: None,
            width: 1,
            note: String::new(),
        }
    }

    fn against(mut self, floor: Floor) -> Case {
        self.floor = Some(floor);
        self
    }

    fn wide(mut self, width: usize) -> Case {
        self.width = width;
        self
    }

    fn noting(mut self, note: String) -> Case {
        self.note = note;
        self
    }
}

pub async fn all(plan: &Plan, setup: &Setup, say: &mut dyn FnMut(&Case)) -> Result<Vec<Case>> {
    let mut cases = Vec::new();
    let mut add = |case: Case| {
        say(&case);
        cases.push(case);
    };
    let begun = Instant::now();
    let cluster = Cluster::start(setup).await?;
    let started = begun.elapsed();
    cold(&cluster, started, &mut add).await?;
    deploy(&cluster).await?;
    chains(plan, &cluster, &mut add).await?;
    forks(plan, &cluster, &mut add).await?;
    drop(cluster);
    message_driven(plan, setup, &mut add).await?;
    event_cases(plan, setup, &mut add).await?;
    timers(plan, setup, &mut add).await?;
    many_definitions(plan, setup, &mut add).await?;
    Ok(cases)
}

/// The rows of events.
pub async fn events_alone(
    plan: &Plan,
    setup: &Setup,
    say: &mut dyn FnMut(&Case),
) -> Result<Vec<Case>> {
    let mut cases = Vec::new();
    let mut add = |case: Case| {
        say(&case);
        cases.push(case);
    };
    event_cases(plan, setup, &mut add).await?;
    Ok(cases)
}

type Add<'a> = &'a mut dyn FnMut(Case);

/// The first instance in a new cluster.
async fn cold(cluster: &Cluster, started: Duration, add: Add<'_>) -> Result<()> {
    let mut client = Client::open(cluster.api()).await?;
    client.deploy(&workflows::pure("first"), None).await?;
    let begun = Instant::now();
    client.run("first", b"{}").await?;
    let first = begun.elapsed();
    let figure = Figure {
        in_flight: 1,
        rate: f64::NAN,
        p50_ms: started.as_secs_f64() * 1e3,
        p99_ms: f64::NAN,
        usage: Default::default(),
    };
    let note = format!(
        "servers, coordinator and workers, until all are ready; the first instance then takes {:.1} ms",
        first.as_secs_f64() * 1e3
    );
    add(Case::new("cold start of a cluster", "", figure).noting(note));
    Ok(())
}

pub async fn deploy(cluster: &Cluster) -> Result<()> {
    let document = service::document(service::start().await?);
    let mut client = Client::open(cluster.api()).await?;
    for definition in [
        workflows::pure("pure"),
        workflows::messages("messages"),
        workflows::calls("calls"),
        workflows::foreach("foreach"),
        workflows::foreach_calls("foreach-calls"),
        workflows::parallel("parallel"),
        workflows::circle("circle"),
    ] {
        client.deploy(&definition, Some(&document)).await?;
    }
    Ok(())
}

pub fn items(count: usize) -> Value {
    json!({"items": (0..count).collect::<Vec<_>>()})
}

async fn repeated(plan: &Plan, cluster: &Cluster, work: &Work, in_flight: usize) -> Result<Figure> {
    let mut figures = Vec::new();
    for _ in 0..plan.repeats {
        figures.push(results(cluster, work, in_flight, plan.seconds).await?);
    }
    Ok(median(figures))
}

async fn chains(plan: &Plan, cluster: &Cluster, add: Add<'_>) -> Result<()> {
    let pure = Work::new("pure", &json!({"name": "Ada", "n": 0}));
    for in_flight in plan.in_flight() {
        let figure = repeated(plan, cluster, &pure, in_flight).await?;
        add(
            Case::new("ten pure states, start to result", "instances", figure)
                .against(Floor::TenLocal),
        );
    }
    let mut figures = Vec::new();
    for _ in 0..plan.repeats {
        figures.push(burst(cluster, &pure, plan.burst).await?);
    }
    let case = Case::new(
        "ten pure states, started and left alone",
        "instances",
        median(figures),
    );
    add(case.against(Floor::TenLocal).noting(
        "counted until all have ended; p50 and p99 are of the answer to the start".to_owned(),
    ));
    let messages = Work::new("messages", &json!({"n": 0}));
    for in_flight in plan.in_flight() {
        let figure = repeated(plan, cluster, &messages, in_flight).await?;
        let each = messages_each(cluster, &messages).await?;
        let note = format!(
            "{} transitions and {each:.1} messages an instance; times are of the instance",
            workflows::TRANSITIONS
        );
        let figure = figure.times(workflows::TRANSITIONS as f64);
        add(Case::new(
            "forks of one, gone on with by the worker",
            "transitions",
            figure,
        )
        .noting(note));
    }
    let calls = Work::new("calls", &json!({}));
    for in_flight in plan.in_flight() {
        let figure = repeated(plan, cluster, &calls, in_flight).await?;
        let case = Case::new("ten HTTP calls", "instances", figure);
        add(case.against(Floor::TenCalls));
    }
    Ok(())
}

/// Each transition has its own message.
async fn message_driven(plan: &Plan, setup: &Setup, add: Add<'_>) -> Result<()> {
    let setup = Setup {
        a_message_each: true,
        ..setup.clone()
    };
    let cluster = Cluster::start(&setup).await?;
    deploy(&cluster).await?;
    let pure = Work::new("pure", &json!({"name": "Ada", "n": 0}));
    for in_flight in plan.in_flight() {
        let figure = repeated(plan, &cluster, &pure, in_flight).await?;
        let name = "ten pure states by a worker, start to result";
        let note = "coordinator.runs_inline = false: a message, a read and two commits".to_owned();
        let case = Case::new(name, "instances", figure);
        add(case.against(Floor::TenLocal).noting(note));
    }
    let messages = Work::new("messages", &json!({"n": 0}));
    for in_flight in plan.in_flight() {
        let figure = repeated(plan, &cluster, &messages, in_flight).await?;
        let each = messages_each(&cluster, &messages).await?;
        // More messages would be repeats, not transitions.
        ensure!(
            each == workflows::TRANSITIONS as f64,
            "an instance took {each} messages, not {}",
            workflows::TRANSITIONS
        );
        let case = Case::new("message-driven states", "transitions", figure.times(each));
        add(case.against(Floor::Message).noting(format!(
            "{each:.0} messages an instance, one a transition (worker.local_scopes = 0); times are of the instance"
        )));
    }
    Ok(())
}

/// The number of messages in the task queue for each instance.
pub async fn messages_each(cluster: &Cluster, work: &Work) -> Result<f64> {
    const INSTANCES: usize = 20;
    let before = cluster.tasks().await?;
    super::starts::results_of(cluster, work, 1, INSTANCES).await?;
    Ok((cluster.tasks().await? - before) as f64 / INSTANCES as f64)
}

async fn forks(plan: &Plan, cluster: &Cluster, add: Add<'_>) -> Result<()> {
    let foreach = Work::new("foreach", &items(100)).giving(json!({"count": 100}));
    for in_flight in plan.in_flight_of_forks() {
        let figure = repeated(plan, cluster, &foreach, in_flight).await?;
        let each = messages_each(cluster, &foreach).await?;
        let note = format!(
            "{:.0} instances/s, {each:.1} messages each; times are of the instance",
            figure.rate
        );
        // The start, the iterations, the end.
        let case = Case::new("foreach over 100", "transitions", figure.times(102.0)).wide(100);
        add(case.against(Floor::Message).noting(note));
    }
    let parallel = Work::new("parallel", &json!({}));
    for in_flight in plan.in_flight() {
        let figure = repeated(plan, cluster, &parallel, in_flight).await?;
        let each = messages_each(cluster, &parallel).await?;
        let note = format!(
            "{:.0} instances/s, {each:.1} messages each; times are of the instance",
            figure.rate
        );
        let case =
            Case::new("parallel of ten", "transitions", figure.times(12.0)).wide(workflows::CHAIN);
        add(case.against(Floor::Message).noting(note));
    }
    Ok(())
}

async fn event_cases(plan: &Plan, setup: &Setup, add: Add<'_>) -> Result<()> {
    let cluster = Cluster::start(setup).await?;
    let mut client = Client::open(cluster.api()).await?;
    client.deploy(&workflows::event_started("go"), None).await?;
    let hub = Hub::open(cluster.servers.nats_link.clone()).await?;
    for in_flight in plan.in_flight() {
        let mut figures = Vec::new();
        for _ in 0..plan.repeats {
            figures.push(creating(&hub, in_flight, plan.seconds, &cluster.meter()).await?);
        }
        let case = Case::new("event-started instance", "instances", median(figures));
        let note = "from the event on NATS to the produced event on NATS".to_owned();
        add(case.against(Floor::Event).noting(note));
    }
    drop((hub, cluster));
    let cluster = Cluster::start(setup).await?;
    let mut client = Client::open(cluster.api()).await?;
    client.deploy(&workflows::correlated("wait"), None).await?;
    let filled = fill(&cluster, "wait", 0, plan.waiting).await?;
    let hub = Hub::open(cluster.servers.nats_link.clone()).await?;
    for in_flight in plan.in_flight() {
        let count = (plan.waiting / 10).clamp(1, if in_flight == 1 { 500 } else { 10_000 });
        let figure = answering(&cluster, &hub, in_flight, count).await?;
        let name = format!("correlated event to one of {} waiting", plan.waiting);
        add(Case::new(name, "events", figure).against(Floor::Event).noting(format!(
            "from the event on NATS to the produced event; {:.0} instances/s came to their wait, {:.0} \
             bytes of Redis each: {:.0} that are kept of it (the input is {:.0}), {:.0} beyond",
            filled.rate,
            filled.bytes,
            filled.stored,
            filled.data,
            filled.overhead()
        )));
    }
    Ok(())
}

async fn timers(plan: &Plan, setup: &Setup, add: Add<'_>) -> Result<()> {
    let mut cluster = Cluster::start(setup).await?;
    let mut client = Client::open(cluster.api()).await?;
    let nap = plan.nap;
    let text = format!("PT{}S", nap.as_secs());
    client
        .deploy(&workflows::sleeper("second", "PT1S"), None)
        .await?;
    client
        .deploy(&workflows::sleeper("nap", &text), None)
        .await?;
    client
        .deploy(&workflows::sleeper("hour", "PT1H"), None)
        .await?;
    let figure = late(&cluster, "second", 64).await?;
    let note = "p50 and p99: how much later than a second the result came".to_owned();
    add(Case::new("sleep of a second", "instances", figure).noting(note));
    let filled = fill(&cluster, "hour", 0, plan.waiting.min(20_000)).await?;
    let (figure, ready) = overdue(&mut cluster, "nap", nap, plan.timers).await?;
    let note = format!(
        "{} timers that became due while no coordinator ran, from the start of one (ready after {:.0} \
         ms) until all instances have ended; {:.0} bytes of Redis by sleeping instance: {:.0} that are \
         kept of it (the input is {:.0}), {:.0} beyond",
        plan.timers,
        ready.as_secs_f64() * 1e3,
        filled.bytes,
        filled.stored,
        filled.data,
        filled.overhead()
    );
    add(Case::new("overdue timers", "timers", figure).noting(note));
    Ok(())
}

async fn many_definitions(plan: &Plan, setup: &Setup, add: Add<'_>) -> Result<()> {
    let cluster = Cluster::start(setup).await?;
    let mut client = Client::open(cluster.api()).await?;
    let meter = cluster.meter();
    let before = meter.read().await?;
    let begun = Instant::now();
    let mut times = Vec::new();
    for number in 0..plan.definitions {
        let one = Instant::now();
        client
            .deploy(&workflows::pure(&format!("d{number}")), None)
            .await?;
        times.push(one.elapsed());
    }
    let took = begun.elapsed().as_secs_f64();
    let usage = meter.read().await?.since(&before);
    let figure = Figure::of(1, times, took, usage);
    let name = format!("deployment of {} definitions", plan.definitions);
    let work = Work::new("d0", &json!({}));
    let after = results(&cluster, &work, 1, plan.seconds).await?;
    let note = format!(
        "with all of them there, start to result takes {:.2} ms (p50)",
        after.p50_ms
    );
    add(Case::new(name, "definitions", figure).noting(note));
    Ok(())
}
