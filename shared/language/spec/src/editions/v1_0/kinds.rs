//! The kinds of tasks (DSL 1.0, "Task"), in alphabetical order. They read their lists of tasks with the reader, which finds
//! them here.

use swirl_model::workflow::StateKind;

use super::tasks::Kind;

pub(super) const KINDS: &[Kind] = &[
    Kind {
        word: "call",
        others: &["with"],
        read: |reader, it| reader.call(it.node, it.task, it.name),
    },
    Kind {
        word: "do",
        others: &[],
        read: |reader, it| Some(StateKind::Do(reader.tasks(it.node, "'do'"))),
    },
    Kind {
        word: "emit",
        others: &[],
        read: |reader, it| reader.emit(it.node),
    },
    Kind {
        word: "for",
        others: &["while", "do"],
        read: |reader, it| reader.for_task(it.node, it.task),
    },
    Kind {
        word: "fork",
        others: &[],
        read: |reader, it| reader.fork(it.node),
    },
    Kind {
        word: "listen",
        others: &["foreach"],
        read: |reader, it| reader.listen(it.node, it.task),
    },
    Kind {
        word: "raise",
        others: &[],
        read: |reader, it| reader.raise(it.node),
    },
    Kind {
        word: "run",
        others: &[],
        read: |reader, it| reader.run(it.node, it.name),
    },
    Kind {
        word: "set",
        others: &[],
        read: |reader, it| reader.set(it.node),
    },
    Kind {
        word: "switch",
        others: &[],
        read: |reader, it| reader.switch(it.list, it.place, it.node, it.then),
    },
    Kind {
        word: "try",
        others: &["catch"],
        read: |reader, it| reader.try_task(it.list, it.place, it.node, it.task),
    },
    Kind {
        word: "wait",
        others: &[],
        read: |reader, it| reader.length(it.node, "'wait'").map(StateKind::Sleep),
    },
];
