//! Short texts for times, conditions and errors of a workflow.

use swirl_model::workflow::{
    Comparison, Consume, ErrorId, ErrorSet, ExprId, Period, StartOn, Template, Test, TextPart,
    Until, Workflow,
};

pub fn period(workflow: &Workflow, period: &Period) -> String {
    match period {
        Period::Fixed(duration) => duration.to_string(),
        Period::Expression(id) => text(workflow, *id),
    }
}

pub fn template(workflow: &Workflow, template_: &Template) -> String {
    match template_ {
        Template::Literal(data) => data.to_text(),
        Template::Expression(id) => text(workflow, *id),
        Template::Text(parts) => parts
            .iter()
            .map(|part| match part {
                TextPart::Text(plain) => plain.clone(),
                TextPart::Expression(id) => format!("${{ {} }}", text(workflow, *id)),
            })
            .collect(),
        Template::Loose(_, text) => text.clone(),
        Template::Array(items) => {
            let items = items.iter().map(|item| template(workflow, item));
            format!("[{}]", items.collect::<Vec<_>>().join(", "))
        }
        Template::Object(members) => {
            let members = members.iter();
            let members =
                members.map(|(key, value)| format!("{key}: {}", template(workflow, value)));
            format!("{{{}}}", members.collect::<Vec<_>>().join(", "))
        }
    }
}

pub fn errors(workflow: &Workflow, errors: &ErrorSet) -> String {
    let names = |ids| error_names(workflow, ids);
    match errors {
        ErrorSet::Any => "any error".to_owned(),
        ErrorSet::Except(ids) if ids.is_empty() => "any error".to_owned(),
        ErrorSet::These(ids) => names(ids),
        ErrorSet::Except(ids) => format!("all but {}", names(ids)),
        ErrorSet::TheseExcept(ids, except) => format!("{} but not {}", names(ids), names(except)),
        ErrorSet::When(test) => text(workflow, *test),
        ErrorSet::Text(text) => text.clone(),
    }
}

pub fn error_names(workflow: &Workflow, ids: &[ErrorId]) -> String {
    let names = ids.iter().map(|&id| workflow[id].name.as_str());
    names.collect::<Vec<_>>().join(", ")
}

pub fn test(workflow: &Workflow, test_: &Test) -> String {
    let list = |tests: &[Test], word: &str| {
        let texts = tests.iter().map(|inner| test(workflow, inner));
        texts.collect::<Vec<_>>().join(word)
    };
    match test_ {
        Test::Holds(id) | Test::Exists(id) => text(workflow, *id),
        Test::Compare {
            path,
            operator,
            value,
            ..
        } => {
            let path = text(workflow, *path);
            let sign = match operator {
                Comparison::Equal => "=",
                Comparison::Less => "<",
                Comparison::LessOrEqual => "<=",
                Comparison::Greater => ">",
                Comparison::GreaterOrEqual => ">=",
                Comparison::Matches => "matches",
                Comparison::Null => return format!("{path} is null"),
                Comparison::Present => return format!("{path} exists"),
            };
            format!("{path} {sign} {value}")
        }
        Test::All(tests) => list(tests, " and "),
        Test::Any(tests) => list(tests, " or "),
        Test::Not(inner) => format!("not ({})", test(workflow, inner)),
    }
}

pub fn text(workflow: &Workflow, id: ExprId) -> String {
    workflow[id].text.trim().to_owned()
}

/// The events that start an instance.
pub fn starts(workflow: &Workflow, starts: &StartOn) -> String {
    let named = |to: &Consume| {
        let filters = to.filters.iter();
        let names: Vec<&str> = filters.map(|it| &*workflow[it.event].name).collect();
        names.join(if to.all { " and " } else { " or " })
    };
    let until = match &starts.until {
        None => return named(&starts.to),
        Some(Until::Condition(test)) => workflow[*test].text.to_string(),
        Some(Until::Events(stops)) => named(stops),
    };
    format!("{} until {until}", named(&starts.to))
}
