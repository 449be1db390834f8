//! The connections to one server. A connection that is to blame for an error is given up, and a new one is opened.
//!
//! The client library opens a lost connection again by itself. It keeps one that goes silent, and one whose server has
//! become a replica, for as long as the server or a proxy keeps it open. So a connection is given up here if
//! - its server answers READONLY: a new connection to the same address may reach the new master;
//! - a command gets no answer in time, and nothing else has been answered since it was sent;
//! - it doesn't answer a probe.
//!
//! Answers come in the order of their commands, so a large one delays all behind it. Commands with large answers have a
//! connection of their own. It isn't probed, because the answer to a probe would wait behind a large one; it is given up if a
//! command gets no answer in time.

use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{PoisonError, RwLock};
use std::time::Duration;

use redis::aio::{ConnectionManager, ConnectionManagerConfig};
use redis::{Client, Cmd, ErrorKind, Pipeline, RedisError, RedisResult, ServerErrorKind, Value};
use tokio::time::Instant;

/// How long commands may take.
#[derive(Clone, Copy)]
pub(crate) struct Limits {
    pub connect: Duration,
    pub response: Duration,
    pub retry: Duration,
    /// Whether another server may take the place of this one. Then an answer that comes after its connection was given
    /// up isn't believed: the server may have been frozen, and may not know yet that it was replaced.
    pub replaceable: bool,
    /// How often a connection attempt is repeated before the commands that wait for it fail.
    pub attempts: usize,
}

pub(crate) const BACKOFF_MIN: Duration = Duration::from_millis(50);
pub(crate) const BACKOFF_MAX: Duration = Duration::from_secs(2);

/// A connection isn't renewed more often: a server that really is a replica would cause a new one for each command.
const RENEWED_MIN: Duration = Duration::from_millis(500);
/// A connection that answered this recently isn't probed.
const IDLE: Duration = Duration::from_secs(1);
/// How long the answer to a probe may take.
const PROBE_MAX: Duration = Duration::from_secs(2);

/// Records of this size, in bytes, aren't read and written among other commands.
pub(crate) const LARGE: usize = 256 << 10;
/// How many large answers of all servers may be under way.
pub(crate) const LARGE_MAX: usize = 16;

/// The connection for a command.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum On {
    /// One of those that all commands share.
    Shared,
    /// The one for what is large.
    Aside,
}

pub(crate) struct Line {
    client: Client,
    limits: Limits,
    places: Vec<Place>,
    /// It connects with the first command that needs it.
    aside: Place,
    next: AtomicUsize,
    opened: Instant,
    renewals: AtomicU64,
}

/// One of the connections.
struct Place {
    current: RwLock<Current>,
    /// When the server last answered on it, in milliseconds since `Line::opened`.
    answered: AtomicU64,
}

#[derive(Clone)]
struct Current {
    manager: ConnectionManager,
    number: u64,
    since: Instant,
}

/// A connection that a command is about to use.
struct Taken<'a> {
    place: &'a Place,
    manager: ConnectionManager,
    number: u64,
    /// In milliseconds since `Line::opened`.
    at: u64,
}

impl Line {
    /// Connects with the first command.
    pub fn new(client: Client, limits: Limits, count: usize) -> RedisResult<Line> {
        let place = |_| {
            Ok(Place {
                current: RwLock::new(Current {
                    manager: manager(&client, limits)?,
                    number: 0,
                    since: Instant::now(),
                }),
                answered: AtomicU64::new(0),
            })
        };
        Ok(Line {
            places: (0..count.max(1)).map(place).collect::<RedisResult<_>>()?,
            aside: place(count)?,
            client,
            limits,
            next: AtomicUsize::new(0),
            opened: Instant::now(),
            renewals: AtomicU64::new(0),
        })
    }

    pub fn client(&self) -> &Client {
        &self.client
    }

    /// `host:port`
    pub fn address(&self) -> String {
        self.client.get_connection_info().addr().to_string()
    }

    /// The number of connections that were given up.
    pub fn renewals(&self) -> u64 {
        self.renewals.load(Ordering::Relaxed)
    }

    /// How long ago the server last answered; since the beginning, if never.
    pub fn silence(&self) -> Duration {
        let answered = self.places.iter();
        let last = answered.map(|place| place.answered.load(Ordering::Relaxed));
        let last = last.max().unwrap_or(0);
        Duration::from_millis(self.now().saturating_sub(last))
    }

    /// Sends a command once. An error of the server is returned as an error.
    pub fn send(&self, cmd: &Cmd) -> impl Future<Output = RedisResult<Value>> {
        self.send_on(cmd, On::Shared)
    }

    pub async fn send_on(&self, cmd: &Cmd, on: On) -> RedisResult<Value> {
        let mut taken = self.take(match on {
            On::Shared => self.turn(),
            On::Aside => &self.aside,
        });
        let sent = self.within(self.limits.response, taken.manager.send_packed_command(cmd));
        let result = sent.await.and_then(Value::extract_error);
        self.judge(&taken, result.as_ref().err());
        self.believed(&taken, result)
    }

