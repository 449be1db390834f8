//! Counts of the instances that have begun and ended lately ([`swirl_ports::trend`]). `lua/write.lua` counts them, with
//! the commit that creates or ends an instance, in a hash of the instance's shard. Its fields are the places of minutes
//! (`m`) and of quarters of an hour (`q`). A value has the number of the span, then the numbers of [`Tally`].

use futures::future::try_join_all;
use redis::Cmd;
use swirl_model::time::Timestamp;
use swirl_ports::trend::Span;
use swirl_ports::{Result, Tally, Trend};

use crate::Redis;
use crate::connect::damaged;
use crate::keys::TREND;

type Stored = (i64, u64, u64, u64, u64, u64, u64, u64);

impl Redis {
    pub(crate) async fn trend_until(&self, now: Timestamp) -> Result<Trend> {
        let reads = (0..self.keys().shards()).map(|shard| {
            let mut read = Cmd::new();
            read.arg("HGETALL").arg(self.keys().index(shard, TREND));
            self.query::<Vec<(String, Vec<u8>)>>(read)
        });
        let found = try_join_all(reads).await?;
        let counts = found.iter().flatten();
        let counts = counts.filter_map(|(field, value)| read(field, value).transpose());
        Ok(Trend::of(now, &counts.collect::<Result<Vec<_>>>()?))
    }
}

fn read(field: &str, value: &[u8]) -> Result<Option<(Span, i64, Tally)>> {
    let span = match field.as_bytes().first() {
        Some(b'm') => Span::Minute,
        Some(b'q') => Span::Quarter,
        _ => return Ok(None),
    };
    let stored: Stored = rmp_serde::from_slice(value)
        .map_err(|error| damaged("the counts of starts and ends", error))?;
    let (number, started, completed, faulted, cancelled, terminated, millis, longest) = stored;
    let tally = Tally {
        started,
        completed,
        faulted,
        cancelled,
        terminated,
        millis,
        longest,
    };
    Ok(Some((span, number, tally)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_script_has_the_numbers_of_spans() {
        let script = include_str!("lua/write.lua");
        for (span, field, variable) in [
            (Span::Minute, "'m' .. minute % ", "seconds / "),
            (Span::Quarter, "'q' .. quarter % ", "seconds / "),
        ] {
            let places = format!("{field}{}", span.places());
            let length = format!("{variable}{})", span.millis() / 1000);
            assert!(
                script.contains(&places) && script.contains(&length),
                "{span:?}"
            );
        }
        // Until the oldest quarter is of no interest.
        let kept = Span::Quarter.places() * Span::Quarter.millis() / 1000;
        assert!(script.contains(&format!("call('EXPIRE', key, {kept})")));
    }
}
