use super::*;

fn findings(text: &str) -> Vec<String> {
    let reading = swirl_spec::read(
        text.as_bytes(),
        &MapResources::default(),
        &Options::default(),
    );
    reading
        .diagnostics
        .iter()
        .map(ToString::to_string)
        .collect()
}

const YAML: &str = "\
id: greet
version: 1.0.0
specVersion: '0.8'
start: Greet # the first
functions:
  - name: log
    type: custom
    operation: sysout
  - name: token
    type: expression
    operation: '$SECRET.jira + \"/x\"'
states:
  - name: Greet
    type: operation
    actions:
      - functionRef:
          refName: log
          arguments:
            message: .name
            quoted: \"$.name\"
            old: \"{{ $.name }}\"
            text: a text
      - {functionRef: {refName: log, arguments: \".\"}}
      - functionRef: token
        actionDataFilter: {toStateData: .token}
    transition: Choose
  - name: Choose
    type: switch
    dataConditions:
      - {condition: .x, transition: Both}
    defaultCondition: Idle
  - name: Both
    type: parallel
    completionType: allOf
    numCompleted: 0
    branches: [{name: a, actions: [{functionRef: log}]}]
    transition: Idle
  - name: Idle
    type: operation
    end: true
";

const REWRITTEN: &str = "\
id: greet
version: 1.0.0
specVersion: '0.8'
start: Greet # the first
functions:
  - name: log
    type: custom
    operation: sysout
  - name: token
    type: expression
    # swirl migrate: secrets are '$SECRETS' here
    operation: \"$SECRETS.jira + \\\"/x\\\"\"
# swirl migrate: the secrets that the definition uses are listed
secrets: [jira]
states:
  - name: Greet
    type: operation
    actions:
      - functionRef:
          refName: log
          arguments:
            # swirl migrate: an expression is marked with '${ }'
            message: \"${ .name }\"
            # swirl migrate: an expression is marked with '${ }'
            quoted: \"${ .name }\"
            # swirl migrate: an expression is marked with '${ }'
            old: \"${ .name }\"
            text: a text
      # swirl migrate: an expression is marked with '${ }'
      - {functionRef: {refName: log, arguments: \"${ . }\"}}
      - functionRef: token
        actionDataFilter: {toStateData: .token}
    transition: Choose
  - name: Choose
    type: switch
    dataConditions:
      - {condition: .x, transition: Both}
    # swirl migrate: 'defaultCondition' is an object with a transition
    defaultCondition: {transition: Idle}
  - name: Both
    type: parallel
    completionType: allOf
    # swirl migrate: 'numCompleted' belongs to 'completionType: atLeast'
    branches: [{name: a, actions: [{functionRef: log}]}]
    transition: Idle
  - name: Idle
    # swirl migrate: an operation without actions has an empty list
    actions: []
    type: operation
    end: true
";

#[test]
fn yaml_keeps_its_layout_and_gets_comments() {
    let rewritten = rewrite(YAML).unwrap();
    assert_eq!(rewritten.text, REWRITTEN);
    let errors = findings(&rewritten.text);
    let errors: Vec<_> = errors
        .iter()
        .filter(|line| line.contains("error"))
        .collect();
    assert!(errors.is_empty(), "{errors:?}");
    let lines: Vec<usize> = rewritten.changes.iter().map(|change| change.line).collect();
    assert_eq!(lines, [11, 12, 19, 20, 21, 23, 31, 35, 39]);
    // Nothing is left to rewrite.
    assert!(rewrite(&rewritten.text).unwrap().changes.is_empty());
}

#[test]
fn json_is_rewritten_without_comments() {
    let root = source::parse(YAML.as_bytes(), &Limits::default()).unwrap();
    let json = serde_json::Value::from(&root.to_data());
    for json in [
        json.to_string(),
        serde_json::to_string_pretty(&json).unwrap(),
    ] {
        let rewritten = rewrite(&json).unwrap();
        assert!(rewritten.changes.len() >= 3, "{:?}", rewritten.changes);
        serde_json::from_str::<serde_json::Value>(&rewritten.text).unwrap();
        let errors = findings(&rewritten.text);
        let errors: Vec<_> = errors
            .iter()
            .filter(|line| line.contains("error"))
            .collect();
        assert!(errors.is_empty(), "{errors:?}\n{}", rewritten.text);
    }
}

#[test]
fn other_documents_stay() {
    for text in [
        "id: w\nversion: 1.0.0\nspecVersion: '0.8'\nstates:\n  - {name: A, type: inject, data: {a: .b}, end: true}\n",
        "id: w\nstates: [{name: A, type: inject, start: {kind: default}, data: {a: '{{ $.b }}'}, end: {kind: default}}]\n",
    ] {
        let rewritten = rewrite(text).unwrap();
        assert_eq!(
            (rewritten.text.as_str(), rewritten.changes.len()),
            (text, 0)
        );
    }
    assert!(rewrite("{").is_err());
}
