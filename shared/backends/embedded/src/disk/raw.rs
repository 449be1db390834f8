//! Records as they are on disk, for tests.

use std::io;
use std::path::Path;

use super::base::Sources;
use super::load::{Loaded, load};
use super::place::open_place;
use super::salvage::{Gone, rebuild};
use crate::key::Key;

/// Replaces a record of a store that isn't open, or removes it.
///
/// # Errors
/// The files can't be read or written.
pub fn replace(folder: &Path, key: &str, value: Option<&str>) -> io::Result<()> {
    let mut loaded: Loaded = load(&open_place(folder))?;
    match value {
        Some(value) => loaded.state.insert(key.to_owned(), value.into()),
        None => loaded.state.remove(key),
    };
    let damaged = rebuild(folder, &loaded, &Gone::default())?;
    std::fs::remove_dir_all(damaged)
}

/// The records of a store that isn't open, with their values.
///
/// # Errors
/// The files can't be read.
pub fn records(folder: &Path) -> io::Result<Vec<(String, String)>> {
    let place = open_place(folder);
    let loaded = load(&place)?;
    let mut sources = Sources::default();
    if let Some(manifest) = &loaded.manifest {
        for (kind, number) in manifest.numbers() {
            sources.add(number, std::fs::File::open(place.join(kind.name(number)))?);
        }
    }
    let text = |value: Vec<u8>| String::from_utf8(value).map_err(io::Error::other);
    let mut records = Vec::new();
    for (key, value) in loaded.state {
        records.push((key, text(value)?));
    }
    for (seq, at) in loaded.history.all() {
        records.push((
            Key::History(seq, at.number).text(),
            text(sources.read(at)?)?,
        ));
    }
    Ok(records)
}
