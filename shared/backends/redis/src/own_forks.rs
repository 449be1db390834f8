//! What a commit does to the scope's own forks. Branches don't change the scope's record, so the numbers of a fork that
//! is extended or revived are guarded, and so are those of a fork that is removed because all its branches are gone. A
//! fork with branches left is closed by the function that writes, whatever its branches do meanwhile.

use serde::Serialize;

use crate::commit_parts::ForkCommand;
use crate::draft::Draft;
use crate::plan_input::{PlanInput, Unplanned};
use crate::size::kib;
use crate::snapshot::{Numbers, OwnFork, Snapshot};

/// An input for another scope: scope, id, kind, input.
pub(crate) type Put = (String, String, &'static str, String);

#[derive(Debug, Default)]
pub(crate) struct ForkChange {
    /// The numbers of the forks that are left.
    pub text: Option<String>,
    /// Forks that the function closes.
    pub closes: Vec<String>,
    /// Branches that may begin.
    pub begins: Vec<String>,
    /// Branches that get an input, or may not begin after all.
    pub woken: Vec<String>,
    pub puts: Vec<Put>,
    /// Inputs for the scope itself, with their ids: forks that are complete.
    pub joined: Vec<(String, String)>,
    /// The KiB that the instance gains.
    pub gain: i64,
    /// The number of removed fields that are neither compared nor read.
    pub uncounted: usize,
    /// Bytes of the origin of the fork that is made last.
    pub fork_bytes: usize,
}

/// A fork that the commit changes.
struct Changed {
    fork: u32,
    numbers: Numbers,
    state: State,
}

enum State {
    /// It begins with this record.
    Made(Vec<u8>),
    /// It exists, and its numbers are still the same.
    Same,
    Changed,
    /// All its branches are gone, and so is the fork.
    Removed,
}

/// `gone`: nothing of the scope is kept, so its other forks are closed too. Those of a root are closed by the end of the
/// instance.
pub(crate) fn change(
    draft: &mut Draft<'_>,
    input: &mut PlanInput<'_>,
    known: &Snapshot,
    gone: bool,
) -> Result<ForkChange, Unplanned> {
    let is_root = draft.scope == "r";
    if input.parts.forks.is_empty() && !gone {
        return Ok(ForkChange {
            text: known.forks.clone(),
            ..ForkChange::default()
        });
    }
    let before = known.forks.as_deref().unwrap_or_default();
    draft.compare_own("F:", before.as_bytes());
    let mut forks = Forks {
        scope: draft.scope,
        known,
        gone,
        stamp: input.stamp,
        numbers: numbers(before)?,
        changed: Vec::new(),
        removed_results: Vec::new(),
        change: ForkChange::default(),
    };
    let mut records = std::mem::take(&mut input.forks).into_iter();
    let mut revivals = std::mem::take(&mut input.revivals).into_iter();
    for command in &input.parts.forks {
        match command {
            ForkCommand::Make(fork) => {
                let record = records.next().unwrap_or_default();
                forks.make(fork, record);
            }
            ForkCommand::Close(fork) => forks.close(*fork)?,
            ForkCommand::Extend { fork, open, needed } => forks.extend(*fork, *open, *needed)?,
            ForkCommand::Revive {
                fork,
                index,
                others,
                ..
            } => {
                if let Some(revival) = revivals.next() {
                    let put = |branch: String| {
                        let (id, input) = (revival.id.clone(), revival.input.clone());
                        (branch, id, revival.kind, input)
                    };
                    forks.revive(*fork, *index, *others, put)?;
                }
            }
        }
    }
    if gone && !is_root {
        let left = forks.numbers.iter();
        let left: Vec<String> = left.map(|fork| forks.name(*fork)).collect();
        for name in left {
            if !forks.change.closes.contains(&name) {
                forks.change.closes.push(name);
            }
        }
    }
    forks.finish(draft, !before.is_empty())
}

struct Forks<'a> {
    scope: &'a str,
    known: &'a Snapshot,
    gone: bool,
    stamp: u64,
    /// The numbers of the scope's forks.
    numbers: Vec<u32>,
    changed: Vec<Changed>,
    removed_results: Vec<String>,
    change: ForkChange,
}

