//! Codes that are not findings of a document: refusals of the API, and errors of running instances.

/// A code, one line about it, and the remedy.
pub type Row = (&'static str, &'static str, &'static str);

/// `code` of a refusal, in the order of the alphabet.
pub const REFUSALS: &[Row] = &[
    (
        "body-broken",
        "The body of a request ended before it was complete.",
        "Send the request again; look for a proxy that breaks connections off.",
    ),
    (
        "definition-broken",
        "A stored definition cannot be read by this build.",
        "The message says why. It was deployed by another build, or the store is damaged: deploy it under a new version.",
    ),
    (
        "definition-conflict",
        "Another content is deployed under this id and version.",
        "Definitions are immutable under id and version: raise the version. Comments and layout don't count as content.",
    ),
    (
        "definition-in-use",
        "A definition is to be deleted of which instances run or have failed.",
        "Wait for their end, cancel them, or delete with --force: then they continue to their end, and nothing new starts.",
    ),
    (
        "definition-invalid",
        "A document is not a valid definition.",
        "'diagnostics' lists what is wrong; 'swirl validate FILE' shows the same.",
    ),
    (
        "does-not-fit",
        "The instance is in the middle of something that the other version of its definition lacks, or does otherwise.",
        "the detail names the part; keep it in the new version, or move the instance once it is past it.",
    ),
    (
        "empty-query",
        "A batch has no query.",
        "An empty query would mean all instances. Say which are meant: 'status = faulted', 'started < now'; docs/search.md has the language.",
    ),
    (
        "forbidden",
        "The token has not the role, or not the namespace, that this needs.",
        "Use another token, or ask for the role: docs/security.md has the table.",
    ),
    (
        "foreign-origin",
        "A web page of another origin sent the request, or it names a host that is not allowed.",
        "Name the page's origin in 'coordinator.cors_origins'; call the API by an address, by 'localhost', or by a name of 'coordinator.allowed_hosts'.",
    ),
    (
        "function-document",
        "The document of a function is unavailable or cannot be read.",
        "Look whether its URI is right, and whether the server may fetch it ('http.allow_hosts', --allow-host). A file goes along with 'swirl deploy'.",
    ),
    (
        "function-invalid",
        "A function doesn't fit the document that describes it.",
        "The message names the function, and what its document lacks.",
    ),
    (
        "internal",
        "An error in Swirl.",
        "Please report it, with the log of the server.",
    ),
    (
        "invalid-event",
        "The message is not a CloudEvent of version 1.0.",
        "The message names the attribute. 'id', 'source', 'specversion' and 'type' are required.",
    ),
    (
        "invalid-header",
        "A header cannot be used.",
        "The message names it.",
    ),
    (
        "invalid-json",
        "The body is not valid JSON, or not the expected JSON.",
        "The message says where it breaks off, or which members are wanted.",
    ),
    (
        "invalid-operation",
        "The operation of a batch is unknown, or its options don't fit it.",
        "The message says which. 'skip' needs 'result', 'rerun' needs 'state', and 'rate' is at most 1000 instances per second.",
    ),
    (
        "invalid-query",
        "A parameter of the query is unknown or has a wrong value.",
        "The message names it; /api/v1/openapi.json lists all.",
    ),
    (
        "invalid-range",
        "The time for which a schedule is to be made up for cannot be taken.",
        "'from' lies before 'to', 'to' not in the future, and the schedule has at most 1000 starts between them.",
    ),
    (
        "invalid-search",
        "The query for instances cannot be read.",
        "The message shows where it breaks off; docs/search.md has the language.",
    ),
    (
        "invalid-text",
        "A document is not UTF-8 text.",
        "Save it as UTF-8.",
    ),
    (
        "key-conflict",
        "The key was used for an instance with another input or workflow.",
        "The same key gives the same instance: use another key for another start. 'instance' in the answer is the one that has it.",
    ),
    (
        "key-in-use",
        "Another instance runs under the key.",
        "An instance that runs has its key for itself: wait for its end or cancel it, or use another key. 'instance' in the answer is the one that has it.",
    ),
    (
        "letter-cut",
        "A dead letter was too long to be kept whole, so it cannot be sent again.",
        "Send the message again from where it came, or drop the letter.",
    ),
    (
        "no-cloudevent",
        "The request has neither a media type of CloudEvents nor headers 'ce-'.",
        "Send Content-Type application/cloudevents+json, or the headers ce-specversion, ce-id, ce-source and ce-type.",
    ),
    (
        "no-randomness",
        "The operating system gives no random numbers.",
        "Try again; look at the machine.",
    ),
    (
        "no-schedule",
        "The workflow has no schedule that could be paused.",
        "'swirl definition list' shows schedules.",
    ),
    (
        "provider-unavailable",
        "The keys of the token provider are not there.",
        "The log of the server says why; try again.",
    ),
    (
        "query-too-broad",
        "A batch would have to examine too many instances to find those that match.",
        "Nothing was done. Narrow the query with a status, a workflow, 'started > ...' or a search attribute: these have indexes (docs/search.md).",
    ),
    (
        "start-refused",
        "The instance cannot be started with this input, or not now.",
        "The message says why: the input fails its schema, or the schedule allows no start.",
    ),
    (
        "still-busy",
        "The instance cannot be removed yet: what its end causes is still being carried out.",
        "Try again soon. If that lasts, the server's log says what cannot be carried out.",
    ),
    (
        "still-needed",
        "The instance cannot be removed: another one that failed with it may be retried.",
        "The retry continues in this sub-workflow. Remove the instance that the message names first, or both stay.",
    ),
    (
        "still-running",
        "The instance cannot be removed: it is running, or a sub-workflow that it waited for is.",
        "Cancel the one that the message names with 'swirl cancel ID', and remove the instance then.",
    ),
    (
        "stopping",
        "The server is about to stop.",
        "Ask another one; the clients do that by themselves.",
    ),
    (
        "store-damaged",
        "What is stored cannot be read.",
        "The message says what. Restore it from a backup.",
    ),
    (
        "store-unavailable",
        "The store cannot be reached, or is overloaded.",
        "Try again; 'swirl doctor' says whether Redis is well.",
    ),
    (
        "timeout",
        "The request took too long.",
        "Look at the instance before you ask again.",
    ),
    (
        "too-large",
        "A body, an event or a record is larger than the limit.",
        "The message says the limit. Keep large data elsewhere, and pass a reference.",
    ),
    (
        "too-many-batches",
        "As many batches are under way as may be.",
        "Wait until one has ended, or stop one: 'swirl batch list'.",
    ),
    (
        "too-many-deployments",
        "As many deployments of this caller are being read as one may have at once.",
        "Deploy a few at a time: the next one is taken when one of them is answered.",
    ),
    (
        "too-many-instances",
        "More instances match than a batch may have.",
        "Nothing was done. Narrow the query, for example with 'started', and create several batches one after another.",
    ),
    (
        "too-many-refusals",
        "Too many refused tokens came from this address.",
        "Wait as long as Retry-After says, and use a token that is valid.",
    ),
    (
        "too-many-starts",
        "The workflow, or the namespace, starts more instances a second than its limit allows.",
        "Wait as long as Retry-After says; 'limits.starts' and 'limits.all_starts' are the settings.",
    ),
    (
        "unauthenticated",
        "There is no token, or one that isn't accepted.",
        "Give one with SWIRL_TOKEN, --token-file or SWIRL_TOKEN_FILE; 'swirl token create' makes one.",
    ),
    (
        "unknown-attribute",
        "The query for instances asks for an attribute that no definition declares.",
        "The message names those that are declared. 'metadata.swirl.search' of a definition declares them (docs/search.md).",
    ),
    (
        "unknown-batch",
        "No batch has this id.",
        "'swirl batch list' has those that are kept: a batch is dropped some time after its end.",
    ),
    (
        "unknown-dead-letter",
        "There is no dead letter with this number.",
        "It may have been sent again or dropped. 'swirl dead-letters list' shows those that are there.",
    ),
    (
        "unknown-instance",
        "There is no instance with this id.",
        "It may have been removed some time after its end. 'swirl list' shows those that are there.",
    ),
    (
        "unknown-method",
        "The path has no such method.",
        "/api/v1/openapi.json says which it has.",
    ),
    (
        "unknown-namespace",
        "The server serves another namespace.",
        "See --namespace and SWIRL_NAMESPACE.",
    ),
    (
        "unknown-place",
        "A listing cannot continue at this place.",
        "Give 'after' what the listing before gave as 'next', or leave it out.",
    ),
    (
        "unknown-route",
        "There is nothing at this path.",
        "/api/v1/openapi.json lists all paths.",
    ),
    (
        "unknown-workflow",
        "No such workflow is deployed, or not in this version.",
        "'swirl definition list' shows what is deployed.",
    ),
    (
        "wrong-status",
        "The instance isn't in a status in which this can be done.",
        "retry, skip and rerun are for faulted instances, cancel, suspend and resume for running ones; 'swirl get ID' shows the status.",
    ),
];

/// Names of errors that a running instance may have, and that 'onErrors' may name.
pub const ERRORS: &[Row] = &[
    (
        "ActionTimeout",
        "An action took longer than its 'actionExecTimeout'.",
        "Handle it with 'onErrors', or allow more time.",
    ),
    (
        "BranchTimeout",
        "A branch took longer than its 'branchExecTimeout'.",
        "Handle it with 'onErrors', or allow more time.",
    ),
    (
        "CollectionNotArray",
        "'inputCollection' of a foreach state gives no array.",
        "Let the expression give an array; 'swirl get ID' shows the data.",
    ),
    (
        "ConditionNotBoolean",
        "A condition gives neither true nor false.",
        "Write a comparison, such as '${ .count > 0 }'.",
    ),
    (
        "EventTimeout",
        "No event came in time.",
        "Handle it with 'onErrors', or continue without the event.",
    ),
    (
        "ExpressionError",
        "An expression failed.",
        "The message has the expression and the reason; 'swirl get ID' shows the data that it saw.",
    ),
    (
        "FunctionError",
        "A function failed.",
        "'code' is the status of the answer, if there was one. Retry with 'retryRef', or handle it with 'onErrors'.",
    ),
    (
        "InputValidation",
        "The input fails 'dataInputSchema'.",
        "The message says where.",
    ),
    (
        "InvalidValue",
        "An expression gives a value that cannot be used in its place.",
        "The message says what is wanted.",
    ),
    (
        "KeyInUse",
        "Another instance runs under the key.",
        "An instance that runs has its key for itself: wait for its end, or use another key.",
    ),
    (
        "LimitExceeded",
        "Data, time or steps exceed a limit of the server.",
        "The message names the limit; docs/configuration.md has those that can be set.",
    ),
    (
        "MergeTypeMismatch",
        "A result cannot be merged into the data: one is an object and the other isn't.",
        "Use 'toStateData' of the filter.",
    ),
    (
        "NoMatchingCondition",
        "No condition of a switch state holds, and it has no default.",
        "Add 'defaultCondition'.",
    ),
    (
        "OutputValidation",
        "The output fails its schema.",
        "The message says where.",
    ),
    (
        "ResultMatched",
        "A result matched a condition that the definition takes for an error.",
        "Handle it with 'onErrors'.",
    ),
    (
        "SecretNotFound",
        "A secret has no value here.",
        "Set SWIRL_SECRET_NAME, or see docs/secrets.md.",
    ),
    (
        "StartRefused",
        "The instance cannot be started with this input, or not now.",
        "The message says why.",
    ),
    (
        "StateTimeout",
        "A state took longer than its 'stateExecTimeout'.",
        "Handle it with 'onErrors', or allow more time.",
    ),
    (
        "SubflowFailed",
        "A sub-workflow ended without completing.",
        "'swirl history ID' of the sub-workflow shows why.",
    ),
    (
        "SubflowNotFound",
        "A sub-workflow is not deployed, or not in this version.",
        "Deploy it; 'swirl run' takes it with --with.",
    ),
    (
        "TransitionRefused",
        "A state refuses the data that it was given.",
        "The message says why.",
    ),
];

/// Codes of a `FunctionError` that are not a status of the service, and an event of the history.
pub const FAILURES: &[Row] = &[
    (
        "arguments",
        "The arguments of a call don't fit the function; nothing was sent.",
        "The message names the argument. 'swirl validate' finds what it can before anything runs.",
    ),
    (
        "auth",
        "A call has no credentials, or not those that the service asks for.",
        "Look at the function's 'authRef', the auth definition and its secrets.",
    ),
    (
        "command-failed",
        "A command could not do what it was asked for.",
        "The message says why. The exit code is 2.",
    ),
    (
        "connection",
        "There was no connection to the service, or it broke.",
        "Look whether the address is right and the service runs. A 'retryRef' repeats the action; an 'errors' entry with the code 'connection' handles it.",
    ),
    (
        "failed",
        "The service or the command says that it failed, and nothing else.",
        "Its log says more.",
    ),
    (
        "limit",
        "A request or an answer is larger than the limit.",
        "Ask for less at once, or raise the limit: docs/configuration.md lists them.",
    ),
    (
        "response",
        "An answer isn't what its content type says.",
        "The message says what was found; the service has to mend it.",
    ),
    (
        "signal",
        "A signal ended the command of a connector.",
        "The log of the runtime has what it wrote to its standard error.",
    ),
    (
        "validation_failed",
        "The workflow's input or output doesn't fit its schema, and the workflow went on.",
        "That is what 'failOnValidationErrors: false' says. The message in the history names what doesn't fit.",
    ),
];

/// Explains the status of a service's answer, which is the code of an error.
pub fn of_status(code: &str) -> Option<Row> {
    let status: u16 = code.parse().ok().filter(|_| code.len() == 3)?;
    Some(match status {
        408 | 429 | 500 | 502..=504 => (
            "HTTP status",
            "The service could not answer now.",
            "Repeat the action with a 'retryRef'. The service's log says more.",
        ),
        401 | 403 => (
            "HTTP status",
            "The service refuses the credentials.",
            "Look at the function's 'authRef', the auth definition and its secrets.",
        ),
        404 | 410 => (
            "HTTP status",
            "The service has nothing at this address.",
            "Look at the server, the path and the arguments of the call, which the message names.",
        ),
        300..=599 => (
            "HTTP status",
            "The service refuses the call.",
            "The error's message has the answer. An 'errors' entry with this code handles it.",
        ),
        _ => return None,
    })
}

/// The row of a code.
pub fn find(code: &str) -> Option<&'static Row> {
    all().find(|(found, ..)| *found == code)
}

