//! The merge of results into the state data, in jq (docs/language.md#decision-9 to #decision-11).

use swirl_model::Data;
use swirl_model::workflow::{EventFilter, ExprId, PathId, ResultRule, Under, UnderWhen};

use super::jq_text::{filter, grouped, one, piped};
use super::writer::Writer;

/// Merges a value into another one: objects key by key, lists as sets, everything else is replaced.
const MERGE: &str = "def merge($new): if type == \"object\" and ($new | type) == \"object\" then reduce ($new | keys_unsorted[]) as $key (.; .[$key] |= merge($new[$key])) elif type == \"array\" and ($new | type) == \"array\" then . + $new | to_entries | unique_by(.value) | sort_by(.key) | map(.value) else $new end;";

/// The same for the target itself, which must be of the same kind. Null adds nothing.
const INTO: &str = "def into($new): if $new == null then . elif (type == \"object\" or type == \"array\") and type != ($new | type) then error(\"\\($new | type) can't be merged into \\(type)\") else merge($new) end;";

/// What is merged, and where.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Taking<'r> {
    pub filter: Option<ExprId>,
    pub under: Option<&'r Under>,
    pub to: Option<PathId>,
    pub replace: bool,
    pub output: Option<ExprId>,
}

impl<'r> From<&'r ResultRule> for Taking<'r> {
    fn from(rule: &'r ResultRule) -> Taking<'r> {
        Taking {
            filter: rule.results,
            under: rule.under.as_ref(),
            to: rule.to,
            replace: rule.replace,
            output: rule.output,
        }
    }
}

impl<'r> From<&'r EventFilter> for Taking<'r> {
    fn from(filter: &'r EventFilter) -> Taking<'r> {
        Taking {
            filter: filter.data,
            under: filter.under.as_ref(),
            to: filter.to,
            replace: false,
            output: filter.output,
        }
    }
}

/// With the definitions that a text uses before it.
pub(super) fn with_definitions(text: String) -> String {
    let uses = |name: &str| text.contains(&format!("{name}($"));
    match (uses("into"), uses("merge")) {
        (true, _) => format!("{MERGE}\n{INTO}\n{text}"),
        (false, true) => format!("{MERGE}\n{text}"),
        (false, false) => text,
    }
}

/// Merges a value that is known.
pub(super) fn literal(value: &Data, objects: bool) -> String {
    let has_list = |value: &Data| value.to_string().contains('[');
    match value {
        // Even an empty object can't be merged into a list.
        value if value.is_null() || objects && is_empty(value) => ".".to_owned(),
        value if objects && value.is_object() && is_flat(value) => format!(". + {value}"),
        value if objects && value.is_object() && !has_list(value) => format!(". * {value}"),
        value => with_definitions(format!("{value} as $new | into($new)")),
    }
}

fn is_empty(value: &Data) -> bool {
    value.as_object().is_some_and(|members| members.is_empty())
}

fn is_flat(value: &Data) -> bool {
    let mut members = value.as_object().into_iter().flat_map(|all| all.iter());
    members.all(|(_, value)| {
        let value = Data(value.clone());
        !value.is_object() && value.as_array().is_none()
    })
}

impl Writer<'_> {
    /// The part of a result that is merged, as an expression over the result.
    pub fn taken(&mut self, taking: Taking<'_>) -> String {
        let selected = match taking.filter {
            Some(id) => {
                let text = self.expr(id, ".");
                one(&text)
            }
            None => ".".to_owned(),
        };
        let Some(under) = taking.under else {
            return selected;
        };
        let key = Data::string(&*under.key);
        match under.when {
            UnderWhen::NotObject if taking.to.is_some() => selected,
            UnderWhen::NotObject => piped(
                &selected,
                &format!("if type == \"object\" or . == null then . else {{{key}: .}} end"),
            ),
            UnderWhen::Always => {
                let selected = grouped(&selected);
                format!(
                    "({selected} as $found | if $found == null and type != \"object\" then . else $found end) | if . == null then . else {{{key}: .}} end"
                )
            }
        }
    }

    /// Merges `$result` into the state data, which is `.`.
    pub fn merged(&mut self, taking: Taking<'_>, result: &str) -> String {
        let put = match (taking.replace, taking.to) {
            (false, None) => format!("into({result})"),
            (false, Some(path)) => {
                let path = self.path(path);
                match path.as_str() {
                    "." => format!("into({result})"),
                    path => format!(
                        "if {result} == null then . else {} |= into({result}) end",
                        grouped(path)
                    ),
                }
            }
            (true, to) => {
                let whole = format!(
                    "if {result} == null then . elif ({result} | type) != \"object\" or type == \"array\" then {result} else merge({result}) end"
                );
                match to {
                    None => whole,
                    Some(path) => {
                        let path = self.path(path);
                        format!(
                            "if {result} == null then . else {} |= ({whole}) end",
                            grouped(&path)
                        )
                    }
                }
            }
        };
        match taking.output {
            None => put,
            Some(id) => {
                let text = self.expr(id, ".");
                piped(&put, &filter(&text))
            }
        }
    }
}
