//! The differences between the two drafts of 0.1.

use swirl_model::workflow::Comparison;

/// A draft as plain data. Readers use it, and never check which draft they read.
pub(in crate::editions) struct Draft {
    /// The other draft's name in sentences.
    pub other: &'static str,
    /// Lengths of time are whole numbers of seconds; otherwise ISO 8601 durations.
    pub seconds: bool,
    /// A flow starts with the state that has `start: true`; otherwise with the one that `starts-at` names.
    pub start_is_marked: bool,
    /// A flow ends in states of type END; otherwise in states with `end: true`.
    pub end_states: bool,
    /// Choices are nested conditions; otherwise lists of comparisons.
    pub conditions_nest: bool,
    /// The words for `exec-status`.
    pub exec_status: &'static [&'static str],
    /// Properties of the top level.
    pub properties: &'static [&'static str],
    pub operators: &'static [Operator],
}

/// An operator for comparisons.
#[derive(Debug, Clone, Copy)]
pub(in crate::editions) struct Operator {
    pub word: &'static str,
    pub comparison: Comparison,
    /// Both sides are written as texts.
    pub as_text: bool,
}

const fn operator(word: &'static str, comparison: Comparison) -> Operator {
    Operator {
        word,
        comparison,
        as_text: false,
    }
}

const fn text_operator(word: &'static str, comparison: Comparison) -> Operator {
    Operator {
        word,
        comparison,
        as_text: true,
    }
}

/// October 2019.
pub(in crate::editions) static EARLY: Draft = Draft {
    other: "the draft of November 2019",
    seconds: true,
    start_is_marked: true,
    end_states: true,
    conditions_nest: true,
    exec_status: &[
        "SYS.Timeout",
        "SYS.Fail",
        "SYS.Success",
        "SYS.InvalidParameter",
    ],
    properties: &["name", "exec-status", "trigger-defs", "states"],
    operators: &[
        operator("Exists", Comparison::Present),
        operator("Equals", Comparison::Equal),
        operator("LessThan", Comparison::Less),
        operator("LessThanEquals", Comparison::LessOrEqual),
        operator("GreaterThan", Comparison::Greater),
        operator("GreaterThanEquals", Comparison::GreaterOrEqual),
    ],
};

/// November 2019.
pub(in crate::editions) static NOVEMBER: Draft = Draft {
    other: "the early draft of 0.1",
    seconds: false,
    start_is_marked: false,
    end_states: false,
    conditions_nest: false,
    exec_status: &["Success", "Fail", "Timeout", "Invalid"],
    properties: &[
        "id",
        "name",
        "description",
        "version",
        "schema-version",
        "starts-at",
        "exec-status",
        "trigger-defs",
        "states",
    ],
    operators: &[
        operator("EQ", Comparison::Equal),
        operator("LT", Comparison::Less),
        operator("LTEQ", Comparison::LessOrEqual),
        operator("GT", Comparison::Greater),
        operator("GTEQ", Comparison::GreaterOrEqual),
        text_operator("StrEQ", Comparison::Equal),
        text_operator("StrLT", Comparison::Less),
        text_operator("StrLTEQ", Comparison::LessOrEqual),
        text_operator("StrGT", Comparison::Greater),
        text_operator("StrGTEQ", Comparison::GreaterOrEqual),
    ],
};

impl Draft {
    /// The draft whose forms are accepted here with a warning.
    pub fn sibling(&self) -> &'static Draft {
        if self.start_is_marked {
            &NOVEMBER
        } else {
            &EARLY
        }
    }
}
