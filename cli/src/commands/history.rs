//! `swirl history`

use crate::client::{Server, timeline};
use crate::terminal::Terminal;

/// Shows what happened to an instance.
///
/// One line an entry: the time since the start, the branch (none for the main path), what happened.
#[derive(Debug, clap::Args)]
#[command(after_long_help = "\
Examples:
  swirl history 2f6c0d9b31a84e57
  swirl history 2f6c0d9b31a84e57 --output json")]
pub struct Args {
    /// The instance's id, or WORKFLOW/KEY.
    #[arg(value_name = "ID")]
    id: String,

    #[command(flatten)]
    server: Server,
}

pub fn run(args: &Args, terminal: &Terminal) -> anyhow::Result<u8> {
    args.server.run(async |client| {
        let path = ["instances", &args.id, "history"];
        let answer = client.get(&path, &[]).await?;
        answer.show(terminal, |body| {
            let entries = body["entries"].as_array().cloned().unwrap_or_default();
            timeline::timeline(&entries, terminal.colours())
        })
    })
}
