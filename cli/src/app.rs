//! What commands that run workflows share: definitions from files, with all that they refer to, and
//! the parts of the system put together.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::{Context, anyhow};
use swirl_coordinator::{Deployed, Deployment, Service};
use swirl_embedded::SystemClock;
use swirl_engine::Definition;
use swirl_model::ids::DefinitionId;
use swirl_model::workflow::Workflow;
use swirl_ports::{Clock, DefinitionRecord, Secrets};
use swirl_runtime::Lower;
use swirl_spec::Options;
use swirl_spec::resource::{FileResources, MapResources};
use swirl_worker::Caller;
use swirl_worker::functions::Settings;
use swirl_worker::http::{Http, HttpConfig};
use swirl_worker::resources::{Fetcher, Hosts, HttpOptions, HttpResources};
use swirl_worker::secrets::{Chain, Environment, Fixed};

use crate::commands::validate::{Read, human};
use crate::documents::{self, Missing};

/// The largest file that a definition may refer to, in bytes.
const RESOURCE_BYTES_MAX: usize = 4 << 20;

/// How definitions are read and functions are called.
pub struct App {
    fetcher: HttpResources,
    options: Options,
    pub caller: Arc<Caller>,
    /// Resources that every definition finds by URI, unless it brings its own.
    pub given: Vec<(String, String)>,
    /// For the credentials with which documents are fetched.
    pub secrets: Arc<dyn Secrets>,
}

/// Why a definition is not deployed.
#[derive(Debug, thiserror::Error)]
pub enum DeployError {
    /// The findings, as they are shown to people.
    #[error("{0}")]
    Refused(String),
    /// Calls that can't succeed, by the documents that describe the functions.
    #[error("{}", .0.join("\n"))]
    Arguments(Vec<String>),
    #[error(transparent)]
    Other(#[from] anyhow::Error),
}

impl App {
    /// `hosts`: from which hosts documents may be fetched, beside this machine.
    /// `settings`: what carries out functions, as the operator says.
    pub fn new(hosts: &[String], settings: Settings) -> anyhow::Result<App> {
        App::with_http(hosts, HttpConfig::default(), settings)
    }

    /// `http`: the limits of calls.
    pub fn with_http(
        hosts: &[String],
        http: HttpConfig,
        settings: Settings,
    ) -> anyhow::Result<App> {
        let options = HttpOptions {
            hosts: Hosts::parse(hosts)?,
            ..HttpOptions::default()
        };
        let reading = Options {
            custom_types: Some(settings.connectors.names().map(str::to_owned).collect()),
            ..Options::default()
        };
        Ok(App {
            options: reading,
            fetcher: HttpResources::new(options)?,
            caller: Arc::new(Caller::with_settings(Http::new(http)?, settings)),
            given: Vec::new(),
            secrets: Arc::new(Chain::new()),
        })
    }

    /// Documents of this machine's services are fetched only where `hosts` names them.
    ///
    /// # Errors
    /// As [`App::new`].
    pub fn without_loopback(mut self, hosts: &[String]) -> anyhow::Result<App> {
        let options = HttpOptions {
            hosts: Hosts::parse(hosts)?.without_loopback(),
            ..HttpOptions::default()
        };
        self.fetcher = HttpResources::new(options)?;
        Ok(self)
    }

    /// What reading a definition that is deployed now takes into account.
    pub fn options_now(&self) -> Options {
        Options {
            now: Some(SystemClock.now()),
            ..self.options.clone()
        }
    }

    /// Turns stored definitions into workflows again, and makes their functions callable.
    pub fn lower(&self) -> Lower {
        let caller = self.caller.clone();
        Box::new(move |record| lower(&caller, record))
    }

    /// Reads a definition's file and all that it refers to.
    pub fn load(&self, file: &Path, colour: bool) -> Result<Deployment, DeployError> {
        let document =
            std::fs::read(file).with_context(|| format!("{} cannot be read", file.display()))?;
        let folder = file.parent().unwrap_or(Path::new(""));
        let files = FileResources::new(folder, RESOURCE_BYTES_MAX).anywhere();
        self.read(&document, file, files, &[], colour)
    }

    /// The documents that describe a definition's functions, and those that cannot be had.
    pub fn documents(
        &self,
        workflow: &Workflow,
        files: FileResources,
        given: &[(String, String)],
    ) -> (Vec<(String, String)>, Vec<Missing>) {
        let mut fetcher = Fetcher {
            given: map(given),
            http: self.fetcher.clone(),
            files,
        };
        let mut found = Vec::new();
        let (caller, secrets) = (&self.caller, &self.secrets);
        let missing = documents::fetch(caller, workflow, &mut fetcher, secrets, &mut found);
        (found, missing)
    }

