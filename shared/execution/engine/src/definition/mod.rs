//! A workflow with its expressions, paths and schemas compiled.

pub(crate) mod fits;
pub(crate) mod flow;
pub(crate) mod pure;
pub(crate) mod schema;
pub(crate) mod sizes;

use std::collections::HashMap;
use std::sync::Arc;

use swirl_expr::{Limits, PATTERNS_MAX, PathExpr, Pattern, Program};
use swirl_model::Data;
use swirl_model::ids::DefinitionId;
use swirl_model::schedule::Calendar;
use swirl_model::time::{IsoDuration, Timestamp};
use swirl_model::workflow::{
    Comparison, ExprSource, Language, ListId, Period, StartOn, State, StateId, StateKind,
    TASK_VARIABLES, Test, Version, Workflow,
};

use crate::definition::flow::owners;
use crate::definition::pure::{ends_in_first_turn, is_pure, needs_no_worker, waits_in_first_turn};
use crate::definition::schema::{Schemas, Validator};
use crate::definition::sizes::Sizes;

/// A runnable definition. It is compiled once, at deployment or when it is loaded.
#[derive(Debug)]
pub struct Definition {
    pub id: DefinitionId,
    pub workflow: Workflow,
    pub(crate) programs: Vec<Program>,
    pub(crate) paths: Vec<PathExpr>,
    pub(crate) input_schema: Option<Validator>,
    pub(crate) output_schema: Option<Validator>,
    /// The schemas by state, if the edition has schemas for a state's data.
    pub(crate) state_schemas: Vec<(Option<Validator>, Option<Validator>)>,
    /// The schemas of the context after each state.
    pub(crate) context_schemas: Vec<Option<Validator>>,
    /// By state that listens: the schemas of the output for each event, and of the context after it.
    pub(crate) each_schemas: HashMap<StateId, (Option<Validator>, Option<Validator>)>,
    pub(crate) uses: Uses,
    pub(crate) calendar: Option<Calendar>,
    /// The state that each list of actions belongs to.
    pub(crate) owners: Vec<Option<StateId>>,
    /// Windows without a start of their own count from this instant.
    pub(crate) deployed_at: Option<Timestamp>,
    /// The regular expressions of conditions, by their text.
    pub(crate) patterns: HashMap<String, Pattern>,
    /// The approximate memory of all regular expressions, also those of schemas.
    pub pattern_bytes: usize,
    /// Its instances need only data: they call no functions, wait for nothing, start no branches, produce no events and
    /// don't continue as another instance.
    pub is_pure: bool,
    /// The same, but events may start its instances, and they may produce events.
    pub ends_in_first_turn: bool,
    /// The first turn of its instances leads to the end or to a wait, and needs nothing but data.
    pub waits_in_first_turn: bool,
    /// Between waits for events and timers, its instances need nothing but data.
    pub needs_no_worker: bool,
    /// Subscriptions of its instances go on between their calls.
    pub keeps_subscriptions: bool,
    pub limits: Limits,
    /// The number of states or actions that one step may run before other scopes have a turn.
    pub budget: u32,
    /// The number of states and actions that may run while the scope never waits for anything.
    pub steps_max: u64,
    /// The maximum number of branches of a fork.
    pub fork_max: u32,
    /// The maximum nesting depth of sub-workflows.
    pub depth_max: u16,
    pub sizes: Sizes,
}

/// A part of the document that doesn't compile, and its location.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{pointer}: {message}")]
pub struct Problem {
    pub pointer: String,
    pub message: String,
}

impl Definition {
    pub fn compile(workflow: Workflow) -> Result<Arc<Definition>, Vec<Problem>> {
        Definition::compile_within(workflow, Sizes::default())
    }

