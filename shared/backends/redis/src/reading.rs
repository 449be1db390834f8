//! The process that reads the events, and the position up to which they have been processed.
//!
//! The position is stored with the effects of the events, so a backup has both from the same moment. Two processes that
//! read at once cost time, never order: each begins after a position up to which everything is done, processes the
//! events of a key one after another, and processing an event twice has no effect the second time.

use swirl_ports::{Result, StreamPlace};

use crate::Redis;
use crate::connect::damaged;
use crate::reply::Reply;
use crate::script::{Lazy, Script};

static READING: Lazy = Lazy::new(|| Script::freeing_small(include_str!("lua/reading.lua")));

/// The role of a process in reading the events.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Reading {
    /// Another process reads the events.
    Other,
    /// This process continues reading.
    On,
    /// This process begins after this position. `None` if no process has read yet.
    Begin(Option<StreamPlace>),
}

impl Redis {
    /// Makes this process the reader of the events for `ttl_ms`, unless another process is. `place` is stored if this
    /// process already was the reader.
    ///
    /// # Errors
    /// Redis doesn't respond, or the stored position cannot be parsed.
    pub async fn read_events(&self, ttl_ms: u64, place: Option<&StreamPlace>) -> Result<Reading> {
        let mut args = vec![self.process_id().to_owned(), ttl_ms.to_string()];
        match place {
            Some(place) => args.extend([
                place.stream.clone(),
                place.done.to_string(),
                place.at_ms.to_string(),
                place.read.to_string(),
            ]),
            None => args.push(String::new()),
        }
        let key = self.keys().global("{events}:reading");
        let answer: redis::Value = self.eval(&READING, &[key], &args).await?;
        let mut answer = Reply::new(answer)?;
        Ok(match answer.number::<u8>()? {
            0 => Reading::Other,
            1 => Reading::On,
            _ => {
                let parts = [
                    answer.text()?,
                    answer.text()?,
                    answer.text()?,
                    answer.text()?,
                ];
                Reading::Begin(place_of(parts.map(Some))?)
            }
        })
    }

    /// Gives up the role, so that another process may read the events.
    ///
    /// # Errors
    /// As for [`Redis::read_events`].
    pub async fn leave_events(&self, place: Option<&StreamPlace>) -> Result<()> {
        self.read_events(0, place).await.map(drop)
    }

    /// The stored position up to which the events have been processed.
    ///
    /// # Errors
    /// As for [`Redis::read_events`].
    pub async fn events_place(&self) -> Result<Option<StreamPlace>> {
        let mut cmd = redis::cmd("HMGET");
        cmd.arg(self.keys().global("{events}:reading"))
            .arg(&["stream", "done", "at", "read"]);
        let parts: [Option<String>; 4] = self.query(cmd).await?;
        place_of(parts)
    }
}

fn place_of(parts: [Option<String>; 4]) -> Result<Option<StreamPlace>> {
    let [stream, done, at, read] = parts.map(Option::unwrap_or_default);
    if stream.is_empty() {
        return Ok(None);
    }
    let bad = |_| {
        damaged(
            "the position up to which events are done",
            "it has no number",
        )
    };
    Ok(Some(StreamPlace {
        stream,
        done: done.parse().map_err(bad)?,
        at_ms: at.parse().map_err(bad)?,
        read: read.parse().map_err(bad)?,
    }))
}
