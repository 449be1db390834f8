//! Traces as Jaeger shows them.

use anyhow::Result;

use super::go::Program;
use super::{Given, Outcome, beside, no_servers};

/// The version of deploy/compose.yaml: its modules count from 1, its images from 2.
const JAEGER: Program = Program {
    name: "jaeger",
    package: "github.com/jaegertracing/jaeger/cmd/jaeger",
    version: "v1.76.0",
};

pub fn run(given: Given<'_>) -> Result<Outcome> {
    if let Some(reason) = no_servers() {
        return Ok(Outcome::LeftOut(reason));
    }
    let jaeger = match JAEGER.path()? {
        Ok(path) => path,
        Err(reason) => return Ok(Outcome::LeftOut(reason)),
    };
    println!("Jaeger {}", JAEGER.version);
    beside(given, "jaeger", &[jaeger.display().to_string()])?;
    Ok(Outcome::Done(Vec::new()))
}
