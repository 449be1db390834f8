//! Loads the configuration from file, variables and flags.

use std::path::{Path, PathBuf};

use swirl_documents::{files, suggest};

use super::build::build;
use super::entry::GivenSetting;
use super::file;
use super::kind::Raw;
use super::problem::{Problem, Problems, SettingSource};
use super::setting::{Process, Setting, VARIABLES};
use super::table;
use super::types::Config;

/// The file that is read if no other one is named.
pub const DEFAULT_FILE: &str = "/etc/swirl/swirl.toml";
const FILE_VARIABLE: &str = "SWIRL_CONFIG";
/// The largest file, in bytes.
const FILE_BYTES_MAX: usize = 1 << 20;

/// Variables with our prefix that are not settings.
const OTHER_VARIABLES: [&str; 6] = [
    "SWIRL_CA_FILE",
    FILE_VARIABLE,
    "SWIRL_LOG",
    "SWIRL_SERVER",
    "SWIRL_TOKEN",
    "SWIRL_TOKEN_FILE",
];

/// The sources of a configuration.
#[derive(Debug, Clone, Default)]
pub struct Sources {
    /// The file named by the flag.
    pub file: Option<PathBuf>,
    /// All variables of the process.
    pub variables: Vec<(String, String)>,
    pub flags: Vec<(&'static Setting, Raw)>,
}

/// A configuration, and the sources of its values.
#[derive(Debug, Clone)]
pub struct Loaded {
    pub config: Config,
    /// All settings, in the table's order.
    pub entries: Vec<GivenSetting>,
    pub file: Option<PathBuf>,
    /// Problems that don't prevent a start.
    pub warnings: Vec<Problem>,
}

/// All given settings, and the errors in each of them.
struct Given {
    entries: Vec<GivenSetting>,
    problems: Vec<Problem>,
    file: Option<PathBuf>,
    warnings: Vec<Problem>,
}

/// Assembles the configuration of `processes`.
///
/// # Errors
/// All errors with their locations.
pub fn load(processes: &[Process], sources: &Sources) -> Result<Loaded, Problems> {
    let given = gather(sources);
    if !given.problems.is_empty() {
        return Err(Problems(given.problems));
    }
    let config = build(processes, &given.entries)?;
    Ok(Loaded {
        config,
        entries: given.entries,
        file: given.file,
        warnings: given.warnings,
    })
}

/// The number of attempts in which contradictory settings are left out.
const LEFT_OUT: usize = 4;

/// A configuration from the valid settings, for callers that check the rest although some are invalid. An invalid
/// setting counts as not given. Returns `None` if too few settings are left.
pub fn load_partly(processes: &[Process], sources: &Sources) -> Option<Config> {
    let mut entries = gather(sources).entries;
    for _ in 0..LEFT_OUT {
        let problems = match build(processes, &entries) {
            Ok(config) => return Some(config),
            Err(Problems(problems)) => problems,
        };
        for entry in &mut entries {
            let key = entry.setting.key;
            // Each message begins with the setting that it is about.
            let mut about = problems.iter();
            if about.any(|problem| problem.message.split(' ').next() == Some(key)) {
                *entry = by_default(entry.setting);
            }
        }
    }
    None
}

fn by_default(setting: &'static Setting) -> GivenSetting {
    GivenSetting {
        setting,
        value: setting.default.and_then(|default| {
            let raw = Raw::Text(default.to_owned());
            setting.kind.check(&raw).ok()
        }),
        place: SettingSource::Default,
    }
}

fn gather(sources: &Sources) -> Given {
    let mut problems = Vec::new();
    let mut entries: Vec<GivenSetting> = table::settings().map(by_default).collect();
    let file = chosen(sources);
    if let Some(path) = &file {
        match read(path) {
            Ok(bytes) => {
                let (found, wrong) = file::read(path, &bytes);
                problems.extend(wrong);
                for found in found {
                    set(
                        &mut entries,
                        &mut problems,
                        found.setting,
                        &found.raw,
                        found.place,
                    );
                }
            }
            Err(problem) => problems.push(problem),
        }
    }
    let (given, warnings) = variables(&sources.variables);
    for (setting, text) in given {
        let place = SettingSource::Variable(setting.variable());
        set(
            &mut entries,
            &mut problems,
            setting,
            &Raw::Text(text),
            place,
        );
    }
    for (setting, raw) in &sources.flags {
        let place = SettingSource::Flag(format!("--{}", setting.flag()));
        set(&mut entries, &mut problems, setting, raw, place);
    }
    Given {
        entries,
        problems,
        file,
        warnings,
    }
}

fn set(
    entries: &mut [GivenSetting],
    problems: &mut Vec<Problem>,
    setting: &'static Setting,
    raw: &Raw,
    place: SettingSource,
) {
    let Some(entry) = entries
        .iter_mut()
        .find(|entry| entry.setting.key == setting.key)
    else {
        return;
    };
    match setting.kind.check(raw) {
        Ok(value) => {
            entry.value = Some(value);
            entry.place = place;
        }
        Err(_) if setting.secret => {
            let message = format!("{} must be a {}", setting.key, setting.kind.words());
            problems.push(Problem::new(place, message));
        }
        Err(message) => problems.push(Problem::new(place, format!("{} {message}", setting.key))),
    }
}

/// The file from the flag, else from the variable, else the default file if it exists.
fn chosen(sources: &Sources) -> Option<PathBuf> {
    if let Some(file) = &sources.file {
        return Some(file.clone());
    }
    let mut variables = sources.variables.iter();
    let variable = variables.find(|(name, value)| name == FILE_VARIABLE && !value.is_empty());
    match variable {
        Some((_, file)) => Some(PathBuf::from(file)),
        None => Some(PathBuf::from(DEFAULT_FILE)).filter(|file| file.exists()),
    }
}

fn read(path: &Path) -> Result<Vec<u8>, Problem> {
    files::read(path, FILE_BYTES_MAX).map_err(|error| Problem {
        is_unreadable: true,
        ..Problem::new(
            SettingSource::file(path),
            format!("cannot be read: {error}"),
        )
    })
}

/// Settings from variables. An empty variable counts as absent, because compose files omit a variable in this way. An
/// unknown name with our prefix is only a warning, because Kubernetes adds its own variables for a service called
/// swirl.
fn variables(all: &[(String, String)]) -> (Vec<(&'static Setting, String)>, Vec<Problem>) {
    let (mut given, mut warnings) = (Vec::new(), Vec::new());
    for (name, value) in all {
        let known = table::settings().find(|setting| setting.variable() == *name);
        match known {
            Some(_) if value.is_empty() => {}
            Some(setting) => given.push((setting, value.clone())),
            None => {
                if name.starts_with(VARIABLES) && !is_others(name) {
                    warnings.push(unknown_variable(name));
                }
            }
        }
    }
    warnings.sort_by_key(|warning| warning.place.to_string());
    (given, warnings)
}

fn is_others(name: &str) -> bool {
    OTHER_VARIABLES.contains(&name)
        || name.starts_with(swirl_functions::secrets::PREFIX)
        || name.contains("_SERVICE_HOST")
        || name.contains("_SERVICE_PORT")
        || name.ends_with("_PORT")
        || name.contains("_PORT_")
}

fn unknown_variable(name: &str) -> Problem {
    let known: Vec<String> = table::settings().map(Setting::variable).collect();
    let place = SettingSource::Variable(name.to_owned());
    let problem = Problem::new(place, "is not a setting, and has no effect");
    match suggest::did_you_mean(name, known.iter().map(String::as_str)) {
        Some(near) => problem.hint(format!("did you mean '{near}'?")),
        None => problem,
    }
}
