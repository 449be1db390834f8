//! The calls of two small functions for what most commits are: `lua/step.lua` for a scope that goes on, and
//! `lua/report.lua` for the end of a branch. All other plans are written by `lua/write.lua`.

use redis::Cmd;

use crate::draft::Field;
use crate::facts::Branch;
use crate::plan::Plan;
use crate::script::{Lazy, Script};

static STEP: Lazy = Lazy::new(|| Script::of_commit(include_str!("lua/step.lua")));
static REPORT: Lazy = Lazy::new(|| Script::of_commit(include_str!("lua/report.lua")));

/// The keys of a commit: instance, index of ready scopes, history.
type Keys = [String];

/// The call, if a small function can write the plan. `elements`: the history.
pub(crate) fn call(
    plan: &Plan<'_>,
    keys: &Keys,
    elements: &[Vec<u8>],
) -> Option<(&'static Script, Cmd)> {
    let (facts, draft) = (&plan.facts, &plan.draft);
    let [instance, ready, history, ..] = keys else {
        return None;
    };
    let [element] = elements else {
        return None;
    };
    let is_small = facts.more.is_none()
        && plan.begins.is_empty()
        && draft.gone.is_empty()
        && draft.required(Field::Instance("s")) == Some(b"r")
        && draft.is_absent(Field::Instance("p"))
        && draft.is_absent(draft.own("q:"));
    if !is_small {
        return None;
    }
    let keys = [instance.clone(), history.clone(), ready.clone()];
    match &facts.branch {
        None => step(plan, &keys, element),
        Some(branch) => report(plan, branch, &keys, element),
    }
}

fn step(plan: &Plan<'_>, keys: &Keys, element: &[u8]) -> Option<(&'static Script, Cmd)> {
    let (facts, draft) = (&plan.facts, &plan.draft);
    let lease = draft.required(draft.own("l:"))?;
    let marks = draft.required(draft.own("m:"))?;
    let [(r, record), (m, new_marks)] = &*draft.set else {
        return None;
    };
    let is_step = draft.compared.len() == 5
        && draft.read == [Field::Instance("hn")]
        && (*r, *m) == (draft.own("r:"), draft.own("m:"))
        && !marks.is_empty();
    if !is_step {
        return None;
    }
    let count = if facts.leaves.is_some() { 3 } else { 2 };
    let mut call = STEP.call(&keys[..count]);
    call.arg(draft.scope).arg(lease).arg(marks).arg(new_marks);
    call.arg(record).arg(element);
    let mut counts = (facts.lines as u32).to_be_bytes().to_vec();
    counts.extend(facts.keep.to_be_bytes());
    call.arg(counts).arg(&facts.leaves);
    Some((&STEP, call))
}

fn report(
    plan: &Plan<'_>,
    branch: &Branch<'_>,
    keys: &Keys,
    element: &[u8],
) -> Option<(&'static Script, Cmd)> {
    let (facts, draft) = (&plan.facts, &plan.draft);
    let (index, parent) = (branch.index?, branch.parent?);
    let member = facts.leaves.as_ref()?;
    let [(b, result)] = &*draft.set else {
        return None;
    };
    let read = if branch.reads_parent { 4 } else { 2 };
    let is_report = draft.compared.len() == 6
        && ["b:", "l:", "m:"]
            .map(|kind| draft.own(kind))
            .into_iter()
            .all(|own| draft.is_absent(own))
        && draft.read.len() == read
        && draft.read[0] == Field::Instance("hn")
        && *b == draft.own("b:")
        && branch.result.is_some()
        && branch.live == 0
        && !branch.is_closed;
    if !is_report {
        return None;
    }
    let lengths = [branch.fork.len(), parent.len()];
    let [to_fork, to_parent] = lengths.map(u8::try_from);
    let mut numbers = vec![
        to_fork.ok()?,
        to_parent.ok()?,
        u8::from(branch.reads_parent),
        branch.result_number(),
    ];
    numbers.extend(index.to_be_bytes());
    numbers.extend(branch.stamp.to_be_bytes());
    numbers.extend((facts.lines as u32).to_be_bytes());
    numbers.extend(facts.keep.to_be_bytes());
    let mut call = REPORT.call(keys);
    call.arg(draft.scope).arg(result).arg(element).arg(numbers);
    call.arg(member).arg(&plan.millis);
    Some((&REPORT, call))
}
