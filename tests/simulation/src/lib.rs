//! Runs random workflows undisturbed and with faults. The outcomes must be the same.
//!
//! `generate` writes workflows. `rig` runs them in one process in which faults take no time, `check` compares the
//! outcomes, and `replay` repeats the engine's inputs of each commit. `cluster` runs them in several processes, in
//! which faults take time; `reference` computes the expected outcome. `docs/dev/simulation.md` explains what this proves
//! and what it doesn't.

pub mod check;
pub mod cluster;
pub mod editions;
pub mod functions;
pub mod generate;
pub mod hard;
pub mod more;
pub mod plans;
pub mod random;
pub mod reference;
pub mod replay;
pub mod rig;
pub mod store;
pub mod tasks;
mod trials;
mod wait;

use anyhow::Result;

use cluster::Mutant;
use generate::Case;
use rig::{Broken, Faults};

/// Runs a case undisturbed, with faults, and with crashes. Returns the violations.
pub fn check_case(case: &Case, broken: Broken) -> Result<Vec<String>> {
    Ok(check_runs(case, broken)?.unwrap_or_default().0)
}

/// Nothing if the outcome depends on what is open.
fn check_runs(case: &Case, broken: Broken) -> Result<Option<(Vec<String>, Vec<rig::Trace>)>> {
    if plans::undecided(case, tasks::MOMENT_MARGIN_MS)?.is_some() {
        return Ok(None);
    }
    let calm = rig::run(case, Faults::none(case.seed), Broken::No)?;
    let mut violations = calm.violations.clone();
    let expected = plans::expected_in_time(case)?;
    let found = plans::differences(&expected, calm.outcomes.clone());
    violations.extend(found.into_iter().map(|text| format!("undisturbed: {text}")));
    let mut traces = Vec::new();
    for faults in [Faults::disturbed(case.seed), Faults::crashing(case.seed)] {
        let crashing = faults.crash > 0;
        let trace = rig::run(case, faults, broken)?;
        violations.extend(trace.violations.iter().cloned());
        let kind = if crashing { "crashes" } else { "disturbed" };
        let found = check::compare(&calm, &trace, crashing);
        violations.extend(found.into_iter().map(|text| format!("{kind}: {text}")));
        traces.push(trace);
    }
    Ok(Some((violations, traces)))
}

/// Runs a plan in a cluster, undisturbed and with faults. Returns the violations.
pub fn check_cluster(case: &Case, faults: &cluster::Faults, mutant: Mutant) -> Result<Checked> {
    if plans::undecided(case, tasks::CLUSTER_MARGIN_MS)?.is_some() {
        return Ok(Checked::default());
    }
    let plan = plans::plan_of(case);
    let calm = cluster::run(&plan, &cluster::Faults::none(case.seed), Mutant::None)?;
    let trace = cluster::run(&plan, faults, mutant)?;
    let expected = plans::expected(case)?;
    let mut violations = Vec::new();
    for (kind, trace) in [("calm", &calm), ("faults", &trace)] {
        let mut found = cluster::check::judge(trace, faults);
        found.extend(plans::compare_with(&expected, trace));
        violations.extend(found.into_iter().map(|text| format!("{kind}: {text}")));
    }
    violations.extend(cluster::check::compare(&calm, &trace, !faults.rollback));
    Ok(Checked {
        is_decided: true,
        violations,
        counts: trace.counts.clone(),
        instances: trace.outcomes.len(),
    })
}

/// Runs a hard case undisturbed and with faults. Returns the violations.
pub fn check_hard(
    hard: &hard::Hard,
    faults: &cluster::Faults,
    mutant: Mutant,
) -> Result<Vec<String>> {
    let calm = cluster::run(&hard.plan, &cluster::Faults::none(0), Mutant::None)?;
    let trace = cluster::run(&hard.plan, faults, mutant)?;
    let mut found = cluster::check::judge(&calm, faults);
    found.extend(cluster::check::judge(&trace, faults));
    let (before, after) = (plans::kinds(&calm), plans::kinds(&trace));
    if before != after {
        found.push(format!(
            "outcomes:\n  calm   {before:?}\n  faults {after:?}"
        ));
    }
    for wanted in hard.wanted {
        if !after.iter().any(|line| line.starts_with(wanted)) {
            found.push(format!("no {wanted} in {after:?}"));
        }
    }
    Ok(found)
}

