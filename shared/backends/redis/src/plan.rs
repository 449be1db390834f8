//! Turns a snapshot of a scope and a commit into a plan: the fields that must be unchanged since they were read, and
//! the fields to write and to remove. A pure function that knows nothing about servers. `lua/write.lua` applies the
//! plan, and computes only values that branches change together, and sizes; `lua/write_others.lua` also does what a
//! closed fork or an ended instance means for scopes that nothing is known about. If a field has changed, the commit is
//! planned again. A commit that can't take effect gets its answer from `answer.rs`.

use std::borrow::Cow;

use swirl_model::event::Command;
use swirl_model::instance::Status;
use swirl_ports::Commit;

use crate::answer::check;
use crate::attributes::{self, IndexChange};
use crate::commit_parts::{is_detached, is_gone};
use crate::draft::Draft;
use crate::ending::StatusChange;
use crate::events::digest;
use crate::facts::{Facts, More, Rare, Rest};
use crate::inbox::{Inbox, remembered};
use crate::own_forks;
use crate::plan_input::{PlanInput, Unplanned};
use crate::record::{flags, status_letter};
use crate::size::kib;
use crate::snapshot::Snapshot;
use crate::timers::{self, TimerChange};
use crate::waits;

#[derive(Debug)]
pub(crate) struct Plan<'a> {
    pub facts: Facts<'a>,
    /// Fields and their required values; empty means that the field must not exist.
    pub compared: Vec<(String, Vec<u8>)>,
    /// Fields whose current values are needed.
    pub read: Vec<String>,
    pub set: Vec<(String, Vec<u8>)>,
    pub gone: Vec<String>,
    /// Names of scopes that can begin.
    pub begins: Vec<String>,
    /// Names of other scopes that have something to do.
    pub woken: Vec<String>,
    /// The lease is released, or not taken.
    pub released: bool,
    /// Inputs are waiting for the scope, and no process holds it.
    pub is_woken: bool,
    /// Of all scopes of the instance, those with something to do are woken.
    pub wakes_ready: bool,
    /// The scope after the commit.
    pub after: Snapshot,
    /// Identifies this write, and the fork that it makes.
    pub stamp: u64,
    /// Bytes of the origin of that fork.
    pub fork_bytes: usize,
    /// The parent of a branch.
    pub parent: Option<&'a str>,
    /// The effects, in the order of their numbers.
    pub effects: Vec<Cow<'a, Command>>,
}

