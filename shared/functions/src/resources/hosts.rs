//! The hosts that documents may be fetched from.

use url::{Host, Url};

/// An allow-list. It includes this machine's loopback addresses, unless [`Hosts::without_loopback`] is called.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Hosts {
    patterns: Vec<Pattern>,
    no_loopback: bool,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Pattern {
    All,
    /// The host itself, at one port if the pattern has a port.
    One {
        host: String,
        port: Option<u16>,
    },
    /// `*.example.org`: all subdomains. The text begins with the dot.
    Below(String),
}

/// A text that is not a valid entry of an allow-list.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "`{0}` is not a valid host: write example.org, example.org:8443, *.example.org, or * for all"
)]
pub struct HostsError(pub String);

impl Hosts {
    /// Each entry is a host name or address, `host:port`, `*.domain` (all subdomains, but not the domain itself), or
    /// `*`. Case doesn't matter.
    ///
    /// # Errors
    /// [`HostsError`] for the first entry that is not valid.
    pub fn parse(entries: &[impl AsRef<str>]) -> Result<Hosts, HostsError> {
        entries
            .iter()
            .map(|entry| pattern(entry.as_ref()))
            .collect::<Result<_, _>>()
            .map(|patterns| Hosts {
                patterns,
                no_loopback: false,
            })
    }

    /// Excludes this machine's services unless an entry names them. For processes that read documents of others.
    #[must_use]
    pub fn without_loopback(mut self) -> Hosts {
        self.no_loopback = true;
        self
    }

    /// Whether this machine's services are included.
    pub(super) fn allows_loopback(&self) -> bool {
        !self.no_loopback
    }

    /// Whether a URL's host is allowed.
    pub fn allow(&self, url: &Url) -> bool {
        let own = host(url);
        !self.no_loopback && is_loopback(url)
            || self.patterns.iter().any(|pattern| match pattern {
                Pattern::All => !is_loopback(url),
                Pattern::One { host, port } => {
                    *host == own
                        && port.is_none_or(|port| url.port_or_known_default() == Some(port))
                }
                Pattern::Below(suffix) => own.ends_with(suffix) && own.len() > suffix.len(),
            })
    }
}

fn pattern(entry: &str) -> Result<Pattern, HostsError> {
    let wrong = || HostsError(entry.to_owned());
    if entry == "*" {
        return Ok(Pattern::All);
    }
    let (is_below, text) = match entry.strip_prefix("*.") {
        Some(rest) => (true, rest),
        None => (false, entry),
    };
    // The host is compared in the form that URLs have: lower case, IDNA, normalised addresses.
    let is_plain = !text.is_empty() && !text.contains(['/', '?', '#', '@', '\\', '*', ' ']);
    let url = Url::parse(&format!("http://{text}/"))
        .ok()
        .filter(|_| is_plain);
    let url = url.ok_or_else(wrong)?;
    // `Url` drops the default port, so only the text shows whether a port was given.
    let has_port = text
        .rsplit_once(':')
        .is_some_and(|(_, port)| port.parse::<u16>().is_ok())
        && !text.ends_with(']');
    let port = if has_port {
        url.port_or_known_default()
    } else {
        None
    };
    match (is_below, port) {
        (true, None) => Ok(Pattern::Below(format!(".{}", host(&url)))),
        (true, Some(_)) => Err(wrong()),
        (false, port) => Ok(Pattern::One {
            host: host(&url),
            port,
        }),
    }
}

/// A URL's host, without the trailing dot of a full domain name.
pub(super) fn host(url: &Url) -> String {
    let host = url.host_str().unwrap_or_default();
    host.strip_suffix('.').unwrap_or(host).to_owned()
}

/// `localhost`, 127.0.0.0/8 and ::1.
pub(super) fn is_loopback(url: &Url) -> bool {
    match url.host() {
        Some(Host::Domain(_)) => host(url) == "localhost",
        Some(Host::Ipv4(address)) => address.is_loopback(),
        Some(Host::Ipv6(address)) => address.to_canonical().is_loopback(),
        None => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn allow(entries: &[&str], url: &str) -> bool {
        Hosts::parse(entries)
            .unwrap()
            .allow(&Url::parse(url).unwrap())
    }

    #[test]
    fn this_machine_is_always_allowed_and_nothing_else() {
        for url in [
            "http://localhost:8090/a",
            "http://LOCALHOST/",
            "http://127.0.0.1/",
            "http://127.9.9.9:1/",
            "http://2130706433/",
            "https://[::1]:8443/",
            "http://[::ffff:127.0.0.1]/",
        ] {
            assert!(allow(&[], url), "{url}");
        }
        for url in [
            "http://localhost.example.org/",
            "http://0.0.0.0/",
            "http://10.0.0.1/",
            "http://169.254.169.254/latest",
            "http://127.0.0.1.example.org/",
            "http://127.0.0.1@example.org/",
            "http://[::]/",
        ] {
            assert!(!allow(&[], url), "{url}");
        }
    }

    #[test]
    fn this_machine_can_be_excluded() {
        let url = Url::parse("http://127.0.0.1:8090/a").unwrap();
        for (entries, expected) in [(&[][..], false), (&["*"], false), (&["127.0.0.1"], true)] {
            let hosts = Hosts::parse(entries).unwrap();
            assert!(hosts.allow(&url));
            assert_eq!(
                hosts.without_loopback().allow(&url),
                expected,
                "{entries:?}"
            );
        }
    }

    #[test]
    fn entries_allow_the_hosts_they_name() {
        for (entry, url, expected) in [
            ("*", "http://10.0.0.1/", true),
            ("example.org", "https://EXAMPLE.org:8443/a", true),
            ("Example.ORG", "https://example.org./a", true),
            ("example.org", "https://www.example.org/", false),
            ("example.org", "https://badexample.org/", false),
            ("example.org:8443", "https://example.org:8443/", true),
            ("example.org:8443", "https://example.org/", false),
            ("example.org:80", "http://example.org/", true),
            ("example.org:80", "https://example.org/", false),
            ("*.example.org", "https://a.b.example.org/", true),
            ("*.example.org", "https://example.org/", false),
            ("*.example.org", "https://badexample.org/", false),
            ("10.0.0.1", "http://10.0.0.1:9/", true),
            ("[fd00::1]", "http://[fd00:0::1]:9/", true),
            ("[fd00::1]:80", "http://[fd00::1]/", true),
        ] {
            assert_eq!(allow(&[entry], url), expected, "{entry} {url}");
        }
    }

    #[test]
    fn invalid_hosts_are_rejected() {
        for entry in [
            "",
            "http://example.org",
            "example.org/a",
            "*.",
            "a b",
            "**",
            "*.a.org:80",
            "a*",
        ] {
            assert_eq!(Hosts::parse(&[entry]), Err(HostsError(entry.to_owned())));
        }
    }
}
