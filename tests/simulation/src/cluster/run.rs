//! The scheduler: one turn after another, chosen by the seed. Time advances when no process can continue.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use anyhow::{Result, bail};
use swirl_engine::derive;
use swirl_model::event::Event;
use swirl_model::ids::InstanceId;
use swirl_model::time::Timestamp;
use swirl_model::{CloudEvent, Data};
use swirl_ports::{
    Clock, DefinitionRecord, ExecutionStore, Filter, InstanceQueries, InstanceRecords,
};
use swirl_service::{Action, Deployment, Service, StartRequest};
use swirl_virtual_time::VirtualClock;

use super::faults::{Faults, Mutant};
use super::names::{Names, Produced};
use super::outside::{Called, Outside};
use super::process::{Process, Shared, lower};
use super::queue::{Message, Messages};
use super::store::{Counts, Logged, SharedStore};
use crate::random::Random;
use crate::reference::Outcome;
use crate::rig::START;
use crate::wait::block_on;

/// The actions of clients and operators.
#[derive(Debug, Clone)]
pub enum Planned {
    Deploy(String),
    Start {
        workflow: String,
        key: String,
        input: Data,
    },
    Event(CloudEvent),
    /// Repeated until it is accepted.
    Operate {
        workflow: String,
        key: String,
        action: Action,
    },
}

/// Actions, with their times in milliseconds after the beginning.
#[derive(Debug, Clone, Default)]
pub struct Plan {
    pub documents: Vec<String>,
    pub acts: Vec<(i64, Planned)>,
}

/// The outcome of a run.
#[derive(Debug, Default)]
pub struct Trace {
    pub outcomes: BTreeMap<String, String>,
    /// The outcomes for the comparison with the reference.
    pub outputs: BTreeMap<String, Outcome>,
    pub history: BTreeMap<String, Vec<String>>,
    pub produced: BTreeMap<String, String>,
    pub calls: Vec<Called>,
    pub log: Vec<Logged>,
    pub violations: Vec<String>,
    pub counts: Counts,
    pub accepted: Vec<Planned>,
    pub turns: usize,
    /// For the comparison with another run.
    pub names: Names,
}

pub fn instance_of(workflow: &str, key: &str) -> InstanceId {
    InstanceId::new(derive(&["key", workflow, key]))
}

type Answer = Arc<Mutex<Option<bool>>>;

enum Progress {
    NotBefore(i64),
    /// The process, and which of its lives.
    UnderWay(usize, usize, Answer),
    Done,
}

struct Act {
    what: Planned,
    progress: Progress,
    /// It is repeated after it was accepted.
    again: bool,
}

impl Act {
    fn is_done(&self) -> bool {
        matches!(self.progress, Progress::Done)
    }
}

struct Cluster {
    shared: Shared,
    processes: Vec<Process>,
    skews_ms: Vec<i64>,
    acts: Vec<Act>,
    faults: Faults,
    random: Random,
    turns: usize,
    folder: Option<PathBuf>,
    snapshot: Option<PathBuf>,
    lives: usize,
}

/// The maximum number of turns at one instant, and in a run. Exceeding it indicates an endless loop.
const TURNS_OF_MOMENT_MAX: usize = 100_000;
const TURNS_MAX: usize = 4_000_000;
/// In virtual time, after faults have stopped. The longest plans wait for more than two hours.
const BOUND_MS: i64 = 6 * 3_600_000;

/// Runs a plan to its end.
pub fn run(plan: &Plan, faults: &Faults, mutant: Mutant) -> Result<Trace> {
    let scratch = match faults.durable {
        true => Some(tempfile::tempdir()?),
        false => None,
    };
    let folder = scratch.as_ref().map(|scratch| scratch.path().join("store"));
    let clock = Arc::new(VirtualClock::new(Timestamp(START)));
    let calm = Faults {
        coordinators_join: faults.coordinators_join,
        ..Faults::none(faults.seed)
    };
    let store = SharedStore::new(clock.clone(), calm, mutant, folder.clone())?;
    let shared = Shared {
        messages: Arc::new(Messages::new(clock.clone(), faults.clone())),
        outside: Arc::new(Outside::new(clock.clone(), mutant)),
        store: Arc::new(store),
        clock,
    };
    let mut random = Random::new(faults.seed ^ 0xc1);
    let mut skew = || match faults.skew_ms {
        0 => 0,
        most => random.below(2 * most as usize + 1) as i64 - most,
    };
    let skews_ms: Vec<i64> = (0..faults.processes).map(|_| skew()).collect();
    let processes = skews_ms.iter().map(|skew| Process::new(&shared, *skew, 0));
    let processes: Vec<Process> = processes.collect();
    for text in &plan.documents {
        block_on(processes[0].service.deploy(deployment(text)?))?;
    }
    shared.store.set_faults(faults.clone());
    let acts = plan.acts.iter().map(|(at, what)| {
        let late = match faults.late_ms {
            0 => 0,
            most => random.below(most as usize) as i64,
        };
        Act {
            what: what.clone(),
            progress: Progress::NotBefore(START + at + late),
            again: random.below(1000) < faults.repeated,
        }
    });
    let acts = acts.collect();
    let mut cluster = Cluster {
        shared,
        processes,
        skews_ms,
        acts,
        faults: faults.clone(),
        random,
        turns: 0,
        snapshot: scratch.as_ref().map(|scratch| scratch.path().join("old")),
        folder,
        lives: 0,
    };
    let ended = cluster.play();
    cluster.trace(ended)
}

