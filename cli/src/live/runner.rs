//! Runs scenarios one after another, each in its own namespace.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use swirl_api::definitions::{DEPLOY, Deployed, Deployment};
use swirl_engine::Definition;
use swirl_model::event::{Event, HistoryEntry};
use swirl_model::ids::DefinitionId;
use swirl_model::time::Timestamp;
use swirl_redis::Redis;
use swirl_scenario::answer::Answers;
use swirl_scenario::expect::Wanted;
use swirl_scenario::file::CLOCK_DEFAULT;
use swirl_scenario::places::places_of;
use swirl_scenario::run::{VirtualRunner, plan, read_all};
use swirl_scenario::{Observed, ObservedCall, RunError, Runner, Scenario};
use swirl_spec::Reading;
use tokio::runtime::Runtime;
use tokio::time::{Instant, sleep, timeout};

use super::documents::{self, Document};
use super::mock::Mock;
use super::observe::{Produced, observe};
use super::plan::Actor;
use super::processes::Processes;
use super::settings::Settings;
use super::tasks::{Callers, Hosts};
use crate::client::{Client, Target};

/// Scenarios that take longer in virtual time are skipped.
const VIRTUAL_MAX_MS: i64 = 10_000;
/// Unlike a day or an hour, it changes each part of a date and a time.
const OTHER_TIME_MS: i64 = (((400 * 24) + 5) * 60 + 7) * 60_000 + 11_013;
/// Expectations must still hold after this time.
const SETTLE: Duration = Duration::from_millis(200);
const LOOK: Duration = Duration::from_millis(20);
/// Nothing changes any more this long after all instances have ended.
const ENDED: Duration = Duration::from_secs(10);
/// How far the clocks of two processes may be apart.
const CLOCKS_MS: i64 = 250;

pub struct ClusterRunner {
    settings: Settings,
    runtime: Runtime,
    /// The prefix of the namespaces of this run.
    prefix: String,
    count: AtomicU64,
}

fn failed(error: impl std::fmt::Display) -> RunError {
    RunError::Failed(format!("{error:#}"))
}

impl ClusterRunner {
    /// # Errors
    /// The runtime cannot be started.
    pub fn new(settings: Settings) -> std::io::Result<ClusterRunner> {
        let now = std::time::SystemTime::now()
            .duration_since(std::time::UNIX_EPOCH)
            .map_or(0, |now| now.as_millis());
        Ok(ClusterRunner {
            settings,
            runtime: tokio::runtime::Builder::new_multi_thread()
                .worker_threads(2)
                .enable_all()
                .build()?,
            prefix: format!("test-{:x}-{}", now, std::process::id()),
            count: AtomicU64::new(0),
        })
    }
}

impl Runner for ClusterRunner {
    fn run(&self, scenario: &Scenario) -> Result<Observed, RunError> {
        if let Some(why) = cannot(scenario) {
            return Err(RunError::Skipped(why.to_owned()));
        }
        // The run in virtual time determines how long the scenario takes and when it has ended.
        let imagined = VirtualRunner.run(scenario)?;
        if wants_elapsed(scenario) && !imagined.instances.iter().all(|one| one.is_of_tasks) {
            return Err(RunError::Skipped("it expects exact times".to_owned()));
        }
        if imagined.stopped_ms > VIRTUAL_MAX_MS {
            let why = "it takes more than ten seconds of virtual time";
            return Err(RunError::Skipped(why.to_owned()));
        }
        let holds = |seen: &Observed| scenario.expect.check(seen).is_empty();
        if holds(&imagined) && !holds(&VirtualRunner.run(&scenario.later(OTHER_TIME_MS))?) {
            let why = "its outcome depends on the time at which it runs";
            return Err(RunError::Skipped(why.to_owned()));
        }
        let readings = read_all(scenario)?;
        let number = self.count.fetch_add(1, Ordering::Relaxed);
        let namespace = format!("{}-{number}", self.prefix);
        self.runtime
            .block_on(self.run_in(scenario, &imagined, readings, &namespace))
    }
}

/// The reason why a scenario cannot be run in real time.
fn cannot(scenario: &Scenario) -> Option<&'static str> {
    let exact = |wanted: &Wanted| {
        let calls = wanted.calls.iter().chain(&wanted.calls_unordered).flatten();
        calls.into_iter().any(|call| call.at_ms.is_some())
    };
    if wanted(scenario).any(exact) {
        return Some("it expects calls at exact times");
    }
    if Timestamp::parse(CLOCK_DEFAULT).is_ok_and(|clock| clock != scenario.clock) {
        return Some("it sets the clock");
    }
    None
}

