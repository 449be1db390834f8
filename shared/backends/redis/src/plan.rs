//! Turns a snapshot of a scope and a commit into a plan: the fields that must be unchanged since they were read, and
//! the fields to write and to remove. A pure function that knows nothing about servers. `lua/write.lua` applies the
//! plan, and computes only values that branches change together, sizes, and the ends of scopes. Commits that need more
//! than this are left to the general function, and so are commits whose fields have changed.

use serde::Serialize;
use swirl_model::event::Command;
use swirl_model::scope::{BranchResult, Fork};

use crate::attributes::{self, IndexChange};
use crate::commit::kib;
use crate::commit_parts::{WIDE, is_gone};
use crate::draft::Draft;
use crate::inbox::{Inbox, remembered};
use crate::plan_input::{PlanInput, Unplanned};
use crate::record::{end_letter, flags};
use crate::snapshot::{Joining, Snapshot};
use crate::timers::{self, TimerChange};
use crate::waits::{self, WaitChange};

/// `lua/write.lua` documents the fields.
#[derive(Debug, Serialize, PartialEq)]
pub(crate) struct Facts<'a> {
    fields: usize,
    compared: usize,
    lines: usize,
    elements: usize,
    keep: u64,
    words: usize,
    gone: usize,
    leaves: Option<String>,
    more: Option<More<'a>>,
    /// The instance, the time if its history is followed and got entries, and when the first recorded data expires.
    #[serde(skip_serializing_if = "Option::is_none")]
    noted: Option<(&'a str, Option<i64>, Option<i64>)>,
}

impl Facts<'_> {
    /// The additional indexes whose keys the call needs, each with the field to set to the position of its key.
    pub fn indexes(&mut self) -> impl Iterator<Item = (&'static str, &mut usize)> {
        let parts = self.more.as_mut().map(|more| {
            let (timers, effects) = (more.timers.as_mut(), more.effects.as_mut());
            let (index, waits) = (more.index.as_mut(), more.waits.as_mut());
            [
                timers.map(|timers| ("timers", &mut timers.key)),
                effects.map(|(key, _)| ("outbox", key)),
                index.map(|index| (attributes::INDEX, &mut index.key)),
                waits.map(|waits| ("dirty", &mut waits.dirty)),
            ]
        });
        parts.into_iter().flatten().flatten()
    }

    /// The field to set to the position of the key of consumed events, if any are released.
    pub fn consumed(&mut self) -> Option<&mut usize> {
        let waits = self.more.as_mut()?.waits.as_mut()?;
        (!waits.freed.is_empty()).then_some(&mut waits.consumed)
    }
}

/// The parts that only some commits need.
#[derive(Debug, Serialize, PartialEq)]
struct More<'a> {
    instance: &'a str,
    namespace: &'a str,
    held: Option<(String, String)>,
    taken: Option<(String, u64, String)>,
    numbered: bool,
    gain: Option<i64>,
    room: Option<i64>,
    most: usize,
    waits: Option<WaitChange>,
    stays: Option<String>,
    branch: Option<Branch>,
    ends: Option<(&'static str, i64, usize)>,
    timers: Option<TimerChange>,
    effects: Option<(usize, Vec<String>)>,
    index: Option<IndexChange>,
}

#[derive(Debug, Serialize, PartialEq)]
struct Branch {
    fork: String,
    number: String,
    index: u32,
    stamp: String,
    live: i32,
    /// `d` if it is done, `f` if it failed.
    result: &'static str,
    bytes: usize,
    /// The parent's lease, inbox and consumed ids are read with the rest. If they are needed and weren't, that takes
    /// another command.
    reads_parent: bool,
}

#[derive(Debug)]
pub(crate) struct Plan<'a> {
    pub facts: Facts<'a>,
    /// Fields and their required values; empty means that the field must not exist.
    pub compared: Vec<(String, Vec<u8>)>,
    /// Fields whose current values are needed.
    pub read: Vec<String>,
    pub set: Vec<(String, Vec<u8>)>,
    pub gone: Vec<String>,
    /// Names of branches that can begin.
    pub wakes: Vec<String>,
    /// The lease is released, or not taken.
    pub released: bool,
    /// Inputs are waiting for the scope, and no process holds it.
    pub is_woken: bool,
    /// The scope after the commit.
    pub after: Snapshot,
    /// Identifies this write, and the fork that it makes.
    pub stamp: u64,
    /// Bytes of the origin of that fork.
    pub fork_bytes: usize,
}

