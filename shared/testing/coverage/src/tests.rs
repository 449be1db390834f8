use swirl_scenario::run::VirtualRunner;

use super::*;

const DEFINITION: &str = "id: w
version: 1.0.0
specVersion: '0.8'
functions: [{name: f, operation: 'a.json#f'}]
errors: [{name: Lost, code: '404'}]
retries: [{name: often, delay: PT1S, maxAttempts: 3}]
states:
  - name: Ask
    type: operation
    actions: [{functionRef: f, retryRef: often, retryableErrors: [Lost]}]
    timeouts: {actionExecTimeout: PT1M}
    onErrors: [{errorRef: Lost, transition: Gone}]
    transition: Decide
  - name: Decide
    type: switch
    dataConditions:
      - {name: big, condition: '${ .size > 10 }', transition: Gone}
      - {name: small, condition: '${ .size < 5 }', end: true}
    defaultCondition: {transition: Both}
  - {name: Gone, type: inject, data: {}, end: true}
  - name: Both
    type: parallel
    branches:
      - {name: a, actions: [{functionRef: f, retryRef: often, retryableErrors: [Lost]}]}
    end: true
";

/// The coverage of scenarios, each of which is given by the function's answer.
fn covered(folder: &Path, answers: &[&str]) -> Coverage {
    let given = answers
        .iter()
        .map(|answer| format!("input: {{}}\nfunctions: {{f: {answer}}}\n"));
    covered_by(folder, DEFINITION, &given.collect::<Vec<_>>())
}

/// The coverage of scenarios of a definition.
fn covered_by(folder: &Path, definition: &str, given: &[String]) -> Coverage {
    std::fs::write(folder.join("w.sw.yaml"), definition).unwrap();
    let covering = Covering::new(&VirtualRunner);
    for given in given {
        let text = format!("workflows: [./w.sw.yaml]\n{given}expect: {{status: completed}}\n");
        let path = folder.join("x.scenario.yaml");
        let scenario = Scenario::parse(text.as_bytes(), &path).unwrap();
        covering.run(&scenario).unwrap();
    }
    covering.into_coverage()
}

/// `kind name` of the parts that didn't run.
fn missed(coverage: &Coverage) -> Vec<String> {
    let definitions: Vec<&Covered> = coverage.definitions().collect();
    assert_eq!(definitions.len(), 1);
    let row = |item: &Item| format!("{} {}", item.kind.as_str(), item.name);
    definitions[0].missed().map(row).collect()
}

const SMALL: &str = "{return: {size: 1}}";

#[test]
fn each_scenario_adds_its_coverage() {
    let folder = tempfile::tempdir().unwrap();
    let missed = |answers: &[&str]| missed(&covered(folder.path(), answers));
    let after_small = [
        "error path Ask -> Gone (Lost)",
        "retry Ask",
        "timeout Ask",
        "way Decide -> Gone (big)",
        "way Decide -> Both (default)",
        "state Gone",
        "way Gone -> end",
        "state Both",
        "way Both -> end",
        "retry Both",
    ];
    assert_eq!(missed(&[SMALL]), after_small);
    // Attempts fail until no retries are left, then the handler takes the error.
    let lost = "{error: {status: 404}}";
    let after_lost = [
        "timeout Ask",
        "way Decide -> Gone (big)",
        "way Decide -> Both (default)",
        "state Both",
        "way Both -> end",
        "retry Both",
    ];
    assert_eq!(missed(&[SMALL, lost]), after_lost);
    let never = "{never: true}";
    let big = "{return: {size: 11}}";
    let both = "[{return: {size: 7}}, {error: {status: 404}}, {return: {}}]";
    assert_eq!(missed(&[SMALL, lost, never, big, both]), [""; 0]);
    // A call that never ended led nowhere.
    assert!(missed(&[never]).contains(&"way Ask -> Decide".to_owned()));
}

#[test]
fn each_handler_counts() {
    let folder = tempfile::tempdir().unwrap();
    let definition = DEFINITION
        .replace("errors: [", "errors: [{name: Busy, code: '503'}, ")
        .replace(
            "onErrors: [{errorRef: Lost, transition: Gone}]",
            "onErrors: [{errorRef: Lost, transition: Gone}, {errorRef: Busy, transition: Gone}]",
        );
    std::fs::write(folder.path().join("w.sw.yaml"), definition).unwrap();
    let text = "workflows: [./w.sw.yaml]\ninput: {}\nfunctions: {f: {error: {status: 503}}}\n\
                expect: {status: completed}\n";
    let path = folder.path().join("x.scenario.yaml");
    let scenario = Scenario::parse(text.as_bytes(), &path).unwrap();
    let covering = Covering::new(&VirtualRunner);
    covering.run(&scenario).unwrap();
    let missed = missed(&covering.into_coverage());
    assert!(
        missed.contains(&"error path Ask -> Gone (Lost)".to_owned()),
        "{missed:?}"
    );
    assert!(
        !missed.contains(&"error path Ask -> Gone (Busy)".to_owned()),
        "{missed:?}"
    );
}

