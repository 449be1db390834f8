//! Limits the refused tokens of an address.
//!
//! Each refused token takes a slot, which is free again after a while. An address without a free slot must wait.
//! Meanwhile only those of its tokens are checked that cost nothing to check: static ones, and tokens of a provider
//! that were valid before. So a client that shares an address, for example behind a proxy, with one that keeps sending
//! wrong tokens is rarely affected.

use std::collections::{HashMap, HashSet};
use std::net::{IpAddr, Ipv6Addr};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// The default number of refused tokens that an address may send at once.
pub const REFUSED_MAX: u32 = 20;
/// The time after which a slot is free again.
const PLACE: Duration = Duration::from_secs(3);
/// The maximum number of addresses that are remembered.
const PEERS_MAX: usize = 10_000;
/// The minimum number of valid tokens that are remembered.
const GOOD_MAX: usize = 10_000;

pub(super) struct Refusals {
    /// 0 means no limit.
    max: u32,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    /// When all slots of an address are free again.
    peers: HashMap<IpAddr, Instant>,
    /// Hashes of tokens. A token that is seen again moves to the new set; the old set is dropped as a whole.
    good: HashSet<[u8; 32]>,
    good_before: HashSet<[u8; 32]>,
}

impl Refusals {
    pub fn new(max: u32) -> Refusals {
        Refusals {
            max,
            state: Mutex::default(),
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The time until this address may send another wrong token; `None` if it may now.
    pub fn wait(&self, peer: IpAddr, now: Instant) -> Option<Duration> {
        if self.max == 0 {
            return None;
        }
        let free_at = *self.lock().peers.get(&network(peer))?;
        let taken = free_at.saturating_duration_since(now);
        let wait = (taken + PLACE).saturating_sub(PLACE * self.max);
        (!wait.is_zero()).then_some(wait)
    }

    /// Counts a refused token of this address.
    pub fn count(&self, peer: IpAddr, now: Instant) {
        if self.max == 0 {
            return;
        }
        let mut state = self.lock();
        let peer = network(peer);
        if state.peers.len() >= PEERS_MAX && !state.peers.contains_key(&peer) {
            state.peers.retain(|_, free_at| *free_at > now);
            if state.peers.len() >= PEERS_MAX {
                let first = state.peers.iter().min_by_key(|(_, free_at)| **free_at);
                let first = first.map(|(peer, _)| *peer);
                first.and_then(|first| state.peers.remove(&first));
            }
        }
        let free_at = state.peers.entry(peer).or_insert(now);
        *free_at = (*free_at).max(now) + PLACE;
    }

    /// Remembers a valid token of a provider.
    pub fn was_good(&self, token: &str) {
        if self.max == 0 {
            return;
        }
        let mut state = self.lock();
        if state.good.len() >= GOOD_MAX {
            state.good_before = std::mem::take(&mut state.good);
        }
        state
            .good
            .insert(*blake3::hash(token.as_bytes()).as_bytes());
    }

    /// Whether this token of a provider was valid before. It may have expired since.
    pub fn is_known(&self, token: &str) -> bool {
        let hash = *blake3::hash(token.as_bytes()).as_bytes();
        let state = self.lock();
        state.good.contains(&hash) || state.good_before.contains(&hash)
    }
}

/// The network of an address. The owner of one IPv6 address usually has its whole network.
fn network(peer: IpAddr) -> IpAddr {
    match peer.to_canonical() {
        IpAddr::V6(address) => {
            let bits = address.to_bits() >> 64 << 64;
            IpAddr::V6(Ipv6Addr::from_bits(bits))
        }
        v4 => v4,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ip(text: &str) -> IpAddr {
        text.parse().unwrap()
    }

    #[test]
    fn an_address_with_too_many_refusals_waits() {
        let (refusals, now) = (Refusals::new(3), Instant::now());
        let (one, other) = (ip("10.0.0.1"), ip("10.0.0.2"));
        for _ in 0..3 {
            assert_eq!(refusals.wait(one, now), None);
            refusals.count(one, now);
        }
        assert_eq!(refusals.wait(one, now), Some(PLACE));
        assert_eq!(refusals.wait(other, now), None);
        // One slot becomes free, and is taken.
        assert_eq!(refusals.wait(one, now + PLACE), None);
        refusals.count(one, now + PLACE);
        assert!(refusals.wait(one, now + PLACE).is_some());
        // All slots are free.
        let later = now + PLACE * 10;
        for _ in 0..3 {
            assert_eq!(refusals.wait(one, later), None);
            refusals.count(one, later);
        }
        assert!(refusals.wait(one, later).is_some());
    }

    #[test]
    fn the_limit_can_be_switched_off() {
        let (refusals, now) = (Refusals::new(0), Instant::now());
        for _ in 0..100 {
            refusals.count(ip("::1"), now);
        }
        assert_eq!(refusals.wait(ip("::1"), now), None);
    }

    #[test]
    fn addresses_are_counted_by_network() {
        let (refusals, now) = (Refusals::new(1), Instant::now());
        refusals.count(ip("2001:db8::1"), now);
        assert!(refusals.wait(ip("2001:db8::2"), now).is_some());
        assert!(refusals.wait(ip("2001:db8:0:1::1"), now).is_none());
        refusals.count(ip("::ffff:10.0.0.1"), now);
        assert!(refusals.wait(ip("10.0.0.1"), now).is_some());
    }

    #[test]
    fn the_memory_is_bounded() {
        let (refusals, now) = (Refusals::new(1), Instant::now());
        for number in 0..u32::try_from(PEERS_MAX + 10).unwrap() {
            refusals.count(
                IpAddr::V4(number.into()),
                now + Duration::from_nanos(number.into()),
            );
        }
        assert_eq!(refusals.lock().peers.len(), PEERS_MAX);
        assert!(
            refusals.wait(ip("0.0.0.0"), now).is_none(),
            "the oldest is forgotten"
        );
        for number in 0..=GOOD_MAX * 2 {
            refusals.was_good(&number.to_string());
        }
        assert!(refusals.is_known(&(GOOD_MAX * 2).to_string()));
        assert!(!refusals.is_known("0"));
        let state = refusals.lock();
        assert!(state.good.len() + state.good_before.len() <= GOOD_MAX * 2);
    }
}
