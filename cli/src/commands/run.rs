//! `swirl run`

mod left;
mod put_off;

use std::io::IsTerminal;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::{Context, bail};
use put_off::{GIVEN_UP_AFTER, GivenUp, PutOff};
use swirl_deployment::{Loaded, Loader, RESOURCE_BYTES_MAX, Refusal};
use swirl_documents::render::{self, Colour};
use swirl_engine::{Definition, continuation_id, derive};
use swirl_functions::types::custom::SYSOUT_TARGET;
use swirl_model::ids::InstanceId;
use swirl_model::instance::{Instance, InstanceState, Status};
use swirl_model::{CloudEvent, Data};
use swirl_ports::{Definitions, InstanceQueries, InstanceRecords};
use swirl_service::{Deployed, Refused, Service, StartRequest, Started, reach};
use swirl_spec::resource::FileResources;

use super::validate::{Read, human};
use crate::arguments::{LimitArgs, json_argument, loader, secrets};
use crate::functions::{FunctionArgs, GivenArgs};
use crate::logging;
use crate::node::Node;
use crate::progress::Progress;
use crate::terminal::{Output, Terminal};

/// The time for which an event from the command line is held back until an instance waits for it.
const EVENT_HELD: Duration = Duration::from_secs(10);

/// Runs a workflow and prints its output.
///
/// The output is JSON, and stdout has nothing else. Messages that the workflow logs with 'sysout' go to stderr. If the
/// workflow ends without completing, its error goes to stderr and the exit code is 1. If it could not be started, the
/// exit code is 2.
///
/// If a workflow continues as another one ('continueAs'), the command follows it to the end of the last one. When the
/// instance has ended, the command prints its output. Then it waits for everything else that the run started: calls and
/// sub-workflows with 'invoke: async', and instances that its events started.
///
/// If an effect, such as publishing an event or starting a sub-workflow, cannot be carried out for a second, it is
/// named on stderr. After 30 s the command gives up with exit code 1.
///
/// With '--store' the instance outlives this process: after a crash or Ctrl-C, the same command continues where it
/// stopped, and says so. A function call that was under way is repeated with the same Idempotency-Key.
#[derive(Debug, clap::Args)]
#[command(after_long_help = "\
Examples:
  swirl run hello.sw.yaml --input '{\"name\": \"Ada\"}'
  swirl run order.sw.yaml --input @order.json
  swirl run parent.sw.yaml --with child.sw.yaml
  swirl run order.sw.yaml --store ./data        # goes on after a crash
  swirl run approval.sw.yaml --event approved.json")]
pub struct Args {
    /// The definition, YAML or JSON.
    #[arg(value_name = "FILE")]
    pub file: PathBuf,

    /// The input, a JSON object or, for DSL 1.0, any JSON value: as it is, '@FILE', or '-' for stdin.
    #[arg(long, short, default_value = "{}", value_name = "JSON")]
    pub input: String,

    /// Another definition that the workflow runs as its sub-workflow; may be repeated.
    #[arg(long, value_name = "FILE")]
    pub with: Vec<PathBuf>,

    /// The folder in which the instance is kept, so that it outlives this process.
    #[arg(long, value_name = "FOLDER")]
    pub store: Option<PathBuf>,

    /// If the store is damaged, continue with what can be read, and report what is lost. The damaged files are kept.
    #[arg(long, requires = "store")]
    pub accept_loss: bool,

    /// A secret, as NAME=VALUE or NAME=@FILE; may be repeated. Other secrets are read from the environment, as
    /// SWIRL_SECRET_NAME.
    #[arg(long, value_name = "NAME=VALUE")]
    pub secret: Vec<String>,

    /// A CloudEvent in JSON. It is sent as soon as an instance waits for an event, and after 10 s at the latest; may be
    /// repeated.
    #[arg(long, value_name = "FILE")]
    pub event: Vec<PathBuf>,

    /// A host from which documents may be fetched, in addition to this machine; may be repeated.
    #[arg(long, value_name = "HOST")]
    pub allow_host: Vec<String>,

    /// Exit when the instance has ended, even if async calls or sub-workflows are still under way. They are lost, or
    /// with '--store' continue with the next run.
    #[arg(long)]
    pub no_wait: bool,