fn deployment(text: &str) -> Result<Deployment> {
    let record = DefinitionRecord {
        deleted: None,
        activated: None,
        interests: swirl_ports::Interests::default(),
        id: swirl_model::ids::DefinitionId {
            workflow: "".into(),
            version: "".into(),
        },
        digest: String::new(),
        name: String::new(),
        document: text.to_owned(),
        resources: Vec::new(),
        deployed_at: Timestamp(0),
    };
    let workflow = lower(&record).map_err(|problem| anyhow::anyhow!("{problem}\n{text}"))?;
    Ok(Deployment {
        name: "plan".to_owned(),
        document: text.to_owned(),
        resources: Vec::new(),
        workflow,
    })
}

/// Returns whether it was accepted. After an error this is unknown.
async fn carry_out(service: Service, what: Planned) -> Result<bool> {
    match what {
        Planned::Deploy(text) => {
            service.deploy(deployment(&text)?).await?;
            Ok(true)
        }
        Planned::Start {
            workflow,
            key,
            input,
        } => {
            let request = StartRequest {
                workflow,
                key: Some(key),
                input,
                ..StartRequest::default()
            };
            Ok(service.start(request).await?.is_ok())
        }
        Planned::Event(event) => {
            service.publish(&event).await?;
            Ok(true)
        }
        Planned::Operate {
            workflow,
            key,
            action,
        } => {
            let id = instance_of(&workflow, &key);
            let ended = service.store.instance(&id).await?;
            let status = ended.map(|instance| instance.state.status);
            // Too late, because the instance has completed.
            let over = matches!(action, Action::Suspend | Action::Resume)
                && status.is_some_and(swirl_model::instance::Status::ended);
            if over || status == Some(swirl_model::instance::Status::Completed) {
                return Ok(true);
            }
            Ok(service.operate(&id, action).await?)
        }
    }
}

impl Cluster {
    fn now(&self) -> Timestamp {
        self.shared.clock.now()
    }

    fn chance(&mut self, chance: usize) -> bool {
        chance > 0 && self.random.below(1000) < chance
    }

    fn play(&mut self) -> Result<()> {
        let mut of_moment = 0;
        let mut halfway = self.faults.durable;
        let mut saved = !self.faults.rollback;
        loop {
            let elapsed_ms = self.now().0 - START;
            if self.faults.until_ms > 0 && elapsed_ms >= self.faults.until_ms {
                self.faults = self.faults.over();
                self.shared.messages.set_faults(self.faults.clone());
                self.shared.store.set_faults(self.faults.clone());
            }
            if !saved && elapsed_ms > self.faults.until_ms / 4 {
                saved = true;
                self.restart_all(Restart::Save)?;
            }
            if halfway && elapsed_ms > self.faults.until_ms / 2 {
                halfway = false;
                let rollback = self.faults.rollback;
                self.restart_all(if rollback {
                    Restart::Back
                } else {
                    Restart::Only
                })?;
            }
            self.begin_acts();
            self.come_back();
            if self.turn() {
                of_moment += 1;
                self.turns += 1;
                if of_moment > TURNS_OF_MOMENT_MAX || self.turns > TURNS_MAX {
                    bail!("it goes round in circles, {elapsed_ms} ms after the start");
                }
                continue;
            }
            of_moment = 0;
            if self.is_over()? {
                return Ok(());
            }
            if elapsed_ms > self.faults.until_ms.max(0) + BOUND_MS {
                bail!("not all has ended in time: {}", self.left()?);
            }
            let next = self.next();
            self.shared.clock.set(next.max(Timestamp(self.now().0 + 1)));
            while self.shared.clock.wake_one() {}
        }
    }

