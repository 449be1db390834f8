//! The limit on the time in which a request's headers must arrive, from their first byte. The body and the time between
//! two requests have limits of their own.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::{Sleep, sleep};

/// Whether a request's headers have arrived and it isn't answered yet.
#[derive(Clone, Default)]
pub(crate) struct UnderWay(Arc<AtomicBool>);

/// Until it is dropped, the request is under way.
pub(crate) struct Request(UnderWay);

impl UnderWay {
    pub fn begin(&self) -> Request {
        self.0.store(true, Ordering::Relaxed);
        Request(self.clone())
    }

    fn is(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}

impl Drop for Request {
    fn drop(&mut self) {
        self.0.0.store(false, Ordering::Relaxed);
    }
}

/// A connection that breaks when headers take too long.
pub(crate) struct Prompt<S> {
    stream: S,
    limit: Duration,
    under_way: UnderWay,
    /// Nothing has come since the last answer. Bytes right after an answer, without a pause, are the rest of a body
    /// that was not read.
    idle: bool,
    /// Since the first byte of headers that are not complete.
    coming: Option<Pin<Box<Sleep>>>,
}

impl<S> Prompt<S> {
    pub fn new(stream: S, limit: Duration, under_way: UnderWay) -> Prompt<S> {
        Prompt {
            stream,
            limit,
            under_way,
            idle: true,
            coming: None,
        }
    }

    /// The headers before an answer are complete, however fast it was.
    fn answered(&mut self) {
        self.coming = None;
        self.idle = false;
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Prompt<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        if self.under_way.is() {
            self.coming = None;
            return Pin::new(&mut self.stream).poll_read(context, buffer);
        }
        if let Some(coming) = &mut self.coming
            && coming.as_mut().poll(context).is_ready()
        {
            return Poll::Ready(Err(io::Error::new(
                io::ErrorKind::TimedOut,
                "the headers of a request took too long",
            )));
        }
        let before = buffer.filled().len();
        let read = Pin::new(&mut self.stream).poll_read(context, buffer);
        if read.is_pending() {
            self.idle = true;
        } else if buffer.filled().len() > before && self.idle && self.coming.is_none() {
            self.coming = Some(Box::pin(sleep(self.limit)));
        }
        read
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Prompt<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        self.answered();
        Pin::new(&mut self.stream).poll_write(context, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        parts: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        self.answered();
        Pin::new(&mut self.stream).poll_write_vectored(context, parts)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::io::{AsyncReadExt, AsyncWriteExt, duplex};

    const LIMIT: Duration = Duration::from_secs(10);

    #[tokio::test(start_paused = true)]
    async fn headers_have_so_long_and_bodies_and_pauses_have_longer() {
        let (near, mut far) = duplex(64);
        let under_way = UnderWay::default();
        let mut near = Prompt::new(near, LIMIT, under_way.clone());
        let mut some = [0; 8];
        let mut read = async |near: &mut Prompt<_>| near.read(&mut some).await;
        // Idle for as long as others allow.
        let idle = tokio::time::timeout(LIMIT * 5, read(&mut near)).await;
        assert!(idle.is_err());
        for _ in 0..2 {
            far.write_all(b"head").await.unwrap();
            assert_eq!(read(&mut near).await.unwrap(), 4);
            sleep(LIMIT / 2).await;
            far.write_all(b"ers").await.unwrap();
            assert_eq!(read(&mut near).await.unwrap(), 3);
            let request = under_way.begin();
            for _ in 0..3 {
                sleep(LIMIT).await;
                far.write_all(b"body").await.unwrap();
                assert_eq!(read(&mut near).await.unwrap(), 4);
            }
            drop(request);
            near.write_all(b"answer").await.unwrap();
            let idle = tokio::time::timeout(LIMIT * 5, read(&mut near)).await;
            assert!(idle.is_err());
        }

        // The body of an ignored request is not the beginning of headers.
        far.write_all(b"head").await.unwrap();
        assert_eq!(read(&mut near).await.unwrap(), 4);
        near.write_all(b"no").await.unwrap();
        far.write_all(b"body").await.unwrap();
        assert_eq!(read(&mut near).await.unwrap(), 4);
        let idle = tokio::time::timeout(LIMIT * 5, read(&mut near)).await;
        assert!(idle.is_err(), "{idle:?}");

        // A byte now and then is not enough.
        let begun = tokio::time::Instant::now();
        let slow = tokio::spawn(async move {
            while far.write_all(b"h").await.is_ok() {
                sleep(LIMIT / 4).await;
            }
        });
        let error = loop {
            if let Err(error) = read(&mut near).await {
                break error;
            }
        };
        assert_eq!(error.kind(), io::ErrorKind::TimedOut);
        assert_eq!(begun.elapsed().as_secs(), LIMIT.as_secs());
        drop(near);
        slow.await.unwrap();
    }
}