    /// The same, with the limits of this process.
    pub fn compile_within(
        workflow: Workflow,
        sizes: Sizes,
    ) -> Result<Arc<Definition>, Vec<Problem>> {
        let mut problems = Vec::new();
        let mut programs = Vec::with_capacity(workflow.expressions.len());
        let mut paths = Vec::with_capacity(workflow.paths.len());
        for source in &workflow.expressions {
            match program(&workflow, source) {
                Ok(program) => programs.push(program),
                Err(problem) => problems.push(problem),
            }
        }
        for source in &workflow.paths {
            match path(&workflow, source) {
                Ok(path) => paths.push(path),
                Err(problem) => problems.push(problem),
            }
        }
        let mut room = Room::default();
        let schemas = Schemas::compile(&workflow, &mut room, &mut problems);
        let calendar = workflow.schedule.as_ref().and_then(|schedule| {
            let problem = |error: &dyn std::fmt::Display| Problem {
                pointer: "/start/schedule".to_owned(),
                message: error.to_string(),
            };
            Calendar::new(schedule)
                .map_err(|error| problems.push(problem(&error)))
                .ok()
        });
        let patterns = patterns(&workflow, &mut room, &mut problems);
        if !problems.is_empty() {
            return Err(problems);
        }
        Ok(Arc::new(Definition {
            id: Definition::id_of(&workflow),
            is_pure: is_pure(&workflow),
            ends_in_first_turn: ends_in_first_turn(&workflow),
            waits_in_first_turn: waits_in_first_turn(&workflow),
            needs_no_worker: needs_no_worker(&workflow),
            keeps_subscriptions: workflow.states.iter().any(|state| {
                matches!(&state.kind, StateKind::Listen(listen) if listen.stepwise.is_some())
            }),
            owners: owners(&workflow),
            uses: Uses::of(&workflow, &programs),
            workflow,
            programs,
            paths,
            input_schema: schemas.input,
            output_schema: schemas.output,
            state_schemas: schemas.states,
            context_schemas: schemas.contexts,
            each_schemas: schemas.each,
            calendar,
            deployed_at: None,
            patterns,
            pattern_bytes: room.used,
            limits: Limits {
                time: sizes.expression_time,
                ..Limits::default()
            },
            budget: 10_000,
            steps_max: 1_000_000,
            fork_max: 100_000,
            depth_max: 50,
            sizes,
        }))
    }
}

impl Definition {
    /// Sets the time of deployment of a definition that is not shared yet.
    #[must_use]
    pub fn deployed(mut self: Arc<Definition>, at: Timestamp) -> Arc<Definition> {
        if let Some(own) = Arc::get_mut(&mut self) {
            own.deployed_at = Some(at);
        }
        self
    }

    /// The id of a workflow. If its version is an expression, the id contains the expression's text.
    pub fn id_of(workflow: &Workflow) -> DefinitionId {
        let version = match &workflow.version {
            Version::Literal(version) => version.as_str(),
            Version::Expression(id) => &workflow[*id].text,
            Version::Latest => "",
        };
        DefinitionId {
            workflow: workflow.id.as_str().into(),
            version: version.into(),
        }
    }

    /// A duration that is needed before an instance exists. Its expression sees the constants and no data.
    pub fn period_at_start(&self, period: &Period) -> Option<IsoDuration> {
        let Period::Expression(id) = period else {
            return period.fixed();
        };
        let source = &self.workflow[*id];
        let mut vars = vec![Data::NULL; names(&self.workflow, source).len()];
        if self.workflow.tasks.is_none() {
            vars[0] = self.workflow.constants.clone();
        }
        let env = swirl_expr::Env {
            now_ms: 0,
            limits: self.limits,
        };
        let found = self.programs[id.0 as usize].one(&Data::object(), &vars, &env);
        let text = found.ok().flatten()?;
        IsoDuration::parse(text.as_str()?.trim()).ok()
    }

    /// The state that a list of actions belongs to.
    pub(crate) fn owner(&self, list: ListId) -> Option<StateId> {
        self.owners.get(list.0 as usize).copied().flatten()
    }

    /// The schedule that creates instances.
    pub fn schedule(&self) -> Option<&Calendar> {
        self.calendar.as_ref()
    }
}

/// The memory of all regular expressions of a definition. It stays in use while the definition is cached.
#[derive(Default)]
struct Room {
    used: usize,
}

impl Room {
    fn take(&mut self, bytes: usize) -> Result<(), String> {
        self.used = self.used.saturating_add(bytes);
        match self.used > PATTERNS_MAX {
            true => Err(format!(
                "the regular expressions of the definition need more than {} MiB of memory",
                PATTERNS_MAX >> 20
            )),
            false => Ok(()),
        }
    }

    fn pattern(&mut self, source: &str) -> Result<Pattern, String> {
        // Counted first, so that nothing is compiled beyond the limit.
        self.take(Pattern::weigh(source)?)?;
        Pattern::compile(source)
    }
}

