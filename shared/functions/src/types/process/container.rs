//! Containers, run by the command line of Docker or Podman (DSL 1.0, "Container Process", "Container Lifetime").

use std::hash::{BuildHasher, Hasher};
use std::io;
use std::path::Path;
use std::time::Duration;

use swirl_model::Data;
use swirl_model::time::IsoDuration;
use swirl_ports::CallRequest;

use super::arguments::pairs;
use super::settings::Processes;
use crate::CallError;
use crate::types::custom::exec;

/// When a container is removed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Cleanup {
    Always,
    Never,
    After(Duration),
}

/// A container that runs. If its call ends early, it is stopped.
///
/// It is found by its label: another container may have the name that the task wants.
pub(super) struct Container {
    program: Vec<String>,
    label: String,
    cleanup: Cleanup,
    has_ended: bool,
}

impl Container {
    /// It has ended by itself.
    pub(super) fn ended(mut self) {
        self.has_ended = true;
        if let Cleanup::After(pause) = self.cleanup {
            let (program, label) = (self.program.clone(), self.label.clone());
            tokio::spawn(async move {
                tokio::time::sleep(pause).await;
                end(program, &REMOVE, label);
            });
        }
    }
}

impl Drop for Container {
    fn drop(&mut self) {
        if self.has_ended {
            return;
        }
        let way = match self.cleanup {
            Cleanup::Never => &STOP,
            Cleanup::Always | Cleanup::After(_) => &REMOVE,
        };
        let (program, label) = (self.program.clone(), self.label.clone());
        end(program, way, label);
    }
}

/// The commands that end a container.
struct Way {
    find: &'static [&'static str],
    end: &'static [&'static str],
}

const REMOVE: Way = Way {
    find: &["ps", "--all", "--quiet"],
    end: &["rm", "--force"],
};

/// Only containers that run can be stopped.
const STOP: Way = Way {
    find: &["ps", "--quiet"],
    end: &["kill"],
};

/// The limit for a command that finds or ends a container.
const END_TIMEOUT: Duration = Duration::from_secs(30);

/// The pauses between attempts to end a container.
const END_PAUSES: [Duration; 4] = [
    Duration::from_secs(1),
    Duration::from_secs(5),
    Duration::from_secs(25),
    Duration::from_secs(125),
];

/// The longest output of such a command.
const OUTPUT_BYTES_MAX: usize = 64 << 10;

/// Ends the containers with a label. Nothing waits for it.
fn end(program: Vec<String>, way: &'static Way, label: String) {
    std::thread::spawn(move || {
        let mut was_looked_for = false;
        let mut pauses = END_PAUSES.into_iter();
        loop {
            match end_once(&program, way, &label, END_TIMEOUT) {
                Ok(true) => return,
                // It may just be made when the command that runs it is killed, so it is looked for twice.
                Ok(false) if was_looked_for => return,
                Ok(false) => was_looked_for = true,
                Err(error) => match pauses.len() {
                    0 => {
                        return tracing::warn!(
                            "a container with the label {label} is left behind: {error}"
                        );
                    }
                    _ => tracing::info!("a container can't be ended yet: {error}"),
                },
            }
            let Some(pause) = pauses.next() else { return };
            std::thread::sleep(pause);
        }
    });
}

/// Returns whether there was any.
fn end_once(program: &[String], way: &Way, label: &str, limit: Duration) -> io::Result<bool> {
    let filter = ["--filter".to_owned(), format!("label={label}")];
    let found = output(program, way.find, &filter, limit)?;
    let ids: Vec<String> = found.split_whitespace().map(str::to_owned).collect();
    if ids.is_empty() {
        return Ok(false);
    }
    output(program, way.end, &ids, limit)?;
    Ok(true)
}

/// The output of a command line, which is killed at its limit.
fn output(
    program: &[String],
    command: &[&str],
    arguments: &[String],
    limit: Duration,
) -> io::Result<String> {
    let words = command.iter().map(|word| (*word).to_owned());
    let words: Vec<String> = [program.to_vec(), words.collect(), arguments.to_vec()].concat();
    let what = format!("`{} {}`", program.join(" "), command.join(" "));
    // The worker's runtime may be ending.
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    let finished = runtime.block_on(async {
        let run = exec::run(&words, &[], &[], OUTPUT_BYTES_MAX, &what);
        tokio::time::timeout(limit, run).await
    });
    let finished = finished.map_err(|_| io::Error::other(format!("{what} doesn't end")))?;
    let finished = finished.map_err(|error| io::Error::other(error.message))?;
    match finished.status.success() {
        true => Ok(String::from_utf8_lossy(&finished.stdout).into_owned()),
        false => Err(io::Error::other(format!("{what}: {}", finished.stderr))),
    }
}

