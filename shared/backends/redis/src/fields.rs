//! The parts of a decision as fields of the instance's hash: those that must be unchanged, that are written, and that are
//! removed.

use std::ops::Range;

use swirl_commit::{Decision, Flags, ForkState};
use swirl_model::ids::ScopeId;
use swirl_ports::Commit;

use crate::attributes::{self, IndexChange};
use crate::creation::Creation;
use crate::draft::{Draft, Field};
use crate::facts::{Branch, OwnInputs, Put};
use crate::inbox::{self, remembered};
use crate::known::Known;
use crate::lazy::enclosing_forks;
use crate::numbers::{self, stamp};
use crate::plan_input::{PlanInput, Unplanned};
use crate::record::{flags, kind, status_letter};
use crate::snapshot::{Item, Snapshot};
use crate::timers::TimerChange;

/// A decision that is turned into a plan.
pub(crate) struct Turn<'a> {
    pub commit: &'a Commit,
    pub stored: &'a Snapshot,
    pub scope: &'a str,
    pub decision: Decision<'a>,
    pub draft: Draft<'a>,
    pub input: PlanInput<'a>,
}

impl<'a> Turn<'a> {
    /// Guards what every commit depends on. Returns what the lease must be if its text isn't known.
    pub fn guard(&mut self) -> Option<(String, String)> {
        let (draft, stored) = (&mut self.draft, self.stored);
        draft.compare("s", status_letter(stored.status()).as_bytes());
        let suspended = if stored.is_suspended() { "1" } else { "" };
        draft.compare("p", suspended.as_bytes());
        draft.compare_own("q:", stored.inbox.as_deref());
        draft.read_if(self.input.lines > 0, "hn");
        if self.decision.branch.is_some() && !stored.has_reported() {
            draft.compare_own("b:", None);
        }
        draft.lease(&self.commit.lease, stored, self.input.rev)
    }

