//! `swirl test --watch`: runs again whenever a document changes.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use swirl_scenario::discover;

use crate::terminal::Terminal;

/// The interval at which the files are checked.
const PAUSE: Duration = Duration::from_millis(300);

/// The file name endings of scenarios and definitions.
const ENDINGS: [&str; 6] = [".yaml", ".yml", ".json", ".proto", ".graphql", ".xml"];

/// The time of a file's last change, and its length.
type Seen = BTreeMap<PathBuf, (Option<SystemTime>, u64)>;

/// Runs once, and again after each change, until the process is ended.
pub fn run(
    paths: &[PathBuf],
    terminal: &Terminal,
    once: impl Fn() -> anyhow::Result<u8>,
) -> anyhow::Result<u8> {
    loop {
        // Taken before the run, so that changes during the run start another one.
        let before = look(paths);
        if let Err(error) = once() {
            terminal.message(&format!("error: {error:#}"));
        }
        terminal.message("waiting for a change; Ctrl-C ends");
        while look(paths) == before {
            std::thread::sleep(PAUSE);
        }
    }
}

/// All documents in the folders of the paths.
fn look(paths: &[PathBuf]) -> Seen {
    let mut files = Vec::new();
    let wanted = |path: &Path| {
        let name = path.to_string_lossy();
        ENDINGS.iter().any(|ending| name.ends_with(ending))
    };
    for path in paths {
        let folder = match path.is_dir() {
            true => path.as_path(),
            false => path
                .parent()
                .filter(|folder| !folder.as_os_str().is_empty())
                .unwrap_or(Path::new(".")),
        };
        // The run itself reports folders that can't be read.
        let _ = discover::collect(folder, &mut files, &wanted);
    }
    let look = |file: PathBuf| {
        let found = std::fs::metadata(&file).ok()?;
        Some((file, (found.modified().ok(), found.len())))
    };
    files.into_iter().filter_map(look).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn changes_are_noticed() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("a.scenario.yaml");
        let paths = [file.clone()];
        std::fs::write(&file, "a").unwrap();
        let before = look(&paths);
        assert_eq!(before.len(), 1);
        assert_eq!(look(&paths), before);
        std::fs::write(folder.path().join("x.txt"), "").unwrap();
        assert_eq!(look(&paths), before);
        std::fs::write(folder.path().join("w.sw.yaml"), "").unwrap();
        let with_definition = look(&paths);
        assert_ne!(with_definition, before);
        std::fs::write(&file, "ab").unwrap();
        assert_ne!(look(&paths), with_definition);
    }
}
