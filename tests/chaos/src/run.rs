//! A run: work under faults, then recovery, then the comparison.

use std::convert::Infallible;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::{Duration, Instant, SystemTime};

use anyhow::{Context, Result, anyhow, bail};
use async_nats::jetstream;
use futures::StreamExt;
use serde_json::Value;

use crate::api::Api;
use crate::check::{Losses, Produced, Report};
use crate::cluster::Cluster;
use crate::definitions;
use crate::faults::{Fault, Injector};
use crate::hostile;
use crate::instance::Planned;
use crate::memory::{self, Memory};
use crate::over::Over;
use crate::processes::Role;
use crate::publisher::{ANSWERED_MAX, answer};
use crate::queues::queues;
use crate::random::Random;
use crate::service::{Service, document};
use crate::tasks::TICK;
use crate::watch::{Started, Watch};

/// A publisher that sees no effect of its event for this long publishes the event again.
const AGAIN: Duration = Duration::from_secs(5);
/// The number of instances that must have ended, and the share of the time that must have passed, before the hostile
/// workflows begin. Later instances are compared with these.
const QUIET_INSTANCES: usize = 120;
const QUIET_SHARE: u32 = 5;

/// The interval at which the backlog is checked.
const BACKLOG_PAUSE: Duration = Duration::from_millis(50);

#[derive(Debug, Clone)]
pub struct Options {
    /// The `swirl` binary.
    pub binary: PathBuf,
    pub workers: usize,
    pub coordinators: usize,
    pub instances: usize,
    /// The number of clients, each of which starts one instance after another.
    pub at_once: usize,
    /// Clients start nothing while this many instances haven't ended.
    pub backlog: usize,
    /// The number of elements in each fan.
    pub fan: usize,
    pub faults: Vec<Fault>,
    /// The instances are stored in a Redis Cluster. Faults that don't fit are left out.
    pub redis_cluster: bool,
    pub seed: u64,
    pub pause: Duration,
    pub outage: Duration,
    pub lease: Duration,
    /// Instances are added until this time has passed, ...
    pub at_least: Duration,
    /// ... and until this many faults have come and gone.
    pub faults_at_least: usize,
    /// Hostile workflows run beside the others, after a phase without them. As many ordinary instances run beside them
    /// as before, and none may take ten times as long.
    pub hostile: bool,
    /// No process may grow.
    pub flat: bool,
    /// Additional flags for all processes.
    pub flags: Vec<String>,
    /// The time in which the remaining instances must end after all faults have ended.
    pub liveness: Duration,
    /// If some don't end in that time, the cluster is kept for this long, so that it can be examined.
    pub hold: Duration,
    /// The folder to which the processes' logs are copied.
    pub logs: Option<PathBuf>,
}

impl Options {
    pub fn new(binary: impl Into<PathBuf>, faults: Vec<Fault>) -> Options {
        Options {
            binary: binary.into(),
            workers: 3,
            coordinators: 2,
            instances: 500,
            at_once: 50,
            backlog: usize::MAX,
            fan: 10,
            faults,
            redis_cluster: false,
            seed: 1,
            pause: Duration::from_secs(1),
            outage: Duration::from_secs(5),
            lease: Duration::from_secs(3),
            at_least: Duration::from_secs(10),
            faults_at_least: 0,
            hostile: false,
            flat: false,
            flags: Vec::new(),
            liveness: Duration::from_secs(90),
            hold: Duration::ZERO,
            logs: None,
        }
    }
}

