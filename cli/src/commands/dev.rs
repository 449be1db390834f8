//! `swirl dev`

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;

use anyhow::{Context, bail};
use clap::builder::{PossibleValuesParser, TypedValueParser};
use swirl_coordinator::access::Access;
use swirl_coordinator::api::{Api, Rehearsals};
use swirl_coordinator::server::Server;
use swirl_deployment::DocumentReader;
use swirl_runtime::Recording;
use swirl_telemetry::Telemetry;
use tokio::net::TcpListener;

use crate::arguments::{LimitArgs, loader, secrets};
use crate::dev::{DevInsight, Folder, Log};
use crate::functions::{FunctionArgs, GivenArgs, of_folder};
use crate::logging;
use crate::node::Node;
use crate::terminal::{Output, Terminal};

/// The time limit for sending the last spans and metrics.
const FLUSH_MAX: std::time::Duration = std::time::Duration::from_secs(3);

/// Runs the whole system in one process, for a folder of definitions.
///
/// All definitions of the folder are deployed, also those of the folders in it, and again when their
/// files change. The new content replaces the old under the same version, unless the
/// old one has instances. Definitions of removed files start no new instances. The HTTP API takes
/// starts, CloudEvents and further definitions; the other commands talk to it. There is no
/// authentication: anyone who can reach the port may do everything. It therefore listens on this
/// machine only, unless '--no-auth' is given.
///
/// Instances are kept in the subfolder .swirl of the folder. They continue when this command is started again after
/// Ctrl-C or a crash.
#[derive(Debug, clap::Args)]
#[command(after_long_help = "\
Examples:
  swirl dev                                     # the definitions of this folder
  swirl dev workflows --listen 127.0.0.1:9000
  swirl dev workflows --memory                  # nothing outlives the process
  swirl dev --history-data errors               # histories as small as on a cluster
  SWIRL_LOG=info,swirl_cli=debug swirl dev      # each step of each instance")]
pub struct Args {
    /// The folder of the definitions.
    #[arg(default_value = ".", value_name = "FOLDER")]
    folder: PathBuf,

    /// The address of the API; port 0 takes any free one.
    #[arg(long, default_value = "127.0.0.1:8080", value_name = "ADDRESS")]
    listen: SocketAddr,

    /// Listen on an address that other machines can reach, without authentication.
    #[arg(long)]
    no_auth: bool,

    /// A host name for the API, besides localhost and IP addresses; may be repeated. Requests for
    /// any other host are refused: otherwise a web page could rebind its own name to this address.
    #[arg(long, value_name = "HOST")]
    api_host: Vec<String>,

    /// An origin whose web pages may use the API, such as http://localhost:5173; may be repeated.
    #[arg(long, value_name = "ORIGIN", value_parser = swirl_config::origin)]
    cors_origin: Vec<String>,

    /// A sender of webhooks that may deliver events after a handshake, such as eventgrid.azure.net; may be
    /// repeated.
    #[arg(long, value_name = "NAME")]
    webhook_origin: Vec<String>,

    /// The folder to keep instances in [default: .swirl in FOLDER].
    #[arg(long, value_name = "PATH", conflicts_with = "memory")]
    store: Option<PathBuf>,

    /// If the store is damaged, continue with what can be read, and report what is lost. The damaged files are kept.
    #[arg(long, conflicts_with = "memory")]
    accept_loss: bool,

    /// Keep everything in memory.
    #[arg(long)]
    memory: bool,

    /// The data that histories keep, besides what happened: nothing, the arguments of failed calls, or the arguments and
    /// results of all calls, the events, and the state data with which each state begins. A definition may override
    /// this.
    #[arg(long, value_name = "DATA", default_value = Recording::All.as_str(), value_parser = recording())]
    history_data: Recording,

    /// A secret, as NAME=VALUE or NAME=@FILE; may be repeated. Other secrets are read from the environment, as
    /// SWIRL_SECRET_NAME.
    #[arg(long, value_name = "NAME=VALUE")]
    secret: Vec<String>,

    /// A host from which documents may be fetched, in addition to this machine; may be repeated.
    #[arg(long, value_name = "HOST")]
    allow_host: Vec<String>,

    /// A collector for traces and metrics, by OTLP over gRPC, such as http://127.0.0.1:4317.
    #[arg(long, value_name = "URL")]
    otlp: Option<String>,

    /// An attribute with which CloudEvents address an instance, in addition to swirlinstanceid, such as
    /// kogitoprocrefid.
    #[arg(long, value_name = "NAME", value_parser = swirl_ports::addressed::attribute)]
    instance_attribute: Option<String>,

    #[command(flatten)]
    limits: LimitArgs,

    #[command(flatten)]
    functions: FunctionArgs,

    #[command(flatten)]
    given: GivenArgs,
}

fn recording() -> impl TypedValueParser<Value = Recording> {
    let words = PossibleValuesParser::new(Recording::ALL.map(Recording::as_str));
    words.try_map(|word| word.parse::<Recording>())
}

