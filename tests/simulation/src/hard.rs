//! A fixed set of cases that random workflows don't reach: operators, schedules, sets of events, instances that end
//! with their parent. Each must have the same kinds of outcomes, whatever the faults.

use swirl_model::{Data, data};
use swirl_service::Action;

use crate::cluster::{Plan, Planned};
use crate::plans::{event, operate, others, start};

pub struct Hard {
    pub name: &'static str,
    pub plan: Plan,
    /// The outcomes that must occur: workflow and status.
    pub wanted: &'static [&'static str],
}

fn hard(
    name: &'static str,
    text: &str,
    acts: Vec<(i64, Planned)>,
    wanted: &'static [&'static str],
) -> Hard {
    let head = format!("id: main\nversion: \"1.0.0\"\nspecVersion: \"0.8\"\n{FUNCTIONS}{text}");
    let documents = others().chain([head]).collect();
    Hard {
        name,
        plan: Plan { documents, acts },
        wanted,
    }
}

const FUNCTIONS: &str = r#"functions:
  - {name: quick, type: rest, operation: "file://shop.json#quick"}
  - {name: slow, type: rest, operation: "file://shop.json#slow"}
  - {name: broken, type: rest, operation: "file://shop.json#broken"}
  - {name: repaired, type: rest, operation: "file://shop.json#repaired"}
  - {name: endless, type: rest, operation: "file://shop.json#endless"}
"#;

const WAITING: &str = r#"start: A
events: [{name: Never, type: never}]
states: [{name: A, type: event, end: true, onEvents: [{eventRefs: [Never], actions: []}]}]
"#;

const FAILING: &str = r#"start: A
states:
  - {name: A, type: operation, transition: B, actions: [{functionRef: quick}, {functionRef: repaired}]}
  - {name: B, type: operation, transition: C, actions: [{functionRef: broken}]}
  - {name: C, type: sleep, duration: PT2S, end: true}
"#;

const GIVEN: &str = r#"start: A
retries: [{name: Never, delay: PT5S, maxAttempts: 0}]
states: [{name: A, type: operation, end: true, actions: [{functionRef: repaired, retryRef: Never}]}]
"#;

const FAILING_BRANCH: &str = r#"start: A
states:
  - name: A
    type: parallel
    end: true
    branches:
      - {name: X, actions: [{functionRef: slow}, {functionRef: repaired}, {functionRef: quick}]}
      - {name: Y, actions: [{functionRef: quick, sleep: {after: PT3S}}]}
"#;

const FAILING_ENTRIES: &str = r#"start: A
events:
  - {name: One, type: one, correlation: [{contextAttributeName: orderid, contextAttributeValue: "${ .order }"}]}
  - {name: Two, type: two, correlation: [{contextAttributeName: orderid, contextAttributeValue: "${ .order }"}]}
  - {name: More, type: more, correlation: [{contextAttributeName: orderid, contextAttributeValue: "${ .order }"}]}
states:
  - {name: A, type: inject, data: {begun: true}, transition: B}
  - name: B
    type: event
    exclusive: false
    end: true
    onEvents:
      - eventRefs: [One]
        eventDataFilter: {toStateData: .one}
        actions: [{functionRef: repaired, actionDataFilter: {toStateData: .a}}]
      - eventRefs: [Two]
        eventDataFilter: {toStateData: .two}
        actions:
          - {functionRef: slow, sleep: {before: PT1S}, actionDataFilter: {useResults: false}}
          - {functionRef: repaired, actionDataFilter: {toStateData: .b}}
      - eventRefs: [More]
        eventDataFilter: {toStateData: .more}
        actions: [{functionRef: slow, sleep: {before: PT3S}, actionDataFilter: {useResults: false}}]
"#;

const DEEP: &str = r#"start: A
states:
  - {name: A, type: parallel, end: true, branches: [
     {name: X, actions: [{subFlowRef: waits}]}, {name: Y, actions: [{subFlowRef: waits}, {functionRef: quick}]},
     {name: Z, actions: [{subFlowRef: {workflowId: waits, invoke: async, onParentComplete: terminate}}]}]}
"#;

const SET: &str = r#"start: A
events:
  - {name: One, type: one, correlation: [{contextAttributeName: orderid}]}
  - {name: Two, type: two, correlation: [{contextAttributeName: orderid}]}
  - {name: More, type: more, correlation: [{contextAttributeName: orderid}]}