    /// Sends commands as one message, and returns the responses but for the first `skipped`. Errors of the server are
    /// values.
    pub async fn send_all(&self, all: &Pipeline, skipped: usize) -> RedisResult<Vec<Value>> {
        let mut taken = self.take(self.turn());
        let count = all.len() - skipped;
        let sent = taken.manager.send_packed_commands(all, skipped, count);
        let result = self.within(self.limits.response, sent).await;
        match &result {
            Ok(values) => {
                let read_only = values.iter().find_map(|value| match value {
                    Value::ServerError(error)
                        if error.kind() == Some(ServerErrorKind::ReadOnly) =>
                    {
                        value.clone().extract_error().err()
                    }
                    _ => None,
                });
                self.judge(&taken, read_only.as_ref());
            }
            Err(error) => self.judge(&taken, Some(error)),
        }
        self.believed(&taken, result)
    }

    fn believed<T>(&self, taken: &Taken<'_>, result: RedisResult<T>) -> RedisResult<T> {
        let current = taken.place.current.read();
        let number = current.unwrap_or_else(PoisonError::into_inner).number;
        if result.is_ok() && self.limits.replaceable && number != taken.number {
            return Err(std::io::Error::from(std::io::ErrorKind::TimedOut).into());
        }
        result
    }

    /// Sends `probe` on each connection that has not answered for a moment, and gives up those that don't answer.
    pub async fn probe(&self, probe: &Cmd) {
        let idle = self.places.iter().filter(|place| {
            let answered = place.answered.load(Ordering::Relaxed);
            self.now().saturating_sub(answered) >= IDLE.as_millis() as u64
        });
        let asked = idle.map(async |place| {
            let mut taken = self.take(place);
            let limit = PROBE_MAX.min(self.limits.response);
            let sent = self.within(limit, taken.manager.send_packed_command(probe));
            let result = sent.await.and_then(Value::extract_error);
            self.judge(&taken, result.err().as_ref());
        });
        futures::future::join_all(asked).await;
    }

    fn turn(&self) -> &Place {
        &self.places[self.next.fetch_add(1, Ordering::Relaxed) % self.places.len()]
    }

    fn take<'a>(&self, place: &'a Place) -> Taken<'a> {
        let current = place.current.read().unwrap_or_else(PoisonError::into_inner);
        Taken {
            place,
            manager: current.manager.clone(),
            number: current.number,
            at: self.now(),
        }
    }

    fn now(&self) -> u64 {
        u64::try_from(self.opened.elapsed().as_millis()).unwrap_or(u64::MAX)
    }

    /// Limits the time for connecting, too.
    async fn within<T>(
        &self,
        limit: Duration,
        sent: impl Future<Output = RedisResult<T>>,
    ) -> RedisResult<T> {
        match tokio::time::timeout(limit, sent).await {
            Ok(result) => result,
            Err(_) => Err(std::io::Error::from(std::io::ErrorKind::TimedOut).into()),
        }
    }

    /// Decides from the result of a command whether its connection is to blame.
    fn judge(&self, taken: &Taken<'_>, error: Option<&RedisError>) {
        let Some(error) = error else {
            taken
                .place
                .answered
                .fetch_max(self.now(), Ordering::Relaxed);
            return;
        };
        if error.kind() == ErrorKind::Server(ServerErrorKind::ReadOnly) {
            return self.renew(taken, "its server accepts no writes");
        }
        if error.is_timeout() {
            // An answer at the same millisecond may be older than the command.
            if taken.place.answered.load(Ordering::Relaxed) <= taken.at {
                self.renew(taken, "its server doesn't answer");
            }
        } else if !error.is_io_error() {
            taken
                .place
                .answered
                .fetch_max(self.now(), Ordering::Relaxed);
        }
    }

    /// Commands in flight keep the old connection, and may still be answered.
    fn renew(&self, taken: &Taken<'_>, why: &str) {
        let mut current = taken
            .place
            .current
            .write()
            .unwrap_or_else(PoisonError::into_inner);
        if current.number != taken.number || current.since.elapsed() < RENEWED_MIN {
            return;
        }
        match manager(&self.client, self.limits) {
            Ok(manager) => {
                *current = Current {
                    manager,
                    number: current.number + 1,
                    since: Instant::now(),
                };
                self.renewals.fetch_add(1, Ordering::Relaxed);
                tracing::warn!(
                    server = self.address(),
                    "a connection to Redis is given up: {why}"
                );
            }
            Err(error) => tracing::warn!(%error, "no new connection to Redis can be prepared"),
        }
    }
}

fn manager(client: &Client, limits: Limits) -> RedisResult<ConnectionManager> {
    let config = ConnectionManagerConfig::new()
        .set_connection_timeout(Some(limits.connect))
        .set_response_timeout(Some(limits.response))
        .set_min_delay(BACKOFF_MIN)
        .set_max_delay(BACKOFF_MAX)
        .set_number_of_retries(limits.attempts);
    ConnectionManager::new_lazy_with_config(client.clone(), config)
}
