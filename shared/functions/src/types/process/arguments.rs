//! The arguments of a process, as texts.

use swirl_model::Data;

use crate::CallError;

/// The arguments as texts. Those of an object are `name=value`.
pub(super) fn listed(arguments: &Data) -> Result<Vec<String>, CallError> {
    let Some(given) = arguments.get("arguments").filter(|given| !given.is_null()) else {
        return Ok(Vec::new());
    };
    if given.is_object() {
        let pairs = pairs(arguments, "arguments")?;
        return Ok(pairs
            .into_iter()
            .map(|(name, value)| format!("{name}={value}"))
            .collect());
    }
    let Some(items) = given.as_array() else {
        return Err(CallError::arguments(
            "`arguments` is neither a list nor an object",
        ));
    };
    let items = items.iter().map(|item| Data(item.clone()));
    items.map(|item| plain(&item, "an argument")).collect()
}

/// The members of an object as texts.
pub(super) fn pairs(arguments: &Data, name: &str) -> Result<Vec<(String, String)>, CallError> {
    let Some(given) = arguments.get(name).filter(|given| !given.is_null()) else {
        return Ok(Vec::new());
    };
    let Some(members) = given.as_object() else {
        return Err(CallError::arguments(format!("`{name}` isn't an object")));
    };
    let members = members.iter().map(|(key, value)| {
        let key = Data(key.clone()).to_text();
        let value = plain(&Data(value.clone()), &format!("`{name}.{key}`"))?;
        Ok((key, value))
    });
    members.collect()
}

/// A text for a process, which ends it at a zero byte.
fn plain(value: &Data, what: &str) -> Result<String, CallError> {
    let text = value.to_text();
    match text.contains('\0') {
        true => Err(CallError::arguments(format!("{what} has a zero byte"))),
        false => Ok(text),
    }
}