    /// Reads a document. What it refers to is looked for in `given`; `files` are those that it may
    /// refer to beside them.
    pub fn read(
        &self,
        document: &[u8],
        name: &Path,
        files: FileResources,
        given: &[(String, String)],
        colour: bool,
    ) -> Result<Deployment, DeployError> {
        let mut all = self.given.clone();
        all.retain(|(uri, _)| given.iter().all(|(known, _)| known != uri));
        all.extend_from_slice(given);
        let mut fetcher = Fetcher {
            given: map(&all),
            http: self.fetcher.clone(),
            files,
        };
        let reading = swirl_spec::read(document, &fetcher, &self.options_now());
        let text = String::from_utf8_lossy(document).into_owned();
        let mut resources: Vec<(String, String)> = reading
            .resources_used
            .iter()
            .map(|(uri, content)| (uri.clone(), String::from_utf8_lossy(content).into_owned()))
            .collect();
        let shown = Read {
            file: name.to_owned(),
            text: text.clone(),
            reading,
            missing: Vec::new(),
        };
        let Some(workflow) = &shown.reading.workflow else {
            return Err(DeployError::Refused(human(&shown, colour)));
        };
        let missing = documents::fetch(
            &self.caller,
            workflow,
            &mut fetcher,
            &self.secrets,
            &mut resources,
        );
        if !missing.is_empty() {
            let lines: Vec<String> = missing
                .iter()
                .map(|missing| {
                    let reason = &missing.reason;
                    format!("the document of a function cannot be had: {reason}")
                })
                .collect();
            return Err(DeployError::Refused(lines.join("\n")));
        }
        let problems = self.caller.check(workflow, &resources);
        if !problems.is_empty() {
            let lines: Vec<String> = problems.iter().map(ToString::to_string).collect();
            return Err(DeployError::Arguments(lines));
        }
        Ok(Deployment {
            name: name.display().to_string(),
            document: text,
            resources,
            workflow: workflow.clone(),
        })
    }

    /// Deploys; the functions are callable before the first instance can be.
    pub async fn deploy(
        &self,
        service: &Service,
        deployment: Deployment,
    ) -> Result<Deployed, DeployError> {
        let id = Definition::id_of(&deployment.workflow);
        prepare(
            &self.caller,
            &id,
            &deployment.workflow,
            &deployment.resources,
        )
        .map_err(DeployError::Refused)?;
        service
            .deploy(deployment)
            .await
            .map_err(|error| DeployError::Other(anyhow!(error)))
    }
}

fn prepare(
    caller: &Caller,
    id: &DefinitionId,
    workflow: &Workflow,
    resources: &[(String, String)],
) -> Result<(), String> {
    caller.prepare(id, workflow, resources).map_err(|problems| {
        let lines: Vec<String> = problems.iter().map(ToString::to_string).collect();
        lines.join("\n")
    })
}

/// Documents by URI.
pub fn map(given: &[(String, String)]) -> MapResources {
    let mut map = MapResources::default();
    for (uri, content) in given {
        map.insert(uri.clone(), content.clone());
    }
    map
}

fn lower(caller: &Caller, record: &DefinitionRecord) -> Result<Workflow, String> {
    let resources = map(&record.resources);
    let reading = swirl_spec::read(record.document.as_bytes(), &resources, &Options::default());
    let Some(workflow) = reading.workflow else {
        let findings: Vec<String> = reading
            .diagnostics
            .iter()
            .map(ToString::to_string)
            .collect();
        return Err(findings.join("; "));
    };
    prepare(caller, &record.id, &workflow, &record.resources)?;
    Ok(workflow)
}

/// Values given on the command line first, then those of the environment.
pub fn secrets(given: &[String]) -> anyhow::Result<Arc<Chain>> {
    let fixed = Fixed::parse(given)?;
    Ok(Arc::new(Chain::new().then(fixed).then(Environment::new())))
}

/// JSON as it is, `@FILE`, or `-` for stdin.
pub fn json_argument(argument: &str) -> anyhow::Result<swirl_model::Data> {
    let text = match argument.strip_prefix('@') {
        Some(file) => {
            std::fs::read(PathBuf::from(file)).with_context(|| format!("{file} cannot be read"))?
        }
        None if argument == "-" => {
            let mut text = Vec::new();
            std::io::Read::read_to_end(&mut std::io::stdin().lock(), &mut text)?;
            text
        }
        None => argument.as_bytes().to_vec(),
    };
    swirl_model::Data::parse(&text).with_context(|| format!("'{argument}' is no JSON"))
}
