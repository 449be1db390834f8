use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use serde_json::json;
use swirl_api::Instance;
use swirl_api::history::{History, HistoryEntry};
use swirl_scenario::ObservedInstance;

use super::*;
use crate::record::{Exported, ExportedDefinition};

const PAY: &str = "id: pay
version: 1.0.0
specVersion: '0.8'
secrets: [shop]
functions:
  - {name: charge, operation: 'a.json#f'}
  - {name: refund, operation: 'a.json#g'}
errors: [{name: Busy, code: '503'}]
retries: [{name: Again, delay: PT1S, maxAttempts: 3, jitter: 0.5}]
states:
  - name: Pay
    type: operation
    actions:
      - functionRef: {refName: charge, arguments: {key: '${ $SECRETS.shop.key }', sum: '${ .sum }'}}
        retryRef: Again
        retryableErrors: [Busy]
        actionDataFilter: {toStateData: '${ .paid }'}
    transition: Decide
  - name: Decide
    type: switch
    dataConditions:
      - {condition: '${ .paid.sum > 5 }', transition: Wait}
    defaultCondition: {transition: Both}
  - {name: Wait, type: sleep, duration: PT5S, transition: Both}
  - name: Both
    type: parallel
    branches:
      - {name: a, actions: [{subFlowRef: ship}]}
      - {name: b, actions: [{functionRef: {refName: charge, arguments: {sum: 1}}}]}
    end: true
";

const SHIP: &str = "id: ship
version: 1.0.0
specVersion: '0.8'
states:
  - {name: Pack, type: inject, data: {parcel: 1}, transition: Send}
  - {name: Send, type: inject, data: {sent: true}, end: true}
";

fn indented(text: &str) -> String {
    text.lines().map(|line| format!("    {line}\n")).collect()
}

/// The export of an instance that ran in virtual time.
fn exported() -> Export {
    let text = format!(
        "input: {{sum: 7}}
secrets: {{shop: {{key: '***'}}}}
functions:
  charge:
    - {{error: {{status: 503, message: busy}}, after: PT0.02S}}
    - {{return: {{sum: 7}}, after: PT0.25S}}
    - {{return: {{sum: 1}}, after: PT1S}}
expect: {{status: completed}}
workflows:
  -
{}  -
{}",
        indented(PAY),
        indented(SHIP)
    );
    export_of(&text, &[("pay", PAY), ("ship", SHIP)])
}

fn export_of(text: &str, definitions: &[(&str, &str)]) -> Export {
    let scenario = Scenario::parse(text.as_bytes(), Path::new("x.scenario.yaml")).unwrap();
    let answers = Arc::new(swirl_scenario::answer::Answers::new(&scenario.functions));
    let caller = swirl_scenario::mock::mock(answers, None, BTreeMap::new(), Default::default());
    let readings = read_all(&scenario).unwrap();
    let observed = run_with(
        &scenario,
        readings,
        caller,
        &SentRequests::default(),
        Keeps::Data,
        || Ok(()),
    )
    .unwrap();
    assert_eq!(scenario.expect.check(&observed), []);
    let instance = |one: &ObservedInstance| {
        let instance = json!({"id": one.id, "workflow": one.workflow, "version": one.version, "status": one.status,
            "startedAt": format!("{:.3}", one.started_at), "input": match one.subflow {
                true => json!({"sum": 7, "paid": {"sum": 7}}),
                false => json!({"sum": 7}),
            }, "output": one.output, "parent": one.subflow.then_some("0123")});
        let instance: Instance = serde_json::from_value(instance).unwrap();
        let history = History {
            id: instance.id.clone(),
            workflow: instance.workflow.clone(),
            version: instance.version.clone(),
            status: instance.status.clone(),
            before: 0,
            total: one.history.len() as u64,
            more: false,
            entries: one.history.iter().map(HistoryEntry::from).collect(),
        };
        Exported { instance, history }
    };
    let definitions = definitions.iter();
    let definitions = definitions.map(|(id, document)| ExportedDefinition {
        id: (*id).to_owned(),
        version: "1.0.0".to_owned(),
        document: (*document).to_owned(),
        resources: BTreeMap::new(),
    });
    Export {
        instances: observed.instances.iter().map(instance).collect(),
        definitions: definitions.collect(),
        ..Export::new()
    }
}

