//! CloudEvents from and to programs in other languages, and the command line of NATS.

use std::path::Path;
use std::process::Command;

use anyhow::{Result, bail};

use super::go::{self, Program};
use super::{Given, Outcome, beside, no_servers};
use crate::clients::generated;
use crate::{cargo, tools};

const NATS: Program = Program {
    name: "nats",
    package: "github.com/nats-io/natscli/nats",
    version: "v0.5.1",
};

type Prepare = fn(&Path) -> Result<Result<(), String>>;

/// Each language, and how its program is built in the folder of clients. The inner error says why it can't be.
const LANGUAGES: [(&str, Prepare); 4] = [
    ("go", |folder| {
        go::build(&folder.join("go/exchange"), &folder.join("go/bin/exchange"))
    }),
    ("java", |folder| java(&folder.join("java"))),
    ("python", |_| generated("python")),
    ("typescript", |_| generated("typescript")),
];

pub fn run(given: Given<'_>) -> Result<Outcome> {
    if let Some(reason) = no_servers() {
        return Ok(Outcome::LeftOut(reason));
    }
    let folder = cargo::root().join("clients");
    let mut arguments = Vec::new();
    let mut without = Vec::new();
    match NATS.path()? {
        Ok(path) => {
            println!("natscli {}", NATS.version);
            arguments.extend(["--nats".to_owned(), path.display().to_string()]);
        }
        Err(reason) => without.push(reason),
    }
    for (name, prepare) in LANGUAGES {
        match prepare(&folder)? {
            Ok(()) => arguments.push(name.to_owned()),
            Err(reason) => without.push(reason),
        }
    }
    for reason in &without {
        println!("left out: {reason}");
    }
    beside(given, "clients", &arguments)?;
    Ok(Outcome::Done(without))
}

fn java(folder: &Path) -> Result<Result<(), String>> {
    let maven = |arguments: &[&str]| {
        let mut command = go::nice("mvn");
        command
            .args(["--quiet", "--batch-mode"])
            .args(arguments)
            .current_dir(folder);
        command
    };
    for (tool, flag) in [("java", "-version"), ("mvn", "--version")] {
        if !tools::succeeds(Command::new(tool).arg(flag)) {
            return Ok(Err(format!(
                "the client in Java needs {tool} ('apt-get install default-jdk maven' brings it)"
            )));
        }
    }
    println!("$ mvn compile");
    if !tools::succeeds(&mut maven(&["dependency:resolve"])) {
        let reason = "the client in Java needs packages of Maven Central, which can't be fetched";
        return Ok(Err(reason.to_owned()));
    }
    match maven(&["compile"]).status()?.success() {
        true => Ok(Ok(())),
        false => bail!("{} doesn't compile", folder.display()),
    }
}
