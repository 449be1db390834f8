//! Signs that occur only in documents of certain editions.

use swirl_documents::source::Node;

use super::facts::{Facts, Part};
use super::{Edition, Edition::*};

/// A sign: a property, possibly with a certain value.
pub(super) struct Sign {
    part: Part,
    pub property: &'static str,
    test: Test,
    /// The editions whose documents have it.
    pub of: &'static [Edition],
}

enum Test {
    /// The property is present.
    There,
    /// Its value is exactly this word.
    Word(&'static str),
    /// The same in any case, but for capitals.
    AnyCase(&'static str),
    /// Its value is a text in capitals.
    Capitals,
    Bool,
    Number,
    Text,
    Object,
    List,
    /// Its value is a text with an expression.
    Expression,
    /// It is present, and neither `id` nor `key` is.
    Alone,
}

impl Sign {
    /// The word of the sign.
    pub fn keyword(&self) -> Option<&'static str> {
        match self.test {
            Test::Word(word) | Test::AnyCase(word) => Some(word),
            _ => None,
        }
    }

    /// Describes the sign in a sentence, if the document has it.
    pub fn found(&self, facts: &Facts<'_>) -> Option<String> {
        let mut nodes = facts.of_part(self.part);
        nodes.find(|node| self.holds(node))?;
        let property = self.property;
        let holder = match self.part {
            Part::Root => "it",
            Part::Function => "a function",
            Part::Event => "an event",
            Part::State => "a state",
            Part::Branch => "a branch",
            Part::Choice => "a condition",
            Part::Entry => "an entry of an event state",
            Part::Action => "an action",
            Part::FunctionRef => "a function reference",
            Part::Handler => "an error handler",
            Part::StateFilter | Part::ActionFilter | Part::EventFilter => "a data filter",
            Part::Start => "a start",
            Part::End => "an end",
            Part::Transition => "a transition",
            Part::Timeouts => "the timeouts",
        };
        let whose = match self.part {
            Part::Root => format!("its '{property}'"),
            _ => format!("the '{property}' of {holder}"),
        };
        Some(match self.test {
            Test::There => format!("{holder} has '{property}'"),
            Test::Word(word) | Test::AnyCase(word) => format!("{holder} has '{property}: {word}'"),
            Test::Capitals => format!("{whose} is in capitals"),
            Test::Bool => format!("{whose} is true or false"),
            Test::Number => format!("{whose} is a number"),
            Test::Text => format!("{whose} is a string"),
            Test::Object => format!("{whose} is an object"),
            Test::List => format!("{whose} is a list"),
            Test::Expression => format!("{whose} is an expression"),
            Test::Alone => format!("{holder} has '{property}' and neither 'id' nor 'key'"),
        })
    }

    fn holds(&self, node: &Node) -> bool {
        let value = node.get(self.property);
        let text = value.and_then(Node::as_str);
        match self.test {
            Test::There => value.is_some(),
            Test::Word(word) => text == Some(word),
            Test::AnyCase(word) => {
                text.is_some_and(|text| text.eq_ignore_ascii_case(word) && !is_in_capitals(text))
            }
            Test::Capitals => text.is_some_and(is_in_capitals),
            Test::Bool => value.is_some_and(|value| value.as_bool().is_some()),
            Test::Number => value.is_some_and(Node::is_number),
            Test::Text => text.is_some(),
            Test::Object => value.is_some_and(|value| value.members().is_some()),
            Test::List => value.is_some_and(|value| value.items().is_some()),
            Test::Expression => text.is_some_and(|text| text.contains("${")),
            Test::Alone => value.is_some() && node.get("id").is_none() && node.get("key").is_none(),
        }
    }
}

fn is_in_capitals(text: &str) -> bool {
    text.len() > 1
        && text
            .bytes()
            .all(|byte| byte.is_ascii_uppercase() || byte == b'_')
}

const fn sign(part: Part, property: &'static str, test: Test, of: &'static [Edition]) -> Sign {
    Sign {
        part,
        property,
        test,
        of,
    }
}

const fn has(part: Part, property: &'static str, of: &'static [Edition]) -> Sign {
    sign(part, property, Test::There, of)
}

/// Both drafts in kebab-case.
const KEBAB: &[Edition] = &[V0_1Early, V0_1];
/// The drafts and the release of 0.1 in which expressions state their language.
const SPRING: &[Edition] = &[V0_1Release, Tasks];
/// All editions whose switches compare a path with a value.
const OPERATORS: &[Edition] = &[V0_1Early, V0_1, V0_1Release, Tasks];
/// All editions with `start` and `end` in states.
const KINDS: &[Edition] = &[V0_1Release, Tasks, V0_5];
const FROM_0_5: &[Edition] = &[V0_5, V0_6, V0_7, V0_8, V0_9];
const FROM_0_6: &[Edition] = &[V0_6, V0_7, V0_8, V0_9];
const FROM_0_7: &[Edition] = &[V0_7, V0_8, V0_9];
const FROM_0_8: &[Edition] = &[V0_8, V0_9];
const MIDDLE: &[Edition] = &[V0_5, V0_6];
const UP_TO_0_6: &[Edition] = &[V0_1Release, Tasks, V0_5, V0_6];
const EVENTS_BY_KIND: &[Edition] = &[V0_5, V0_6, V0_7, V0_8];
/// The name alone is a sign.
const NAMED: &[Edition] = &[V0_1Early, V0_1, V0_1Release, Tasks, V0_5, V0_6, V0_7, V0_9];
/// All editions with what 0.9 has changed since.
const UP_TO_0_8: &[Edition] = &[V0_7, V0_8];

/// All signs. A sign counts for each of its editions, and the edition with the most signs is the document's.
pub(super) const SIGNS: &[Sign] = &[
    // The drafts of 2019.
    has(Part::Root, "starts-at", &[V0_1]),
    has(Part::Branch, "starts-at", &[V0_1]),
    has(Part::Root, "schema-version", &[V0_1]),
    has(Part::Root, "trigger-defs", KEBAB),
    has(Part::Root, "exec-status", KEBAB),
    has(Part::State, "next-state", KEBAB),
    has(Part::State, "time-delay", KEBAB),
    has(Part::State, "action-mode", KEBAB),
    has(Part::Entry, "event-expression", KEBAB),
    has(Part::Entry, "next-state", KEBAB),
    has(Part::Choice, "next-state", KEBAB),
    has(Part::Branch, "wait-for-completion", KEBAB),
    has(Part::Action, "function", KEBAB),
    // Also in snapshots before 0.6, whose keys are in camel case.
    sign(Part::State, "start", Test::Bool, &[V0_1Early, V0_6]),
    sign(Part::State, "type", Test::Word("END"), &[V0_1Early]),
    sign(Part::State, "time-delay", Test::Number, &[V0_1Early]),
    sign(Part::Entry, "timeout", Test::Number, &[V0_1Early]),
    sign(Part::Action, "timeout", Test::Number, &[V0_1Early]),
    has(
        Part::Choice,
        "condition",
        &[V0_1Early, V0_5, V0_6, V0_7, V0_8, V0_9],
    ),
    // Before, it was an object.
    sign(Part::Choice, "condition", Test::Text, FROM_0_5),
    has(Part::Choice, "single", &[V0_1]),
    sign(
        Part::State,
        "end",
        Test::Bool,
        &[V0_1, V0_6, V0_7, V0_8, V0_9],
    ),
    // Spring 2020.
    has(Part::Root, "tasks", &[Tasks]),
    has(Part::State, "tasks", &[Tasks]),
    has(Part::Branch, "tasks", &[Tasks]),
    has(Part::State, "taskDataFilter", &[Tasks]),
    has(Part::Choice, "nextTask", &[Tasks]),
    has(Part::Transition, "nextTask", &[Tasks]),
    has(Part::State, "states", &[V0_1Release]),
    has(Part::Branch, "states", &[V0_1Early, V0_1, V0_1Release]),
    sign(Part::State, "type", Test::Word("RELAY"), &[V0_1Release]),
    sign(
        Part::State,
        "type",
        Test::Capitals,
        &[V0_1Early, V0_1, V0_1Release],
    ),
    has(Part::State, "inject", &[V0_1Release]),
    has(Part::State, "eventsActions", SPRING),
    has(Part::State, "choices", &[V0_1Early, V0_1, V0_1Release]),
    has(Part::State, "onError", SPRING),
    has(Part::State, "retry", SPRING),
    has(Part::State, "inputParameter", SPRING),
    has(Part::Branch, "waitForCompletion", &[V0_1Release]),
    has(Part::Function, "resource", SPRING),
    // Documents between these and 0.5 have it together with words of 0.5, which has no such functions. So it counts
    // more than those.
    sign(Part::Function, "resource", Test::Text, SPRING),
    sign(Part::State, "eventsActions", Test::There, SPRING),
    has(Part::Choice, "operator", OPERATORS),
    has(Part::Choice, "path", OPERATORS),
    // Documents of the release also have the words of the next texts, which have no such conditions. So they count more
    // than those.
    sign(Part::Choice, "operator", Test::Text, OPERATORS),
    sign(Part::Choice, "path", Test::Text, OPERATORS),
    has(Part::Event, "correlationToken", SPRING),
    has(Part::End, "produceEvent", SPRING),
    has(Part::Handler, "expression", SPRING),
    sign(Part::Start, "kind", Test::Capitals, &[V0_1Release]),
    sign(Part::End, "kind", Test::Capitals, &[V0_1Release]),
    has(Part::Root, "expressionLanguage", SPRING),
    // 0.5.
    has(Part::Root, "startsAt", KINDS),
    has(Part::Start, "kind", KINDS),
    has(Part::End, "kind", KINDS),
    has(Part::StateFilter, "dataInputPath", KINDS),
    has(Part::StateFilter, "dataOutputPath", KINDS),
    has(Part::ActionFilter, "dataInputPath", KINDS),
    has(Part::ActionFilter, "dataResultsPath", KINDS),
    has(Part::EventFilter, "dataInputPath", KINDS),
    has(Part::EventFilter, "dataOutputPath", KINDS),
    has(Part::State, "dataInputSchema", KINDS),
    has(Part::Transition, "expression", KINDS),
    has(Part::FunctionRef, "parameters", KINDS),
    has(Part::Event, "names", &[V0_5]),
    sign(Part::Start, "kind", Test::Word("default"), &[Tasks, V0_5]),
    sign(Part::End, "kind", Test::Word("default"), &[Tasks, V0_5]),
    has(Part::State, "onEvents", FROM_0_5),
    has(Part::State, "onErrors", FROM_0_5),
    has(Part::State, "iterationParam", FROM_0_5),
    has(
        Part::State,
        "dataConditions",
        &[Tasks, V0_5, V0_6, V0_7, V0_8, V0_9],
    ),
    has(Part::Function, "operation", FROM_0_5),
    has(Part::Root, "retries", FROM_0_5),
    // 0.5 and 0.6.
    sign(Part::State, "type", Test::AnyCase("delay"), UP_TO_0_6),
    sign(Part::State, "type", Test::AnyCase("subflow"), UP_TO_0_6),
    has(Part::State, "timeDelay", UP_TO_0_6),
    has(Part::State, "workflowId", UP_TO_0_6),
    has(Part::State, "max", UP_TO_0_6),
    has(Part::State, "timeout", UP_TO_0_6),
    has(Part::Handler, "error", MIDDLE),
    has(Part::Handler, "retryRef", MIDDLE),
    has(Part::State, "default", UP_TO_0_6),
    has(Part::State, "eventTimeout", MIDDLE),
    has(Part::State, "n", &[Tasks, V0_5, V0_6]),
    has(Part::Branch, "workflowId", MIDDLE),
    has(Part::State, "repeat", &[V0_6]),
    has(Part::Root, "execTimeout", &[V0_6]),
    has(
        Part::Action,
        "timeout",
        &[V0_1Early, V0_1, V0_1Release, Tasks, V0_5, V0_6],
    ),
    // 0.6 and later.
    sign(Part::Root, "start", Test::Text, FROM_0_6),
    sign(Part::Root, "start", Test::Object, FROM_0_6),
    has(Part::End, "terminate", FROM_0_6),
    has(Part::StateFilter, "input", FROM_0_6),
    has(Part::StateFilter, "output", FROM_0_6),
    has(Part::ActionFilter, "fromStateData", FROM_0_6),
    has(Part::ActionFilter, "results", FROM_0_6),
    has(Part::ActionFilter, "toStateData", FROM_0_6),
    has(Part::FunctionRef, "arguments", FROM_0_6),
    has(Part::Root, "expressionLang", FROM_0_6),
    has(Part::Root, "keepActive", FROM_0_6),
    // 0.7 and later.
    has(Part::Root, "auth", FROM_0_7),
    has(Part::Root, "secrets", FROM_0_7),
    has(Part::Root, "constants", FROM_0_7),
    has(Part::Root, "timeouts", FROM_0_7),
    has(Part::Root, "errors", FROM_0_7),
    has(Part::State, "timeouts", FROM_0_7),
    has(Part::State, "defaultCondition", FROM_0_7),
    has(Part::State, "numCompleted", FROM_0_7),
    has(Part::State, "batchSize", FROM_0_7),
    has(Part::State, "mode", FROM_0_7),
    has(Part::Action, "subFlowRef", FROM_0_7),
    has(Part::Action, "sleep", FROM_0_7),
    has(Part::Handler, "errorRefs", UP_TO_0_8),
    has(Part::Handler, "errorRef", UP_TO_0_8),
    has(Part::Action, "retryRef", UP_TO_0_8),
    has(Part::Root, "autoRetries", UP_TO_0_8),
    sign(Part::Root, "errors", Test::List, UP_TO_0_8),
    sign(Part::Timeouts, "stateExecTimeout", Test::Object, UP_TO_0_8),
    sign(Part::State, "type", Test::Word("sleep"), UP_TO_0_8),
    has(Part::End, "continueAs", FROM_0_7),
    has(Part::Root, "annotations", FROM_0_7),
    // 0.8 and later.
    has(Part::Action, "condition", FROM_0_8),
    has(Part::FunctionRef, "invoke", FROM_0_8),
    has(Part::ActionFilter, "useResults", FROM_0_8),
    has(Part::EventFilter, "useData", FROM_0_8),
    has(
        Part::Root,
        "dataOutputSchema",
        &[V0_1Release, Tasks, V0_8, V0_9],
    ),
    has(Part::Root, "extensions", &[V0_1Release, Tasks, V0_8, V0_9]),
    has(Part::Action, "eventRef", EVENTS_BY_KIND),
    has(Part::Event, "kind", EVENTS_BY_KIND),
    // 0.9.
    has(Part::Action, "publish", &[V0_9]),
    has(Part::Action, "subscribe", &[V0_9]),
    has(Part::Action, "onErrors", &[V0_9]),
    has(Part::Handler, "when", &[V0_9]),
    has(Part::Handler, "exceptWhen", &[V0_9]),
    has(Part::Handler, "then", &[V0_9]),
    has(Part::Handler, "refName", &[V0_9]),
    has(Part::State, "retry", &[V0_1Release, Tasks, V0_9]),
    sign(Part::Root, "errors", Test::Object, &[V0_9]),
    sign(Part::Function, "type", Test::Word("openapi"), &[V0_9]),
    sign(Part::Function, "type", Test::Word("http"), &[V0_9]),
    sign(Part::Function, "operation", Test::Object, &[V0_9]),
    sign(Part::Root, "key", Test::Expression, &[V0_9]),
    // In 0.8, something other than its name must identify a workflow.
    sign(Part::Root, "name", Test::Alone, NAMED),
];