fn wants_elapsed(scenario: &Scenario) -> bool {
    wanted(scenario).any(|wanted| wanted.elapsed.is_some())
}

fn wanted(scenario: &Scenario) -> impl Iterator<Item = &Wanted> {
    let expect = &scenario.expect;
    let listed = expect.instances.iter().flatten();
    listed.chain([&expect.single])
}

impl ClusterRunner {
    async fn run_in(
        &self,
        scenario: &Scenario,
        imagined: &Observed,
        readings: Vec<(String, Reading)>,
        namespace: &str,
    ) -> Result<Observed, RunError> {
        let options = swirl_redis::Options {
            namespace: namespace.to_owned(),
            shards: 4,
            ..swirl_redis::Options::single(&*self.settings.redis)
        };
        let redis = Redis::connect(options).await.map_err(failed)?;
        let hosts = Hosts::of(imagined);
        let callers = Callers::new(redis.clone(), &readings);
        let answers = Answers::new(&scenario.functions);
        let mock = Mock::new(answers, hosts.clone(), callers, imagined);
        let address = format!("http://{}", mock.serve().await.map_err(failed)?);
        let connector = format!("{address}/call");
        let servers = hosts.servers(&address);
        let places = places_of(&readings);
        let secrets = scenario.secrets.to_string();
        let options = swirl_nats::Options::new(vec![self.settings.nats.clone()], "swirl test");
        let nats = swirl_nats::connect(&options).await.map_err(failed)?;
        let mut processes =
            Processes::start(&self.settings, namespace, &connector, &servers, &secrets)
                .await
                .map_err(failed)?;
        let server = processes.apis.first().cloned().unwrap_or_default();
        let api = Client::new(&Target::open(&server)).map_err(failed)?;
        let run = async {
            if let Some(rejected) = &imagined.rejected {
                refuse(scenario, &api).await?;
                return Ok(Observed {
                    rejected: Some(rejected.clone()),
                    ..Observed::default()
                });
            }
            let first = deploy(scenario, &api, &readings).await?;
            let produced = Produced::listen(&nats, namespace).await.map_err(failed)?;
            let actor = Actor {
                api: &api,
                nats: &nats,
                namespace,
                queries: &redis,
                zero: scenario.clock,
            };
            actor.carry_out(plan(scenario, &first)?).await?;
            let patience = self.settings.patience;
            let look = async || observe(&redis, &mock, &produced, &places).await;
            until_well(scenario, imagined, patience, look).await
        };
        let result = run.await;
        let ended = processes.ended();
        processes.stop().await;
        clean_up(&nats, namespace, &redis).await;
        if let Some(how) = ended {
            return Err(RunError::Failed(format!(
                "a process ended by itself: {how}"
            )));
        }
        result
    }
}

/// Deploys the definitions, and returns the id of the first.
async fn deploy(
    scenario: &Scenario,
    api: &Client,
    readings: &[(String, Reading)],
) -> Result<DefinitionId, RunError> {
    let mut first = None;
    for (source, (_, reading)) in scenario.workflows.iter().zip(readings) {
        let Some(workflow) = &reading.workflow else {
            continue;
        };
        first.get_or_insert_with(|| Definition::id_of(workflow));
        let used = reading.resources_used.iter();
        let used: Vec<(String, String)> = used
            .map(|(uri, content)| (uri.clone(), String::from_utf8_lossy(content).into_owned()))
            .collect();
        let edition = reading.edition.as_ref().map(|detected| detected.edition);
        let document = documents::mocked(scenario, source, (workflow, edition), &used)?;
        if let Err(problem) = send(api, document).await? {
            let problem = serde_json::to_string(&problem).map_err(failed)?;
            return Err(failed(format!("the deployment was refused: {problem}")));
        }
    }
    first.ok_or_else(|| failed("there is no workflow"))
}

/// Checks that the API refuses the same requests that are refused in virtual time.
async fn refuse(scenario: &Scenario, api: &Client) -> Result<(), RunError> {
    for source in &scenario.workflows {
        let answer = send(api, documents::plain(scenario, source)?).await?;
        if answer.is_err_and(|problem| problem.status == 422) {
            return Ok(());
        }
    }
    Err(failed("the API accepted what is refused in virtual time"))
}

async fn send(api: &Client, document: Document) -> Result<swirl_api::Answer<Deployed>, RunError> {
    let deployment = Deployment {
        name: Some(document.name),
        document: document.text,
        resources: document.resources.into_iter().collect(),
    };
    let sent = api.ask(DEPLOY.ask().body(&deployment)).await;
    Ok(sent.map_err(failed)?.0)
}

