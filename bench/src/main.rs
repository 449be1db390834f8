//! Measures Swirl on this machine and compares it with a floor: bare loops that use the same servers, disk and crates
//! without Swirl, in the same run.
//!
//! `cargo xtask bench` builds `swirl` and runs this; `docs/dev/benchmarks.md` describes the measurements.

#![allow(clippy::print_stdout, reason = "a command")]

mod cluster;
mod dev;
mod engine;
mod floor;
mod instances;
mod measure;
mod plan;
mod pure;
mod report;
mod servers;
mod steps;
mod usage;
mod waiting;

use std::path::{Path, PathBuf};

use anyhow::{Context, Result, ensure};
use clap::{Parser, ValueEnum};
use cluster::{Floor, Setup};
use floor::transition::Work;
use measure::{Figure, median};
use mimalloc::MiMalloc;
use plan::Plan;
use report::{FloorRow, Report};
use servers::Servers;
use steps::{Peer, PeerProcess};
use swirl_expr::CountingAllocator;
use swirl_model::{Data, data};

/// The allocator of `swirl` (`cli/src/main.rs`), for the bare loops as well.
#[global_allocator]
static ALLOCATOR: CountingAllocator<MiMalloc> = CountingAllocator::of(MiMalloc);

#[derive(Parser)]
#[command(name = "cargo xtask bench", about = "Measures Swirl and its floor.")]
struct Args {
    /// Measure a little of everything, in a few minutes.
    #[arg(long)]
    quick: bool,
    /// The file for the report; plots are written next to it.
    #[arg(long, value_name = "FILE")]
    report: Option<PathBuf>,
    /// The binary to measure. The default is the one next to this program.
    #[arg(long, value_name = "FILE")]
    swirl: Option<PathBuf>,
    /// The number of workers, except in measurements that vary it.
    #[arg(long, default_value_t = 1)]
    workers: usize,
    /// Make Redis sync each write to disk, instead of once per second.
    #[arg(long)]
    always: bool,
    /// Measure only waiting instances in `swirl dev`, in these numbers, such as 10000,100000.
    #[arg(long, value_delimiter = ',', value_name = "COUNT")]
    waiting: Vec<usize>,
    /// Measure only listings, searches and pages of the console, with this many instances, such as 1000000.
    #[arg(long, value_name = "COUNT")]
    pages: Option<usize>,
    /// Measure only ten HTTP calls in `swirl dev` and in these peers, given as NAME=URL. Each is sent a POST request
    /// with the address of the service to call.
    #[arg(long, value_name = "NAME=URL")]
    peer: Vec<Peer>,
    /// The name and the process id of a peer's process, to measure its processor time.
    #[arg(long, value_name = "NAME=PID")]
    peer_process: Vec<PeerProcess>,
    /// Measure only these parts.
    #[arg(long, value_delimiter = ',')]
    only: Vec<Part>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Part {
    /// The bare loops.
    Floor,
    /// The real processes.
    Cluster,
    /// Only the events of the cluster, if this is named and the cluster isn't.
    Events,
    /// The growth of costs.
    Growth,
    /// The engine alone, and instances in one process.
    Embedded,
    /// Ten HTTP calls in `swirl dev`.
    Dev,
    /// Search attributes and lifecycle events, alternately on and off. Runs only if it is named.
    Overhead,
    /// What histories keep, with each choice of `history.data`, alternately. Runs only if it is named.
    Recording,
    /// DSL 1.0 against edition 0.8, alternately. Runs only if it is named.
    Editions,
}

fn main() -> Result<()> {
    let args = Args::parse();
    let runtime = tokio::runtime::Runtime::new()?;
    runtime.block_on(measure(&args))
}

async fn measure(args: &Args) -> Result<()> {
    let plan = Plan::new(args.quick);
    let has = |part| args.only.is_empty() || args.only.contains(&part);
    let mut report = Report::default();
    report.say("# Benchmark report\n");
    report.say(&machine(args, &plan)?);
    if !args.waiting.is_empty() {
        waiting::measure(&setup(args)?.binary, &args.waiting, &mut report).await?;
        return finish(args, report);
    }
    if let Some(instances) = args.pages {
        cluster::pages::measure(&setup(args)?, instances, &mut report).await?;
        return finish(args, report);
    }
    if !args.peer.is_empty() {
        steps::measure(
            &plan,
            &setup(args)?.binary,
            &args.peer,
            &args.peer_process,
            &mut report,
        )
        .await?;
        return finish(args, report);
    }
    let mut floors = Vec::new();
    if has(Part::Floor) {
        floors = measure_floor(&plan, args.always).await?;
    }
    let only_events = args.only.contains(&Part::Events) && !args.only.contains(&Part::Cluster);
    if has(Part::Cluster) || only_events {
        let setup = setup(args)?;
        let mut say = |case: &cluster::Case| {
            let figure = &case.figure;
            println!(
                "{} ({}): {:.0} {}/s, p50 {:.2} ms, p99 {:.2} ms; {}; {}",
                case.name,
                figure.in_flight,
                figure.rate,
                case.unit,
                figure.p50_ms,
                figure.p99_ms,
                figure.usage.cpu_text(),
                case.note
            );
        };
        let cases = match only_events {
            true => cluster::events_alone(&plan, &setup, &mut say).await?,
            false => cluster::all(&plan, &setup, &mut say).await?,
        };
        if has(Part::Floor) {
            again(&plan, args.always, &mut floors).await?;
        }
        report.say("## The cluster\n");
        report.say(&format!(
            "One coordinator, {} worker(s), `nats-server`, `redis-server` and this client share the \
             machine.\n",
            args.workers
        ));
        report.cases(&cases, &floors);
    }
    if !floors.is_empty() {
        report.say("## The floor\n");
        report.floors(&floors);
    }
    if has(Part::Growth) {
        report.say("## How cost grows\n");
        let mut say = |growth: &cluster::Growth| println!("{growth:?}");
        for growth in cluster::grow(&plan, &setup(args)?, &mut say).await? {
            report.growth(&growth);
        }
    }
    if args.only.contains(&Part::Overhead) {
        report.say("## Search attributes and lifecycle events\n");
        let mut say = |line: &str| println!("{line}");
        let rows = cluster::overhead::measure(&plan, &setup(args)?, &mut say).await?;
        report.overhead(&rows, "plain");
    }
    if args.only.contains(&Part::Recording) {
        cluster::recording::measure(&plan, &setup(args)?, &mut report).await?;
    }
    if args.only.contains(&Part::Editions) {
        report.say("## DSL 1.0 and edition 0.8\n");
        let mut say = |line: &str| println!("{line}");
        let setup = setup(args)?;
        let rows = cluster::editions::measure(&plan, &setup, &mut say).await?;
        report.overhead(&rows, "0.8");
        report.say("One instance with a `for` that counts:\n");
        let rows = cluster::editions::iterations(&plan, &setup).await?;
        let rows = rows.iter().map(|row| {
            vec![
                row.count.to_string(),
                format!("{:.1}", row.us_each),
                format!("{:.1}", row.worker_bytes as f64 / 1e6),
                format!("{:.1}", row.redis_bytes as f64 / 1e3),
            ]
        });
        let head = [
            "iterations",
            "µs each",
            "most memory of the worker, MB",
            "memory of Redis for it, KB",
        ];
        report.table(&head, &rows.collect::<Vec<_>>());
    }
    if has(Part::Dev) {
        steps::measure(&plan, &setup(args)?.binary, &[], &[], &mut report).await?;
    }
    if has(Part::Embedded) {
        report.say("## In one process\n");
        embedded(&plan, &mut report).await?;
    }
    finish(args, report)
}

fn finish(args: &Args, mut report: Report) -> Result<()> {
    report.say(&format!("Load average at the end: {}.", load()?));
    println!("\n{}", report.text());
    if let Some(path) = &args.report {
        report.write(path)?;
    }
    Ok(())
}

fn setup(args: &Args) -> Result<Setup> {
    let beside = || -> Result<PathBuf> {
        let own = std::env::current_exe()?;
        let folder = own.parent().context("this program is nowhere")?;
        Ok(folder.join("swirl"))
    };
    let binary = args.swirl.clone().map_or_else(beside, Ok)?;
    ensure!(
        binary.is_file(),
        "{} isn't there: `cargo xtask bench` builds it",
        binary.display()
    );
    Ok(Setup {
        binary,
        workers: args.workers,
        always: args.always,
        a_message_each: false,
        keep_ended_max: None,
        publishes: false,
        settings: &[],
    })
}

fn load() -> Result<String> {
    let text = std::fs::read_to_string("/proc/loadavg")?;
    Ok(text.split(' ').take(3).collect::<Vec<_>>().join(" "))
}

fn machine(args: &Args, plan: &Plan) -> Result<String> {
    let text = std::fs::read_to_string("/proc/cpuinfo")?;
    let model = text.lines().find(|line| line.starts_with("model name"));
    let model = model.and_then(|line| line.split(':').nth(1));
    let cores = std::thread::available_parallelism()?;
    let fsync = if args.always { "always" } else { "everysec" };
    Ok(format!(
        "{cores} cores ({}); JetStream on files, Redis with `appendfsync {fsync}`; each row {} s, \
         median of {}{}. Load average at the beginning: {}.\n",
        model.unwrap_or("?").trim(),
        plan.seconds,
        plan.repeats,
        if plan.quick { " (--quick)" } else { "" },
        load()?
    ))
}

async fn measure_floor(plan: &Plan, always: bool) -> Result<Vec<FloorRow>> {
    let servers = Servers::start(always).await?;
    let mut rows = Vec::new();
    let mut add = |name, kind, unit, figure: Figure| {
        println!(
            "floor: {name} ({}): {:.0} {unit}/s",
            figure.in_flight, figure.rate
        );
        rows.push(FloorRow {
            name,
            kind,
            unit,
            figure,
            again: None,
        });
    };
    for (name, kind) in LOOPS {
        for in_flight in [1, 64, 256] {
            let figure = one_floor(plan, &servers, kind, in_flight).await?;
            add(name, Some(kind), unit(kind), figure);
        }
    }
    for in_flight in [1, 64] {
        let script = floor::parts::script(&servers, in_flight, plan.seconds).await?;
        add("a script of Redis alone", None, "scripts", script);
        let jetstream = floor::parts::jetstream(&servers, in_flight, plan.seconds).await?;
        add("JetStream alone", None, "messages", jetstream);
    }
    Ok(rows)
}

const LOOPS: [(&str, Floor); 4] = [
    ("a message a transition", Floor::Message),
    ("ten transitions a message, one commit", Floor::TenLocal),
    ("ten HTTP calls a message, a commit each", Floor::TenCalls),
    ("an event in, a task, an event out", Floor::Event),
];

fn unit(kind: Floor) -> &'static str {
    match kind {
        Floor::Message => "transitions",
        Floor::TenLocal | Floor::TenCalls => "messages",
        Floor::Event => "events",
    }
}

