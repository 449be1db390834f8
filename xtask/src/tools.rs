//! Programs that the tests use: servers, and Python for the checks of `deploy/`.
//!
//! Programs that Debian provides are installed if this user is allowed to. Otherwise the checks that need them are
//! skipped with a message; on a CI server (`CI` in the environment) they fail instead.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail};

use crate::finding::Finding;
use crate::{cargo, testing};

struct Tool {
    /// Its name in the search path, or the path of a file.
    program: &'static str,
    /// Debian packages, separated by spaces.
    package: &'static str,
    why: &'static str,
}

const fn tool(program: &'static str, package: &'static str, why: &'static str) -> Tool {
    Tool {
        program,
        package,
        why,
    }
}

/// The tools by program.
const TOOLS: [Tool; 8] = [
    tool("faketime", "faketime", "processes with clocks of their own"),
    tool("kcat", "kcat", "Kafka functions"),
    tool("mosquitto", "mosquitto", "MQTT functions"),
    tool(
        "nats-server",
        "nats-server",
        "the cluster's queue and events",
    ),
    tool("python3", "python3", "the checks of deploy/"),
    tool("rabbitmq-server", "rabbitmq-server", "AMQP functions"),
    tool("redis-cli", "redis-tools", "clusters of Redis"),
    tool("redis-server", "redis-server", "the cluster's store"),
];
/// Only some checks need these, and are skipped without them.
const OPTIONAL: [Tool; 5] = [
    tool("go", "golang-go", "the Helm chart, rendered"),
    // A Go that doesn't come from Debian lacks these.
    tool(
        "/usr/share/gocode/src/github.com/Masterminds/sprig/functions.go",
        "golang-github-masterminds-sprig-dev",
        "functions of the Helm chart",
    ),
    tool(
        "/usr/share/gocode/src/sigs.k8s.io/yaml/yaml.go",
        "golang-k8s-sigs-yaml-dev",
        "YAML in the Helm chart",
    ),
    tool("prometheus", "prometheus", "scrapes, alerts"),
    tool("systemd-analyze", "systemd", "the units"),
];
const YAML: Tool = tool("PyYAML", "python3-yaml", "the checks of deploy/");

const INSTALL: &str = include_str!("install.sh");

/// Debian installs servers in folders that may be missing from an ordinary user's search path.
const SERVERS: [&str; 2] = ["/usr/sbin", "/sbin"];

/// The search path including the folders of servers.
pub fn path() -> OsString {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let mut folders: Vec<PathBuf> = std::env::split_paths(&path).collect();
    for folder in SERVERS.map(PathBuf::from) {
        if !folders.contains(&folder) {
            folders.push(folder);
        }
    }
    std::env::join_paths(folders).unwrap_or(path)
}

pub fn is_there(program: &str) -> bool {
    std::env::split_paths(&path()).any(|folder| folder.join(program).is_file())
}

/// Whether a command succeeds. Its output is dropped.
pub fn succeeds(command: &mut Command) -> bool {
    let quiet = command
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    quiet.status().is_ok_and(|status| status.success())
}

fn not_there(tools: &'static [Tool]) -> Vec<&'static Tool> {
    let tools = tools.iter();
    tools.filter(|tool| !is_there(tool.program)).collect()
}

fn missing() -> Vec<&'static Tool> {
    let mut missing = not_there(&TOOLS);
    if !succeeds(Command::new("python3").args(["-c", "import yaml"])) {
        missing.push(&YAML);
    }
    missing
}

/// Whether every tool is available.
pub fn all_there() -> bool {
    missing().is_empty()
}

