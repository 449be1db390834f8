//! ForEach: a flow of states for each element of an array (docs/language.md#decision-34).

use swirl_documents::codes;
use swirl_model::workflow::{Body, Count, Foreach, IterationMode, StateKind};

use super::{Done, StateReader};
use crate::build::ctx::Obj;
use crate::build::expression::{VisibleVars, whole};
use crate::build::paths::member_name;
use crate::editions::tasks::Reader;

pub(super) const KIND: StateReader = StateReader {
    word: "foreach",
    properties: &[
        "inputCollection",
        "outputCollection",
        "inputParameter",
        "iterationParam",
        "max",
        "timeDelay",
        "startsAt",
        "states",
        "tasks",
    ],
    has_next: true,
    retries: true,
    read,
};

fn read(reader: &mut Reader<'_, '_>, obj: Obj<'_>) -> Done {
    let what = format!("a foreach {}", reader.variant.state);
    if !obj.has("inputCollection") {
        reader.missing(obj, &what, &["inputCollection"]);
    }
    let input = reader.opt_expression(obj, "inputCollection", VisibleVars::PLAIN);
    let output = reader.path(obj, "outputCollection", VisibleVars::PLAIN);
    let pause = reader.opt_duration(obj, "timeDelay");
    let mode = mode(reader, obj);
    let param = param(reader, obj, &what);
    let flow = reader.nested_flow(obj, &what);
    Some(StateKind::Foreach(Foreach {
        input: input?,
        output,
        param: param?.into(),
        mode,
        body: Body::Flow(flow?),
        pause,
    }))
}

/// `max` is the number of iterations that run at once; 0 means no limit.
fn mode(reader: &mut Reader<'_, '_>, obj: Obj<'_>) -> IterationMode {
    let Some(node) = obj.get("max") else {
        return IterationMode::Parallel;
    };
    let text = node.as_str().map_or(node.raw(), str::trim);
    match whole(text).filter(|_| node.as_str().is_some() || node.is_number()) {
        Some(0) => IterationMode::Parallel,
        Some(max) => IterationMode::Window(Count::Fixed(max)),
        None => {
            let message = "'max' must be a whole number of 0 or more";
            let hint =
                "it is the number of iterations that may run at once; 0 means no bound".to_owned();
            reader.error(node, codes::BAD_NUMBER, message, hint);
            IterationMode::Parallel
        }
    }
}

/// `inputParameter`: a path to a member of the data, or only the member's name.
fn param(reader: &mut Reader<'_, '_>, obj: Obj<'_>, what: &str) -> Option<String> {
    let Some(node) = reader.named(obj, "inputParameter", &["iterationParam"]) else {
        reader.missing(obj, what, &["inputParameter"]);
        return None;
    };
    let text = reader.string(node, "'inputParameter'")?;
    let text = text.trim();
    let path = if text.starts_with('$') || text.starts_with("{{") {
        text.to_owned()
    } else if obj.has("iterationParam") {
        // Where it has this name, it is none of a path.
        format!("$.{text}")
    } else {
        let message = format!("'inputParameter' is a path; '{text}' is read as '$.{text}'");
        reader.warn(node, codes::BAD_PATH, message, format!("write '$.{text}'"));
        format!("$.{text}")
    };
    let name = member_name(&path);
    let is_one = path.matches(['.', '[']).count() == 1;
    if name.is_none() || !is_one {
        let message = format!("'inputParameter' must name one member of the data, but is '{text}'");
        let hint = "write a path such as '$.order'".to_owned();
        reader.error(node, codes::BAD_ITERATION_PARAM, message, hint);
        return None;
    }
    name
}
