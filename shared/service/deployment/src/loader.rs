//! Reads definitions and everything that they refer to, and makes their functions callable.

use std::sync::Arc;

use swirl_documents::diagnostic::{Diagnostic, Diagnostics};
use swirl_documents::source::Node;
use swirl_functions::http::{Http, HttpConfig, HttpError};
use swirl_functions::resources::{Fetcher, Hosts, HttpOptions, HttpResources, Wanted};
use swirl_functions::secrets::Chain;
use swirl_functions::types::Checks;
use swirl_functions::{Caller, CompiledFunctions, Problem, Settings};
use swirl_model::ids::DefinitionId;
use swirl_model::workflow::Workflow;
use swirl_ports::{Clock, DefinitionRecord, Secrets};
use swirl_runtime::Lower;
use swirl_service::Deployment;
use swirl_spec::resource::{FileResources, MapResources};
use swirl_spec::{Options, Reading};

use crate::fetch::{self, Missing};
use crate::findings::Locations;

/// The largest file that a definition may refer to, in bytes.
pub const RESOURCE_BYTES_MAX: usize = 4 << 20;

/// How often a definition is read again because a document has come that needs credentials.
const GUARDED_ROUNDS_MAX: usize = 32;

/// The configuration for reading definitions and calling functions.
pub struct Loader {
    fetcher: HttpResources,
    options: Options,
    clock: Arc<dyn Clock>,
    pub caller: Arc<Caller>,
    /// Resources that every definition finds by URI, unless it has its own.
    pub given: Vec<(String, String)>,
    /// For the credentials that fetching documents requires.
    pub secrets: Arc<dyn Secrets>,
}

/// A document that can be deployed.
#[derive(Debug)]
pub struct Loaded {
    pub deployment: Deployment,
    pub warnings: Vec<Diagnostic>,
    /// Its functions; those that cannot be called are problems of [`Loader::prepare`].
    pub functions: CompiledFunctions,
}

/// The reason why a document cannot be deployed.
#[derive(Debug)]
pub enum Refusal {
    /// Errors in the document itself, so that it has no workflow.
    Document(Box<Reading>),
    /// Unavailable documents of functions, or calls that can't succeed according to the documents.
    Functions(Vec<Diagnostic>),
}

impl Loader {
    /// `hosts`: the hosts besides this machine from which documents may be fetched. `http`: the limits of calls.
    /// `settings`: the operator's settings for function types. `clock`: the clock used while reading.
    ///
    /// # Errors
    /// The TLS library refuses its configuration.
    pub fn new(
        hosts: Hosts,
        http: HttpConfig,
        settings: Settings,
        clock: Arc<dyn Clock>,
    ) -> Result<Loader, HttpError> {
        let options = HttpOptions {
            hosts,
            egress: http.egress.clone(),
            ..HttpOptions::default()
        };
        let reading = Options {
            custom_types: Some(settings.connectors.names().map(str::to_owned).collect()),
            ..Options::default()
        };
        Ok(Loader {
            options: reading,
            clock,
            fetcher: HttpResources::new(options)?,
            caller: Arc::new(Caller::with_settings(Http::new(http)?, settings)),
            given: Vec::new(),
            secrets: Arc::new(Chain::new()),
        })
    }

    /// The options for reading a definition that is deployed now.
    fn options_now(&self) -> Options {
        Options {
            now: Some(self.clock.now()),
            ..self.options.clone()
        }
    }

    /// Converts stored definitions back to workflows, and makes their functions callable.
    pub fn lower(&self) -> Lower {
        let caller = self.caller.clone();
        Box::new(move |record| lower(&caller, record))
    }

    /// The documents that describe a definition's functions, the answers of its services, and the unavailable
    /// documents.
    pub fn documents(
        &self,
        workflow: &Workflow,
        files: FileResources,
        given: &[(String, String)],
    ) -> (Vec<(String, String)>, Vec<Missing>) {
        let mut fetcher = self.fetcher(Some(files), given);
        let mut found = Vec::new();
        let mut missing = self.fetch(workflow, &mut fetcher, &mut found);
        let (answered, unanswered) = self.ask(workflow, &fetcher);
        found.extend(answered);
        missing.extend(unanswered);
        (found, missing)
    }

    /// Reads a document once, together with all documents that it refers to. `given` is searched first; `files` has
    /// further documents that it may refer to. Calls are checked against the documents that describe them.
    ///
    /// # Errors
    /// The reason why it cannot be deployed.
    pub fn read(
        &self,
        name: &str,
        document: &[u8],
        files: Option<FileResources>,
        given: &[(String, String)],
    ) -> Result<Loaded, Refusal> {
        self.read_while(name, document, files, given, &Wanted::default())
    }

