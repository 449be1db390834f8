//! A TCP proxy between a client and its server, which can simulate network faults.

use std::io::{ErrorKind, Read, Write};
use std::net::{Ipv4Addr, Shutdown, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use anyhow::Result;
use rustix::net::sockopt::set_socket_linger;

/// The time after which a connection notices a change.
const TICK: Duration = Duration::from_millis(5);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Mode {
    Pass,
    /// Connections are open, but no bytes pass.
    Hold,
    /// All connections are reset.
    Cut,
}

#[derive(Debug)]
struct Shared {
    target: Mutex<String>,
    mode: Mutex<Mode>,
    /// Connections of an older generation are dead.
    generation: AtomicU64,
    /// Connections from before the last increment pass nothing any more.
    silenced: AtomicU64,
    /// The bytes that a connection passes in each direction in a second; 0: any number.
    rate: AtomicU64,
    over: AtomicBool,
}

/// When a connection began.
#[derive(Debug, Clone, Copy)]
struct Born {
    generation: u64,
    silenced: u64,
}

/// Passes bytes in both directions until its mode is changed. Dropping it ends its connections.
#[derive(Debug)]
pub struct Proxy {
    port: u16,
    shared: Arc<Shared>,
}

impl Proxy {
    /// Listens on a free port, and forwards to `target` (`127.0.0.1:6000`).
    pub fn start(target: impl Into<String>) -> Result<Proxy> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
        listener.set_nonblocking(true)?;
        let port = listener.local_addr()?.port();
        let shared = Arc::new(Shared {
            target: Mutex::new(target.into()),
            mode: Mutex::new(Mode::Pass),
            generation: AtomicU64::new(0),
            silenced: AtomicU64::new(0),
            rate: AtomicU64::new(0),
            over: AtomicBool::new(false),
        });
        let accepting = shared.clone();
        std::thread::spawn(move || accept(&listener, &accepting));
        Ok(Proxy { port, shared })
    }

    pub fn port(&self) -> u16 {
        self.port
    }

    /// `127.0.0.1:PORT`
    pub fn address(&self) -> String {
        format!("127.0.0.1:{}", self.port)
    }

    /// Bytes are held back until [`Proxy::heal`]. New connections are accepted and get no answer. This simulates a
    /// network that is broken between the ends.
    pub fn hold(&self) {
        self.shared.set(Mode::Hold);
    }

    /// All connections are reset, including new ones, until [`Proxy::heal`].
    pub fn cut(&self) {
        self.shared.set(Mode::Cut);
        self.reset();
    }

    /// All connections are reset once. New ones are accepted.
    pub fn reset(&self) {
        self.shared.generation.fetch_add(1, Ordering::SeqCst);
    }

    /// Connections that exist stay open and pass no bytes any more, for good. New ones work. This simulates a hung
    /// machine behind a service that has moved on.
    pub fn silence(&self) {
        self.shared.silenced.fetch_add(1, Ordering::SeqCst);
    }

    /// From now on each connection passes so many bytes in a second, in each direction.
    pub fn slow(&self, rate: u64) {
        self.shared.rate.store(rate, Ordering::SeqCst);
    }

    pub fn heal(&self) {
        self.shared.set(Mode::Pass);
    }

    /// [`Proxy::hold`] for a limited time.
    pub fn hold_for(&self, time: Duration) {
        self.hold();
        std::thread::sleep(time);
        self.heal();
    }

    /// [`Proxy::cut`] for a limited time.
    pub fn cut_for(&self, time: Duration) {
        self.cut();
        std::thread::sleep(time);
        self.heal();
    }

    /// Sets the target of new connections.
    pub fn set_target(&self, target: impl Into<String>) {
        let mut found = self
            .shared
            .target
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        *found = target.into();
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        self.shared.over.store(true, Ordering::SeqCst);
        self.reset();
    }
}

impl Shared {
    fn set(&self, mode: Mode) {
        *self.mode.lock().unwrap_or_else(PoisonError::into_inner) = mode;
    }

    fn mode(&self) -> Mode {
        *self.mode.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn born(&self) -> Born {
        Born {
            generation: self.generation.load(Ordering::SeqCst),
            silenced: self.silenced.load(Ordering::SeqCst),
        }
    }

    fn alive(&self, born: Born) -> bool {
        self.generation.load(Ordering::SeqCst) == born.generation
    }

    fn holds(&self, born: Born) -> bool {
        self.mode() == Mode::Hold || self.silenced.load(Ordering::SeqCst) != born.silenced
    }
}

fn accept(listener: &TcpListener, shared: &Arc<Shared>) {
    while !shared.over.load(Ordering::SeqCst) {
        match listener.accept() {
            Ok((client, _)) => {
                let (shared, born) = (shared.clone(), shared.born());
                std::thread::spawn(move || connect(client, &shared, born));
            }
            Err(_) => std::thread::sleep(TICK),
        }
    }
}

fn connect(client: TcpStream, shared: &Arc<Shared>, born: Born) {
    while shared.holds(born) && shared.alive(born) {
        std::thread::sleep(TICK);
    }
    let target = {
        let found = shared.target.lock().unwrap_or_else(PoisonError::into_inner);
        found.clone()
    };
    let server = match TcpStream::connect(target) {
        Ok(server) if shared.mode() != Mode::Cut && shared.alive(born) => server,
        _ => return kill(&client),
    };
    let (client, server) = (Arc::new(client), Arc::new(server));
    let back = (server.clone(), client.clone(), shared.clone());
    std::thread::spawn(move || pump(&back.0, &back.1, &back.2, born));
    pump(&client, &server, shared, born);
}

/// Passes bytes in one direction until one side ends or the connection is cut.
fn pump(from: &TcpStream, to: &TcpStream, shared: &Shared, born: Born) {
    let (mut reader, mut writer) = (from, to);
    let mut buffer = vec![0; 64 * 1024];
    let ready = from
        .set_nonblocking(false)
        .and_then(|()| from.set_read_timeout(Some(TICK)))
        .and_then(|()| to.set_write_timeout(Some(Duration::from_secs(60))))
        .and_then(|()| to.set_nodelay(true));
    if ready.is_err() {
        return kill(from);
    }
    while shared.alive(born) {
        let count = match reader.read(&mut buffer) {
            // The other direction has been cut, so this one is reset too.
            Ok(0) if !shared.alive(born) => break,
            Ok(0) => {
                // The other direction may still have data.
                let _ = to.shutdown(Shutdown::Write);
                return;
            }
            Ok(count) => count,
            Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => {
                continue;
            }
            Err(_) => break,
        };
        while shared.holds(born) && shared.alive(born) {
            std::thread::sleep(TICK);
        }
        if !shared.alive(born) || writer.write_all(&buffer[..count]).is_err() {
            break;
        }
        let rate = shared.rate.load(Ordering::SeqCst);
        if rate > 0 {
            std::thread::sleep(Duration::from_secs_f64(count as f64 / rate as f64));
        }
    }
    kill(from);
    kill(to);
}

/// The peer sees a reset, not an orderly end.
fn kill(stream: &TcpStream) {
    // An error means that it is closed already.
    let _ = set_socket_linger(stream, Some(Duration::ZERO));
    let _ = stream.shutdown(Shutdown::Read);
}
