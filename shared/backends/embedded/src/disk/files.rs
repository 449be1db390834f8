//! The names and heads of the files, the manifest that lists them, and the number of the last acknowledged change.

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use xxhash_rust::xxh3::xxh3_64;

use super::frame::sync_folder;

const FORMAT: u32 = 1;
pub(super) const MANIFEST: &str = "manifest";
const ACKED: &str = "acked";
/// The length of the head of a base or log.
pub(super) const HEAD: u64 = 32;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Base,
    Log,
}

impl Kind {
    fn magic(self) -> &'static [u8; 8] {
        match self {
            Kind::Base => b"SWIRLBA\x01",
            Kind::Log => b"SWIRLLO\x01",
        }
    }

    pub fn name(self, number: u32) -> String {
        match self {
            Kind::Base => format!("{number:010}.base"),
            Kind::Log => format!("{number:010}.log"),
        }
    }

    /// The kind and number of a file with this name.
    pub fn of(name: &str) -> Option<(Kind, u32)> {
        let (number, kind) = name.split_once('.')?;
        let kind = match kind {
            "base" => Kind::Base,
            "log" => Kind::Log,
            _ => return None,
        };
        Some((kind, number.parse().ok()?))
    }
}

/// A base, or a log that is complete.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Complete {
    pub number: u32,
    /// The number of its first frame: 1 in a base.
    pub first: u64,
    /// The number of its last frame.
    pub last: u64,
    pub bytes: u64,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Manifest {
    format: u32,
    pub base: Complete,
    /// The last change in the base.
    pub through: u64,
    /// In the order of their changes.
    pub logs: Vec<Complete>,
    /// The log that is being written, and its first change.
    pub active: u32,
    pub first: u64,
}

impl Manifest {
    pub fn new(base: Complete, through: u64, active: u32) -> Manifest {
        Manifest {
            format: FORMAT,
            base,
            through,
            logs: Vec::new(),
            active,
            first: through + 1,
        }
    }

    pub fn numbers(&self) -> impl Iterator<Item = (Kind, u32)> {
        let logs = self.logs.iter().map(|log| (Kind::Log, log.number));
        let ends = [(Kind::Base, self.base.number), (Kind::Log, self.active)];
        logs.chain(ends)
    }

    /// Replaces the manifest at once.
    pub fn write(&self, folder: &Path) -> io::Result<()> {
        let json = serde_json::to_string(self)?;
        let text = format!("{json}\n{:016x}\n", xxh3_64(json.as_bytes()));
        let draft = folder.join("manifest.new");
        let mut file = File::create(&draft)?;
        file.write_all(text.as_bytes())?;
        file.sync_all()?;
        drop(file);
        std::fs::rename(draft, folder.join(MANIFEST))?;
        sync_folder(folder)
    }

    /// The manifest, or why there is none.
    pub fn read(folder: &Path) -> Result<Manifest, String> {
        let text = match std::fs::read(folder.join(MANIFEST)) {
            Ok(text) => String::from_utf8(text).map_err(|_| "it is damaged".to_owned())?,
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                return Err("it is missing".to_owned());
            }
            Err(error) => return Err(error.to_string()),
        };
        let json = text
            .split_once('\n')
            .filter(|(json, sum)| *sum == format!("{:016x}\n", xxh3_64(json.as_bytes())));
        let (json, _) = json.ok_or("it is damaged")?;
        let manifest: Manifest = serde_json::from_str(json).map_err(|error| error.to_string())?;
        if manifest.format != FORMAT {
            let format = manifest.format;
            return Err(format!(
                "it has format {format}, which a newer version of swirl writes"
            ));
        }
        Ok(manifest)
    }
}

/// The head of a file: its kind, its number, and its first change (of a base: the last change in it).
fn head(kind: Kind, number: u32, change: u64) -> Vec<u8> {
    let mut head = kind.magic().to_vec();
    head.extend(u64::from(number).to_le_bytes());
    head.extend(change.to_le_bytes());
    head.extend(xxh3_64(&head).to_le_bytes());
    head
}

/// Creates a file with its head.
pub(super) fn create_file(folder: &Path, kind: Kind, number: u32, change: u64) -> io::Result<File> {
    let path = folder.join(kind.name(number));
    let mut file = File::options()
        .create(true)
        .truncate(true)
        .read(true)
        .write(true)
        .open(path)?;
    file.write_all(&head(kind, number, change))?;
    Ok(file)
}

/// The change in a file's head. `None` if the head is damaged.
pub(super) fn read_head(file: &mut File, kind: Kind, number: u32) -> io::Result<Option<u64>> {
    let mut bytes = [0; HEAD as usize];
    file.seek(SeekFrom::Start(0))?;
    match file.read_exact(&mut bytes) {
        Ok(()) => {}
        Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => return Ok(None),
        Err(error) => return Err(error),
    }
    let mut change = [0; 8];
    change.copy_from_slice(&bytes[16..24]);
    let change = u64::from_le_bytes(change);
    Ok((bytes[..] == head(kind, number, change)).then_some(change))
}

/// The number of the last acknowledged change, in a file of its own that is overwritten in place.
pub(super) struct Acked {
    file: File,
    is_synced: bool,
}

impl Acked {
    fn path(folder: &Path) -> PathBuf {
        folder.join(ACKED)
    }

    pub fn create(folder: &Path, number: u64) -> io::Result<()> {
        let file = File::create(Acked::path(folder))?;
        let mut acked = Acked {
            file,
            is_synced: true,
        };
        acked.write(number)?;
        acked.sync()
    }

    pub fn open(folder: &Path) -> io::Result<Acked> {
        let file = File::options().write(true).open(Acked::path(folder))?;
        Ok(Acked {
            file,
            is_synced: true,
        })
    }

    /// The number, or why there is none.
    pub fn read(folder: &Path) -> Result<u64, String> {
        let bytes = match std::fs::read(Acked::path(folder)) {
            Ok(bytes) => bytes,
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                return Err("it is missing".to_owned());
            }
            Err(error) => return Err(error.to_string()),
        };
        let number = bytes.get(..8).and_then(|number| number.try_into().ok());
        let number = u64::from_le_bytes(number.ok_or("it is damaged")?);
        match bytes == Acked::bytes(number) {
            true => Ok(number),
            false => Err("it is damaged".to_owned()),
        }
    }

    fn bytes(number: u64) -> [u8; 16] {
        let mut bytes = [0; 16];
        bytes[..8].copy_from_slice(&number.to_le_bytes());
        let sum = xxh3_64(&bytes[..8]);
        bytes[8..].copy_from_slice(&sum.to_le_bytes());
        bytes
    }

    pub fn write(&mut self, number: u64) -> io::Result<()> {
        self.is_synced = false;
        self.file.seek(SeekFrom::Start(0))?;
        self.file.write_all(&Acked::bytes(number))
    }

    pub fn is_synced(&self) -> bool {
        self.is_synced
    }

    pub fn sync(&mut self) -> io::Result<()> {
        if !self.is_synced {
            self.file.sync_data()?;
            self.is_synced = true;
        }
        Ok(())
    }
}
