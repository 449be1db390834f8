//! Reads no faster than messages are taken.
//!
//! The clients of brokers read all that a broker sends, and keep what nobody has taken yet without a limit in bytes. So
//! a subscription connects through a relay that stops reading when it is far ahead. Then the broker keeps the messages.

use std::io;
use std::pin::Pin;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker, ready};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

/// The bytes that may be read before all earlier messages are taken.
const AHEAD_BYTES_MAX: usize = 256 << 10;

/// The messages that [`AHEAD_BYTES_MAX`] can hold.
pub(super) const AHEAD_MESSAGES_MAX: usize = AHEAD_BYTES_MAX / 8;

#[derive(Debug, Default)]
pub(super) struct Pace(Mutex<State>);

#[derive(Debug, Default)]
struct State {
    /// The bytes that were read since everything was taken.
    ahead: usize,
    /// Everything is taken, so a message of any size may come.
    is_awaited: bool,
    reader: Option<Waker>,
}

impl Pace {
    /// Awaits the next message, which is ready if it has come already.
    pub(super) async fn next<T>(&self, next: impl Future<Output = T>) -> T {
        tokio::task::consume_budget().await;
        // Otherwise tokio would say now and then that nothing has come.
        let mut next = std::pin::pin!(tokio::task::unconstrained(next));
        let there = std::future::poll_fn(|context| Poll::Ready(next.as_mut().poll(context)));
        if let Poll::Ready(came) = there.await {
            return came;
        }
        let _awaited = Awaited::new(self);
        next.await
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn poll_room(&self, context: &Context<'_>) -> Poll<()> {
        let mut state = self.state();
        if state.is_awaited || state.ahead < AHEAD_BYTES_MAX {
            return Poll::Ready(());
        }
        state.reader = Some(context.waker().clone());
        Poll::Pending
    }
}

struct Awaited<'a>(&'a Pace);

impl Awaited<'_> {
    fn new(pace: &Pace) -> Awaited<'_> {
        let mut state = pace.state();
        (state.ahead, state.is_awaited) = (0, true);
        if let Some(reader) = state.reader.take() {
            reader.wake();
        }
        Awaited(pace)
    }
}

impl Drop for Awaited<'_> {
    fn drop(&mut self) {
        self.0.state().is_awaited = false;
    }
}

/// A connection that is read at a pace.
pub(super) struct Paced<S> {
    pub(super) stream: S,
    pub(super) pace: std::sync::Arc<Pace>,
}

impl<S: AsyncRead + Unpin> AsyncRead for Paced<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        ready!(self.pace.poll_room(context));
        let before = buffer.filled().len();
        let read = Pin::new(&mut self.stream).poll_read(context, buffer);
        self.pace.state().ahead += buffer.filled().len() - before;
        read
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Paced<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(context, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::time::Duration;

    use tokio::io::AsyncReadExt as _;

    use super::*;

    #[tokio::test]
    async fn it_reads_on_when_everything_is_taken() {
        let pace = Arc::new(Pace::default());
        let (sender, mut messages) = tokio::sync::mpsc::unbounded_channel();
        let mut stream = Paced {
            stream: tokio::io::repeat(1),
            pace: Arc::clone(&pace),
        };
        let reading = tokio::spawn(async move {
            let mut bytes = vec![0; 64 << 10];
            while let Ok(count) = stream.read(&mut bytes).await {
                let _ = sender.send(count);
                tokio::task::yield_now().await;
            }
        });
        for _ in 0..3 {
            let mut taken = pace.next(messages.recv()).await.unwrap();
            tokio::time::sleep(Duration::from_millis(20)).await;
            // The reader has stopped.
            while let Ok(more) = messages.try_recv() {
                taken += more;
            }
            assert_eq!(taken, AHEAD_BYTES_MAX);
        }
        reading.abort();
    }
}
