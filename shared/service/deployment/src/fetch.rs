//! Fetches the documents that describe the services of functions, and the documents that those refer to.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::{Duration, Instant};

use futures::executor::block_on;
use swirl_engine::{Definition, Env, auth_without_instance};
use swirl_functions::Settings;
use swirl_functions::auth::Auth;
use swirl_functions::resources::Fetcher;
use swirl_functions::types::{self, Telling};
use swirl_functions::{Caller, Gather, Needed};
use swirl_model::time::Timestamp;
use swirl_model::workflow::{AuthId, Flow, State, Workflow};
use swirl_model::{Data, WorkflowError};
use swirl_ports::Secrets;
use swirl_spec::resource::{Resources, scheme};

/// After this time, no further service is queried for its description.
const ANSWERS_MAX: Duration = Duration::from_secs(10);

/// An unavailable document.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Missing {
    pub uri: String,
    /// A sentence that includes the document's name.
    pub reason: String,
}

/// Fetches the documents that the functions need and that `resources` lacks, and adds them to it. An unavailable
/// document doesn't affect the others.
pub fn fetch(
    caller: &Caller,
    workflow: &Workflow,
    fetcher: &mut Fetcher,
    secrets: &Arc<dyn Secrets>,
    now: Timestamp,
    resources: &mut Vec<(String, String)>,
) -> Vec<Missing> {
    let mut credentials = Credentials {
        workflow,
        secrets,
        now,
        definition: None,
    };
    gather(caller.gather(workflow), resources, |needed| {
        if let Some(auth) = needed.auth
            && is_http(&needed.uri)
            && fetcher.given.fetch(&needed.uri, None).is_err()
        {
            let auth = credentials.of(auth).map_err(|error| {
                format!(
                    "'{}' is fetched with the auth definition '{}', and {error} (no instance runs \
                     yet: constants and secrets are all there is)",
                    needed.uri, workflow[auth].name
                )
            })?;
            fetcher.http = fetcher.http.clone().with_auth(&needed.uri, auth);
        }
        fetcher
            .fetch(&needed.uri, None)
            .map_err(|error| error.to_string())
    })
}

/// Fetches documents that the reader could not have without credentials, as far as they are there.
pub fn unlock(
    workflow: &Workflow,
    guarded: &[(String, AuthId)],
    fetcher: &Fetcher,
    secrets: &Arc<dyn Secrets>,
    now: Timestamp,
) -> Vec<(String, Vec<u8>)> {
    // Only what the credentials are made of: the rest may be incomplete.
    let workflow = Workflow {
        auth: workflow.auth.clone(),
        expressions: workflow.expressions.clone(),
        secrets: workflow.secrets.clone(),
        constants: workflow.constants.clone(),
        tasks: workflow.tasks.clone(),
        flows: vec![Flow::default()],
        states: vec![State::default()],
        ..Workflow::default()
    };
    let mut credentials = Credentials {
        workflow: &workflow,
        secrets,
        now,
        definition: None,
    };
    let mut found = Vec::new();
    for (uri, auth) in guarded.iter().filter(|(uri, _)| is_http(uri)) {
        match credentials.of(*auth) {
            Ok(own) => {
                let http = fetcher.http.clone().with_auth(uri, own);
                found.extend(http.get(uri).ok().map(|content| (uri.clone(), content)));
            }
            Err(error) => {
                let name = &workflow.auth[auth.0 as usize].name;
                tracing::info!("'{uri}' needs the authentication '{name}': {error}");
            }
        }
    }
    found
}

/// The same, but with only the documents in `from`.
pub fn find(
    workflow: &Workflow,
    from: &dyn Resources,
    resources: &mut Vec<(String, String)>,
) -> Vec<Missing> {
    let settings = Settings::default();
    let missing = gather(Gather::new(workflow, &settings), resources, |needed| {
        from.fetch(&needed.uri, None)
            .map_err(|error| error.to_string())
    });
    for Telling { uri, .. } in types::telling(workflow) {
        if let Ok(Ok(answer)) = from.fetch(&uri, None).map(|answer| text(answer, &uri)) {
            resources.push((uri, answer));
        }
    }
    missing
}