pub(crate) fn plan<'a>(input: PlanInput<'a>, known: &Snapshot) -> Result<Plan<'a>, Unplanned> {
    let commit = input.commit;
    let scope = commit.lease.scope.scope.as_str();
    let is_root = scope == "r";
    let gone = is_gone(&commit.scope, &commit.commands);
    let inbox = Inbox::of(commit, known)?;
    let (consumed, left) = (&inbox.consumed, &inbox.left);
    let token = commit.lease.token;
    // Nothing may be left of a scope that is gone.
    let unusual = consumed.len() + left.len() > WIDE
        || commit.require_unchanged_inbox && inbox.has_news(token)
        || !left.is_empty() && (gone || input.parts.end.is_some());
    // If the worker continued, it could overtake effects that haven't been carried out.
    let released = commit.release
        && (gone || input.effects.is_empty())
        && !(commit.lease.is_taken() && inbox.has_news(token));
    // A record with a difference must refer to this fork.
    let base = std::str::from_utf8(&input.record).ok();
    let base = base
        .and_then(|text| text.strip_prefix("[\""))
        .and_then(|text| text.split_once('"'));
    let fork_stamp = match commit.lease.fork_stamp {
        0 => String::new(),
        fork_stamp => fork_stamp.to_string(),
    };
    if unusual || base.is_some_and(|(base, _)| is_root || base != fork_stamp) {
        return Err(Unplanned::General);
    }

    let mut draft = Draft::new(scope);
    draft.compare("s", b"r");
    draft.compare("p", b"");
    draft.compare_own("q:", known.inbox.as_deref().unwrap_or_default());
    draft.read_if(input.lines > 0, "hn");
    let held = draft
        .lease(&commit.lease, known, input.rev)
        .ok_or(Unplanned::General)?;
    if !is_root {
        draft.compare_own("b:", b"");
    }
    let timers = timers::change(commit, gone, known.timers.as_ref(), input.stamp)?;
    let mut timers_after = known.timers.clone();
    if let (Some(change), Some(before)) = (&timers, &known.timers) {
        draft.compare_own("t:", before.as_deref().unwrap_or_default());
        match &change.text {
            Some(text) => draft.set_own("t:", text.clone()),
            None if before.is_some() => draft.remove_own("t:"),
            None => {}
        }
        timers_after = Some(change.text.clone());
    }
    let timers = timers.filter(TimerChange::is_indexed);

    // The inbox.
    let inbox_after = inbox.text()?;
    if !consumed.is_empty() {
        match &inbox_after {
            Some(text) => draft.set_own("q:", text.clone()),
            None => draft.remove_own("q:"),
        }
        let numbers = consumed
            .iter()
            .map(|item| format!("i:{scope}:{}", item.number));
        draft.gone.extend(numbers);
    }
    let mut seen = known.seen.clone();
    if gone {
        if known.recorded {
            draft.remove_own("x:");
        }
    } else if inbox.is_remembered() {
        let before = known.seen.as_ref().ok_or(Unplanned::Unknown)?;
        let text = remembered(before.as_deref(), consumed);
        if let Some(text) = &text {
            draft.set_own("x:", text.clone().into_bytes());
        }
        seen = Some(text.or_else(|| before.clone()));
    }

    // The record.
    let (before, record) = (kib(known.record), input.record.len());
    let mut gain = -(before as i64);
    let mut mark = None;
    if !gone || is_root {
        draft.set_own("r:", input.record);
        let (next, flags) = (input.rev + 1, flags(&commit.scope));
        let text = format!("{next} {flags} {}", input.stamp).into_bytes();
        draft.set_own("m:", text.clone());
        mark = Some(text);
        gain += kib(record) as i64;
    } else if known.recorded {
        draft.remove_own("r:");
        draft.remove_own("m:");
    }
    gain -= inbox.consumed_kib() as i64;

    // The scope's own forks.
    let mut forks = known.forks.clone();
    let (mut rest, mut fork_bytes) = (0, 0);
    if input.parts.close.is_some() || input.parts.fork.is_some() || gone {
        draft.compare_own("F:", forks.as_deref().unwrap_or_default().as_bytes());
        let mut numbers = numbers(forks.as_deref()).ok_or(Unplanned::General)?;
        let had_forks = !numbers.is_empty();
        if let Some(number) = input.parts.close {
            let joining = known.joining.as_ref().ok_or(Unplanned::Unknown)?;
            let (results, kib) = draft.close(number, joining).ok_or(Unplanned::General)?;
            rest += results;
            gain -= kib;
            numbers.retain(|other| *other != number);
        }
        if let (Some(fork), Some(record)) = (input.parts.fork, input.fork) {
            fork_bytes = record.len();
            gain += kib(record.len()) as i64;
            draft
                .fork(scope, fork, record, input.stamp)
                .ok_or(Unplanned::General)?;
            numbers.push(fork.fork);
            numbers.sort_unstable();
        }
        if (gone || input.parts.end.is_some()) && !numbers.is_empty() {
            return Err(Unplanned::General);
        }
        let text: Vec<String> = numbers.iter().map(u32::to_string).collect();
        forks = (!text.is_empty()).then(|| text.join(" "));
        match &forks {
            Some(text) => draft.set_own("F:", text.clone().into_bytes()),
            None if had_forks => draft.remove_own("F:"),
            None => {}
        }
    }

    // The fork that the scope is a branch of.
    let branch = match is_root {
        true => None,
        false => {
            let (report, result) = (&input.parts.report, input.result);
            let branch = draft.branch(&fork_stamp, gone, known, report, result);
            Some(branch.ok_or(Unplanned::General)?)
        }
    };

    // The end.
    let ends = match input.parts.end {
        Some(Command::End { status, .. }) => {
            for field in ["k", "out", "err"] {
                draft.compare(field, b"");
            }
            let status = end_letter(*status);
            draft.set("s", status.as_bytes().to_vec());
            draft.set("end", commit.at.0.to_string().into_bytes());
            for (field, value) in [("out", input.output), ("err", input.error)] {
                if let Some(value) = value {
                    draft.set(field, value);
                }
            }
            // These are the header, the record, and fields that are neither compared nor read.
            Some((status, commit.at.0, 2 + consumed.len() + rest))
        }
        _ => None,
    };
    let index = match input.parts.index {
        true => {
            let before = known.attributes.as_ref().ok_or(Unplanned::Unknown)?;
            let change = attributes::change(before, &commit.scope.attributes);
            draft.compare("at", before.as_bytes());
            match change.text.is_empty() {
                false => draft.set("at", change.text.clone().into_bytes()),
                true if before.is_empty() => {}
                true => draft.gone.push("at".to_owned()),
            }
            Some(change)
        }
        false => None,
    };
    let attributes = match &index {
        Some(change) => Some(change.text.clone()),
        None => known.attributes.clone(),
    };
    let index = index.filter(IndexChange::is_indexed);

    let takes = !commit.lease.is_taken() && !released;
    let member = format!("{}/{scope}", commit.lease.scope.instance);
    // A faulted instance doesn't continue by itself.
    let goes = !gone && ends.is_none() && flags(&commit.scope).contains('g');
    let has_work = goes || !left.is_empty();
    if released && commit.lease.is_taken() {
        draft.remove_own("l:");
    }
    let room =
        (input.adds > before).then(|| input.adds as i64 - (before + inbox.consumed_kib()) as i64);
    let numbered = takes
        || !input.effects.is_empty()
        || branch
            .as_ref()
            .is_some_and(|branch| !branch.result.is_empty());
    let sized = gain != 0
        || room.is_some()
        || branch.as_ref().is_some_and(|b| b.bytes > 0)
        || ends.is_some();
    draft.read_if(numbered, "n");
    draft.read_if(sized, "z");
    if let Some(branch) = &branch {
        draft.read.push(format!("g:{}", branch.fork));
        if branch.reads_parent {
            let parent = ["l:r", "q:r", "x:r"];
            draft.read.extend(parent.map(str::to_owned));
        }
    }
    draft.read_if(!input.effects.is_empty() || ends.is_some(), "O");
    // A branch without a record never waited for anything.
    let leaves = gone && known.recorded;
    let is_over = gone && ends.is_some();
    let begins = !input.waits.is_empty();
    let waits = waits::change(scope, leaves, is_over, input.waits, input.freed);
    draft.read_if(index.is_some() || begins || ends.is_some(), "lw");
    if ends.is_some() {
        let own = ["t:r", "x:r", "a:r"];
        let others = [
            "w", "kp", "n", "key", "nk", "end", "at", "hn", "hd", "le", "om",
        ];
        for field in others.into_iter().chain(own) {
            draft.read(field);
        }
    }
    // A scope that continues under its lease is in the index already.
    let had_work = known.goes || !consumed.is_empty() || !left.is_empty() || !known.recorded;
    let stays = (has_work && (released || !had_work)).then(|| member.clone());
    let is_simple = held.is_none()
        && !takes
        && !sized
        && waits.is_none()
        && stays.is_none()
        && branch.is_none()
        && ends.is_none()
        && timers.is_none()
        && input.effects.is_empty()
        && index.is_none()
        && draft.wakes.is_empty();
    let more = More {
        instance: commit.lease.scope.instance.as_str(),
        namespace: input.namespace,
        held,
        taken: takes.then(|| {
            (
                format!("l:{scope}"),
                commit.lease_ms,
                after_till(input.holder, input.attempt),
            )
        }),
        numbered,
        gain: sized.then_some(gain),
        room,
        most: input.most,
        waits,
        stays,
        branch,
        ends,
        timers,
        effects: (!input.effects.is_empty()).then_some((0, input.effects)),
        index,
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
    let after = Snapshot {
        recorded: true,
        goes,
        mark,
        lease: takes
            .then(|| after_till(input.holder, input.attempt))
            .or(known.lease.clone()),
        inbox: inbox_after,
        items: Some(left.iter().map(|item| (*item).clone()).collect()),
        seen,
        forks,
        timers: timers_after,
        attributes,
        record,
        joining: None,
        completes: false,
        header: known.header.clone(),
    };
    // The scope is free and has something to do.
    let goes_on = released && !commit.lease.is_taken() && !left.is_empty();
    Ok(Plan {
        facts,
        compared: draft.compared,
        read: draft.read,
        set: draft.set,
        gone: draft.gone,
        wakes: draft.wakes,
        released,
        is_woken: goes_on,
        after,
        stamp: input.stamp,
        fork_bytes,
    })
}