    /// Runs a process that can continue. Returns false if none can.
    fn turn(&mut self) -> bool {
        let now = self.now();
        let mut choices: Vec<(usize, Option<usize>)> = Vec::new();
        let messages = self.shared.messages.due();
        for (index, process) in self.processes.iter().enumerate() {
            if process.works(now) {
                choices.extend(process.ready().map(|place| (index, Some(place))));
                if messages > 0 {
                    choices.push((index, None));
                }
            }
        }
        if choices.is_empty() {
            return false;
        }
        let calm = self.faults.processes == 1;
        let chosen = if calm {
            0
        } else {
            self.random.below(choices.len())
        };
        let (index, place) = choices[chosen];
        let (killed, paused) = (self.faults.killed, self.faults.paused);
        if self.chance(killed) || self.faults.killed_at == Some(self.turns) {
            self.shared.store.state().counts.kills += 1;
            let dead_ms = 100 + self.random.below(6_000) as u64;
            self.processes[index].kill(now.plus_ms(dead_ms));
            return true;
        }
        if self.chance(paused) {
            self.shared.store.state().counts.pauses += 1;
            let paused_ms = 1_000 + self.random.below(8_000) as u64;
            self.processes[index].paused_until = Some(now.plus_ms(paused_ms));
            return true;
        }
        match place {
            Some(place) => self.processes[index].poll(place),
            None => {
                let which = if calm { 0 } else { self.random.below(messages) };
                match self.shared.messages.take(which) {
                    Some(Message::Task(scope)) => self.processes[index].drive(scope),
                    Some(Message::Join(scope)) => {
                        self.shared.store.state().counts.joins += 1;
                        self.processes[index].join(scope);
                    }
                    None => {}
                }
            }
        }
        true
    }

    fn come_back(&mut self) {
        let now = self.now();
        for index in 0..self.processes.len() {
            let dead_until = self.processes[index].dead_until;
            if dead_until.is_some_and(|until| until <= now || self.faults.killed == 0) {
                self.lives += 1;
                let skew = self.skews_ms[index];
                self.processes[index] = Process::new(&self.shared, skew, self.lives);
            }
        }
    }

    /// All processes die, and a store in a folder is reopened.
    fn restart_all(&mut self, how: Restart) -> Result<()> {
        let now = self.now();
        self.processes
            .iter_mut()
            .for_each(|process| process.kill(now));
        let old = self.snapshot.clone().unwrap_or_default();
        self.shared.store.reopen(|folder| match how {
            Restart::Only => Ok(()),
            Restart::Save => copy(folder, &old),
            Restart::Back => {
                std::fs::remove_dir_all(folder)?;
                copy(&old, folder)
            }
        })?;
        if matches!(how, Restart::Back) {
            self.shared.messages.wipe();
            // A client whose request was accepted repeats it.
            let at = now.0;
            for act in &mut self.acts {
                if act.is_done() {
                    act.progress = Progress::NotBefore(at);
                }
            }
            self.shared.store.state().log.clear();
        }
        // They are created again: the old ones are gone, together with the old store.
        for index in 0..self.processes.len() {
            self.lives += 1;
            let skew = self.skews_ms[index];
            self.processes[index] = Process::new(&self.shared, skew, self.lives);
        }
        debug_assert!(self.folder.is_some());
        Ok(())
    }

    fn begin_acts(&mut self) {
        let now = self.now();
        let able: Vec<usize> = (0..self.processes.len())
            .filter(|index| self.processes[*index].works(now))
            .collect();
        let Cluster {
            acts,
            processes,
            random,
            ..
        } = self;
        // An operator waits for an answer before the next command.
        let mut operating = false;
        for act in acts {
            if matches!(act.what, Planned::Operate { .. }) && !act.is_done() {
                if operating {
                    continue;
                }
                operating = true;
            }
            if let Progress::UnderWay(index, life, answer) = &act.progress {
                let answer = *answer.lock().unwrap_or_else(PoisonError::into_inner);
                let alive =
                    processes[*index].life == *life && processes[*index].dead_until.is_none();
                act.progress = match answer {
                    Some(true) if std::mem::take(&mut act.again) => Progress::NotBefore(now.0),
                    Some(true) => Progress::Done,
                    Some(false) => Progress::NotBefore(now.0 + 300),
                    None if !alive => Progress::NotBefore(now.0 + 100),
                    None => continue,
                };
            }
            let Progress::NotBefore(at) = act.progress else {
                continue;
            };
            if at > now.0 || able.is_empty() {
                continue;
            }
            let index = able[random.below(able.len())];
            let process = &mut processes[index];
            let answer = Answer::default();
            act.progress = Progress::UnderWay(index, process.life, answer.clone());
            let (service, what) = (process.service.clone(), act.what.clone());
            process.spawn(async move {
                let taken = carry_out(service, what).await.unwrap_or(false);
                *answer.lock().unwrap_or_else(PoisonError::into_inner) = Some(taken);
            });
        }
    }