/// Runs it. `progress` gets a line from time to time.
///
/// # Errors
/// The run failed. This is not an error of the system, unless a process ended by itself or a client never got an
/// answer.
pub fn run(options: &Options, progress: &(dyn Fn(&str) + Sync)) -> Result<Report> {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()?;
    // A provider may be set already, which is fine.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let skewed = options.faults.contains(&Fault::Skew);
    let start = match options.redis_cluster {
        true => Cluster::start_on_redis_cluster,
        false => Cluster::start_with,
    };
    let cluster = start(
        &options.binary,
        options.workers,
        options.coordinators,
        options.lease,
        skewed,
        &options.flags,
    )?;
    let cluster = Arc::new(Mutex::new(cluster));
    let result = runtime.block_on(async {
        tokio::select! {
            result = drive(options, cluster.clone(), progress) => Some(result),
            stopped = stopped() => stopped.err().map(Err),
        }
    });
    if let Some(logs) = &options.logs {
        lock(&cluster).copy_logs(logs)?;
    }
    let Some(result) = result else {
        // The fault injector ends first, because it holds the processes, which end with their last holder.
        drop(runtime);
        anyhow::bail!(
            "the run was stopped by a signal; its processes and servers are stopped, too"
        );
    };
    if result.is_err() {
        for process in &lock(&cluster).processes {
            progress(&format!("{}:\n{}", process.name, process.tail()));
        }
    }
    result
}

/// Completes when this process is asked to stop.
async fn stopped() -> Result<()> {
    use tokio::signal::unix::{SignalKind, signal};
    let mut terminated = signal(SignalKind::terminate())?;
    tokio::select! {
        interrupted = tokio::signal::ctrl_c() => Ok(interrupted?),
        _ = terminated.recv() => Ok(()),
    }
}

fn fitting(options: &Options) -> Vec<Fault> {
    let all = options.faults.iter().copied();
    all.filter(|fault| fault.fits(options.redis_cluster))
        .collect()
}

fn lock(cluster: &Mutex<Cluster>) -> std::sync::MutexGuard<'_, Cluster> {
    cluster.lock().unwrap_or_else(PoisonError::into_inner)
}

async fn drive(
    options: &Options,
    cluster: Arc<Mutex<Cluster>>,
    progress: &(dyn Fn(&str) + Sync),
) -> Result<Report> {
    let service = Service::default();
    let address = service.start().await?;
    let (apis, addresses, nats_url) = {
        let cluster = lock(&cluster);
        let coordinators = cluster.of(Role::Coordinator).into_iter();
        let addresses: Vec<SocketAddr> = coordinators
            .map(|index| cluster.processes[index].address)
            .collect();
        (cluster.apis(), addresses, cluster.nats.url())
    };
    let api = Api::new(apis, options.outage + ANSWERED_MAX)?;
    let deployed = Instant::now();
    for definition in definitions::all(address) {
        api.deploy(&definition, &document(address)).await?;
    }
    let nats = async_nats::ConnectOptions::new()
        .max_reconnects(None)
        .connect(&nats_url)
        .await?;
    let produced = listen(&nats).await?;
    if options.faults.contains(&Fault::Double) {
        double(&nats).await?;
    }

    let (over, injected) = (Arc::new(AtomicBool::new(false)), Arc::default());
    let ends = Over(over.clone());
    let injector = Injector {
        cluster: cluster.clone(),
        faults: fitting(options),
        seed: options.seed,
        pause: options.pause,
        outage: options.outage,
        over: over.clone(),
        injected: Arc::clone(&injected),
    };
    let injecting = tokio::task::spawn_blocking(move || injector.run());
    let begun = Instant::now();
    let loses_writes = options.faults.contains(&Fault::LoseRedis);
    let watch = Watch::new(loses_writes);
    let mut memory = Memory::default();
    let attacked = OnceLock::new();
    let loaded = async {
        let client = Client {
            api: &api,
            nats: &nats,
            watch: &watch,
        };
        let loaded = load(options, &injected, &attacked, &client, progress).await;
        ends.set();
        loaded
    };
    let attack = async {
        if !options.hostile {
            return Ok(None);
        }
        quiet(options, &watch, &over).await;
        progress(&format!(
            "{:5.0?} hostile definitions come",
            begun.elapsed()
        ));
        attacked.get_or_init(|| (now_ms(), watch.started()));
        hostile::run(&api, &nats, &addresses, &over).await.map(Some)
    };
    let hostility = tokio::select! {
        done = futures::future::try_join(loaded, attack) => done?.1,
        done = watch.run(&api) => return Err(done.err().context("a look that ended by itself")?),
        never = note_memory(&cluster, &mut memory) => match never {},
        done = publish_again(options, &nats, &watch) => match done? {},
    };
    let done = injecting.await.context("the injector panicked")??;
    let under_faults = begun.elapsed();
    let left = watch.left();
    progress(&format!(
        "the faults are over after {under_faults:.1?}; {left} instances are under way"
    ));

    let healed = Instant::now();
    let is_wiped = options.faults.iter().any(|fault| fault.loses_messages());
    let is_finished = tokio::select! {
        done = watch.finish(options, &api, progress) => done?,
        done = publish_again(options, &nats, &watch) => match done? {},
    };
    let healed_after = healed.elapsed();
    if !is_finished {
        progress(&queues(&nats).await?);
        if !options.hold.is_zero() {
            progress("the cluster goes on for a while, so that it can be examined");
            tokio::time::sleep(options.hold).await;
        }
    }
    if !is_wiped {
        all_produced(options, &nats, &watch.ended(), &produced, progress).await?;
    }
    all_called(options, &nats, &service, &watch.ended(), progress).await?;
    // Late or repeated effects would appear now.
    tokio::time::sleep(Duration::from_secs(2)).await;
    if let Some(process) = lock(&cluster).ended() {
        bail!("a process ended by itself: {process}");
    }
    note_stored(&nats, &produced).await?;
    let ticks = api.instances(TICK).await?;
    let (mut report, all) = watch.into_report();
    // Where ended instances are forgotten, few are left to count.
    let lasted = if options.flat {
        Duration::ZERO
    } else {
        deployed.elapsed()
    };
    report.ticks(&ticks, lasted);
    for fault in done {
        *report.faults.entry(fault.as_str()).or_default() += 1;
    }
    report.left = left;
    report.hostility = hostility;
    if let Some((attacked, _)) = attacked.get() {
        report.hold_up(*attacked);
    }
    if options.flat {
        report.differences.extend(memory.growth());
    }
    report.memory = memory;
    report.under_faults = under_faults;
    report.healed_after = healed_after;
    report.requests_failed = api.failed.load(Ordering::Relaxed);
    let produced = produced.lock().unwrap_or_else(PoisonError::into_inner);
    let (events, writes) = (is_wiped, loses_writes);
    let losses = Losses { events, writes };
    service.look(|seen| report.effects(&all, seen, &produced, losses));
    Ok(report)
}

