//! A chart as a Mermaid `stateDiagram-v2`.
//!
//! Mermaid has only one kind of arrow there, so error, compensation and timeout transitions are recognised by their
//! labels.

use super::chart::{Card, Chart, Edge, Flow, Node, Style};
use super::line::{Line, Sign};

pub(super) fn write(chart: &Chart) -> String {
    let mut text = format!(
        "---\ntitle: \"{}\"\n---\nstateDiagram-v2\n",
        yaml(&chart.title)
    );
    text.push_str("    direction TB\n");
    for caption in &chart.captions {
        text.push_str(&format!(
            "    %% {}\n",
            caption.replace(['\n', '%', '{', '}'], " ")
        ));
    }
    flow(&chart.flow, "s", 1, &mut text);
    text
}

fn flow(flow: &Flow, prefix: &str, depth: usize, text: &mut String) {
    let pad = "    ".repeat(depth);
    for (index, node) in flow.nodes.iter().enumerate() {
        if let Node::State(card) = node {
            state(card, &format!("{prefix}{index}"), depth, text);
        }
    }
    for edge in &flow.edges {
        let from = match &flow.nodes[edge.from] {
            Node::Start | Node::Timeout(_) => "[*]".to_owned(),
            _ => format!("{prefix}{}", edge.from),
        };
        let to = match &flow.nodes[edge.to] {
            Node::End { .. } => "[*]".to_owned(),
            _ => format!("{prefix}{}", edge.to),
        };
        let label = label(flow, edge);
        let label = if label.is_empty() {
            label
        } else {
            format!(" : {label}")
        };
        text.push_str(&format!("{pad}{from} --> {to}{label}\n"));
    }
}

fn label(flow: &Flow, edge: &Edge) -> String {
    let mut parts = Vec::new();
    match edge.style {
        Style::Normal => {}
        Style::Error => parts.push("on error".to_owned()),
        Style::Compensation => parts.push("compensation".to_owned()),
        Style::Timeout => parts.push("timeout".to_owned()),
    }
    if let Node::Timeout(after) = &flow.nodes[edge.from] {
        parts.push(escape(after));
    }
    if edge.style != Style::Compensation {
        parts.extend(edge.labels.iter().map(line));
    }
    if let Node::End { notes, .. } = &flow.nodes[edge.to] {
        parts.extend(notes.iter().map(line));
    }
    parts.join("<br/>")
}

fn state(card: &Card, id: &str, depth: usize, text: &mut String) {
    let pad = "    ".repeat(depth);
    let mut about = vec![format!("({})", card.kind)];
    if card.compensating {
        about.push("(undoes)".to_owned());
    }
    about.extend(card.lines.iter().map(line));
    let about = about.join("<br/>");
    if card.groups.is_empty() {
        text.push_str(&format!(
            "{pad}state \"{}<br/>{about}\" as {id}\n",
            escape(&card.name.text)
        ));
        return;
    }
    // A composite state shows only its title, so the title contains the whole text.
    let title = format!(
        "{} {}",
        escape(&card.name.text),
        about.replace("<br/>", " ")
    );
    text.push_str(&format!("{pad}state \"{title}\" as {id} {{\n"));
    for (index, group) in card.groups.iter().enumerate() {
        if index > 0 {
            text.push_str(&format!("{pad}    --\n"));
        }
        let inner = format!("{id}_{index}");
        let mut lines: Vec<String> = Vec::new();
        if !group.title.text.is_empty() {
            lines.push(escape(&group.title.text));
        }
        lines.extend(group.lines.iter().map(line));
        let label = lines.join("<br/>");
        match &group.flow {
            None => text.push_str(&format!("{pad}    state \"{label}\" as {inner}\n")),
            Some(nested) => {
                text.push_str(&format!("{pad}    state \"{label}\" as {inner} {{\n"));
                flow(nested, &format!("{inner}_"), depth + 2, text);
                text.push_str(&format!("{pad}    }}\n"));
            }
        }
    }
    text.push_str(&format!("{pad}}}\n"));
}

fn line(line: &Line) -> String {
    let word = match line.sign {
        Sign::None | Sign::Again | Sign::Time => "",
        Sign::Action => "call ",
        Sign::In => "await ",
        Sign::Out => "produce ",
        Sign::Subflow => "run ",
    };
    format!("{word}{}", escape(&line.text))
}