    pub fn timers(&mut self, known: &Known<'a>) -> Result<TimersAfter<'a>, Unplanned> {
        let before = self.stored.timers.as_ref();
        let (Some(change), Some(before)) = (&self.decision.timers, before) else {
            return Ok((None, before.cloned()));
        };
        let place = (self.commit.lease.scope.instance.as_str(), self.scope);
        let (change, text) = TimerChange::of(change, &known.armed, place, self.input.stamp)?;
        // A scope without a record has no timers.
        if self.stored.recorded {
            self.draft.compare_own("t:", before.as_deref());
        }
        self.draft.put_own("t:", text.clone(), before.is_some());
        Ok((Some(change).filter(TimerChange::is_indexed), Some(text)))
    }

    /// The scope's own forks. Returns the text of their list, and the number of removed fields that are neither compared
    /// nor read.
    pub fn forks(&mut self) -> Result<(Option<String>, usize), Unplanned> {
        let (draft, stored, scope) = (&mut self.draft, self.stored, self.scope);
        let change = &mut self.decision.forks;
        let Some(left) = &change.after else {
            return Ok((stored.forks.clone(), 0));
        };
        let before = stored.forks.as_deref().map(str::as_bytes);
        // A scope without a record has no forks, but for those of an earlier attempt that still have branches.
        if stored.recorded || before.is_some() {
            draft.compare_own("F:", before);
        }
        let revived = change.revived.iter();
        let results = revived.map(|branch| Field::Branch("b:", scope, branch.fork, branch.index));
        draft.gone.extend(results);
        let mut uncounted = 0;
        for changed in &mut change.changed {
            let (fork, numbers) = (changed.fork, &mut changed.numbers);
            let (base, field) = (
                Field::Fork("f:", scope, fork),
                Field::Fork("g:", scope, fork),
            );
            let own = stored.own_forks.iter().position(|own| own.fork == fork);
            if let (ForkState::Changed | ForkState::Removed, Some(own)) = (changed.state, own) {
                draft
                    .compared
                    .push((field, stored.fork_texts[own].as_slice()));
            }
            match changed.state {
                ForkState::Made(place) => {
                    draft
                        .set
                        .push((base, std::mem::take(&mut self.input.forks[place])));
                    numbers.stamp = self.input.stamp.to_string();
                }
                ForkState::Changed => {}
                ForkState::Same => continue,
                ForkState::Removed => {
                    draft.gone.extend([base, field]);
                    let reported = numbers.reported() as usize;
                    if reported > 0 {
                        let branches = 0..numbers.total;
                        let results = branches.map(|at| Field::Branch("b:", scope, fork, at));
                        draft.gone.extend(results);
                    }
                    uncounted += 1 + reported;
                    continue;
                }
            }
            draft.set.push((field, numbers::encode(numbers)));
        }
        let numbers: Vec<String> = left.iter().map(u32::to_string).collect();
        let text = (!numbers.is_empty()).then(|| numbers.join(" "));
        let had_forks = before.is_some_and(|text| !text.is_empty());
        draft.put_own("F:", text.clone().map(String::into_bytes), had_forks);
        Ok((text, uncounted))
    }

    /// Returns the items that are left, their stored form, and with it the inputs for the scope itself.
    pub fn inbox(&mut self) -> Result<InboxAfter<'a>, Unplanned> {
        let inbox = &self.decision.inbox;
        let Some(all) = &self.stored.items else {
            return Err(Unplanned::Unknown);
        };
        let left = || inbox.left.iter().map(|at| &all[*at]);
        let stored = inbox::stored(left());
        let text = inbox::text(&stored)?;
        let joined = &self.decision.forks.joined;
        let own_inputs = match joined.is_empty() {
            true => None,
            false => {
                let joined = joined.iter().map(|(_, item)| {
                    let input = serde_json::to_string(&item.input);
                    let bad = "an input cannot be encoded";
                    Ok((item.id.clone(), input.map_err(|_| Unplanned::Damaged(bad))?))
                });
                let joined = joined.collect::<Result<_, Unplanned>>()?;
                Some((stored, joined, self.scope))
            }
        };
        if inbox.removed().next().is_some() {
            if own_inputs.is_none() {
                self.draft.put_own("q:", text.clone(), true);
            }
            let inputs = inbox
                .removed()
                .map(|at| Field::Input(self.scope, &all[at].number));
            self.draft.gone.extend(inputs);
        }
        Ok((left().cloned().collect(), text, own_inputs))
    }

    /// The ids of consumed inputs after the commit.
    pub fn seen(&mut self) -> Result<Option<Option<String>>, Unplanned> {
        let (stored, gone) = (self.stored, self.input.parts.gone);
        if gone && stored.recorded {
            self.draft.remove_own("x:");
        }
        let consumed = self.decision.inbox.consumed.iter();
        let all = stored.items.as_deref().unwrap_or_default();
        let consumed = || consumed.clone().map(|at| &all[*at]);
        if gone || !consumed().any(Item::is_remembered) {
            return Ok(stored.seen.clone());
        }
        let before = stored.seen.as_ref().ok_or(Unplanned::Unknown)?;
        let text = remembered(before.as_deref(), consumed());
        self.draft.set_own("x:", text.clone().into_bytes());
        Ok(Some(Some(text)))
    }

    /// Writes or removes the record. Returns its marks.
    pub fn record(&mut self) -> Option<Vec<u8>> {
        if let Some(of_record) = self.decision.record {
            let (rev, stamp) = (self.commit.scope.rev, self.input.stamp);
            let mark = format!("{rev} {} {stamp}", flags(of_record)).into_bytes();
            let record = std::mem::take(&mut self.input.record);
            self.draft.set_own("r:", record);
            self.draft.set_own("m:", mark.clone());
            return Some(mark);
        }
        if self.stored.recorded {
            self.draft.remove_own("r:");
            self.draft.remove_own("m:");
        }
        None
    }

