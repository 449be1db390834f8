//! Measures the processor time of Redis for search attributes, so that other load on the machine matters little. Starts
//! its own server. `cargo run --release -p swirl-redis --example attributes`
#![allow(clippy::print_stdout, clippy::unwrap_used, reason = "an example")]

use std::sync::Arc;

use swirl_contract::Backend;
use swirl_contract::kit::{self, Change};
use swirl_model::attribute::{Attribute, Attributes};
use swirl_model::event::Command;
use swirl_model::instance::EndStatus;
use swirl_model::scope::Cursor;
use swirl_ports::Committed;
use swirl_redis::{Options, Redis};
use swirl_servers::{RedisOptions, RedisServer};

/// The number of instances of each kind in a round, and the number of rounds.
const INSTANCES: u64 = 100;
const ROUNDS: usize = 9;
/// The number of commits of an instance that don't change its attributes.
const COMMITS: usize = 4;
const KINDS: [u32; 4] = [0, 1, 5, 16];

fn main() -> anyhow::Result<()> {
    let server = RedisServer::start_with(RedisOptions {
        appendonly: true,
        appendfsync: Some("everysec"),
        ..RedisOptions::default()
    })?;
    let runtime = tokio::runtime::Runtime::new()?;
    runtime.block_on(measure(&server))
}

async fn measure(server: &RedisServer) -> anyhow::Result<()> {
    let redis = Redis::connect(Options::single(server.url())).await?;
    let b = Backend::of(Arc::new(redis), ());
    let mut used: Vec<Vec<f64>> = vec![Vec::new(); KINDS.len()];
    // Functions are loaded now, and the first round isn't counted.
    for round in 0..=ROUNDS {
        for (place, count) in KINDS.into_iter().enumerate() {
            let before = cpu(server)?;
            for number in 0..INSTANCES {
                instance(&b, &format!("{round}-{count}-{number}"), count, number).await;
            }
            let micros = (cpu(server)? - before) / INSTANCES as f64 * 1e6;
            if round > 0 {
                used[place].push(micros);
            }
        }
        server.cli(&["FLUSHALL"])?;
    }
    let none = used[0].clone();
    for (count, used) in KINDS.into_iter().zip(&used) {
        let more: Vec<f64> = used
            .iter()
            .zip(&none)
            .map(|(one, none)| one - none)
            .collect();
        println!(
            "{count} attributes: {:.0} µs of Redis an instance of {} commits, {:.0} µs more (quartiles {:.0} to {:.0})",
            quantile(used, 0.5),
            COMMITS + 2,
            quantile(&more, 0.5),
            quantile(&more, 0.25),
            quantile(&more, 0.75),
        );
    }
    Ok(())
}

/// One instance: its creation, a commit that sets its attributes, some that don't, and its end.
async fn instance(b: &Backend, id: &str, count: u32, number: u64) {
    b.create(kit::new(id)).await;
    let attributes: Attributes = (0..count)
        .map(|index| {
            let value = Attribute::Text(format!("value {number} of an order").into());
            (format!("attribute{index}").into(), value)
        })
        .collect();
    let first = if count > 0 {
        kit::change(vec![Command::Index])
    } else {
        kit::change(vec![])
    };
    commit(b, id, first.attributes(attributes)).await;
    for _ in 0..COMMITS {
        commit(b, id, kit::change(vec![])).await;
    }
    let end = Command::End {
        status: EndStatus::Completed,
        output: None,
        error: None,
    };
    commit(b, id, kit::change(vec![end]).at(Cursor::Ended)).await;
}

async fn commit(b: &Backend, id: &str, change: Change) {
    let held = b.hold_lazily(&kit::root(id)).await;
    let change = Change {
        release: true,
        ..change
    };
    let committed = b.commit_of(&held, change).await;
    assert!(matches!(committed, Committed::Done { .. }), "{committed:?}");
}

fn quantile(values: &[f64], at: f64) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    sorted[((sorted.len() - 1) as f64 * at).round() as usize]
}

/// The processor time that the server has used, in seconds.
fn cpu(server: &RedisServer) -> anyhow::Result<f64> {
    let info = server.cli(&["INFO", "cpu"])?;
    let of = |name: &str| -> f64 {
        let line = info.lines().find_map(|line| line.strip_prefix(name));
        line.and_then(|value| value.trim().parse().ok())
            .unwrap_or_default()
    };
    Ok(of("used_cpu_sys:") + of("used_cpu_user:"))
}
