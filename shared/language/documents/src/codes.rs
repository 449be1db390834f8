//! All codes of findings: short, stable words. Each has a page in `docs/errors/`.

use std::fmt;

use serde::{Serialize, Serializer};

/// A code, such as `unknown-property`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Code(&'static str);

impl Code {
    /// The name of a rule beyond the editions' texts, used as the code of its findings.
    pub const fn of_rule(name: &'static str) -> Code {
        Code(name)
    }

    pub const fn as_str(self) -> &'static str {
        self.0
    }

    /// What is wrong, without the details of a finding.
    pub fn summary(self) -> &'static str {
        let entry = TABLE.iter().find(|entry| entry.code == self);
        entry.map_or(self.0, |entry| entry.summary)
    }
}

impl fmt::Display for Code {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.0)
    }
}

impl Serialize for Code {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.0)
    }
}

/// The documentation of a code.
#[derive(Debug)]
pub struct CodeEntry {
    pub code: Code,
    /// One line.
    pub summary: &'static str,
    /// The page, in Markdown.
    pub page: &'static str,
}

macro_rules! codes {
    ($($name:ident = $word:literal: $summary:literal;)*) => {
        $(#[doc = $summary] pub const $name: Code = Code($word);)*

        /// All codes, in alphabetical order.
        pub const TABLE: &[CodeEntry] = &[$(CodeEntry {
            code: $name,
            summary: $summary,
            page: include_str!(concat!("../../../../docs/errors/", $word, ".md")),
        }),*];
    };
}

codes! {
    ADDITIONAL_PROPERTY = "additional-property": "An additional property that looks like a typing error.";
    AMBIGUOUS_EDITION = "ambiguous-edition": "A document that fits several editions.";
    ANY_EVENT = "any-event": "A task or schedule that takes every event.";
    BAD_ATTRIBUTE = "bad-attribute": "A name that no CloudEvents attribute can have.";
    BAD_BATCH_SIZE = "bad-batch-size": "'batchSize' is not a whole number above 1.";
    BAD_COUNT = "bad-count": "'numCompleted' is not a whole number from 1 to the number of branches.";
    BAD_CRON = "bad-cron": "A cron expression cannot be read, or never fires.";
    BAD_DATE_TIME = "bad-date-time": "A string is not an ISO 8601 date and time.";
    BAD_DURATION = "bad-duration": "A string is not an ISO 8601 duration.";
    BAD_EVENT_EXPRESSION = "bad-event-expression": "An event expression that cannot be read, or needs no event.";
    BAD_EXPRESSION = "bad-expression": "An expression that does not compile.";
    BAD_INTERVAL = "bad-interval": "A string is not an ISO 8601 interval.";
    BAD_ITERATION_PARAM = "bad-iteration-param": "An iteration parameter that cannot be a variable's name.";
    BAD_NAME = "bad-name": "A name that is empty, too long, or has a control character.";
    BAD_NUMBER = "bad-number": "A number that is out of range.";
    BAD_OPERATION = "bad-operation": "An operation in the wrong format for its function's type.";
    BAD_PATH = "bad-path": "An expression that must be a single path.";
    BAD_PATTERN = "bad-pattern": "A regular expression that cannot be read.";
    BAD_RESOURCE = "bad-resource": "A referenced document that cannot be used.";
    BAD_RETENTION = "bad-retention": "A retention time that is not allowed.";
    BAD_SCHEMA = "bad-schema": "A JSON Schema that is not valid.";
    BAD_SEARCH_ATTRIBUTE = "bad-search-attribute": "An invalid search attribute.";
    BAD_SELECTION_SET = "bad-selection-set": "A selection set that GraphQL cannot read.";
    BAD_TIME_ZONE = "bad-time-zone": "An unknown time zone.";
    BAD_URI = "bad-uri": "A URI template that cannot be read.";
    CALLBACK_WITHOUT_CORRELATION = "callback-without-correlation": "A callback's event without correlation.";
    COMPENSATION_END_IGNORED = "compensation-end-ignored": "An end in a compensating state.";
    COMPENSATION_RULE = "compensation-rule": "A breach of the rules for compensation.";
    COMPENSATION_UNUSED = "compensation-unused": "A compensating state that compensates nothing.";
    CONDITION_ASSIGNS = "condition-assigns": "A condition that assigns instead of comparing.";
    CONTINUE_AS_TERMINATE = "continue-as-terminate": "'terminate: false' next to 'continueAs'.";
    CORRELATION_NEEDS_DATA = "correlation-needs-data": "A start event's correlation value that depends on an instance's data.";
    CORRELATION_ON_PRODUCED = "correlation-on-produced": "Correlation of a produced event.";
    DOCUMENT_TOO_LARGE = "document-too-large": "The document has more bytes than allowed.";
    DUPLICATE_KEY = "duplicate-key": "An object has the same key twice.";
    DUPLICATE_NAME = "duplicate-name": "Two definitions of the same kind have the same name.";
    EDITION_NOT_SUPPORTED = "edition-not-supported": "An edition of the language that is not supported.";
    EMPTY_DOCUMENT = "empty-document": "The document is empty.";
    EMPTY_LIST = "empty-list": "A list that must have at least one entry.";
    ENDLESS_RETRY = "endless-retry": "A retry with neither a delay nor a limit.";
    EVENT_KIND = "event-kind": "A consumed event where a produced one is needed, or the reverse.";
    EXCLUSIVE_PROPERTIES = "exclusive-properties": "Properties that exclude each other.";
    EXPRESSION_LANGUAGE = "expression-language": "An unknown expression language.";
    EXPRESSION_NOT_EVALUATED = "expression-not-evaluated": "An expression in a place that is not evaluated.";
    EXPRESSION_NOT_MARKED = "expression-not-marked": "A string that looks like an expression without its '${ }'.";
    FUNCTION_ARGUMENTS = "function-arguments": "Arguments that do not fit the document that describes the function.";
    FUNCTION_DOCUMENT = "function-document": "A document that describes a function is unavailable.";
    FUNCTION_INVALID = "function-invalid": "A function that cannot be called as its document describes it.";
    FUNCTION_TYPE_UNKNOWN = "function-type-unknown": "A function type that the language does not define.";
    FUNCTION_WITHOUT_ADDRESS = "function-without-address": "A function for whose service nothing gives an address.";
    ID_NOT_CONSTANT = "id-not-constant": "An 'id' that is an expression.";
    IGNORED_PROPERTY = "ignored-property": "A property that has no effect at its place.";
    INTERVAL_WITHOUT_R = "interval-without-r": "A repeating interval lacks its 'R/'.";
    KEEP_ACTIVE_ENDLESS = "keep-active-endless": "A 'keepActive' workflow that never ends.";
    KEY_NOT_TEXT = "key-not-text": "A YAML key is not a string.";
    LEADING_ZERO = "leading-zero": "A YAML number begins with a zero.";
    LOOSE_FORM = "loose-form": "The meaning is clear, but the language writes it differently.";
    MERGE_KEY = "merge-key": "The value of the YAML merge key '<<' is not an object.";
    METADATA_NOT_TEXT = "metadata-not-text": "A metadata value that is not a string.";
    MISLEADING_EDITION = "misleading-edition": "A version key that doesn't match the edition of the document.";
    MISSING_PROPERTY = "missing-property": "A required property is missing.";
    NOT_AN_EXPRESSION_FUNCTION = "not-an-expression-function": "'fn:' with something that is not an expression function.";
    NOT_CARRIED_OUT = "not-carried-out": "A part of DSL 1.0 that isn't supported.";
    NOT_UTF8 = "not-utf8": "The document is not encoded in UTF-8.";
    NUMBER_NOT_FINITE = "number-not-finite": "A number is infinite, not a number, or too large.";
    OTHER_EDITIONS_NAME = "other-editions-name": "A name from another edition.";
    RECURSIVE_FUNCTION = "recursive-function": "A function that calls itself.";
    RECURSIVE_SUBFLOW = "recursive-subflow": "A workflow that starts itself as its sub-workflow.";
    RESOURCE_NOT_FOUND = "resource-not-found": "A referenced document is unavailable.";
    RUN_BEFORE_RULE = "run-before-rule": "A breach of the rules for 'runBefore'.";
    SCHEDULE_OVER = "schedule-over": "A schedule that is entirely in the past.";
    SCHEDULED_EVENT_START = "scheduled-event-start": "A schedule with an event state at the start.";
    SECRET_IN_DATA = "secret-in-data": "A secret whose value may get into the workflow's data.";
    SECRET_NOT_ALLOWED = "secret-not-allowed": "A secret in a place where it would be exposed, or '$SECRETS' as a whole.";
    SEVERAL_DOCUMENTS = "several-documents": "A YAML file holds more than one document.";
    SWITCH_WITHOUT_DEFAULT = "switch-without-default": "A switch without 'defaultCondition'.";
    SYNTAX_ERROR = "syntax-error": "The text is neither JSON nor YAML.";
    TASK_WITHOUT_NAME = "task-without-name": "An entry of a list that isn't one name with its content.";
    TOO_DEEP = "too-deep": "Lists and objects are nested too deeply.";
    TOO_MANY_VALUES = "too-many-values": "The document has too many values.";
    UNCLOSED_EXPRESSION = "unclosed-expression": "A '${' that is never closed.";
    UNKNOWN_AUTH = "unknown-auth": "A reference to an auth definition that does not exist.";
    UNKNOWN_CONSTANT = "unknown-constant": "A constant that 'constants' does not have.";
    UNKNOWN_CONTEXT = "unknown-context": "A member that '$WORKFLOW' does not have.";
    UNKNOWN_ERROR = "unknown-error": "A reference to an error that is not defined.";
    UNKNOWN_EVENT = "unknown-event": "A reference to an event that is not defined.";
    UNKNOWN_FUNCTION = "unknown-function": "A reference to a function that is not defined.";
    UNKNOWN_PROPERTY = "unknown-property": "A property that the edition does not define.";
    UNKNOWN_REFERENCE = "unknown-reference": "A name that 'use' does not define.";
    UNKNOWN_RETRY = "unknown-retry": "A reference to a retry policy that does not exist.";
    UNKNOWN_SECRET = "unknown-secret": "A secret that the definition does not list.";
    UNKNOWN_STATE = "unknown-state": "A reference to a state that does not exist.";
    UNKNOWN_VALUE = "unknown-value": "A value that is not one of the allowed words.";
    UNKNOWN_WORKFLOW = "unknown-workflow": "A reference to a workflow that is not deployed.";
    UNREACHABLE_STATE = "unreachable-state": "A state that can never be reached.";
    UNSUPPORTED_TAG = "unsupported-tag": "A YAML tag has no meaning here.";
    VERSION_MISSING = "version-missing": "A workflow without a version.";
    VERSION_NOT_SEMVER = "version-not-semver": "A version that is not a semantic version.";
    WRONG_TYPE = "wrong-type": "A value has a different type than the language requires.";
    ZERO_TIMEOUT = "zero-timeout": "A timeout of zero.";
}

/// The entry of a code, for `swirl explain`.
pub fn find(word: &str) -> Option<&'static CodeEntry> {
    TABLE.iter().find(|entry| entry.code.as_str() == word)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_and_pages_match() {
        let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../../docs/errors");
        let mut pages: Vec<String> = std::fs::read_dir(folder)
            .unwrap()
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect();
        pages.sort();
        let codes: Vec<String> = TABLE
            .iter()
            .map(|entry| format!("{}.md", entry.code))
            .collect();
        assert_eq!(codes, pages);
        for CodeEntry {
            code,
            summary,
            page,
        } in TABLE
        {
            assert!(page.starts_with(&format!("# {code}\n")), "{code}: title");
            assert!(
                page.contains("Wrong:") && page.contains("Fixed:"),
                "{code}: examples"
            );
            assert!(summary.ends_with('.'), "{code}: summary");
        }
        assert!(TABLE.is_sorted_by_key(|entry| entry.code));
    }

    #[test]
    fn codes_are_found() {
        assert_eq!(
            find("duplicate-key").map(|entry| entry.code),
            Some(DUPLICATE_KEY)
        );
        assert!(find("nope").is_none());
    }
}