/// Queries services that describe themselves, for at most `ANSWERS_MAX` in total. Returns their answers, and the
/// services that didn't answer.
pub fn ask(
    workflow: &Workflow,
    fetcher: &Fetcher,
    secrets: &Arc<dyn Secrets>,
    now: Timestamp,
) -> (Vec<(String, String)>, Vec<Missing>) {
    let mut credentials = Credentials {
        workflow,
        secrets,
        now,
        definition: None,
    };
    let (mut answers, mut missing) = (Vec::new(), Vec::new());
    let begun = Instant::now();
    for Telling {
        uri,
        question,
        auth,
    } in types::telling(workflow)
    {
        let mut ask = || {
            if let Ok(given) = fetcher.given.fetch(&uri, None) {
                return text(given, &uri);
            }
            if begun.elapsed() > ANSWERS_MAX {
                return Err(format!(
                    "`{uri}` wasn't fetched: the services before it took too long"
                ));
            }
            let http = match auth.map(|auth| credentials.of(auth)) {
                None => fetcher.http.clone(),
                Some(Ok(auth)) => fetcher.http.clone().with_auth(&uri, auth),
                // The credentials need an instance's data.
                Some(Err(error)) => return Err(format!("`{uri}` wasn't fetched: {error}")),
            };
            let answer = http.post(&uri, &question);
            text(answer.map_err(|error| error.to_string())?, &uri)
        };
        let result = ask().and_then(|answer| match types::check_answer(&answer) {
            Ok(()) => Ok(answer),
            Err(reason) => Err(format!("`{uri}`: {reason}")),
        });
        match result {
            Ok(answer) => answers.push((uri, answer)),
            Err(reason) => missing.push(Missing { uri, reason }),
        }
    }
    (answers, missing)
}

fn text(content: Vec<u8>, uri: &str) -> Result<String, String> {
    String::from_utf8(content).map_err(|_| format!("'{uri}' is not valid UTF-8 text"))
}

fn gather(
    mut gather: Gather<'_>,
    resources: &mut Vec<(String, String)>,
    mut get: impl FnMut(&Needed) -> Result<Vec<u8>, String>,
) -> Vec<Missing> {
    let mut tried = BTreeSet::new();
    let mut missing = Vec::new();
    loop {
        let mut needed = gather.missing(resources);
        needed.retain(|needed| tried.insert(needed.uri.clone()));
        if needed.is_empty() {
            return missing;
        }
        for needed in needed {
            match get(&needed).and_then(|content| text(content, &needed.uri)) {
                Ok(content) => resources.push((needed.uri, content)),
                Err(reason) => missing.push(Missing {
                    uri: needed.uri,
                    reason,
                }),
            }
        }
    }
}

/// Whether a document is fetched over the network.
pub fn is_http(uri: &str) -> bool {
    scheme(uri).is_some_and(|scheme| {
        scheme.eq_ignore_ascii_case("http") || scheme.eq_ignore_ascii_case("https")
    })
}

struct Credentials<'a> {
    workflow: &'a Workflow,
    secrets: &'a Arc<dyn Secrets>,
    now: Timestamp,
    /// Compiled once, together with its secrets.
    definition: Option<(Arc<Definition>, Data)>,
}

impl Credentials<'_> {
    fn of(&mut self, auth: AuthId) -> Result<Auth, WorkflowError> {
        let (definition, secrets) = match &self.definition {
            Some(known) => known,
            None => {
                let made = self.make()?;
                self.definition.insert(made)
            }
        };
        let env = Env {
            now: self.now,
            secrets: secrets.clone(),
            ..Env::default()
        };
        let auth = auth_without_instance(definition, auth, &env)?;
        Auth::from_properties(auth.scheme, &auth.properties).map_err(|error| (&error).into())
    }

    fn make(&self) -> Result<(Arc<Definition>, Data), WorkflowError> {
        let failed = |message: String| {
            WorkflowError::new(swirl_model::error::names::EXPRESSION_ERROR, message)
        };
        let definition = Definition::compile(self.workflow.clone()).map_err(|problems| {
            let all: Vec<String> = problems.iter().map(ToString::to_string).collect();
            failed(all.join("; "))
        })?;
        // A separate thread, because the caller's thread may belong to an executor and must not block.
        let secrets = std::thread::scope(|scope| {
            let asked = scope.spawn(|| block_on(self.secrets.of(self.workflow)));
            asked.join()
        });
        let secrets = secrets.map_err(|_| failed("the secrets cannot be read".to_owned()))?;
        Ok((definition, secrets))
    }
}
