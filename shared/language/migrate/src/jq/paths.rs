//! Converts JSONPath to jq, as far as both select the same: members, elements, `[*]` and a simple filter.

use swirl_model::Data;

/// Variables that are always objects.
const OBJECTS: [&str; 3] = ["CONST", "SECRETS", "WORKFLOW"];

/// The selection of a path, in jq.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Selection {
    One(One),
    /// The values of the list, one by one.
    Many(String),
}

/// A path to at most one value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct One {
    /// `$CONST` and similar; otherwise the data.
    variable: Option<String>,
    steps: Vec<Step>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Step {
    Name(String),
    Index(i64),
}

impl Selection {
    /// Returns `None` if this module doesn't support the path.
    pub fn parse(text: &str) -> Option<Selection> {
        let mut rest = text.trim().strip_prefix('$')?;
        let variable = word(&mut rest);
        let mut steps = Vec::new();
        while !rest.is_empty() {
            if let Some(one) = step(&mut rest) {
                steps.push(one);
                continue;
            }
            let before = One { variable, steps };
            if rest == "." {
                return Some(Selection::One(before));
            }
            if matches!(rest, ".*" | "[*]") {
                return Some(Selection::Many(before.with("[]?")));
            }
            let rest = rest.strip_prefix('.').unwrap_or(rest);
            let filter = rest.strip_prefix("[?(")?.strip_suffix(")]")?;
            let test = filtered(filter)?;
            let each = "if type == \"array\" then .[] else objects end";
            let before = before.optional();
            return Some(Selection::Many(format!(
                "{before} | {each} | select({test})"
            )));
        }
        Some(Selection::One(One { variable, steps }))
    }

    /// As an expression: the value, or the list of all selected values.
    pub fn expression(&self) -> String {
        match self {
            Selection::One(one) => one.optional(),
            Selection::Many(each) => format!("[{each}]"),
        }
    }
}

impl One {
    /// Yields nothing if a step can't be taken.
    pub fn optional(&self) -> String {
        self.with("")
    }

    /// A single location in the data, for `toStateData`.
    pub fn place(&self) -> Option<String> {
        let plain = self.variable.is_none();
        plain.then(|| self.text(self.steps.len(), ""))
    }

    /// Yields null if nothing is selected. `object`: the data is always an object.
    pub fn or_null(&self, object: bool) -> String {
        let text = self.text(self.steps.len(), "");
        match self.steps.as_slice() {
            [] => text,
            [Step::Name(_)] if object && self.variable.is_none() => text,
            _ => format!("(try {text} catch null)"),
        }
    }

    /// A condition that tests whether there is a value; with `null`, a null value counts too.
    pub fn is_there(&self, object: bool, null: bool) -> String {
        let Some(last) = self.steps.last() else {
            return if null { ". == null" } else { "true" }.to_owned();
        };
        let key = match last {
            Step::Name(name) => Data::string(name.as_str()).to_string(),
            Step::Index(index) => index.to_string(),
        };
        let mut test = format!("has({key})");
        if null {
            let only = One {
                variable: None,
                steps: vec![last.clone()],
            };
            test.push_str(&format!(" and {} == null", only.text(1, "")));
        }
        let parent = self.text(self.steps.len() - 1, "");
        match (parent.as_str(), object) {
            (".", true) => test,
            (".", false) => format!("(try ({test}) catch false)"),
            _ => format!("(try ({parent} | {test}) catch false)"),
        }
    }

    fn with(&self, end: &str) -> String {
        let mut text = self.text(self.steps.len(), "?");
        text.push_str(end);
        text
    }

    fn text(&self, steps: usize, mark: &str) -> String {
        let mut text = match &self.variable {
            Some(name) => format!("${name}"),
            None => String::new(),
        };
        let variable = self.variable.as_deref();
        let object = variable.is_some_and(|name| OBJECTS.contains(&name));
        for (at, step) in self.steps[..steps].iter().enumerate() {
            let mark = if object && at == 0 { "" } else { mark };
            match step {
                Step::Name(name) if is_word(name) => text.push_str(&format!(".{name}{mark}")),
                Step::Name(name) => {
                    let key = Data::string(name.as_str());
                    let dot = if text.is_empty() { "." } else { "" };
                    text.push_str(&format!("{dot}[{key}]{mark}"));
                }
                Step::Index(index) => {
                    let dot = if text.is_empty() { "." } else { "" };
                    text.push_str(&format!("{dot}[{index}]{mark}"));
                }
            }
        }
        match text.is_empty() {
            true => ".".to_owned(),
            false => text,
        }
    }
}

