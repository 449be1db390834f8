//! Circuit breakers, one per host: a host that fails repeatedly isn't called for a while.
//!
//! Each call to an unreachable host would take its whole time limit, and a recovering host would get all waiting calls
//! at once. So after a number of consecutive failures within a given time, calls to that host fail immediately. After a
//! pause, one call probes the host. If it succeeds, all calls pass again; otherwise the next pause is twice as long, up
//! to a limit.
//!
//! Only signs that the service doesn't answer count as failures: no connection, a broken connection, no answer in time,
//! and the statuses with which gateways report the same. An answer with any other status closes the circuit. An
//! abandoned call doesn't count. The state is local to the process: few hosts fail, and each process detects that by
//! itself.

use std::collections::{HashMap, VecDeque};
use std::future::Future;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use crate::{CallError, CallErrorKind};

/// The maximum number of failing hosts that are remembered. Beyond it, the one whose failure is oldest is forgotten.
const HOSTS_MAX: usize = 1024;

/// The conditions under which a circuit opens, and how long it stays open.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BreakerConfig {
    /// The number of consecutive failures that opens a circuit.
    pub failures: usize,
    /// The time within which they must occur.
    pub window: Duration,
    /// The length of the first pause.
    pub pause: Duration,
    /// The longest pause.
    pub pause_max: Duration,
}

/// The circuits of all hosts that have failed lately.
#[derive(Debug)]
pub struct Breakers {
    config: BreakerConfig,
    hosts: Mutex<HashMap<String, Host>>,
}

#[derive(Debug, Default)]
struct Host {
    /// The failures since its last answer, at most as many as open the circuit.
    failed_at: VecDeque<Instant>,
    open: Option<Open>,
}

#[derive(Debug, Clone, Copy)]
struct Open {
    until: Instant,
    pause: Duration,
    /// A probing call is under way.
    tried: bool,
}

/// The number of open circuits, and of those that are being probed.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Circuits {
    pub open: u64,
    pub half_open: u64,
}

tokio::task_local! {
    /// The time after which a slow call counts as a failure of its host.
    static LATE_AT: Instant;
}

/// Makes a call that is late after `limit`: if it is abandoned after that, this counts as a failure of its host.
pub(crate) async fn with_limit<T>(limit: Duration, call: impl Future<Output = T>) -> T {
    let late_at = Instant::now() + limit;
    LATE_AT.scope(late_at, call).await
}

impl Breakers {
    pub fn new(config: BreakerConfig) -> Breakers {
        Breakers {
            config,
            hosts: Mutex::default(),
        }
    }

    /// The circuits in their current state. One whose pause is over lets the next call through.
    pub fn circuits(&self) -> Circuits {
        self.circuits_at(Instant::now())
    }

    fn circuits_at(&self, now: Instant) -> Circuits {
        let mut circuits = Circuits::default();
        for open in self.lock().values().filter_map(|host| host.open) {
            circuits.half_open += u64::from(open.tried);
            circuits.open += u64::from(!open.tried && now < open.until);
        }
        circuits
    }

    /// Asks for permission to call a host.
    ///
    /// # Errors
    /// The time for which the host must not be called.
    pub(crate) fn enter(self: &Arc<Self>, host: &str) -> Result<Pass, Duration> {
        let is_try = self.let_through(host, Instant::now())?;
        Ok(Pass {
            breakers: self.clone(),
            host: host.to_owned(),
            is_try,
            late_at: LATE_AT.try_with(|late_at| *late_at).ok(),
            is_over: false,
        })
    }

    /// Whether the call probes a host whose circuit is open.
    fn let_through(&self, host: &str, now: Instant) -> Result<bool, Duration> {
        let mut hosts = self.lock();
        let Some(open) = hosts.get_mut(host).and_then(|host| host.open.as_mut()) else {
            return Ok(false);
        };
        if open.tried || now < open.until {
            return Err(open.until.saturating_duration_since(now));
        }
        open.tried = true;
        Ok(true)
    }

    fn succeeded(&self, host: &str) {
        let known = self.lock().remove(host);
        if known.is_some_and(|known| known.open.is_some()) {
            tracing::info!(host, "the host answers again: it is called as before");
        }
    }

    fn failed(&self, host: &str, is_try: bool, now: Instant) {
        let mut hosts = self.lock();
        if !hosts.contains_key(host) && hosts.len() >= HOSTS_MAX {
            forget_one(&mut hosts);
        }
        let known = hosts.entry(host.to_owned()).or_default();
        let paused = match &mut known.open {
            // Calls that began before the circuit opened don't count.
            Some(_) if !is_try => return,
            Some(open) => {
                let pause = open.pause.saturating_mul(2).min(self.config.pause_max);
                known.open.insert(Open::new(now, pause)).pause
            }
            None => {
                known.failed_at.push_back(now);
                if known.failed_at.len() < self.config.failures {
                    return;
                }
                let first = known.failed_at.pop_front().unwrap_or(now);
                if now.saturating_duration_since(first) > self.config.window {
                    return;
                }
                known.open.insert(Open::new(now, self.config.pause)).pause
            }
        };
        let failures = self.config.failures;
        tracing::warn!(
            host,
            pause_s = paused.as_secs_f64(),
            "the host has failed {failures} times in a row: calls to it are paused"
        );
    }

