//! The command line flags, generated from the table for the processes that a command runs.

use std::marker::PhantomData;
use std::path::PathBuf;

use clap::builder::ValueParser;
use clap::error::Result as ClapResult;
use clap::{Arg, ArgAction, ArgMatches, Args, Command, FromArgMatches};

use super::kind::{Raw, ValueKind};
use super::load::{Loaded, Sources, load, load_partly};
use super::problem::Problems;
use super::setting::{Process, Setting};
use super::table;
use super::types::Config;

/// The processes whose settings a command has.
pub trait Processes {
    const PROCESSES: &'static [Process];
}

/// `swirl worker`
#[derive(Debug, Clone, Copy)]
pub struct Worker;

/// `swirl coordinator`
#[derive(Debug, Clone, Copy)]
pub struct Coordinator;

/// Commands that need the whole configuration.
#[derive(Debug, Clone, Copy)]
pub struct All;

impl Processes for Worker {
    const PROCESSES: &'static [Process] = &[Process::Worker];
}

impl Processes for Coordinator {
    const PROCESSES: &'static [Process] = &[Process::Coordinator];
}

impl Processes for All {
    const PROCESSES: &'static [Process] = Process::ALL;
}

/// The configuration on a command line, to be flattened into a command's arguments.
#[derive(Debug, Clone)]
pub struct Flags<P> {
    file: Option<PathBuf>,
    given: Vec<(&'static Setting, Raw)>,
    processes: PhantomData<P>,
}

impl<P: Processes> Flags<P> {
    /// Also reads the file and the variables.
    ///
    /// # Errors
    /// All errors in the configuration.
    pub fn load(&self) -> Result<Loaded, Problems> {
        self.load_for(P::PROCESSES)
    }

    /// The same for fewer processes, without the settings that only the others need.
    ///
    /// # Errors
    /// All errors in the configuration.
    pub fn load_for(&self, processes: &[Process]) -> Result<Loaded, Problems> {
        load(processes, &self.sources())
    }

    /// A configuration from the valid settings, if some are invalid.
    pub fn load_partly(&self, processes: &[Process]) -> Option<Config> {
        load_partly(processes, &self.sources())
    }

    fn sources(&self) -> Sources {
        let variables = std::env::vars_os().filter_map(|(name, value)| {
            Some((name.into_string().ok()?, value.into_string().ok()?))
        });
        Sources {
            file: self.file.clone(),
            variables: variables.collect(),
            flags: self.given.clone(),
        }
    }
}

fn offered<P: Processes>() -> impl Iterator<Item = &'static Setting> {
    table::settings().filter(|setting| {
        let mut users = setting.used_by.iter();
        users.any(|user| P::PROCESSES.contains(user))
    })
}

const CONFIG: &str = "config-file";

impl<P: Processes> FromArgMatches for Flags<P> {
    fn from_arg_matches(matches: &ArgMatches) -> ClapResult<Flags<P>> {
        let mut flags = Flags {
            file: matches.get_one::<PathBuf>(CONFIG).cloned(),
            given: Vec::new(),
            processes: PhantomData,
        };
        for setting in offered::<P>() {
            let Some(values) = matches.get_many::<String>(setting.key) else {
                continue;
            };
            let mut texts: Vec<String> = values.cloned().collect();
            let raw = match (setting.kind, texts.len()) {
                (ValueKind::List(_), _) => Raw::List(
                    texts
                        .iter()
                        .flat_map(|text| text.split(','))
                        .map(|text| text.trim().to_owned())
                        .collect(),
                ),
                (ValueKind::Map, _) => Raw::Text(texts.join(",")),
                (_, _) => Raw::Text(texts.pop().unwrap_or_default()),
            };
            flags.given.push((setting, raw));
        }
        Ok(flags)
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> ClapResult<()> {
        *self = Flags::from_arg_matches(matches)?;
        Ok(())
    }
}

impl<P: Processes> Args for Flags<P> {
    fn augment_args(command: Command) -> Command {
        let file = Arg::new(CONFIG)
            .long("config")
            .value_name("FILE")
            .value_parser(ValueParser::path_buf())
            .help(
                "The configuration: TOML, YAML or JSON [env: SWIRL_CONFIG] [default: \
                 /etc/swirl/swirl.toml, if it exists]",
            );
        offered::<P>().fold(command.arg(file), |command, setting| {
            command.arg(argument(setting))
        })
    }

