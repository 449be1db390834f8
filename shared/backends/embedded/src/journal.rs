//! The journal: one thread that writes all pending changes together, and syncs once for all of them.
//!
//! Changes are passed on in the order in which they were made in memory, while its lock is held; the author of a change
//! waits for its ticket. So a change that other callers could see is on disk no later than its consequences.

use std::collections::BTreeMap;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, OnceLock};
use std::thread::JoinHandle;

use fjall::{Database, Keyspace, KeyspaceCreateOptions, PersistMode};
use futures::channel::oneshot;
use swirl_ports::Error;

use crate::OpenError;
use crate::key::{HISTORY, KINDS, Write};

/// The maximum number of bytes written in one step, unless a single change is larger.
const BATCH_BYTES_MAX: usize = 8 << 20;
/// How many reads wait for the end of a batch.
const READS_MAX: usize = 64;
/// The size of the cache of read blocks. Everything except history is in memory anyway.
const CACHE_BYTES: u64 = 16 << 20;
/// The size of the memtable of each of the two spaces.
const MEMTABLE_BYTES: u64 = 16 << 20;
/// The limit on the write-ahead log on disk.
const LOG_BYTES: u64 = 128 << 20;
const LOCK_FILE: &str = "swirl.lock";

pub(crate) struct Journal {
    jobs: Option<Sender<Job>>,
    thread: Option<JoinHandle<()>>,
    failed: Arc<OnceLock<Error>>,
}

enum Job {
    Write {
        writes: Vec<Write>,
        done: oneshot::Sender<Result<(), Error>>,
    },
    Read(Read),
}

/// Reads all that was written before, and perhaps later changes.
enum Read {
    /// All records with this key prefix.
    All {
        prefix: String,
        done: oneshot::Sender<Result<Pairs, Error>>,
    },
    /// Reads records one after another, as far as they are wanted.
    Some {
        range: Keys,
        done: oneshot::Sender<Result<Pairs, Error>>,
    },
}

/// Reads keys with a common prefix: either from a given key on, or backwards from the last one. After each record, the
/// caller decides whether to stop.
pub(crate) struct Keys {
    pub prefix: String,
    pub from: String,
    pub backwards: bool,
    pub is_enough: Box<IsEnough>,
}

/// Whether a record is the last one to read.
type IsEnough = dyn FnMut(&str, &[u8]) -> bool + Send;

type Pairs = Vec<(String, Vec<u8>)>;

/// Restores a record that was read.
type Restore<'a> = dyn FnMut(&str, &[u8]) -> Result<(), Error> + 'a;

/// Creates the store's folder, private to the current user. A folder that exists already keeps its permissions, since
/// it may contain other files; the data below it is private nevertheless ([`tighten`]).
fn make(folder: &Path) -> std::io::Result<()> {
    let mut builder = std::fs::DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.create(folder)
}

