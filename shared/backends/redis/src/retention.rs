//! The retention of ended instances. The index of a shard has ended instances by the time of their end. Faulted ones
//! are below zero (`-1 - end`), so that other instances never displace them. Instances whose definition sets the
//! retention come after all others, by the time when they expire: `OWN + end + time`, or `-1 - (OWN + end + time)`.

use futures::future::join_all;
use redis::Cmd;
use swirl_model::ids::InstanceId;
use swirl_model::instance::{EndStatus, Retention};
use swirl_model::time::Timestamp;
use swirl_ports::Result;

use crate::Redis;
use crate::record::end_letter;

/// The number of ended instances of a shard removed at a time.
const REMOVED_AT_ONCE: usize = 500;
/// The number of instances removed by one function. The server is blocked meanwhile.
const CLEARED_AT_ONCE: usize = 50;
/// Greater than all instants. A score can represent such numbers exactly. The scripts use this number too.
const OWN: i64 = 4_000_000_000_000_000;

/// The form in the instance's field `kp`: letters of outcomes, each with its milliseconds. Empty if there are none.
pub(crate) fn text(retention: &Retention) -> String {
    let own = |outcome: EndStatus| {
        let ms = retention.of(outcome)?;
        Some(format!("{}{ms}", end_letter(outcome)))
    };
    Retention::OUTCOMES.into_iter().filter_map(own).collect()
}

/// The position of an ended instance in the index, without the sign of faulted ones.
pub(crate) fn of_ended(status: &str, at: i64, kept: Option<&str>) -> i64 {
    let own = kept
        .and_then(|kept| kept.split_once(status))
        .map(|(_, ms)| {
            let end = ms.find(|char: char| !char.is_ascii_digit());
            &ms[..end.unwrap_or(ms.len())]
        });
    match own.and_then(|ms| ms.parse::<i64>().ok()) {
        Some(ms) => OWN.saturating_add(at).saturating_add(ms),
        None => at,
    }
}

impl Redis {
    /// Removes ended instances that are too old or too many, oldest first. Instances that still have work or effects
    /// stay.
    pub async fn expire_instances(&self, now: Timestamp) -> Result<()> {
        let shards = self.shards().into_iter();
        // An instance that cannot be removed doesn't delay others.
        join_all(shards.map(|shard| self.expire_shard(shard, now)))
            .await
            .into_iter()
            .collect()
    }

    async fn expire_shard(&self, shard: u16, now: Timestamp) -> Result<()> {
        let options = self.options();
        let most = options
            .keep_ended_max
            .div_ceil(usize::from(self.keys().shards()));
        let old = self.oldest_ended(shard, now, options.keep_ended_ms, most);
        let ended = self.remove_all(shard, &old.await?).await;
        // Instances with unread histories are kept twice as long, and twice as many of them.
        let keep_ms = options.keep_faulted_ms;
        let before = now.0.saturating_sub_unsigned(keep_ms);
        let last = before.saturating_sub_unsigned(keep_ms);
        let old = self.oldest_faulted(shard, 0, before).await?;
        let faulted = self.remove_all(shard, &held_until(old, last)).await;
        let over = OWN.saturating_add(now.0);
        let old = self.oldest(shard, OWN, over).await?;
        let last = over.saturating_sub_unsigned(options.keep_ended_ms);
        let own = self.remove_all(shard, &held_until(old, last)).await;
        let old = self.oldest_faulted(shard, OWN, over).await?;
        let last = over.saturating_sub_unsigned(keep_ms);
        let own_faulted = self.remove_all(shard, &held_until(old, last)).await;
        ended.and(faulted).and(own).and(own_faulted)
    }

    /// The instances that ended too long ago, and the oldest ones if there are too many.
    async fn oldest_ended(
        &self,
        shard: u16,
        now: Timestamp,
        keep_ms: u64,
        most: usize,
    ) -> Result<Vec<Old>> {
        let before = now.0.saturating_sub_unsigned(keep_ms);
        let mut count = Cmd::new();
        count.arg("ZCOUNT").arg(self.keys().index(shard, "ended"));
        count.arg(0).arg("+inf");
        let size: usize = self.query(count).await?;
        let surplus = size.saturating_sub(most);
        let last = before.saturating_sub_unsigned(keep_ms);
        let overflow = size.saturating_sub(most.saturating_mul(2));
        let oldest = self.oldest(shard, 0, i64::MAX).await?.into_iter();
        let old = oldest.enumerate();
        let old = old.filter(|(place, (_, at))| *place < surplus || *at < before);
        let old = old.map(|(place, one)| Old {
            holds: place >= overflow && one.1 >= last,
            one,
        });
        Ok(old.collect())
    }

