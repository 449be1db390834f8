//! The compiled JSON Schemas of a workflow and its states.

use std::collections::HashMap;

use swirl_expr::{JsonSchema, PATTERNS_MAX};
use swirl_model::workflow::{Schema, StateId, StateKind, Workflow};

use super::{Problem, Room};

#[derive(Debug)]
pub struct Validator {
    pub(crate) inner: JsonSchema,
    pub fail: bool,
}

impl Validator {
    pub fn compile(schema: &Schema) -> Result<Validator, String> {
        let json = serde_json::Value::from(&schema.schema);
        JsonSchema::compile(&json).map(|inner| Validator {
            inner,
            fail: schema.fail,
        })
    }
}

/// All schemas of a definition.
pub(super) struct Schemas {
    pub input: Option<Validator>,
    pub output: Option<Validator>,
    /// Of the input and output of each state.
    pub states: Vec<(Option<Validator>, Option<Validator>)>,
    /// Of the context after each state.
    pub contexts: Vec<Option<Validator>>,
    /// By state that listens: of the output for each event, and of the context after it.
    pub each: HashMap<StateId, (Option<Validator>, Option<Validator>)>,
}

impl Schemas {
    /// Once the regular expressions have no room, no further schema is compiled.
    pub fn compile(workflow: &Workflow, room: &mut Room, problems: &mut Vec<Problem>) -> Schemas {
        let mut compile = |schema: &Option<Schema>, pointer: &str| {
            let schema = schema.as_ref()?;
            if room.used > PATTERNS_MAX {
                return None;
            }
            let validator = Validator::compile(schema).and_then(|validator| {
                room.take(validator.inner.weight())?;
                Ok(validator)
            });
            let refuse = |message| {
                problems.push(Problem {
                    pointer: pointer.to_owned(),
                    message,
                });
            };
            validator.map_err(refuse).ok()
        };
        let input = compile(&workflow.input_schema, "/dataInputSchema");
        let output = compile(&workflow.output_schema, "/dataOutputSchema");
        let mut states = Vec::with_capacity(workflow.states.len());
        for state in &workflow.states {
            let input = compile(&state.input_schema, "");
            states.push((input, compile(&state.output_schema, "")));
        }
        let mut contexts = Vec::with_capacity(workflow.states.len());
        for state in &workflow.states {
            let task = state.task.as_ref();
            let schema = task.map_or(&None, |task| &task.context_schema);
            contexts.push(compile(schema, &state.pointer));
        }
        let mut each = HashMap::new();
        for (index, state) in workflow.states.iter().enumerate() {
            if let StateKind::Listen(listen) = &state.kind
                && let Some(handler) = &listen.each
            {
                let output = compile(&handler.output_schema, &state.pointer);
                let context = compile(&handler.context_schema, &state.pointer);
                each.insert(StateId(index as u32), (output, context));
            }
        }
        Schemas {
            input,
            output,
            states,
            contexts,
            each,
        }
    }
}