    fn next(&self) -> Timestamp {
        let mut moments: Vec<Timestamp> = Vec::new();
        moments.extend(self.shared.clock.next());
        moments.extend(self.shared.messages.next());
        for process in &self.processes {
            moments.extend(process.dead_until);
            moments.extend(process.paused_until);
        }
        moments.extend(self.acts.iter().filter_map(|act| match act.progress {
            Progress::NotBefore(at) => Some(Timestamp(at)),
            _ => None,
        }));
        let now = self.now();
        let next = moments.into_iter().filter(|at| *at > now).min();
        next.unwrap_or(now)
    }

    fn is_over(&self) -> Result<bool> {
        if self.faults.until_ms > 0 || !self.acts.iter().all(Act::is_done) {
            return Ok(false);
        }
        let inner = self.shared.store.inner();
        let under_way = block_on(inner.unflushed(1))?.len() + block_on(inner.runnable(1))?.len();
        let all = block_on(inner.list(&everything()))?;
        let ended = |status: swirl_model::instance::Status| status.ended();
        Ok(under_way == 0 && all.iter().all(|summary| ended(summary.status)))
    }

    fn left(&self) -> Result<String> {
        let inner = self.shared.store.inner();
        let mut left = Vec::new();
        for summary in block_on(inner.list(&everything()))? {
            if !summary.status.ended() {
                let scopes = block_on(inner.scopes(&summary.header.id))?;
                let places: Vec<_> = scopes
                    .iter()
                    .map(|scope| format!("{}: {:?} {:?}", scope.id, scope.cursor, scope.timers))
                    .collect();
                left.push(format!("{} {places:?}", summary.header.id));
            }
        }
        let acts = self.acts.iter();
        let acts = acts.filter(|act| !act.is_done());
        left.extend(acts.map(|act| format!("{:?}", act.what)));
        Ok(left.join("\n"))
    }

    fn trace(self, ended: Result<()>) -> Result<Trace> {
        let mut trace = Trace {
            turns: self.turns,
            ..Trace::default()
        };
        trace
            .violations
            .extend(ended.err().map(|error| error.to_string()));
        let inner = self.shared.store.inner();
        let (mut headers, mut events) = (Vec::new(), Vec::new());
        for summary in block_on(inner.list(&everything()))? {
            let id = &summary.header.id;
            headers.push(summary.header.as_ref().clone());
            let Some(instance) = self.shared.store.look(id)? else {
                continue;
            };
            let state = &instance.state;
            let error = state.error.as_ref().map(|error| error.name.clone());
            let output = state.output.as_ref().map(crate::plans::in_order);
            let text = format!("{} {output:?} {error:?}", state.status.as_str());
            trace.outcomes.insert(id.to_string(), text);
            let outcome = Outcome {
                workflow: summary.header.definition.workflow.to_string(),
                status: state.status.as_str(),
                output: state.output.clone().unwrap_or_default(),
                error: state.error.as_ref().map(crate::tasks::shown),
                at: state.ended_at.map_or(0, |at| at.0 - START),
                // In clusters, only the outcomes of instances are compared.
                warned: 0,
            };
            trace.outputs.insert(id.to_string(), outcome);
            for entry in block_on(inner.history(id))? {
                if let Event::EventProduced { id: event, .. } = &entry.event {
                    events.push(Produced {
                        instance: id.clone(),
                        scope: entry.scope.clone(),
                        id: event.clone(),
                    });
                }
                if let Some(line) = super::check::line(&entry.event) {
                    let place = format!("{id} {}", entry.scope);
                    trace.history.entry(place).or_default().push(line);
                }
            }
        }
        let mut seen = self.shared.outside.seen();
        trace.calls = std::mem::take(&mut seen.calls);
        trace.violations.append(&mut seen.violations);
        trace.names = Names::of(&headers, &events, &seen.published);
        let produced = std::mem::take(&mut seen.produced);
        trace.produced = produced
            .into_iter()
            .map(|(id, (text, _))| (id, text))
            .collect();
        drop(seen);
        let mut state = self.shared.store.state();
        trace.log = std::mem::take(&mut state.log);
        trace.counts = state.counts.clone();
        drop(state);
        trace.accepted = self.acts.iter().map(|act| act.what.clone()).collect();
        Ok(trace)
    }
}

enum Restart {
    Only,
    Save,
    Back,
}

fn everything() -> Filter {
    Filter {
        limit: usize::MAX,
        ..Filter::default()
    }
}

fn copy(from: &Path, to: &Path) -> Result<()> {
    std::fs::create_dir_all(to)?;
    for entry in std::fs::read_dir(from)? {
        let entry = entry?;
        let target = to.join(entry.file_name());
        match entry.file_type()?.is_dir() {
            true => copy(&entry.path(), &target)?,
            false => drop(std::fs::copy(entry.path(), target)?),
        }
    }
    Ok(())
}