    fn augment_args_for_update(command: Command) -> Command {
        Flags::<P>::augment_args(command)
    }
}

fn argument(setting: &'static Setting) -> Arg {
    let mut long = setting.help.replace('`', "");
    long.push_str(&format!("\n\n[env: {}]", setting.variable()));
    if let Some(default) = setting.default {
        long.push_str(&format!(" [default: {default}]"));
    }
    let short = setting.help.replace('`', "");
    let first = short
        .split_once(". ")
        .map_or(short.as_str(), |(first, _)| first);
    let first = first.split_once(": ").map_or(first, |(first, _)| first);
    let argument = Arg::new(setting.key)
        .long(setting.flag())
        .value_name(value_name(&setting.kind))
        .help_heading(match setting.section() {
            "" => "Configuration".to_owned(),
            section => format!("Configuration: {section}"),
        })
        .help(first.trim_end_matches('.').to_owned())
        .long_help(long);
    match setting.kind {
        ValueKind::Flag => argument
            .num_args(0..=1)
            .require_equals(true)
            .default_missing_value("true"),
        ValueKind::List(_) | ValueKind::Map => argument.action(ArgAction::Append),
        _ => argument,
    }
}

fn value_name(kind: &ValueKind) -> &'static str {
    match kind {
        ValueKind::Text => "TEXT",
        ValueKind::Name => "NAME",
        ValueKind::Word(_) => "WORD",
        ValueKind::Flag => "BOOL",
        ValueKind::Count { .. } | ValueKind::Ratio => "NUMBER",
        ValueKind::Bytes => "SIZE",
        ValueKind::Duration { .. } => "DURATION",
        ValueKind::Address => "ADDRESS",
        ValueKind::Url(_) => "URL",
        ValueKind::Path => "PATH",
        ValueKind::Subject | ValueKind::Template => "SUBJECT",
        ValueKind::List(item) => value_name(item),
        ValueKind::Map => "NAME=VALUE",
        ValueKind::Tokens => "JSON",
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Debug, Parser)]
    struct Line<P: Processes + Clone + Send + Sync + 'static> {
        #[command(flatten)]
        flags: Flags<P>,
    }

    #[test]
    fn each_process_has_its_flags() {
        let given = |line: &str| {
            Line::<Worker>::try_parse_from(line.split(' ')).map(|line| line.flags.given)
        };
        let names = given(
            "x --redis-url redis://a,redis://b --redis-url redis://c --redis-cluster \
             --worker-lease 5s --telemetry-resource-attributes a=1 \
             --telemetry-resource-attributes b=2",
        )
        .unwrap();
        let shown: Vec<String> = names
            .iter()
            .map(|(setting, raw)| format!("{} {raw:?}", setting.key))
            .collect();
        assert_eq!(
            shown,
            [
                r#"redis.url List(["redis://a", "redis://b", "redis://c"])"#,
                r#"redis.cluster Text("true")"#,
                r#"worker.lease Text("5s")"#,
                r#"telemetry.resource_attributes Text("a=1,b=2")"#,
            ]
        );
        assert!(given("x --coordinator-listen 127.0.0.1:0").is_err());
        assert!(given("x --redis-ulr a").is_err());
        assert!(
            Line::<Coordinator>::try_parse_from(["x", "--coordinator-listen", "127.0.0.1:0"])
                .is_ok()
        );
        let all = Line::<All>::try_parse_from(["x", "--config", "a.toml"]).unwrap();
        assert_eq!(all.flags.file, Some(PathBuf::from("a.toml")));
    }
}
