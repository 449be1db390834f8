//! Determines which hosts functions may call, by the address that a name resolves to and not by the name.
//!
//! A definition decides which host is called, so it could make a worker call the cloud's metadata service, or the
//! installation's own servers. A refusal applies to every address that a name resolves to. The connection is made to an
//! address that was checked, so a different resolution in between changes nothing.

use std::collections::HashMap;
use std::fmt;
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::str::FromStr;
use std::sync::{Arc, Mutex, PoisonError, RwLock};
use std::time::{Duration, Instant};

use reqwest::dns::{Addrs, Name, Resolve, Resolving};
use url::{Host, Url};

/// How long the addresses of a name are cached.
const KNOWN_FOR: Duration = Duration::from_secs(10);
/// The number of cached names.
const KNOWN_MAX: usize = 1024;

/// Networks that are never called unless the operator allows them: link-local addresses, where clouds have their
/// metadata services, the metadata services that aren't link-local, and addresses that don't belong to a single
/// service.
const NEVER: [&str; 13] = [
    "169.254.0.0/16",
    "fe80::/10",
    // Amazon (also ::23, the credentials of pods), Google, Oracle and Scaleway.
    "fd00:ec2::/112",
    "fd20:ce::254/128",
    "fd00:c1::a9fe:a9fe/128",
    "fd00:42::42/128",
    "100.100.100.200/32",
    "192.0.0.192/32",
    "168.63.129.16/32",
    // NAT64 for local use, which may lead to any IPv4 address, and embeds it wherever its operator wants.
    "64:ff9b:1::/48",
    "0.0.0.0/8",
    "::/128",
    "224.0.0.0/3",
];
/// The networks that `private` stands for.
const PRIVATE: [&str; 6] = [
    "10.0.0.0/8",
    "172.16.0.0/12",
    "192.168.0.0/16",
    "100.64.0.0/10",
    "fc00::/7",
    "fec0::/10",
];
/// The networks that `loopback` stands for.
const LOOPBACK: [&str; 2] = ["127.0.0.0/8", "::1/128"];

/// A range of addresses.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Network {
    address: IpAddr,
    bits: u8,
}

/// A text that is not a valid network.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "`{0}` is not a valid network: write 10.0.0.0/8, 10.0.0.1, fd00::/8, `private` or `loopback`"
)]
pub struct NetworkError(pub String);

impl FromStr for Network {
    type Err = NetworkError;

    fn from_str(text: &str) -> Result<Network, NetworkError> {
        let wrong = || NetworkError(text.to_owned());
        let (address, bits) = match text.split_once('/') {
            Some((address, bits)) => (address, Some(bits)),
            None => (text, None),
        };
        let address: IpAddr = address.parse().map_err(|_| wrong())?;
        let most = if address.is_ipv4() { 32 } else { 128 };
        let bits = match bits {
            Some(bits) => bits.parse().ok().filter(|bits| *bits <= most),
            None => Some(most),
        };
        let bits = bits.ok_or_else(wrong)?;
        Ok(Network { address, bits })
    }
}

impl Network {
    fn holds(&self, address: IpAddr) -> bool {
        match (self.address, address) {
            (IpAddr::V4(own), IpAddr::V4(other)) => {
                let shift = 32 - u32::from(self.bits);
                let cut = |address: Ipv4Addr| u64::from(u32::from(address)) >> shift;
                cut(own) == cut(other)
            }
            (IpAddr::V6(own), IpAddr::V6(other)) => {
                let shift = 128 - u32::from(self.bits);
                let cut = |address: Ipv6Addr| u128::from(address).checked_shr(shift).unwrap_or(0);
                cut(own) == cut(other)
            }
            _ => false,
        }
    }
}

/// The rules for addresses that may be called.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Egress {
    refused: Vec<Network>,
    /// These are always permitted.
    allowed: Vec<Network>,
    /// Hosts and ports of the installation's own servers, which are refused.
    own: Vec<(String, u16)>,
    found: DiscoveredServers,
}

