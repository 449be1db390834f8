//! DSL 1.0: a span for each task, nested as the document is.

use std::collections::HashMap;
use std::fmt::Write;

use swirl_collector::{Receiver, Span};

use super::cluster::Cluster;
use super::random::{Draw, tree_of};
use super::{check_times, path};

const WORKFLOWS: u64 = 20;

const NESTED: &str = r#"
document: {dsl: 1.0.3, namespace: shop, name: nested, version: 1.0.0}
use:
  functions:
    double: {set: {n: '${ .n * 2 }'}}
do:
  - outer:
      try:
        - loop:
            for: {in: '${ [1, 2] }'}
            do:
              - step: {set: {n: '${ $item }'}}
        - nap: {wait: PT0.01S}
        - inner: {do: [{fail: {raise: {error: {type: 'https://example.com/no', status: 500}}}}]}
      catch:
        do:
          - mend: {call: double, with: {n: 4}}
  - both:
      fork:
        branches:
          - left: {do: [{a: {set: {a: 1}}}]}
          - right: {set: {a: 1}}
"#;

#[tokio::test(flavor = "multi_thread")]
async fn spans_of_tasks_are_nested() {
    let (receiver, endpoint) = Receiver::serve().await;
    let mut cluster = Cluster::new(Some(&endpoint), 1.0);
    cluster.deploy(NESTED).await;
    let id = cluster.start("shop.nested", None).await;
    cluster.settle().await;
    assert!(cluster.is_completed(&id).await);
    cluster.shutdown().await;
    let spans = receiver.spans();
    check_times(&spans);
    let by_id: HashMap<&[u8], &Span> = spans
        .iter()
        .map(|(_, span)| (&*span.span_id, span))
        .collect();
    let mut tree: Vec<String> = by_id.values().map(|span| path(span, &by_id)).collect();
    tree.sort();
    let start = "start shop.nested";
    let outer = format!("{start}/task outer");
    let fork = format!("{start}/task both/fork");
    let mut expected = vec![
        start.to_owned(),
        outer.clone(),
        format!("{outer}/task loop"),
        format!("{outer}/task loop/task step"),
        format!("{outer}/task loop/task step"),
        format!("{outer}/task nap"),
        format!("{outer}/task inner"),
        format!("{outer}/task inner/task fail"),
        format!("{outer}/task mend"),
        format!("{outer}/task mend/task double"),
        format!("{start}/task both"),
        fork.clone(),
        format!("{fork}/branch left"),
        format!("{fork}/branch left/task left"),
        format!("{fork}/branch left/task left/task a"),
        format!("{fork}/branch right"),
        format!("{fork}/branch right/task right"),
        format!("{start}/workflow shop.nested"),
    ];
    expected.sort();
    assert_eq!(tree, expected);
    for name in ["task inner", "task fail"] {
        let mut named = spans.iter().filter(|(_, span)| span.name == name);
        let (_, span) = named.next().unwrap();
        let error = swirl_collector::attribute(span, "error.type");
        let unknown = swirl_collector::Value::StringValue("_OTHER".to_owned());
        assert!(error.is_some() && error != Some(unknown), "{span:#?}");
    }
}

/// A list of tasks, indented by this many spaces.
fn tasks(draw: &mut Draw, depth: usize, indent: usize, text: &mut String) {
    let pad = " ".repeat(indent);
    for number in 0..1 + draw.below(3) {
        let name = format!("t{depth}{number}");
        let kinds = if depth < 3 { 9 } else { 4 };
        let list = |text: &mut String, draw: &mut Draw| tasks(draw, depth + 1, indent + 8, text);
        match draw.below(kinds) {
            0 => writeln!(text, "{pad}- {name}: {{wait: PT0.01S}}"),
            1 if depth > 0 => writeln!(
                text,
                "{pad}- {name}: {{raise: {{error: {{type: 'https://example.com/no', status: 500}}}}}}"
            ),
            2 => writeln!(text, "{pad}- {name}: {{set: {{a: 1}}, if: 'false'}}"),
            4 => {
                writeln!(text, "{pad}- {name}:\n{pad}    do:").unwrap();
                list(text, draw);
                Ok(())
            }
            5 => {
                writeln!(text, "{pad}- {name}:\n{pad}    for: {{in: '${{ [1, 2] }}'}}\n{pad}    do:").unwrap();
                list(text, draw);
                Ok(())
            }
            6 => {
                writeln!(text, "{pad}- {name}:\n{pad}    fork:\n{pad}      branches:").unwrap();
                list(text, draw);
                Ok(())
            }
            7 | 8 => {
                writeln!(text, "{pad}- {name}:\n{pad}    catch:").unwrap();
                match draw.below(3) {
                    0 => writeln!(text, "{pad}      retry: {{delay: PT0.01S, limit: {{attempt: {{count: 1}}}}}}").unwrap(),
                    1 => writeln!(text, "{pad}      do: [{{mend: {{set: {{a: 1}}}}}}]").unwrap(),
                    _ => writeln!(text, "{pad}      do: [{{mend: {{do: [{{deep: {{set: {{a: 1}}}}}}], then: end}}}}]").unwrap(),
                }
                writeln!(text, "{pad}    try:").unwrap();
                list(text, draw);
                Ok(())
            }
            _ => writeln!(text, "{pad}- {name}: {{set: {{a: 1}}}}"),
        }
        .unwrap();
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn spans_of_random_tasks_are_a_tree() {
    let (receiver, endpoint) = Receiver::serve().await;
    let mut cluster = Cluster::new(Some(&endpoint), 1.0);
    for seed in 0..WORKFLOWS {
        let mut text = format!(
            "document: {{dsl: 1.0.3, namespace: a, name: random{seed}, version: 1.0.0}}\ndo:\n"
        );
        tasks(&mut Draw(seed), 0, 2, &mut text);
        cluster.deploy(&text).await;
        cluster.start(&format!("a.random{seed}"), None).await;
    }
    cluster.settle().await;
    cluster.shutdown().await;
    let spans = receiver.spans();
    check_times(&spans);
    let traces = tree_of(&spans);
    assert_eq!(traces.len() as u64, WORKFLOWS);
    // A task of depth N has a name that begins with tN, and is inside of one of depth N - 1.
    let by_id: HashMap<&[u8], &Span> = spans
        .iter()
        .map(|(_, span)| (&*span.span_id, span))
        .collect();
    let (mut nested, mut failed) = (0, 0);
    for (_, span) in &spans {
        let Some(depth) = span.name.strip_prefix("task t").map(|name| &name[..1]) else {
            continue;
        };
        let mut around = path(span, &by_id);
        around.truncate(around.rfind('/').unwrap());
        let outer = around.split('/').filter(|name| name.starts_with("task t"));
        assert_eq!(outer.count().to_string(), depth, "{around}: {span:#?}");
        nested += usize::from(depth != "0");
        failed += usize::from(span.status.as_ref().is_some_and(|it| it.code == 2));
    }
    assert!(nested > 30 && failed > 3, "{nested} {failed}");
}