pub(crate) fn plan<'a>(mut input: PlanInput<'a>, known: &Snapshot) -> Result<Plan<'a>, Unplanned> {
    let turn = Turn::of(&input, known);
    let Turn { scope, gone, .. } = turn;
    let commit = input.commit;
    let inbox = Inbox::of(commit, known, gone)?;
    check(&input, known, &inbox, gone)?;
    let status = turn.status.as_ref();

    let mut draft = Draft::new(scope);
    let held = turn.guard(&mut draft, &input);
    let (timers, timers_after) = turn.timers(&mut draft, input.stamp)?;
    let forks = own_forks::change(&mut draft, &mut input, known, gone)?;
    let inbox_after = inbox.text()?;
    let own_inputs =
        (!forks.joined.is_empty()).then(|| (inbox.stored(), forks.joined, scope.to_owned()));
    if inbox.removed().next().is_some() {
        match &inbox_after {
            _ if own_inputs.is_some() => {}
            Some(text) => draft.set_own("q:", text.clone()),
            None => draft.remove_own("q:"),
        }
        let numbers = inbox.removed();
        let numbers = numbers.map(|item| format!("i:{scope}:{}", item.number));
        draft.gone.extend(numbers);
    }
    let seen = turn.seen(&mut draft, &inbox)?;

    // The record, and the forks and scopes that begin.
    let (before, record) = (kib(known.record), input.record.len());
    let flags = flags(&commit.scope);
    let mark = turn.record(&mut draft, &mut input, &flags);
    let gained = forks.gain + kib(record) as i64;
    let lost = before + inbox.removed().map(|item| item.kib).sum::<usize>();
    let mut gain = gained - lost as i64;
    let (mut begins, mut woken) = (forks.begins, forks.woken);
    for (detached, record) in input.parts.detached.iter().zip(&input.detached) {
        gain += kib(record.len()) as i64;
        match draft.detach(detached, record.clone(), input.stamp) {
            true => begins.push(detached.id.to_string()),
            false => woken.push(detached.id.to_string()),
        }
    }
    if turn.stands_still {
        woken.append(&mut begins);
    }

    let branch = match turn.own_fork {
        Some((fork, index)) => Some(draft.branch(fork, index, gone, &mut input, known)?),
        None => None,
    };
    let prunes = branch.as_ref().filter(|branch| branch.is_closed && gone);
    let prunes = prunes.map(|branch| branch.fork.clone());
    let is_alone = forks.text.is_none() && forks.closes.is_empty() && input.detached.is_empty();
    let ends = match status {
        Some(change) => {
            let items = inbox.removed().count() + inbox.left.len();
            // Fields that are neither compared nor read, among them the header and the record.
            let uncounted = is_alone.then_some(2 + items + forks.uncounted);
            Some(turn.change_status(&mut draft, &mut input, change, uncounted)?)
        }
        None => None,
    };
    let counts = ends.as_ref().is_some_and(|(_, _, count)| count.is_some());
    let (index, attributes) = turn.index(&mut draft, &input)?;

    // The lease. If the worker continued, it could overtake effects that haven't been carried out.
    let stands_still = turn.stands_still;
    let joins_itself = own_inputs.is_some() && !stands_still;
    let has_news = !gone && (joins_itself || inbox.has_news(commit.lease.token, stands_still));
    let may_release = commit.release && (gone || input.effects.is_empty());
    let released = may_release && !(turn.is_taken && has_news);
    let takes = !turn.is_taken && !released;
    let was_held = turn.is_taken || known.lease.is_some();
    if was_held && !takes && (released || gone && !turn.is_root) {
        draft.remove_own("l:");
    }
    let is_closed = turn.is_closed();
    let lease_after = takes.then(|| after_till(is_closed, input.holder, input.attempt));

    // Whether the scope has something to do.
    let is_there = !(gone && !turn.is_root || flags.contains('e'));
    let goes = !stands_still && !is_closed && flags.contains('g');
    // A branch that leaves no result may begin again.
    let restarts = branch.as_ref().is_some_and(|branch| {
        gone && branch.result.is_empty() && !branch.is_closed && !known.has_reported()
    });
    let has_work = restarts && !stands_still
        || is_there && (goes || joins_itself || inbox.has_work(stands_still));
    let member = format!("{}/{scope}", commit.lease.scope.instance);
    // A scope that continues under its lease is in the index already.
    let stays = has_work && (released || !turn.had_work(&inbox));
    let stays = stays.then(|| member.clone());

    let room =
        (input.adds > before).then(|| input.adds as i64 - (before + inbox.consumed_kib()) as i64);
    let puts = (!forks.puts.is_empty()).then_some(forks.puts);
    let reports = branch.as_ref().is_some_and(|found| found.bytes > 0);
    let has_effects = !input.effects.is_empty();
    let numbered = takes || has_effects || reports || own_inputs.is_some() || puts.is_some();
    let sized = gain != 0 || room.is_some() || reports || counts;
    // A branch without a record never waited for anything.
    let leaves = gone && known.recorded;
    let has_waits = !input.waits.is_empty();
    input.freed.extend(inbox.dropped_events().map(digest));
    let waits = waits::change(scope, leaves, turn.is_over, input.waits, input.freed);

    // The function expects what it reads in this order.
    draft.read_if(numbered, "n");
    draft.read_if(sized, "z");
    let around = branch
        .as_ref()
        .map_or(0, |branch| draft.read_branch(branch, gone));
    draft.read_if(has_effects || counts, "O");
    draft.read_if(index.is_some() || has_waits || ends.is_some(), "lw");
    if ends.as_ref().is_some_and(|(_, at, _)| at.is_some()) {
        draft.read("w");
        draft.read("kp");
    }
    if counts {
        for field in FIELDS_AT_END {
            draft.read(field);
        }
    }

    // The changes of other scopes.
    let changes_all = ends.is_some() && !counts;
    let follows = !forks.closes.is_empty() || changes_all || prunes.is_some();
    let rest = follows.then(|| Rest {
        scope: scope.to_owned(),
        closes: forks.closes,
        is_over: turn.is_over,
        refreshes: changes_all,
        prunes,
        ..Rest::default()
    });
    let joined = own_inputs.is_some();
    let rare = Rare {
        around,
        stands_still,
        own_inputs,
        puts,
        rest,
    };
    let rare = (!rare.is_empty()).then_some(rare);

    let is_simple = held.is_none()
        && !takes
        && !sized
        && waits.is_none()
        && stays.is_none()
        && branch.is_none()
        && ends.is_none()
        && timers.is_none()
        && !has_effects
        && index.is_none()
        && begins.is_empty()
        && rare.is_none();
    let taken = lease_after.clone();
    let more = More {
        instance: commit.lease.scope.instance.as_str(),
        namespace: input.namespace,
        held,
        taken: taken.map(|rest| (format!("l:{scope}"), commit.lease_ms, rest)),
        numbered,
        gain: sized.then_some(gain),
        room,
        most: input.most,
        waits,
        stays,
        branch,
        ends,
        timers,
        effects: has_effects.then_some((0, input.effects)),
        index,
        rare,
    };
    let noted = input.lines > 0 && (input.is_followed || input.due.is_some());
    let facts = Facts {
        fields: draft.compared.len() + draft.read.len(),
        compared: draft.compared.len(),
        lines: input.lines,
        elements: input.elements,
        keep: input.history_max,
        words: 2 * draft.set.len(),
        gone: draft.gone.len(),
        leaves: (!has_work).then_some(member),
        more: (!is_simple).then_some(more),
        noted: noted.then(|| {
            let instance = commit.lease.scope.instance.as_str();
            (
                instance,
                input.is_followed.then_some(commit.at.0),
                input.due,
            )
        }),
    };
    let items = inbox.left.iter().map(|item| (*item).clone()).collect();
    let after = Snapshot {
        recorded: mark.is_some(),
        goes: flags.contains('g'),
        mark,
        lease: lease_after.or(known.lease.clone()),
        inbox: inbox_after,
        // The numbers of new inputs aren't known.
        items: (!joined).then_some(items),
        seen,
        forks: forks.text,
        timers: timers_after,
        attributes,
        record,
        own_forks: Vec::new(),
        completes: false,
        header: known.header.clone(),
        reread: None,
    };
    Ok(Plan {
        facts,
        compared: draft.compared,
        read: draft.read,
        set: draft.set,
        gone: draft.gone,
        begins,
        woken,
        released,
        is_woken: released && (joined || !turn.is_taken && has_news),
        wakes_ready: status.is_some_and(|change| change.reopens && change.to == Status::Running),
        after,
        stamp: input.stamp,
        fork_bytes: forks.fork_bytes,
        parent: turn
            .own_fork
            .and_then(|(fork, _)| Some(fork.rsplit_once('.')?.0)),
        effects: Vec::new(),
    })
}

