//! Finds scenario files.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use swirl_model::file_names::SCENARIO_ENDINGS as ENDINGS;

#[derive(Debug, thiserror::Error)]
pub enum DiscoverError {
    #[error("{}: {source}", path.display())]
    Io {
        path: PathBuf,
        source: std::io::Error,
    },
    #[error("{}: this folder contains no scenario files; their names end in .scenario.yaml or .scenario.json", .0.display())]
    None(PathBuf),
}

impl DiscoverError {
    pub fn path(&self) -> &Path {
        match self {
            DiscoverError::Io { path, .. } | DiscoverError::None(path) => path,
        }
    }
}

/// The scenario files that the paths name: files are used as they are, folders are searched recursively for
/// `*.scenario.yaml` and `*.scenario.json`. Each file is listed once; files of a folder are sorted by path. Hidden
/// folders and links to folders are skipped. Errors are returned in addition to the found files.
pub fn files(paths: &[PathBuf]) -> (Vec<PathBuf>, Vec<DiscoverError>) {
    let mut found = Vec::new();
    let mut seen = BTreeSet::new();
    let mut errors = Vec::new();
    for path in paths {
        let mut of_path = Vec::new();
        if let Err(error) = collect(path, &mut of_path, &is_scenario) {
            errors.push(error);
        } else if of_path.is_empty() {
            errors.push(DiscoverError::None(path.clone()));
        }
        found.extend(of_path.into_iter().filter(|file| seen.insert(file.clone())));
    }
    (found, errors)
}

/// A file, or the sorted wanted files of a folder.
///
/// # Errors
/// The path doesn't exist, or a folder cannot be read.
pub fn collect(
    path: &Path,
    found: &mut Vec<PathBuf>,
    wanted: &dyn Fn(&Path) -> bool,
) -> Result<(), DiscoverError> {
    let io = |source| DiscoverError::Io {
        path: path.to_owned(),
        source,
    };
    if !std::fs::metadata(path).map_err(io)?.is_dir() {
        found.push(path.to_owned());
        return Ok(());
    }
    let mut folders = vec![path.to_owned()];
    let mut files = Vec::new();
    while let Some(folder) = folders.pop() {
        let io = |source| DiscoverError::Io {
            path: folder.clone(),
            source,
        };
        for entry in std::fs::read_dir(&folder).map_err(io)? {
            let entry = entry.map_err(io)?;
            let kind = entry.file_type().map_err(io)?;
            let name = entry.file_name().to_string_lossy().into_owned();
            if kind.is_dir() {
                if !name.starts_with('.') {
                    folders.push(entry.path());
                }
            } else if wanted(&entry.path()) {
                files.push(entry.path());
            }
        }
    }
    files.sort();
    found.extend(files);
    Ok(())
}

/// Whether the name of a file is that of a scenario.
pub fn is_scenario(path: &Path) -> bool {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    ENDINGS.iter().any(|ending| name.ends_with(ending))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn folders_are_searched_in_order() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        std::fs::create_dir_all(at("b/c")).unwrap();
        std::fs::create_dir_all(at(".git")).unwrap();
        for name in [
            "b/c/z.scenario.json",
            "b/a.scenario.yaml",
            "a.scenario.yaml",
            "b/x.yaml",
            ".git/g.scenario.yaml",
        ] {
            std::fs::write(at(name), "").unwrap();
        }
        let (found, errors) = files(&[
            at("b/x.yaml"),
            folder.path().to_owned(),
            at("a.scenario.yaml"),
        ]);
        let names = [
            "b/x.yaml",
            "a.scenario.yaml",
            "b/a.scenario.yaml",
            "b/c/z.scenario.json",
        ];
        assert_eq!(found, names.map(at));
        assert!(errors.is_empty());
    }

    #[test]
    fn nothing_found_is_an_error() {
        let folder = tempfile::tempdir().unwrap();
        let (found, errors) = files(&[folder.path().to_owned(), folder.path().join("missing")]);
        assert!(found.is_empty());
        assert!(matches!(
            errors[..],
            [DiscoverError::None(_), DiscoverError::Io { .. }]
        ));
    }
}