/// The results of a case's runs.
#[derive(Default)]
pub struct Checked {
    /// The outcome doesn't depend on what is open, so it was compared.
    pub is_decided: bool,
    pub violations: Vec<String>,
    pub counts: cluster::store::Counts,
    pub instances: usize,
}

/// The way of running a seed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum Mode {
    /// One process, in which faults take no time.
    Moment,
    /// Several processes, in which faults take time.
    Cluster,
    /// Several processes with a store in a folder, which is reopened half-way.
    Durable,
    /// Several processes with a store that returns to an earlier state.
    Rollback,
}

impl Mode {
    /// All modes, or only the requested one. The disk is slow, so only some seeds use it.
    pub fn of_seed(seed: u64, asked: Option<Mode>) -> Vec<Mode> {
        match asked {
            Some(mode) => vec![mode],
            None if seed % 50 == 7 => vec![Mode::Moment, Mode::Cluster, Mode::Durable],
            None if seed % 50 == 8 => vec![Mode::Moment, Mode::Cluster, Mode::Rollback],
            None => vec![Mode::Moment, Mode::Cluster],
        }
    }
}

/// The statistics of a session, so that a run in which nothing happened isn't mistaken for proof.
#[derive(Debug, Default)]
pub struct Totals {
    pub runs: usize,
    /// Cases that weren't run, because the outcome depends on the order of things that are close to each other.
    pub undecided: usize,
    pub instances: usize,
    pub counts: cluster::store::Counts,
    pub crashes: usize,
    pub replayed: usize,
}

impl std::fmt::Display for Totals {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let counts = &self.counts;
        write!(
            f,
            "{} runs with faults, {} instances, {} commits replayed, {} crashes of the one process, \
             {} cases undecided\n\
             in clusters: {} commits, {} of them instances that ended with their creation and left effects, \
             {} first turns with a creation that didn't end it, {} refused, {} leases run out, {} calls of the store failed, \
             {} answers lost, {} kills, {} pauses, {} stores opened again",
            self.runs,
            self.instances,
            self.replayed,
            self.crashes,
            self.undecided,
            counts.commits,
            counts.with_effects,
            counts.with_turn,
            counts.refused_commits,
            counts.leases_run_out,
            counts.failed_calls,
            counts.lost_answers,
            counts.kills,
            counts.pauses,
            counts.reopened
        )
    }
}

pub fn check_mode(case: &Case, mode: Mode, totals: &mut Totals) -> Result<Vec<String>> {
    let faults = match mode {
        Mode::Moment => return check_moment(case, totals),
        Mode::Cluster => cluster::Faults::of_seed(case.seed),
        Mode::Durable => cluster::Faults::durable(case.seed),
        Mode::Rollback => cluster::Faults::rollback(case.seed),
    };
    let checked = check_cluster(case, &faults, Mutant::None)?;
    if !checked.is_decided {
        totals.undecided += 1;
        return Ok(Vec::new());
    }
    totals.runs += 1;
    totals.instances += checked.instances;
    totals.counts.add(&checked.counts);
    Ok(checked.violations)
}

fn check_moment(case: &Case, totals: &mut Totals) -> Result<Vec<String>> {
    let Some((violations, traces)) = check_runs(case, Broken::No)? else {
        totals.undecided += 1;
        return Ok(Vec::new());
    };
    totals.runs += traces.len();
    for trace in traces {
        totals.instances += trace.instances.len();
        totals.crashes += trace.crashes;
        totals.replayed += trace.replayed;
    }
    Ok(violations)
}
