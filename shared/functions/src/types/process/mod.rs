//! Processes that a task runs: shell commands, scripts and containers (DSL 1.0, "Run").
//!
//! They are off unless the operator allows their kind ([why](../../../../../docs/adr/0031-processes.md)). A process gets
//! an empty folder, a clean environment and bounded output, and ends with its call (`folders.rs`).

mod arguments;
mod child;
mod container;
mod folders;
mod job;
mod outcome;
mod session;
mod settings;

use async_trait::async_trait;
use swirl_model::Data;
use swirl_model::workflow::Function;
use swirl_ports::CallRequest;
use tokio::sync::Semaphore;

use super::service::in_time;
use super::{Clients, CompileResult, Compiled, CompiledFunction, Context, Documents, FunctionType};
use crate::CallError;
use crate::problem::Unusable;
use crate::watch::{self, Content, Sending};
use folders::Folders;
pub use outcome::simulated;
pub(crate) use session::{Read, Session};
pub use settings::{ProcessKind, Processes, ProcessesError};

pub(crate) const TYPE: FunctionType = FunctionType {
    word: "process",
    document: |_| None,
    compile,
};

/// The maximum number of processes that run at once. Further calls queue, which counts towards their time limit.
const PROCESSES_MAX: usize = 64;

fn compile(functions: &[&Function], documents: &Documents<'_>) -> Vec<CompileResult> {
    let each = functions.iter();
    each.map(|function| {
        let word = function.operation.as_str();
        let kind =
            ProcessKind::parse(word).ok_or_else(|| format!("`{word}` is not a kind of process"))?;
        if !documents.settings.processes.allows(kind) {
            return Err(Unusable::from(format!(
                "it runs a process of the kind `{word}`, which the operator doesn't allow: \
                 `functions.processes` (or `--process {word}`)"
            )));
        }
        Ok(Box::new(Process { kind }) as Compiled)
    })
    .collect()
}

struct Process {
    kind: ProcessKind,
}

#[async_trait]
impl CompiledFunction for Process {
    async fn call(
        &self,
        clients: &Clients,
        request: &CallRequest,
        context: &Context<'_>,
    ) -> Result<Data, CallError> {
        let caller = &clients.processes;
        let what = format!("the {} of `{}`", self.kind.as_str(), request.function.name);
        let run = async {
            // The semaphore is never closed, and if it were, continuing would do no harm.
            let _place = caller.places.acquire().await.ok();
            let job = job::Job::of(self.kind, request, &caller.settings, &caller.folders)?;
            watch::sending(|| Sending {
                protocol: "process",
                target: job.shown(),
                headers: Vec::new(),
                body: Content::Bytes(job.stdin.clone().unwrap_or_default()),
            })
            .await;
            let ended = job.run(caller.output_bytes_max, &what).await?;
            outcome::output(&request.arguments, &ended, request.secrets.expose())
        };
        let result = in_time(context.timeout, &what, run).await;
        result.map_err(outcome::in_words)
    }
}

/// Runs processes, a limited number at once.
#[derive(Debug)]
pub(crate) struct ProcessCaller {
    settings: Processes,
    folders: Folders,
    places: Semaphore,
    output_bytes_max: usize,
}

impl ProcessCaller {
    /// `output_bytes_max`: the limit for standard output and for standard error.
    pub(crate) fn new(settings: Processes, output_bytes_max: usize) -> ProcessCaller {
        if settings.allow_any() {
            std::thread::spawn(|| Folders::sweep(&std::env::temp_dir()));
        }
        ProcessCaller {
            settings,
            folders: Folders::default(),
            places: Semaphore::new(PROCESSES_MAX),
            output_bytes_max,
        }
    }
}
