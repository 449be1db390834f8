//! Reads and checks everything. Nothing is changed here.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::io;
use std::path::Path;

use swirl_model::time::Timestamp;

use super::files::{self, Acked, Complete, Kind, Manifest};
use super::frame::{Frame, Next, Reader};
use super::history::{At, History, parse};

/// After the last key of a base.
const LAST_KEY: &str = "\u{7f}";

/// What the files contain.
#[derive(Default)]
pub(crate) struct Loaded {
    pub(super) manifest: Option<Manifest>,
    /// All records except history.
    pub state: BTreeMap<String, Vec<u8>>,
    pub(super) history: History,
    /// The last change.
    pub(super) last: u64,
    last_at_ms: u64,
    /// Where the next change goes in the log that is being written.
    pub(super) end: u64,
    /// The bytes after that: of a change that was not acknowledged.
    pub(super) torn: u64,
    /// What is wrong, a line for each place.
    pub damage: Vec<String>,
    /// Between these keys, records of the base are unreadable.
    pub(super) unread: Vec<(String, String)>,
}

/// A file to read.
struct Plan {
    kind: Kind,
    number: u32,
    /// The first change of a log.
    first: u64,
    /// `None` if it isn't complete, or the manifest is damaged.
    complete: Option<Complete>,
    is_last: bool,
}

/// Reads the files of a store. Fails only if the system can't read them.
pub(crate) fn load(folder: &Path) -> io::Result<Loaded> {
    let mut loaded = Loaded::default();
    let acked = Acked::read(folder).unwrap_or_else(|reason| {
        loaded.damage.push(format!(
            "{}: {reason}. It says which changes must be there",
            folder.join("acked").display()
        ));
        0
    });
    let (through, plan) = match Manifest::read(folder) {
        Ok(manifest) => {
            let plan = planned(&manifest);
            let through = manifest.through;
            loaded.manifest = Some(manifest);
            (through, plan)
        }
        Err(reason) => {
            loaded.damage.push(format!(
                "{}: {reason}. It says which files must be there",
                folder.join(files::MANIFEST).display()
            ));
            found(folder)?
        }
    };
    loaded.last = through;
    for file in &plan {
        let path = folder.join(file.kind.name(file.number));
        let opened = match File::open(&path) {
            Ok(opened) => Some(opened),
            Err(error) if error.kind() == io::ErrorKind::NotFound => None,
            Err(error) => return Err(error),
        };
        let whole = match file.kind {
            Kind::Base => loaded.read_base(file, through, opened)?,
            Kind::Log => loaded.read_log(file, opened, acked)?,
        };
        if let Err(reason) = whole {
            let mut line = format!("{}: {reason}", path.display());
            if file.kind == Kind::Log {
                line += &loaded.lost(acked);
            }
            loaded.damage.push(line);
            if file.kind == Kind::Log {
                // Later changes rest on those that are missing.
                break;
            }
        }
    }
    if loaded.damage.is_empty() && loaded.last < acked {
        let line = format!("{}{}", folder.display(), loaded.lost(acked));
        loaded.damage.push(line);
    }
    Ok(loaded)
}

fn planned(manifest: &Manifest) -> Vec<Plan> {
    let base = Plan {
        kind: Kind::Base,
        number: manifest.base.number,
        first: 1,
        complete: Some(manifest.base.clone()),
        is_last: false,
    };
    let logs = manifest.logs.iter().map(|log| Plan {
        kind: Kind::Log,
        number: log.number,
        first: log.first,
        complete: Some(log.clone()),
        is_last: false,
    });
    let active = Plan {
        kind: Kind::Log,
        number: manifest.active,
        first: manifest.first,
        complete: None,
        is_last: true,
    };
    [base].into_iter().chain(logs).chain([active]).collect()
}

/// The files that probably belong to the store, if the manifest doesn't say: the newest base, and the logs after it.
fn found(folder: &Path) -> io::Result<(u64, Vec<Plan>)> {
    if !folder.exists() {
        return Ok((0, Vec::new()));
    }
    let mut names = BTreeSet::new();
    for entry in std::fs::read_dir(folder)? {
        let name = entry?.file_name();
        names.extend(
            name.to_str()
                .and_then(Kind::of)
                .map(|(kind, n)| (n, kind == Kind::Base)),
        );
    }
    let (mut through, mut plan) = (0, Vec::new());
    for (number, is_base) in names {
        let kind = if is_base { Kind::Base } else { Kind::Log };
        let mut file = File::open(folder.join(kind.name(number)))?;
        let Some(first) = files::read_head(&mut file, kind, number)? else {
            continue;
        };
        if is_base {
            through = first;
            plan.retain(|earlier: &Plan| earlier.kind == Kind::Log);
        }
        plan.push(Plan {
            kind,
            number,
            first,
            complete: None,
            is_last: false,
        });
    }
    plan.retain(|file| file.kind == Kind::Base || file.first > through);
    plan.sort_by_key(|file| (file.kind == Kind::Log, file.first));
    if let Some(last) = plan.last_mut() {
        last.is_last = true;
    }
    Ok((through, plan))
}