    /// Writes detached scopes. Returns all scopes that begin, and those that have something to do.
    pub fn others(&mut self) -> (Vec<ScopeId>, Vec<ScopeId>) {
        let (parent, forks) = (&self.commit.lease.scope.scope, &self.decision.forks);
        let branches = |(fork, range): &(u32, Range<u32>)| {
            let fork = *fork;
            range.clone().map(move |index| parent.child(fork, index))
        };
        let mut begins: Vec<ScopeId> = forks.begins.iter().flat_map(branches).collect();
        let revived = forks.revived.iter();
        let revived = revived.map(|branch| parent.child(branch.fork, branch.index));
        let mut woken: Vec<ScopeId> = forks.unborn.iter().flat_map(branches).collect();
        woken.extend(revived);
        let records = std::mem::take(&mut self.input.detached);
        for (&scope, record) in self.input.parts.detached.iter().zip(records) {
            let of_scope = Flags::of(scope);
            let mark = format!("{} {} {}", scope.rev, flags(of_scope), self.input.stamp);
            let name = scope.id.as_str();
            self.draft.set.push((Field::Of("r:", name), record));
            self.draft
                .set
                .push((Field::Of("m:", name), mark.into_bytes()));
            let scopes = if of_scope.goes {
                &mut begins
            } else {
                &mut woken
            };
            scopes.push(scope.id.clone());
        }
        if self.decision.stands_still {
            woken.append(&mut begins);
        }
        (begins, woken)
    }

    /// The inputs of revived branches.
    pub fn puts(&self) -> Option<Vec<Put>> {
        let revived = self.decision.forks.revived.iter();
        let puts = revived.filter_map(|branch| {
            let mut inputs = self.input.revivals.iter();
            let (input, text) = inputs.find(|(input, _)| std::ptr::eq(*input, branch.input))?;
            let name = format!("{}.{}.{}", self.scope, branch.fork, branch.index);
            Some((name, input.id(), kind(input), text.clone()))
        });
        let puts: Vec<Put> = puts.collect();
        (!puts.is_empty()).then_some(puts)
    }

    /// The part of a branch. The function counts its result, since branches that end at the same time don't conflict.
    pub fn branch(&mut self) -> Result<Option<Branch<'a>>, Unplanned> {
        let Some(branch) = &self.decision.branch else {
            return Ok(None);
        };
        let now = self
            .stored
            .reread
            .as_ref()
            .and_then(|now| now.fork.as_ref());
        let (mut outcome, mut bytes) = (None, 0);
        if let Some(report) = &branch.report {
            outcome = Some(report.is_done);
            let mut result = self.input.result.take().unwrap_or_default();
            if let Some(replaced) = &report.replaced {
                result = serde_json::to_vec(replaced)
                    .map_err(|_| Unplanned::Damaged("a result that is too large"))?;
            }
            bytes = result.len();
            self.draft.set_own("b:", result);
        }
        let place = branch.place;
        Ok(Some(Branch {
            fork: place.fork,
            place: 0,
            reads_parent: self.stored.completes && outcome.is_some(),
            index: branch.is_unborn.then_some(place.index),
            live: branch.live,
            stamp: now.map_or(self.commit.lease.fork_stamp, |fork| stamp(&fork.stamp)),
            result: outcome,
            bytes,
            parent: (!branch.is_orphan).then_some(place.parent),
            is_closed: branch.is_closed,
        }))
    }

    /// Changes the status of the instance. If no other scope may be concerned, the function counts its fields:
    /// `uncounted` removed ones, and others, aren't read.
    pub fn status(&mut self, has_forks: bool, uncounted: usize) -> Result<Option<Ends>, Unplanned> {
        let Some(change) = &self.decision.status else {
            return Ok(None);
        };
        let (draft, input, stored) = (&mut self.draft, &mut self.input, self.stored);
        let ends = change.end.is_some();
        let closes = &self.decision.forks.closes;
        let is_alone = !has_forks && closes.is_empty() && input.parts.detached.is_empty();
        let is_root = self.commit.lease.scope.scope.is_root();
        let count = if is_alone && stored.reread.is_none() && ends && is_root {
            // Fields that are neither compared nor read, among them the header and the record.
            let items = stored.items.as_ref().map_or(0, Vec::len);
            for field in ["k", "out", "err"] {
                draft.compare(field, b"");
            }
            Some(2 + items + uncounted)
        } else {
            let now = stored.reread.as_deref().ok_or(Unplanned::Unknown)?;
            if ends {
                draft.compare("k", now.children.as_deref().unwrap_or_default());
                draft.remove("k");
            } else {
                draft.remove("end");
            }
            None
        };
        let letter = status_letter(change.to);
        draft.set("s", letter.as_bytes().to_vec());
        if change.is_over() && stored.is_suspended() {
            draft.remove("p");
        }
        if ends {
            draft.set("end", self.commit.at.0.to_string().into_bytes());
        }
        for (field, value) in [("out", input.output.take()), ("err", input.error.take())] {
            match value {
                Some(value) => draft.set(field, value),
                None if count.is_none() => draft.remove(field),
                None => {}
            }
        }
        Ok(Some((letter, ends.then_some(self.commit.at.0), count)))
    }

    /// The change of the index of attributes, and the attributes after the commit.
    pub fn index(&mut self) -> Result<(Option<IndexChange>, Option<String>), Unplanned> {
        let (draft, known) = (&mut self.draft, &self.stored.attributes);
        if !self.input.parts.index {
            return Ok((None, known.clone()));
        }
        let before = known.as_ref().ok_or(Unplanned::Unknown)?;
        let change = attributes::change(before, &self.commit.scope.attributes);
        draft.compare("at", before.as_bytes());
        match change.text.is_empty() {
            false => draft.set("at", change.text.clone().into_bytes()),
            true if before.is_empty() => {}
            true => draft.remove("at"),
        }
        let after = Some(change.text.clone());
        Ok((Some(change).filter(IndexChange::is_indexed), after))
    }
}