fn replayed(text: &str) -> Replayed {
    replayed_of(&exported(), text)
}

/// Replays an export, with another text of one of its definitions in a file.
fn replayed_of(export: &Export, text: &str) -> Replayed {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("w.sw.yaml");
    std::fs::write(&file, text).unwrap();
    let resources = swirl_spec::resource::MapResources::default();
    let options = swirl_spec::Options::default();
    let reading = swirl_spec::read(text.as_bytes(), &resources, &options);
    let changed = Changed {
        path: file.display().to_string(),
        text: text.to_owned(),
        workflow: reading.workflow.unwrap(),
    };
    let mut replayed = replay(export, &[changed]).unwrap();
    for first in [&mut replayed.first, &mut replayed.shifted]
        .into_iter()
        .flatten()
    {
        if let Some((file, _)) = &mut first.place {
            *file = "w.sw.yaml".to_owned();
        }
    }
    assert_eq!(replayed.notes, [""; 0]);
    replayed
}

fn departure_of(text: &str) -> String {
    shown_departure(&replayed(text))
}

/// The text without the line that names the instance.
fn shown_departure(replayed: &Replayed) -> String {
    assert!(!replayed.is_same());
    let text = replayed.text();
    let (first, rest) = text.split_once('\n').unwrap();
    assert!(
        first.starts_with("different: ") && first.ends_with("pay:1.0.0 takes a different path")
    );
    rest.to_owned()
}

#[test]
fn the_same_definition_takes_the_same_path() {
    for text in [PAY, SHIP] {
        let replayed = replayed(text);
        assert!(replayed.is_same(), "{}", replayed.text());
        assert!(replayed.shifted.is_none(), "{}", replayed.text());
        assert!(
            replayed
                .text()
                .ends_with(" of pay:1.0.0 takes the same path (26 lines)\n"),
            "{}",
            replayed.text()
        );
    }
    // Another version, and other names that don't occur in histories.
    let renamed = PAY.replace("1.0.0", "2.0.0").replace("Busy", "TooMany");
    assert!(replayed(&renamed).is_same());
}

