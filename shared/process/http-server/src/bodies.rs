//! The bodies of requests while they arrive. A client that sends slower than a rate is given up, and all bodies that
//! are incomplete have a limit together: beyond it, the one that has been arriving longest is given up, so that bodies
//! that nobody completes keep no other client from being served.

use std::collections::BTreeMap;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use futures::task::AtomicWaker;
use hyper::body::{Body, Bytes, Frame, SizeHint};
use tokio::time::{Instant, Sleep, sleep};

/// A body that has been arriving for less than this isn't given up for others.
const YOUNG: Duration = Duration::from_secs(1);

type BoxError = Box<dyn std::error::Error + Send + Sync>;

/// Why the rest of a body isn't read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum BodyError {
    #[error("the body arrives too slowly: at least {rate} bytes are needed each second")]
    TooSlow { rate: u64 },
    #[error("other requests are using all memory for bodies that are incomplete")]
    NoRoom,
}

impl BodyError {
    /// Finds it among the causes of an error.
    pub fn of(error: &(dyn std::error::Error + 'static)) -> Option<BodyError> {
        let mut causes = std::iter::successors(Some(error), |error| error.source());
        causes.find_map(|cause| cause.downcast_ref().copied())
    }
}

/// The limits of bodies that are incomplete.
#[derive(Debug, Clone, Copy)]
pub struct BodyLimits {
    /// The bytes of all of them together.
    pub total: usize,
    /// The bytes that a body needs each second, once `patience` is over.
    pub rate: u64,
    /// How long the client may send nothing at all, in total.
    pub patience: Duration,
}

impl Default for BodyLimits {
    fn default() -> BodyLimits {
        BodyLimits {
            total: 64 << 20,
            rate: 1 << 10,
            patience: Duration::from_secs(10),
        }
    }
}

/// All bodies of a server that are incomplete.
#[derive(Clone)]
pub(crate) struct Bodies {
    limits: BodyLimits,
    open: Arc<Mutex<Open>>,
}

#[derive(Default)]
struct Open {
    total: usize,
    /// By the order in which they began.
    all: BTreeMap<u64, IncompleteBody>,
    next: u64,
}

struct IncompleteBody {
    bytes: usize,
    since: Instant,
    given_up: Arc<GivenUp>,
}

/// Whether somebody's memory was given to others.
#[derive(Default)]
pub(crate) struct GivenUp {
    is: AtomicBool,
    waker: AtomicWaker,
}

impl GivenUp {
    pub fn give_up(&self) {
        self.is.store(true, Ordering::Release);
        self.waker.wake();
    }

    pub fn is(&self) -> bool {
        self.is.load(Ordering::Acquire)
    }

    pub fn wakes(&self, waker: &Waker) {
        self.waker.register(waker);
    }
}

/// The bytes of one body, which are released when it is dropped.
struct Held {
    number: u64,
    given_up: Arc<GivenUp>,
    bodies: Bodies,
}

impl Bodies {
    pub fn new(limits: BodyLimits) -> Bodies {
        Bodies {
            limits,
            open: Arc::default(),
        }
    }

    pub fn paced<B>(&self, body: B) -> Paced<B> {
        Paced {
            body,
            bodies: self.clone(),
            received: 0,
            waited: Duration::ZERO,
            waiting: None,
            held: None,
        }
    }

    fn lock(&self) -> MutexGuard<'_, Open> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn hold(&self) -> Held {
        let mut open = self.lock();
        let number = open.next;
        open.next += 1;
        let given_up = Arc::<GivenUp>::default();
        let entry = IncompleteBody {
            bytes: 0,
            since: Instant::now(),
            given_up: given_up.clone(),
        };
        open.all.insert(number, entry);
        Held {
            number,
            given_up,
            bodies: self.clone(),
        }
    }
}