/// Installs missing tools if `install` is set, or reports the checks that are skipped without them.
pub fn check(install: bool) -> Result<Vec<Finding>> {
    let mut wanted = missing();
    wanted.extend(not_there(&OPTIONAL));
    if wanted.is_empty() {
        return Ok(Vec::new());
    }
    let packages = wanted.iter().map(|tool| tool.package);
    let packages: Vec<&str> = packages.flat_map(str::split_whitespace).collect();
    let by_hand = format!("apt-get install {}", packages.join(" "));
    match installer() {
        Some(_) if !install => println!("nothing is installed without '--install'"),
        Some(mut install) => {
            println!("$ {by_hand}");
            let status = install.args(&packages).status();
            let status = status.context("cannot run the installation")?;
            if !status.success() {
                println!("the installation failed ({status})");
            }
        }
        None => println!(
            "nothing is installed: that takes Debian's apt-get, and root or sudo without a password"
        ),
    }
    let (wanted, optional) = (missing(), not_there(&OPTIONAL));
    for tool in wanted.iter().chain(&optional) {
        println!("missing: {} ({})", tool.program, tool.why);
    }
    if wanted.is_empty() && optional.is_empty() {
        return Ok(Vec::new());
    }
    if std::env::var_os("CI").is_some() {
        bail!("a CI server runs every test: {by_hand}");
    }
    if wanted.is_empty() {
        println!("left out without them: single checks of deploy/, which say so");
        return Ok(Vec::new());
    }
    println!(
        "left out without them: the checks of deploy/, and the integration tests of crates that start servers"
    );
    println!("to run these too: {by_hand}");
    Ok(Vec::new())
}

/// The command that installs packages, or `None` if this user can't.
fn installer() -> Option<Command> {
    if !is_there("apt-get") {
        return None;
    }
    let is_root = || {
        let id = Command::new("id").arg("-u").output();
        id.is_ok_and(|id| id.stdout.trim_ascii() == b"0")
    };
    let mut command = if is_root() {
        Command::new("sh")
    } else if succeeds(Command::new("sudo").args(["-n", "true"])) {
        let mut sudo = Command::new("sudo");
        sudo.args(["-n", "sh"]);
        sudo
    } else {
        return None;
    };
    command
        .args(["-c", INSTALL, "install"])
        .stdin(Stdio::null());
    Some(command)
}

/// Features that are off in a plain build. Tests have them, if all tools are there; `cargo clippy` checks without them.
pub fn features() -> &'static [&'static str] {
    match all_there() {
        true => &["--features", "swirl-functions/wasm"],
        false => &[],
    }
}

/// Builds all programs and tests.
pub fn build() -> Result<()> {
    let args = ["build", "--workspace", "--bins", "--tests", "--quiet"];
    cargo::run_with(&[&args[..], features()].concat(), cargo::linting())
}

/// Runs the workspace's tests. Without all tools, crates whose tests start servers run only their unit tests.
pub fn test() -> Result<Vec<Finding>> {
    let crates = with_servers()?;
    if all_there() {
        return testing::run(&[&["--workspace"][..], features()].concat(), &crates);
    }
    println!("without their integration tests: {}", crates.join(", "));
    let mut rest: Vec<&str> = vec!["--workspace"];
    let mut beside: Vec<&str> = vec!["--lib", "--bins"];
    for name in &crates {
        rest.extend(["--exclude", name]);
        beside.extend(["--package", name]);
    }
    let first = testing::run(&rest, &crates);
    let mut notes = testing::run(&beside, &crates)?;
    notes.extend(first?);
    Ok(notes)
}

/// The crates whose tests start servers, and the crate that starts them.
fn with_servers() -> Result<Vec<String>> {
    const SERVERS: &str = "swirl-servers";
    let metadata = cargo::members()?;
    let mut crates: Vec<String> = metadata
        .packages
        .iter()
        .filter(|package| {
            package.name.as_str() == SERVERS
                || package.dependencies.iter().any(|it| it.name == SERVERS)
        })
        .map(|package| package.name.to_string())
        .collect();
    crates.sort();
    Ok(crates)
}

/// The reason why a check is skipped, or `None` if it is run.
pub fn left_out(check: &Path) -> Option<String> {
    (!all_there()).then(|| format!("left out: {} needs tools that are missing", check.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn crates_that_start_servers() {
        let crates = with_servers().unwrap();
        for name in ["swirl-cli", "swirl-redis", "swirl-servers"] {
            assert!(crates.iter().any(|it| it == name), "{crates:?}");
        }
        assert!(!crates.iter().any(|name| name == "swirl-engine"));
    }

    #[test]
    fn servers_are_found_for_a_plain_user() {
        let folders: Vec<PathBuf> = std::env::split_paths(&path()).collect();
        assert!(
            folders
                .iter()
                .any(|folder| folder == Path::new("/usr/sbin"))
        );
    }
}
