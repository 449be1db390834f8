//! `cargo xtask verify`: its steps, their order and their durations.

use std::fmt::Write as _;
use std::fs::File;
use std::path::PathBuf;
use std::process::{Child, Command, ExitCode, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, anyhow, bail};

use crate::finding::Finding;
use crate::{
    actions, book, bundle, cargo, clients, deploy, deps, editors, journeys, licences, lint,
    openapi, scenarios, tools,
};

struct Step {
    name: &'static str,
    about: &'static str,
    /// Returns the findings, or an error if the step could not be completed.
    run: fn(Run) -> Result<Vec<Finding>>,
}

/// How steps run.
#[derive(Clone, Copy)]
pub struct Run {
    /// Whether missing tools may be installed.
    pub install: bool,
    /// As part of a full run, after the tests have been built.
    pub built: bool,
}

/// These run beside the tests, because waiting for servers leaves the processors idle from time to time.
const BESIDE_TESTS: [&str; 5] = ["scenarios", "editors", "clients", "journeys", "doc"];

/// In the order in which they run: quick steps that often fail come first.
const STEPS: [Step; 18] = [
    Step {
        name: "tools",
        about: "servers and Python for the tests; installs what is missing where it may",
        run: |run| tools::check(run.install),
    },
    Step {
        name: "format",
        about: "all Rust code is formatted",
        run: |_| quiet(cargo::run(&["fmt", "--all", "--check"])),
    },
    Step {
        name: "clippy",
        about: "no warning of rustc or clippy",
        run: |run| {
            if run.built && !cargo::linting().is_empty() {
                println!("left to the build, which compiles with clippy on a CI server");
                return Ok(Vec::new());
            }
            let args = [
                "clippy",
                "--workspace",
                "--all-targets",
                "--quiet",
                "--",
                "-D",
                "warnings",
            ];
            quiet(cargo::run(&args))
        },
    },
    Step {
        name: "deps",
        about: "crates depend on each other as the layers allow, and pure ones stay pure",
        run: |_| deps::check(),
    },
    Step {
        name: "licences",
        about: "licences, doubled versions and sources of dependencies (deny.toml)",
        run: |_| licences::check(),
    },
    Step {
        name: "lint",
        about: "file lengths, circles, ports, banned words, dead files, links, the book, error pages, manifests",
        run: |_| lint::check(),
    },
    Step {
        name: "book",
        about: "docs/ builds as a book, where mdBook is installed",
        run: |_| book::check(),
    },
    Step {
        name: "openapi",
        about: "the API's document is good OpenAPI (redocly and spectral, by npx)",
        run: |_| openapi::check(),
    },
    Step {
        name: "actions",
        about: ".github/workflows is what GitHub understands (actionlint, by Go)",
        run: |_| actions::check(),
    },
    Step {
        name: "bundle",
        about: "the console's CodeMirror is what its package-lock.json makes (by node and npm)",
        run: |_| bundle::check(),
    },
    Step {
        name: "deploy",
        about: "deploy/: names fit, and servers run with the configurations that are shipped",
        run: |_| deploy::check(),
    },
    Step {
        name: "build",
        about: "all programs and tests can be built",
        run: |_| quiet(tools::build()),
    },
    Step {
        name: "test",
        about: "unit, integration and documentation tests",
        run: |_| tools::test(),
    },
    Step {
        name: "scenarios",
        about: "the conformance suite and the examples' scenarios",
        run: |run| scenarios::check(run.built),
    },
    Step {
        name: "editors",
        about: "the VS Code extension is packaged, and drives 'swirl lsp' (by node and npm)",
        run: |run| editors::check(run.built),
    },
    Step {
        name: "clients",
        about: "clients of the API in Go, Python and TypeScript are generated, and run against 'swirl dev'",
        run: |run| clients::check(run.built),
    },
    Step {
        name: "journeys",
        about: "what people do with the console, done in Chromium",
        run: |run| journeys::check(run.built),
    },
    Step {
        name: "doc",
        about: "the crates' documentation builds without a warning",
        run: |_| {
            let args = ["doc", "--workspace", "--no-deps", "--quiet"];
            quiet(cargo::run_with(&args, &[("RUSTDOCFLAGS", "-D warnings")]))
        },
    },
];

fn quiet(done: Result<()>) -> Result<Vec<Finding>> {
    done.map(|()| Vec::new())
}

pub fn names() -> Vec<&'static str> {
    STEPS.iter().map(|step| step.name).collect()
}

/// The end of the help text.
pub fn help() -> String {
    let mut text = "Steps of verify, in their order:\n".to_owned();
    for step in &STEPS {
        let _ = writeln!(text, "  {:10} {}", step.name, step.about);
    }
    text.push_str(
        "\nExamples:\n  \
         cargo xtask verify --install        all that CI runs\n  \
         cargo xtask verify lint deps        two steps, no build\n  \
         cargo xtask verify --fail-fast      stop at the first step that fails",
    );
    text
}