impl Draft<'_> {
    /// Removes a fork whose branches are all done and gone. Returns how many fields of it are neither compared nor
    /// read, and its size in KiB.
    fn close(&mut self, number: u32, joining: &Joining) -> Option<(usize, i64)> {
        let numbers = &joining.numbers;
        let reported = numbers.reported();
        if joining.fork != number
            || numbers.closed == 1
            || numbers.live > 0
            || reported < numbers.open
        {
            return None;
        }
        let name = format!("{}.{number}", self.scope);
        self.compare(&format!("g:{name}"), &joining.text);
        self.gone.extend([format!("f:{name}"), format!("g:{name}")]);
        if reported > 0 {
            let branches = (0..numbers.total).map(|index| format!("b:{name}.{index}"));
            self.gone.extend(branches);
        }
        let kib = joining.fork_base_kib + kib(usize::try_from(numbers.bytes).ok()?);
        Some((1 + reported as usize, kib as i64))
    }

    fn fork(&mut self, scope: &str, fork: &Fork, record: Vec<u8>, stamp: u64) -> Option<()> {
        let open = fork.open.min(fork.total);
        let name = format!("{scope}.{}", fork.fork);
        let numbers = (
            (fork.total, open, fork.needed, 0, 0, 0, 0, 0, 0),
            stamp.to_string(),
            (0, fork.results_max),
        );
        let ((a, b, c, d, e, f, g, h, i), made, (bytes, most)) = numbers;
        let numbers = rmp_serde::to_vec(&(a, b, c, d, e, f, g, h, i, made, bytes, most)).ok()?;
        self.set(&format!("f:{name}"), record);
        self.set(&format!("g:{name}"), numbers);
        self.wakes = (0..open).map(|index| format!("{name}.{index}")).collect();
        Some(())
    }

    fn branch(
        &mut self,
        stamp: &str,
        gone: bool,
        known: &Snapshot,
        report: &Option<&Command>,
        result: Option<Vec<u8>>,
    ) -> Option<Branch> {
        let (fork, index) = self.scope.rsplit_once('.')?;
        let letter = match report {
            Some(Command::Report(BranchResult::Done { .. })) => "d",
            Some(Command::Report(_)) => "f",
            _ => "",
        };
        if gone == letter.is_empty() {
            return None;
        }
        let bytes = result.as_ref().map_or(0, Vec::len);
        if let Some(result) = result {
            self.set_own("b:", result);
        }
        let live = match (known.recorded, gone) {
            (false, false) => 1,
            (true, true) => -1,
            _ => 0,
        };
        Some(Branch {
            fork: fork.to_owned(),
            number: fork.rsplit_once('.')?.1.to_owned(),
            index: index.parse().ok()?,
            stamp: stamp.to_owned(),
            live,
            result: letter,
            bytes,
            reads_parent: known.completes && !letter.is_empty(),
        })
    }
}

/// The last part of a lease's text. The 0 says that its holder wasn't notified that the scope is closed.
fn after_till(holder: &str, attempt: u64) -> String {
    format!(" 0 {holder} {attempt}")
}

/// The numbers of a scope's forks.
fn numbers(text: Option<&str>) -> Option<Vec<u32>> {
    let words = text.unwrap_or_default().split_ascii_whitespace();
    words.map(|word| word.parse().ok()).collect()
}
