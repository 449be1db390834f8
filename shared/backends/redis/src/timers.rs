//! The change of a scope's armed timers, in the instance's hash and in the index of timers.

use serde::Serialize;

use crate::inbox::packed;
use crate::known::Armed;
use crate::plan_input::Unplanned;
use crate::record::timer_kind;

/// The position of the index's key in the call's keys, members to remove, scores and members to add, and the lowest of
/// these scores.
#[derive(Debug, PartialEq, Serialize)]
pub(crate) struct TimerChange<'a> {
    pub key: usize,
    removed: Vec<&'a str>,
    added: Vec<(i64, String)>,
    earliest: Option<i64>,
}

impl<'a> TimerChange<'a> {
    /// Also returns the new value of the field. `stamp` orders timers that are due at the same time.
    pub fn of(
        change: &swirl_commit::TimerChange,
        known: &Armed<'a>,
        place: (&str, &str),
        stamp: u64,
    ) -> Result<(TimerChange<'a>, Option<Vec<u8>>), Unplanned> {
        let (instance, scope) = place;
        let is_disarmed = |seq: &str| seq.parse().is_ok_and(|seq| change.disarmed.contains(&seq));
        let (removed, left): (Vec<_>, Vec<_>) =
            known.iter().copied().partition(|(seq, _)| is_disarmed(seq));
        let added = change.armed.iter().zip(1..).map(|(timer, count)| {
            let (seq, kind) = (timer.seq, timer_kind(timer.kind));
            let member = format!("{stamp}{count:04} {scope} {seq} {kind} {instance}");
            (timer.due.0, member)
        });
        let added: Vec<(i64, String)> = added.collect();
        let numbers: Vec<String> = change
            .armed
            .iter()
            .map(|timer| timer.seq.to_string())
            .collect();
        let new = numbers.iter().zip(&added);
        let new = new.map(|(seq, (_, member))| (seq.as_str(), member.as_str()));
        let after: Armed<'_> = left.into_iter().chain(new).collect();
        let text = match after.is_empty() {
            true => None,
            false => Some(packed(&after, "its timers cannot be packed")?),
        };
        let change = TimerChange {
            key: 0,
            removed: removed.into_iter().map(|(_, member)| member).collect(),
            earliest: added.iter().map(|(due, _)| *due).min(),
            added,
        };
        Ok((change, text))
    }

    pub fn is_indexed(&self) -> bool {
        !self.removed.is_empty() || !self.added.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use swirl_contract::kit;

    use super::*;

    #[test]
    fn a_new_timer_takes_the_place_of_another() {
        let change = swirl_commit::TimerChange {
            disarmed: vec![1],
            armed: vec![kit::timer(2, 7), kit::timer(3, 6)],
        };
        let known = vec![("1", "m1"), ("4", "m4")];
        let (change, text) = TimerChange::of(&change, &known, ("a", "r"), 5).unwrap();
        let added = |due, member: &str| (due, member.to_owned());
        assert_eq!(change.removed, ["m1"]);
        assert_eq!(
            change.added,
            [added(7, "50001 r 2 sleep a"), added(6, "50002 r 3 sleep a")]
        );
        assert_eq!(change.earliest, Some(6));
        let text = text.unwrap();
        let after: Armed<'_> = rmp_serde::from_slice(&text).unwrap();
        let after: Vec<_> = after.iter().map(|(seq, _)| *seq).collect();
        assert_eq!(after, ["4", "2", "3"]);
    }

    #[test]
    fn nothing_is_left_of_disarmed_timers() {
        let change = swirl_commit::TimerChange {
            disarmed: vec![1],
            armed: Vec::new(),
        };
        let (change, text) = TimerChange::of(&change, &vec![("1", "m1")], ("a", "r"), 5).unwrap();
        assert!(change.is_indexed() && text.is_none());
    }
}