#[test]
fn another_condition() {
    insta::assert_snapshot!(departure_of(&PAY.replace("> 5", "> 50")), @r#"
    in state 'Decide' (w.sw.yaml:19):
                    0.861s  left Pay
                    0.861s  entered Decide
                    0.861s  left Decide
      expected      0.861s  entered Wait
      got           0.861s  entered Both
    "#);
}

#[test]
fn tasks_have_their_lines() {
    let document = "document: {dsl: 1.0.3, namespace: test, name: pay, version: 1.0.0}
do:
  - decide:
      switch:
        - much: {when: .sum > 5, then: wait}
        - little: {then: both}
  - wait: {wait: PT5S}
  - both: {set: {sum: '${ .sum }'}}
";
    let text = format!(
        "input: {{sum: 7}}\nexpect: {{status: completed}}\nworkflows:\n  -\n{}",
        indented(document)
    );
    let export = export_of(&text, &[("test.pay", document)]);
    assert!(replayed_of(&export, document).is_same());
    let changed = replayed_of(&export, &document.replace("> 5", "> 50"));
    insta::assert_snapshot!(shown_departure(&changed), @r#"
    in task 'decide' (w.sw.yaml:3):
                    0.000s  started
                    0.000s  entered decide
                    0.000s  left decide
      expected      0.000s  entered wait
      got           0.000s  entered both
    "#);
}

#[test]
fn other_arguments() {
    insta::assert_snapshot!(departure_of(&PAY.replace("${ .sum }", "${ .sum + 1 }")), @r#"
    in state 'Pay' (w.sw.yaml:11):
                    0.000s  started
                    0.000s  entered Pay
                    0.000s    action charge
      expected      0.020s    action charge failed: FunctionError (503): busy; again in 0.6 s
      got           0.020s    action charge failed: FunctionError (503): busy; again in 0.6 s
               /data/arguments/sum: expected 7, got 8
    "#);
}

#[test]
fn another_function_has_no_answer() {
    let text = PAY.replace(
        "refName: charge, arguments: {sum: 1}",
        "refName: refund, arguments: {sum: 1}",
    );
    insta::assert_snapshot!(departure_of(&text), @r#"
    in state 'Both' (w.sw.yaml:25):
      expected      5.861s  [r.5.1]   action charge in Both
      got           5.861s  [r.5.1]   action refund in Both
    status: expected completed, got waiting
    output: there is no output: the instance is waiting
    calls: no answer is recorded for refund {"sum":1}; the replay stops there
    "#);
}

#[test]
fn a_new_state() {
    let text = PAY.replace("transition: Decide\n", "transition: Note\n  - {name: Note, type: inject, data: {noted: true}, transition: Decide}\n");
    insta::assert_snapshot!(departure_of(&text), @r#"
    in state 'Pay' (w.sw.yaml:11):
                    0.611s    action charge, attempt 2
                    0.861s    action charge completed, attempt 2
                    0.861s  left Pay
      expected      0.861s  entered Decide
      got           0.861s  entered Note
    output: differs
      /noted: not expected, got true
    "#);
}

#[test]
fn a_changed_sub_workflow() {
    insta::assert_snapshot!(departure_of(&SHIP.replace("transition: Send", "end: true")
        .replace("\n  - {name: Send, type: inject, data: {sent: true}, end: true}", "")), @r#"
    in 'ship', which it started, in state 'Pack' (w.sw.yaml:5):
                    0.000s  started
                    0.000s  entered Pack
                    0.000s  left Pack
      expected      0.000s  entered Send
      got           0.000s  completed
    output: differs
      /sent: expected true, is missing
    "#);
}

#[test]
fn another_output_alone() {
    insta::assert_snapshot!(departure_of(&PAY.replace("    end: true\n", "    stateDataFilter: {output: '${ {paid} }'}\n    end: true\n")), @r#"
    output: differs
      /sum: expected 1, is missing
      /parcel: expected 1, is missing
      /sent: expected true, is missing
    "#);
}

#[test]
fn other_times_are_shown_but_are_not_a_difference() {
    let replayed = replayed(&PAY.replace("PT5S", "PT7S"));
    assert!(replayed.is_same());
    insta::assert_snapshot!(replayed.text().split_once('\n').unwrap().1, @r#"
    the same lines come at other times, the first of them here:
    in state 'Both' (w.sw.yaml:25):
      expected      5.861s  [r.5.0]   action ship in Both
      got           7.861s  [r.5.0]   action ship in Both
    "#);
}

#[test]
fn json_output() {
    let json = replayed(&PAY.replace("> 5", "> 50")).json();
    assert_eq!(json["same"], false);
    assert_eq!(json["first"]["expected"]["entry"]["name"], "Wait");
    assert_eq!(json["first"]["actual"]["entry"]["name"], "Both");
    assert_eq!(
        (&json["first"]["state"], &json["first"]["line"]),
        (&json!("Decide"), &json!(19))
    );
    assert_eq!(json["first"]["before"].as_array().unwrap().len(), 3);
    let same = replayed(PAY).json();
    assert_eq!(
        (&same["same"], &same["first"]),
        (&json!(true), &json!(null))
    );
}

#[test]
fn a_refused_definition_is_reported() {
    // It is valid by itself, but its sub-workflow doesn't exist.
    let text = PAY.replace("subFlowRef: ship", "subFlowRef: send");
    let replayed = replayed(&text);
    assert!(!replayed.is_same(), "{}", replayed.text());
}