/// Records the memory of the processes for as long as it is polled.
async fn note_memory(cluster: &Mutex<Cluster>, memory: &mut Memory) -> Infallible {
    loop {
        tokio::time::sleep(memory::EVERY).await;
        // A fault may hold the cluster for some time.
        let Ok(pids) = cluster.try_lock().map(|cluster| cluster.pids()) else {
            continue;
        };
        for (name, pid) in pids {
            memory.look(&name, pid);
        }
    }
}

/// Waits until enough instances for a comparison have ended.
async fn quiet(options: &Options, watch: &Watch, over: &AtomicBool) {
    let begun = Instant::now();
    let is_quiet = || {
        begun.elapsed() < options.at_least / QUIET_SHARE || watch.ended_count() < QUIET_INSTANCES
    };
    while is_quiet() && !over.load(Ordering::Relaxed) {
        tokio::time::sleep(Duration::from_millis(200)).await;
    }
}

fn now_ms() -> i64 {
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
    since.map_or(0, |since| {
        i64::try_from(since.as_millis()).unwrap_or(i64::MAX)
    })
}

/// The connections and settings of the clients that start instances.
struct Client<'c> {
    api: &'c Api,
    nats: &'c async_nats::Client,
    watch: &'c Watch,
}

/// Starts instances, and sends the events that they wait for, some before the instance starts and some after it.
/// `attacked`: the time since which hostile definitions run, and the number of instances started before.
async fn load(
    options: &Options,
    injected: &AtomicUsize,
    attacked: &OnceLock<(i64, usize)>,
    client: &Client<'_>,
    progress: &(dyn Fn(&str) + Sync),
) -> Result<()> {
    let begun = Instant::now();
    let count = AtomicUsize::new(0);
    let more = |number: usize| {
        let few = match (options.hostile, attacked.get()) {
            (false, _) => number < options.instances,
            (true, Some((_, before))) => number < before + options.instances,
            (true, None) => true,
        };
        few || begun.elapsed() < options.at_least
            || injected.load(Ordering::Relaxed) < options.faults_at_least
    };
    let lanes = (0..options.at_once).map(|_| async {
        loop {
            let number = count.fetch_add(1, Ordering::Relaxed);
            if !more(number) {
                return Ok::<(), anyhow::Error>(());
            }
            while client.watch.left() >= options.backlog {
                tokio::time::sleep(BACKLOG_PAUSE).await;
            }
            let planned = Planned::new(number, options.fan);
            // Published again, an event that also starts an instance could come while its own instance is lost.
            if planned.may_be_early() || !options.faults.contains(&Fault::LoseRedis) {
                one(client, planned, options.seed).await?;
            }
            let started = number + 1;
            if started.is_multiple_of(500) {
                progress(&format!(
                    "{:5.0?} {started} instances are started, {} under way",
                    begun.elapsed(),
                    client.watch.left()
                ));
            }
        }
    });
    let mut lanes: futures::stream::FuturesUnordered<_> = lanes.collect();
    while let Some(done) = lanes.next().await {
        done?;
    }
    Ok(())
}