/// Further fields that an instance may have at its end.
const FIELDS_AT_END: [&str; 12] = [
    "n", "key", "nk", "end", "at", "hn", "hd", "le", "om", "t:r", "x:r", "a:r",
];

/// The circumstances of a commit.
struct Turn<'a, 'k> {
    commit: &'a Commit,
    known: &'k Snapshot,
    scope: &'a str,
    is_root: bool,
    is_taken: bool,
    /// Nothing of the scope is kept, except for the record of a root.
    gone: bool,
    status: Option<StatusChange<'a>>,
    /// The commit ends the instance for good.
    is_over: bool,
    /// Only an operator's inputs matter after the commit.
    stands_still: bool,
    /// The fork that the scope is a branch of, and its index.
    own_fork: Option<(&'a str, u32)>,
}

impl<'a, 'k> Turn<'a, 'k> {
    fn of(input: &PlanInput<'a>, known: &'k Snapshot) -> Turn<'a, 'k> {
        let commit = input.commit;
        let scope = commit.lease.scope.scope.as_str();
        let status = StatusChange::of(&input.parts.status, known.status());
        let is_over = status.as_ref().is_some_and(StatusChange::is_over);
        let is_suspended = known.is_suspended() && !is_over;
        let status_after = status.as_ref().map_or(known.status(), |change| change.to);
        let own_fork = scope.rsplit_once('.').filter(|(fork, _)| {
            let is_there = known.reread.as_ref().is_none_or(|now| now.fork.is_some());
            fork.contains('.') && is_there && !is_detached(&commit.scope)
        });
        Turn {
            commit,
            known,
            scope,
            is_root: commit.lease.scope.scope.is_root(),
            is_taken: commit.lease.is_taken(),
            gone: is_gone(&commit.scope, &commit.commands),
            status,
            is_over,
            stands_still: is_suspended || status_after == Status::Faulted,
            own_fork: own_fork.and_then(|(fork, index)| Some((fork, index.parse().ok()?))),
        }
    }

