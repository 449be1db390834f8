//! Writes changes to the log, begins a new log when one is long enough, and merges logs into the base when they are
//! longer than the base.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, Seek, SeekFrom, Write};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::{SystemTime, UNIX_EPOCH};

use super::base::{self, Sources};
use super::files::{self, Acked, Complete, Kind, Manifest};
use super::frame::{Draft, damaged};
use super::history::{At, History, parse};
use super::load::Loaded;
use crate::key::{Key, Seq};

/// A merge that is running in a thread of its own.
struct Merging {
    thread: JoinHandle<io::Result<Option<(Complete, History)>>>,
    stop: Arc<AtomicBool>,
    /// The number of the new base.
    number: u32,
    through: u64,
    from: Vec<(Kind, u32)>,
}

pub(crate) struct Disk {
    folder: PathBuf,
    manifest: Manifest,
    log: File,
    log_bytes: u64,
    log_bytes_max: u64,
    /// The last change.
    last: u64,
    acked: Acked,
    history: History,
    /// All files, for reading history.
    sources: Sources,
    /// The number of the next file.
    next_file: u32,
    merging: Option<Merging>,
    /// A merge that failed is tried again after a restart.
    merges: bool,
    // Dropped last.
    _lock: File,
}

impl Disk {
    /// Goes on where the files end. Removes what doesn't belong to the store: a change that was not acknowledged, and
    /// files of an interrupted merge.
    pub fn open(
        folder: PathBuf,
        loaded: Loaded,
        log_bytes_max: u64,
        lock: File,
    ) -> io::Result<Disk> {
        let manifest = loaded.manifest;
        let manifest = manifest.ok_or_else(|| damaged("there is no manifest".to_owned()))?;
        let mut log = File::options()
            .read(true)
            .write(true)
            .open(folder.join(Kind::Log.name(manifest.active)))?;
        if loaded.torn > 0 {
            tracing::warn!(
                "{}: removed the last {} bytes, the beginning of a change that was interrupted and never acknowledged",
                folder.display(),
                loaded.torn
            );
            log.set_len(loaded.end)?;
            log.sync_all()?;
        }
        log.seek(SeekFrom::Start(loaded.end))?;
        let mut sources = Sources::default();
        for (kind, number) in manifest.numbers() {
            sources.add(number, File::open(folder.join(kind.name(number)))?);
        }
        let mut next_file = 0;
        for entry in std::fs::read_dir(&folder)? {
            let entry = entry?;
            let name = entry.file_name();
            let found = name.to_str().and_then(Kind::of);
            if let Some((kind, number)) = found {
                next_file = next_file.max(number + 1);
                if !manifest.numbers().any(|known| known == (kind, number)) {
                    std::fs::remove_file(entry.path())?;
                }
            }
        }
        let mut acked = Acked::open(&folder)?;
        acked.write(loaded.last)?;
        Ok(Disk {
            log,
            log_bytes: loaded.end,
            log_bytes_max,
            last: loaded.last,
            acked,
            history: loaded.history,
            sources,
            next_file,
            merging: None,
            merges: true,
            manifest,
            folder,
            _lock: lock,
        })
    }

    /// Writes a change. When this returns, it is on disk.
    pub fn commit(&mut self, writes: &BTreeMap<String, Option<Vec<u8>>>) -> io::Result<()> {
        let mut draft = Draft::new();
        let mut moved = Vec::new();
        for (key, value) in writes {
            let place = draft.push(key, value.as_deref())?;
            if let Some((seq, number)) = parse(key) {
                let at = value.as_ref().map(|value| At {
                    number,
                    offset: self.log_bytes + place as u64,
                    length: value.len() as u32,
                    file: self.manifest.active,
                });
                moved.push((seq, number, at));
            }
        }
        let number = self.last + 1;
        self.log
            .write_all(draft.seal(self.manifest.active, number, now_ms())?)?;
        self.log.sync_data()?;
        self.log_bytes += draft.len() as u64;
        self.last = number;
        self.acked.write(number)?;
        for (seq, number, at) in moved {
            match at {
                Some(at) => self.history.insert(seq, at),
                None => self.history.remove(seq, number),
            }
        }
        if self.log_bytes >= self.log_bytes_max {
            self.begin_log()?;
        }
        self.tend()
    }

    /// Whether [`Disk::idle`] has something to do.
    pub fn is_busy(&self) -> bool {
        !self.acked.is_synced() || self.merging.is_some()
    }

    /// Call it when there has been nothing to do for a while.
    pub fn idle(&mut self) -> io::Result<()> {
        self.acked.sync()?;
        self.tend()
    }