impl Held {
    /// Adds bytes to this body, and gives up others if there is no room for them.
    fn add(&self, bytes: usize) -> Result<(), BodyError> {
        let mut open = self.bodies.lock();
        while open.total + bytes > self.bodies.limits.total {
            let oldest = open.all.iter().find(|(number, _)| **number != self.number);
            let Some(number) = oldest
                .filter(|(_, entry)| entry.since.elapsed() >= YOUNG)
                .map(|(number, _)| *number)
            else {
                return Err(BodyError::NoRoom);
            };
            if let Some(given_up) = open.remove(number) {
                given_up.give_up();
                tracing::debug!("an incomplete body is dropped to make room for others");
            }
        }
        // One that was given up meanwhile has no entry.
        let Some(entry) = open.all.get_mut(&self.number) else {
            return Err(BodyError::NoRoom);
        };
        entry.bytes += bytes;
        open.total += bytes;
        Ok(())
    }
}

impl Open {
    fn remove(&mut self, number: u64) -> Option<Arc<GivenUp>> {
        let entry = self.all.remove(&number)?;
        self.total -= entry.bytes;
        Some(entry.given_up)
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        self.bodies.lock().remove(self.number);
    }
}

/// A body that fails if it arrives too slowly, or if others need its room.
pub(crate) struct Paced<B> {
    body: B,
    bodies: Bodies,
    received: u64,
    /// How long the client was waited for, before the current wait.
    waited: Duration,
    waiting: Option<Waiting>,
    held: Option<Held>,
}

struct Waiting {
    since: Instant,
    limit: Pin<Box<Sleep>>,
}

impl<B> Paced<B> {
    /// How much longer the client may be waited for.
    fn patience(&self) -> Duration {
        let limits = self.bodies.limits;
        let earned = Duration::from_secs(self.received / limits.rate.max(1));
        (limits.patience + earned).saturating_sub(self.waited)
    }

    fn take(&mut self, bytes: usize) -> Result<(), BodyError> {
        self.received += bytes as u64;
        let bodies = &self.bodies;
        self.held.get_or_insert_with(|| bodies.hold()).add(bytes)
    }

    fn is_given_up(&self) -> bool {
        let held = self.held.as_ref();
        held.is_some_and(|held| held.given_up.is())
    }
}