    /// An attribute with which CloudEvents address an instance, in addition to swirlinstanceid, such as
    /// kogitoprocrefid.
    #[arg(long, value_name = "NAME", value_parser = swirl_ports::addressed::attribute)]
    instance_attribute: Option<String>,

    #[command(flatten)]
    pub limits: LimitArgs,

    #[command(flatten)]
    pub functions: FunctionArgs,

    #[command(flatten)]
    pub given: GivenArgs,
}

pub fn run(args: &Args, terminal: &Terminal) -> anyhow::Result<u8> {
    let input = json_argument(&args.input).context("--input")?;
    let events = args
        .event
        .iter()
        .map(|file| read_event(file))
        .collect::<anyhow::Result<Vec<_>>>()?;
    // Only the outcome and what the workflow itself logs are shown, unless SWIRL_LOG says otherwise.
    let filter = format!("off,{SYSOUT_TARGET}=trace");
    logging::start(&filter, logging::Form::text());
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(swirl_connections::threads())
        .enable_all()
        .build()?;
    runtime.block_on(run_one(args, terminal, input, events))
}

fn read_event(file: &Path) -> anyhow::Result<CloudEvent> {
    let text = swirl_documents::files::read(file, swirl_documents::files::BYTES_MAX)
        .with_context(|| format!("{} cannot be read", file.display()))?;
    serde_json::from_slice(&text)
        .with_context(|| format!("{} doesn't contain a CloudEvent in JSON", file.display()))
}

async fn run_one(
    args: &Args,
    terminal: &Terminal,
    input: Data,
    events: Vec<CloudEvent>,
) -> anyhow::Result<u8> {
    let mut loader = loader(&args.allow_host, args.functions.settings()?)?;
    loader.given = args.given.resources()?;
    let secrets = secrets(&args.secret)?;
    loader.secrets = secrets.clone();
    let mut node = Node::new(
        args.store.as_deref(),
        swirl_embedded::Options {
            accept_loss: args.accept_loss,
            ..args.limits.options()
        },
        loader.lower(),
        loader.caller.clone(),
        secrets,
    )?;
    node.addressed_by(args.instance_attribute.as_deref());
    let mut main = None;
    for file in std::iter::once(&args.file).chain(&args.with) {
        match deploy(&loader, &node.service, file, terminal.colours()).await? {
            Ok(workflow) => main = main.or(Some(workflow)),
            Err(why) => {
                terminal.failure(&why, &why);
                return Ok(2);
            }
        }
    }
    let Some((workflow, version)) = main else {
        bail!("there is nothing to run")
    };
    let (id, resumed) = start(&node, &workflow, &version, &input).await?;
    if resumed {
        terminal.message(&format!(
            "resuming instance {id}, which an earlier run of this command left in the store"
        ));
    }
    node.start();
    for event in &events {
        send(&node, &id, event, terminal).await?;
    }
    let shown = std::io::stderr().is_terminal() && terminal.output == Output::Text;
    let progress = || shown.then(|| Progress::new(terminal.colours()));
    let root = node.store.instance(&id).await?;
    let root = root.map_or_else(|| id.to_string(), |first| first.header.trace_root());
    let mut put_off = PutOff::new(root.clone(), |names| {
        terminal.message(&format!(
            "not carried out yet; retrying for {} s: {names}",
            GIVEN_UP_AFTER.as_secs()
        ));
    });
    let (last, instance) = match follow_chain(&node, &id, progress, &mut put_off).await {
        Ok(followed) => followed,
        Err(error) => return give_up(args, terminal, error),
    };
    let code = print_result(terminal, &last, &instance.state)?;
    node.store
        .set_mark(&printed_mark(&id), node.service.clock.now())
        .await?;
    if !args.no_wait {
        let first = node.store.instance(&id).await?;
        let begun = first.map_or(instance.header.started_at, |first| first.header.started_at);
        let say = |left: left::Left| {
            terminal.message(&format!(
                "instance {last} has ended; waiting for {} that it started (press Ctrl-C to stop waiting; --no-wait doesn't wait at all)",
                left.text()
            ));
        };
        let store = node.store.as_ref();
        let unheard = match left::finish(store, &root, begun, say, &mut put_off).await {
            Ok(unheard) => unheard,
            Err(error) => return give_up(args, terminal, error),
        };
        for other in unheard.iter().filter(|other| other.header.id != last) {
            let (id, workflow) = (&other.header.id, &other.header.definition.workflow);
            let error = other.error.as_ref();
            let error = error.map_or_else(String::new, |error| format!(": {error}"));
            terminal.message(&format!(
                "warning: instance {id} of '{workflow}', which this run started, is faulted{error}"
            ));
        }
    }
    Ok(code)
}

