//! Counts the instructions of a server with callgrind. Other load on the machine doesn't change them.

use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result};

use crate::process::output;

/// The beginning of the names of callgrind's files in the server's folder: `callgrind.1` and so on.
const FILE: &str = "callgrind";

/// The arguments of valgrind with which it runs a program.
pub(crate) fn under_callgrind(folder: &Path, program: &str, args: Vec<String>) -> Vec<String> {
    let file = folder.join(FILE).display().to_string();
    let mut all = vec![
        "--tool=callgrind".to_owned(),
        format!("--callgrind-out-file={file}"),
        program.to_owned(),
    ];
    all.extend(args);
    all
}

/// The number of instructions since the last call. Each call leaves a file with them, by function, for
/// `callgrind_annotate`.
pub(crate) fn counted(folder: &Path, pid: u32) -> Result<u64> {
    output(
        "callgrind_control",
        "valgrind",
        &["--dump", &pid.to_string()],
    )?;
    let file = last_file(folder)?;
    let text = std::fs::read_to_string(&file)?;
    let total = text.lines().find_map(|line| line.strip_prefix("totals: "));
    let total = total.with_context(|| format!("{} has no total", file.display()))?;
    Ok(total.trim().parse()?)
}

/// The file of the last call.
pub(crate) fn last_file(folder: &Path) -> Result<PathBuf> {
    let files = std::fs::read_dir(folder)?.collect::<std::io::Result<Vec<_>>>()?;
    let files = files.iter().filter_map(|file| {
        let name = file.file_name().into_string().ok()?;
        let number: u32 = name.strip_prefix(FILE)?.strip_prefix('.')?.parse().ok()?;
        Some((number, file.path()))
    });
    let last = files.max_by_key(|(number, _)| *number);
    Ok(last.context("callgrind has written no file")?.1)
}