#[test]
fn text_and_json_output() {
    let folder = tempfile::tempdir().unwrap();
    let coverage = covered(folder.path(), &[SMALL, SMALL]);
    let text = coverage.text();
    let first = "w.sw.yaml: states 2 of 4, ways 2 of 6, error paths 0 of 1, retries 0 of 2, timeouts 0 of 1\n";
    assert!(text.contains(first), "{text}");
    assert!(text.contains("\n  20: state not run: Gone\n"), "{text}");
    let lcov = lcov(&coverage);
    for line in [
        "FN:8,Ask",
        "FNDA:2,Ask",
        "FNF:4",
        "FNH:2",
        "BRF:10",
        "BRH:2",
        "DA:8,2",
        "DA:20,0",
        "LF:4",
        "LH:2",
        "end_of_record",
    ] {
        assert!(lcov.lines().any(|known| known == line), "{line}\n{lcov}");
    }
}

#[test]
fn a_page_shows_covered_and_uncovered_parts() {
    let folder = tempfile::tempdir().unwrap();
    let lost = "{error: {status: 404}}";
    let coverage = covered(folder.path(), &[SMALL, SMALL, lost]);
    let page = html(&coverage);
    for part in [
        // The summary, the rows, the diagram and the document.
        "<td class=\"no\">3 of 4</td><td class=\"no\">3 of 6</td><td class=\"yes\">1 of 1</td>",
        "<tr><td class=\"n\">14</td><td>way</td><td>Decide -&gt; Gone (big)</td><td class=\"no\">not run</td></tr>",
        "<tr><td class=\"n\">8</td><td>state</td><td>Ask</td><td class=\"yes\">3×</td></tr>",
        "class=\"card covered\"",
        "class=\"card uncovered\"",
        "class=\"edge untaken\"",
        "class=\"edge error taken\"",
        ">ran 3×</text>",
        ">not run</text>",
        ">retries: 3×</text>",
        ">timeouts: not run</text>",
        "<tr class=\"miss\"><td class=\"n\">14</td><td>✗ 2 of 4 not run</td><td>  - name: Decide</td></tr>",
        "<tr class=\"run\"><td class=\"n\">20</td><td>✓ all run</td>",
    ] {
        assert!(page.contains(part), "{part}\n{page}");
    }
    // Nothing is loaded from elsewhere.
    assert!(!page.contains("src=") && !page.contains("<link") && !page.contains("@import"));
}

/// DSL 1.0, with each kind of task that has others inside.
const NESTED: &str = "document: {dsl: '1.0.3', namespace: a, name: nested, version: 1.0.0}
do:
  - first:
      try:
        - inner:
            if: '${ .wrong }'
            raise: {error: {type: https://x/wrong, status: 400}}
        - well: {set: '${ . }'}
      catch: {do: [{caught: {set: {wrong: true}}}]}
  - list:
      do:
        - one: {set: '${ . }'}
        - two: {set: '${ . }'}
  - loop:
      for: {each: x, in: '${ [1, 2] }'}
      do:
        - l1: {set: '${ . }'}
        - l2: {set: '${ . }'}
  - both:
      fork:
        branches:
          - b1: {set: {b: 1}}
          - b2: {do: [{b3: {set: {b: 1}}}]}
  - choose:
      switch:
        - right: {when: '${ $workflow.input.wrong | not }', then: end}
  - last: {set: {b: 1}}
";

#[test]
fn tasks_inside_of_others_count() {
    let folder = tempfile::tempdir().unwrap();
    let of = |inputs: &[&str]| {
        let given = inputs.iter().map(|input| format!("input: {input}\n"));
        covered_by(folder.path(), NESTED, &given.collect::<Vec<_>>())
    };
    let mut right = missed(&of(&["{}"]));
    right.sort();
    let not_run = [
        "state caught",
        "state inner",
        "state last",
        "way caught -> end",
        "way choose -> last or choose -> last (default)",
        "way last -> end",
    ];
    assert_eq!(right, not_run);
    assert_eq!(missed(&of(&["{}", "{wrong: true}"])), [""; 0]);
    let coverage = of(&["{}"]);
    let text = coverage.text();
    for line in ["  5: state not run: inner", "  9: state not run: caught"] {
        assert!(text.lines().any(|known| known == line), "{line}\n{text}");
    }
    let lcov = lcov(&coverage);
    for line in ["FN:3,first", "FN:22,b1", "DA:5,0", "DA:17,2"] {
        assert!(lcov.lines().any(|known| known == line), "{line}\n{lcov}");
    }
    let row =
        "<tr><td class=\"n\">9</td><td>state</td><td>caught</td><td class=\"no\">not run</td></tr>";
    assert!(html(&coverage).contains(row));
}

#[test]
fn paths_are_normalised() {
    for (path, form) in [
        ("./a/../w.yaml", "w.yaml"),
        ("../w.yaml", "../w.yaml"),
        ("a/./b/w.yaml", "a/b/w.yaml"),
    ] {
        assert_eq!(plain(Path::new(path)), Path::new(form));
    }
}
