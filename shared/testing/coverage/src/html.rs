//! Coverage as one self-contained page: the diagrams with the covered parts marked, and the documents below them.

use swirl_model::workflow::StateId;
use swirl_presentation::line::Sign;
use swirl_presentation::{Counts, escape, render_counts};

use super::items::{Item, ItemKind, Key};
use super::{Coverage, Covered};

const STYLE: &str = "
body{font:15px/1.5 Helvetica,Arial,'Liberation Sans',sans-serif;margin:2rem auto;max-width:72rem;padding:0 1rem;color:#1f2937;background:#fff}
h1{font-size:1.5rem}h2{font-size:1.15rem;margin:2.5rem 0 .75rem;overflow-wrap:anywhere}
table{border-collapse:collapse;margin:.75rem 0}th,td{padding:.2rem .8rem .2rem 0;text-align:left;vertical-align:top}
th{font-weight:bold;border-bottom:1px solid #9ca3af}.n{text-align:right;font-variant-numeric:tabular-nums}
.no{font-weight:bold;color:#b3261e}.yes{color:#1e6b41}
.picture{overflow-x:auto}.document{overflow-x:auto;font:13px/1.5 'DejaVu Sans Mono',monospace}
.document td{padding:0 .8rem 0 0;white-space:pre}.document .n{color:#5b6472}
tr.miss{background:#fdecec}tr.run{background:#e8f5ec}
@media (prefers-color-scheme:dark){body{color:#e5e7eb;background:#15181d}a{color:#8fb4ea}.no{color:#f28b82}.yes{color:#6cc28e}
.document .n{color:#a3adbb}tr.miss{background:#3b1a1a}tr.run{background:#16301f}}
";

/// An HTML page.
pub fn html(coverage: &Coverage) -> String {
    let mut page = format!(
        "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width\">\n<title>Coverage</title>\n\
         <style>{STYLE}</style>\n</head>\n<body>\n<h1>Coverage</h1>\n"
    );
    page.push_str(&summary(coverage));
    for (index, covered) in coverage.definitions().enumerate() {
        page.push_str(&section(index, covered));
    }
    page.push_str("</body>\n</html>\n");
    page
}

/// A row for each definition.
fn summary(coverage: &Coverage) -> String {
    let heads: String = ItemKind::ALL
        .into_iter()
        .map(|kind| format!("<th>{}</th>", kind.words()))
        .collect();
    let rows: String = coverage
        .definitions()
        .enumerate()
        .map(|(index, covered)| {
            let shares: String = ItemKind::ALL
                .into_iter()
                .map(|kind| share(covered.share(kind)))
                .collect();
            let file = escape(&covered.file.display().to_string());
            format!("<tr><td><a href=\"#d{index}\">{file}</a></td>{shares}</tr>\n")
        })
        .collect();
    format!("<table>\n<tr><th>definition</th>{heads}</tr>\n{rows}</table>\n")
}

fn share((ran, all): (usize, usize)) -> String {
    match (ran, all) {
        (_, 0) => "<td>–</td>".to_owned(),
        (ran, all) if ran == all => format!("<td class=\"yes\">{ran} of {all}</td>"),
        (ran, all) => format!("<td class=\"no\">{ran} of {all}</td>"),
    }
}

fn section(index: usize, covered: &Covered) -> String {
    let picture = render_counts(&covered.workflow, &counts(covered));
    let rows: String = covered.items.iter().map(row).collect();
    format!(
        "<section id=\"d{index}\">\n<h2>{}</h2>\n<div class=\"picture\">\n{picture}</div>\n\
         <table>\n<tr><th class=\"n\">line</th><th>kind</th><th>name</th><th>runs</th></tr>\n{rows}</table>\n{}</section>\n",
        escape(&covered.file.display().to_string()),
        document(covered)
    )
}

fn row(item: &Item) -> String {
    let runs = match item.hits {
        0 => "<td class=\"no\">not run</td>".to_owned(),
        hits => format!("<td class=\"yes\">{hits}×</td>"),
    };
    format!(
        "<tr><td class=\"n\">{}</td><td>{}</td><td>{}</td>{runs}</tr>\n",
        item.line,
        item.kind.as_str(),
        escape(&item.name)
    )
}

/// The document with a mark at each line that has a part.
fn document(covered: &Covered) -> String {
    let rows = covered.document.lines().enumerate().map(|(index, text)| {
        let on_line = || covered.items.iter().filter(|item| item.line == index + 1);
        let all = on_line().count();
        let missed = on_line().filter(|item| item.hits == 0).count();
        let (class, mark) = match (all, missed) {
            (0, _) => ("", String::new()),
            (_, 0) => (" class=\"run\"", "✓ all run".to_owned()),
            (all, missed) => (" class=\"miss\"", format!("✗ {missed} of {all} not run")),
        };
        format!(
            "<tr{class}><td class=\"n\">{}</td><td>{mark}</td><td>{}</td></tr>\n",
            index + 1,
            escape(text)
        )
    });
    let rows: String = rows.collect();
    format!(
        "<details>\n<summary>The document</summary>\n<table class=\"document\">\n{rows}</table>\n</details>\n"
    )
}

/// The counts in the form that the diagram needs.
fn counts(covered: &Covered) -> Counts {
    let mut counts = Counts::default();
    let name = |state: StateId| &*covered.workflow[state].name;
    for item in &covered.items {
        let times = item.hits;
        match &item.key {
            Key::State(state) => counts.state(name(*state), times),
            Key::Exit(from, to) => counts.way(name(*from), to.map(name), false, times),
            Key::ErrorPath {
                state,
                way: Some(to),
                ..
            } => counts.way(name(*state), to.map(name), true, times),
            Key::ErrorPath { way: None, .. } => {}
            Key::Retry(state) => counts.within(name(*state), Sign::Again, "retries", times),
            Key::Timeout(Some(state)) => {
                counts.within(name(*state), Sign::Time, "timeouts", times);
            }
            Key::Timeout(None) => counts.of_workflow("the workflow's timeout", times),
        }
    }
    counts
}
