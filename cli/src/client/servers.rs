//! Interchangeable servers: chooses one, and decides when a request is retried.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context, bail};
use reqwest::Url;

/// The time for which a request is retried. It is longer than other servers need to notice that one is gone.
const AGAIN_MAX: Duration = Duration::from_secs(15);
/// The first and the longest pause after all servers have failed.
const PAUSE: Duration = Duration::from_millis(100);
const PAUSE_MAX: Duration = Duration::from_secs(1);

/// Whether a request may be repeated when it is unknown whether it was carried out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Repeat {
    /// A repetition changes nothing.
    Safe,
    /// A repetition is safe only if the request reached no server.
    Never,
}

/// The kind of a failed attempt.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Failure {
    /// Nothing accepts the connection.
    Unreached,
    /// The connection broke, or the server allows a retry, perhaps only after this time.
    Unsure(Option<Duration>),
    /// Another attempt would fail as well.
    Hopeless,
}

pub struct Servers {
    all: Vec<Url>,
    /// The server that answered last.
    current: AtomicUsize,
    again_max: Duration,
}

impl Servers {
    /// # Errors
    /// There is none, or one of them is not a valid URL.
    pub fn new(urls: &[String]) -> anyhow::Result<Servers> {
        let given = urls.iter().map(|url| url.trim());
        let all: Vec<Url> = given
            .filter(|url| !url.is_empty())
            .map(parse)
            .collect::<anyhow::Result<_>>()?;
        if all.is_empty() {
            bail!("no server is set: use --server or SWIRL_SERVER");
        }
        Ok(Servers {
            all,
            current: AtomicUsize::new(0),
            again_max: AGAIN_MAX,
        })
    }

    /// Turns retries off.
    pub fn once(&mut self) {
        self.again_max = Duration::ZERO;
    }

    pub fn all(&self) -> &[Url] {
        &self.all
    }

    pub fn attempts(&self, repeat: Repeat) -> Attempts<'_> {
        Attempts {
            servers: self,
            repeat,
            failed: 0,
            since: None,
        }
    }
}

/// A URL, a host and port, or only a port on this machine.
fn parse(url: &str) -> anyhow::Result<Url> {
    let is_port = |text: &str| text.parse::<u16>().is_ok();
    let whole = match url.rsplit_once(':') {
        _ if is_port(url) => format!("http://127.0.0.1:{url}"),
        Some((host, port)) if !host.contains('/') && is_port(port) => format!("http://{url}"),
        _ => url.to_owned(),
    };
    let parsed = Url::parse(&whole).ok();
    parsed
        .filter(|url| ["http", "https"].contains(&url.scheme()) && url.has_host())
        .with_context(|| {
            format!("'{url}' is not the URL of a server, such as http://127.0.0.1:8080")
        })
}

/// The attempts of one request.
pub struct Attempts<'a> {
    servers: &'a Servers,
    repeat: Repeat,
    failed: usize,
    /// The time of the first failure.
    since: Option<Instant>,
}

