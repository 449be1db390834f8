//! The commands. Each has a file, and a line in [`Command`].

mod audit;
mod batch;
mod call;
mod completions;
mod config;
mod coordinator;
mod dead_letters;
mod definition;
mod demo_service;
mod deploy;
mod dev;
mod diagram;
mod doctor;
mod events;
mod explain;
mod export;
mod fmt;
mod get;
mod groups;
mod history;
mod lint;
mod list;
mod lsp;
mod migrate;
mod new;
mod operate;
mod record;
mod rehearse;
mod replay;
mod run;
mod schedule;
mod schema;
mod send_event;
mod start;
mod test;
mod token;
pub mod validate;
mod worker;

use std::process::ExitCode;

use clap::{CommandFactory, FromArgMatches, Parser, Subcommand};

use crate::terminal::{Colour, Output, Terminal};

/// Runs Serverless Workflow definitions, durably.
///
/// Results are written to stdout, messages to stderr. Exit codes: 0 for success; 1 if the workflow, test, validation or
/// request failed; 2 if it could not be tried (for example, a file cannot be read or an option does not exist).
#[derive(Debug, Parser)]
#[command(name = "swirl", version, propagate_version = true, after_long_help = EXAMPLES)]
pub struct Cli {
    #[command(subcommand)]
    command: Command,

    /// When to use colours. The environment variable NO_COLOR turns 'auto' off.
    #[arg(long, global = true, value_enum, default_value_t, value_name = "WHEN")]
    color: Colour,

    /// The format of results.
    #[arg(
        long,
        global = true,
        value_enum,
        default_value_t,
        value_name = "FORMAT"
    )]
    output: Output,
}

const EXAMPLES: &str = "\
Examples:
  swirl new order
  swirl run hello.sw.yaml --input '{\"name\": \"Ada\"}'
  swirl validate workflows/
  swirl test tests/
  swirl diagram order.sw.yaml -o order.svg
  swirl explain unknown-property";

#[derive(Debug, Subcommand)]
enum Command {
    Audit(audit::Args),
    Batch(batch::Args),
    Call(call::Args),
    Cancel(operate::Cancel),
    Completions(completions::Args),
    Config(config::Args),
    Coordinator(coordinator::Args),
    DeadLetters(dead_letters::Args),
    Definition(definition::Args),
    DemoService(demo_service::Args),
    Deploy(deploy::Args),
    Dev(dev::Args),
    Diagram(diagram::Args),
    Doctor(Box<doctor::Args>),
    Events(events::Args),
    Explain(explain::Args),
    Export(export::Args),
    Fmt(fmt::Args),
    Get(get::Args),
    History(history::Args),
    Lint(lint::Args),
    List(list::Args),
    Lsp(lsp::Args),
    Migrate(migrate::Args),
    Move(operate::Move),
    New(new::Args),
    Record(record::Args),
    #[command(hide = true)]
    Rehearse(rehearse::Args),
    Remove(operate::Remove),
    Replay(replay::Args),
    Rerun(operate::Rerun),
    Resume(operate::Resume),
    Retry(operate::Retry),
    Run(run::Args),
    Schedule(schedule::Args),
    Schema(schema::Args),
    SendEvent(send_event::Args),
    Skip(operate::Skip),
    Start(start::Args),
    Suspend(operate::Suspend),
    Test(test::Args),
    Token(token::Args),
    Validate(validate::Args),
    Worker(worker::Args),
}

