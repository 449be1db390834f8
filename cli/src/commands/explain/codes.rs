//! Codes other than findings of a document: refusals of the API, and errors of running instances.

/// A code, one line about it, and the remedy.
pub type Row = (&'static str, &'static str, &'static str);

/// The `code`s of refusals, in alphabetical order.
pub const REFUSALS: &[Row] = &[
    (
        "body-broken",
        "The body of a request ended before it was complete.",
        "Send the request again; check for a proxy that closes connections.",
    ),
    (
        "body-too-slow",
        "The body of a request arrived too slowly.",
        "At least 1 KiB a second is needed, after ten seconds. Send the request again over a faster connection; check for a proxy that holds bodies back.",
    ),
    (
        "definition-broken",
        "A stored definition cannot be read by this build.",
        "The message gives the reason. It was deployed by another build, or the store is damaged: deploy it under a new version.",
    ),
    (
        "definition-conflict",
        "Different content is deployed under this id and version.",
        "Definitions are immutable under id and version: raise the version. Comments and layout don't count as content.",
    ),
    (
        "definition-in-use",
        "The definition can't be deleted, because instances of it are running or have failed.",
        "Wait for their end, cancel them, or delete with --force: then they run to their end, and no new ones start.",
    ),
    (
        "definition-invalid",
        "A document is not a valid definition.",
        "'diagnostics' lists the problems; 'swirl validate FILE' shows the same.",
    ),
    (
        "does-not-fit",
        "The instance is using a part of its definition that the other version lacks or does differently.",
        "The detail names the part: keep it in the new version, or move the instance once it is past it.",
    ),
    (
        "empty-query",
        "A batch has no query.",
        "An empty query would select all instances. Write a query, such as 'status = faulted', 'started < now'; docs/search.md has the language.",
    ),
    (
        "forbidden",
        "The token lacks the role or the namespace that this requires.",
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
        "Check its URI, and that the server may fetch it ('http.allow_hosts', --allow-host). 'swirl deploy' sends files along.",
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
        "The message gives the place of the error, or the missing members.",
    ),
    (
        "invalid-operation",
        "The operation of a batch is unknown, or its options don't fit it.",
        "The message names the problem. 'skip' needs 'result', 'rerun' needs 'state', and 'rate' is at most 1000 instances per second.",
    ),
    (
        "invalid-path",
        "The path of the request is not UTF-8.",
        "Encode the bytes of names as UTF-8 before they are percent-encoded.",
    ),
    (
        "invalid-query",
        "A parameter of the query is unknown or has a wrong value.",
        "The message names it; /api/v1/openapi.json lists all.",
    ),
    (
        "invalid-range",
        "The period of a backfill is not valid.",
        "'from' must be before 'to', 'to' must not be in the future, and the schedule may have at most 1000 starts between them.",
    ),
    (
        "invalid-search",
        "The query for instances cannot be read.",
        "The message shows the place of the error; docs/search.md has the language.",
    ),
    (
        "invalid-text",
        "A body is not a text in the character set that it names, or in UTF-8 if it names none.",
        "Send it as UTF-8, or with the 'charset' that it has in its Content-Type.",
    ),
    (
        "key-conflict",
        "The key was used for an instance with another input or workflow.",
        "A key always stands for the same instance: use another key for another start. 'instance' in the answer is the instance that has the key.",
    ),
    (
        "key-in-use",
        "Another instance runs under the key.",
        "Only one running instance may have a key: wait for its end, cancel it, or use another key. 'instance' in the answer is the instance that has the key.",
    ),
    (
        "letter-cut",
        "A dead letter was too long to be kept whole, so it cannot be sent again.",
        "Send the message again from its source, or drop the letter.",
    ),
    (
        "letter-of-task",
        "A dead letter is a task, which has no content to correct.",
        "Correct the data of its instance: 'swirl retry ID --data FILE'. Sent again without a correction, the task is performed.",
    ),
    (
        "mocks-invalid",
        "The mocks of a rehearsal are not keys of a scenario.",
        "The message says what is wrong; docs/testing.md has the keys of a scenario.",
    ),
    (
        "no-cloudevent",
        "The request has neither a media type of CloudEvents nor headers 'ce-'.",
        "Send Content-Type application/cloudevents+json, or the headers ce-specversion, ce-id, ce-source and ce-type.",
    ),
    (
        "no-randomness",
        "The operating system provides no random numbers.",
        "Try again; check the machine.",
    ),
    (
        "no-schedule",
        "The workflow has no schedule that could be paused.",
        "'swirl definition list' shows schedules.",
    ),
    (
        "patch-failed",
        "The jq expression of 'patch' fails on the state data of the instance, or has no result or several.",
        "The detail says how it fails; --dry-run shows what it makes of the data.",
    ),
    (
        "provider-unavailable",
        "The keys of the token provider are not available.",
        "The log of the server has the reason; try again.",
    ),
    (
        "query-too-broad",
        "A batch would have to examine too many instances to find those that match.",
        "Nothing was done. Narrow the query with a status, a workflow, 'started > ...' or a search attribute: these have indexes (docs/search.md).",
    ),
    (
        "rehearsals-off",
        "Rehearsals are switched off at this server.",
        "Run 'swirl test' on your machine, or have 'coordinator.rehearsals' set to true.",
    ),
    (
        "start-refused",
        "The instance cannot be started with this input, or not now.",
        "The message gives the reason: the input fails its schema, or the schedule allows no start.",
    ),
    (
        "still-busy",
        "The instance cannot be removed yet, because effects of its end are still being carried out.",
        "Try again soon. If this persists, the server's log names the effects.",
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
        "Use another one; clients do so automatically.",
    ),
    (
        "store-damaged",
        "A stored record cannot be read.",
        "The message names the record. Restore it from a backup.",
    ),
    (
        "store-unavailable",
        "The store cannot be reached, or is overloaded.",
        "Try again; 'swirl doctor' checks Redis.",
    ),
    (
        "timeout",
        "The request took too long.",
        "Check the instance before you repeat the request.",
    ),
    (
        "too-large",
        "A body, an event or a record is larger than the limit.",
        "The message has the limit. Keep large data elsewhere, and pass a reference.",
    ),
    (
        "too-many-answers",
        "Large answers that other clients are still reading use all the memory for answers.",
        "Try again after the seconds in 'Retry-After'. If a client stops reading, its connection is closed to make room.",
    ),
    (
        "too-many-batches",
        "The maximum number of batches is active.",
        "Wait until one has ended, or stop one: 'swirl batch list'.",
    ),
    (
        "too-many-bodies",
        "The bodies of other requests use all memory that the server has for incomplete ones.",
        "Send the request again in a moment. If that doesn't help, raise 'coordinator.incomplete_bodies'.",
    ),
    (
        "too-many-deployments",
        "The maximum number of deployments of this caller is being read.",
        "Deploy a few at a time: the next one is accepted when one of them has been answered.",
    ),
    (
        "too-many-instances",
        "More instances match than a batch may have.",
        "Nothing was done. Narrow the query, for example with 'started', and create several batches one after another.",
    ),
    (
        "too-many-refusals",
        "Too many refused tokens came from this address.",
        "Wait for the time in Retry-After, and use a valid token.",
    ),
    (
        "too-many-rehearsals",
        "Another rehearsal is under way, and the server makes one at a time.",
        "Try again when it has been answered; a rehearsal takes ten seconds at most.",
    ),
    (
        "too-many-starts",
        "The workflow, or the namespace, starts more instances a second than its limit allows.",
        "Wait for the time in Retry-After; the settings are 'limits.starts' and 'limits.all_starts'.",
    ),
    (
        "too-many-views",
        "The maximum number of searches is saved.",
        "Remove one: they are on the page Instances of the console.",
    ),
    (
        "unauthenticated",
        "There is no token, or one that isn't accepted.",
        "Pass one with SWIRL_TOKEN, --token-file or SWIRL_TOKEN_FILE; 'swirl token create' creates one.",
    ),
    (
        "unknown-attribute",
        "The query uses an attribute that no definition declares.",
        "The message names those that are declared. 'metadata.swirl.search' of a definition declares them (docs/search.md).",
    ),
    (
        "unknown-batch",
        "No batch has this id.",
        "'swirl batch list' shows the batches that are kept; a batch is dropped some time after its end.",
    ),
    (
        "unknown-coding",
        "The Content-Encoding of a body is not known, or the body does not have it.",
        "Send the body uncompressed, or with gzip, deflate or br.",
    ),
    (
        "unknown-dead-letter",
        "There is no dead letter with this number.",
        "It may have been sent again or dropped. 'swirl dead-letters list' shows the existing ones.",
    ),
    (
        "unknown-instance",
        "There is no instance with this id.",
        "It may have been removed some time after its end. 'swirl list' shows the existing ones.",
    ),
    (
        "unknown-method",
        "The path has no such method.",
        "/api/v1/openapi.json lists its methods.",
    ),
    (
        "unknown-namespace",
        "The server serves another namespace.",
        "See --namespace and SWIRL_NAMESPACE.",
    ),
    (
        "unknown-place",
        "A listing cannot continue at this place.",
        "Pass the 'next' of the previous page as 'after', or leave it out.",
    ),
    (
        "unknown-route",
        "There is nothing at this path.",
        "/api/v1/openapi.json lists all paths.",
    ),
    (
        "unknown-view",
        "No search is saved under this name.",
        "Somebody may have removed it. The page Instances of the console shows those that are saved.",
    ),
    (
        "unknown-workflow",
        "No such workflow is deployed, or not in this version.",
        "'swirl definition list' shows what is deployed.",
    ),
    (
        "webhook-refused",
        "A sender of webhooks asked to deliver events and isn't allowed to.",
        "Name it in 'coordinator.webhook_origins' (or 'swirl dev --webhook-origin').",
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
        "The value of a foreach state's 'inputCollection' is not an array.",
        "Change the expression so that it yields an array; 'swirl get ID' shows the data.",
    ),
    (
        "ConditionNotBoolean",
        "The value of a condition is neither true nor false.",
        "Write a comparison, such as '${ .count > 0 }'.",
    ),
    (
        "EventTimeout",
        "No event arrived in time.",
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
        "The message names the place.",
    ),
    (
        "InvalidValue",
        "The value of an expression cannot be used in its place.",
        "The message says what is required.",
    ),
    (
        "KeyInUse",
        "Another instance runs under the key.",
        "Only one running instance may have a key: wait for its end, or use another key.",
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
        "The message names the place.",
    ),
    (
        "ResultMatched",
        "A result matched a condition that the definition treats as an error.",
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
        "The message gives the reason.",
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
        "Deploy it, or pass it to 'swirl run' with --with.",
    ),
    (
        "TransitionRefused",
        "The condition of a transition didn't hold for the state's output.",
        "The message gives the reason.",
    ),
];

/// Codes of a `FunctionError` other than statuses of the service, and an event of the history.
pub const FAILURES: &[Row] = &[
    (
        "arguments",
        "The arguments of a call don't fit the function; nothing was sent.",
        "The message names the argument. 'swirl validate' finds what it can before anything runs.",
    ),
    (
        "auth",
        "A call has no credentials, or not those that the service requires.",
        "Check the function's 'authRef', the auth definition and its secrets.",
    ),
    (
        "command-failed",
        "A command could not be carried out.",
        "The message gives the reason. The exit code is 2.",
    ),
    (
        "connection",
        "The connection to the service failed or was interrupted.",
        "Check the address, and that the service is running. A 'retryRef' repeats the action; an 'errors' entry with the code 'connection' handles it.",
    ),
    (
        "failed",
        "The service or the command failed without giving a reason.",
        "Its log may have the reason.",
    ),
    (
        "limit",
        "A request or an answer is larger than the limit.",
        "Transfer less at once, or raise the limit: docs/configuration.md lists the limits.",
    ),
    (
        "response",
        "An answer doesn't match its content type.",
        "The message shows what was received; the service must be fixed.",
    ),
    (
        "signal",
        "A signal ended the command of a connector.",
        "The log of the runtime has its standard error.",
    ),
    (
        "start_refused",
        "Another instance was not started, and nothing waits for it.",
        "The error in the history says why. For 'LimitExceeded': instances start each other endlessly, or faster than \
         'limits.pending_starts' lets them wait.",
    ),
    (
        "validation_failed",
        "The workflow's input or output doesn't fit its schema, and the workflow continued.",
        "This is the effect of 'failOnValidationErrors: false'. The message in the history names what doesn't fit.",
    ),
];

/// Explains the status of a service's answer that is used as the code of an error.
pub fn of_status(code: &str) -> Option<Row> {
    let status: u16 = code.parse().ok().filter(|_| code.len() == 3)?;
    Some(match status {
        408 | 429 | 500 | 502..=504 => (
            "HTTP status",
            "The service is temporarily unavailable.",
            "Repeat the action with a 'retryRef'. The service's log may have the reason.",
        ),
        401 | 403 => (
            "HTTP status",
            "The service refuses the credentials.",
            "Check the function's 'authRef', the auth definition and its secrets.",
        ),
        404 | 410 => (
            "HTTP status",
            "The service has nothing at this address.",
            "Check the server, the path and the arguments of the call, which the message names.",
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
        let mut table = swirl_documents::codes::TABLE.iter();
        table.any(|entry| entry.code.as_str() == code)
    }

    #[test]
    fn every_error_of_the_engine_is_explained() {
        let source = include_str!("../../../../shared/language/model/src/error.rs");
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