/// Makes a store of an earlier build private, since it may be readable by everyone.
#[cfg(unix)]
fn tighten(place: &Path) -> std::io::Result<()> {
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
fn tighten(_: &Path) -> std::io::Result<()> {
    Ok(())
}

/// Resolves when its change is on disk.
pub(crate) type Ticket<T> = oneshot::Receiver<Result<T, Error>>;

impl Journal {
    /// Opens a folder, and creates it if necessary. `restore` gets every record except history.
    pub fn open(folder: &Path, restore: &mut Restore<'_>) -> Result<Journal, OpenError> {
        let io = |error| OpenError::Io {
            folder: folder.to_owned(),
            error,
        };
        make(folder).map_err(io)?;
        let lock = lock(folder)?;
        let disk = create(folder)
            .and_then(|()| Ok(tighten(&folder.join("data"))?))
            .and_then(|()| Disk::open(folder.join("data"), lock))
            .map_err(|error| match error {
                fjall::Error::Io(error) => io(error),
                error => OpenError::Store(Error::Damaged {
                    what: folder.display().to_string(),
                    reason: error.to_string(),
                }),
            })?;
        for kind in KINDS {
            for (key, value) in disk.read(kind)? {
                restore(&key, &value)?;
            }
        }
        let (jobs, receiver) = channel();
        let failed = Arc::new(OnceLock::new());
        let shared = failed.clone();
        let thread = std::thread::Builder::new()
            .name("swirl-journal".to_owned())
            .spawn(move || disk.serve(&receiver, &shared))
            .map_err(io)?;
        Ok(Journal {
            jobs: Some(jobs),
            thread: Some(thread),
            failed,
        })
    }

    /// Fails if a disk error has occurred. It fails all later operations, since the state in memory is ahead of the
    /// disk.
    pub fn check(&self) -> Result<(), Error> {
        self.failed.get().map_or(Ok(()), |error| Err(error.clone()))
    }

    /// Stops the store as a disk error does, because the state in memory can't be trusted any more.
    pub fn fail(&self, error: Error) {
        let _ = self.failed.set(error);
    }

    pub fn write(&self, writes: Vec<Write>) -> Ticket<()> {
        let (done, ticket) = oneshot::channel();
        self.send(Job::Write { writes, done });
        ticket
    }

    pub fn read(&self, prefix: String) -> Ticket<Pairs> {
        let (done, ticket) = oneshot::channel();
        self.send(Job::Read(Read::All { prefix, done }));
        ticket
    }

    /// Returns the records up to the one that was enough, in the order of their keys.
    pub fn read_some(&self, range: Keys) -> Ticket<Pairs> {
        let (done, ticket) = oneshot::channel();
        self.send(Job::Read(Read::Some { range, done }));
        ticket
    }

    fn send(&self, job: Job) {
        // If the thread is gone, the job is dropped together with the ticket's sender.
        if let Some(jobs) = &self.jobs {
            let _ = jobs.send(job);
        }
    }
}

/// Waits for a ticket. Fails if the journal has stopped.
pub(crate) async fn redeem<T>(ticket: Ticket<T>) -> Result<T, Error> {
    let gone = || Error::Unavailable("the journal has stopped".to_owned());
    ticket.await.map_err(|_| gone())?
}

impl Drop for Journal {
    /// Writes all pending changes, then releases the folder.
    fn drop(&mut self) {
        self.jobs = None;
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// Locks the folder as long as the file is open, so the lock ends with the process.
fn lock(folder: &Path) -> Result<File, OpenError> {
    let path = folder.join(LOCK_FILE);
    let io = |error| OpenError::Io {
        folder: folder.to_owned(),
        error,
    };
    let file = File::options()
        .create(true)
        .truncate(false)
        .write(true)
        .open(path)
        .map_err(io)?;
    match file.try_lock() {
        Ok(()) => Ok(file),
        Err(std::fs::TryLockError::WouldBlock) => Err(OpenError::Locked {
            folder: folder.to_owned(),
        }),
        Err(std::fs::TryLockError::Error(error)) => Err(io(error)),
    }
}

fn pair(what: &str, guard: fjall::Guard) -> Result<(String, Vec<u8>), Error> {
    let damaged = |reason: String| Error::Damaged {
        what: format!("records {what}"),
        reason,
    };
    let (key, value) = guard
        .into_inner()
        .map_err(|error| damaged(error.to_string()))?;
    let key = String::from_utf8(key.to_vec())
        .map_err(|_| damaged("a key isn't UTF-8 text".to_owned()))?;
    Ok((key, value.to_vec()))
}

struct Disk {
    // Fields are dropped in this order, so the lock comes last.
    state: Keyspace,
    history: Keyspace,
    db: Database,
    _lock: File,
}

/// Creates the store next to its final place, and moves it there when complete. If the process dies meanwhile, it
/// leaves no folder that cannot be opened.
fn create(folder: &Path) -> fjall::Result<()> {
    let place = folder.join("data");
    if place.exists() {
        return Ok(());
    }
    let draft = folder.join("data.new");
    if draft.exists() {
        std::fs::remove_dir_all(&draft)?;
    }
    make(&draft)?;
    let db = Database::builder(&draft).worker_threads(1).open()?;
    for name in ["state", "history"] {
        db.keyspace(name, options)?;
    }
    db.persist(PersistMode::SyncAll)?;
    drop(db);
    std::fs::rename(&draft, &place)?;
    File::open(folder)?.sync_all()?;
    Ok(())
}

fn options() -> KeyspaceCreateOptions {
    KeyspaceCreateOptions::default().max_memtable_size(MEMTABLE_BYTES)
}

impl Disk {
    fn open(path: PathBuf, lock: File) -> fjall::Result<Disk> {
        let db = Database::builder(path)
            .cache_size(CACHE_BYTES)
            .max_journaling_size(LOG_BYTES)
            .worker_threads(1)
            .open()?;
        let state = db.keyspace("state", options)?;
        let history = db.keyspace("history", options)?;
        Ok(Disk {
            state,
            history,
            db,
            _lock: lock,
        })
    }

    fn space(&self, key: &str) -> &Keyspace {
        if key.starts_with(HISTORY) {
            &self.history
        } else {
            &self.state
        }
    }

    fn read(&self, prefix: &str) -> Result<Pairs, Error> {
        let all = self.space(prefix).prefix(prefix);
        all.map(|guard| pair(prefix, guard)).collect()
    }

    fn read_some(&self, mut range: Keys) -> Result<Pairs, Error> {
        let prefix = range.prefix.as_str();
        // No key contains such a character.
        let all = self
            .space(prefix)
            .range(range.from..format!("{prefix}\u{7f}"));
        let all: Box<dyn Iterator<Item = fjall::Guard>> = match range.backwards {
            true => Box::new(all.rev()),
            false => Box::new(all),
        };
        let mut pairs = Vec::new();
        for guard in all {
            let (key, value) = pair(prefix, guard)?;
            let is_enough = (range.is_enough)(&key, &value);
            pairs.push((key, value));
            if is_enough {
                break;
            }
        }
        if range.backwards {
            pairs.reverse();
        }
        Ok(pairs)
    }

    fn serve(self, jobs: &Receiver<Job>, failed: &OnceLock<Error>) {
        let (mut waiting, mut reads) = (Vec::new(), Vec::new());
        while let Ok(job) = jobs.recv() {
            // Within a batch all records have the same version, so each key may occur only once.
            let mut batch = BTreeMap::new();
            let mut bytes = 0;
            let mut next = Some(job);
            while let Some(job) = next.take() {
                match job {
                    Job::Write { writes, done } => {
                        for write in writes {
                            bytes += write.key.len() + write.value.as_ref().map_or(0, Vec::len);
                            batch.insert(write.key, write.value);
                        }
                        waiting.push(done);
                    }
                    // Nothing comes before it.
                    Job::Read(read) if waiting.is_empty() => self.answer(read),
                    // A batch that ended here would have fewer changes than could share its sync.
                    Job::Read(read) => reads.push(read),
                }
                if bytes < BATCH_BYTES_MAX && reads.len() < READS_MAX {
                    next = jobs.try_recv().ok();
                }
            }
            let result = self.commit(batch, failed);
            for done in waiting.drain(..) {
                let _ = done.send(result.clone());
            }
            for read in reads.drain(..) {
                self.answer(read);
            }
        }
    }

    fn answer(&self, read: Read) {
        // Nobody may wait for it any more.
        match read {
            Read::All { prefix, done } => drop(done.send(self.read(&prefix))),
            Read::Some { range, done } => drop(done.send(self.read_some(range))),
        }
    }

    fn commit(
        &self,
        writes: BTreeMap<String, Option<Vec<u8>>>,
        failed: &OnceLock<Error>,
    ) -> Result<(), Error> {
        if let Some(error) = failed.get() {
            return Err(error.clone());
        }
        if writes.is_empty() {
            return Ok(());
        }
        let mut batch = self.db.batch().durability(Some(PersistMode::SyncData));
        for (key, value) in writes {
            let space = self.space(&key);
            match value {
                Some(value) => batch.insert(space, key, value),
                None => batch.remove(space, key),
            }
        }
        batch.commit().map_err(|error| {
            let error = Error::Unavailable(format!(
                "writing to disk failed ({error}); nothing is accepted until a restart"
            ));
            let _ = failed.set(error.clone());
            error
        })
    }
}
