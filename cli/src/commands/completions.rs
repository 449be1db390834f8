//! `swirl completions`

use clap::CommandFactory;
use clap_complete::Shell;

use super::Cli;
use crate::terminal::Terminal;

/// Prints a completion script for a shell.
#[derive(Debug, clap::Args)]
#[command(after_long_help = "\
Examples:
  swirl completions bash > ~/.local/share/bash-completion/completions/swirl
  swirl completions zsh > ~/.zfunc/_swirl
  swirl completions fish > ~/.config/fish/completions/swirl.fish")]
pub struct Args {
    shell: Shell,
}

pub fn run(args: &Args, terminal: &Terminal) -> anyhow::Result<u8> {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut Cli::command(), "swirl", &mut script);
    terminal.result(&String::from_utf8_lossy(&script))?;
    Ok(0)
}
