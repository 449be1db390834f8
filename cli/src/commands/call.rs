//! `swirl call`

mod show;

use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context, anyhow, bail};
use swirl_config::parse_duration;
use swirl_deployment::{Loaded, Loader};
use swirl_documents::suggest::did_you_mean;
use swirl_engine::{Definition, Env, arguments_without_instance, auth_without_instance};
use swirl_functions::watch::Watch;
use swirl_model::ids::{InstanceId, ScopeRef};
use swirl_model::redact::Redactor;
use swirl_model::workflow::{ActionKind, Function, FunctionKind, Template, Workflow};
use swirl_model::{Data, WorkflowError};
use swirl_ports::call::CallAuth;
use swirl_ports::{CallRequest, Clock, FunctionCaller, LastExchange, Stored};

use super::run::load;
use crate::arguments::{json_argument, loader_with, secrets};
use crate::functions::{FunctionArgs, GivenArgs};
use crate::logging;
use crate::terminal::Terminal;

/// Calls one function of a definition, and shows request, answer and time.
///
/// The arguments are passed to the function unchanged: expressions in them are not evaluated. A task of DSL 1.0 with
/// 'call: http' describes its request itself: there the arguments are the task's input. Credentials are those of
/// the function's 'authRef'. They and all secrets are removed from the output. Nothing is retried.
///
/// The answer is written to stdout as JSON, the request and the time to stderr. With '--output json' everything is
/// written to stdout. Exit code 1 if the call fails, 2 if it could not be made.
#[derive(Debug, clap::Args)]
#[command(after_long_help = "\
Examples:
  swirl call order.sw.yaml getOrder --args '{\"id\": 7}'
  swirl call order.sw.yaml payOrder --args @payment.json --dry-run
  swirl call order.sw.yaml payOrder --args @payment.json --secret token=@token.txt --timeout 5s
  swirl call pets.sw.yaml pet --args '{\"id\": 1}' --selection-set '{ name }'    # GraphQL
  swirl --output json call order.sw.yaml getOrder --args '{\"id\": 7}'")]
pub struct Args {
    /// The definition, YAML or JSON.
    #[arg(value_name = "DEFINITION")]
    pub file: PathBuf,

    /// The name of one of its functions.
    #[arg(value_name = "FUNCTION")]
    pub function: String,

    /// The arguments, JSON: as it is, '@FILE', or '-' for stdin.
    #[arg(long, short, default_value = "{}", value_name = "JSON")]
    pub args: String,

    /// Shows the request and sends nothing. Documents that describe the function are still read,
    /// and no OAuth2 token is requested.
    #[arg(long)]
    pub dry_run: bool,

    /// The selection set of a GraphQL function, such as '{ name }'.
    #[arg(long, value_name = "TEXT")]
    pub selection_set: Option<String>,

    /// The time limit of the call, such as 5s or 2m. Without it: the timeout of the definition's actions for this
    /// function, or 60 s.
    #[arg(long, value_parser = parse_duration, value_name = "TIME")]
    pub timeout: Option<Duration>,

    /// A secret, as NAME=VALUE or NAME=@FILE; may be repeated. Other secrets are read from the environment, as
    /// SWIRL_SECRET_NAME.
    #[arg(long, value_name = "NAME=VALUE")]
    pub secret: Vec<String>,

    /// A host from which documents may be fetched, in addition to this machine; may be repeated.
    #[arg(long, value_name = "HOST")]
    pub allow_host: Vec<String>,

    #[command(flatten)]
    pub functions: FunctionArgs,

    #[command(flatten)]
    pub given: GivenArgs,
}

pub fn run(args: &Args, terminal: &Terminal) -> anyhow::Result<u8> {
    let arguments = json_argument(&args.args).context("--args")?;
    logging::start("off", logging::Form::text());
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(1)
        .enable_all()
        .build()?;
    runtime.block_on(run_one(args, terminal, arguments))
}

/// The outcome of a call.
enum Outcome {
    /// Nothing was sent.
    HeldBack,
    Answered(Data),
    Failed(WorkflowError),
}

