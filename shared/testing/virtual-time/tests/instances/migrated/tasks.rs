//! Instances of DSL 1.0.

use super::*;

/// An instance of the first of two versions, a second after its start, and how to move it.
struct Tasks(Run);

impl Tasks {
    fn new(first: &str, second: &str, input: Data) -> Tasks {
        let documents = [("1.0.0", first), ("2.0.0", second)].map(|(version, body)| {
            let body = body.trim();
            format!(
                "document: {{dsl: 1.0.3, namespace: shop, name: order, version: {version}}}\n{body}"
            )
        });
        Tasks(Run::of(&documents, "shop.order", "1.0.0", input))
    }

    fn migrate_at(&mut self, state: Option<&str>) -> Result<(), Unfit> {
        let (service, id) = (self.0.world.service.clone(), self.0.id());
        let target = Target {
            version: "2.0.0",
            state,
            mark: None,
        };
        let moved = self
            .0
            .world
            .wait(service.migrate(&id, target, &Operator::default()));
        moved.unwrap().map(drop)
    }

    fn migrate(&mut self) {
        self.migrate_at(None).unwrap();
        let instance = self.0.instance();
        assert_eq!(&*instance.header.definition.version, "2.0.0");
    }

    /// Why it doesn't fit, and that trying it changes nothing.
    fn misfit(&mut self) -> String {
        let (store, id) = (self.0.world.store.clone(), self.0.id());
        let before = self.0.world.wait(store.scopes(&id)).unwrap();
        let Err(Unfit::Misfit(reason)) = self.migrate_at(None) else {
            panic!("it fits")
        };
        assert_eq!(self.0.world.wait(store.scopes(&id)).unwrap(), before);
        reason
    }
}

fn completed(mut tasks: Tasks) -> Data {
    tasks.0.ended(Status::Completed)
}

/// It waits inside of a loop, an attempt and a list.
const NESTED: &str = r#"
do:
  - loop:
      for: {each: row, in: '${ [1, 2] }'}
      do:
        - careful:
            try:
              - inner:
                  do:
                    - hold: {wait: PT1M}
                    - count: {set: {n: '${ (.n // 0) + $row }'}}
            catch: {do: [{no: {set: {n: -1}}}]}
"#;

#[test]
fn the_position_in_nested_lists_is_found_by_names() {
    let other = r#"
do:
  - before: {set: {never: true}}
  - loop:
      for: {each: row, in: '${ [1, 2] }'}
      do:
        - ahead: {set: '${ . + {ahead: ((.ahead // 0) + 1)} }'}
        - careful:
            try:
              - more: {set: '${ . }'}
              - inner:
                  do:
                    - added: {set: '${ . }'}
                    - hold: {wait: PT5M}
                    - count: {set: '${ . + {n: ((.n // 0) + 10 * $row)} }'}
            catch: {do: [{no: {set: {n: -1}}}]}
  - after: {set: '${ . + {after: true} }'}
"#;
    let mut run = Tasks::new(NESTED, other, data!({}));
    run.migrate();
    // The first wait keeps its time, the second is that of the new version.
    run.0.until(120_000, Vec::new());
    assert_eq!(run.0.instance().state.status, Status::Running);
    run.0.until(400_000, Vec::new());
    let output = completed(run);
    assert_eq!(output, data!({"n": 30, "ahead": 1, "after": true}));
}

#[test]
fn what_the_other_version_lacks_is_named() {
    for (changes, says) in [
        (
            &[("hold:", "rest:")][..],
            "task 'hold' does not exist in version 2.0.0",
        ),
        (
            &[("inner:", "other:")],
            "task 'inner' does not exist in version 2.0.0",
        ),
        (
            &[("each: row", "each: line"), ("$row", "$line")],
            "the variables of task 'loop' have other names in version 2.0.0",
        ),
        (
            &[("hold: {wait: PT1M}", "hold: {set: {a: 1}}")],
            "task 'hold' is of type sleep there, and of type set in version 2.0.0",
        ),
        (
            &[(
                "inner:",
                "inner:\n                  output: {as: '${ $input }'}",
            )],
            "an expression in version 2.0.0 uses the input of task 'inner', which the instance has not kept",
        ),
    ] {
        let other = changes.iter();
        let other = other.fold(NESTED.to_owned(), |text, (from, to)| text.replace(from, to));
        let mut run = Tasks::new(NESTED, &other, data!({}));
        assert_eq!(run.misfit(), says);
    }
    let states = "id: shop.order\nversion: 2.0.0\nspecVersion: '0.8'\nstates: [{name: A, type: inject, data: {}, end: true}]";
    let tasks = format!(
        "document: {{dsl: 1.0.3, namespace: shop, name: order, version: 1.0.0}}\n{}",
        NESTED.trim()
    );
    let run = Run::of(
        &[tasks, states.to_owned()],
        "shop.order",
        "1.0.0",
        data!({}),
    );
    let misfit = Tasks(run).misfit();
    assert!(
        misfit.starts_with("only one of the versions is of DSL 1.0"),
        "{misfit}"
    );
}

