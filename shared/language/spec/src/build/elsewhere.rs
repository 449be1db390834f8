//! Names and words of other editions, with their equivalents in this one.
//!
//! Only used for hints, and only if no name of the edition itself is similar. A row states which property must be known
//! at the location for the hint to apply.

/// A property of another edition, a property that this edition has for the same purpose, and the hint.
type Row = (&'static str, &'static str, &'static str);

pub(crate) const PROPERTIES: &[Row] = &[
    ("timeDelay", "duration", "write 'duration'"),
    ("default", "defaultCondition", "write 'defaultCondition'"),
    (
        "eventTimeout",
        "timeouts",
        "write 'timeouts: {eventTimeout: ...}'",
    ),
    (
        "execTimeout",
        "timeouts",
        "write 'timeouts: {workflowExecTimeout: ...}'",
    ),
    (
        "timeout",
        "functionRef",
        "write 'timeouts: {actionExecTimeout: ...}' in the state",
    ),
    ("dataInputPath", "input", "write 'input'"),
    ("dataOutputPath", "output", "write 'output'"),
    ("dataInputPath", "fromStateData", "write 'fromStateData'"),
    ("dataResultsPath", "results", "write 'results'"),
    ("dataOutputPath", "useData", "write 'data'"),
    ("dataInputPath", "useData", "write 'data'"),
    (
        "error",
        "errorRef",
        "define the error in 'errors' of the workflow, and write 'errorRef' with its name",
    ),
    (
        "code",
        "errorRef",
        "give the code in the error's definition, in 'errors' of the workflow",
    ),
    ("retryRef", "errorRef", "put 'retryRef' into the action"),
    (
        "workflowId",
        "actions",
        "write 'actions: [{subFlowRef: ...}]'",
    ),
    (
        "workflowId",
        "subFlowRef",
        "write 'subFlowRef: {workflowId: ...}'",
    ),
    ("n", "numCompleted", "write 'numCompleted'"),
    ("max", "batchSize", "write 'batchSize'"),
    ("resource", "operation", "write 'operation'"),
    (
        "arguments",
        "functionRef",
        "put 'arguments' into 'functionRef', next to 'refName'",
    ),
    (
        "parameters",
        "functionRef",
        "put 'arguments' into 'functionRef', next to 'refName'",
    ),
    (
        "args",
        "functionRef",
        "put 'arguments' into 'functionRef', next to 'refName'",
    ),
    ("args", "refName", "write 'arguments'"),
    ("name", "refName", "write 'refName'"),
    ("invoke", "functionRef", "put 'invoke' into the reference"),
    (
        "selectionSet",
        "functionRef",
        "put 'selectionSet' into 'functionRef'",
    ),
    ("workflowVersion", "onParentComplete", "write 'version'"),
    (
        "kind",
        "continueAs",
        "write 'end: true', or 'terminate: true' for the kind 'terminate'",
    ),
    ("eventsActions", "onEvents", "write 'onEvents'"),
    ("nextTask", "nextState", "write 'nextState'"),
    (
        "expression",
        "nextState",
        "a switch state in between can check a condition",
    ),
    (
        "start",
        "stateDataFilter",
        "name the first state in 'start' of the workflow",
    ),
];

/// A word of another edition, a word that the edition has at this location, and the hint.
pub(crate) const WORDS: &[Row] = &[
    ("delay", "sleep", "write 'sleep', with 'duration'"),
    (
        "subflow",
        "sleep",
        "write 'operation', with 'actions: [{subFlowRef: ...}]'",
    ),
    ("relay", "sleep", "write 'inject', with 'data'"),
    ("and", "allOf", "write 'allOf'"),
    ("xor", "allOf", "write 'atLeast', with 'numCompleted: 1'"),
    ("n_of_m", "allOf", "write 'atLeast', with 'numCompleted'"),
];

fn find(rows: &'static [Row], name: &str, known: &[&str]) -> Option<&'static str> {
    let mut rows = rows.iter();
    let row =
        rows.find(|(other, here, _)| other.eq_ignore_ascii_case(name) && known.contains(here))?;
    Some(row.2)
}

/// The advice for a property that only another edition has here.
pub(crate) fn property(name: &str, known: &[&str]) -> Option<&'static str> {
    find(PROPERTIES, name, known)
}

/// The advice for a property that no edition has here, but that people add for themselves.
pub(crate) fn own(name: &str, known: &[&str]) -> Option<&'static str> {
    let is_own = name.starts_with("x-")
        || name.starts_with('$')
        || ["annotations", "comment", "description", "label", "title"].contains(&name);
    (is_own && known.contains(&"metadata")).then_some("put it into 'metadata'")
}

/// The advice for a word that only another edition has here.
pub(crate) fn word(word: &str, known: &[&str]) -> Option<&'static str> {
    find(WORDS, word, known)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hints_fit_the_place() {
        assert_eq!(
            property("max", &["mode", "batchSize"]),
            Some("write 'batchSize'")
        );
        assert_eq!(property("max", &["name"]), None);
        assert_eq!(
            property("dataInputPath", &["fromStateData", "results"]),
            Some("write 'fromStateData'")
        );
        assert_eq!(
            word("DELAY", &["inject", "sleep"]),
            Some("write 'sleep', with 'duration'")
        );
        assert_eq!(word("and", &["sequential", "parallel"]), None);
        assert_eq!(
            property("arguments", &["name", "functionRef"]),
            Some("put 'arguments' into 'functionRef', next to 'refName'")
        );
        assert_eq!(
            own("x-owner", &["name", "metadata"]),
            Some("put it into 'metadata'")
        );
        assert_eq!(own("x-owner", &["name"]), None);
        assert_eq!(own("owner", &["name", "metadata"]), None);
    }

    #[test]
    fn older_words_get_hints_with_the_new_ones() {
        let text = "id: t\nversion: 1.0.0\nspecVersion: '0.8'\nstates:\n\
            - {name: A, type: delay, timeDelay: PT1S, transition: B}\n\
            - {name: B, type: switch, eventTimeout: PT1S, dataConditions: [{condition: .x, end: true}], default: {end: true}}\n\
            - {name: C, type: parallel, completionType: xor, branches: [{name: b, workflowId: w}], end: {kind: default}}\n\
            - {name: D, type: sleep, duration: PT1S, end: true}\n";
        let reading = crate::reader::read(
            text.as_bytes(),
            &crate::resource::MapResources::default(),
            &crate::options::Options::default(),
        );
        let hints: Vec<&str> = reading
            .diagnostics
            .iter()
            .filter_map(|d| d.hint.as_deref())
            .collect();
        for hint in [
            "write 'sleep'",
            "write 'timeouts.eventTimeout'",
            "write 'defaultCondition'",
            "write 'atLeast'",
            "write 'actions: [{subFlowRef: ...}]'",
        ] {
            assert!(hints.contains(&hint), "{hint}: {hints:?}");
        }
    }
}