    /// The first instances that aren't faulted, from one position to before another.
    async fn oldest(&self, shard: u16, from: i64, to: i64) -> Result<Vec<(InstanceId, i64)>> {
        let mut read = Cmd::new();
        read.arg("ZRANGE").arg(self.keys().index(shard, "ended"));
        read.arg(from).arg(format!("({to}"));
        read.arg("BYSCORE").arg("LIMIT").arg(0);
        read.arg(REMOVED_AT_ONCE).arg("WITHSCORES");
        let oldest: Vec<(String, f64)> = self.query(read).await?;
        let old = oldest.into_iter();
        Ok(old
            .map(|(id, score)| (InstanceId::new(id), score as i64))
            .collect())
    }

    /// The same for faulted instances.
    async fn oldest_faulted(
        &self,
        shard: u16,
        from: i64,
        to: i64,
    ) -> Result<Vec<(InstanceId, i64)>> {
        let below = |place: i64| place.saturating_neg().saturating_sub(1);
        let mut read = Cmd::new();
        read.arg("ZRANGE").arg(self.keys().index(shard, "ended"));
        read.arg(below(from)).arg(format!("({}", below(to)));
        read.arg("BYSCORE").arg("REV").arg("LIMIT").arg(0);
        read.arg(REMOVED_AT_ONCE).arg("WITHSCORES");
        let oldest: Vec<(String, f64)> = self.query(read).await?;
        let old = oldest.into_iter();
        Ok(old
            .map(|(id, score)| (InstanceId::new(id), below(score as i64)))
            .collect())
    }

    async fn remove_all(&self, shard: u16, old: &[Old]) -> Result<()> {
        let follows = self.follows();
        let mut removed = Ok(());
        for some in old.chunks(CLEARED_AT_ONCE) {
            let places: Vec<_> = some.iter().map(|old| old.one.clone()).collect();
            let left = self.clear(shard, &places).await?;
            let cleared = places.iter().enumerate();
            let cleared = cleared.filter(|(place, _)| !left.contains(place));
            let cleared: Vec<&InstanceId> = cleared.map(|(_, (id, _))| id).collect();
            self.forget_recorded(shard, &cleared).await?;
            let left = left.into_iter().filter_map(|place| some.get(place));
            let removals = left.map(|old| {
                let (id, at) = &old.one;
                self.take_away(shard, id, *at, follows && old.holds)
            });
            removed = join_all(removals)
                .await
                .into_iter()
                .fold(removed, |all, one| all.and(one.map(|_| ())));
        }
        removed
    }
}

/// An instance to remove, with its position in the index.
struct Old {
    one: (InstanceId, i64),
    /// Stays while its history has unread entries.
    holds: bool,
}

fn held_until(old: Vec<(InstanceId, i64)>, last: i64) -> Vec<Old> {
    let old = old.into_iter();
    old.map(|one| Old {
        holds: one.1 >= last,
        one,
    })
    .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_position_says_when_an_instance_expires() {
        let retention = Retention {
            completed: Some(1_000),
            cancelled: Some(50),
            ..Retention::default()
        };
        let kept = text(&retention);
        assert_eq!(kept, "c1000x50");
        assert_eq!(of_ended("c", 7, Some(&kept)), OWN + 1_007);
        assert_eq!(of_ended("x", 7, Some(&kept)), OWN + 57);
        assert_eq!(of_ended("f", 7, Some(&kept)), 7);
        assert_eq!(of_ended("c", 7, None), 7);
        assert_eq!(text(&Retention::default()), "");
        // Scores are floating-point numbers.
        let last = OWN + i64::try_from(Retention::MAX_MS).unwrap() + 253_402_300_799_000;
        assert_eq!((last as f64) as i64, last);
    }
}