impl Forks<'_> {
    fn name(&self, fork: u32) -> String {
        format!("{}.{fork}", self.scope)
    }

    fn make(&mut self, fork: &swirl_model::scope::Fork, record: Vec<u8>) {
        let open = fork.open.min(fork.total);
        let name = self.name(fork.fork);
        let branches = (0..open).map(|index| format!("{name}.{index}"));
        self.change.begins.extend(branches);
        self.change.gain += kib(record.len()) as i64;
        self.change.fork_bytes = record.len();
        self.numbers.push(fork.fork);
        self.numbers.sort_unstable();
        self.changed.push(Changed {
            fork: fork.fork,
            numbers: Numbers {
                total: fork.total,
                open,
                needed: fork.needed,
                notified: 0,
                closed: 0,
                notification_count: 0,
                done: 0,
                failed: 0,
                live: 0,
                stamp: self.stamp.to_string(),
                bytes: 0,
                most: fork.results_max as u64,
            },
            state: State::Made(record),
        });
    }

    /// Returns `None` if there is no such fork, or if it is being closed.
    fn find(&mut self, fork: u32) -> Result<Option<usize>, Unplanned> {
        if self.change.closes.contains(&self.name(fork)) {
            return Ok(None);
        }
        if let Some(at) = self.changed.iter().position(|known| known.fork == fork) {
            let is_there = !matches!(self.changed[at].state, State::Removed);
            return Ok(is_there.then_some(at));
        }
        match self.read(fork) {
            Some(own) => {
                self.changed.push(Changed {
                    fork,
                    numbers: own.numbers.clone(),
                    state: State::Same,
                });
                Ok(Some(self.changed.len() - 1))
            }
            None if self.known.reread.is_some() => Ok(None),
            None => Err(Unplanned::Unknown),
        }
    }

    fn read(&self, fork: u32) -> Option<&OwnFork> {
        self.known.own_forks.iter().find(|own| own.fork == fork)
    }

    fn close(&mut self, fork: u32) -> Result<(), Unplanned> {
        let Some(at) = self.find(fork)? else {
            return Ok(());
        };
        let name = self.name(fork);
        let found = &mut self.changed[at];
        let numbers = &found.numbers;
        if numbers.closed == 1 {
            return Ok(());
        }
        let is_over = numbers.live == 0 && numbers.reported() >= numbers.open;
        match &found.state {
            // It begins and ends with this commit.
            State::Made(record) => {
                self.change.gain -= kib(record.len()) as i64;
                let prefix = format!("{name}.");
                self.change
                    .begins
                    .retain(|branch| !branch.starts_with(&prefix));
                self.changed.remove(at);
                self.numbers.retain(|other| *other != fork);
            }
            State::Same if is_over => {
                found.state = State::Removed;
                self.numbers.retain(|other| *other != fork);
            }
            _ => self.change.closes.push(name),
        }
        Ok(())
    }

    fn extend(&mut self, fork: u32, open: u32, needed: u32) -> Result<(), Unplanned> {
        let Some(at) = self.find(fork)? else {
            return Ok(());
        };
        let name = self.name(fork);
        let found = &mut self.changed[at];
        let numbers = &mut found.numbers;
        let before = numbers.open;
        (numbers.open, numbers.needed) = (open.min(numbers.total), needed);
        numbers.notified = 0;
        let branches = (before..numbers.open).map(|index| format!("{name}.{index}"));
        match numbers.closed {
            0 => self.change.begins.extend(branches),
            _ => self.change.woken.extend(branches),
        }
        found.mark_changed();
        self.notify_again(at);
        Ok(())
    }

    fn revive(
        &mut self,
        fork: u32,
        index: u32,
        others: bool,
        put: impl Fn(String) -> Put,
    ) -> Result<(), Unplanned> {
        if self.known.reread.is_none() {
            return Err(Unplanned::Unknown);
        }
        let Some(at) = self.find(fork)? else {
            return Ok(());
        };
        let name = self.name(fork);
        let errors = self.read(fork).map(|own| own.errors.clone());
        let errors = errors.unwrap_or_default().into_iter();
        // The asked one first.
        let mut errors: Vec<_> = errors
            .filter(|(failed, _)| others || *failed == index)
            .filter(|(failed, _)| {
                let result = format!("b:{name}.{failed}");
                !self.removed_results.contains(&result)
            })
            .collect();
        errors.sort_by_key(|(failed, _)| (*failed != index, *failed));
        let found = &mut self.changed[at];
        let before = found.numbers.bytes;
        for (failed, bytes) in errors {
            let branch = format!("{name}.{failed}");
            self.removed_results.push(format!("b:{branch}"));
            found.numbers.failed = found.numbers.failed.saturating_sub(1);
            found.numbers.bytes = found.numbers.bytes.saturating_sub(bytes as u64);
            self.change.woken.push(branch.clone());
            self.change.puts.push(put(branch));
        }
        self.change.gain += (found.numbers.bytes >> 10) as i64 - (before >> 10) as i64;
        found.numbers.notified = 0;
        found.mark_changed();
        self.notify_again(at);
        Ok(())
    }

    /// Notifies the scope if enough branches are done, or if one has failed.
    fn notify_again(&mut self, at: usize) {
        let Changed { fork, numbers, .. } = &mut self.changed[at];
        if numbers.failed == 0 && numbers.done < numbers.needed {
            return;
        }
        numbers.notified = 1;
        numbers.notification_count += 1;
        if !self.gone {
            let id = format!("fork-{fork}-{}", numbers.notification_count);
            let done = numbers.done;
            let input = format!(r#"{{"Joined":{{"fork":{fork},"results":[],"done":{done}}}}}"#);
            self.change.joined.push((id, input));
        }
    }

    fn finish(self, draft: &mut Draft<'_>, had_forks: bool) -> Result<ForkChange, Unplanned> {
        let Forks {
            scope,
            known,
            numbers: left,
            changed,
            removed_results,
            mut change,
            ..
        } = self;
        draft.gone.extend(removed_results);
        for Changed {
            fork,
            numbers,
            state,
        } in changed
        {
            let name = format!("{scope}.{fork}");
            let own = known.own_forks.iter().find(|own| own.fork == fork);
            match (state, own) {
                (State::Made(record), _) => {
                    draft.set(&format!("f:{name}"), record);
                    draft.set(&format!("g:{name}"), packed(&numbers)?);
                }
                (State::Changed, Some(own)) => {
                    draft.compare(&format!("g:{name}"), &own.text);
                    draft.set(&format!("g:{name}"), packed(&numbers)?);
                }
                (State::Removed, Some(own)) => {
                    draft.compare(&format!("g:{name}"), &own.text);
                    draft
                        .gone
                        .extend([format!("f:{name}"), format!("g:{name}")]);
                    let reported = numbers.reported() as usize;
                    if reported > 0 {
                        let branches = (0..numbers.total).map(|index| format!("b:{name}.{index}"));
                        draft.gone.extend(branches);
                    }
                    change.uncounted += 1 + reported;
                    change.gain -= own.fork_base_kib as i64 + (numbers.bytes >> 10) as i64;
                }
                _ => {}
            }
        }
        let text: Vec<String> = left.iter().map(u32::to_string).collect();
        change.text = (!text.is_empty()).then(|| text.join(" "));
        match &change.text {
            Some(text) => draft.set_own("F:", text.clone().into_bytes()),
            None if had_forks => draft.remove_own("F:"),
            None => {}
        }
        Ok(change)
    }
}

impl Changed {
    fn mark_changed(&mut self) {
        if matches!(self.state, State::Same) {
            self.state = State::Changed;
        }
    }
}

fn packed(numbers: &impl Serialize) -> Result<Vec<u8>, Unplanned> {
    let text = rmp_serde::to_vec(numbers);
    text.map_err(|_| Unplanned::Damaged("the numbers of a fork cannot be packed"))
}

/// The numbers of a scope's forks.
fn numbers(text: &str) -> Result<Vec<u32>, Unplanned> {
    let words = text.split_ascii_whitespace();
    let numbers = words.map(|word| word.parse());
    let numbers: Result<_, _> = numbers.collect();
    numbers.map_err(|_| Unplanned::Damaged("the numbers of its forks"))
}