impl<'a> Draft<'a> {
    /// Writes the fields of a new instance, besides those that need Redis' time. Nothing is stored yet, so there is
    /// nothing to compare or to remove.
    pub fn create(&mut self, creation: &Creation) {
        self.compared.clear();
        self.gone.clear();
        self.compare("s", b"");
        let ends = self
            .set
            .iter()
            .any(|(field, _)| *field == Field::Instance("s"));
        if !ends {
            self.set("s", b"r".to_vec());
        }
        self.set("h", creation.header.clone());
        let own = [
            ("key", &creation.key),
            ("nk", &creation.named),
            ("kp", &creation.retention),
            // The process that waits gets the end with the creation.
            ("w", if ends { &None } else { &creation.watcher }),
        ];
        for (field, value) in own {
            if let Some(value) = value {
                self.set(field, value.clone().into_bytes());
            }
        }
    }

    /// Reads the numbers of a branch's fork and what its parent needs; and unless the branch is gone, the marks of the
    /// parent and the numbers of the fork that it is a branch of, and so on. Returns the position and the number of
    /// these forks, if there are any.
    pub fn read_branch(&mut self, branch: &mut Branch<'a>, gone: bool) -> Option<(usize, usize)> {
        let (parent, _) = branch.fork.rsplit_once('.').unwrap_or_default();
        branch.place = self.next_place();
        self.read.push(Field::Of("g:", branch.fork));
        if branch.reads_parent {
            self.read
                .extend(["l:", "q:"].map(|kind| Field::Of(kind, parent)));
        }
        let around = match gone {
            true => Vec::new(),
            false => enclosing_forks(parent),
        };
        let first = self.next_place();
        let mut scope = parent;
        for (parent, fork, _) in &around {
            self.read.push(Field::Of("m:", scope));
            self.read.push(Field::Of("g:", fork));
            scope = parent;
        }
        (!around.is_empty()).then_some((first, around.len()))
    }
}

/// The change of the index of timers, and the armed timers after the commit, if they are known.
type TimersAfter<'a> = (Option<TimerChange<'a>>, Option<Option<Vec<u8>>>);
/// The items that are left, their stored form, and the inputs for the scope itself.
type InboxAfter<'a> = (Vec<Item>, Option<Vec<u8>>, Option<OwnInputs<'a>>);
/// The new status, when the instance ended, and the number of uncounted fields, if no other scope may be concerned.
type Ends = (&'static str, Option<i64>, Option<usize>);