    /// The probing call was abandoned.
    fn abandoned(&self, host: &str) {
        if let Some(open) = self
            .lock()
            .get_mut(host)
            .and_then(|host| host.open.as_mut())
        {
            open.tried = false;
        }
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, HashMap<String, Host>> {
        self.hosts.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Open {
    fn new(now: Instant, pause: Duration) -> Open {
        Open {
            until: now + pause,
            pause,
            tried: false,
        }
    }
}

fn forget_one(hosts: &mut HashMap<String, Host>) {
    let oldest = hosts
        .iter()
        .min_by_key(|(_, host)| host.failed_at.back().copied());
    if let Some(oldest) = oldest.map(|(name, _)| name.clone()) {
        hosts.remove(&oldest);
    }
}

/// A permitted call. If it is dropped before its end, this counts as a failure only if the call was late.
#[derive(Debug)]
pub(crate) struct Pass {
    breakers: Arc<Breakers>,
    host: String,
    is_try: bool,
    late_at: Option<Instant>,
    is_over: bool,
}

impl Pass {
    /// The call has ended.
    pub(crate) fn over(mut self, is_failure: bool) {
        self.is_over = true;
        match is_failure {
            true => self
                .breakers
                .failed(&self.host, self.is_try, Instant::now()),
            false => self.breakers.succeeded(&self.host),
        }
    }
}

impl Drop for Pass {
    fn drop(&mut self) {
        if self.is_over {
            return;
        }
        let now = Instant::now();
        if self.late_at.is_some_and(|late_at| now >= late_at) {
            self.breakers.failed(&self.host, self.is_try, now);
        } else if self.is_try {
            self.breakers.abandoned(&self.host);
        }
    }
}

/// The error of a call that is not made. Retries and `errors` treat it as a missing connection.
pub(crate) fn refusal(what: &str, host: &str, wait: Duration) -> CallError {
    let message = format!(
        "{what}: not called: the last calls to {host} failed, so calls to it are paused for {} s",
        wait.as_secs_f64().ceil().max(1.0)
    );
    let mut error = CallError::new(CallErrorKind::Connection, message);
    error.retry_after = Some(wait);
    error
}

/// Whether gateways use this status to report that the service behind them is missing.
pub(crate) fn is_gateways(status: u16) -> bool {
    matches!(status, 502..=504)
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    fn breakers() -> Arc<Breakers> {
        Arc::new(Breakers::new(BreakerConfig {
            failures: 3,
            window: 10 * SECOND,
            pause: SECOND,
            pause_max: 3 * SECOND,
        }))
    }

    #[test]
    fn a_circuit_opens_is_probed_and_closes() {
        let (breakers, begun) = (breakers(), Instant::now());
        for _ in 0..3 {
            assert_eq!(breakers.let_through("a", begun), Ok(false));
            breakers.failed("a", false, begun);
        }
        assert_eq!(breakers.let_through("a", begun), Err(SECOND));
        assert_eq!(breakers.let_through("b", begun), Ok(false), "another host");
        let later = begun + SECOND;
        assert_eq!(breakers.let_through("a", later), Ok(true));
        assert_eq!(breakers.circuits().half_open, 1);
        assert!(breakers.let_through("a", later).is_err(), "one call tries");
        breakers.failed("a", false, later);
        assert_eq!(breakers.circuits().half_open, 1, "it began before");
        breakers.failed("a", true, later);
        assert_eq!(breakers.let_through("a", later), Err(2 * SECOND));
        let later = later + 2 * SECOND;
        assert_eq!(breakers.let_through("a", later), Ok(true));
        breakers.failed("a", true, later);
        assert_eq!(
            breakers.let_through("a", later),
            Err(3 * SECOND),
            "the most"
        );
        breakers.succeeded("a");
        assert_eq!(breakers.let_through("a", later), Ok(false));
        assert_eq!(breakers.circuits(), Circuits::default());
    }

    #[test]
    fn only_consecutive_failures_within_the_window_count() {
        let (breakers, begun) = (breakers(), Instant::now());
        for _ in 0..10 {
            breakers.failed("a", false, begun);
            breakers.failed("a", false, begun);
            breakers.succeeded("a");
        }
        for seconds in 0..10 {
            breakers.failed("b", false, begun + 6 * seconds * SECOND);
        }
        assert_eq!(breakers.circuits(), Circuits::default());
        let at = begun + 55 * SECOND;
        breakers.failed("b", false, at);
        assert_eq!(breakers.circuits_at(at).open, 1);
        assert_eq!(
            breakers.circuits_at(at + SECOND).open,
            0,
            "the pause is over"
        );
    }

    #[test]
    fn hosts_are_bounded() {
        let (breakers, begun) = (breakers(), Instant::now());
        for host in 0..HOSTS_MAX + 10 {
            let at = begun + Duration::from_millis(host as u64);
            breakers.failed(&host.to_string(), false, at);
        }
        let hosts = breakers.lock();
        assert_eq!(hosts.len(), HOSTS_MAX);
        assert!(!hosts.contains_key("0"));
    }

    #[tokio::test]
    async fn abandoned_calls_count_only_when_late() {
        let breakers = breakers();
        for (limit, open) in [(60 * SECOND, 0), (Duration::ZERO, 1)] {
            for _ in 0..3 {
                let given_up = async { drop(breakers.enter("a").unwrap()) };
                with_limit(limit, given_up).await;
            }
            assert_eq!(breakers.circuits().open, open);
        }
    }

    #[test]
    fn an_abandoned_probe_is_repeated_by_the_next_call() {
        let (breakers, begun) = (breakers(), Instant::now());
        for _ in 0..3 {
            breakers.failed("a", false, begun.checked_sub(SECOND).unwrap());
        }
        drop(breakers.enter("a").unwrap());
        breakers.enter("a").unwrap().over(false);
        assert!(!breakers.enter("a").unwrap().is_try);
    }
}
