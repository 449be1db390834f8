//! Positions in the stream of events.

use async_nats::datetime::DateTime;
use async_nats::jetstream::stream::{Info, RawMessageErrorKind, Stream};

use crate::Error;

/// The name of a stream in positions; see [`StreamPlace`](swirl_ports::StreamPlace).
pub(crate) fn name_of(info: &Info) -> String {
    info.created.unix_timestamp_nanos().to_string()
}

pub(crate) fn millis(at: DateTime) -> i64 {
    i64::try_from(at.unix_timestamp_nanos() / 1_000_000).unwrap_or_default()
}

/// When a message was put into the stream, in milliseconds since 1970; `None` if it is no longer there.
pub(crate) async fn came_at(stream: &Stream, sequence: u64) -> Result<Option<i64>, Error> {
    match stream.get_raw_message(sequence).await {
        Ok(message) => Ok(Some(millis(message.time))),
        Err(error) if error.kind() == RawMessageErrorKind::NoMessageFound => Ok(None),
        Err(error) => Err(Error::JetStream(error.to_string())),
    }
}

/// Whether the stream still has its messages up to this number. A server that lost its last messages reuses their
/// numbers.
pub(crate) async fn holds(stream: &Stream, sequence: u64, at_ms: i64) -> Result<bool, Error> {
    let state = &stream.cached_info().state;
    if sequence > state.last_sequence {
        return Ok(false);
    }
    if sequence == 0 || sequence < state.first_sequence {
        return Ok(true);
    }
    let found = came_at(stream, sequence).await?;
    Ok(found.is_none_or(|found| found <= at_ms))
}