impl<B> Body for Paced<B>
where
    B: Body<Data = Bytes> + Unpin,
    B::Error: Into<BoxError>,
{
    type Data = Bytes;
    type Error = BoxError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BoxError>>> {
        let this = &mut *self;
        if let Some(held) = &this.held {
            held.given_up.wakes(context.waker());
        }
        if this.is_given_up() {
            this.held = None;
            return Poll::Ready(Some(Err(BodyError::NoRoom.into())));
        }
        let Poll::Ready(frame) = Pin::new(&mut this.body).poll_frame(context) else {
            let patience = this.patience();
            let waiting = this.waiting.get_or_insert_with(|| Waiting {
                since: Instant::now(),
                limit: Box::pin(sleep(patience)),
            });
            if waiting.limit.as_mut().poll(context).is_pending() {
                return Poll::Pending;
            }
            this.held = None;
            let rate = this.bodies.limits.rate;
            return Poll::Ready(Some(Err(BodyError::TooSlow { rate }.into())));
        };
        if let Some(waiting) = this.waiting.take() {
            this.waited += waiting.since.elapsed();
        }
        let bytes = match &frame {
            Some(Ok(frame)) => frame.data_ref().map_or(0, Bytes::len),
            None | Some(Err(_)) => 0,
        };
        if bytes > 0
            && let Err(error) = this.take(bytes)
        {
            this.held = None;
            return Poll::Ready(Some(Err(error.into())));
        }
        if frame.is_none() || this.body.is_end_stream() {
            this.held = None;
        }
        Poll::Ready(frame.map(|frame| frame.map_err(Into::into)))
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

#[cfg(test)]
mod tests {
    use std::future::poll_fn;

    use futures::FutureExt;
    use tokio::sync::mpsc;

    use super::*;

    /// A body of the pieces that arrive.
    struct Pieces(mpsc::UnboundedReceiver<usize>);

    impl Body for Pieces {
        type Data = Bytes;
        type Error = std::convert::Infallible;

        fn poll_frame(
            mut self: Pin<&mut Self>,
            context: &mut Context<'_>,
        ) -> Poll<Option<Result<Frame<Bytes>, Self::Error>>> {
            let piece = self.0.poll_recv(context);
            piece.map(|piece| piece.map(|bytes| Ok(Frame::data(vec![0; bytes].into()))))
        }
    }

    type Sender = mpsc::UnboundedSender<usize>;

    fn body(bodies: &Bodies) -> (Sender, Paced<Pieces>) {
        let (sender, pieces) = mpsc::unbounded_channel();
        (sender, bodies.paced(Pieces(pieces)))
    }

    /// Reads one piece: its size, or the error; `None` is the end.
    async fn read(body: &mut Paced<Pieces>) -> Option<Result<usize, BodyError>> {
        let frame = poll_fn(|context| Pin::new(&mut *body).poll_frame(context)).await?;
        Some(match frame {
            Ok(frame) => Ok(frame.into_data().unwrap().len()),
            Err(error) => Err(*error.downcast().unwrap()),
        })
    }

    fn bodies(total: usize) -> Bodies {
        Bodies::new(BodyLimits {
            total,
            rate: 100,
            patience: Duration::from_secs(10),
        })
    }

    #[tokio::test(start_paused = true)]
    async fn a_body_needs_a_rate_and_only_the_client_counts() {
        let bodies = bodies(1 << 20);
        let slow = BodyError::TooSlow { rate: 100 };
        let (_sender, mut silent) = body(&bodies);
        let begun = Instant::now();
        assert_eq!(read(&mut silent).await, Some(Err(slow)));
        assert_eq!(begun.elapsed().as_secs(), 10);

        // A byte now and then is not enough.
        let (sender, mut trickling) = body(&bodies);
        let trickle = tokio::spawn(async move {
            while sender.send(1).is_ok() {
                sleep(Duration::from_secs(1)).await;
            }
        });
        let begun = Instant::now();
        let error = loop {
            match read(&mut trickling).await {
                Some(Ok(1)) => {}
                other => break other,
            }
        };
        assert_eq!(error, Some(Err(slow)));
        assert!(begun.elapsed() <= Duration::from_secs(11));
        drop(trickling);
        trickle.await.unwrap();

        // At the rate it may take as long as it needs, and so may a reader.
        let (sender, mut steady) = body(&bodies);
        let send = tokio::spawn(async move {
            for _ in 0..60 {
                sender.send(100).unwrap();
                sleep(Duration::from_secs(1)).await;
            }
        });
        assert_eq!(read(&mut steady).await, Some(Ok(100)));
        sleep(Duration::from_secs(30)).await;
        let mut pieces = 1;
        while let Some(piece) = read(&mut steady).await {
            assert_eq!(piece, Ok(100));
            pieces += 1;
        }
        assert_eq!(pieces, 60);
        send.await.unwrap();
        assert_eq!(bodies.lock().total, 0);
    }

    #[tokio::test(start_paused = true)]
    async fn those_that_nobody_completes_make_room_for_others() {
        let bodies = bodies(1_000);
        let (old_sender, mut old) = body(&bodies);
        old_sender.send(600).unwrap();
        assert_eq!(read(&mut old).await, Some(Ok(600)));
        // Both are young, so the second one finds no room.
        let (sender, mut second) = body(&bodies);
        sender.send(600).unwrap();
        assert_eq!(read(&mut second).await, Some(Err(BodyError::NoRoom)));
        assert_eq!(bodies.lock().total, 600);

        let waiting = tokio::spawn(async move { read(&mut old).await });
        sleep(YOUNG).await;
        let (sender, mut third) = body(&bodies);
        sender.send(600).unwrap();
        assert_eq!(read(&mut third).await, Some(Ok(600)));
        assert_eq!(waiting.await.unwrap(), Some(Err(BodyError::NoRoom)));
        // One that alone needs more than there is.
        sender.send(600).unwrap();
        assert_eq!(read(&mut third).await, Some(Err(BodyError::NoRoom)));
        assert_eq!(bodies.lock().total, 0);

        // A complete body holds nothing, whoever still has it.
        let (sender, mut complete) = body(&bodies);
        sender.send(1_000).unwrap();
        drop(sender);
        assert_eq!(read(&mut complete).await, Some(Ok(1_000)));
        assert_eq!(read(&mut complete).now_or_never(), Some(None));
        assert_eq!(bodies.lock().total, 0);
        assert!(bodies.lock().all.is_empty());
        drop((old_sender, complete));
    }
}