/// Runs the named steps, or all of them. Prints a heading and the duration of each, and a summary.
///
pub fn run(names: &[String], fail_fast: bool, run: Run) -> ExitCode {
    let all = names.is_empty();
    let run = Run {
        built: run.built || all,
        ..run
    };
    let chosen: Vec<&Step> = STEPS
        .iter()
        .filter(|step| all || names.iter().any(|name| name == step.name))
        .collect();
    let begun = Instant::now();
    let mut beside = None;
    let mut results: Vec<(&str, Report, Duration)> = Vec::new();
    for (index, step) in chosen.iter().enumerate() {
        println!(
            "\n=== {}/{} {}: {}",
            index + 1,
            chosen.len(),
            step.name,
            step.about
        );
        let start = Instant::now();
        if all && step.name == "test" {
            beside = Some(Beside::start());
        }
        let result = match (&mut beside, BESIDE_TESTS.contains(&step.name)) {
            (Some(beside), true) => beside.result_of(step.name),
            _ => (step.run)(run),
        };
        let report = Report::of(result);
        let took = start.elapsed();
        for line in &report.lines {
            println!("{line}");
        }
        let verdict = word(report.is_good);
        println!("--- {}: {verdict}, {}", step.name, seconds(took));
        let stop = fail_fast && !report.is_good;
        results.push((step.name, report, took));
        if stop {
            break;
        }
    }
    println!("\n=== summary");
    for (name, report, took) in &results {
        println!("{name:10} {:6} {:>9}", word(report.is_good), seconds(*took));
        for line in report.lines.iter().flat_map(|line| line.lines()) {
            println!("    {line}");
        }
    }
    let failed: Vec<&str> = results
        .iter()
        .filter(|(_, report, _)| !report.is_good)
        .map(|(name, ..)| *name)
        .collect();
    let total = seconds(begun.elapsed());
    if failed.is_empty() {
        println!("verify: all steps passed ({total})");
        ExitCode::SUCCESS
    } else {
        println!("verify: failed: {} ({total})", failed.join(", "));
        ExitCode::FAILURE
    }
}

/// The path of this program. Cargo may have replaced its file since, when it built the workspace.
fn this_program() -> Result<PathBuf> {
    let running = PathBuf::from("/proc/self/exe");
    Ok(match running.exists() {
        true => running,
        false => std::env::current_exe()?,
    })
}

/// The steps that run beside the tests, in a separate process.
struct Beside {
    child: Result<Child>,
    written: PathBuf,
    /// Its output, after it has ended.
    output: Option<String>,
}

impl Beside {
    fn start() -> Beside {
        let written = cargo::root().join("target/beside-tests.log");
        Beside {
            child: Beside::spawn(&written),
            written,
            output: None,
        }
    }

    fn spawn(written: &PathBuf) -> Result<Child> {
        let file = File::create(written).with_context(|| written.display().to_string())?;
        let child = Command::new(this_program()?)
            .args(["verify", "--built"])
            .args(BESIDE_TESTS)
            .stdin(Stdio::null())
            .stdout(file.try_clone()?)
            .stderr(file)
            .spawn()?;
        Ok(child)
    }

    /// Prints a step's output, and fails if the step failed.
    fn result_of(&mut self, step: &str) -> Result<Vec<Finding>> {
        if self.output.is_none() {
            let child = self.child.as_mut();
            child.map_err(|error| anyhow!("{error:#}"))?.wait()?;
            self.output = Some(std::fs::read_to_string(&self.written)?);
        }
        let output = self.output.as_deref().unwrap_or_default();
        let begun = format!(" {step}: ");
        let ended = format!("--- {step}: ");
        let mut lines = output
            .lines()
            .skip_while(|line| !(line.starts_with("=== ") && line.contains(&begun)))
            .skip(1);
        for line in lines.by_ref() {
            let Some(verdict) = line.strip_prefix(&ended) else {
                println!("{line}");
                continue;
            };
            println!("(beside the tests: {verdict})");
            if verdict.starts_with("ok, ") {
                return Ok(Vec::new());
            }
            bail!("see its output above");
        }
        bail!("it did not run to its end")
    }
}

/// The result of a step, as it is printed after the step and again in the summary.
struct Report {
    is_good: bool,
    lines: Vec<String>,
}

impl Report {
    fn of(result: Result<Vec<Finding>>) -> Report {
        match result {
            Ok(mut findings) => {
                findings.sort();
                Report {
                    is_good: findings.iter().all(|finding| finding.is_note),
                    lines: findings.iter().map(ToString::to_string).collect(),
                }
            }
            Err(error) => Report {
                is_good: false,
                lines: vec![format!("error: {error:#}")],
            },
        }
    }
}

fn word(good: bool) -> &'static str {
    if good { "ok" } else { "FAILED" }
}

fn seconds(time: Duration) -> String {
    format!("{:.1} s", time.as_secs_f64())
}