/// Polls until all expectations hold, and still hold a moment later. If they never do, the last observation shows the
/// differences.
async fn until_well(
    scenario: &Scenario,
    imagined: &Observed,
    patience: Duration,
    look: impl AsyncFn() -> Result<Observed, RunError>,
) -> Result<Observed, RunError> {
    let virtual_ms = u64::try_from(imagined.stopped_ms).unwrap_or(0);
    // Events that never happen in virtual time must not happen here either. This is how long to wait for them.
    let quiet = !imagined
        .instances
        .iter()
        .all(|one| one.elapsed_ms.is_some());
    let least = Duration::from_millis(if quiet { virtual_ms } else { 0 });
    let begun = Instant::now();
    let mut until = begun + Duration::from_millis(virtual_ms) + patience;
    let all_ended = |seen: &Observed| {
        let mut all = seen.instances.iter();
        seen.instances.len() == imagined.instances.len() && all.all(|one| one.elapsed_ms.is_some())
    };
    loop {
        let mut seen = look().await?;
        as_imagined(&mut seen, imagined);
        let well = scenario.expect.check(&seen).is_empty()
            && seen.instances.len() == imagined.instances.len();
        if well && begun.elapsed() >= least {
            sleep(SETTLE).await;
            let mut again = look().await?;
            as_imagined(&mut again, imagined);
            if scenario.expect.check(&again).is_empty() {
                return Ok(again);
            }
        }
        if all_ended(&seen) {
            until = until.min(Instant::now() + ENDED);
        }
        if Instant::now() >= until {
            return Ok(seen);
        }
        sleep(LOOK).await;
    }
}

/// Takes away what real time adds: calls and tasks at the same virtual instant come in any order, and an instance takes
/// longer. Calls are sorted into the order of branches and iterations (docs/language.md#decision-71) if they are the same.
fn as_imagined(seen: &mut Observed, imagined: &Observed) {
    // The API's answers to starts and operators' actions are checked where those are sent.
    seen.refused_starts.clone_from(&imagined.refused_starts);
    seen.idle.clone_from(&imagined.idle);
    for (seen, imagined) in seen.instances.iter_mut().zip(&imagined.instances) {
        // No timer fires early.
        if let (Some(took), Some(least)) = (seen.elapsed_ms, imagined.elapsed_ms)
            && took + CLOCKS_MS >= least
        {
            seen.elapsed_ms = imagined.elapsed_ms;
        }
        let is_forked = |entry: &HistoryEntry| matches!(entry.event, Event::Forked { .. });
        let sorted = |tasks: &[(String, String)]| {
            let mut tasks = tasks.to_vec();
            tasks.sort();
            tasks
        };
        if imagined.history.iter().any(is_forked) && sorted(&seen.tasks) == sorted(&imagined.tasks)
        {
            seen.tasks.clone_from(&imagined.tasks);
        }
        if seen.calls.len() != imagined.calls.len() {
            continue;
        }
        let mut from = 0;
        for same in imagined.calls.chunk_by(|a, b| a.at_ms == b.at_ms) {
            let slice = &mut seen.calls[from..from + same.len()];
            from += same.len();
            let mut left = slice.to_vec();
            let ordered = same.iter().map(|wanted| {
                let found = left.iter().position(|call| is_same(call, wanted));
                found.map(|found| left.swap_remove(found))
            });
            if let Some(ordered) = ordered.collect::<Option<Vec<_>>>() {
                slice.clone_from_slice(&ordered);
            }
        }
    }
}

fn is_same(call: &ObservedCall, wanted: &ObservedCall) -> bool {
    let request = match (&call.request, &wanted.request) {
        (Some(call), Some(wanted)) => {
            (&call.method, &call.uri, &call.query, &call.body)
                == (&wanted.method, &wanted.uri, &wanted.query, &wanted.body)
        }
        (call, wanted) => call.is_some() == wanted.is_some(),
    };
    request && call.function == wanted.function && call.arguments == wanted.arguments
}

/// Removes everything that belongs to the scenario from the servers. Leftovers do no harm.
async fn clean_up(nats: &async_nats::Client, namespace: &str, redis: &Redis) {
    let streams = swirl_nats::Streams::new(
        nats.clone(),
        namespace,
        Vec::new(),
        swirl_nats::StreamOptions::default(),
    );
    let context = async_nats::jetstream::new(nats.clone());
    let queues = [streams.tasks(), streams.lanes(), streams.joins()];
    for name in queues.into_iter().chain([streams.events(), streams.dead()]) {
        let _ = timeout(Duration::from_secs(5), context.delete_stream(&name)).await;
    }
    let _ = timeout(Duration::from_secs(10), redis.remove_namespace()).await;
}