/// Further servers of the installation, which its clients find while they run: a Sentinel's master, nodes of clusters.
/// Clones share them.
#[derive(Debug, Clone, Default)]
pub struct DiscoveredServers(Arc<RwLock<Vec<(String, u16)>>>);

impl DiscoveredServers {
    /// Replaces the known ones.
    pub fn set(&self, servers: Vec<(String, u16)>) {
        *self.0.write().unwrap_or_else(PoisonError::into_inner) = servers;
    }

    fn all(&self) -> Vec<(String, u16)> {
        let all = self.0.read().unwrap_or_else(PoisonError::into_inner);
        all.clone()
    }
}

/// What is found is no part of the rules.
impl PartialEq for DiscoveredServers {
    fn eq(&self, _: &DiscoveredServers) -> bool {
        true
    }
}

impl Eq for DiscoveredServers {}

impl Default for Egress {
    /// Refuses link-local and metadata addresses.
    fn default() -> Egress {
        Egress {
            refused: NEVER.iter().filter_map(|text| text.parse().ok()).collect(),
            allowed: Vec::new(),
            own: Vec::new(),
            found: DiscoveredServers::default(),
        }
    }
}

impl Egress {
    /// `refused`: networks, `private` or `loopback`, in addition to those that are always refused. `allowed`: networks
    /// that are always permitted.
    ///
    /// # Errors
    /// The first entry that is not a network.
    pub fn parse(
        refused: &[impl AsRef<str>],
        allowed: &[impl AsRef<str>],
    ) -> Result<Egress, NetworkError> {
        let mut egress = Egress::default();
        for text in refused {
            egress.refused.extend(networks(text.as_ref())?);
        }
        for text in allowed {
            egress.allowed.extend(networks(text.as_ref())?);
        }
        Ok(egress)
    }

    /// Refuses the installation's own servers too.
    #[must_use]
    pub fn without(mut self, own: impl IntoIterator<Item = (String, u16)>) -> Egress {
        self.own.extend(own);
        self
    }

    /// Refuses those of `found`, too.
    #[must_use]
    pub fn without_found(mut self, found: DiscoveredServers) -> Egress {
        self.found = found;
        self
    }

    /// Refuses this machine's services, except those that are always permitted.
    #[must_use]
    pub(crate) fn without_loopback(mut self) -> Egress {
        let loopback = LOOPBACK
            .iter()
            .filter_map(|text| text.parse::<Network>().ok());
        self.refused.extend(loopback);
        self
    }

    /// The hosts of the installation's servers at a port, or at any.
    fn own_hosts(&self, port: Option<u16>) -> Vec<String> {
        let own = self.own.iter().cloned().chain(self.found.all());
        let own = own.filter(|(_, own)| port.is_none_or(|port| port == *own));
        own.map(|(host, _)| host).collect()
    }

    fn allows(&self, address: IpAddr) -> bool {
        let within = |networks: &[Network]| {
            embedded(address)
                .into_iter()
                .flatten()
                .any(|address| networks.iter().any(|network| network.holds(address)))
        };
        within(&self.allowed) || !within(&self.refused)
    }

    fn is_allowed_whatever(&self, address: IpAddr) -> bool {
        self.allowed.iter().any(|network| network.holds(address))
    }
}

fn networks(text: &str) -> Result<Vec<Network>, NetworkError> {
    match text {
        "private" => PRIVATE.iter().map(|text| text.parse()).collect(),
        "loopback" => LOOPBACK.iter().map(|text| text.parse()).collect(),
        text => Ok(vec![text.parse()?]),
    }
}

/// A server on this machine may listen on all of its addresses, whichever of them the settings name.
fn is_same(own: IpAddr, other: IpAddr) -> bool {
    own == other || is_local(own) && is_local(other)
}

/// Whether an address is this machine's: only such an address can be bound. Interfaces come and go, so this isn't cached.
fn is_local(address: IpAddr) -> bool {
    address.is_loopback()
        || address.is_unspecified()
        || std::net::UdpSocket::bind(SocketAddr::new(address, 0)).is_ok()
}