/// It waits for events in two branches, one by one in the second.
const LISTENING: &str = r#"
do:
  - both:
      fork:
        branches:
          - first: {listen: {to: {one: {with: {type: a}}}}}
          - second:
              listen: {to: {any: [{with: {type: b}}, {with: {type: c}}], until: {one: {with: {type: stop}}}}}
              foreach:
                do:
                  - take: {set: {got: '${ $item.got }'}}
"#;

#[test]
fn waits_for_events_keep_their_place() {
    let other = LISTENING.replace(
        "do:\n  - both:",
        "do:\n  - ahead: {listen: {to: {one: {with: {type: b}}}}}\n  - both:",
    );
    let other = other.replace("{got: '${ $item.got }'}", "{now: '${ $item.got }'}");
    let mut run = Tasks::new(LISTENING, &other, data!({}));
    run.0.send("b", "1", 1_500);
    run.migrate();
    run.0.send("c", "2", 2_000);
    run.0.send("a", "3", 2_500);
    run.0.send("b", "4", 3_000);
    run.0.send("stop", "5", 4_000);
    let output = completed(run);
    let second = data!([{"got": "1"}, {"now": "2"}, {"now": "4"}]);
    assert_eq!(output, Data::array(vec![data!([{"got": "3"}]), second]));
    let mut run = Tasks::new(
        LISTENING,
        &LISTENING.replace("type: c", "type: d"),
        data!({}),
    );
    assert_eq!(
        run.misfit(),
        "task 'second' waits for other events in version 2.0.0"
    );
}

#[test]
fn a_failed_instance_continues_at_a_task_of_the_other_version() {
    let failing = "do: [{ask: {do: [{fail: {raise: {error: {type: 'https://a/b', status: 500}}}}]}}, {end: {set: {done: 1}}}]";
    let fixed = "do: [{begin: {set: '${ . + {begun: true} }'}}, {end: {set: '${ . + {done: 2} + $context }'}}]";
    let mut run = Tasks::new(failing, fixed, data!({"a": 1}));
    assert_eq!(run.0.instance().state.status, Status::Faulted);
    assert_eq!(run.misfit(), "task 'ask' does not exist in version 2.0.0");
    run.migrate_at(Some("begin")).unwrap();
    let edit = Action::Edit {
        state: Some("begin".to_owned()),
        data: data!({"b": 2}),
        context: Some(data!({"c": 3})),
    };
    run.0.operate(edit, 3_000);
    assert_eq!(
        completed(run),
        data!({"b": 2, "begun": true, "done": 2, "c": 3})
    );
}

#[test]
fn a_failed_task_is_tried_again_in_the_other_version() {
    let failing = "do: [{ask: {try: [{fail: {set: {n: '${ .n | error }'}}}], catch: {errors: {with: {status: 1}}}}}]";
    let fixed = failing.replace("'${ .n | error }'", "'${ .n + 1 }'");
    let mut run = Tasks::new(failing, &fixed, data!({"n": 1}));
    assert_eq!(run.0.instance().state.status, Status::Faulted);
    run.migrate();
    run.0.operate(Action::Retry, 3_000);
    assert_eq!(completed(run), data!({"n": 2}));
}

/// An operator continues a failed instance without another version.
#[test]
fn a_failed_call_is_skipped_or_another_task_is_run() {
    let failing = "
use: {functions: {broken: {call: http, with: {method: get, endpoint: 'https://a.example.com/b'}}}}
do:
  - first: {set: '${ . + {first: 1} }', export: {as: '{n: 1}'}}
  - around:
      do:
        - broken: {call: broken}
        - inner: {set: '${ {result: ., context: $context} }'}
  - last: {set: '${ . + {last: true} }'}
";
    let mut run = Tasks::new(failing, failing, data!({"a": 1}));
    assert_eq!(run.0.instance().state.status, Status::Faulted);
    run.0.operate(Action::Skip(data!(7)), 3_000);
    let skipped = data!({"result": 7, "context": {"n": 1}, "last": true});
    assert_eq!(completed(run), skipped);
    let mut run = Tasks::new(failing, failing, data!({"a": 1}));
    run.0.operate(Action::Rerun("last".to_owned()), 3_000);
    assert_eq!(completed(run), data!({"a": 1, "first": 1, "last": true}));
}
