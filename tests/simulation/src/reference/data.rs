//! Data: merging (docs/language.md#decision-9 and #decision-10), paths, expressions, templates.

use std::sync::Arc;

use swirl_expr::{Env, Limits, Program};
use swirl_model::Data;
use swirl_model::workflow::{ExprId, PathId, Template, TextPart, Workflow};

use super::errors::{Fail, OF_TASKS};

pub type Params = Vec<(Arc<str>, Data)>;

/// The value of an expression; null if it has none.
pub fn eval(wf: &Workflow, id: ExprId, input: &Data, params: &Params) -> Result<Data, Fail> {
    let names: Vec<&str> = params.iter().map(|(name, _)| &**name).collect();
    let values: Vec<Data> = params.iter().map(|(_, value)| value.clone()).collect();
    let env = Env {
        now_ms: 0,
        limits: Limits::default(),
    };
    let source = &wf[id];
    let program = Program::compile(source.language, &source.text, &names);
    let program = program.map_err(|_| Fail::named("ExpressionError"))?;
    let found = program.one(input, &values, &env);
    let found = found.map_err(|_| Fail::named("ExpressionError"))?;
    Ok(found.unwrap_or_default())
}

pub fn condition(wf: &Workflow, id: ExprId, input: &Data, params: &Params) -> Result<bool, Fail> {
    let value = eval(wf, id, input, params)?;
    match (value.is_null(), value.as_bool()) {
        (true, _) => Ok(false),
        (false, Some(holds)) => Ok(holds),
        (false, None) => Err(Fail::named("ConditionNotBoolean")),
    }
}

pub fn template(
    wf: &Workflow,
    template_: &Template,
    input: &Data,
    params: &Params,
) -> Result<Data, Fail> {
    Ok(match template_ {
        Template::Literal(data) => data.clone(),
        Template::Expression(id) => eval(wf, *id, input, params)?,
        Template::Loose(..) => return Err(Fail::named(OF_TASKS)),
        Template::Text(parts) => {
            let mut text = String::new();
            for part in parts {
                match part {
                    TextPart::Text(part) => text.push_str(part),
                    TextPart::Expression(id) => {
                        text.push_str(&eval(wf, *id, input, params)?.to_text());
                    }
                }
            }
            Data::string(text)
        }
        Template::Array(items) => {
            let items = items.iter().map(|item| template(wf, item, input, params));
            Data::array(items.collect::<Result<_, _>>()?)
        }
        Template::Object(members) => {
            let mut object = Data::object();
            for (name, value) in members {
                object.set(name, template(wf, value, input, params)?);
            }
            object
        }
    })
}

/// `$.a.b`, `.a.b` or `$['a']['b']`: generated names have no special characters.
fn names(wf: &Workflow, path: PathId) -> Vec<String> {
    let parts = wf[path].text.split(['.', '[', ']', '\'', '$']);
    let names = parts.filter(|part| !part.is_empty());
    names.map(ToOwned::to_owned).collect()
}

pub fn at_path(wf: &Workflow, path: PathId, data: &Data) -> Data {
    let names = names(wf, path);
    let mut found = data.clone();
    for name in names {
        found = found.get(&name).unwrap_or_default();
    }
    found
}

pub fn set_path(wf: &Workflow, path: PathId, data: &mut Data, value: Data) {
    set(data, &names(wf, path), value);
}

fn set(data: &mut Data, names: &[String], value: Data) {
    let Some((name, rest)) = names.split_first() else {
        *data = value;
        return;
    };
    if data.is_null() {
        *data = Data::object();
    }
    let mut nested = data.get(name).unwrap_or_default();
    set(&mut nested, rest, value);
    data.set(name, nested);
}

/// Merges into the data, or at a path in it.
pub fn merge_to(
    wf: &Workflow,
    data: &mut Data,
    to: Option<PathId>,
    value: &Data,
) -> Result<(), Fail> {
    let old = to.map_or_else(|| data.clone(), |path| at_path(wf, path, data));
    let alike = old.is_object() && value.is_object()
        || old.as_array().is_some() && value.as_array().is_some();
    if (old.is_object() || old.as_array().is_some()) && !alike {
        return Err(Fail::named("MergeTypeMismatch"));
    }
    let merged = merged(&old, value);
    match to {
        Some(path) => set_path(wf, path, data, merged),
        None => *data = merged,
    }
    Ok(())
}

/// Merges objects key by key, and arrays as a union; any other value is replaced.
pub fn merged(old: &Data, new: &Data) -> Data {
    if let (true, Some(members)) = (old.is_object(), new.as_object()) {
        let mut object = old.clone();
        for (name, value) in members.iter() {
            let name = Data(name.clone()).to_text();
            let value = Data(value.clone());
            let value = match old.get(&name) {
                Some(before) => merged(&before, &value),
                None => value,
            };
            object.set(&name, value);
        }
        return object;
    }
    if let (Some(before), Some(after)) = (old.as_array(), new.as_array()) {
        let mut items: Vec<Data> = Vec::new();
        for value in before.iter().chain(after) {
            let value = Data(value.clone());
            if !items.contains(&value) {
                items.push(value);
            }
        }
        return Data::array(items);
    }
    new.clone()
}
