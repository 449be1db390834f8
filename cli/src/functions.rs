//! The operator's settings for function types: flags shared by all commands that call functions.

use std::path::PathBuf;

use anyhow::{Context, anyhow, bail};
use swirl_functions::Settings;
use swirl_functions::types::custom::Connectors;
use swirl_functions::types::rpc::Servers;
use swirl_spec::resource::FUNCTIONS_URI;
use swirl_spec::source::{self, Limits};

/// Further connectors and servers, separated by commas. The names are the same as for the settings of the processes.
const CONNECTORS: &str = "SWIRL_FUNCTIONS_CONNECTORS";
const RPC_SERVERS: &str = "SWIRL_FUNCTIONS_RPC_SERVERS";
const CONNECTOR_ENVIRONMENT: &str = "SWIRL_FUNCTIONS_CONNECTOR_ENVIRONMENT";

#[derive(Debug, Clone, Default, clap::Args)]
pub struct FunctionArgs {
    /// A connector for a custom function type: NAME=http://host/path, NAME=nats://host:port/subject or
    /// NAME=exec:PROGRAM ARGUMENTS, where NAME is the type; may be given again. Others are taken from
    /// SWIRL_FUNCTIONS_CONNECTORS, separated by commas.
    #[arg(long, value_name = "NAME=TARGET")]
    connector: Vec<String>,

    /// The address of a gRPC service, as SERVICE=grpc://host:port (grpcs for TLS); takes precedence over
    /// the definition's; may be given again. Others are taken from SWIRL_FUNCTIONS_RPC_SERVERS,
    /// separated by commas.
    #[arg(long, value_name = "SERVICE=ADDRESS")]
    rpc_server: Vec<String>,
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
        let content = std::fs::read_to_string(file)
            .with_context(|| format!("--functions: {} cannot be read", file.display()))?;
        let parsed = source::parse(content.as_bytes(), &Limits::default());
        let document = parsed.map_err(|finding| {
            let (line, message) = (finding.line, finding.message);
            anyhow!("--functions: {}:{line}: {message}", file.display())
        })?;
        let list = document.get("functions").unwrap_or(&document);
        if list.items().is_none() {
            bail!(
                "--functions: {} must be a list of functions",
                file.display()
            );
        }
        Ok(vec![(FUNCTIONS_URI.to_owned(), content)])
    }
}

impl FunctionArgs {
    /// The command line takes precedence over the environment.
    pub fn settings(&self) -> anyhow::Result<Settings> {
        let connectors = with_environment(&self.connector, CONNECTORS);
        let rpc_servers = with_environment(&self.rpc_server, RPC_SERVERS);
        Ok(Settings {
            connectors: Connectors::parse(&connectors).context("--connector")?,
            rpc_servers: Servers::parse(&rpc_servers).context("--rpc-server")?,
            connector_environment: with_environment(&[], CONNECTOR_ENVIRONMENT),
        })
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
