//! Runs seeds, and prints how to repeat one that fails.
#![allow(clippy::print_stdout, reason = "a command")]

use std::io::{IsTerminal, Write};
use std::time::{Duration, Instant};

use anyhow::Result;
use clap::{Parser, ValueEnum};
use swirl_simulation::generate::{Case, generate};
use swirl_simulation::{Mode, Totals, check_mode, plans, tasks};

/// Runs random workflows undisturbed and with faults. The outcomes must be the same.
#[derive(Parser)]
struct Args {
    /// The number of seeds.
    #[arg(long, default_value_t = 100)]
    seeds: u64,
    /// The first seed.
    #[arg(long, default_value_t = 0)]
    seed: u64,
    /// Ends after this many minutes.
    #[arg(long)]
    minutes: Option<u64>,
    #[arg(long, value_enum, default_value_t = Size::Small)]
    size: Size,
    /// The mode in which each seed is run; all modes if absent.
    #[arg(long, value_enum)]
    mode: Option<Mode>,
    /// The edition of the workflows.
    #[arg(long, value_enum, default_value_t = Edition::All)]
    edition: Edition,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Edition {
    /// 0.8, with sub-workflows of other editions.
    #[value(name = "0.8")]
    States,
    /// DSL 1.0.
    #[value(name = "1.0")]
    Tasks,
    /// Both in turns.
    All,
}

impl Edition {
    fn generate(self, seed: u64, size: usize) -> Case {
        match self {
            Edition::States => generate(seed, size),
            Edition::Tasks => tasks::generate::generate(seed, size),
            Edition::All if seed.is_multiple_of(2) => generate(seed, size),
            Edition::All => tasks::generate::generate(seed, size),
        }
    }

    fn word(self) -> &'static str {
        match self {
            Edition::States => "0.8",
            Edition::Tasks => "1.0",
            Edition::All => "all",
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Size {
    /// Up to eight states.
    Small,
    /// Up to thirty.
    Large,
}

impl Size {
    fn of(self, seed: u64) -> usize {
        match self {
            Size::Small => 1 + (seed % 8) as usize,
            Size::Large => 8 + (seed % 23) as usize,
        }
    }
}

fn main() -> Result<()> {
    let args = Args::parse();
    let begin = Instant::now();
    let limit = args
        .minutes
        .map(|minutes| Duration::from_secs(60 * minutes));
    let (mut seeds, mut failed, mut totals) = (0u64, 0u64, Totals::default());
    let mut shown = Instant::now();
    for seed in args.seed..args.seed.saturating_add(args.seeds) {
        if limit.is_some_and(|limit| begin.elapsed() > limit) {
            break;
        }
        seeds += 1;
        for mode in Mode::of_seed(seed, args.mode) {
            let size = args.size.of(seed);
            let case = args.edition.generate(seed, size);
            let undecided = totals.undecided;
            if !check(&case, mode, &mut totals).is_empty() {
                failed += 1;
                report(seed, size, mode, &args);
            }
            if args.seeds == 1 && totals.undecided > undecided {
                explain(&case, mode)?;
            }
        }
        if std::io::stdout().is_terminal() && shown.elapsed() > Duration::from_millis(200) {
            shown = Instant::now();
            print!("\r{seeds} seeds, {} runs, {failed} failed", totals.runs);
            std::io::stdout().flush()?;
        }
    }
    let seconds = begin.elapsed().as_secs();
    println!("\n{seeds} seeds, {failed} failed, {seconds} s\n{totals}");
    anyhow::ensure!(failed == 0, "{failed} failed");
    Ok(())
}

fn check(case: &Case, mode: Mode, totals: &mut Totals) -> Vec<String> {
    match check_mode(case, mode, totals) {
        Ok(found) => found,
        Err(error) => vec![error.to_string()],
    }
}

/// Shows a case that wasn't run, and why.
fn explain(case: &Case, mode: Mode) -> Result<()> {
    let margin = match mode {
        Mode::Moment => tasks::MOMENT_MARGIN_MS,
        Mode::Cluster | Mode::Durable | Mode::Rollback => tasks::CLUSTER_MARGIN_MS,
    };
    let why = plans::undecided(case, margin)?.unwrap_or_default();
    println!("{mode:?} is undecided: {why}");
    show(case);
    Ok(())
}

fn show(case: &Case) {
    for text in [&case.main, &case.sub].into_iter().chain(&case.older) {
        println!("{text}---");
    }
    println!("events: {:?}", case.events);
}

/// Looks for the smallest failing case, because it is the easiest to read.
fn report(seed: u64, size: usize, mode: Mode, args: &Args) {
    let mut totals = Totals::default();
    let smaller = (1..=size).map(|size| args.edition.generate(seed, size));
    let mut found = smaller.map(|case| (check(&case, mode, &mut totals), case));
    if let Some((found, case)) = found.find(|(found, _)| !found.is_empty()) {
        println!(
            "\nseed {seed}, {} states, {mode:?}:\n{}",
            case.size,
            found.join("\n")
        );
        show(&case);
    }
    let name = |value: &str| value.to_lowercase();
    println!(
        "again: cargo xtask simulate --seeds 1 --seed {seed} --edition {} --size {} --mode {}",
        args.edition.word(),
        name(&format!("{:?}", args.size)),
        name(&format!("{mode:?}"))
    );
}