/// Whether a file is whole, or what is wrong with it.
type Whole = Result<(), String>;

impl Loaded {
    /// Says which changes are lost.
    fn lost(&self, acked: u64) -> String {
        let after = match self.last_at_ms {
            0 => String::new(),
            at => format!(" (after {})", Timestamp(at as i64)),
        };
        match acked.saturating_sub(self.last) {
            0 => format!(". Changes after number {}{after} may be missing", self.last),
            1 => format!(". The last change{after} is missing"),
            lost => format!(". The last {lost} of {acked} changes{after} are missing"),
        }
    }

    fn read_log(&mut self, plan: &Plan, file: Option<File>, acked: u64) -> io::Result<Whole> {
        let Some(mut file) = file else {
            return Ok(Err("it is missing".to_owned()));
        };
        let first = files::read_head(&mut file, Kind::Log, plan.number)?;
        if first != Some(plan.first) || plan.first != self.last + 1 {
            return Ok(Err("its beginning is damaged".to_owned()));
        }
        let mut reader = Reader::new(file, plan.number, files::HEAD)?;
        self.end = files::HEAD;
        let (mut is_broken, mut is_foreign) = (false, false);
        loop {
            let frame = match reader.next()? {
                Next::Frame(frame) => frame,
                Next::End => break,
                Next::Broken => {
                    is_broken = true;
                    break;
                }
            };
            if frame.number != self.last + 1 || !self.apply(&frame, plan.number) {
                is_foreign = true;
                break;
            }
            (self.last, self.last_at_ms, self.end) = (frame.number, frame.at_ms, reader.end);
        }
        let at = self.end;
        let damaged = || Ok(Err(format!("it is damaged at byte {at}")));
        if is_foreign {
            return damaged();
        }
        let is_short = match (&plan.complete, plan.is_last) {
            (Some(complete), _) => self.last != complete.last || reader.size != complete.bytes,
            (None, true) => self.last < acked,
            (None, false) => is_broken,
        };
        match (is_short, is_broken) {
            (true, true) => return damaged(),
            (true, false) => return Ok(Err(format!("it ends at byte {at}"))),
            (false, _) => {}
        }
        // A change is written when the one before it is on disk, so only one can have been cut.
        if is_broken && reader.skip()? {
            return damaged();
        }
        self.torn = reader.size - self.end;
        Ok(Ok(()))
    }

    fn read_base(&mut self, plan: &Plan, through: u64, file: Option<File>) -> io::Result<Whole> {
        let everything = || (String::new(), LAST_KEY.to_owned());
        let Some(mut file) = file else {
            self.unread.push(everything());
            return Ok(Err("it is missing, with most records".to_owned()));
        };
        let head = files::read_head(&mut file, Kind::Base, plan.number)?;
        let mut whole = match head == Some(through) {
            true => Ok(()),
            false => Err("its beginning is damaged".to_owned()),
        };
        let mut reader = Reader::new(file, plan.number, files::HEAD)?;
        let (mut last, mut last_key, mut is_gap) = (0, String::new(), false);
        loop {
            match reader.next()? {
                Next::Frame(frame) => {
                    let pairs = frame.pairs().unwrap_or_default();
                    let first = pairs.first().map_or("", |pair| pair.key);
                    if is_gap || frame.number != last + 1 {
                        self.unread.push((last_key, first.to_owned()));
                        is_gap = false;
                    }
                    last = frame.number;
                    last_key = pairs.last().map_or("", |pair| pair.key).to_owned();
                    drop(pairs);
                    self.apply(&frame, plan.number);
                }
                Next::End => break,
                Next::Broken => {
                    let at = reader.end;
                    whole = whole.and(Err(format!("it is damaged at byte {at}")));
                    is_gap = true;
                    if !reader.skip()? {
                        break;
                    }
                }
            }
        }
        let expected = plan.complete.as_ref();
        let is_long = expected.is_none_or(|base| base.last == last && base.bytes == reader.size);
        if is_gap || !is_long {
            self.unread.push((last_key, LAST_KEY.to_owned()));
            let at = reader.end;
            whole = whole.and(Err(format!("it ends at byte {at}")));
        }
        Ok(whole)
    }

    /// Takes over the records of a frame. Returns false if they can't be read.
    fn apply(&mut self, frame: &Frame, file: u32) -> bool {
        let Some(pairs) = frame.pairs() else {
            return false;
        };
        for pair in pairs {
            match (parse(pair.key), pair.value) {
                (Some((seq, number)), Some((value, offset))) => {
                    let length = value.len() as u32;
                    let at = At {
                        number,
                        offset,
                        length,
                        file,
                    };
                    self.history.insert(seq, at);
                }
                (Some((seq, number)), None) => self.history.remove(seq, number),
                (None, Some((value, _))) => match self.state.get_mut(pair.key) {
                    Some(found) => *found = value.to_vec(),
                    None => {
                        self.state.insert(pair.key.to_owned(), value.to_vec());
                    }
                },
                (None, None) => {
                    self.state.remove(pair.key);
                }
            }
        }
        true
    }
}
