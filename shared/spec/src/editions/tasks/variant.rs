//! The differences between the tasks draft and the release of 0.1.

/// The names of one of the two texts. A pair is the text's own name and the other one's.
#[derive(Debug)]
pub(crate) struct Variant {
    /// The name of a step in messages.
    pub state: &'static str,
    /// The list of steps.
    pub states: Pair,
    /// Where a transition leads.
    pub next: Pair,
    /// The filter of a step's input and output.
    pub filter: Pair,
    /// The kind of step that adds data.
    pub inject: Pair,
    /// The data that it adds.
    pub data: Pair,
    /// The event that is produced.
    pub produced: Pair,
    /// Conditions of a switch over data.
    pub conditions: Pair,
    /// A branch is waited for only if it says so (`waitForCompletion`).
    pub branches_awaited_if_said: bool,
    /// `Exists` with the value `false` asks whether nothing is there: no other operator does.
    pub exists_false: bool,
}

pub(crate) type Pair = (&'static str, &'static str);

pub(crate) static TASKS: Variant = Variant {
    state: "task",
    states: ("tasks", "states"),
    next: ("nextTask", "nextState"),
    filter: ("taskDataFilter", "stateDataFilter"),
    inject: ("inject", "relay"),
    data: ("data", "inject"),
    produced: ("eventRef", "nameRef"),
    conditions: ("dataConditions", "choices"),
    branches_awaited_if_said: false,
    exists_false: false,
};

pub(crate) static RELEASE: Variant = Variant {
    state: "state",
    states: ("states", "tasks"),
    next: ("nextState", "nextTask"),
    filter: ("stateDataFilter", "taskDataFilter"),
    inject: ("relay", "inject"),
    data: ("inject", "data"),
    produced: ("nameRef", "eventRef"),
    conditions: ("choices", "dataConditions"),
    branches_awaited_if_said: true,
    exists_false: true,
};