async fn one(client: &Client<'_>, planned: Planned, seed: u64) -> Result<()> {
    let early = planned.may_be_early() && Random::new(seed ^ planned.number as u64).below(2) == 0;
    if early {
        answer(client.nats, &planned).await?;
    }
    let asked_ms = now_ms();
    let id = client.api.start(&planned).await?;
    // A client slows itself down a little, so that the run doesn't end before the faults.
    tokio::time::sleep(Duration::from_millis(200)).await;
    if !early {
        answer(client.nats, &planned).await?;
    }
    client.watch.add(Started {
        planned,
        id,
        asked_ms,
    });
    Ok(())
}

/// Republishes events whose instances have waited for a while: NATS or Redis may have lost them.
async fn publish_again(
    options: &Options,
    nats: &async_nats::Client,
    watch: &Watch,
) -> Result<Infallible> {
    loop {
        tokio::time::sleep(AGAIN).await;
        if options.faults.iter().any(|fault| fault.loses_events()) {
            let until = now_ms() - AGAIN.as_millis() as i64;
            let mut waiting = watch.all();
            waiting.retain(|started| started.asked_ms < until);
            publish_all_again(nats, waiting).await?;
        }
    }
}

/// An event that only NATS had is lost with its streams. Its publisher must publish it again, which is safe.
async fn publish_all_again(nats: &async_nats::Client, waiting: Vec<Started>) -> Result<()> {
    for started in waiting {
        answer(nats, &started.planned).await?;
    }
    Ok(())
}

/// Records produced events on arrival.
async fn listen(nats: &async_nats::Client) -> Result<Arc<Mutex<Produced>>> {
    let mut messages = nats.subscribe("swirl.events.chaos.done").await?;
    nats.flush().await?;
    let produced: Arc<Mutex<Produced>> = Arc::default();
    let noted = produced.clone();
    tokio::spawn(async move {
        while let Some(message) = messages.next().await {
            let Ok(event) = serde_json::from_slice::<Value>(&message.payload) else {
                continue;
            };
            let mut produced = noted.lock().unwrap_or_else(PoisonError::into_inner);
            produced.messages += 1;
            let ids = produced.ids.entry(event["data"].to_string()).or_default();
            ids.insert(event["id"].to_string());
        }
    });
    Ok(produced)
}

