//! The operator's settings for function types: flags shared by all commands that call functions.

use std::path::{Path, PathBuf};

use anyhow::Context;
use swirl_deployment::{functions_file, functions_in};
use swirl_functions::Settings;
use swirl_functions::servers::Servers;
use swirl_functions::types::custom::Connectors;
use swirl_functions::types::process::Processes;
use swirl_spec::resource::{FOLDER_FUNCTIONS_URI, FUNCTIONS_URI};

/// Further connectors and servers, separated by commas. The names are the same as for the settings of the processes.
const CONNECTORS: &str = "SWIRL_FUNCTIONS_CONNECTORS";
const SERVERS: &str = "SWIRL_FUNCTIONS_SERVERS";
const RPC_SERVERS: &str = "SWIRL_FUNCTIONS_RPC_SERVERS";
const CONNECTOR_ENVIRONMENT: &str = "SWIRL_FUNCTIONS_CONNECTOR_ENVIRONMENT";
const PROCESSES: &str = "SWIRL_FUNCTIONS_PROCESSES";
const CATALOG: &str = "SWIRL_FUNCTIONS_CATALOG";

#[derive(Debug, Clone, Default, clap::Args)]
pub struct FunctionArgs {
    /// A connector for a custom function type: NAME=http://host/path, NAME=nats://host:port/subject or
    /// NAME=exec:PROGRAM ARGUMENTS, where NAME is the type; may be repeated. Others are taken from
    /// SWIRL_FUNCTIONS_CONNECTORS, separated by commas.
    #[arg(long, value_name = "NAME=TARGET")]
    connector: Vec<String>,

    /// The address of a service, as NAME=ADDRESS, where NAME is a function, the document that describes
    /// it, a gRPC service or an origin such as https://host; takes precedence over the definition's; may be repeated. Others are taken from SWIRL_FUNCTIONS_SERVERS, separated by commas.
    #[arg(long, value_name = "NAME=ADDRESS")]
    function_server: Vec<String>,

    /// The older name of --function-server, for gRPC services.
    #[arg(long, value_name = "SERVICE=ADDRESS", hide = true)]
    rpc_server: Vec<String>,

    /// A kind of process that definitions of DSL 1.0 may run: container, mcp, script or shell; may be repeated. Others
    /// are taken from SWIRL_FUNCTIONS_PROCESSES, separated by commas.
    #[arg(long, value_name = "KIND")]
    process: Vec<String>,

    /// The folder of the default catalog of functions of DSL 1.0.
    #[arg(long, value_name = "FOLDER", env = CATALOG)]
    catalog: Option<PathBuf>,
}

/// Functions that documents of older editions refer to only by name.
#[derive(Debug, Clone, Default, clap::Args)]
pub struct GivenArgs {
    /// Functions for documents that only name functions, without their operations (editions before
    /// 0.5): a list of functions as in edition 0.8, YAML or JSON. Those that a document uses are stored
    /// with it.
    #[arg(id = "functions", long = "functions", value_name = "FILE")]
    file: Option<PathBuf>,
}

impl GivenArgs {
    /// The functions as a resource of the definitions: its URI and its content.
    pub fn resources(&self) -> anyhow::Result<Vec<(String, String)>> {
        let Some(file) = &self.file else {
            return Ok(Vec::new());
        };
        let given = functions_file(file, FUNCTIONS_URI).context("--functions")?;
        Ok(vec![given])
    }
}

/// The functions in the folder of a deployment, for all definitions below it.
pub fn of_folder(folder: &Path) -> anyhow::Result<Vec<(String, String)>> {
    let file = functions_in(folder);
    let given = file.map(|file| functions_file(&file, FOLDER_FUNCTIONS_URI));
    Ok(given.transpose()?.into_iter().collect())
}

impl FunctionArgs {
    /// The command line takes precedence over the environment.
    pub fn settings(&self) -> anyhow::Result<Settings> {
        let connectors = with_environment(&self.connector, CONNECTORS);
        let servers = with_environment(&self.function_server, SERVERS);
        let servers = [servers, with_environment(&self.rpc_server, RPC_SERVERS)].concat();
        Ok(Settings {
            connectors: Connectors::parse(&connectors).context("--connector")?,
            servers: Servers::parse(&servers).context("--function-server")?,
            connector_environment: with_environment(&[], CONNECTOR_ENVIRONMENT),
            processes: self.processes()?,
            catalog: self.catalog.clone(),
        })
    }
}

impl FunctionArgs {
    /// The programs are named as for the settings of the processes.
    fn processes(&self) -> anyhow::Result<Processes> {
        let allowed = with_environment(&self.process, PROCESSES);
        let mut processes = Processes::default()
            .allowing(&allowed)
            .context("--process")?;
        for (variable, command) in [
            ("SWIRL_FUNCTIONS_JAVASCRIPT", &mut processes.javascript),
            ("SWIRL_FUNCTIONS_PYTHON", &mut processes.python),
            ("SWIRL_FUNCTIONS_CONTAINERS", &mut processes.containers),
        ] {
            if let Ok(text) = std::env::var(variable) {
                *command = Processes::command(&text).context(variable)?;
            }
        }
        Ok(processes)
    }
}

fn with_environment(given: &[String], variable: &str) -> Vec<String> {
    let others = std::env::var(variable).unwrap_or_default();
    let others = others.split(',').map(str::trim);
    let others = others.filter(|entry| !entry.is_empty());
    given
        .iter()
        .cloned()
        .chain(others.map(str::to_owned))
        .collect()
}