pub fn run(args: &Args, terminal: &Terminal) -> anyhow::Result<u8> {
    if !args.folder.is_dir() {
        bail!("{} is not a folder", args.folder.display());
    }
    if !args.listen.ip().is_loopback() && !args.no_auth {
        bail!(
            "other machines can reach {}, and there is no authentication: listen on 127.0.0.1, or pass '--no-auth' if anyone who can reach the port may do everything; 'swirl coordinator' supports tokens",
            args.listen
        );
    }
    let form = match terminal.output {
        Output::Json => logging::Form::Json,
        _ => logging::Form::Text {
            colours: terminal.colours(),
        },
    };
    logging::start(logging::DEFAULT, form);
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(swirl_connections::threads())
        .enable_all()
        .build()?;
    runtime.block_on(serve(args))
}

async fn serve(args: &Args) -> anyhow::Result<u8> {
    // First of all, so that starting a second server fails immediately.
    let listener = TcpListener::bind(args.listen)
        .await
        .with_context(|| format!("cannot listen on {}", args.listen))?;
    let address = listener.local_addr()?;
    let mut loader = loader(&args.allow_host, args.functions.settings()?)?;
    loader.given = args.given.resources()?;
    loader.given.extend(of_folder(&args.folder)?);
    let secrets = secrets(&args.secret)?;
    loader.secrets = secrets.clone();
    let loader = Arc::new(loader);
    let store = match (&args.store, args.memory) {
        (Some(store), _) => Some(store.clone()),
        (None, true) => None,
        (None, false) => Some(args.folder.join(".swirl")),
    };
    let mut node = Node::new(
        store.as_deref(),
        swirl_embedded::Options {
            accept_loss: args.accept_loss,
            ..args.limits.options()
        },
        loader.lower(),
        loader.caller.clone(),
        secrets,
    )?;
    node.addressed_by(args.instance_attribute.as_deref());
    if let (None, Some(store)) = (&args.store, &store) {
        keep_out_of_git(store);
    }
    match &store {
        Some(store) => tracing::info!("instances are kept in {}", store.display()),
        None => tracing::info!("instances are kept in memory"),
    }
    let reader = DocumentReader::below(loader, &args.folder);
    let trusted = reader.trusted(&args.folder);
    let telemetry = Telemetry::new(&telemetry(args), node.store.clone())?;
    node.observed_by(telemetry.clone());
    node.records(args.history_data);
    let metrics = telemetry.metrics().clone();
    swirl_coordinator::process::count_events(&metrics, &node.service.recent);
    let insight = DevInsight::new(&node, store.clone(), address);
    let api = Api::new(
        node.service.clone(),
        node.store.clone(),
        Arc::new(reader),
        Access::open("default"),
    )
    .with_insight(Arc::new(insight))
    .with_batches(&node.batching())
    .with_auditing(node.auditing())
    .with_views(node.store.clone())
    .with_rehearsals(Rehearsals::by_this_program())
    .with_answers(swirl_coordinator::process::answers(&telemetry, "http"))
    .with_metrics(Arc::new(move || metrics.text().ok()));
    let api = api
        .only_hosts(&args.api_host)
        .with_origins(&args.cors_origin)
        .with_webhook_origins(&args.webhook_origin);
    let mut folder = Folder::new(&args.folder, api.clone(), trusted);
    folder.look().await;
    folder.forget_removed().await;
    let mut log = Log::new(node.store.clone(), node.service.registry.clone());
    log.skip().await;
    node.start();
    let tasks = [tokio::spawn(folder.watch()), tokio::spawn(log.follow())];
    tracing::info!("the API is at http://{address}/api/v1/openapi.json");
    tracing::info!("the console is at http://{address}/console/");
    if !address.ip().is_loopback() {
        tracing::warn!("there is no authentication, and other machines can reach {address}");
    }
    let stop = swirl_connections::stop()?;
    let stop = async move {
        stop.await;
        tracing::info!("stopping");
    };
    let served = Server::new(api).serve(listener, stop).await;
    tasks.iter().for_each(tokio::task::JoinHandle::abort);
    telemetry.shutdown(FLUSH_MAX).await;
    served.context("the server failed")?;
    Ok(0)
}

/// On a developer's machine, all traces are kept.
fn telemetry(args: &Args) -> swirl_telemetry::Settings {
    swirl_telemetry::Settings {
        endpoint: args.otlp.clone(),
        protocol: swirl_telemetry::Protocol::Grpc,
        headers: Vec::new(),
        sampling_ratio: 1.0,
        resource_attributes: Vec::new(),
        namespace: None,
        instance: format!("dev-{}", std::process::id()),
        version: env!("CARGO_PKG_VERSION").to_owned(),
    }
}

/// The store is inside the folder of the definitions, which is often under version control. Instances don't belong
/// there.
fn keep_out_of_git(store: &std::path::Path) {
    let path = store.join(".gitignore");
    if path.exists() {
        return;
    }
    if let Err(error) = std::fs::write(&path, "*\n") {
        tracing::warn!(%error, "{} cannot be written", path.display());
    }
}
