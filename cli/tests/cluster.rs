//! Workers and coordinators as processes, on servers that the test starts, while components fail.
//!
//! Each test runs a mix of instances during a fault, and compares every output, call and produced event with the
//! expected outcome.

use std::process::Command;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use swirl_chaos::{Fault, Options, Report, run};
use swirl_servers::{NatsServer, RedisServer};

/// One cluster at a time, because several would only compete for the processors.
static ONE: Mutex<()> = Mutex::new(());

/// So long that no worker takes over a scope just because another one is slow.
const LONG: Duration = Duration::from_secs(600);

fn options(faults: &[Fault]) -> Options {
    Options {
        instances: 200,
        at_once: 15,
        at_least: Duration::from_secs(6),
        // Only a process that hangs takes this long.
        liveness: Duration::from_secs(900),
        ..Options::new(env!("CARGO_BIN_EXE_swirl"), faults.to_vec())
    }
}

fn run_without_differences(options: &Options) -> Report {
    let _one = ONE.lock().unwrap_or_else(PoisonError::into_inner);
    let report = run(options, &|_| ()).unwrap();
    assert!(report.differences.is_empty(), "{}", report.text());
    assert!(report.instances >= options.instances);
    report
}

#[test]
fn undisturbed() {
    let report = run_without_differences(&Options {
        lease: LONG,
        ..options(&[])
    });
    assert_eq!(report.repeated, 0, "no call is made twice");
    assert_eq!(report.requests_failed, 0);
}

#[test]
fn processes_are_killed() {
    let report = run_without_differences(&Options {
        faults_at_least: 6,
        ..options(&[Fault::KillWorker, Fault::KillCoordinator])
    });
    assert!(report.faults.values().sum::<usize>() >= 6);
}

#[test]
fn nats_is_restarted_and_wiped() {
    run_without_differences(&Options {
        pause: Duration::from_secs(3),
        ..options(&[Fault::RestartNats, Fault::WipeNats])
    });
}

/// Without power the servers lose what isn't on their disks, and a write may be torn. Publishers repeat their events.
#[test]
fn machines_lose_power() {
    let report = run_without_differences(&Options {
        faults_at_least: 3,
        pause: Duration::from_secs(2),
        ..options(&[Fault::PowerNats, Fault::PowerRedis])
    });
    assert!(report.faults.values().sum::<usize>() >= 3);
}

#[test]
fn redis_is_restarted() {
    run_without_differences(&Options {
        pause: Duration::from_secs(3),
        ..options(&[Fault::RestartRedis])
    });
}

/// Three masters with a replica each. Starts and events go on, or the run takes too long.
#[test]
fn masters_of_a_redis_cluster_fail_and_slots_move() {
    let report = run_without_differences(&Options {
        redis_cluster: true,
        faults_at_least: 3,
        pause: Duration::from_secs(2),
        ..options(&[
            Fault::KillMaster,
            Fault::FailOver,
            Fault::FreezeMaster,
            Fault::Reshard,
        ])
    });
    assert!(report.faults.values().sum::<usize>() >= 3);
}

#[test]
fn connections_are_cut() {
    run_without_differences(&options(&[Fault::CutRedis, Fault::CutNats]));
}

#[test]
fn a_worker_freezes_past_its_lease() {
    run_without_differences(&options(&[Fault::PauseWorker]));
}

#[test]
fn messages_are_duplicated_and_a_clock_is_ahead() {
    run_without_differences(&options(&[Fault::Double, Fault::Skew]));
}

#[test]
fn processes_are_replaced_one_by_one() {
    let report = run_without_differences(&Options {
        faults_at_least: 2,
        lease: LONG,
        ..options(&[Fault::Roll])
    });
    assert_eq!(report.repeated, 0, "what is under way is finished");
}

/// Runs scenarios on a cluster of three workers and two coordinators.
fn scenarios_pass(edition: &str, folders: &[&str], passed_min: usize) {
    let _one = ONE.lock().unwrap_or_else(PoisonError::into_inner);
    let (redis, nats) = (RedisServer::start().unwrap(), NatsServer::start().unwrap());
    let conformance = concat!(env!("CARGO_MANIFEST_DIR"), "/../tests/conformance");
    let folders = folders.iter();
    let done = Command::new(env!("CARGO_BIN_EXE_swirl"))
        .args([
            "test",
            "--cluster",
            "--workers",
            "3",
            "--coordinators",
            "2",
            "--jobs",
            "2",
            "--patience",
            "900",
        ])
        .args(["--nats", &nats.url(), "--redis", &redis.url()])
        .args(folders.map(|folder| format!("{conformance}/{edition}/{folder}")))
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&done.stdout);
    assert!(done.status.success(), "{text}");
    let passed = text.lines().filter(|line| line.starts_with("ok")).count();
    assert!(passed > passed_min, "{text}");
}

#[test]
fn scenarios_pass_on_a_cluster() {
    let folders = [
        "operation",
        "callback",
        "parallel",
        "continueas",
        "correlation",
        "subflow",
        "control/retry-after-state-timeout-in-any-time-parallel.scenario.yaml",
        "control/retry-after-state-timeout-in-any-time-foreach.scenario.yaml",
    ];
    scenarios_pass("0.8", &folders, 40);
}

#[test]
fn scenarios_of_tasks_pass_on_a_cluster() {
    let folders = ["data", "emit", "for", "try"];
    scenarios_pass("1.0", &folders, 40);
}
