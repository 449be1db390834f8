//! The chart, as Helm itself checks, renders and packs it. The checks are in Python, like the others of `deploy/`.

use std::process::Command;

use anyhow::{Context, Result, bail};

use super::Outcome;
use super::go::Program;
use crate::{cargo, tools};

const HELM: Program = Program {
    name: "helm",
    package: "helm.sh/helm/v3/cmd/helm",
    version: "v3.22.0",
};

const CHECKS: &str = "deploy/tests/helm.py";

pub fn run() -> Result<Outcome> {
    let helm = match HELM.path()? {
        Ok(path) => path,
        Err(reason) => return Ok(Outcome::LeftOut(reason)),
    };
    if !tools::succeeds(Command::new("python3").args(["-c", "import yaml"])) {
        let reason = "python3 with PyYAML is missing ('apt-get install python3-yaml' brings it)";
        return Ok(Outcome::LeftOut(reason.to_owned()));
    }
    let status = Command::new("python3")
        .args([CHECKS.as_ref(), helm.as_os_str()])
        .env("PYTHONDONTWRITEBYTECODE", "1")
        .env("PATH", tools::path())
        .current_dir(cargo::root())
        .status()
        .context("cannot run python3")?;
    match status.success() {
        true => Ok(Outcome::Done(Vec::new())),
        false => bail!("'{CHECKS}' failed ({status})"),
    }
}
