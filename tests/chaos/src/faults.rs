//! Injects the faults of a run, and ends them.

use std::str::FromStr;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use anyhow::{Result, bail};
use rustix::process::Signal;

use crate::cluster::Cluster;
use crate::processes::Role;
use crate::random::Random;

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Fault {
    /// kill -9 of a random worker, which is restarted immediately.
    KillWorker,
    KillCoordinator,
    /// SIGSTOP of a worker for longer than its lease.
    PauseWorker,
    /// A process has no connection to Redis for a while.
    CutRedis,
    CutNats,
    RestartNats,
    /// NATS loses all streams.
    WipeNats,
    /// kill -9 of Redis, which has everything on disk.
    RestartRedis,
    /// SIGTERM of each process in turn, followed by a new one.
    Roll,
    /// Every task and every event is duplicated during the whole run.
    Double,
    /// A coordinator's clock is ten seconds ahead during the whole run.
    Skew,
}

/// The time in which a process must end after SIGTERM.
const STOP_MAX: Duration = Duration::from_secs(180);

/// The names on the command line.
const ALL: [(&str, Fault); 11] = [
    ("kill-worker", Fault::KillWorker),
    ("kill-coordinator", Fault::KillCoordinator),
    ("pause", Fault::PauseWorker),
    ("cut-redis", Fault::CutRedis),
    ("cut-nats", Fault::CutNats),
    ("restart-nats", Fault::RestartNats),
    ("wipe", Fault::WipeNats),
    ("restart-redis", Fault::RestartRedis),
    ("roll", Fault::Roll),
    ("double", Fault::Double),
    ("skew", Fault::Skew),
];

impl Fault {
    pub fn all() -> Vec<Fault> {
        ALL.iter().map(|(_, fault)| *fault).collect()
    }

    pub fn as_str(self) -> &'static str {
        let found = ALL.iter().find(|(_, fault)| *fault == self);
        found.map_or("", |(word, _)| word)
    }

    /// Whether the fault lasts for the whole run, instead of being injected from time to time.
    fn is_lasting(self) -> bool {
        matches!(self, Fault::Double | Fault::Skew)
    }
}

impl FromStr for Fault {
    type Err = String;

    fn from_str(text: &str) -> Result<Fault, String> {
        let found = ALL.iter().find(|(word, _)| *word == text);
        found.map(|(_, fault)| *fault).ok_or_else(|| {
            let words: Vec<&str> = ALL.iter().map(|(word, _)| *word).collect();
            format!("there is no fault '{text}'; they are {}", words.join(", "))
        })
    }
}

/// Injects faults until it is stopped, and returns those that it injected. When it returns, all faults have ended.
pub struct Injector {
    pub cluster: Arc<Mutex<Cluster>>,
    pub faults: Vec<Fault>,
    pub seed: u64,
    /// The pause between two faults.
    pub pause: Duration,
    /// The duration for which a connection is cut or a process is stopped.
    pub outage: Duration,
    pub over: Arc<AtomicBool>,
    /// The number of faults that have been injected and have ended.
    pub injected: Arc<AtomicUsize>,
}

impl Injector {
    pub fn run(&self) -> Result<Vec<Fault>> {
        let mut random = Random::new(self.seed);
        let faults: Vec<Fault> = self
            .faults
            .iter()
            .copied()
            .filter(|fault| !fault.is_lasting())
            .collect();
        let mut done: Vec<Fault> = self
            .faults
            .iter()
            .copied()
            .filter(|fault| fault.is_lasting())
            .collect();
        while !self.over.load(Ordering::Relaxed) && !faults.is_empty() {
            self.wait(self.pause);
            let fault = faults[random.below(faults.len())];
            self.inject(fault, &mut random)?;
            self.injected.fetch_add(1, Ordering::Relaxed);
            done.push(fault);
        }
        Ok(done)
    }

    fn wait(&self, time: Duration) {
        let begun = Instant::now();
        while begun.elapsed() < time && !self.over.load(Ordering::Relaxed) {
            std::thread::sleep(Duration::from_millis(10));
        }
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Cluster> {
        self.cluster.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn inject(&self, fault: Fault, random: &mut Random) -> Result<()> {
        let pick = |role: Role, random: &mut Random| {
            let all = self.lock().of(role);
            all[random.below(all.len())]
        };
        if let Some(ended) = self.lock().ended() {
            bail!("a process ended by itself: {ended}");
        }
        match fault {
            Fault::KillWorker => self.kill(pick(Role::Worker, random))?,
            Fault::KillCoordinator => self.kill(pick(Role::Coordinator, random))?,
            Fault::PauseWorker => {
                let index = pick(Role::Worker, random);
                self.lock().processes[index].signal(Signal::STOP)?;
                std::thread::sleep(self.outage);
                self.lock().processes[index].signal(Signal::CONT)?;
            }
            Fault::CutRedis | Fault::CutNats => {
                let half = random.below(2) == 0;
                let cluster = self.lock();
                let process = &cluster.processes[random.below(cluster.processes.len())];
                let proxy = match fault {
                    Fault::CutRedis => &process.redis,
                    _ => &process.nats,
                };
                // Connections are first refused, then silent.
                if half {
                    proxy.cut_for(self.outage);
                } else {
                    proxy.hold_for(self.outage);
                }
            }
            Fault::RestartNats => {
                let mut cluster = self.lock();
                cluster.nats.kill()?;
                cluster.nats.restart()?;
            }
            Fault::WipeNats => self.lock().nats.wipe()?,
            Fault::RestartRedis => {
                let mut cluster = self.lock();
                cluster.redis.kill()?;
                cluster.redis.restart()?;
            }
            Fault::Roll => {
                let count = self.lock().processes.len();
                for index in 0..count {
                    let mut cluster = self.lock();
                    cluster.processes[index].stop(STOP_MAX)?;
                    cluster.processes[index].start()?;
                    cluster.processes[index].wait()?;
                }
            }
            Fault::Double | Fault::Skew => {}
        }
        Ok(())
    }

    fn kill(&self, index: usize) -> Result<()> {
        let mut cluster = self.lock();
        cluster.processes[index].kill()?;
        cluster.processes[index].start()
    }
}