async fn one_floor(
    plan: &Plan,
    servers: &Servers,
    kind: Floor,
    in_flight: usize,
) -> Result<Figure> {
    let work = match kind {
        Floor::TenCalls => Some(Work {
            commits: 10,
            called: Some(cluster::service::start().await?),
        }),
        Floor::Message | Floor::TenLocal => Some(Work {
            commits: 1,
            called: None,
        }),
        Floor::Event => None,
    };
    let mut figures = Vec::new();
    for _ in 0..plan.repeats {
        figures.push(match work {
            Some(work) => floor::transition::run(servers, work, in_flight, plan.seconds).await?,
            None => floor::events::run(servers, in_flight, plan.seconds).await?,
        });
    }
    Ok(median(figures))
}

/// Measures again at the end, to show whether the machine's speed changed during the run.
async fn again(plan: &Plan, always: bool, rows: &mut [FloorRow]) -> Result<()> {
    let servers = Servers::start(always).await?;
    for row in rows {
        if let Some(kind) = row.kind {
            let figure = one_floor(plan, &servers, kind, row.figure.in_flight).await?;
            row.again = Some(figure.rate);
        }
    }
    Ok(())
}

async fn embedded(plan: &Plan, report: &mut Report) -> Result<()> {
    let ten = pure::ten_states()?;
    let input: Data = data!({"name": "Ada", "n": 0});
    let rate = engine::transitions(&ten, &input, plan.seconds)?;
    report.say(&format!(
        "The engine alone, one core, ten pure states: {rate:.0} transitions/s.\n"
    ));
    let mut rows = Vec::new();
    let mut row = |name: &str, figure: &Figure, share: String| {
        rows.push(vec![
            name.to_owned(),
            figure.in_flight.to_string(),
            format!("{:.0}", figure.rate),
            format!("{:.2}", figure.p50_ms),
            format!("{:.2}", figure.p99_ms),
            share,
        ]);
    };
    for callers in [1, 16, 256] {
        for (name, at_once) in [
            ("ten pure states in memory", false),
            ("the same, carried out at the start", true),
        ] {
            let figure = instances::run(&ten, &input, None, at_once, callers, plan.seconds).await?;
            row(name, &figure, String::new());
        }
    }
    for callers in [1, 16, 256, 1024] {
        for (floor, name, at_once) in [
            (
                "bare writes of the same records, synced",
                "ten pure states on disk, synced",
                false,
            ),
            (
                "bare writes of what a start leaves, synced",
                "the same, carried out at the start",
                true,
            ),
        ] {
            let (bare, durable) = durable(plan, &ten, &input, at_once, callers).await?;
            row(floor, &bare, String::new());
            let share = format!("{:.0} %", durable.rate / bare.rate * 100.0);
            row(name, &durable, share);
        }
    }
    let head = [
        "what",
        "in flight",
        "instances/s",
        "p50 ms",
        "p99 ms",
        "of the floor",
    ];
    report.table(&head, &rows);
    Ok(())
}

/// Alternates between floor and store, because the duration of a sync varies.
async fn durable(
    plan: &Plan,
    definition: &std::sync::Arc<swirl_engine::Definition>,
    input: &Data,
    at_once: bool,
    callers: usize,
) -> Result<(Figure, Figure)> {
    let (mut bare, mut durable) = (Vec::new(), Vec::new());
    for _ in 0..plan.repeats {
        let folder = tempfile::tempdir()?;
        let path: &Path = folder.path();
        bare.push(floor::disk::run(path, at_once, callers, plan.seconds).await?);
        let store = path.join("store");
        let store = Some(store.as_path());
        let figure = instances::run(definition, input, store, at_once, callers, plan.seconds);
        durable.push(figure.await?);
    }
    Ok((median(bare), median(durable)))
}