/// The command line that runs a container. `environment`: a file with its variables.
pub(super) fn command(
    request: &CallRequest,
    settings: &Processes,
    arguments: Vec<String>,
    environment: &Path,
) -> Result<(Vec<String>, Container), CallError> {
    let given = &request.arguments;
    let text = |name: &str| given.get(name).map(|value| value.to_text());
    let image = text("image").unwrap_or_default();
    if image.is_empty() || image.starts_with('-') {
        let message = format!("`{image}` can't be the name of an image");
        return Err(CallError::arguments(message));
    }
    let cleanup = cleanup(given)?;
    let unique = unique();
    let name = clean(&text("name").unwrap_or_else(|| default_name(request, &unique)));
    // The key of a call isn't enough: another store may have the same one.
    let label = format!("swirl.call={}/{unique}", request.key);
    let mut words = settings.containers.clone();
    words.extend(["run", "--name", &name, "--label", &label].map(str::to_owned));
    if given.get("stdin").is_some_and(|stdin| !stdin.is_null()) {
        words.push("--interactive".to_owned());
    }
    if cleanup == Cleanup::Always {
        words.push("--rm".to_owned());
    }
    let pull = match text("pullPolicy").as_deref() {
        Some("always") => "always",
        Some("never") => "never",
        _ => "missing",
    };
    words.push(format!("--pull={pull}"));
    words.push(format!("--env-file={}", environment.display()));
    for (option, name) in [("--publish", "ports"), ("--volume", "volumes")] {
        let pairs = pairs(given, name)?.into_iter();
        words.extend(pairs.map(|(here, inside)| format!("{option}={here}:{inside}")));
    }
    match text("command") {
        Some(command) => {
            words.extend(["--entrypoint=sh".to_owned(), image]);
            words.extend(["-c".to_owned(), command, "sh".to_owned()]);
        }
        None => words.push(image),
    }
    words.extend(arguments);
    let container = Container {
        program: settings.containers.clone(),
        label,
        cleanup,
        has_ended: false,
    };
    Ok((words, container))
}

/// A file of variables.
pub(super) fn environment(variables: &[(String, String)]) -> Result<String, CallError> {
    let mut text = String::new();
    for (name, value) in variables {
        if name.contains(['=', '\n', '\r']) || value.contains(['\n', '\r']) {
            let message = format!("the variable `{name}` of a container has several lines");
            return Err(CallError::arguments(message));
        }
        text.push_str(&format!("{name}={value}\n"));
    }
    Ok(text)
}

fn cleanup(arguments: &Data) -> Result<Cleanup, CallError> {
    let lifetime = arguments.get("lifetime").unwrap_or_default();
    let word = lifetime.get("cleanup");
    match word.as_ref().and_then(Data::as_str) {
        Some("always") => Ok(Cleanup::Always),
        Some("eventually") => {
            let after = lifetime.get("after").unwrap_or_default();
            let pause = duration(&after);
            let pause = pause.ok_or_else(|| {
                CallError::arguments(format!("`lifetime.after` is not a duration: {after}"))
            })?;
            Ok(Cleanup::After(pause))
        }
        _ => Ok(Cleanup::Never),
    }
}

/// A duration as a text or as an object.
fn duration(given: &Data) -> Option<Duration> {
    if let Some(text) = given.as_str() {
        let parsed = IsoDuration::parse(text.trim()).ok()?;
        let months = Duration::from_secs(31 * 24 * 3600).saturating_mul(parsed.months);
        return Some(months.saturating_add(Duration::from_millis(parsed.millis)));
    }
    given.as_object()?;
    let units = [
        ("days", 86_400_000),
        ("hours", 3_600_000),
        ("minutes", 60_000),
        ("seconds", 1_000),
        ("milliseconds", 1),
    ];
    let mut millis = 0u64;
    for (unit, factor) in units {
        if let Some(count) = given.get(unit) {
            let count: u64 = count.to_text().parse().ok()?;
            millis = millis.saturating_add(count.saturating_mul(factor));
        }
    }
    Some(Duration::from_millis(millis))
}

/// The name that the language recommends: `{workflow}-{unique}.{namespace}-{task}`.
fn default_name(request: &CallRequest, unique: &str) -> String {
    let id = request.definition.workflow.to_string();
    let (namespace, name) = id.split_once('.').unwrap_or(("", &id));
    format!("{name}-{unique}.{namespace}-{}", request.function.task())
}

fn unique() -> String {
    // Random keys, drawn anew for each state.
    let number = std::hash::RandomState::new().build_hasher().finish();
    format!("{number:016x}")
}

/// A name with the characters that the command lines take.
fn clean(name: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '.' | '-');
    let name = name.trim_start_matches(|c: char| !c.is_ascii_alphanumeric());
    name.chars()
        .map(|c| if plain(c) { c } else { '-' })
        .collect()
}

#[cfg(test)]
mod tests {
    use swirl_model::data;

    use super::*;

    #[test]
    fn lifetimes() {
        let of = |lifetime: Data| {
            let mut arguments = data!({});
            arguments.set("lifetime", lifetime);
            cleanup(&arguments).ok()
        };
        let eventually = |after: Data| {
            let mut lifetime = data!({"cleanup": "eventually"});
            lifetime.set("after", after);
            of(lifetime)
        };
        assert_eq!(of(Data::NULL), Some(Cleanup::Never));
        assert_eq!(of(data!({"cleanup": "always"})), Some(Cleanup::Always));
        let minute = Some(Cleanup::After(Duration::from_secs(60)));
        assert_eq!(eventually(data!({"minutes": 1})), minute);
        assert_eq!(eventually(data!("PT1M")), minute);
        assert_eq!(eventually(data!(5)), None);
    }

    #[test]
    fn a_command_that_hangs_is_given_up() {
        let hangs = ["sh", "-c", "sleep 1000"].map(str::to_owned);
        let limit = Duration::from_millis(100);
        let error = end_once(&hangs, &REMOVE, "a=b", limit).unwrap_err();
        assert!(error.to_string().contains("doesn't end"), "{error}");
    }

    #[test]
    fn names_have_plain_characters() {
        assert_eq!(clean("order 1/a.b_c-d"), "order-1-a.b_c-d");
        assert_eq!(clean("--rm"), "rm");
    }
}