    /// As [`Loader::read`]. Fetching stops when the result is no longer awaited.
    ///
    /// # Errors
    /// As for [`Loader::read`].
    pub fn read_while(
        &self,
        name: &str,
        document: &[u8],
        files: Option<FileResources>,
        given: &[(String, String)],
        wanted: &Wanted,
    ) -> Result<Loaded, Refusal> {
        let mut all = self.given.clone();
        all.retain(|(uri, _)| given.iter().all(|(known, _)| known != uri));
        all.extend_from_slice(given);
        let mut fetcher = self.fetcher(files, &all);
        fetcher.http = fetcher.http.while_wanted(wanted.clone());
        let mut reading = swirl_spec::read(document, &fetcher, &self.options_now());
        for _ in 0..GUARDED_ROUNDS_MAX {
            if !self.unlock(&mut reading, &mut fetcher) {
                break;
            }
            reading = swirl_spec::read(document, &fetcher, &self.options_now());
        }
        let (workflow, root) = match (reading.workflow.take(), reading.root.take()) {
            (Some(workflow), Some(root)) => (workflow, root),
            (_, root) => {
                if let (Some(partial), Some(root)) = (reading.partial.take(), &root) {
                    let known = &reading.diagnostics;
                    let found = self.also_wrong(&partial, root, &mut fetcher, known);
                    reading.diagnostics.extend(found);
                }
                reading.root = root;
                return Err(Refusal::Document(Box::new(reading)));
            }
        };
        let locations = Locations::new(&root);
        let used = reading.resources_used.into_iter();
        let mut resources: Vec<(String, String)> = used
            .map(|(uri, content)| (uri, String::from_utf8_lossy(&content).into_owned()))
            .collect();
        let missing = self.fetch(&workflow, &mut fetcher, &mut resources);
        if !missing.is_empty() {
            let found = locations.missing(&workflow, &missing);
            return Err(Refusal::Functions(found));
        }
        // A service's answer is only used now and isn't stored, so the same document stays the same.
        let (answered, unanswered) = self.ask(&workflow, &fetcher);
        for Missing { reason, .. } in unanswered {
            tracing::info!("{name}: calls of a function are not checked: {reason}");
        }
        let own = resources.len();
        resources.extend(answered);
        let (functions, problems) = self.caller.check(&workflow, &resources);
        resources.truncate(own);
        if !problems.is_empty() {
            let mut found = locations.calls(&problems);
            let functions = functions.problems(&workflow);
            found.extend(functions.iter().map(|problem| locations.function(problem)));
            return Err(Refusal::Functions(found));
        }
        let unaddressed = locations.unaddressed(&functions.unaddressed(&workflow));
        reading.diagnostics.extend(unaddressed);
        let deployment = Deployment {
            name: name.to_owned(),
            document: String::from_utf8_lossy(document).into_owned(),
            resources,
            workflow,
        };
        Ok(Loaded {
            deployment,
            warnings: reading.diagnostics.into_vec(),
            functions,
        })
    }

    /// Fetches the documents that need credentials. Returns whether it has some, so that the document can be read again.
    fn unlock(&self, reading: &mut Reading, fetcher: &mut Fetcher) -> bool {
        let partial = reading.partial.as_deref();
        let Some(workflow) = reading.workflow.as_ref().or(partial) else {
            return false;
        };
        let guarded = std::mem::take(&mut reading.guarded);
        let (secrets, now) = (&self.secrets, self.clock.now());
        let found = fetch::unlock(workflow, &guarded, fetcher, secrets, now);
        let is_new = !found.is_empty();
        for (uri, content) in found {
            fetcher.given.insert(uri, content);
        }
        is_new
    }

    /// What the documents of its functions reject in a definition that is refused anyway, so that all findings are
    /// reported together (docs/language.md#decision-2).
    fn also_wrong(
        &self,
        partial: &Workflow,
        root: &Node,
        fetcher: &mut Fetcher,
        known: &Diagnostics,
    ) -> Vec<Diagnostic> {
        let locations = Locations::new(root);
        let mut resources = Vec::new();
        let missing = self.fetch(partial, fetcher, &mut resources);
        let checks = Checks::new(partial, &resources, self.caller.settings());
        let mut found = locations.missing(partial, &missing);
        found.extend(locations.checked(partial, &checks, &missing, known));
        found
    }

    /// Makes the functions of a definition callable. This must happen before its first instance exists.
    ///
    /// # Errors
    /// The functions that cannot be called.
    pub fn prepare(
        &self,
        id: &DefinitionId,
        workflow: &Workflow,
        functions: CompiledFunctions,
    ) -> Result<(), Vec<Problem>> {
        self.caller.keep(id, workflow, functions)
    }

    fn fetcher(&self, files: Option<FileResources>, given: &[(String, String)]) -> Fetcher {
        Fetcher {
            given: map(given),
            http: self.fetcher.clone().for_a_definition(),
            files,
            catalog: self
                .caller
                .settings()
                .catalog
                .as_ref()
                .map(|folder| FileResources::new(folder, RESOURCE_BYTES_MAX)),
        }
    }

    fn ask(&self, workflow: &Workflow, fetcher: &Fetcher) -> (Vec<(String, String)>, Vec<Missing>) {
        fetch::ask(workflow, fetcher, &self.secrets, self.clock.now())
    }

    fn fetch(
        &self,
        workflow: &Workflow,
        fetcher: &mut Fetcher,
        found: &mut Vec<(String, String)>,
    ) -> Vec<Missing> {
        let (caller, secrets) = (&self.caller, &self.secrets);
        fetch::fetch(caller, workflow, fetcher, secrets, self.clock.now(), found)
    }
}

/// Documents by URI.
fn map(given: &[(String, String)]) -> MapResources {
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
    let prepared = caller.prepare(&record.id, &workflow, &record.resources);
    prepared.map_err(|problems| {
        let lines: Vec<String> = problems.iter().map(ToString::to_string).collect();
        lines.join("\n")
    })?;
    Ok(workflow)
}