states:
  - {name: A, type: event, exclusive: false, transition: B, onEvents: [{eventRefs: [One, Two], actions: [{functionRef: slow}]}]}
  - {name: B, type: event, end: true, onEvents: [{eventRefs: [More], actions: [{functionRef: quick}]}]}
"#;

const TIMEOUT: &str = r#"start: A
timeouts: {workflowExecTimeout: {duration: PT20S, interrupt: true, runBefore: Z}}
events: [{name: Made, type: made, kind: produced}]
states:
  - {name: A, type: operation, end: true, actions: [{functionRef: quick}, {functionRef: endless}]}
  - {name: Z, type: operation, actions: [{functionRef: slow}, {eventRef: {triggerEventRef: Made, data: "${ {n: 4} }"}}], end: true}
"#;

/// When its time is over, two branches only wait, and the third one has failed. After its retry all are left. The branches
/// of `Z` run to their end.
const SOFT_TIMEOUT: &str = r#"start: A
timeouts: {workflowExecTimeout: {duration: PT6S, runBefore: Z}}
states:
  - name: A
    type: parallel
    end: true
    branches:
      - {name: X, actions: [{functionRef: slow, sleep: {after: PT4H}}, {functionRef: slow}]}
      - {name: Y, actions: [{functionRef: slow, sleep: {before: PT5H}}]}
      - {name: V, actions: [{functionRef: slow}, {functionRef: repaired}, {functionRef: slow}]}
  - name: Z
    type: parallel
    branches: [{name: X, actions: [{functionRef: quick}]}, {name: Y, actions: [{functionRef: quick, sleep: {after: PT5S}}]}]
    end: true
"#;

/// Ends forty seconds after the beginning of a run.
const SCHEDULED: &str = r#"start: {stateName: A, schedule: {interval: "R/PT5S/2023-11-14T22:14:00Z"}}
states: [{name: A, type: operation, end: true, actions: [{functionRef: slow}]}]
"#;

/// A document of DSL 1.0.
fn tasks(
    name: &'static str,
    text: &str,
    acts: Vec<(i64, Planned)>,
    wanted: &'static [&'static str],
) -> Hard {
    let head = "document: {dsl: 1.0.3, namespace: sim, name: main, version: 1.0.0}\n";
    let documents = others().chain([format!("{head}{text}")]).collect();
    Hard {
        name,
        plan: Plan { documents, acts },
        wanted,
    }
}

const NESTED: &str = r#"do:
  - outer:
      try:
        - each:
            for: {each: n, in: "[1, 2]"}
            do:
              - both:
                  fork:
                    branches:
                      - left: {call: http, with: {method: get, endpoint: "http://sim.test/repaired/{n}"}}
                      - right: {do: [{pause: {wait: PT3S}}, {slow: {call: http, with: {method: get, endpoint: "http://sim.test/slow/1"}}}]}
      catch: {errors: {with: {status: 404}}}
  - last: {set: {ended: true}}
"#;

const RACING: &str = r#"do:
  - race:
      fork:
        compete: true
        branches:
          - call: {call: http, with: {method: get, endpoint: "http://sim.test/endless/1"}}
          - hear: {listen: {to: {any: [{with: {type: never}}], until: "length == 3"}}}
          - wait: {for: {in: "[1, 2]"}, do: [{pause: {wait: PT5H}}]}
"#;

const EVERY: &str = r#"schedule: {every: PT7S}
do: [{slow: {call: http, with: {method: get, endpoint: "http://sim.test/slow/1"}}}]
"#;

/// Each end has one successor.
const AFTER: &str = r#"schedule: {after: PT9S}
do: [{slow: {call: http, with: {method: get, endpoint: "http://sim.test/slow/1"}}}]
"#;

const ON: &str = r#"schedule: {on: {all: [{with: {type: one}}, {with: {type: two}}]}}
do:
  - heard: {set: {count: "${ length }"}}
  - more: {listen: {to: {one: {with: {type: more}, correlate: {order: {from: .orderid, expect: "42"}}}}}}
"#;

fn task(action: Action) -> Planned {
    operate("sim.main", "1", action)
}

