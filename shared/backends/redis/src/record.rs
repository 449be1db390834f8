//! Stored records: JSON, and the few facts about them that scripts use.

use serde::Serialize;
use swirl_commit::{Flags, Kind};
use swirl_model::Data;
use swirl_model::event::Input;
use swirl_model::ids::{InstanceId, ScopeId, ScopeRef};
use swirl_model::instance::{EndStatus, Instance, InstanceState, Status};
use swirl_model::scope::{Fork, Timer, TimerKind};
use swirl_model::time::Timestamp;
use swirl_ports::{Error, InboxItem, Result};

use crate::attributes;
use crate::connect::damaged;
use crate::reply::{Reply, json};

/// Most records are smaller, so that they are allocated once.
pub(crate) const USUAL_BYTES: usize = 1_024;

/// Encodes a value as JSON, if it isn't too large.
pub(crate) fn encode(
    value: &impl Serialize,
    what: impl FnOnce() -> String,
    limit: usize,
) -> Result<Vec<u8>> {
    let mut bytes = Vec::with_capacity(USUAL_BYTES);
    encode_to(&mut bytes, value, what, limit)?;
    Ok(bytes)
}

/// The same, appended to `out`.
pub(crate) fn encode_to(
    out: &mut Vec<u8>,
    value: &impl Serialize,
    what: impl FnOnce() -> String,
    limit: usize,
) -> Result<()> {
    let before = out.len();
    if let Err(error) = serde_json::to_writer(&mut *out, value) {
        return Err(damaged(what(), format!("it is not valid JSON: {error}")));
    }
    let size = out.len() - before;
    if size > limit {
        let what = what();
        return Err(Error::TooLarge { what, size, limit });
    }
    Ok(())
}

/// Like [`encode`], for texts within other records.
pub(crate) fn encode_text(
    value: &impl Serialize,
    what: impl Fn() -> String,
    limit: usize,
) -> Result<String> {
    let bytes = encode(value, &what, limit)?;
    String::from_utf8(bytes).map_err(|error| damaged(what(), error))
}

/// The facts about a scope that scripts need.
pub(crate) fn flags(flags: Flags) -> String {
    let flags = [
        (flags.has_ended, 'e'),
        (flags.is_detached, 'd'),
        (flags.goes, 'g'),
    ];
    let flags = flags.into_iter().filter(|(is_set, _)| *is_set);
    flags.map(|(_, flag)| flag).collect()
}

/// The kind of an input in the inbox.
pub(crate) fn kind(input: &Input) -> &'static str {
    match Kind::of(input) {
        Kind::Operator => "o",
        Kind::Timed => "t",
        Kind::Event => "e",
        Kind::Join => "j",
        Kind::Other => "k",
    }
}

pub(crate) fn read_kind(letter: &str) -> Kind {
    match letter {
        "o" => Kind::Operator,
        "t" => Kind::Timed,
        "e" => Kind::Event,
        "j" => Kind::Join,
        _ => Kind::Other,
    }
}

pub(crate) fn timer_kind(kind: TimerKind) -> &'static str {
    match kind {
        TimerKind::Workflow => "workflow",
        TimerKind::State => "state",
        TimerKind::Branch => "branch",
        TimerKind::Action => "action",
        TimerKind::Event => "event",
        TimerKind::ConsumeEvent => "consume_event",
        TimerKind::Sleep => "sleep",
        TimerKind::RetryDelay => "retry_delay",
        TimerKind::Entry => "entry",
        TimerKind::Pause => "pause",
        TimerKind::Task => "task",
    }
}

/// Parses a member of the index of timers: order, scope, sequence number, kind, instance.
pub(crate) fn read_timer(member: &str, due: Timestamp) -> Result<(String, ScopeRef, Timer)> {
    let bad = || damaged("a timer", format!("'{member}' isn't one"));
    let mut parts = member.splitn(5, ' ');
    let mut next = || parts.next().ok_or_else(bad);
    let (order, scope, seq, kind, instance) = (next()?, next()?, next()?, next()?, next()?);
    let timer = Timer {
        seq: seq.parse().map_err(|_| bad())?,
        kind: serde_json::from_value(kind.into()).map_err(|_| bad())?,
        due,
    };
    let scope = ScopeRef {
        instance: InstanceId::new(instance),
        scope: ScopeId::new(scope),
    };
    Ok((order.to_owned(), scope, timer))
}

