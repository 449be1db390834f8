//! Workers and coordinators as processes, on servers of the test's own, while things fail.
//!
//! Each test runs a mix of instances under a fault, and compares every output, call and produced
//! event with what must come of it.
#![allow(clippy::unwrap_used, reason = "a test")]

use std::time::Duration;

use swirl_chaos::{Fault, Options, Report, run};

fn options(faults: &[Fault]) -> Options {
    Options {
        instances: 300,
        at_once: 30,
        at_least: Duration::from_secs(8),
        ..Options::new(env!("CARGO_BIN_EXE_swirl"), faults.to_vec())
    }
}

fn well(options: &Options) -> Report {
    let report = run(options, &|line| eprintln!("{line}")).unwrap();
    eprintln!("{}", report.text());
    assert!(report.differences.is_empty(), "{}", report.text());
    assert!(report.instances >= options.instances);
    report
}

#[test]
fn undisturbed() {
    let report = well(&options(&[]));
    assert_eq!(report.repeated, 0, "no call is made twice");
    assert_eq!(report.requests_failed, 0);
}

#[test]
fn processes_are_killed() {
    let report = well(&options(&[Fault::KillWorker, Fault::KillCoordinator]));
    assert!(report.faults.values().sum::<usize>() >= 4);
}

#[test]
fn nats_is_restarted_and_wiped() {
    well(&Options {
        pause: Duration::from_secs(3),
        ..options(&[Fault::RestartNats, Fault::WipeNats])
    });
}

#[test]
fn redis_is_restarted() {
    well(&Options {
        pause: Duration::from_secs(3),
        ..options(&[Fault::RestartRedis])
    });
}

#[test]
fn connections_are_cut() {
    well(&options(&[Fault::CutRedis, Fault::CutNats]));
}

#[test]
fn a_worker_stands_still_past_its_lease() {
    well(&options(&[Fault::PauseWorker]));
}

#[test]
fn messages_come_twice_and_a_clock_is_ahead() {
    well(&options(&[Fault::Double, Fault::Skew]));
}

#[test]
fn processes_are_replaced_one_by_one() {
    let report = well(&Options {
        instances: 600,
        at_least: Duration::from_secs(20),
        ..options(&[Fault::Roll])
    });
    assert_eq!(
        report.repeated, 0,
        "what is under way is finished or handed back"
    );
}
