//! Determines whether two canonical workflows are the same except for their texts: pools may be in another order,
//! locations may differ, policies and produced events may have other names.
//!
//! Each part is written out together with everything that it refers to by index, and the texts are compared. The
//! contents of a part come from its `Debug` text, so that fields which are added to the model later are compared too.
//! These texts are never shown.

use std::collections::BTreeMap;
use std::fmt::Debug;

use swirl_model::workflow::{
    ActionId, AuthId, ErrorId, EventId, ExprId, FlowId, FunctionId, ListId, PathId, State, StateId,
    Workflow,
};

use super::ways::root_states;

pub(super) struct Difference {
    /// The state's name.
    pub state: Option<String>,
    pub message: String,
}

/// No reference in a workflow is nested this deep.
const DEPTH_MAX: usize = 16;

pub(super) fn differences(wanted: &Workflow, found: &Workflow) -> Vec<Difference> {
    let (wanted, found) = (parts(wanted), parts(found));
    let mut differences = Vec::new();
    for key in wanted
        .keys()
        .chain(found.keys().filter(|key| !wanted.contains_key(*key)))
    {
        let (wanted, found) = (wanted.get(key), found.get(key));
        if wanted == found {
            continue;
        }
        let (what, state) = key;
        let message = match (wanted, found) {
            (Some(_), None) => format!("{what} would be missing in 0.8"),
            (None, Some(_)) => format!("{what} would be new in 0.8"),
            _ => format!("{what} would be different in 0.8"),
        };
        differences.push(Difference {
            state: state.clone(),
            message,
        });
    }
    differences
}

/// Parts by kind and state.
type Parts = BTreeMap<(String, Option<String>), String>;

fn parts(workflow: &Workflow) -> Parts {
    let shown = Shown { workflow };
    // All fields are listed, so that a new one can't be forgotten.
    let Workflow {
        id,
        key: _,
        instance_key,
        name: _,
        description: _,
        version,
        edition: _,
        merge_hint: _,
        annotations: _,
        metadata,
        flows,
        states,
        lists: _,
        actions: _,
        functions,
        events: _,
        errors: _,
        auth: _,
        expressions: _,
        paths: _,
        constants,
        secrets,
        secret_objects,
        input_schema,
        output_schema,
        timeout,
        keep_active,
        schedule,
        problems: _,
        tasks: _,
        search,
        retention,
        recording,
        keep_data_ms,
    } = workflow;
    let mut parts = Parts::new();
    let mut put = |what: &str, value: &dyn Debug| {
        parts.insert((what.to_owned(), None), shown.text(value));
    };
    put("the workflow's id", id);
    put("the version", version);
    put("the key of instances", instance_key);
    put("the metadata", metadata);
    put("the flow of states", &flows.first());
    put("the constants", constants);
    put("the list of secrets", secrets);
    put("the secrets that are objects", secret_objects);
    put("the schema of the input", input_schema);
    put("the schema of the output", output_schema);
    put("the timeout of the workflow", timeout);
    put("'keepActive'", keep_active);
    put("the schedule", schedule);
    put("the search attributes", search);
    put("the retention", retention);
    put("the data of histories", recording);
    put("how long the data of histories is kept", keep_data_ms);
    for function in functions {
        put(&format!("the function '{}'", function.name), function);
    }
    for id in root_states(workflow) {
        let Some(state) = states.get(id.0 as usize) else {
            continue;
        };
        let bare = State {
            pointer: String::new(),
            ..state.clone()
        };
        let what = format!("the state '{}'", state.name);
        parts.insert((what, Some(state.name.to_string())), shown.text(&bare));
    }
    parts
}

struct Shown<'w> {
    workflow: &'w Workflow,
}

impl Shown<'_> {
    fn text(&self, value: &dyn Debug) -> String {
        self.expanded(&format!("{value:?}"), 0)
    }

    /// Replaces indexes with the parts that they refer to.
    fn expanded(&self, text: &str, depth: usize) -> String {
        const NAMES: [&str; 10] = [
            "ListId(",
            "FlowId(",
            "StateId(",
            "ActionId(",
            "FunctionId(",
            "EventId(",
            "ErrorId(",
            "ExprId(",
            "PathId(",
            "AuthId(",
        ];
        let mut found = String::new();
        let mut rest = text;
        loop {
            let next = NAMES
                .iter()
                .filter_map(|name| Some((rest.find(name)?, *name)))
                .min();
            let Some((at, name)) = next else {
                found.push_str(rest);
                return found;
            };
            let begin = at + name.len();
            found.push_str(&rest[..begin]);
            rest = &rest[begin..];
            let digits = rest.bytes().take_while(u8::is_ascii_digit).count();
            let Ok(id) = rest[..digits].parse::<u32>() else {
                continue;
            };
            rest = &rest[digits..];
            match self.item(name, id).filter(|_| depth < DEPTH_MAX) {
                Some(item) => found.push_str(&self.expanded(&item, depth + 1)),
                None => found.push_str(&id.to_string()),
            }
        }
    }

    fn item(&self, name: &str, id: u32) -> Option<String> {
        let workflow = self.workflow;
        let at = id as usize;
        Some(match name {
            "ListId(" => format!(
                "{:?}",
                workflow.lists.get(at).map(|_| &workflow[ListId(id)])?
            ),
            "ActionId(" => {
                let mut action = workflow
                    .actions
                    .get(at)
                    .map(|_| workflow[ActionId(id)].clone())?;
                action.pointer.clear();
                format!("{action:?}")
            }
            // States may refer to each other in cycles.
            "StateId(" => format!(
                "{:?}",
                workflow
                    .states
                    .get(at)
                    .map(|_| &workflow[StateId(id)].name)?
            ),
            "FlowId(" if id == 0 => "root".to_owned(),
            "FlowId(" => format!(
                "{:?}",
                workflow.flows.get(at).map(|_| &workflow[FlowId(id)])?
            ),
            "FunctionId(" => {
                let function = workflow
                    .functions
                    .get(at)
                    .map(|_| &workflow[FunctionId(id)])?;
                format!("{:?}", function.name)
            }
            "EventId(" => {
                let mut event = workflow
                    .events
                    .get(at)
                    .map(|_| workflow[EventId(id)].clone())?;
                event.name = "".into();
                format!("{event:?}")
            }
            "ErrorId(" => format!(
                "{:?}",
                workflow.errors.get(at).map(|_| &workflow[ErrorId(id)])?
            ),
            "AuthId(" => format!(
                "{:?}",
                workflow.auth.get(at).map(|_| &workflow[AuthId(id)])?
            ),
            "ExprId(" => {
                let source = workflow
                    .expressions
                    .get(at)
                    .map(|_| &workflow[ExprId(id)])?;
                format!(
                    "{:?} {:?} {:?}",
                    source.language, source.text, source.params
                )
            }
            "PathId(" => {
                let source = workflow.paths.get(at).map(|_| &workflow[PathId(id)])?;
                format!(
                    "{:?} {:?} {:?}",
                    source.language, source.text, source.params
                )
            }
            _ => return None,
        })
    }
}