/// `.name`, `['name']` or `[0]`.
fn step(rest: &mut &str) -> Option<Step> {
    let mut after = *rest;
    if let Some(quoted) = after.strip_prefix('[') {
        let quote = quoted.chars().next()?;
        if matches!(quote, '\'' | '"') {
            let (name, end) = quoted[1..].split_once(quote)?;
            after = end.strip_prefix(']')?;
            *rest = after;
            return (!name.contains('\\')).then(|| Step::Name(name.to_owned()));
        }
        let (index, end) = quoted.split_once(']')?;
        let index = index.parse().ok()?;
        *rest = end;
        return Some(Step::Index(index));
    }
    after = after.strip_prefix('.')?;
    let name = word(&mut after)?;
    // A function, or an operator of another expression.
    if !after.is_empty() && !after.starts_with(['.', '[']) {
        return None;
    }
    *rest = after;
    Some(Step::Name(name))
}

fn word(rest: &mut &str) -> Option<String> {
    let end = rest.find(|c: char| !(c.is_ascii_alphanumeric() || matches!(c, '_' | '-')));
    let (name, after) = rest.split_at(end.unwrap_or(rest.len()));
    *rest = after;
    (!name.is_empty()).then(|| name.to_owned())
}

fn is_word(name: &str) -> bool {
    !name.starts_with(|c: char| c.is_ascii_digit())
        && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
}

/// `@.a`, or `@.a OPERATOR VALUE`.
fn filtered(text: &str) -> Option<String> {
    let text = text.trim();
    let end = text.find(['=', '!', '<', '>', ' ']).unwrap_or(text.len());
    let (path, rest) = text.split_at(end);
    let path = format!("${}", path.strip_prefix('@')?);
    let Selection::One(path) = Selection::parse(&path)? else {
        return None;
    };
    let path = path.optional();
    let rest = rest.trim();
    if rest.is_empty() {
        return Some(path);
    }
    let operators = ["==", "!=", "<=", ">=", "<", ">"];
    let operator = operators.into_iter().find(|it| rest.starts_with(it))?;
    let value = rest[operator.len()..].trim();
    let value = match value.strip_prefix('\'').and_then(|v| v.strip_suffix('\'')) {
        Some(inner) if inner.contains(['\\', '\'', '"']) => return None,
        Some(inner) => Data::string(inner),
        None => Data::parse(value.as_bytes()).ok()?,
    };
    let kind = match value.kind() {
        "number" => "numbers",
        "string" => "strings",
        "boolean" if operator == "==" => "booleans",
        _ => return None,
    };
    match operator {
        "==" => Some(format!("{path} == {value}")),
        // A missing value differs from any value.
        "!=" => None,
        _ => Some(format!("{path} | {kind} {operator} {value}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths() {
        for (path, jq) in [
            ("$", Some(".")),
            ("$.", Some(".")),
            ("$.a", Some(".a?")),
            ("$.a.b[0]", Some(".a?.b?[0]?")),
            ("$['a b'].c-d", Some(".[\"a b\"]?[\"c-d\"]?")),
            ("$CONST.a", Some("$CONST.a")),
            ("$.a[*]", Some("[.a?[]?]")),
            (
                "$.p[?(@.age < 40)]",
                Some(
                    "[.p? | if type == \"array\" then .[] else objects end | select(.age? | numbers < 40)]",
                ),
            ),
            (
                "$.[?(@.a == 'x')]",
                Some("[. | if type == \"array\" then .[] else objects end | select(.a? == \"x\")]"),
            ),
            ("$..a", None),
            ("$.a.length()", None),
            ("$.a[*].b", None),
            ("$.a > 1", None),
            ("$['a','b']", None),
            ("$.a[1:2]", None),
            ("a", None),
        ] {
            let found = Selection::parse(path).map(|found| found.expression());
            assert_eq!(found.as_deref(), jq, "{path}");
        }
    }
}
