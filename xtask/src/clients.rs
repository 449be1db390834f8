//! Clients of the API in other languages: they are generated from the OpenAPI document, compiled, and run against
//! `swirl dev`.
//!
//! This needs each language's tools and its registry. A language whose tools are missing is skipped, with a message.

use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use anyhow::{Context, Result, bail};
use serde_json::Value;

use crate::finding::Finding;
use crate::{cargo, scenarios, tools};

const FOLDER: &str = "clients";

struct Language {
    /// The language's folder.
    name: &'static str,
    /// Programs that must be installed. The language's script fetches everything else.
    tools: &'static [&'static str],
    /// The command that runs a program in the language's folder.
    run: fn(&str) -> Vec<String>,
}

const LANGUAGES: [Language; 3] = [
    Language {
        name: "go",
        tools: &["go", "python3"],
        run: |program| vec![format!("bin/{program}")],
    },
    Language {
        name: "python",
        tools: &["python3"],
        run: |program| vec![".venv/bin/python".to_owned(), format!("{program}.py")],
    },
    Language {
        name: "typescript",
        tools: &["node", "npm"],
        run: |program| vec!["node".to_owned(), format!("build/{program}.js")],
    },
];

pub fn check(all: bool) -> Result<Vec<Finding>> {
    let folder = cargo::root().join(FOLDER);
    let mut ready = Vec::new();
    for language in &LANGUAGES {
        match generated(language.name)? {
            Ok(()) => ready.push(language),
            Err(reason) => println!("left out: {reason}"),
        }
    }
    if ready.is_empty() {
        return Ok(Vec::new());
    }
    let swirl = scenarios::program(all)?;
    let server = Server::start(&swirl, &cargo::root().join("examples/confirmation"))?;
    let hello = cargo::root().join("examples/hello/hello.sw.yaml");
    let mut deploy = Command::new(&swirl);
    deploy.arg("deploy").arg(hello);
    output(deploy.args(["--server", &server.url]))?;
    let mut findings = Vec::new();
    for language in ready {
        let folder = folder.join(language.name);
        for (program, expected) in [
            ("start", is_greeting as fn(&Value) -> bool),
            ("event", is_shipped),
        ] {
            let arguments = (language.run)(program);
            let mut command = Command::new(within(&folder, &arguments[0]));
            command.args(&arguments[1..]).current_dir(&folder);
            let printed = output(command.env("SWIRL_SERVER", &server.url))?;
            let value: Value = serde_json::from_str(&printed).unwrap_or_default();
            if !expected(&value) {
                let place = format!("{FOLDER}/{}", language.name);
                findings.push(Finding::new(
                    place,
                    format!("'{program}' printed {printed}"),
                ));
            }
        }
    }
    Ok(findings)
}

fn is_greeting(output: &Value) -> bool {
    output["message"] == "Hello, Ada!"
}

fn is_shipped(output: &Value) -> bool {
    output["status"] == "shipped" && output["confirmation"]["by"] == "Ada"
}

/// Generates a language's client and compiles its programs. The inner error says what is missing.
pub fn generated(name: &str) -> Result<Result<(), String>> {
    let language = LANGUAGES.iter().find(|language| language.name == name);
    for tool in language.map_or(&[] as &[&str], |language| language.tools) {
        let version = match *tool {
            "go" => "version",
            _ => "--version",
        };
        if !tools::succeeds(Command::new(tool).arg(version)) {
            return Ok(Err(format!("{FOLDER}/{name}, without {tool}")));
        }
    }
    let script = |argument: &[&str]| {
        let mut command = Command::new("sh");
        command
            .arg("generate.sh")
            .args(argument)
            .current_dir(cargo::root().join(FOLDER).join(name));
        command
    };
    if !tools::succeeds(&mut script(&["fetch"])) {
        return Ok(Err(format!(
            "{FOLDER}/{name}, whose packages cannot be fetched"
        )));
    }
    println!("$ {FOLDER}/{name}/generate.sh");
    output(&mut script(&[]))?;
    Ok(Ok(()))
}

/// A program in the folder, or one found in `PATH`.
fn within(folder: &Path, program: &str) -> PathBuf {
    match program.contains('/') {
        true => folder.join(program),
        false => PathBuf::from(program),
    }
}

/// Returns the output of a command. If the command fails, the error contains all of the output.
fn output(command: &mut Command) -> Result<String> {
    let shown = format!("{command:?}");
    let output = command.stdin(Stdio::null()).output();
    let output = output.with_context(|| format!("cannot run {shown}"))?;
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    if !output.status.success() {
        let (printed, said) = (text(&output.stdout), text(&output.stderr));
        bail!("{shown}: {}\n{printed}{said}", output.status);
    }
    Ok(text(&output.stdout))
}

/// `swirl dev` on a free port, until this is dropped.
struct Server {
    process: Child,
    url: String,
}

impl Server {
    /// Returns after it has printed the address of its API.
    fn start(swirl: &Path, folder: &Path) -> Result<Server> {
        let mut command = Command::new(swirl);
        command
            .args([
                "dev",
                "--memory",
                "--listen",
                "127.0.0.1:0",
                "--color",
                "never",
            ])
            .arg(folder)
            .env_remove("SWIRL_LOG")
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::piped());
        let mut process = command.spawn().context("cannot run 'swirl dev'")?;
        let lines = process.stderr.take().map(BufReader::new);
        let mut server = Server {
            process,
            url: String::new(),
        };
        let mut lines = lines.into_iter().flat_map(BufRead::lines);
        let mut said = String::new();
        for line in lines.by_ref() {
            let line = line.context("the log of 'swirl dev'")?;
            if let Some((_, url)) = line.split_once("the API is at ") {
                url.trim_end_matches("/api/v1/openapi.json")
                    .clone_into(&mut server.url);
                break;
            }
            said.push_str(&line);
            said.push('\n');
        }
        if server.url.is_empty() {
            bail!("'swirl dev' did not start:\n{said}");
        }
        // Read to the end, because otherwise the process blocks once the pipe is full.
        std::thread::spawn(move || lines.for_each(drop));
        Ok(server)
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // Otherwise it has ended by itself.
        if self.process.kill().is_ok() {
            let _ = self.process.wait();
        }
    }
}