/// Records the events in the stream, because a subscriber receives nothing while the server is down.
async fn note_stored(nats: &async_nats::Client, produced: &Mutex<Produced>) -> Result<()> {
    let stream = jetstream::new(nats.clone())
        .get_stream("SWIRL_default_EVENTS")
        .await?;
    let config = jetstream::consumer::pull::Config {
        filter_subject: "swirl.events.chaos.done".to_owned(),
        ack_policy: jetstream::consumer::AckPolicy::None,
        ..Default::default()
    };
    let consumer = stream.create_consumer(config).await?;
    let mut left = consumer.cached_info().num_pending;
    while left > 0 {
        let mut batch = consumer.fetch().max_messages(500).messages().await?;
        let before = left;
        while let Some(message) = batch.next().await {
            let message = message.map_err(|error| anyhow!(error))?;
            let event: Value = serde_json::from_slice(&message.payload)?;
            let mut produced = produced.lock().unwrap_or_else(PoisonError::into_inner);
            let ids = produced.ids.entry(event["data"].to_string()).or_default();
            ids.insert(event["id"].to_string());
            left = left.saturating_sub(1);
        }
        if left == before {
            bail!("the stream of events cannot be read to its end");
        }
    }
    Ok(())
}

/// Waits for all produced events of the instances. If a process was stopped between a commit and its effects, the
/// reconciler carries them out after a deliberate delay.
async fn all_produced(
    options: &Options,
    nats: &async_nats::Client,
    ended: &[Planned],
    produced: &Mutex<Produced>,
    progress: &(dyn Fn(&str) + Sync),
) -> Result<()> {
    let begun = Instant::now();
    loop {
        note_stored(nats, produced).await?;
        let missing = {
            let produced = produced.lock().unwrap_or_else(PoisonError::into_inner);
            let wanted = ended.iter().filter_map(Planned::produced);
            wanted
                .filter(|data| !produced.ids.contains_key(&data.to_string()))
                .count()
        };
        // Events that are missing for this long are lost, and the comparison lists them.
        if missing == 0 || begun.elapsed() > options.liveness {
            return Ok(());
        }
        progress(&format!("{missing} events are still to be published"));
        tokio::time::sleep(Duration::from_millis(500)).await;
    }
}

/// Waits for all calls of instances that events have started, which nobody watches. An event that was lost with power is
/// published again. Calls that are missing for long are lost, and the comparison lists them.
async fn all_called(
    options: &Options,
    nats: &async_nats::Client,
    service: &Service,
    ended: &[Planned],
    progress: &(dyn Fn(&str) + Sync),
) -> Result<()> {
    let may_be_lost = options.faults.iter().any(|fault| fault.loses_messages());
    let begun = Instant::now();
    let mut published = Instant::now();
    loop {
        let missing: Vec<&Planned> = service.look(|seen| {
            let is_missing = |planned: &&Planned| {
                let mut calls = planned.calls().into_keys();
                calls.any(|(step, item)| !seen.keys.contains_key(&(planned.id(), step, item)))
            };
            ended.iter().filter(is_missing).collect()
        });
        if missing.is_empty() || begun.elapsed() > options.liveness {
            return Ok(());
        }
        progress(&format!("calls of {} are still to be made", missing.len()));
        if may_be_lost && published.elapsed() > AGAIN {
            for planned in missing {
                answer(nats, planned).await?;
            }
            published = Instant::now();
        }
        tokio::time::sleep(Duration::from_millis(500)).await;
    }
}

/// Publishes every task and every user event a second time.
async fn double(nats: &async_nats::Client) -> Result<()> {
    const MARK: &str = "Chaos-Double";
    for subject in ["swirl-tasks.default", "swirl.events.>"] {
        let mut messages = nats.subscribe(subject).await?;
        let nats = nats.clone();
        tokio::spawn(async move {
            while let Some(message) = messages.next().await {
                let mut headers = message.headers.clone().unwrap_or_default();
                if headers.get(MARK).is_some() {
                    continue;
                }
                headers.insert(MARK, "1");
                // Without its id, so that not JetStream but the receiver drops the duplicate.
                let mut plain = async_nats::HeaderMap::new();
                for (name, values) in headers.iter() {
                    let name: &str = name.as_ref();
                    if !name.eq_ignore_ascii_case("Nats-Msg-Id") {
                        for value in values {
                            plain.append(name, value.as_str());
                        }
                    }
                }
                let subject = message.subject.clone();
                let sent = nats.publish_with_headers(subject, plain, message.payload);
                if sent.await.is_err() {
                    return;
                }
            }
        });
    }
    Ok(())
}
