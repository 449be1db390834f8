//! The properties of the language, each with a one-sentence description.

mod tasks;

use swirl_spec::edition::Edition;

use super::text::{Position, Text};

/// In alphabetical order. If a property has different meanings in different objects, its description says so.
const ABOUT: [(&str, &str); 82] = [
    (
        "actionDataFilter",
        "which part of the state data an action gets (`fromStateData`), which part of its result is used (`results`) and where it goes (`toStateData`)",
    ),
    (
        "actionExecTimeout",
        "how long each attempt of an action may take; then it fails with `ActionTimeout`",
    ),
    (
        "actionMode",
        "whether actions run one after another (`sequential`) or at once (`parallel`)",
    ),
    (
        "actions",
        "what is done here: function calls, events, sub-workflows",
    ),
    (
        "arguments",
        "what the function is called with; expressions in `${ }` are evaluated",
    ),
    ("auth", "credentials that functions refer to by name"),
    ("autoRetries", "whether every action is retried by default"),
    ("batchSize", "how many iterations run at once; at least 2"),
    (
        "branchExecTimeout",
        "how long a branch may take; then it fails with `BranchTimeout`",
    ),
    ("branches", "what runs at the same time"),
    ("code", "the code or HTTP status by which an error is known"),
    (
        "compensate",
        "whether completed states are compensated, last first, before this way is taken",
    ),
    (
        "compensatedBy",
        "the state that undoes what this one has done",
    ),
    (
        "completionType",
        "whether all branches must be done (`allOf`) or `numCompleted` of them (`atLeast`)",
    ),
    ("condition", "an expression that gives true or false"),
    ("constants", "values that expressions read as `$CONST`"),
    (
        "contextAttributeName",
        "an attribute of the event by which it finds its instance",
    ),
    (
        "contextAttributeValue",
        "the value that the attribute must have; without it, the first event determines the value",
    ),
    (
        "contextAttributes",
        "attributes that the produced event carries",
    ),
    (
        "continueAs",
        "ends the instance and starts a workflow with its data",
    ),
    (
        "correlation",
        "by which attributes events find their instance",
    ),
    (
        "cron",
        "the times at which instances start, as a cron expression",
    ),
    (
        "data",
        "what is put in: into the state data (inject), into an event, or of an event (filter)",
    ),
    (
        "dataConditions",
        "branches of a switch, tried in order; the first whose condition holds is taken",
    ),
    ("dataInputSchema", "the JSON Schema that the input must fit"),
    (
        "dataOutputSchema",
        "the JSON Schema that the output must fit",
    ),
    (
        "defaultCondition",
        "the way that a switch takes when no condition holds",
    ),
    ("delay", "the time before the first retry (ISO 8601)"),
    ("duration", "a length of time (ISO 8601), such as `PT15M`"),
    ("end", "the instance or the branch ends here"),
    ("errorRef", "the error that is handled, by name"),
    ("errors", "errors that states handle, by name and code"),
    (
        "eventConditions",
        "branches of a switch, each for an event that arrives",
    ),
    (
        "eventDataFilter",
        "which part of an event's data is used (`data`) and where it goes (`toStateData`)",
    ),
    (
        "eventRef",
        "an event, by name: of an action the one that is produced or waited for",
    ),
    ("eventRefs", "the events that are waited for, by name"),
    (
        "eventTimeout",
        "how long to wait for events; then the workflow continues without them",
    ),
    ("events", "events that are waited for or produced"),
    (
        "exclusive",
        "whether the first event is enough (true, the default) or all must arrive",
    ),
    (
        "expressionLang",
        "the language of the expressions: `jq` (the default) or `jsonpath`",
    ),
    (
        "fromStateData",
        "an expression that selects what of the state data an action sees",
    ),
    (
        "functionRef",
        "the function that is called: its name, or an object with `refName` and `arguments`",
    ),
    (
        "functions",
        "what can be called: operations of services, and expressions",
    ),
    (
        "history",
        "in `metadata.swirl`: `data` that the history keeps (`none`, `errors` or `all`), and `keepData`, how long (`P7D`)",
    ),
    ("id", "by which the workflow is started and referred to"),
    (
        "increment",
        "what is added to the delay with each retry (ISO 8601)",
    ),
    ("input", "an expression: what of the data the state sees"),
    (
        "inputCollection",
        "an expression for the list to iterate over",
    ),
    (
        "invoke",
        "whether the result is waited for (`sync`, the default) or not (`async`)",
    ),
    (
        "iterationParam",
        "the variable and key under which an iteration has its item",
    ),
    ("jitter", "a part of the delay by which it varies at random"),
    (
        "keepActive",
        "whether an instance stays active when nothing is left to do, until it is ended",
    ),
    (
        "kind",
        "of an event: whether it is `consumed` (the default) or `produced`",
    ),
    ("maxAttempts", "how many retries there may be"),
    ("maxDelay", "the longest time between retries (ISO 8601)"),
    (
        "metadata",
        "your own texts; the runtime reads some of them, as the docs of functions describe",
    ),
    (
        "mode",
        "whether iterations run one after another (`sequential`) or at once (`parallel`, the default)",
    ),
    (
        "multiplier",
        "by what the delay is multiplied with each retry",
    ),
    ("nextState", "the next state, by name"),
    (
        "nonRetryableErrors",
        "errors that are not retried; with `autoRetries: true`",
    ),
    (
        "numCompleted",
        "how many branches must be done; with `completionType: atLeast`",
    ),
    (
        "onErrors",
        "where to go when an error of `errors` happens in this state",
    ),
    (
        "onEvents",
        "which events are waited for, and what is done when they are there",
    ),
    (
        "operation",
        "where the function is: for `rest` the document and the operation, `openapi.yaml#operationId`",
    ),
    ("output", "an expression: what the state leaves as data"),
    ("outputCollection", "where the results of the iterations go"),
    (
        "produceEvents",
        "events that are produced when this way is taken",
    ),
    (
        "results",
        "an expression over the action's result: what of it is taken",
    ),
    (
        "retention",
        "in `metadata.swirl`: how long ended instances are kept, an ISO 8601 duration for each of `completed`, `faulted`, `cancelled` and `terminated`",
    ),
    ("retries", "retry policies that actions refer to by name"),
    ("retryRef", "the retry policy of the action, by name"),
    (
        "retryableErrors",
        "the errors that are retried; without it all are",
    ),
    ("schedule", "when instances start by themselves"),
    (
        "search",
        "in `metadata.swirl`: the values that instances are found by, each with `value` (an expression) and `type`",
    ),
    (
        "secrets",
        "names of secrets that expressions read as `$SECRETS`",
    ),
    (
        "stateDataFilter",
        "what of the data the state sees (`input`) and what it leaves (`output`)",
    ),
    ("subFlowRef", "a workflow that runs as part of this one"),
    (
        "swirl",
        "in the workflow's `metadata`: what the runtime reads, which is `search`, `retention` and `history`",
    ),
    ("timeouts", "time limits"),
    (
        "toStateData",
        "a path in the state data: where the result goes",
    ),
    (
        "transition",
        "the next state, by name, or an object with `nextState`",
    ),
    (
        "usedForCompensation",
        "the state runs only to undo another one",
    ),
];