async fn run_one(args: &Args, terminal: &Terminal, given: Data) -> anyhow::Result<u8> {
    let mut loader = loader_with(&args.allow_host, args.functions.settings()?, args.timeout)?;
    loader.given = args.given.resources()?;
    loader.secrets = secrets(&args.secret)?;
    let Loaded {
        mut deployment,
        functions,
        ..
    } = match load(&loader, &args.file, terminal.colours())? {
        Ok(loaded) => loaded,
        Err(why) => {
            terminal.message(&why);
            return Ok(2);
        }
    };
    let function = find(&deployment.workflow, &args.function)?;
    if args.selection_set.is_some() && function.kind != FunctionKind::Graphql {
        bail!(
            "'--selection-set' is only for functions of type 'graphql', but '{}' is of type '{}'",
            function.name,
            function.kind.as_str()
        );
    }
    if args.timeout.is_some() {
        // The given time replaces the definition's timeouts.
        for action in &mut deployment.workflow.actions {
            action.timeout = None;
        }
    }
    let id = Definition::id_of(&deployment.workflow);
    if let Err(problems) = loader.prepare(&id, &deployment.workflow, functions) {
        let lines: Vec<String> = problems.iter().map(ToString::to_string).collect();
        bail!("{}", lines.join("\n"));
    }
    let has_expressions = given.to_string().contains("${");
    let arguments = match described_by(&deployment.workflow, &function) {
        Some(template) => {
            let workflow = &deployment.workflow;
            described(&loader, workflow, &function.name, template, &given).await?
        }
        None => given,
    };
    if has_expressions {
        terminal
            .message("note: expressions in '--args' are not evaluated: they are sent as they are");
    }
    let (auth, secrets) = credentials(&loader, &deployment.workflow, &function).await?;
    let request = CallRequest {
        definition: id,
        function: function.clone(),
        scope: ScopeRef::root(InstanceId::new("swirl-call")),
        arguments,
        selection_set: args.selection_set.clone(),
        key: key()?,
        at: swirl_embedded::SystemClock.now(),
        auth,
        secrets: secrets.clone(),
        trace: None,
        last_exchange: LastExchange::default(),
        stored: Stored::default(),
        consumes: None,
    };
    let watch = match args.dry_run {
        true => Watch::holding(),
        false => Watch::new(),
    };
    let (last_exchange, begun) = (request.last_exchange.clone(), Instant::now());
    let stored = request.stored.clone();
    let ended = watch.over(loader.caller.call(request)).await;
    // No other process will receive the message.
    stored.notify().await;
    let took = begun.elapsed();
    let secrets = watch.with_tokens(&secrets);
    let outcome = match ended {
        None => Outcome::HeldBack,
        Some(Ok(answer)) => Outcome::Answered(secrets.data(answer)),
        Some(Err(mut error)) => {
            secrets.error(&mut error);
            Outcome::Failed(error)
        }
    };
    let shown = show::Shown {
        function: &function,
        requests: watch.sent(&secrets),
        exchange: last_exchange.get(),
        outcome,
        took,
        dry: args.dry_run,
    };
    show::show(&shown, terminal)
}

fn find(workflow: &Workflow, name: &str) -> anyhow::Result<Arc<Function>> {
    let names = || workflow.functions.iter().map(|function| &*function.name);
    let found = workflow.functions.iter().find(|known| &*known.name == name);
    let Some(function) = found else {
        let known: Vec<&str> = names().collect();
        let hint = match (did_you_mean(name, names()), &known[..]) {
            (Some(best), _) => format!("did you mean '{best}'?"),
            (None, []) => "it defines none".to_owned(),
            (None, known) => format!("it has {}", known.join(", ")),
        };
        bail!("the definition has no function '{name}': {hint}");
    };
    if function.kind == FunctionKind::Expression {
        bail!(
            "the function '{name}' is an expression: it is evaluated by the runtime, and calls no service"
        );
    }
    Ok(Arc::new(function.clone()))
}

/// The request as the task itself describes it.
fn described_by<'w>(workflow: &'w Workflow, function: &Function) -> Option<&'w Template> {
    if function.kind != FunctionKind::HttpCall || function.place.is_empty() {
        return None;
    }
    workflow
        .actions
        .iter()
        .find_map(|action| match &action.kind {
            ActionKind::Call(call) if workflow[call.function].place == function.place => {
                call.arguments.as_ref()
            }
            _ => None,
        })
}

async fn described(
    loader: &Loader,
    workflow: &Workflow,
    name: &str,
    template: &Template,
    input: &Data,
) -> anyhow::Result<Data> {
    let definition = compiled(workflow)?;
    let env = env(loader.secrets.of(workflow).await);
    arguments_without_instance(&definition, template, input, &env).map_err(|error| {
        anyhow!(
            "the request of '{name}' cannot be built: pass the task's input with '--args': {error}"
        )
    })
}

fn compiled(workflow: &Workflow) -> anyhow::Result<Arc<Definition>> {
    Definition::compile(workflow.clone()).map_err(|problems| {
        let lines: Vec<String> = problems.iter().map(ToString::to_string).collect();
        anyhow!("{}", lines.join("\n"))
    })
}

fn env(secrets: Data) -> Env {
    Env {
        now: swirl_embedded::SystemClock.now(),
        secrets,
        ..Env::default()
    }
}

/// The function's credentials, and the texts that are removed from all output: the secrets that the definition may use,
/// and the texts of its credentials.
async fn credentials(
    loader: &Loader,
    workflow: &Workflow,
    function: &Function,
) -> anyhow::Result<(Option<CallAuth>, Arc<Redactor>)> {
    let secrets = loader.secrets.of(workflow).await;
    let own = Redactor::of(&secrets);
    let Some(id) = function.auth else {
        return Ok((None, Arc::new(own)));
    };
    let definition = compiled(workflow)?;
    let env = env(secrets);
    let auth = auth_without_instance(&definition, id, &env)
        .map_err(|error| anyhow!("the credentials of '{}': {error}", function.name))?;
    let literal = [
        "password",
        "token",
        "clientSecret",
        "clientAssertion",
        "subjectToken",
        "actorToken",
    ];
    let literal = literal.iter().filter_map(|name| {
        let value = auth.properties.get(name)?;
        value.as_str().map(str::to_owned)
    });
    let all: Vec<String> = own.expose().iter().cloned().chain(literal).collect();
    let auth = CallAuth {
        name: auth.name,
        scheme: auth.scheme,
        properties: auth.properties,
    };
    Ok((Some(auth), Arc::new(Redactor::new(all))))
}

/// A key for only this call.
fn key() -> anyhow::Result<String> {
    let number = getrandom::u64()
        .map_err(|error| anyhow!("the system provides no random numbers: {error}"))?;
    Ok(format!("swirl-call-{number:016x}"))
}
