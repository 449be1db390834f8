//! The variables of expressions in tasks (DSL 1.0, "Runtime Expression Arguments").

use swirl_model::Data;
use swirl_model::instance::Header;
use swirl_model::scope::{Scope, TaskRun};
use swirl_model::time::Timestamp;
use swirl_model::workflow::StateId;

use crate::definition::Definition;
use crate::scope::env::Env;

/// What the variables show, at the place of the expression.
#[derive(Clone, Copy, Default)]
pub(crate) struct TaskView<'a> {
    pub context: Option<&'a Data>,
    /// The current data: the task's input, until the task has an output.
    pub data: Option<&'a Data>,
    pub state: Option<StateId>,
    pub run: Option<&'a TaskRun>,
    /// The task's output before `output.as`.
    pub raw_output: Option<&'a Data>,
    /// The task's output, for `export.as`.
    pub output: Option<&'a Data>,
    /// `$task` in an extension: the extended task, how it runs, and its raw output.
    pub extended: Option<(StateId, &'a TaskRun, Option<&'a Data>)>,
}

impl<'a> TaskView<'a> {
    pub fn of(scope: &'a Scope) -> TaskView<'a> {
        TaskView {
            context: scope.context.as_ref(),
            data: Some(&scope.data),
            state: scope.state(),
            run: scope
                .position()
                .and_then(|position| position.task.as_deref()),
            extended: scope.extended(),
            ..TaskView::default()
        }
    }

    /// The value of a variable.
    pub fn variable(&self, name: &str, def: &Definition, header: &Header, env: &Env) -> Data {
        match name {
            "context" => self.context.cloned().unwrap_or_else(Data::object),
            "input" => {
                let kept = self.run.and_then(|run| run.input.as_ref());
                kept.or(self.data).cloned().unwrap_or_default()
            }
            "output" => self.output.cloned().unwrap_or_default(),
            "secrets" => env.secrets.clone(),
            "task" => self.task(def),
            "workflow" => workflow(def, header),
            "runtime" => {
                let mut runtime = Data::object();
                runtime.set("name", Data::string("swirl"));
                runtime.set("version", Data::string(env!("CARGO_PKG_VERSION")));
                runtime.set("metadata", Data::object());
                runtime
            }
            _ => Data::NULL,
        }
    }

    fn task(&self, def: &Definition) -> Data {
        let (id, run, raw_output) = match self.extended {
            Some((id, run, output)) => (Some(id), Some(run), output),
            None => (self.state, self.run, self.raw_output),
        };
        let mut shown = Data::object();
        let Some(state) = id.map(|id| &def.workflow[id]) else {
            return shown;
        };
        shown.set("name", Data::string(&*state.name));
        let task = state.task.as_ref();
        let place = task.and_then(|task| task.reference.as_deref());
        let place = place.unwrap_or(&state.pointer);
        shown.set("reference", Data::string(place));
        if let Some(task) = task {
            shown.set("definition", task.definition.clone());
        }
        let raw = run.and_then(|run| run.raw.as_ref());
        let raw = raw.or(self.data).cloned();
        shown.set("input", raw.unwrap_or_default());
        if let Some(output) = raw_output {
            shown.set("output", output.clone());
        }
        if let Some(run) = run {
            shown.set("startedAt", date_time(run.started_at));
        }
        shown
    }
}

fn workflow(def: &Definition, header: &Header) -> Data {
    let mut shown = Data::object();
    shown.set("id", Data::string(header.id.as_str()));
    if let Some(tasks) = &def.workflow.tasks {
        shown.set("definition", tasks.document.clone());
    }
    shown.set("input", header.input.clone());
    shown.set("startedAt", date_time(header.started_at));
    shown
}

/// An instant as the language describes it.
fn date_time(at: Timestamp) -> Data {
    let mut epoch = Data::object();
    epoch.set("seconds", Data::int(at.0.div_euclid(1000)));
    epoch.set("milliseconds", Data::int(at.0));
    let mut shown = Data::object();
    // To the second or to the millisecond, nothing in between.
    let text = match at.0 % 1000 {
        0 => at.to_string(),
        _ => format!("{at:.3}"),
    };
    shown.set("iso8601", Data::string(text));
    shown.set("epoch", epoch);
    shown
}
