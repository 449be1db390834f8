//! Large answers while clients take them. All of them have a limit together: beyond it, the connection that has been
//! taking its answer longest is closed, so that clients that don't read keep no memory from others.

use std::collections::BTreeMap;
use std::io;
use std::pin::Pin;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll};
use std::time::Duration;

use axum::http::StatusCode;
use axum::http::header::{CONTENT_TYPE, RETRY_AFTER};
use axum::response::{IntoResponse, Response};
use hyper::body::Body;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::Instant;

use crate::bodies::GivenUp;

/// An answer that was given less than this ago isn't given up for others.
const YOUNG: Duration = Duration::from_secs(1);
/// Smaller answers don't count: a connection has few at a time.
const LARGE: usize = 64 << 10;

/// The answers of a server.
#[derive(Clone)]
pub(crate) struct Answers {
    bytes_max: usize,
    open: Arc<Mutex<Open>>,
}

#[derive(Default)]
struct Open {
    total: usize,
    /// By the order in which their connections began to have any.
    all: BTreeMap<u64, UntakenAnswer>,
    last: u64,
}

/// An answer that a client hasn't taken yet.
struct UntakenAnswer {
    bytes: usize,
    since: Instant,
    given_up: Arc<GivenUp>,
}

/// The answers that the client of one connection hasn't taken yet.
#[derive(Clone)]
pub(crate) struct Untaken(Arc<OfConnection>);

struct OfConnection {
    answers: Answers,
    /// The place in the order; 0: there is nothing.
    number: AtomicU64,
    given_up: Arc<GivenUp>,
}

impl Answers {
    pub fn new(bytes_max: usize) -> Answers {
        Answers {
            bytes_max,
            open: Arc::default(),
        }
    }

    pub fn of_connection(&self) -> Untaken {
        Untaken(Arc::new(OfConnection {
            answers: self.clone(),
            number: AtomicU64::new(0),
            given_up: Arc::default(),
        }))
    }

    fn lock(&self) -> MutexGuard<'_, Open> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Open {
    fn remove(&mut self, number: u64) -> Option<Arc<GivenUp>> {
        let entry = self.all.remove(&number)?;
        self.total -= entry.bytes;
        Some(entry.given_up)
    }
}

impl Untaken {
    /// Counts an answer, or replaces it if there is no room for it.
    pub fn counted(&self, answer: Response) -> Response {
        let size = answer.body().size_hint().exact();
        let size = size.and_then(|size| usize::try_from(size).ok());
        match size.filter(|size| *size >= LARGE) {
            Some(size) if !self.add(size) => no_room(),
            _ => answer,
        }
    }

    /// Makes room for bytes. Returns false if there is none.
    fn add(&self, bytes: usize) -> bool {
        let OfConnection {
            answers,
            number,
            given_up,
        } = &*self.0;
        let mut open = answers.lock();
        let own = number.load(Ordering::Relaxed);
        while open.total + bytes > answers.bytes_max {
            let oldest = open.all.iter().find(|(number, _)| **number != own);
            let Some(oldest) = oldest
                .filter(|(_, entry)| entry.since.elapsed() >= YOUNG)
                .map(|(number, _)| *number)
            else {
                return false;
            };
            if let Some(given_up) = open.remove(oldest) {
                given_up.give_up();
                tracing::debug!(
                    "an answer that a client doesn't read is dropped to make room for others"
                );
            }
        }
        open.total += bytes;
        if let Some(entry) = open.all.get_mut(&own) {
            entry.bytes += bytes;
            return true;
        }
        open.last += 1;
        let entry = UntakenAnswer {
            bytes,
            since: Instant::now(),
            given_up: given_up.clone(),
        };
        let own = open.last;
        open.all.insert(own, entry);
        number.store(own, Ordering::Relaxed);
        true
    }

