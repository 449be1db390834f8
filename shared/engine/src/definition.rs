//! A workflow with its expressions, paths and schemas compiled.

use std::collections::HashMap;
use std::sync::Arc;

use regex::Regex;
use swirl_expr::{Limits, PathExpr, Program};
use swirl_model::Data;
use swirl_model::ids::DefinitionId;
use swirl_model::schedule::Calendar;
use swirl_model::time::{IsoDuration, Timestamp};
use swirl_model::workflow::{
    Comparison, ExprSource, Language, ListId, Period, StateId, StateKind, Test, Version, Workflow,
};

use crate::flow::owners;
use crate::pure::{ends_in_first_turn, is_pure, needs_no_worker, waits_in_first_turn};
use crate::schema::Validator;
use crate::sizes::Sizes;

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
    pub(crate) calendar: Option<Calendar>,
    /// The state that each list of actions belongs to.
    pub(crate) owners: Vec<Option<StateId>>,
    /// Windows without a start of their own count from this instant.
    pub(crate) deployed_at: Option<Timestamp>,
    /// The regular expressions of conditions, by their text.
    pub(crate) patterns: HashMap<String, Regex>,
    /// Its instances need only data: they call no functions, wait for nothing, start no branches, produce no events and
    /// don't continue as another instance.
    pub is_pure: bool,
    /// The same, but events may start its instances, and they may produce events.
    pub ends_in_first_turn: bool,
    /// The first turn of its instances leads to the end or to a wait, and needs nothing but data.
    pub waits_in_first_turn: bool,
    /// Between waits for events and timers, its instances need nothing but data.
    pub needs_no_worker: bool,
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
            match program(source) {
                Ok(program) => programs.push(program),
                Err(problem) => problems.push(problem),
            }
        }
        for source in &workflow.paths {
            match path(source) {
                Ok(path) => paths.push(path),
                Err(problem) => problems.push(problem),
            }
        }
        let mut schema = |schema: &Option<_>, pointer: &str| {
            let schema: &swirl_model::workflow::Schema = schema.as_ref()?;
            Validator::compile(schema)
                .map_err(|message| {
                    problems.push(Problem {
                        pointer: pointer.to_owned(),
                        message,
                    })
                })
                .ok()
        };
        let input_schema = schema(&workflow.input_schema, "/dataInputSchema");
        let output_schema = schema(&workflow.output_schema, "/dataOutputSchema");
        let state_schemas = workflow
            .states
            .iter()
            .map(|state| {
                (
                    schema(&state.input_schema, ""),
                    schema(&state.output_schema, ""),
                )
            })
            .collect();
        let calendar = workflow.schedule.as_ref().and_then(|schedule| {
            let problem = |error: &dyn std::fmt::Display| Problem {
                pointer: "/start/schedule".to_owned(),
                message: error.to_string(),
            };
            Calendar::new(schedule)
                .map_err(|error| problems.push(problem(&error)))
                .ok()
        });
        let patterns = patterns(&workflow, &mut problems);
        if !problems.is_empty() {
            return Err(problems);
        }
        Ok(Arc::new(Definition {
            id: Definition::id_of(&workflow),
            is_pure: is_pure(&workflow),
            ends_in_first_turn: ends_in_first_turn(&workflow),
            waits_in_first_turn: waits_in_first_turn(&workflow),
            needs_no_worker: needs_no_worker(&workflow),
            owners: owners(&workflow),
            workflow,
            programs,
            paths,
            input_schema,
            output_schema,
            state_schemas,
            calendar,
            deployed_at: None,
            patterns,
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
        let mut vars = vec![Data::NULL; names(source).len()];
        vars[0] = self.workflow.constants.clone();
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

/// Compiles the regular expressions of all conditions, in time proportional to their text.
fn patterns(workflow: &Workflow, problems: &mut Vec<Problem>) -> HashMap<String, Regex> {
    let mut patterns = HashMap::new();
    let mut open: Vec<&Test> = Vec::new();
    for state in &workflow.states {
        if let StateKind::Switch(switch) = &state.kind {
            open.extend(switch.conditions.iter().map(|condition| &condition.test));
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
            } => match Regex::new(&value.to_text()) {
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

/// The variables that every expression sees, before its iteration parameters.
pub(crate) const VARIABLES: [&str; 4] = ["CONST", "SECRETS", "WORKFLOW", "args"];

/// Whether a condition over an error can access the error's name as `name` in this language.
pub(crate) fn sees_error(language: Language) -> bool {
    matches!(language, Language::Cel | Language::Jexl | Language::Spel)
}

fn names(source: &ExprSource) -> Vec<&str> {
    let error = sees_error(source.language).then_some("error");
    VARIABLES
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

fn program(source: &ExprSource) -> Result<Program, Problem> {
    let names = names(source);
    Program::compile(source.language, &source.text, &names).map_err(|error| problem(source, &error))
}

fn path(source: &ExprSource) -> Result<PathExpr, Problem> {
    let names = names(source);
    PathExpr::compile(source.language, &source.text, &names)
        .map_err(|error| problem(source, &error))
}
