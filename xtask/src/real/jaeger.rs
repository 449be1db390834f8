//! Traces as Jaeger shows them.

use anyhow::Result;

use super::Outcome;
use super::go::Program;
use crate::{cargo, scenarios, tools};

/// The version of deploy/compose.yaml: its modules count from 1, its images from 2.
const JAEGER: Program = Program {
    name: "jaeger",
    package: "github.com/jaegertracing/jaeger/cmd/jaeger",
    version: "v1.76.0",
};

pub fn run() -> Result<Outcome> {
    let jaeger = match JAEGER.path()? {
        Ok(path) => path,
        Err(reason) => return Ok(Outcome::LeftOut(reason)),
    };
    for server in ["nats-server", "redis-server"] {
        if !tools::is_there(server) {
            let reason = format!("{server} is missing ('apt-get install {server}' brings it)");
            return Ok(Outcome::LeftOut(reason));
        }
    }
    println!("Jaeger {}", JAEGER.version);
    let swirl = scenarios::program(false)?;
    let (swirl, jaeger) = (swirl.display().to_string(), jaeger.display().to_string());
    let run = ["run", "--package", "swirl-real", "--quiet", "--"];
    cargo::run(&[&run[..], &["jaeger", &swirl, &jaeger]].concat())?;
    Ok(Outcome::Done)
}