/// Sends an event as soon as an instance waits for one, because most events only reach instances that already wait.
async fn send(
    node: &Node,
    id: &InstanceId,
    event: &CloudEvent,
    terminal: &Terminal,
) -> anyhow::Result<()> {
    let limit = Instant::now() + EVENT_HELD;
    let mut pause = Duration::from_micros(200);
    while Instant::now() < limit && !node.store.has_waits()? {
        let instance = node.store.instance(id).await?;
        if instance.is_none_or(|instance| instance.state.status != Status::Running) {
            break;
        }
        tokio::time::sleep(pause).await;
        pause = (pause * 2).min(Duration::from_millis(20));
    }
    let reach = node.service.publish_explained(event).await?;
    if reach.instances.is_empty() && reach.started.is_empty() && reach.collected_by.is_empty() {
        let (kind, id) = (&event.kind, &event.id);
        terminal.message(&format!(
            "event {id} of type '{kind}': {}",
            reach::text(&reach)
        ));
    }
    Ok(())
}

/// Ends a run that could not be completed.
fn give_up(args: &Args, terminal: &Terminal, error: anyhow::Error) -> anyhow::Result<u8> {
    let given_up = error.downcast::<GivenUp>()?;
    let later = match args.store {
        Some(_) => "; the next run with this store tries again",
        None => "",
    };
    terminal.message(&format!("error: {given_up}{later}"));
    Ok(1)
}

/// Marks an instance whose outcome was printed.
fn printed_mark(id: &InstanceId) -> String {
    format!("told/{id}")
}

/// Reads a definition's file and all documents that it refers to. Returns the reason if it cannot be run, as text for
/// the user.
pub(super) fn load(
    loader: &Loader,
    file: &Path,
    colour: bool,
) -> anyhow::Result<Result<Loaded, String>> {
    let document = swirl_documents::files::read(file, swirl_documents::files::BYTES_MAX)
        .with_context(|| format!("{} cannot be read", file.display()))?;
    let folder = file.parent().unwrap_or(Path::new(""));
    let files = FileResources::new(folder, RESOURCE_BYTES_MAX).anywhere();
    let name = file.display().to_string();
    let read = loader.read(&name, &document, Some(files), &[]);
    Ok(read.map_err(|refusal| match refusal {
        Refusal::Document(reading) => {
            let read = Read {
                file: file.to_owned(),
                text: String::from_utf8_lossy(&document).into_owned(),
                reading: *reading,
                missing: Vec::new(),
            };
            human(&read, colour)
        }
        Refusal::Functions(found) => {
            let text = String::from_utf8_lossy(&document);
            let ansi = if colour { Colour::Ansi } else { Colour::No };
            render::human(&name, text.trim_start_matches('\u{feff}'), &found, ansi)
        }
    }))
}

/// Deploys the workflow, and returns its id and version. Returns the reason if it cannot be deployed, as text for the
/// user.
async fn deploy(
    loader: &Loader,
    service: &Service,
    file: &Path,
    colour: bool,
) -> anyhow::Result<Result<(String, String), String>> {
    let Loaded {
        deployment,
        functions,
        ..
    } = match load(loader, file, colour)? {
        Ok(loaded) => loaded,
        Err(why) => return Ok(Err(why)),
    };
    // The functions must be callable before the first instance exists.
    let id = Definition::id_of(&deployment.workflow);
    if let Err(problems) = loader.prepare(&id, &deployment.workflow, functions) {
        let lines: Vec<String> = problems.iter().map(ToString::to_string).collect();
        return Ok(Err(lines.join("\n")));
    }
    Ok(match service.deploy(deployment).await? {
        Deployed::New(id) | Deployed::Unchanged(id) => {
            Ok((id.workflow.to_string(), id.version.to_string()))
        }
        Deployed::Conflict(id) => Err(format!(
            "error: the store has a different definition {id}; definitions are immutable under id and version: raise the version, or use another store"
        )),
        Deployed::Invalid(problems) => {
            let lines: Vec<String> = problems
                .iter()
                .map(|problem| format!("error: {problem}"))
                .collect();
            Err(lines.join("\n"))
        }
    })
}