    fn begin_log(&mut self) -> io::Result<()> {
        let (active, first) = (self.next_file, self.last + 1);
        self.next_file += 1;
        let log = files::create_file(&self.folder, Kind::Log, active, first)?;
        log.sync_all()?;
        let mut manifest = self.manifest.clone();
        manifest.logs.push(Complete {
            number: manifest.active,
            first: manifest.first,
            last: self.last,
            bytes: self.log_bytes,
        });
        (manifest.active, manifest.first) = (active, first);
        manifest.write(&self.folder)?;
        self.manifest = manifest;
        let path = self.folder.join(Kind::Log.name(active));
        self.sources.add(active, File::open(path)?);
        (self.log, self.log_bytes) = (log, files::HEAD);
        Ok(())
    }

    /// Begins and ends merges.
    fn tend(&mut self) -> io::Result<()> {
        match self.merging.take_if(|merging| merging.thread.is_finished()) {
            Some(merging) => self.end_merge(merging),
            None if self.merging.is_none() && self.merges && self.is_merge_due() => {
                self.begin_merge()
            }
            None => Ok(()),
        }
    }

    /// The base is written anew when the logs are longer, so each record is copied a few times at most.
    fn is_merge_due(&self) -> bool {
        let logs: u64 = self.manifest.logs.iter().map(|log| log.bytes).sum();
        logs >= self.manifest.base.bytes.max(2 * self.log_bytes_max)
    }

    fn begin_merge(&mut self) -> io::Result<()> {
        let Some(last) = self.manifest.logs.last() else {
            return Ok(());
        };
        let through = last.last;
        let logs = self.manifest.logs.iter().map(|log| (Kind::Log, log.number));
        let base = (Kind::Base, self.manifest.base.number);
        let from: Vec<_> = [base].into_iter().chain(logs).collect();
        let number = self.next_file;
        self.next_file += 1;
        let stop = Arc::new(AtomicBool::new(false));
        let thread = {
            let (folder, from, stop) = (self.folder.clone(), from.clone(), stop.clone());
            std::thread::Builder::new()
                .name("swirl-merge".to_owned())
                .spawn(move || base::merge(&folder, &from, number, through, &stop))?
        };
        self.merging = Some(Merging {
            thread,
            stop,
            number,
            through,
            from,
        });
        Ok(())
    }

    fn end_merge(&mut self, merging: Merging) -> io::Result<()> {
        let merged = merging.thread.join();
        let merged = merged.unwrap_or_else(|_| Err(io::Error::other("it stopped half-way")));
        let (base, copies) = match merged {
            Ok(Some(merged)) => merged,
            Ok(None) => return Ok(()),
            Err(error) => {
                // What is in memory is right, so work goes on.
                self.merges = false;
                tracing::error!(
                    %error,
                    "{}: older changes can't be merged, so the folder grows. If its files are damaged, the next start is refused: back them up, and export what you need",
                    self.folder.display()
                );
                return Ok(());
            }
        };
        let mut manifest = self.manifest.clone();
        let number = base.number;
        (manifest.base, manifest.through) = (base, merging.through);
        manifest.logs.retain(|log| log.first > merging.through);
        manifest.write(&self.folder)?;
        self.manifest = manifest;
        let path = self.folder.join(Kind::Base.name(number));
        self.sources.add(number, File::open(path)?);
        let from: Vec<u32> = merging.from.iter().map(|(_, number)| *number).collect();
        self.history.moved(&copies, &from);
        for (kind, number) in merging.from {
            self.sources.remove(number);
            std::fs::remove_file(self.folder.join(kind.name(number)))?;
        }
        Ok(())
    }

    /// Reads the history records of an instance from a number on, in order or backwards, as far as they are wanted.
    pub fn history(
        &mut self,
        seq: Seq,
        from: u64,
        backwards: bool,
        mut is_enough: impl FnMut(&str, &[u8]) -> bool,
    ) -> io::Result<Vec<(String, Vec<u8>)>> {
        let places = self.history.from(seq, from);
        let places: Box<dyn Iterator<Item = &At>> = match backwards {
            true => Box::new(places.rev()),
            false => Box::new(places),
        };
        let mut records = Vec::new();
        for at in places {
            let key = Key::History(seq, at.number).text();
            let value = self
                .sources
                .read(at)
                .map_err(|error| io::Error::new(error.kind(), format!("{key}: {error}")))?;
            let is_last = is_enough(&key, &value);
            records.push((key, value));
            if is_last {
                break;
            }
        }
        if backwards {
            records.reverse();
        }
        Ok(records)
    }
}

impl Drop for Disk {
    fn drop(&mut self) {
        let _ = self.acked.sync();
        if let Some(merging) = self.merging.take() {
            merging.stop.store(true, Ordering::Relaxed);
            let _ = merging.thread.join();
            let draft = self.folder.join(Kind::Base.name(merging.number));
            let _ = std::fs::remove_file(draft);
        }
    }
}

/// The time is only for messages about changes that are lost.
fn now_ms() -> u64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH);
    now.map_or(0, |now| now.as_millis() as u64)
}