/// Parses `<instance>/<scope>`, as in the index of ready scopes.
pub(crate) fn read_scope_ref(member: &str) -> Result<ScopeRef> {
    let bad = || damaged("the index of what should run", format!("'{member}'"));
    let (instance, scope) = member.rsplit_once('/').ok_or_else(bad)?;
    Ok(ScopeRef {
        instance: InstanceId::new(instance),
        scope: ScopeId::new(scope),
    })
}

pub(crate) fn end_letter(status: EndStatus) -> &'static str {
    status_letter(status.into())
}

pub(crate) fn status_letter(status: Status) -> &'static str {
    match status {
        Status::Running => "r",
        Status::Completed => "c",
        Status::Faulted => "f",
        Status::Cancelled => "x",
        Status::Terminated => "t",
    }
}

pub(crate) fn read_status(letter: &str) -> Result<Status> {
    Ok(match letter {
        "r" => Status::Running,
        "c" => Status::Completed,
        "f" => Status::Faulted,
        "x" => Status::Cancelled,
        "t" => Status::Terminated,
        other => return Err(damaged("a status", format!("'{other}' isn't one"))),
    })
}

/// Empty bytes mean `None`.
fn optional<T: serde::de::DeserializeOwned>(bytes: &[u8], what: &str) -> Result<Option<T>> {
    if bytes.is_empty() {
        return Ok(None);
    }
    json(bytes, what).map(Some)
}

/// Reads the result of `instance_parts` in `lua/leases.lua`.
pub(crate) fn read_instance(mut parts: Reply, id: &InstanceId) -> Result<Instance> {
    let what = format!("instance {id}");
    let status = read_status(&parts.text()?)?;
    let suspended = parts.text()? == "1";
    let header = parts.json(&what)?;
    let output: Option<Data> = optional(&parts.bytes()?, &what)?;
    let error = optional(&parts.bytes()?, &what)?;
    let ended_at: Option<i64> = optional(&parts.bytes()?, &what)?;
    let attributes = attributes::read_heads(&parts.text()?, &what)?;
    let mut state = InstanceState {
        status,
        suspended,
        output,
        error,
        ended_at: ended_at.map(Timestamp),
        correlation: Default::default(),
        attributes,
    };
    while !parts.is_empty() {
        let name = parts.text()?;
        state.correlation.insert(name.into(), parts.text()?);
    }
    Ok(Instance {
        header: std::sync::Arc::new(header),
        state,
    })
}

/// A fork's origin with its numbers as they are now: `open`, `needed`, `notified`, `closed`.
pub(crate) fn read_branch(mut parts: Reply, fork_base: &Fork) -> Result<(Fork, u32)> {
    let mut fork = fork_base.clone();
    fork.open = parts.number()?;
    fork.needed = parts.number()?;
    fork.notified = parts.text()? == "1";
    fork.closed = parts.text()? == "1";
    Ok((fork, parts.number()?))
}

/// Reads pairs of id and input.
pub(crate) fn read_items(mut parts: Reply, what: &str) -> Result<Vec<InboxItem>> {
    let mut items = Vec::new();
    while !parts.is_empty() {
        let id = parts.text()?;
        let input = parts.json(what)?;
        items.push(InboxItem { id, input });
    }
    Ok(items)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kinds_of_timers_are_their_names_in_json() {
        use TimerKind::*;
        for kind in [
            Workflow,
            State,
            Branch,
            Action,
            Event,
            ConsumeEvent,
            Sleep,
            RetryDelay,
        ] {
            let member = format!("1 r.1.2 7 {} a b/c", timer_kind(kind));
            let (order, scope, timer) = read_timer(&member, Timestamp(5)).unwrap();
            assert_eq!(
                (order.as_str(), scope.to_string().as_str()),
                ("1", "a b/c/r.1.2")
            );
            assert_eq!((timer.seq, timer.kind), (7, kind));
        }
        assert!(read_timer("1 r 7 nap a", Timestamp(5)).is_err());
    }
}