/// Writes characters with a special meaning in Mermaid as its entity codes.
fn escape(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '#' | ';' | ':' | '"' | '<' | '>' | '{' | '}' | '[' | ']' | '(' | ')' | '%' | '`'
            | '\\' => escaped.push_str(&format!("#{};", c as u32)),
            c if c.is_control() => escaped.push(' '),
            c => escaped.push(c),
        }
    }
    escaped
}

/// Escapes a text for double quotes in YAML.
fn yaml(text: &str) -> String {
    let plain: String = text
        .chars()
        .map(|c| if c.is_control() { ' ' } else { c })
        .collect();
    plain.replace('\\', "\\\\").replace('"', "\\\"")
}

#[cfg(test)]
mod tests {
    use crate::{Format, render, sample};

    #[test]
    fn samples() {
        let text: String = sample::all()
            .iter()
            .map(|(_, workflow)| render(workflow, Format::Mermaid))
            .collect();
        insta::assert_snapshot!(text, @r#"
        ---
        title: "The hello workflow"
        ---
        stateDiagram-v2
            direction TB
            %% hello 1.0.0
            state "Greet<br/>(inject)<br/>#123;#34;a#34;#58;1#125;" as s1
            [*] --> s1
            s1 --> [*]
        ---
        title: "The order workflow"
        ---
        stateDiagram-v2
            direction TB
            %% order 1.0.0
            %% runs at most P1D
            state "Reserve<br/>(operation)<br/>call reserveItems<br/>call chargeCard<br/>at most PT1M" as s1
            state "Each (foreach) in batches of 5" as s2 {
                state "each item in .order.items<br/>call priceOf" as s2_0
            }
            state "Fork (parallel) at least 1 of" as s3 {
                state "Mail<br/>call sendMail" as s3_0
                --
                state "Parcel<br/>call ship<br/>call track<br/>call printLabelOfTheParcel<br/>at most PT1H" as s3_1
            }
            state "Undo<br/>(operation)<br/>(undoes)<br/>call releaseItems" as s4
            state "Apologise<br/>(operation)<br/>call sendApology" as s5
            state "Clean up<br/>(operation)<br/>call cleanUp" as s6
            [*] --> s1
            s1 --> s2
            s1 --> s5 : on error<br/>OutOfStock, CardRefused
            s1 --> [*] : on error<br/>any error<br/>terminate
            s1 --> s4 : compensation
            s2 --> s3
            s3 --> [*]
            s3 --> s5 : on error<br/>any error<br/>compensate
            s5 --> [*] : produce OrderCancelled
            s6 --> [*]
            [*] --> s6 : timeout<br/>after P1D
        ---
        title: "The job workflow"
        ---
        stateDiagram-v2
            direction TB
            %% job 1.0.0
            state "Submit<br/>(operation)<br/>call submitJob" as s1
            state "Wait<br/>(sleep)<br/>PT5S" as s2
            state "Look<br/>(operation)<br/>call jobStatus" as s3
            state "Decide<br/>(switch)" as s4
            state "Report failure<br/>(operation)<br/>call report" as s5
            [*] --> s1
            s1 --> s2
            s2 --> s3
            s3 --> s4
            s3 --> s3 : on error<br/>any error
            s4 --> [*] : .status == #34;SUCCEEDED#34;
            s4 --> s5 : failed
            s4 --> s2 : otherwise
            s5 --> [*]
        ---
        title: "The approval workflow"
        ---
        stateDiagram-v2
            direction TB
            %% approval 1.0.0
            state "Applications (event) the first of" as s1 {
                state "await Applied<br/>call store" as s1_0
                --
                state "await Applied and Recommended<br/>call log" as s1_1
            }
            state "Ask<br/>(callback)<br/>call askManager<br/>await Answered<br/>waits at most PT2H" as s2
            state "Decision<br/>(switch)" as s3
            state "Onboard (parallel) all of" as s4 {
                state "Sub<br/>run onboarding" as s4_0
                --
                state "Own states" as s4_1 {
                    state "Inner<br/>(sleep)<br/>PT1S" as s4_1_1
                    state "Rest<br/>(inject)<br/>#123;#34;a#34;#58;1#125;" as s4_1_2
                    [*] --> s4_1_1
                    s4_1_1 --> s4_1_2
                    s4_1_2 --> [*]
                }
            }
            state "Later<br/>(sleep)<br/>P1D" as s5
            [*] --> s1
            s1 --> s2
            s2 --> s3
            s3 --> s4 : await Approved
            s3 --> [*] : await Refused
            s3 --> s5 : timeout<br/>after PT1H
            s4 --> [*]
            s5 --> [*] : continue as approval
        "#);
    }
}