    /// The client has taken bytes of its answers. Their headers count too, so the last ones are a little too early.
    fn taken(&self, bytes: usize) {
        let number = self.0.number.load(Ordering::Relaxed);
        if number == 0 {
            return;
        }
        let mut open = self.0.answers.lock();
        let left = open.all.get_mut(&number).map(|entry| {
            let taken = bytes.min(entry.bytes);
            entry.bytes -= taken;
            (taken, entry.bytes)
        });
        if let Some((taken, _)) = left {
            open.total -= taken;
        }
        if left.is_none_or(|(_, left)| left == 0) {
            open.remove(number);
            self.0.number.store(0, Ordering::Relaxed);
        }
    }

    fn is_given_up(&self) -> bool {
        self.0.given_up.is()
    }
}

impl Drop for OfConnection {
    fn drop(&mut self) {
        let number = *self.number.get_mut();
        self.answers.lock().remove(number);
    }
}

fn no_room() -> Response {
    let body = r#"{"type":"about:blank","title":"Service Unavailable","status":503,"code":"too-many-answers","detail":"answers that other clients are still reading use all the memory for answers"}"#;
    let headers = [
        (CONTENT_TYPE, "application/problem+json"),
        (RETRY_AFTER, "1"),
    ];
    (StatusCode::SERVICE_UNAVAILABLE, headers, body).into_response()
}

/// A connection that breaks when its answers are given up.
pub(crate) struct Taking<S> {
    stream: S,
    untaken: Untaken,
}

impl<S> Taking<S> {
    pub fn new(stream: S, untaken: Untaken) -> Taking<S> {
        Taking { stream, untaken }
    }

    /// Passes the result of a write on, unless the answers are given up.
    fn passed<T>(
        &self,
        context: &mut Context<'_>,
        done: Poll<io::Result<T>>,
    ) -> Poll<io::Result<T>> {
        if done.is_pending() {
            self.untaken.0.given_up.wakes(context.waker());
        }
        match self.untaken.is_given_up() {
            false => done,
            true => Poll::Ready(Err(io::Error::new(
                io::ErrorKind::TimedOut,
                "an answer that isn't read was dropped to make room for others",
            ))),
        }
    }

    fn written(
        &self,
        context: &mut Context<'_>,
        done: Poll<io::Result<usize>>,
    ) -> Poll<io::Result<usize>> {
        if let Poll::Ready(Ok(bytes)) = &done {
            self.untaken.taken(*bytes);
        }
        self.passed(context, done)
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Taking<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(context, buffer)
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Taking<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let done = Pin::new(&mut self.stream).poll_write(context, bytes);
        self.written(context, done)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let done = Pin::new(&mut self.stream).poll_flush(context);
        self.passed(context, done)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        parts: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let done = Pin::new(&mut self.stream).poll_write_vectored(context, parts);
        self.written(context, done)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn those_that_nobody_takes_make_room_for_others() {
        let answers = Answers::new(1_000);
        let [old, second, third] = [(); 3].map(|()| answers.of_connection());
        assert!(old.add(600));
        // Both are young.
        assert!(!second.add(600));
        tokio::time::advance(YOUNG).await;
        assert!(second.add(600) && old.is_given_up() && !second.is_given_up());
        // A late report of one that was given up changes nothing.
        old.taken(100);
        assert_eq!(answers.lock().total, 600);
        // A connection isn't given up for itself, and one answer can be too large.
        tokio::time::advance(YOUNG).await;
        assert!(!second.add(600) && !third.add(1_001));
        assert!(!third.is_given_up());

        let answers = Answers::new(1_000);
        let connection = answers.of_connection();
        assert!(connection.add(600) && connection.add(300));
        connection.taken(650);
        assert_eq!(answers.lock().total, 250);
        connection.taken(300);
        assert_eq!(answers.lock().total, 0);
        assert!(connection.add(1_000));
        drop(connection);
        let open = answers.lock();
        assert!((open.total, open.all.len()) == (0, 0));
    }
}
