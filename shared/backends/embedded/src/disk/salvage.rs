//! Makes a new store of what is left of a damaged one.

use std::collections::BTreeSet;
use std::fs::File;
use std::io;
use std::path::Path;

use super::base::Sources;
use super::files::Kind;
use super::load::Loaded;
use super::place::{draft, free_name, new_store, open_place};
use crate::key::{HISTORY, Key, Seq};
use crate::state::State;

/// The kinds whose keys begin with an instance's number.
const OF_INSTANCES: [&str; 11] = [
    "header/",
    "instance/",
    "child/",
    "fork/",
    "forkstate/",
    "scope/",
    "result/",
    "inbox/",
    "outbox/",
    "wait/",
    "attempts/",
];

/// What is not taken over.
#[derive(Default)]
pub(crate) struct Gone {
    /// The keys of records that can't be read, or that belong to nothing.
    pub records: BTreeSet<String>,
    pub instances: BTreeSet<Seq>,
}

/// The instance that a record belongs to.
fn owner(key: &str) -> Option<Seq> {
    let kind = OF_INSTANCES
        .iter()
        .find_map(|kind| key.strip_prefix(kind))?;
    Seq::from_str_radix(kind.get(..16)?, 16).ok()
}

impl Gone {
    pub fn is_empty(&self) -> bool {
        self.records.is_empty() && self.instances.is_empty()
    }

    fn has(&self, key: &str) -> bool {
        self.records.contains(key) || owner(key).is_some_and(|seq| self.instances.contains(&seq))
    }

    /// Removes the instances without a state or root scope, and suspends those of which records may be missing.
    /// Returns what there is to say about it.
    pub fn tidy(&mut self, state: &mut State, loaded: &Loaded) -> Vec<String> {
        let mut lines = Vec::new();
        let incomplete: Vec<Seq> = {
            let instances = state.instances.iter().filter(|(seq, inst)| {
                let has_state = loaded.state.contains_key(&Key::State(**seq).text());
                let root = swirl_model::ids::ScopeId::root();
                !has_state || inst.scope(&root).is_none()
            });
            instances.map(|(seq, _)| *seq).collect()
        };
        for seq in incomplete {
            if let Some(inst) = state.instances.remove(&seq) {
                state.ids.remove(inst.id());
                lines.push(format!(
                    "instance {} is lost: its record is incomplete",
                    inst.id()
                ));
            }
        }
        // Their records are there, but not their headers.
        let owners = loaded.state.keys().filter_map(|key| owner(key));
        self.instances
            .extend(owners.filter(|seq| !state.instances.contains_key(seq)));
        let ids = &state.ids;
        let (held, free): (Vec<_>, Vec<_>) = std::mem::take(&mut state.named)
            .into_iter()
            .partition(|(_, holder)| ids.contains_key(&holder.instance));
        state.named = held.into_iter().collect();
        self.records
            .extend(free.into_iter().map(|(key, _)| Key::Named(key).text()));
        for seq in state.instances.keys().copied().collect::<Vec<_>>() {
            if !loaded.may_lack(seq) {
                continue;
            }
            if let Some(inst) = state.instances.get_mut(&seq)
                && !inst.over()
            {
                inst.instance.state.suspended = true;
                lines.push(format!(
                    "instance {} is suspended, since inputs or branches of it may be missing: look at it, then resume or \
                     cancel it",
                    inst.id()
                ));
            }
            state.touch(Key::State(seq));
        }
        lines
    }
}

impl Loaded {
    /// Whether records of an instance may have been among those that can't be read.
    fn may_lack(&self, seq: Seq) -> bool {
        self.unread.iter().any(|(after, before)| {
            OF_INSTANCES.iter().any(|kind| {
                let first = format!("{kind}{seq:016x}");
                // Histories follow all other records.
                let before = if before.starts_with(HISTORY) {
                    "\u{7f}"
                } else {
                    before
                };
                let is_state = !after.starts_with(HISTORY);
                is_state
                    && format!("{first}/~").as_str() > after.as_str()
                    && first.as_str() < before
            })
        })
    }
}

/// Writes what was read as a new store in the place of the damaged one, which is kept under another name. Returns that
/// name.
pub(crate) fn rebuild(folder: &Path, loaded: &Loaded, gone: &Gone) -> io::Result<String> {
    let place = open_place(folder);
    let mut sources = Sources::default();
    if place.is_dir() {
        for entry in std::fs::read_dir(&place)? {
            let entry = entry?;
            if let Some((_, number)) = entry.file_name().to_str().and_then(Kind::of) {
                sources.add(number, File::open(entry.path())?);
            }
        }
    }
    let draft = draft(folder)?;
    new_store(&draft, loaded.last, |writer| {
        for (key, value) in &loaded.state {
            if !gone.has(key) {
                writer.push(key, value)?;
            }
        }
        for (seq, at) in loaded.history.all() {
            if loaded.state.contains_key(&Key::Header(seq).text()) && !gone.instances.contains(&seq)
            {
                writer.push(&Key::History(seq, at.number).text(), &sources.read(at)?)?;
            }
        }
        Ok(())
    })?;
    let kept = free_name(folder, "records.damaged");
    if place.exists() {
        std::fs::rename(&place, &kept)?;
    }
    std::fs::rename(&draft, &place)?;
    super::frame::sync_folder(folder)?;
    Ok(kept.display().to_string())
}
