//! Random workflows, each run undisturbed and disturbed: the same must come of both.
//!
//! `generate` writes workflows, `rig` runs them with faults, `check` compares what came of it,
//! `replay` tells the engine once more what it was told at each commit. `docs/simulation.md` says
//! what this shows and what it doesn't.

pub mod check;
pub mod generate;
pub mod random;
pub mod replay;
pub mod rig;
pub mod store;

use anyhow::Result;

use generate::Case;
use rig::{Broken, Faults};

/// Runs a case undisturbed, disturbed and with crashes; returns what was violated.
pub fn check_case(case: &Case, broken: Broken) -> Result<Vec<String>> {
    let calm = rig::run(case, Faults::none(case.seed), Broken::No)?;
    let mut violations = calm.violations.clone();
    for faults in [Faults::disturbed(case.seed), Faults::crashing(case.seed)] {
        let crashing = faults.crash > 0;
        let trace = rig::run(case, faults, broken)?;
        violations.extend(trace.violations.iter().cloned());
        let kind = if crashing { "crashes" } else { "disturbed" };
        let found = check::compare(&calm, &trace, crashing);
        violations.extend(found.into_iter().map(|text| format!("{kind}: {text}")));
    }
    Ok(violations)
}
