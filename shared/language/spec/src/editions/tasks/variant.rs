//! The differences between the tasks draft and the release of 0.1.

/// The names in one of the two texts. A pair has the text's own name and the other text's name.
#[derive(Debug)]
pub(crate) struct Variant {
    /// The word for a state in messages.
    pub state: &'static str,
    /// The list of states.
    pub states: Pair,
    /// The target of a transition.
    pub next: Pair,
    /// The filter of a state's input and output.
    pub filter: Pair,
    /// The kind of state that adds data.
    pub inject: Pair,
    /// The data that it adds.
    pub data: Pair,
    /// The produced event.
    pub produced: Pair,
    /// The conditions of a switch over data.
    pub conditions: Pair,
    /// A branch is awaited only if it says so (`waitForCompletion`).
    pub branches_awaited_if_said: bool,
    /// `Exists` with the value `false` tests for absence, which no other operator does.
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
