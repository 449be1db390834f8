//! Virtual time for futures that are all polled until nothing happens; then time advances to the next instant that one
//! of them waits for.

use std::cell::{Cell, RefCell};
use std::future::{Future, poll_fn};
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll, Waker};

pub type Boxed<T> = Pin<Box<dyn Future<Output = T>>>;

#[derive(Default)]
pub struct Clock {
    now: Cell<i64>,
    /// Grows with everything that happens.
    steps: Cell<u64>,
    /// The instants that futures wait for, in this round of polls.
    dues: RefCell<Vec<i64>>,
    /// Things that are closer to each other may happen in another order.
    pub margin: i64,
    undecided: RefCell<Option<String>>,
    running: RefCell<Vec<Boxed<()>>>,
    spawned: RefCell<Vec<Boxed<()>>>,
}

/// A limit, against endless workflows.
const END: i64 = 400 * 3_600_000;

impl Clock {
    pub fn new(margin: i64) -> Rc<Clock> {
        Rc::new(Clock {
            margin,
            ..Clock::default()
        })
    }

    pub fn now(&self) -> i64 {
        self.now.get()
    }

    /// Notes that something happens now.
    pub fn acts(&self) {
        self.steps.set(self.steps.get() + 1);
    }

    /// Notes that the outcome depends on the order of what is close to each other.
    pub fn doubt(&self, why: impl FnOnce() -> String) {
        self.undecided.borrow_mut().get_or_insert_with(why);
    }

    pub fn doubts(&self) -> Option<String> {
        self.undecided.borrow().clone()
    }

    pub fn spawn(&self, future: Boxed<()>) {
        self.acts();
        self.spawned.borrow_mut().push(future);
    }

    /// Runs until nothing is left that waits for an instant.
    pub fn run(&self) {
        let mut context = Context::from_waker(Waker::noop());
        loop {
            loop {
                let before = self.steps.get();
                self.dues.borrow_mut().clear();
                let new = std::mem::take(&mut *self.spawned.borrow_mut());
                let mut running = std::mem::take(&mut *self.running.borrow_mut());
                running.extend(new);
                running.retain_mut(|future| future.as_mut().poll(&mut context).is_pending());
                *self.running.borrow_mut() = running;
                if self.steps.get() == before && self.spawned.borrow().is_empty() {
                    break;
                }
            }
            let next = self.dues.borrow().iter().min().copied();
            match next {
                Some(next) if next < END => self.now.set(next.max(self.now() + 1)),
                _ => return,
            }
        }
    }

    /// An instant at which something may happen.
    pub fn due(&self, at: i64) {
        if at > self.now() {
            self.dues.borrow_mut().push(at);
        }
    }

    pub async fn sleep_until(&self, at: i64) {
        let begun = self.now();
        poll_fn(|_| match self.now() >= at {
            true => {
                if at > begun {
                    self.acts();
                }
                Poll::Ready(())
            }
            false => {
                self.due(at);
                Poll::Pending
            }
        })
        .await;
    }

    /// The result of a future, or nothing if it isn't there before the deadline.
    pub async fn within<T: 'static>(&self, deadline: Option<i64>, future: Boxed<T>) -> Option<T> {
        let mut watched = Watched::new(self, future);
        poll_fn(|context| {
            if let Poll::Ready(value) = watched.poll(self, context) {
                if deadline.is_some_and(|deadline| deadline - self.now() < self.margin) {
                    self.doubt(|| "done close to a deadline".to_owned());
                }
                return Poll::Ready(Some(value));
            }
            match deadline {
                Some(deadline) if self.now() >= deadline => {
                    self.acts();
                    watched.cut(self, "a timeout");
                    Poll::Ready(None)
                }
                Some(deadline) => {
                    self.due(deadline);
                    Poll::Pending
                }
                None => Poll::Pending,
            }
        })
        .await
    }

    /// Runs futures beside each other, until `decide` has a result for what is there, and says whether that cuts the
    /// others.
    pub async fn beside<T: 'static, R>(
        &self,
        futures: Vec<Boxed<T>>,
        mut decide: impl FnMut(&mut [Option<(i64, T)>]) -> Option<(R, bool)>,
    ) -> R {
        let mut watched: Vec<Watched<T>> = futures
            .into_iter()
            .map(|future| Watched::new(self, future))
            .collect();
        let mut done: Vec<Option<(i64, T)>> = watched.iter().map(|_| None).collect();
        poll_fn(|context| {
            for (watched, done) in watched.iter_mut().zip(&mut done) {
                if !watched.done
                    && let Poll::Ready(value) = watched.poll(self, context)
                {
                    *done = Some((self.now(), value));
                }
            }
            let Some((result, cuts)) = decide(&mut done) else {
                return Poll::Pending;
            };
            if cuts {
                let decisive = |one: &Watched<T>| one.done && one.last == self.now();
                let decisive = watched.iter().position(decisive);
                for (index, one) in watched.iter().enumerate() {
                    if Some(index) != decisive {
                        one.cut(self, "a branch");
                    }
                }
            }
            Poll::Ready(result)
        })
        .await
    }
}

/// A future, with the times at which something happened in it, and will.
struct Watched<T> {
    future: Boxed<T>,
    last: i64,
    next: i64,
    done: bool,
}

impl<T> Watched<T> {
    fn new(clock: &Clock, future: Boxed<T>) -> Watched<T> {
        Watched {
            future,
            last: clock.now(),
            next: i64::MAX,
            done: false,
        }
    }

    fn poll(&mut self, clock: &Clock, context: &mut Context<'_>) -> Poll<T> {
        let (steps, dues) = (clock.steps.get(), clock.dues.borrow().len());
        let polled = self.future.as_mut().poll(context);
        if clock.steps.get() != steps || polled.is_ready() {
            self.last = clock.now();
        }
        self.done = polled.is_ready();
        let all = clock.dues.borrow();
        let new = all.get(dues..).unwrap_or_default();
        self.next = new.iter().min().copied().unwrap_or(i64::MAX);
        polled
    }

    /// It ends now, because of something else.
    fn cut(&self, clock: &Clock, what: &str) {
        let now = clock.now();
        let is_close = now - self.last < clock.margin
            || !self.done && self.next.saturating_sub(now) < clock.margin;
        if is_close {
            clock.doubt(|| {
                format!(
                    "{what} is cut at {now}: last {}, next {}",
                    self.last, self.next
                )
            });
        }
    }
}
