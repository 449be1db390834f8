//! Injects the faults of a run, and ends them.

use std::str::FromStr;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use rustix::process::Signal;
use swirl_servers::RedisCluster;

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
    /// The machine of NATS loses power, and what came in the last second.
    PowerNats,
    /// Files of NATS are damaged. Only if it is asked for: nats-server 2.9.10 accepts messages afterwards that it never
    /// delivers, and 2.15.1 goes on.
    DamageNats,
    /// kill -9 of Redis, which has everything on disk.
    RestartRedis,
    /// The machine of Redis loses power in the middle of a write.
    PowerRedis,
    /// The machine of Redis loses power, and the writes of the last second. Only if it is asked for: clients have to
    /// repeat acknowledged starts and events then.
    LoseRedis,
    /// kill -9 of a master of a Redis Cluster. Its replica takes over, and it comes back as a replica.
    KillMaster,
    /// A replica takes over from its master, in agreement with it.
    FailOver,
    /// SIGSTOP of a master until its replica has taken over.
    FreezeMaster,
    /// Slots move from one master to another, with their keys.
    Reshard,
    /// SIGTERM of each process in turn, followed by a new one.
    Roll,
    /// Every task and every event is duplicated during the whole run.
    Double,
    /// A coordinator's clock is ten seconds ahead during the whole run.
    Skew,
}

/// The time in which a process must end after SIGTERM.
const STOP_MAX: Duration = Duration::from_secs(180);

/// How long a server's machine had not written to its disk when it loses power.
const UNSYNCED: Duration = Duration::from_secs(1);

/// The names on the command line.
const ALL: [(&str, Fault); 19] = [
    ("kill-worker", Fault::KillWorker),
    ("kill-coordinator", Fault::KillCoordinator),
    ("pause", Fault::PauseWorker),
    ("cut-redis", Fault::CutRedis),
    ("cut-nats", Fault::CutNats),
    ("restart-nats", Fault::RestartNats),
    ("wipe", Fault::WipeNats),
    ("power-nats", Fault::PowerNats),
    ("damage-nats", Fault::DamageNats),
    ("restart-redis", Fault::RestartRedis),
    ("power-redis", Fault::PowerRedis),
    ("lose-redis", Fault::LoseRedis),
    ("kill-master", Fault::KillMaster),
    ("fail-over", Fault::FailOver),
    ("freeze-master", Fault::FreezeMaster),
    ("reshard", Fault::Reshard),
    ("roll", Fault::Roll),
    ("double", Fault::Double),
    ("skew", Fault::Skew),
];

impl Fault {
    /// Those that servers of every version survive, and after which nothing that was acknowledged is missing.
    pub fn all() -> Vec<Fault> {
        let all = ALL.iter().map(|(_, fault)| *fault);
        all.filter(|fault| !matches!(fault, Fault::DamageNats | Fault::LoseRedis))
            .collect()
    }

    pub fn as_str(self) -> &'static str {
        let found = ALL.iter().find(|(_, fault)| *fault == self);
        found.map_or("", |(word, _)| word)
    }

    /// Whether the fault can happen with a Redis Cluster, or without one.
    pub fn fits(self, redis_cluster: bool) -> bool {
        match self {
            Fault::KillMaster | Fault::FailOver | Fault::FreezeMaster | Fault::Reshard => {
                redis_cluster
            }
            Fault::CutRedis | Fault::RestartRedis | Fault::PowerRedis | Fault::LoseRedis => {
                !redis_cluster
            }
            _ => true,
        }
    }

    /// Whether NATS may lose messages that it has acknowledged.
    pub fn loses_messages(self) -> bool {
        matches!(self, Fault::WipeNats | Fault::PowerNats | Fault::DamageNats)
    }

    /// Whether publishers have to publish again what seems to have no effect.
    pub fn loses_events(self) -> bool {
        self.loses_messages() || self == Fault::LoseRedis
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
            Fault::PowerNats => self.lock().nats.lose_power(UNSYNCED)?,
            Fault::DamageNats => self.lock().nats.damage()?,
            Fault::PowerRedis => self.lock().redis.lose_power()?,
            Fault::LoseRedis => _ = self.lock().redis.lose_writes(UNSYNCED)?,
            Fault::RestartRedis => {
                let mut cluster = self.lock();
                cluster.redis.kill()?;
                cluster.redis.restart()?;
            }
            Fault::KillMaster | Fault::FailOver | Fault::FreezeMaster | Fault::Reshard => {
                self.disturb_redis(fault, random)?;
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

    /// A fault of the Redis Cluster. It is over when all nodes agree again.
    fn disturb_redis(&self, fault: Fault, random: &mut Random) -> Result<()> {
        let in_cluster = |act: &mut dyn FnMut(&mut RedisCluster) -> Result<()>| {
            let mut cluster = self.lock();
            let redis = cluster.redis_cluster.as_mut();
            act(redis.context("there is no Redis Cluster")?)
        };
        let mut chosen = 0;
        in_cluster(&mut |redis| {
            redis.wait_until_well()?;
            let (masters, replicas): (Vec<usize>, Vec<usize>) =
                (0..redis.nodes().len()).partition(|index| redis.is_master(*index));
            let master = masters[random.below(masters.len())];
            chosen = master;
            match fault {
                Fault::KillMaster => redis.node_mut(master).context("a node")?.kill(),
                Fault::FreezeMaster => redis.nodes()[master].pause(),
                Fault::FailOver => redis.fail_over(replicas[random.below(replicas.len())]),
                _ => {
                    let to = masters[random.below(masters.len())];
                    if to == master {
                        return Ok(());
                    }
                    redis.move_slots(master, to, 100)
                }
            }
        })?;
        if matches!(fault, Fault::KillMaster | Fault::FreezeMaster) {
            std::thread::sleep(self.outage);
        }
        in_cluster(&mut |redis| {
            match fault {
                Fault::KillMaster => redis.node_mut(chosen).context("a node")?.restart()?,
                Fault::FreezeMaster => redis.nodes()[chosen].resume()?,
                _ => {}
            }
            redis.wait_until_well()?;
            redis.wait_until_replicated()
        })
    }

    fn kill(&self, index: usize) -> Result<()> {
        let mut cluster = self.lock();
        cluster.processes[index].kill()?;
        cluster.processes[index].start()
    }
}
