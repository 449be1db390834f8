//! Runs seeds, and says how to repeat one that fails.
#![allow(clippy::print_stdout)]

use std::time::{Duration, Instant};

use anyhow::Result;
use clap::Parser;
use swirl_simulation::check_case;
use swirl_simulation::generate::generate;
use swirl_simulation::rig::Broken;

/// Runs random workflows undisturbed, disturbed and with crashes.
#[derive(Parser)]
struct Args {
    /// How many seeds.
    #[arg(long, default_value_t = 100)]
    seeds: u64,
    /// The first seed.
    #[arg(long, default_value_t = 0)]
    from: u64,
    /// Ends after so many minutes.
    #[arg(long)]
    minutes: Option<u64>,
}

fn main() -> Result<()> {
    let args = Args::parse();
    let begin = Instant::now();
    let limit = args
        .minutes
        .map(|minutes| Duration::from_secs(60 * minutes));
    let (mut run, mut failed) = (0, 0);
    for seed in args.from..args.from.saturating_add(args.seeds) {
        if limit.is_some_and(|limit| begin.elapsed() > limit) {
            break;
        }
        run += 1;
        // The smallest that fails is the one to read.
        let size = 1 + (seed % 8) as usize;
        let violations = |size| match check_case(&generate(seed, size), Broken::No) {
            Ok(found) => found,
            Err(error) => vec![error.to_string()],
        };
        if !violations(size).is_empty() {
            failed += 1;
            let smaller = (1..=size).map(|size| (size, violations(size)));
            let found = smaller.into_iter().find(|(_, found)| !found.is_empty());
            if let Some((size, found)) = found {
                let case = generate(seed, size);
                println!("seed {seed}, {size} states: {}", found.join("\n"));
                println!(
                    "{}\n---\n{}\nevents: {:?}",
                    case.main, case.sub, case.events
                );
                println!("again: cargo run -p swirl-simulation -- --from {seed} --seeds 1");
            }
        }
        if run % 100 == 0 {
            println!(
                "{run} seeds, {failed} failed, {} s",
                begin.elapsed().as_secs()
            );
        }
    }
    println!(
        "{run} seeds, {failed} failed, {} s",
        begin.elapsed().as_secs()
    );
    anyhow::ensure!(failed == 0, "{failed} seeds failed");
    Ok(())
}