/// All rows.
pub fn all() -> impl Iterator<Item = &'static Row> {
    REFUSALS.iter().chain(ERRORS).chain(FAILURES)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_code_of_the_api_is_explained() {
        let page = include_str!("../../../../docs/api.md");
        let (_, listed) = page.split_once("with a stable `code`:").unwrap();
        let (listed, _) = listed.split_once("\n\n").unwrap();
        for code in listed.split('`').skip(1).step_by(2) {
            assert!(find(code).is_some() || is_finding(code), "{code}");
        }
        assert!(REFUSALS.is_sorted() && ERRORS.is_sorted() && FAILURES.is_sorted());
        assert!(
            of_status("404").is_some() && of_status("4040").is_none() && of_status("200").is_none()
        );
    }

    fn is_finding(code: &str) -> bool {
        let mut table = swirl_spec::codes::TABLE.iter();
        table.any(|entry| entry.code.as_str() == code)
    }

    #[test]
    fn every_error_of_the_engine_is_explained() {
        let source = include_str!("../../../../shared/model/src/error.rs");
        let (_, names) = source.split_once("pub mod names").unwrap();
        let (names, _) = names.split_once("\n}").unwrap();
        let names = names.split('"').skip(1).step_by(2);
        let names: Vec<&str> = names.collect();
        assert!(names.len() > 15, "{names:?}");
        for name in names {
            assert!(find(name).is_some(), "{name}");
        }
    }
}