/// Starts an instance. If the same command started one before and its outcome was not yet printed, returns that one and
/// true.
async fn start(
    node: &Node,
    workflow: &str,
    version: &str,
    input: &Data,
) -> anyhow::Result<(InstanceId, bool)> {
    let run = derive(&["run", workflow, version, &input.to_string()]);
    for count in 0u32.. {
        let key = format!("{run}-{count}");
        let request = StartRequest {
            watched: false,
            workflow: workflow.to_owned(),
            version: Some(version.to_owned()),
            input: input.clone(),
            key: Some(key),
            request: String::new(),
            trace: None,
        };
        match node.service.start(request).await? {
            Ok(Started::New(id)) => return Ok((id, false)),
            Ok(Started::Ended(instance)) => return Ok((instance.header.id.clone(), false)),
            Ok(Started::Existing(id)) => {
                if node.store.mark(&printed_mark(&id)).await?.is_none() {
                    return Ok((id, true));
                }
            }
            Err(Refused::Invalid(error)) => bail!("{error}"),
            Err(refused) => bail!("{refused}"),
        }
    }
    bail!("this store holds too many runs of this command")
}

/// Waits for the end of an instance and of those that it continues as, and returns the last one. A continuation exists
/// before the instance that it continues has ended.
async fn follow_chain(
    node: &Node,
    first: &InstanceId,
    progress: impl Fn() -> Option<Progress>,
    put_off: &mut PutOff<impl FnOnce(String)>,
) -> anyhow::Result<(InstanceId, Instance)> {
    let mut id = first.clone();
    loop {
        let instance = follow(node, &id, progress(), put_off).await?;
        let next = continuation_id(&instance.header);
        if node.store.instance(&next).await?.is_none() {
            return Ok((id, instance));
        }
        id = next;
    }
}

/// Waits for the end while showing the progress on a terminal.
async fn follow(
    node: &Node,
    id: &InstanceId,
    mut progress: Option<Progress>,
    put_off: &mut PutOff<impl FnOnce(String)>,
) -> anyhow::Result<Instance> {
    let mut pause = Duration::from_micros(200);
    loop {
        if let Some(progress) = &mut progress {
            progress.show(
                &node.store.history(id).await?,
                &node.store.scopes(id).await?,
            );
        }
        let instance = node
            .store
            .instance(id)
            .await?
            .context("the instance is gone")?;
        if instance.state.status.ended() {
            if let Some(progress) = &mut progress {
                progress.show(&node.store.history(id).await?, &[]);
            }
            return Ok(instance);
        }
        put_off.look(node.store.as_ref(), Instant::now()).await?;
        tokio::time::sleep(pause).await;
        pause = (pause * 2).min(Duration::from_millis(20));
    }
}

fn print_result(terminal: &Terminal, id: &InstanceId, state: &InstanceState) -> anyhow::Result<u8> {
    match (state.status, &state.output, &state.error) {
        (Status::Completed, output, _) => {
            let output = output.clone().unwrap_or_default();
            let json = serde_json::Value::from(&output);
            terminal.result(&format!("{json:#}\n"))?;
            Ok(0)
        }
        (status, _, Some(error)) => {
            let place = error.place().map(|place| format!(" in {place}"));
            terminal.message(&format!(
                "error: instance {id} {}{}: {error}",
                status.as_str(),
                place.unwrap_or_default()
            ));
            Ok(1)
        }
        (status, _, None) => {
            terminal.message(&format!("error: instance {id} was {}", status.as_str()));
            Ok(1)
        }
    }
}
