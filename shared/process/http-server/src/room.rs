//! The number of connections, in total and from one address.

use std::collections::HashMap;
use std::net::{IpAddr, Ipv6Addr};
use std::sync::{Arc, Mutex, PoisonError};

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// The maximum number of connections, regardless of the number of files that this process may open.
const CONNECTIONS_MAX: usize = 10_000;
/// Other files and connections of this process: to Redis and NATS, records, certificates.
const OTHER_FILES: u64 = 256;

/// Places for connections.
#[derive(Clone)]
pub(crate) struct Room {
    all: Arc<Semaphore>,
    by_address: Arc<Mutex<HashMap<IpAddr, usize>>>,
    address_max: usize,
}

/// A connection's place, released when it is dropped.
pub(crate) struct ConnectionPermit {
    address: IpAddr,
    room: Room,
    _permit: OwnedSemaphorePermit,
}

impl Room {
    /// `address_max`: from one address, or one network of 64 bits.
    pub fn new(most: usize, address_max: usize) -> Room {
        Room {
            all: Arc::new(Semaphore::new(most)),
            by_address: Arc::default(),
            address_max,
        }
    }

    /// Waits until there is room for another one. Never closed, so that there is always an answer.
    pub async fn any(&self) -> Option<OwnedSemaphorePermit> {
        self.all.clone().acquire_owned().await.ok()
    }

    /// The same, if there is room now.
    pub fn now(&self) -> Option<OwnedSemaphorePermit> {
        self.all.clone().try_acquire_owned().ok()
    }

    /// A place for a connection from this address; `None` if the address has too many.
    pub fn admit(&self, from: IpAddr, permit: OwnedSemaphorePermit) -> Option<ConnectionPermit> {
        let address = network(from);
        let mut all = self.lock();
        let count = all.entry(address).or_default();
        if *count >= self.address_max {
            return None;
        }
        *count += 1;
        drop(all);
        Some(ConnectionPermit {
            address,
            room: self.clone(),
            _permit: permit,
        })
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, HashMap<IpAddr, usize>> {
        self.by_address
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for ConnectionPermit {
    fn drop(&mut self) {
        let mut all = self.room.lock();
        if let Some(count) = all.get_mut(&self.address) {
            *count -= 1;
            if *count == 0 {
                all.remove(&self.address);
            }
        }
    }
}

/// The holder of one IPv6 address has all of its network.
fn network(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V4(address) => IpAddr::V4(address),
        IpAddr::V6(address) => IpAddr::V6(Ipv6Addr::from(u128::from(address) >> 64 << 64)),
    }
}

/// As many connections as leave room for the other files that this process opens.
pub fn connections_max() -> usize {
    let files = rustix::process::getrlimit(rustix::process::Resource::Nofile).current;
    within(files)
}

fn within(files: Option<u64>) -> usize {
    let Some(files) = files else {
        return CONNECTIONS_MAX;
    };
    // With few files, half of them.
    let left = files.saturating_sub(OTHER_FILES).max(files / 2).max(1);
    usize::try_from(left).map_or(CONNECTIONS_MAX, |left| left.min(CONNECTIONS_MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_are_left_for_others() {
        assert_eq!(within(None), 10_000);
        assert_eq!(within(Some(1 << 20)), 10_000);
        assert_eq!(within(Some(1024)), 768);
        assert_eq!(within(Some(256)), 128);
        assert_eq!(within(Some(0)), 1);
    }

    #[test]
    fn an_address_has_so_many() {
        let room = Room::new(5, 2);
        let from = |text: &str| room.admit(text.parse().unwrap(), room.now().unwrap());
        let first = from("10.0.0.1");
        let second = from("::ffff:10.0.0.1");
        assert!(first.is_some() && second.is_some());
        assert!(from("10.0.0.1").is_none());
        let others = (from("2001:db8::1"), from("2001:db8::2"));
        assert!(others.0.is_some() && others.1.is_some());
        assert!(from("2001:db8::3").is_none());
        drop(first);
        assert!(from("10.0.0.1").is_some());
        drop((second, others));
        assert!(room.lock().is_empty());
    }

    #[test]
    fn all_together_have_so_many() {
        let room = Room::new(1, 9);
        let admitted = room.admit("10.0.0.1".parse().unwrap(), room.now().unwrap());
        assert!(room.now().is_none());
        drop(admitted);
        assert!(room.now().is_some());
    }
}