/// Hard cases of DSL 1.0.
pub fn all_of_tasks() -> Vec<Hard> {
    let begin = || (0, start("sim.main", "1", 3));
    vec![
        tasks(
            "branches in a loop in a try are retried",
            NESTED,
            vec![begin(), (9_000, task(Action::Retry))],
            &["sim.main completed"],
        ),
        tasks(
            "cancelled in a race",
            RACING,
            vec![begin(), (5_000, task(Action::Cancel))],
            &["sim.main cancelled"],
        ),
        tasks(
            "a schedule of tasks",
            EVERY,
            vec![(45_000, start("leaf", "1", 3))],
            &["sim.main completed", "leaf completed"],
        ),
        tasks(
            "a schedule that follows its instances",
            AFTER,
            vec![(45_000, start("leaf", "1", 3))],
            &["sim.main completed", "leaf completed"],
        ),
        tasks(
            "events that start tasks",
            ON,
            vec![
                (0, Planned::Event(event("one"))),
                (300, Planned::Event(event("two"))),
                (20_000, Planned::Event(event("more"))),
            ],
            &["sim.main completed"],
        ),
    ]
}

fn me(action: Action) -> Planned {
    operate("main", "1", action)
}

pub fn all() -> Vec<Hard> {
    let begin = || (0, start("main", "1", 3));
    let mut seven = Data::object();
    seven.set("n", Data::int(7));
    vec![
        hard(
            "cancelled while it waits",
            WAITING,
            vec![begin(), (3_000, me(Action::Cancel))],
            &["main cancelled"],
        ),
        hard(
            "cancelled with all below it",
            DEEP,
            vec![begin(), (5_000, me(Action::Cancel))],
            &["main cancelled"],
        ),
        hard(
            "retried, then skipped",
            FAILING,
            vec![
                begin(),
                (6_000, me(Action::Retry)),
                (9_000, me(Action::Skip(seven))),
            ],
            &["main completed"],
        ),
        // If it were an error of the action, it would be called again and succeed.
        hard(
            "skipped with what cannot be merged",
            GIVEN,
            vec![begin(), (9_000, me(Action::Skip(data!([1]))))],
            &["main faulted"],
        ),
        hard(
            "run again from a later state",
            FAILING,
            vec![begin(), (9_000, me(Action::Rerun("C".to_owned())))],
            &["main completed"],
        ),
        hard(
            "a failed branch is retried",
            FAILING_BRANCH,
            vec![begin(), (8_000, me(Action::Retry))],
            &["main completed"],
        ),
        hard(
            "entries of an event state are retried",
            FAILING_ENTRIES,
            vec![
                (0, Planned::Event(event("two"))),
                (0, Planned::Event(event("more"))),
                begin(),
                (600, Planned::Event(event("one"))),
                (9_000, me(Action::Retry)),
                (29_000, me(Action::Retry)),
            ],
            &["main completed"],
        ),
        hard(
            "started by a set of events",
            SET,
            vec![
                (0, Planned::Event(event("one"))),
                (300, Planned::Event(event("two"))),
                (20_000, Planned::Event(event("more"))),
            ],
            &["main completed"],
        ),
        hard(
            "a timeout with runBefore",
            TIMEOUT,
            vec![begin()],
            &["main terminated"],
        ),
        hard(
            "a timeout that lets branches finish",
            SOFT_TIMEOUT,
            vec![begin(), (9_000, me(Action::Retry))],
            &["main terminated"],
        ),
        hard(
            "a schedule",
            SCHEDULED,
            vec![(45_000, start("leaf", "1", 3))],
            &["main completed", "leaf completed"],
        ),
    ]
}

/// Branches with one call each, one at a time, for a crash at every point.
pub fn branches(count: usize) -> Plan {
    let branch = |index: usize| {
        format!(
            "{{name: B{index}, actions: [{{functionRef: {{refName: slow, arguments: {{b: {index}}}}}, \
             actionDataFilter: {{toStateData: \".b{index}\"}}}}]}}"
        )
    };
    let branches: Vec<String> = (0..count).map(branch).collect();
    let text = format!(
        "start: A\nevents: [{{name: Made, type: made, kind: produced}}]\nstates: [{{name: A, type: parallel, \
         branches: [{}], end: {{produceEvents: [{{eventRef: Made, data: \"${{ {{n: 1}} }}\"}}]}}}}]\n",
        branches.join(", ")
    );
    hard("branches", &text, vec![(0, start("main", "1", 3))], &[]).plan
}