/// Runs the command line of this process.
pub fn main() -> ExitCode {
    let matches = groups::grouped(Cli::command()).get_matches();
    let cli = Cli::from_arg_matches(&matches).unwrap_or_else(|error| error.exit());
    let terminal = Terminal {
        colour: cli.color,
        output: cli.output,
    };
    if cli.output == Output::Sarif && !matches!(cli.command, Command::Validate(_)) {
        terminal.message("error: '--output sarif' is for 'swirl validate' only; use text or json");
        return ExitCode::from(2);
    }
    let done = match cli.command {
        Command::Audit(args) => audit::run(&args, &terminal),
        Command::Batch(args) => batch::run(&args, &terminal),
        Command::Call(args) => call::run(&args, &terminal),
        Command::Cancel(args) => operate::cancel(&args, &terminal),
        Command::Completions(args) => completions::run(&args, &terminal),
        Command::Config(args) => config::run(&args, &terminal),
        Command::Coordinator(args) => coordinator::run(&args, &terminal),
        Command::DeadLetters(args) => dead_letters::run(&args, &terminal),
        Command::Definition(args) => definition::run(&args, &terminal),
        Command::DemoService(args) => demo_service::run(&args, &terminal),
        Command::Deploy(args) => deploy::run(&args, &terminal),
        Command::Dev(args) => dev::run(&args, &terminal),
        Command::Diagram(args) => diagram::run(&args, &terminal),
        Command::Doctor(args) => doctor::run(&args, &terminal),
        Command::Events(args) => events::run(&args, &terminal),
        Command::Explain(args) => explain::run(&args, &terminal),
        Command::Export(args) => export::run(&args, &terminal),
        Command::Fmt(args) => fmt::run(&args, &terminal),
        Command::Get(args) => get::run(&args, &terminal),
        Command::History(args) => history::run(&args, &terminal),
        Command::Lint(args) => lint::run(&args, &terminal),
        Command::List(args) => list::run(&args, &terminal),
        Command::Lsp(args) => lsp::run(&args, &terminal),
        Command::Migrate(args) => migrate::run(&args, &terminal),
        Command::Move(args) => operate::move_to(&args, &terminal),
        Command::New(args) => new::run(&args, &terminal),
        Command::Record(args) => record::run(&args, &terminal),
        Command::Rehearse(args) => rehearse::run(&args, &terminal),
        Command::Remove(args) => operate::remove(&args, &terminal),
        Command::Replay(args) => replay::run(&args, &terminal),
        Command::Rerun(args) => operate::rerun(&args, &terminal),
        Command::Resume(args) => operate::resume(&args, &terminal),
        Command::Retry(args) => operate::retry(&args, &terminal),
        Command::Run(args) => run::run(&args, &terminal),
        Command::Schedule(args) => schedule::run(&args, &terminal),
        Command::Schema(args) => schema::run(&args, &terminal),
        Command::SendEvent(args) => send_event::run(&args, &terminal),
        Command::Skip(args) => operate::skip(&args, &terminal),
        Command::Start(args) => start::run(&args, &terminal),
        Command::Suspend(args) => operate::suspend(&args, &terminal),
        Command::Test(args) => test::run(&args, &terminal),
        Command::Token(args) => token::run(&args, &terminal),
        Command::Validate(args) => validate::run(&args, &terminal),
        Command::Worker(args) => worker::run(&args, &terminal),
    };
    match done {
        Ok(code) => ExitCode::from(code),
        Err(error) => {
            terminal.failure(&format!("{error:#}"), &format!("error: {error:#}"));
            ExitCode::from(2)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_command_line_is_valid() {
        Cli::command().debug_assert();
    }

    #[test]
    fn every_command_has_an_example() {
        for command in Cli::command().get_subcommands() {
            let help = command
                .get_after_long_help()
                .map(ToString::to_string)
                .unwrap_or_default();
            let call = format!("swirl {}", command.get_name());
            assert!(help.contains(&call), "{call}");
        }
    }

    #[test]
    fn global_options_may_be_anywhere() {
        for line in [
            "swirl --output json test x",
            "swirl test --output json x",
            "swirl test x --color never",
        ] {
            assert!(Cli::try_parse_from(line.split(' ')).is_ok(), "{line}");
        }
        assert!(Cli::try_parse_from(["swirl", "tset"]).is_err());
    }
}