impl Attempts<'_> {
    pub fn server(&self) -> &Url {
        let current = self.servers.current.load(Ordering::Relaxed);
        &self.servers.all[current % self.servers.all.len()]
    }

    /// The pause before the next attempt, or `None` if there is no next attempt.
    pub fn again(&mut self, failure: Failure) -> Option<Duration> {
        let count = self.servers.all.len();
        let allowed = match failure {
            // If the only server doesn't answer, its address is most likely wrong, or it isn't started.
            Failure::Unreached => count > 1,
            Failure::Unsure(_) => self.repeat == Repeat::Safe,
            Failure::Hopeless => false,
        };
        self.servers.current.fetch_add(1, Ordering::Relaxed);
        self.failed += 1;
        let pause = if self.failed.is_multiple_of(count) {
            let round = u32::try_from(self.failed / count - 1).unwrap_or(u32::MAX);
            let pause = PAUSE * 2u32.pow(round.min(8));
            match failure {
                Failure::Unsure(Some(after)) => pause.max(after),
                _ => pause,
            }
            .min(PAUSE_MAX)
        } else {
            Duration::ZERO
        };
        let since = *self.since.get_or_insert_with(Instant::now);
        (allowed && since.elapsed() + pause < self.servers.again_max).then_some(pause)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn servers(urls: &[&str]) -> Servers {
        let urls: Vec<String> = urls.iter().map(ToString::to_string).collect();
        Servers::new(&urls).unwrap()
    }

    const TWO: [&str; 2] = ["http://a:1", "http://b:1"];

    #[test]
    fn the_next_server_is_tried_at_once_and_all_after_a_pause() {
        let servers = servers(&TWO);
        let mut attempts = servers.attempts(Repeat::Never);
        assert_eq!(attempts.server().host_str(), Some("a"));
        assert_eq!(attempts.again(Failure::Unreached), Some(Duration::ZERO));
        assert_eq!(attempts.server().host_str(), Some("b"));
        assert_eq!(attempts.again(Failure::Unreached), Some(PAUSE));
        assert_eq!(attempts.server().host_str(), Some("a"));
        attempts.again(Failure::Unreached);
        assert_eq!(attempts.again(Failure::Unreached), Some(PAUSE * 2));
        // The next request begins with the server that answered last.
        attempts.again(Failure::Unreached);
        let next = servers.attempts(Repeat::Safe);
        assert_eq!(next.server().host_str(), Some("b"));
    }

    #[test]
    fn unsafe_requests_are_not_repeated() {
        let again = |urls: &[&str], repeat, failure| {
            let servers = servers(urls);
            servers.attempts(repeat).again(failure).is_some()
        };
        let broken = Failure::Unsure(None);
        assert!(again(&TWO, Repeat::Safe, broken));
        assert!(!again(&TWO, Repeat::Never, broken));
        assert!(again(&TWO, Repeat::Never, Failure::Unreached));
        assert!(!again(&TWO, Repeat::Safe, Failure::Hopeless));
        // With a single server.
        assert!(!again(&TWO[..1], Repeat::Safe, Failure::Unreached));
        assert!(again(&TWO[..1], Repeat::Safe, broken));
    }

    #[test]
    fn short_addresses() {
        for (short, whole) in [
            ("8081", "http://127.0.0.1:8081/"),
            ("localhost:8081", "http://localhost:8081/"),
            ("[::1]:8081", "http://[::1]:8081/"),
            ("https://swirl.example.org/x", "https://swirl.example.org/x"),
        ] {
            assert_eq!(parse(short).unwrap().as_str(), whole);
        }
        for wrong in ["b", "99999", "ftp://a:1", ":1"] {
            assert!(parse(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn retries_end() {
        let mut servers = servers(&TWO);
        let mut attempts = servers.attempts(Repeat::Safe);
        attempts.since = Instant::now().checked_sub(AGAIN_MAX);
        assert_eq!(attempts.again(Failure::Unreached), None);
        servers.once();
        assert_eq!(
            servers.attempts(Repeat::Safe).again(Failure::Unreached),
            None
        );
        assert!(Servers::new(&[String::new(), " ".to_owned()]).is_err());
        assert!(Servers::new(&["http://a:1".to_owned(), "b".to_owned()]).is_err());
    }

    #[test]
    fn the_servers_retry_after_is_respected() {
        let servers = servers(&TWO[..1]);
        let pause = |after| {
            let after = Failure::Unsure(Some(Duration::from_secs(after)));
            servers.attempts(Repeat::Safe).again(after)
        };
        assert_eq!(pause(0), Some(PAUSE));
        assert_eq!(pause(1), Some(Duration::from_secs(1)));
        assert_eq!(pause(3600), Some(PAUSE_MAX), "not for longer than we like");
    }
}