    /// Whether a fork around the scope is closed, or its instance is over.
    fn is_closed(&self) -> bool {
        match self.is_root {
            true => self.is_over || self.known.is_closed(),
            false => self.known.is_closed(),
        }
    }

    /// Whether the scope had something to do before the commit.
    fn had_work(&self, inbox: &Inbox<'_>) -> bool {
        let known = self.known;
        let stood_still = known.stands_still();
        let went = !known.recorded || known.goes && !known.is_closed();
        let had_ended = known.mark.as_ref().is_some_and(|mark| mark.contains(&b'e'));
        !had_ended && (went && !stood_still || inbox.had_work(stood_still))
    }

    /// Guards what every commit depends on. Returns what the lease must be if its text isn't known.
    fn guard(&self, draft: &mut Draft<'_>, input: &PlanInput<'_>) -> Option<(String, String)> {
        let known = self.known;
        draft.compare("s", status_letter(known.status()).as_bytes());
        let suspended = if known.is_suspended() { "1" } else { "" };
        draft.compare("p", suspended.as_bytes());
        draft.compare_own("q:", known.inbox.as_deref().unwrap_or_default());
        draft.read_if(input.lines > 0, "hn");
        if self.own_fork.is_some() && !known.has_reported() {
            draft.compare_own("b:", b"");
        }
        draft.lease(&self.commit.lease, known, input.rev)
    }

    fn timers(&self, draft: &mut Draft<'_>, stamp: u64) -> Result<TimersAfter, Unplanned> {
        let known = self.known.timers.as_ref();
        let change = timers::change(self.commit, self.gone, known, stamp)?;
        let (Some(change), Some(before)) = (change, known) else {
            return Ok((None, known.cloned()));
        };
        draft.compare_own("t:", before.as_deref().unwrap_or_default());
        match &change.text {
            Some(text) => draft.set_own("t:", text.clone()),
            None if before.is_some() => draft.remove_own("t:"),
            None => {}
        }
        let after = Some(change.text.clone());
        Ok((Some(change).filter(TimerChange::is_indexed), after))
    }

