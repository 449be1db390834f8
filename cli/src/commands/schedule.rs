//! `swirl schedule`

use crate::client::{Repeat, Server, timeline::shown};
use crate::terminal::Terminal;

/// Pauses and resumes schedules; 'swirl definition list' shows them.
#[derive(Debug, clap::Args)]
#[command(after_long_help = "\
Examples:
  swirl schedule pause nightly-report
  swirl schedule resume nightly-report")]
pub struct Args {
    #[command(subcommand)]
    task: Task,
}

#[derive(Debug, clap::Subcommand)]
enum Task {
    /// Lets the schedule of a workflow start nothing, in any version, until it is resumed.
    Pause(Of),
    /// Lets the schedule go on; what it missed meanwhile isn't made up for.
    Resume(Of),
}

#[derive(Debug, clap::Args)]
struct Of {
    /// The workflow's id.
    #[arg(value_name = "WORKFLOW")]
    workflow: String,

    #[command(flatten)]
    server: Server,
}

pub fn run(args: &Args, terminal: &Terminal) -> anyhow::Result<u8> {
    let (of, word, told) = match &args.task {
        Task::Pause(of) => (of, "pause", "is paused"),
        Task::Resume(of) => (of, "resume", "goes on"),
    };
    of.server.run(async |client| {
        let path = ["workflows", of.workflow.as_str(), "schedule", word];
        // Once more changes nothing.
        let answer = client
            .post(&path, &[], &[], Vec::new(), Repeat::Safe)
            .await?;
        answer.show(terminal, |body| {
            format!("the schedule of {} {told}\n", shown(&body["id"]))
        })
    })
}