/// Compiles the regular expressions of all conditions and filters, each once.
fn patterns(
    workflow: &Workflow,
    room: &mut Room,
    problems: &mut Vec<Problem>,
) -> HashMap<String, Pattern> {
    let mut patterns = HashMap::new();
    let mut open: Vec<&Test> = Vec::new();
    let starts = workflow
        .tasks
        .iter()
        .filter_map(|tasks| tasks.starts.as_ref());
    let starts = starts.flat_map(StartOn::filters);
    let mut filtered: Vec<_> = starts.map(|filter| (filter, "/schedule/on")).collect();
    for state in &workflow.states {
        match &state.kind {
            StateKind::Switch(switch) => {
                open.extend(switch.conditions.iter().map(|condition| &condition.test));
            }
            StateKind::Listen(listen) => {
                let filters = listen.filters();
                filtered.extend(filters.map(|filter| (filter, state.pointer.as_str())));
            }
            _ => {}
        }
    }
    for (filter, pointer) in filtered {
        for (_, text) in &filter.patterns {
            let text = whole_pattern(text);
            if patterns.contains_key(&text) {
                continue;
            }
            match room.pattern(&text) {
                Ok(pattern) => {
                    patterns.insert(text, pattern);
                }
                Err(message) => problems.push(Problem {
                    pointer: pointer.to_owned(),
                    message,
                }),
            }
        }
    }
    while let Some(test) = open.pop() {
        match test {
            Test::All(list) | Test::Any(list) => open.extend(list),
            Test::Not(test) => open.push(test),
            Test::Compare {
                path,
                operator: Comparison::Matches,
                value,
                ..
            } if !patterns.contains_key(&value.to_text()) => match room.pattern(&value.to_text()) {
                Ok(pattern) => {
                    patterns.insert(value.to_text(), pattern);
                }
                Err(error) => problems.push(problem(&workflow[*path], &error)),
            },
            Test::Holds(_) | Test::Exists(_) | Test::Compare { .. } => {}
        }
    }
    patterns
}

/// A regular expression that must match a text as a whole.
pub(crate) fn whole_pattern(text: &str) -> String {
    format!("^(?:{text})$")
}

/// The variables that every expression sees, before its iteration parameters.
pub(crate) const VARIABLES: [&str; 4] = ["CONST", "SECRETS", "WORKFLOW", "args"];

/// The variables that the workflow's expressions see.
pub(crate) fn variables(workflow: &Workflow) -> &'static [&'static str] {
    match workflow.tasks {
        Some(_) => &TASK_VARIABLES,
        None => &VARIABLES,
    }
}

/// The data of tasks that must be kept because expressions use it later.
#[derive(Debug, Default)]
pub(crate) struct Uses {
    /// `$task` is used.
    pub task: bool,
    /// By state: its input is needed after it has begun.
    pub keeps_input: Vec<bool>,
}

impl Uses {
    fn of(workflow: &Workflow, programs: &[Program]) -> Uses {
        if workflow.tasks.is_none() {
            return Uses::default();
        }
        let uses = |name: &str| programs.iter().any(|program| program.uses_var(name));
        let input = uses("input") || uses("authorization");
        let keeps = |state: &State| match &state.kind {
            // The list may begin again.
            StateKind::Try(_) => true,
            // So may that for another event.
            StateKind::Listen(listen) if listen.each.is_some() => true,
            _ => {
                let task = state.task.as_ref();
                let is_looked_at =
                    task.is_some_and(|it| it.output.is_some() || it.export.is_some());
                let is_tested = matches!(&state.kind, StateKind::For(each) if each.test.is_some());
                input && (is_looked_at || is_tested)
            }
        };
        Uses {
            task: uses("task"),
            keeps_input: workflow.states.iter().map(keeps).collect(),
        }
    }
}

/// Whether a condition over an error can access the error's name as `name` in this language.
pub(crate) fn sees_error(language: Language) -> bool {
    matches!(language, Language::Cel | Language::Jexl | Language::Spel)
}

/// The names of the variables that an expression sees.
pub(crate) fn names<'s>(workflow: &Workflow, source: &'s ExprSource) -> Vec<&'s str> {
    let error = sees_error(source.language).then_some("error");
    variables(workflow)
        .iter()
        .copied()
        .chain(error)
        .chain(source.params.iter().map(|param| &**param))
        .collect()
}

fn problem(source: &ExprSource, error: &impl std::fmt::Display) -> Problem {
    Problem {
        pointer: source.pointer.clone(),
        message: error.to_string(),
    }
}

fn program(workflow: &Workflow, source: &ExprSource) -> Result<Program, Problem> {
    let names = names(workflow, source);
    Program::compile(source.language, &source.text, &names).map_err(|error| problem(source, &error))
}

fn path(workflow: &Workflow, source: &ExprSource) -> Result<PathExpr, Problem> {
    let names = names(workflow, source);
    PathExpr::compile(source.language, &source.text, &names)
        .map_err(|error| problem(source, &error))
}
