//! The folders of a store.

use std::io;
use std::path::{Path, PathBuf};

use super::base::Writer;
use super::files::{self, Acked, Kind, Manifest};

/// The records' folder in the store's folder.
const RECORDS: &str = "records";
/// A file that says that a store was created here.
pub(super) const MARK: &str = "store";

/// Returns the folder of the records.
pub(crate) fn open_place(folder: &Path) -> PathBuf {
    folder.join(RECORDS)
}

/// An empty folder next to the records.
pub(super) fn draft(folder: &Path) -> io::Result<PathBuf> {
    let draft = folder.join("records.new");
    if draft.exists() {
        std::fs::remove_dir_all(&draft)?;
    }
    make(&draft)?;
    Ok(draft)
}

/// A name that no file has.
pub(super) fn free_name(folder: &Path, name: &str) -> PathBuf {
    let numbered = |n: u32| match n {
        1 => folder.join(name),
        _ => folder.join(format!("{name}-{n}")),
    };
    (1..)
        .map(numbered)
        .find(|path| !path.exists())
        .unwrap_or_else(|| folder.join(name))
}

/// Makes the files of a store whose base has the records as of the change `through`.
pub(super) fn new_store(
    folder: &Path,
    through: u64,
    fill: impl FnOnce(&mut Writer) -> io::Result<()>,
) -> io::Result<()> {
    let mut writer = Writer::new(folder, 1, through)?;
    fill(&mut writer)?;
    let (base, _) = writer.finish(folder)?;
    files::create_file(folder, Kind::Log, 2, through + 1)?.sync_all()?;
    Acked::create(folder, through)?;
    Manifest::new(base, through, 2).write(folder)
}

/// Creates the store's folder, private to the current user. A folder that exists already keeps its permissions, since
/// it may contain other files; the data below it is private nevertheless ([`tighten`]).
pub(crate) fn make(folder: &Path) -> io::Result<()> {
    let mut builder = std::fs::DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.create(folder)
}

/// Makes the records private again, since a copy that was put back may be readable by everyone.
#[cfg(unix)]
pub(crate) fn tighten(place: &Path) -> io::Result<()> {
    use std::os::unix::fs::PermissionsExt;
    let mut rights = std::fs::metadata(place)?.permissions();
    if rights.mode() & 0o077 == 0 {
        return Ok(());
    }
    rights.set_mode(0o700);
    let set = std::fs::set_permissions(place, rights);
    let place = place.display();
    match set {
        Ok(()) => tracing::warn!(
            "other users of this machine could read {place}; from now on only its owner can"
        ),
        Err(error) => tracing::warn!(
            %error,
            "other users of this machine can read {place}; only its owner can change that: chmod 700"
        ),
    }
    Ok(())
}

#[cfg(not(unix))]
pub(crate) fn tighten(_: &Path) -> io::Result<()> {
    Ok(())
}
