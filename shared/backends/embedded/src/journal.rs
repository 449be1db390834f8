//! The journal: one thread that writes all pending changes together, and syncs once for all of them.
//!
//! Changes are passed on in the order in which they were made in memory, while its lock is held; the author of a change
//! waits for its ticket. So a change that other callers could see is on disk no later than its consequences.

use std::collections::BTreeMap;
use std::fs::File;
use std::io;
use std::path::Path;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Arc, OnceLock};
use std::thread::JoinHandle;
use std::time::Duration;

use futures::channel::oneshot;
use swirl_ports::Error;

use crate::OpenError;
use crate::disk::{self, Disk, Gone, make};
use crate::key::{KINDS, Seq, Write};
use crate::state::State;

/// The maximum number of bytes written in one step, unless a single change is larger.
const BATCH_BYTES_MAX: usize = 8 << 20;
/// How many reads wait for the end of a batch.
const READS_MAX: usize = 64;
/// Without jobs for this time, what was left for later is done.
const IDLE: Duration = Duration::from_secs(1);
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

/// Reads history that was written before, and perhaps later changes.
struct Read {
    range: Keys,
    done: oneshot::Sender<Result<Pairs, Error>>,
}

/// Reads the history records of an instance from a number on, or backwards to it from the last one. After each record,
/// the caller decides whether to stop.
pub(crate) struct Keys {
    pub seq: Seq,
    pub from: u64,
    pub backwards: bool,
    pub is_enough: Box<IsEnough>,
}

/// Whether a record is the last one to read.
type IsEnough = dyn FnMut(&str, &[u8]) -> bool + Send;

type Pairs = Vec<(String, Vec<u8>)>;

/// Resolves when its change is on disk.
pub(crate) type Ticket<T> = oneshot::Receiver<Result<T, Error>>;

impl Journal {
    /// Opens a folder, and creates it if necessary. Restores every record except history.
    pub fn open(folder: &Path, state: &mut State) -> Result<Journal, OpenError> {
        let io = |error: io::Error| match error.kind() {
            io::ErrorKind::InvalidData => OpenError::Store(Error::Damaged {
                what: folder.display().to_string(),
                reason: error.to_string(),
            }),
            _ => OpenError::Io {
                folder: folder.to_owned(),
                error,
            },
        };
        make(folder).map_err(io)?;
        let lock = lock(folder)?;
        disk::create(folder).map_err(io)?;
        let place = disk::open_place(folder);
        let log_bytes = state.options.log_bytes;
        let loaded = disk::load(&place).map_err(io)?;
        let is_lenient = state.options.accept_loss;
        if !loaded.damage.is_empty() && !is_lenient {
            return Err(OpenError::Damaged {
                folder: folder.to_owned(),
                damage: loaded.damage,
            });
        }
        let mut gone = Gone::default();
        for kind in KINDS {
            let records = loaded.state.range(kind.to_owned()..);
            for (key, value) in records.take_while(|(key, _)| key.starts_with(kind)) {
                match state.restore(key, value) {
                    Ok(()) => {}
                    Err(error) if is_lenient => {
                        tracing::warn!("{error}: the record is lost");
                        gone.records.insert(key.clone());
                    }
                    Err(error) => return Err(error.into()),
                }
            }
        }
        if is_lenient {
            let tidied = gone.tidy(state, &loaded);
            if loaded.damage.is_empty() && gone.is_empty() {
                tracing::info!("{}: nothing is missing", folder.display());
            } else {
                for line in loaded.damage.iter().chain(&tidied) {
                    tracing::warn!("{line}");
                }
                let kept = disk::rebuild(folder, &loaded, &gone).map_err(io)?;
                tracing::warn!(
                    "{}: a new store was created from what is readable; the damaged files are kept in {kept}",
                    folder.display()
                );
                // The files that were just written.
                let loaded = disk::load(&place).map_err(io)?;
                return Journal::begin(Disk::open(place, loaded, log_bytes, lock).map_err(io)?, io);
            }
        }
        Journal::begin(Disk::open(place, loaded, log_bytes, lock).map_err(io)?, io)
    }

    fn begin(disk: Disk, io: impl FnOnce(io::Error) -> OpenError) -> Result<Journal, OpenError> {
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

    /// Returns the records up to the one that was enough, in the order of their keys.
    pub fn read(&self, range: Keys) -> Ticket<Pairs> {
        let (done, ticket) = oneshot::channel();
        self.send(Job::Read(Read { range, done }));
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

impl Disk {
    /// The next job. Meanwhile does what can wait until there is none.
    fn next(&mut self, jobs: &Receiver<Job>, failed: &OnceLock<Error>) -> Option<Job> {
        while self.is_busy() && failed.get().is_none() {
            match jobs.recv_timeout(IDLE) {
                Ok(job) => return Some(job),
                Err(RecvTimeoutError::Disconnected) => return None,
                Err(RecvTimeoutError::Timeout) => {
                    if let Err(error) = self.idle() {
                        let _ = failed.set(stopped(&error));
                    }
                }
            }
        }
        jobs.recv().ok()
    }

    fn serve(mut self, jobs: &Receiver<Job>, failed: &OnceLock<Error>) {
        let (mut waiting, mut reads) = (Vec::new(), Vec::new());
        while let Some(job) = self.next(jobs, failed) {
            // A record that was changed several times is written once.
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
            let result = self.write(&batch, failed);
            for done in waiting.drain(..) {
                let _ = done.send(result.clone());
            }
            for read in reads.drain(..) {
                self.answer(read);
            }
        }
    }

    fn answer(&mut self, read: Read) {
        let Keys {
            seq,
            from,
            backwards,
            is_enough,
        } = read.range;
        let records = self.history(seq, from, backwards, is_enough);
        let records = records.map_err(|error| Error::Damaged {
            what: format!("the history of instance number {seq}"),
            reason: error.to_string(),
        });
        // Nobody may wait for it any more.
        let _ = read.done.send(records);
    }

    fn write(
        &mut self,
        writes: &BTreeMap<String, Option<Vec<u8>>>,
        failed: &OnceLock<Error>,
    ) -> Result<(), Error> {
        if let Some(error) = failed.get() {
            return Err(error.clone());
        }
        if writes.is_empty() {
            return Ok(());
        }
        self.commit(writes).map_err(|error| {
            let error = stopped(&error);
            let _ = failed.set(error.clone());
            error
        })
    }
}

fn stopped(error: &io::Error) -> Error {
    Error::Unavailable(format!(
        "writing to disk failed ({error}); nothing is accepted until a restart"
    ))
}
