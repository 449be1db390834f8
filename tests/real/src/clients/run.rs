//! Runs programs and the commands of a page, with the addresses of this run.

use std::ffi::OsString;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use tempfile::TempDir;
use tokio::process::Command;

/// A program may have to fetch something at its first run.
const LIMIT: Duration = Duration::from_secs(300);

/// The address of the API in the page. That of NATS isn't named there.
const SERVER: &str = "http://127.0.0.1:8080";

pub struct Place {
    server: String,
    nats: Option<String>,
    path: OsString,
    /// Has `swirl` and `nats`. It is also the home of `nats`, whose settings aren't meant.
    programs: TempDir,
}

impl Place {
    pub fn new(
        swirl: &Path,
        command: Option<&Path>,
        server: &str,
        nats: Option<&str>,
    ) -> Result<Place> {
        let programs = tempfile::tempdir()?;
        symlink(swirl, programs.path().join("swirl"))?;
        if let Some(command) = command {
            symlink(command, programs.path().join("nats"))?;
        }
        let others = std::env::var_os("PATH").unwrap_or_default();
        let folders = std::iter::once(programs.path().to_owned());
        let path = std::env::join_paths(folders.chain(std::env::split_paths(&others)))?;
        Ok(Place {
            server: server.to_owned(),
            nats: nats.map(str::to_owned),
            path,
            programs,
        })
    }

    pub async fn program(
        &self,
        folder: &Path,
        command: &[&str],
        arguments: &[String],
    ) -> Result<String> {
        let (program, first) = command.split_first().context("no command")?;
        // A path is that in the folder.
        let program = match program.contains('/') {
            true => std::path::absolute(folder.join(program))?,
            false => program.into(),
        };
        let mut command = Command::new(program);
        command.args(first).args(arguments).current_dir(folder);
        self.output(command).await
    }

    /// Runs commands of the page.
    pub async fn shell(&self, block: &str) -> Result<String> {
        let mut command = Command::new("sh");
        command
            .args(["-eu", "-c", &block.replace(SERVER, &self.server)])
            .current_dir(self.programs.path())
            .env("XDG_CONFIG_HOME", self.programs.path())
            .env("HOME", self.programs.path());
        self.output(command).await
    }

    async fn output(&self, mut command: Command) -> Result<String> {
        command
            .env("PATH", &self.path)
            .env("SWIRL_SERVER", &self.server)
            .env_remove("SWIRL_TOKEN")
            .stdin(Stdio::null())
            .kill_on_drop(true);
        match &self.nats {
            Some(url) => command.env("NATS_URL", url),
            None => command.env_remove("NATS_URL"),
        };
        let done = tokio::time::timeout(LIMIT, command.output()).await;
        let done = done
            .context("it does not end")?
            .context("it cannot be run")?;
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        let (printed, said) = (text(&done.stdout), text(&done.stderr));
        ensure!(done.status.success(), "{}: {printed}{said}", done.status);
        Ok(printed)
    }
}

/// The blocks of commands below a heading of a page.
pub fn blocks(page: &str, heading: &str) -> Vec<String> {
    let mut blocks = Vec::new();
    let mut open: Option<String> = None;
    let mut is_below = false;
    for line in page.lines() {
        match &mut open {
            Some(_) if line == "```" => blocks.extend(open.take()),
            Some(block) => {
                block.push_str(line);
                block.push('\n');
            }
            None if line.starts_with('#') => {
                is_below = line.trim_start_matches('#').trim() == heading;
            }
            None if is_below && line == "```sh" => open = Some(String::new()),
            None => {}
        }
    }
    blocks
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_commands_below_the_heading_are_run() {
        let page = "# A\n```sh\na\n```\n## B\n```ts\nb\n```\n```sh\n# c\nd\n```\n```sh\ne\n```\n## F\n```sh\nf\n```\n";
        assert_eq!(blocks(page, "B"), ["# c\nd\n", "e\n"]);
    }
}