/// The address, and the IPv4 address that an IPv6 address may embed (mapped, compatible, translated, NAT64, 6to4).
fn embedded(address: IpAddr) -> [Option<IpAddr>; 2] {
    let IpAddr::V6(long) = address else {
        return [Some(address), None];
    };
    let parts = long.segments();
    let of = |high: u16, low: u16| {
        let [a, b] = high.to_be_bytes();
        let [c, d] = low.to_be_bytes();
        Some(IpAddr::V4(Ipv4Addr::new(a, b, c, d)))
    };
    let short = match parts {
        [0, 0, 0, 0, 0, 0xffff, high, low] | [0, 0, 0, 0, 0xffff, 0, high, low] => of(high, low),
        [0, 0, 0, 0, 0, 0, high, low] if high != 0 => of(high, low),
        [0x64, 0xff9b, 0, 0, 0, 0, high, low] => of(high, low),
        [0x2002, high, low, ..] => of(high, low),
        _ => None,
    };
    [Some(address), short]
}

/// The reason why a host isn't called.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Refused {
    /// It resolves to an address in a network that may not be called.
    #[error("{host} is at {address}, which calls may not reach")]
    Network { host: String, address: IpAddr },
    /// It is Redis or NATS of this installation.
    #[error("{host} port {port} is a server of this installation, which calls may not reach")]
    Own { host: String, port: u16 },
}

struct Resolved {
    addresses: Vec<SocketAddr>,
    until: Instant,
}

/// Resolves names, and returns only addresses that may be called.
#[derive(Clone)]
pub struct Gate {
    egress: Arc<Egress>,
    known: Arc<Mutex<HashMap<String, Resolved>>>,
}

impl fmt::Debug for Gate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Gate")
            .field("egress", &self.egress)
            .finish()
    }
}

impl Gate {
    /// A gate with the rules of `egress`.
    pub fn new(egress: Egress) -> Gate {
        Gate {
            egress: Arc::new(egress),
            known: Arc::default(),
        }
    }

    /// Checks whether a URL may be called. An unknown name is reported when the connection is made.
    ///
    /// # Errors
    /// [`Refused`].
    pub async fn check_url(&self, url: &Url) -> Result<(), Refused> {
        let port = url.port_or_known_default().unwrap_or(0);
        match url.host() {
            Some(Host::Domain(name)) => self.check(name, port).await,
            Some(Host::Ipv4(address)) => self.check(&address.to_string(), port).await,
            Some(Host::Ipv6(address)) => self.check(&address.to_string(), port).await,
            None => Ok(()),
        }
    }

    /// Checks whether a host may be called at a port.
    ///
    /// # Errors
    /// [`Refused`].
    pub async fn check(&self, host: &str, port: u16) -> Result<(), Refused> {
        self.addresses(host, port).await.map(|_| ())
    }

    /// The addresses of a host that may be called at a port, or none if the name is unknown.
    ///
    /// # Errors
    /// [`Refused`].
    pub async fn addresses(&self, host: &str, port: u16) -> Result<Vec<SocketAddr>, Refused> {
        let host = host.trim_start_matches('[').trim_end_matches(']');
        let own = self.own_at(Some(port)).await;
        let Ok(found) = self.resolve_name(host).await else {
            return Ok(Vec::new());
        };
        for address in &found {
            let ip = address.ip();
            if !self.egress.allows(ip) {
                let (host, address) = (host.to_owned(), ip);
                return Err(Refused::Network { host, address });
            }
            let mut forms = embedded(ip).into_iter().flatten();
            let is_own = forms.any(|ip| own.iter().any(|own| is_same(*own, ip)));
            if is_own && !self.egress.is_allowed_whatever(ip) {
                let host = host.to_owned();
                return Err(Refused::Own { host, port });
            }
        }
        Ok(found
            .into_iter()
            .map(|found| SocketAddr::new(found.ip(), port))
            .collect())
    }

    /// Addresses of the installation's own servers at this port, or at any.
    async fn own_at(&self, port: Option<u16>) -> Vec<IpAddr> {
        let mut all = Vec::new();
        for host in self.egress.own_hosts(port) {
            if let Ok(found) = self.resolve_name(&host).await {
                let ips = found.iter().map(|found| embedded(found.ip()));
                all.extend(ips.flatten().flatten());
            }
        }
        all
    }

