//! The base: one record of each key, in the order of the keys, and then the histories. It is written once.

use std::collections::{BTreeMap, HashMap};
use std::fs::File;
use std::io::{self, Write};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};

use super::files::{self, Complete, Kind};
use super::frame::{Draft, Next, Reader, damaged, read_value, sync_folder};
use super::history::{At, History, parse};
use crate::key::Key;

/// The size of a frame. Damage makes at least one frame unreadable.
const FRAME_BYTES: usize = 16 << 10;

pub(super) struct Writer {
    file: io::BufWriter<File>,
    number: u32,
    frames: u64,
    offset: u64,
    draft: Draft,
    history: History,
}

impl Writer {
    /// Begins a base with the records as of the change `through`.
    pub fn new(folder: &Path, number: u32, through: u64) -> io::Result<Writer> {
        let file = files::create_file(folder, Kind::Base, number, through)?;
        Ok(Writer {
            file: io::BufWriter::with_capacity(1 << 20, file),
            number,
            frames: 0,
            offset: files::HEAD,
            draft: Draft::new(),
            history: History::default(),
        })
    }

    pub fn push(&mut self, key: &str, value: &[u8]) -> io::Result<()> {
        let place = self.draft.push(key, Some(value))?;
        if let Some((seq, number)) = parse(key) {
            let at = At {
                number,
                offset: self.offset + place as u64,
                // `push` has refused more.
                length: value.len() as u32,
                file: self.number,
            };
            self.history.insert(seq, at);
        }
        match self.draft.len() >= FRAME_BYTES {
            true => self.end_frame(),
            false => Ok(()),
        }
    }

    fn end_frame(&mut self) -> io::Result<()> {
        self.frames += 1;
        self.file
            .write_all(self.draft.seal(self.number, self.frames, 0)?)?;
        self.offset += self.draft.len() as u64;
        self.draft.clear();
        Ok(())
    }

    pub fn finish(mut self, folder: &Path) -> io::Result<(Complete, History)> {
        if !self.draft.is_empty() {
            self.end_frame()?;
        }
        let file = self.file.into_inner().map_err(|error| error.into_error())?;
        file.sync_all()?;
        sync_folder(folder)?;
        let complete = Complete {
            number: self.number,
            first: 1,
            last: self.frames,
            bytes: self.offset,
        };
        Ok((complete, self.history))
    }
}

/// The open files of a folder, for reading single values.
#[derive(Default)]
pub(super) struct Sources(HashMap<u32, File>);

impl Sources {
    pub fn add(&mut self, number: u32, file: File) {
        self.0.insert(number, file);
    }

    pub fn remove(&mut self, number: u32) {
        self.0.remove(&number);
    }

    pub fn read(&mut self, at: &At) -> io::Result<Vec<u8>> {
        let file = self.0.get_mut(&at.file);
        let file = file.ok_or_else(|| damaged(format!("file {} is missing", at.file)))?;
        read_value(file, at.offset, at.length)
    }
}

/// Merges files, which follow one another, into a new base. Returns `None` if it was stopped.
pub(super) fn merge(
    folder: &Path,
    from: &[(Kind, u32)],
    number: u32,
    through: u64,
    stop: &AtomicBool,
) -> io::Result<Option<(Complete, History)>> {
    let mut records: BTreeMap<String, At> = BTreeMap::new();
    let (mut history, mut sources) = (History::default(), Sources::default());
    for (kind, file) in from {
        let path = folder.join(kind.name(*file));
        let mut reader = Reader::new(File::open(&path)?, *file, files::HEAD)?;
        loop {
            let frame = match reader.next()? {
                Next::Frame(frame) => frame,
                Next::End => break,
                Next::Broken => return Err(broken(&path, reader.end)),
            };
            if stop.load(Ordering::Relaxed) {
                return Ok(None);
            }
            let pairs = frame.pairs().ok_or_else(|| broken(&path, frame.start))?;
            for pair in pairs {
                let at = |number, (value, offset): (&[u8], u64)| At {
                    number,
                    offset,
                    length: value.len() as u32,
                    file: *file,
                };
                match (parse(pair.key), pair.value) {
                    (Some((seq, n)), Some(value)) => history.insert(seq, at(n, value)),
                    (Some((seq, n)), None) => history.remove(seq, n),
                    (None, Some(value)) => {
                        records.insert(pair.key.to_owned(), at(0, value));
                    }
                    (None, None) => {
                        records.remove(pair.key);
                    }
                }
            }
        }
        sources.add(*file, File::open(path)?);
    }
    let mut writer = Writer::new(folder, number, through)?;
    let history = history
        .all()
        .map(|(seq, at)| (Key::History(seq, at.number).text(), *at));
    for (key, at) in records.into_iter().chain(history) {
        if stop.load(Ordering::Relaxed) {
            return Ok(None);
        }
        writer.push(&key, &sources.read(&at)?)?;
    }
    writer.finish(folder).map(Some)
}

fn broken(path: &Path, at: u64) -> io::Error {
    let path = path.display();
    damaged(format!("{path} is damaged at byte {at}"))
}
