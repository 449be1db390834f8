//! How values are read where editions differ.

use swirl_documents::source::Node;
use swirl_model::workflow::{
    ActionHandler, ActionKind, FunctionKind, Handler, Language, Repeat, Schedule,
};

use super::ctx::{Ctx, Obj};
use crate::template::Delimiters;

/// Plain data. Readers use it, and never check the edition.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Dialect {
    /// The delimiters around an expression in a text.
    pub delimiters: Delimiters,
    /// The expression language of a document that doesn't state one.
    pub language: Language,
    /// Words of enums are matched regardless of case (docs/language.md#decision-4: before 0.8).
    pub words_any_case: bool,
    /// The variables that expressions see.
    pub variables: &'static [&'static str],
    /// Pairs of names for findings: the reader's name, and the edition's. Needed if a document is rewritten before it
    /// is read. `/filter/data` is the reader's name `data` at and below any `filter`. The first that fits counts.
    pub own_names: &'static [(&'static str, &'static str)],
    /// Names of the reader that the edition doesn't have. Findings don't offer them.
    pub not_offered: &'static [&'static str],
    /// Names of the edition that rules take away or rename, by the beginning of the reader's word for the object that
    /// has them.
    pub further: &'static [(&'static str, &'static [&'static str])],
    /// `maxAttempts: 1` means one retry, not none (docs/language.md#decision-20: before 0.8).
    pub one_attempt_retries: bool,
    /// How a document states the target of a result, for run-time errors.
    pub merge_hint: &'static str,
    /// Parts of the language that only some editions have.
    pub parts: Parts,
}

/// Parts that only some of the editions have that a reader reads.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Parts {
    /// `timeout` of an action, which takes precedence over `actionExecTimeout`.
    pub action_timeout: bool,
    /// `retryRef` in a state's error handler: the whole state is repeated.
    pub handler_retry: bool,
    /// `max` of a foreach state: the number of iterations that run at once.
    pub foreach_max: bool,
    /// The three parts above are read with a warning, though the edition doesn't have them.
    pub earlier_parts: bool,
    /// Filters and conditions are JSONPath: a value is stored under the last name of its path
    /// (docs/language.md#decision-18), and a condition holds if it selects something (docs/language.md#decision-102).
    pub paths: bool,
    /// `expression` of a transition, which must hold (docs/language.md#decision-37).
    pub guards: bool,
    /// States have schemas of their input and output.
    pub state_schemas: bool,
    /// An end has a `kind`, and one that terminates ends waiting parents too (docs/language.md#decision-45).
    pub kinds_of_ends: bool,
    /// An inject state may have no data.
    pub injects_nothing: bool,
    /// Kinds of states that rules turn into others.
    pub further_kinds: &'static [&'static str],
    /// Reads `schedule`, if it has another form.
    pub schedule: Option<fn(&mut Ctx<'_>, &Node) -> Option<Schedule>>,
    /// Reads `repeat` of an action, which repeats the action.
    pub repeat: Option<fn(&mut Ctx<'_>, &Node) -> Option<Repeat>>,
    /// States of all kinds have `timeouts`, even those that sleep or inject.
    pub timeouts_of_all_states: bool,
    /// `stateExecTimeout` is only a duration, and no longer an object with `total`.
    pub state_timeout_is_text: bool,
    /// Any duration may be given as an expression.
    pub period_expressions: bool,
    /// Events have no `kind`: each may be both consumed and produced.
    pub events_without_kind: bool,
    /// A result that isn't an object and has no `toStateData` is stored under the action's name plus `-output`
    /// (docs/language.md#decision-98).
    pub result_under_name: bool,
    /// `key` is an expression over the input, by which users refer to an instance.
    pub instance_key: bool,
    /// The properties with which an action invokes something, if they aren't `functionRef`, `eventRef` and
    /// `subFlowRef`.
    pub action: Option<ActionReader>,
    /// How errors are described and handled, if not by a list with a name and a code for each.
    pub errors: Option<ErrorReader>,
    /// Additional function types, and operations that are objects.
    pub function: Option<FunctionReader>,
}

/// A reader for another form of actions.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ActionReader {
    pub properties: &'static [&'static str],
    /// The properties of which an action must have one.
    pub invocations: &'static [&'static str],
    /// Reads an invocation by any other name.
    pub invocation: fn(&mut Ctx<'_>, &str, &Node) -> Option<ActionKind>,
}

/// A reader for another form of errors.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ErrorReader {
    /// `errors` of the definition.
    pub definitions: fn(&mut Ctx<'_>, &Node),
    /// `onErrors` of a state.
    pub of_state: fn(&mut Ctx<'_>, Obj<'_>) -> Vec<Handler>,
    /// `onErrors` of an action.
    pub of_action: fn(&mut Ctx<'_>, Obj<'_>) -> Vec<ActionHandler>,
    /// Checks definitions that nothing has referred to, after all states have been read.
    pub unused: fn(&mut Ctx<'_>),
}

/// A reader for another form of functions.
#[derive(Debug, Clone, Copy)]
pub(crate) struct FunctionReader {
    /// Additional types.
    pub kinds: &'static [(&'static str, FunctionKind)],
    /// Reads an `operation` that is an object, to the text that the function holds.
    pub operation: fn(&mut Ctx<'_>, &Node, &FunctionKind) -> Option<String>,
}

impl Parts {
    /// None of these parts.
    pub const NONE: Parts = Parts {
        action_timeout: false,
        handler_retry: false,
        foreach_max: false,
        earlier_parts: false,
        paths: false,
        guards: false,
        state_schemas: false,
        kinds_of_ends: false,
        injects_nothing: false,
        further_kinds: &[],
        schedule: None,
        repeat: None,
        timeouts_of_all_states: false,
        state_timeout_is_text: false,
        period_expressions: false,
        events_without_kind: false,
        result_under_name: false,
        instance_key: false,
        action: None,
        errors: None,
        function: None,
    };
}

impl Dialect {
    /// jq in `${ }`, as from 0.8 on.
    pub const JQ: Dialect = Dialect {
        delimiters: Delimiters::Dollar,
        language: Language::Jq,
        words_any_case: false,
        variables: &["CONST", "SECRETS", "WORKFLOW"],
        own_names: &[],
        not_offered: &[],
        further: &[],
        one_attempt_retries: false,
        merge_hint: "set `toStateData` to its target",
        parts: Parts::NONE,
    };

    /// As in the drafts of 0.1, whose filters state the targets of results.
    pub const PATHS: Dialect = Dialect {
        merge_hint: "set `resultPath` to its target",
        ..Dialect::JSONPATH
    };

    /// JSONPath in `{{ }}`, as in 0.5.
    pub const JSONPATH: Dialect = Dialect {
        delimiters: Delimiters::Braces,
        language: Language::JsonPath,
        words_any_case: true,
        variables: &["CONST", "SECRETS", "WORKFLOW"],
        own_names: &[],
        not_offered: &[],
        further: &[],
        one_attempt_retries: true,
        merge_hint: "select a member of it, as in `$.name`: the selected value goes under that name",
        parts: Parts::NONE,
    };
}