/// The names of all properties with a description, except those of DSL 1.0.
pub fn described() -> impl Iterator<Item = &'static str> {
    ABOUT.iter().map(|(name, _)| *name)
}

pub fn about(name: &str) -> Option<&'static str> {
    let found = ABOUT
        .binary_search_by(|(known, _)| (*known).cmp(name))
        .ok()?;
    Some(ABOUT[found].1)
}

/// The same for a document of this edition.
pub fn about_in(edition: Option<Edition>, name: &str) -> Option<&'static str> {
    match edition {
        Some(Edition::V1_0) => tasks::about(name),
        _ => about(name),
    }
}

/// The property whose name is at a position, and its description.
pub fn at(edition: Option<Edition>, text: &Text, at: Position) -> Option<(String, &'static str)> {
    let (line, here) = text.around(at, |c| c.is_ascii_alphanumeric() || c == '-');
    let word = &line[here.clone()];
    let is_key = line[here.end..]
        .trim_start_matches(['"', '\''])
        .starts_with(':');
    let about = about_in(edition, word).filter(|_| is_key)?;
    Some((word.to_owned(), about))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_tables_are_in_order() {
        assert!(ABOUT.is_sorted_by_key(|(name, _)| *name));
    }

    #[test]
    fn the_property_at_the_cursor() {
        let text = Text::new("é: {\"retryRef\": x, end: true}\ntransition: end\n".to_owned());
        let key =
            |line, character| at(None, &text, Position { line, character }).map(|(key, _)| key);
        assert_eq!(key(0, 8).as_deref(), Some("retryRef"));
        assert_eq!(key(0, 19).as_deref(), Some("end"));
        assert_eq!(key(1, 0).as_deref(), Some("transition"));
        assert_eq!(key(1, 13), None);
        assert_eq!(key(7, 0), None);
    }
}