    async fn resolve_name(&self, name: &str) -> io::Result<Vec<SocketAddr>> {
        if let Ok(address) = name.parse::<IpAddr>() {
            return Ok(vec![SocketAddr::new(address, 0)]);
        }
        if let Some(known) = self.remembered(name) {
            return Ok(known);
        }
        let found: Vec<SocketAddr> = tokio::net::lookup_host((name, 0)).await?.collect();
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        let now = Instant::now();
        if known.len() >= KNOWN_MAX {
            known.retain(|_, known| known.until > now);
        }
        if known.len() < KNOWN_MAX {
            let entry = Resolved {
                addresses: found.clone(),
                until: now + KNOWN_FOR,
            };
            known.insert(name.to_owned(), entry);
        }
        Ok(found)
    }

    /// As if a name had just been resolved to an address.
    #[cfg(test)]
    pub(crate) fn remember(&self, name: &str, address: IpAddr) {
        let known = Resolved {
            addresses: vec![SocketAddr::new(address, 0)],
            until: Instant::now() + KNOWN_FOR,
        };
        let mut all = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        all.insert(name.to_owned(), known);
    }

    fn remembered(&self, name: &str) -> Option<Vec<SocketAddr>> {
        let known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        let found = known
            .get(name)
            .filter(|known| known.until > Instant::now())?;
        Some(found.addresses.clone())
    }
}