    /// The ids of consumed inputs after the commit.
    fn seen(
        &self,
        draft: &mut Draft<'_>,
        inbox: &Inbox<'_>,
    ) -> Result<Option<Option<String>>, Unplanned> {
        let known = self.known;
        if self.gone && known.recorded {
            draft.remove_own("x:");
        }
        if self.gone || !inbox.is_remembered() {
            return Ok(known.seen.clone());
        }
        let before = known.seen.as_ref().ok_or(Unplanned::Unknown)?;
        let text = remembered(before.as_deref(), &inbox.consumed);
        if let Some(text) = &text {
            draft.set_own("x:", text.clone().into_bytes());
        }
        Ok(Some(text.or_else(|| before.clone())))
    }

    /// Writes or removes the record. Returns its marks.
    fn record(
        &self,
        draft: &mut Draft<'_>,
        input: &mut PlanInput<'_>,
        flags: &str,
    ) -> Option<Vec<u8>> {
        if !self.gone || self.is_root {
            draft.set_own("r:", std::mem::take(&mut input.record));
            let mark = format!("{} {flags} {}", input.rev + 1, input.stamp).into_bytes();
            draft.set_own("m:", mark.clone());
            return Some(mark);
        }
        if self.known.recorded {
            draft.remove_own("r:");
            draft.remove_own("m:");
        }
        None
    }

    /// Changes the status of the instance. If no other scope may be concerned, `uncounted` has the number of its fields
    /// that aren't read, and the function counts them.
    fn change_status(
        &self,
        draft: &mut Draft<'_>,
        input: &mut PlanInput<'_>,
        change: &StatusChange<'_>,
        uncounted: Option<usize>,
    ) -> Result<Ends, Unplanned> {
        let ends = change.end.is_some();
        let is_first = self.known.reread.is_none();
        let count = uncounted.filter(|_| is_first && ends && self.is_root);
        if count.is_some() {
            for field in ["k", "out", "err"] {
                draft.compare(field, b"");
            }
        } else {
            let now = self.known.reread.as_ref().ok_or(Unplanned::Unknown)?;
            if ends {
                let children = now.children.as_deref().unwrap_or_default();
                draft.compare("k", children);
                draft.gone.push("k".to_owned());
            } else {
                draft.gone.push("end".to_owned());
            }
        }
        let letter = status_letter(change.to);
        draft.set("s", letter.as_bytes().to_vec());
        if self.is_over && self.known.is_suspended() {
            draft.gone.push("p".to_owned());
        }
        if ends {
            draft.set("end", self.commit.at.0.to_string().into_bytes());
        }
        for (field, value) in [("out", input.output.take()), ("err", input.error.take())] {
            match value {
                Some(value) => draft.set(field, value),
                None if count.is_none() => draft.gone.push(field.to_owned()),
                None => {}
            }
        }
        Ok((letter, ends.then_some(self.commit.at.0), count))
    }

    /// The change of the index of attributes, and the attributes after the commit.
    fn index(
        &self,
        draft: &mut Draft<'_>,
        input: &PlanInput<'_>,
    ) -> Result<(Option<IndexChange>, Option<String>), Unplanned> {
        let known = &self.known.attributes;
        if !input.parts.index {
            return Ok((None, known.clone()));
        }
        let before = known.as_ref().ok_or(Unplanned::Unknown)?;
        let change = attributes::change(before, &self.commit.scope.attributes);
        draft.compare("at", before.as_bytes());
        match change.text.is_empty() {
            false => draft.set("at", change.text.clone().into_bytes()),
            true if before.is_empty() => {}
            true => draft.gone.push("at".to_owned()),
        }
        let after = Some(change.text.clone());
        Ok((Some(change).filter(IndexChange::is_indexed), after))
    }
}

/// The change of the index of timers, and the armed timers after the commit, if they are known.
type TimersAfter = (Option<TimerChange>, Option<Option<Vec<u8>>>);
/// The new status, when the instance ended, and the number of uncounted fields, if no other scope may be concerned.
type Ends = (&'static str, Option<i64>, Option<usize>);

/// The last part of a lease's text. The number says whether its holder knows that the scope is closed.
fn after_till(is_closed: bool, holder: &str, attempt: u64) -> String {
    format!(" {} {holder} {attempt}", u8::from(is_closed))
}
