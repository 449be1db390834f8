//! How the values of an edition are read where editions differ.

use swirl_model::workflow::{ActionHandler, ActionKind, FunctionKind, Handler, Language, Repeat};

use super::ctx::{Ctx, Obj};
use crate::source::Node;
use crate::template::Delimiters;

/// Plain data: a reader uses it, and never checks the edition.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Dialect {
    /// The delimiters around an expression in a text.
    pub delimiters: Delimiters,
    /// The expression language of a document that names none.
    pub language: Language,
    /// Words of enums are matched without regard to case (docs/language.md#decision-4: before 0.8).
    pub words_any_case: bool,
    /// Pairs of names for findings: the reader's name, and the edition's. Needed where a document
    /// is rewritten before it is read.
    pub own_names: &'static [(&'static str, &'static str)],
    /// `maxAttempts: 1` means one retry, not none (docs/language.md#decision-20: before 0.8).
    pub one_attempt_retries: bool,
    /// How a document says where a result goes; for errors at run time.
    pub merge_hint: &'static str,
    /// Parts of the language that not every edition has.
    pub parts: Parts,
}

/// Parts that a reader has for some of the editions that it reads.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Parts {
    /// `timeout` of an action; it takes precedence over `actionExecTimeout`.
    pub action_timeout: bool,
    /// `retryRef` of a state's error handler: the state is repeated as a whole.
    pub handler_retry: bool,
    /// `max` of a foreach state: this many iterations at once.
    pub foreach_max: bool,
    /// Reads `repeat` of an action: the action is repeated.
    pub repeat: Option<fn(&mut Ctx<'_>, &Node) -> Option<Repeat>>,
    /// States of all kinds have `timeouts`, also those that sleep and inject.
    pub timeouts_of_all_states: bool,
    /// `stateExecTimeout` is a duration alone, and no object with `total` any more.
    pub state_timeout_is_text: bool,
    /// A duration may be given as an expression anywhere.
    pub period_expressions: bool,
    /// Events have no `kind`: each may be consumed and produced.
    pub events_without_kind: bool,
    /// A result that isn't an object and has no `toStateData` goes under the action's name with
    /// `-output` (docs/language.md#decision-98).
    pub result_under_name: bool,
    /// `key` is an expression over the input, by which users refer to an instance.
    pub instance_key: bool,
    /// The properties by which an action invokes something, if they aren't `functionRef`,
    /// `eventRef` and `subFlowRef`.
    pub action: Option<ActionReader>,
    /// How errors are described and handled, if not by a list with a name and a code each.
    pub errors: Option<ErrorReader>,
    /// Function types, and operations that are objects.
    pub function: Option<FunctionReader>,
}

/// Actions of another shape.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ActionReader {
    pub properties: &'static [&'static str],
    /// Those of the properties of which an action has one.
    pub invocations: &'static [&'static str],
    /// Reads an invocation of any other name.
    pub invocation: fn(&mut Ctx<'_>, &str, &Node) -> Option<ActionKind>,
}

/// Errors of another shape.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ErrorReader {
    /// `errors` of the definition.
    pub definitions: fn(&mut Ctx<'_>, &Node),
    /// `onErrors` of a state.
    pub of_state: fn(&mut Ctx<'_>, Obj<'_>) -> Vec<Handler>,
    /// `onErrors` of an action.
    pub of_action: fn(&mut Ctx<'_>, Obj<'_>) -> Vec<ActionHandler>,
    /// Checks definitions that nothing has referred to, once all states are read.
    pub unused: fn(&mut Ctx<'_>),
}

/// Functions of another shape.
#[derive(Debug, Clone, Copy)]
pub(crate) struct FunctionReader {
    /// Further types.
    pub kinds: &'static [(&'static str, FunctionKind)],
    /// An `operation` that is an object, as the text that the function holds.
    pub operation: fn(&mut Ctx<'_>, &Node, &FunctionKind) -> Option<String>,
}

impl Parts {
    /// None of them.
    pub const NONE: Parts = Parts {
        action_timeout: false,
        handler_retry: false,
        foreach_max: false,
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
        own_names: &[],
        one_attempt_retries: false,
        merge_hint: "set `toStateData` to its target",
        parts: Parts::NONE,
    };

    /// As in the drafts of 0.1, whose filters give the places of results.
    pub const PATHS: Dialect = Dialect {
        merge_hint: "set `resultPath` to its target",
        ..Dialect::JSONPATH
    };

    /// JSONPath in `{{ }}`, as in 0.5.
    pub const JSONPATH: Dialect = Dialect {
        delimiters: Delimiters::Braces,
        language: Language::JsonPath,
        words_any_case: true,
        own_names: &[],
        one_attempt_retries: true,
        merge_hint: "select a member of it, as in `$.name`: the selected value goes under that name",
        parts: Parts::NONE,
    };
}
