//! What a chart consists of.

use crate::line::Line;

/// A workflow in drawable form.
#[derive(Debug)]
pub struct Chart {
    pub title: String,
    pub captions: Vec<String>,
    pub flow: Flow,
    /// Only the names of the main flow's states, without ways.
    pub is_simple: bool,
}

/// A flow of states: the workflow's own, or one inside a branch or iteration.
#[derive(Debug, Default)]
pub struct Flow {
    /// The start is first.
    pub nodes: Vec<Node>,
    pub edges: Vec<Edge>,
}

#[derive(Debug)]
pub enum Node {
    Start,
    /// The workflow timed out.
    Timeout(String),
    State(Box<Card>),
    End {
        terminate: bool,
        notes: Vec<Line>,
    },
}

/// A state.
#[derive(Debug)]
pub struct Card {
    pub name: Line,
    pub kind: &'static str,
    /// Runs only in order to undo another state.
    pub compensating: bool,
    pub lines: Vec<Line>,
    /// Branches, iterations, entries of an event state.
    pub groups: Vec<Group>,
    /// The instance's progress in this state, whether tests have run it, or how many instances are in it.
    pub mark: Option<Mark>,
    /// The place of this state in the order in which an instance has entered states, from 1; 0 if it hasn't.
    pub order: u32,
}

/// An instance's progress in a state, the number of times that tests have run it, or how many instances are in it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Mark {
    Past,
    Here,
    Failed,
    /// It was left by an error, which was handled.
    Caught,
    /// It was done, and has been undone since.
    Compensated,
    Covered(u64),
    Uncovered,
    Occupied {
        running: u64,
        faulted: u64,
        /// How full it is compared with the others, from 1 to 3.
        level: u8,
    },
}

#[derive(Debug)]
pub struct Group {
    /// Empty if the group has no title.
    pub title: Line,
    pub lines: Vec<Line>,
    pub flow: Option<Flow>,
    /// It is a branch that failed.
    pub has_failed: bool,
}

impl Group {
    pub fn new(title: Line, lines: Vec<Line>, flow: Option<Flow>) -> Group {
        Group {
            title,
            lines,
            flow,
            has_failed: false,
        }
    }
}

#[derive(Debug)]
pub struct Edge {
    pub from: usize,
    pub to: usize,
    pub labels: Vec<Line>,
    pub style: Style,
    pub trace: Trace,
}

/// Whether a way was taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Trace {
    /// Unknown, or an instance hasn't taken it.
    Plain,
    Taken,
    /// No test has taken it.
    Uncovered,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Style {
    Normal,
    Error,
    Compensation,
    Timeout,
}