impl Resolve for Gate {
    fn resolve(&self, name: Name) -> Resolving {
        let gate = self.clone();
        Box::pin(async move {
            let name = name.as_str();
            let remembered = gate.remembered(name).is_some();
            let mut found = gate.resolve_name(name).await?;
            found.retain(|address| gate.egress.allows(address.ip()));
            // The port isn't known here. So unless the address was just checked, it isn't called if it could belong to
            // one of our own servers.
            if !remembered {
                let own = gate.own_at(None).await;
                found.retain(|address| {
                    let mut forms = embedded(address.ip()).into_iter().flatten();
                    !forms.any(|ip| own.iter().any(|own| is_same(*own, ip)))
                });
            }
            if found.is_empty() {
                return Err(format!("{name} has no address that calls may reach").into());
            }
            let addresses: Addrs = Box::new(found.into_iter());
            Ok(addresses)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn none() -> [&'static str; 0] {
        []
    }

    #[test]
    fn addresses_are_refused_however_they_are_written() {
        let plain = Egress::default();
        for address in [
            "169.254.169.254",
            "::ffff:169.254.169.254",
            "64:ff9b::a9fe:a9fe",
            "64:ff9b:1::a9fe:a9fe",
            "64:ff9b:1:a9fe:a9:fe00::",
            "2002:a9fe:a9fe::1",
            "::169.254.169.254",
            "fe80::1",
            "::ffff:0:169.254.169.254",
            "::ffff:0.0.0.0",
            "fd00:ec2::254",
            "fd00:ec2::23",
            "fd20:ce::254",
            "fd00:c1::a9fe:a9fe",
            "fd00:42::42",
            "100.100.100.200",
            "0.0.0.0",
            "::",
            "239.1.1.1",
            "255.255.255.255",
        ] {
            assert!(!plain.allows(address.parse().unwrap()), "{address}");
        }
        for address in [
            "127.0.0.1",
            "::1",
            "10.0.0.1",
            "8.8.8.8",
            "2001:db8::1",
            "fd00::1",
        ] {
            assert!(plain.allows(address.parse().unwrap()), "{address}");
        }
        let strict = Egress::parse(&["private", "loopback", "8.8.0.0/16"], &["10.1.2.3"]).unwrap();
        for address in [
            "127.0.0.1",
            "::1",
            "::ffff:127.0.0.1",
            "10.0.0.1",
            "192.168.1.1",
            "fd00::1",
            "8.8.8.8",
        ] {
            assert!(!strict.allows(address.parse().unwrap()), "{address}");
        }
        assert!(strict.allows("10.1.2.3".parse().unwrap()));
        assert!(strict.allows("9.9.9.9".parse().unwrap()));
        for wrong in ["10.0.0.0/33", "10.0.0", "example.org", "", "::/129"] {
            assert!(Egress::parse(&[wrong], &none()).is_err(), "{wrong}");
        }
    }

    /// Another address of this machine than its loopback ones, if it has one. Nothing is sent.
    fn other_address() -> Option<IpAddr> {
        let socket = std::net::UdpSocket::bind("0.0.0.0:0").ok()?;
        socket.connect("192.0.2.1:9").ok()?;
        let address = socket.local_addr().ok()?.ip();
        (!address.is_loopback()).then_some(address)
    }

    #[tokio::test]
    async fn own_servers_are_refused_at_every_address_of_this_machine() {
        assert!(!is_local("192.0.2.77".parse().unwrap()));
        let mut all: Vec<String> = ["127.0.0.1", "localhost", "::1"].map(str::to_owned).into();
        let other = other_address();
        all.extend(other.map(|other| other.to_string()));
        let mapped = other.map(|other| format!("::ffff:{other}"));
        let hosts: Vec<&String> = all.iter().chain(&mapped).collect();
        for own in all.iter().map(String::as_str).chain(["0.0.0.0"]) {
            let own = [(own.to_owned(), 6379)];
            let gate = Gate::new(Egress::default().without(own.clone()));
            for host in hosts.iter().map(|host| host.as_str()).chain(["127.0.0.5"]) {
                let refused = gate.check(host, 6379).await;
                assert!(
                    matches!(refused, Err(Refused::Own { .. })),
                    "{own:?}: {host} {refused:?}"
                );
                assert_eq!(gate.check(host, 80).await, Ok(()), "{own:?}: {host}");
            }
        }
        // A server elsewhere is refused only there.
        let gate = Gate::new(Egress::default().without([("192.0.2.77".to_owned(), 6379)]));
        assert_eq!(gate.check("127.0.0.1", 6379).await, Ok(()));
    }

    #[tokio::test]
    async fn names_are_checked_by_their_addresses() {
        let own = [
            ("localhost".to_owned(), 6379),
            ("10.9.9.9".to_owned(), 4222),
        ];
        let gate = Gate::new(Egress::default().without(own.clone()));
        for (host, port) in [
            ("localhost", 6379),
            ("127.0.0.1", 6379),
            ("::1", 6379),
            ("[::1]", 6379),
            ("::ffff:127.0.0.1", 6379),
            ("10.9.9.9", 4222),
        ] {
            let refused = gate.check(host, port).await;
            assert!(
                matches!(refused, Err(Refused::Own { .. })),
                "{host}:{port} {refused:?}"
            );
        }
        for (host, port) in [
            ("localhost", 8080),
            ("10.9.9.9", 6379),
            ("nobody.invalid", 1),
        ] {
            assert_eq!(gate.check(host, port).await, Ok(()), "{host}:{port}");
        }
        let found = DiscoveredServers::default();
        let gate = Gate::new(Egress::default().without_found(found.clone()));
        assert_eq!(gate.check("127.0.0.1", 7001).await, Ok(()));
        found.set(vec![("127.0.0.1".to_owned(), 7001)]);
        for host in ["127.0.0.1", "localhost"] {
            let refused = gate.check(host, 7001).await;
            assert!(matches!(refused, Err(Refused::Own { .. })), "{refused:?}");
        }
        let gate = Gate::new(Egress::parse(&["loopback"], &none()).unwrap());
        assert!(matches!(
            gate.check("localhost", 80).await,
            Err(Refused::Network { .. })
        ));
        // The same lookup that the client makes when it connects.
        assert!(gate.resolve("localhost".parse().unwrap()).await.is_err());
        let gate = Gate::new(Egress::parse(&none(), &["127.0.0.1"]).unwrap().without(own));
        assert_eq!(gate.check("127.0.0.1", 6379).await, Ok(()));
    }
}
