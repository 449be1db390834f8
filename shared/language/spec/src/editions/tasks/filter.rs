//! Data filters (section "Task Information Filtering", docs/language.md#decision-18).

use swirl_documents::source::Node;
use swirl_model::workflow::{ErrorFilter, EventFilter, ExprId, PathId, ResultRule, Under};

use super::Reader;
use crate::build::ctx::Obj;
use crate::build::earlier::older::as_there;
use crate::build::expression::VisibleVars;
use crate::build::paths::{member_name, names_part_of_event, under};

/// The name that other texts have for the only filter at its location.
const FILTER: &str = "filter";
const INPUT: (&str, &[&str]) = ("dataInputPath", &["inputPath", "input"]);
const OUTPUT: (&str, &[&str]) = ("dataOutputPath", &["outputPath", "output"]);
const ACTION_INPUT: (&str, &[&str]) = ("dataInputPath", &["inputPath", "fromStateData"]);
const RESULTS: (&str, &[&str]) = (
    "dataResultsPath",
    &["resultPath", "resultsPath", "dataOutputPath", "results"],
);
/// Later editions have it.
const TARGET: (&str, &[&str]) = ("toStateData", &[]);
const USE_RESULTS: (&str, &[&str]) = ("useResults", &[]);
const USE_DATA: (&str, &[&str]) = ("useData", &[]);

impl Reader<'_, '_> {
    /// `taskDataFilter`: the part of its input that a task sees, and the output that it passes on.
    pub fn state_filter(&mut self, obj: Obj<'_>) -> (Option<ExprId>, Option<ExprId>) {
        let (name, other) = self.variant.filter;
        let Some(obj) = self.filter(obj, name, &[other, FILTER], &[INPUT, OUTPUT]) else {
            return (None, None);
        };
        (self.selection(obj, INPUT), self.selection(obj, OUTPUT))
    }

    /// `actionDataFilter`: the input that an action sees, and the use of its result.
    pub fn action_filter(&mut self, obj: Obj<'_>) -> (Option<ExprId>, ResultRule) {
        let known = &[ACTION_INPUT, RESULTS, TARGET, USE_RESULTS];
        let Some(obj) = self.filter(obj, "actionDataFilter", &[FILTER], known) else {
            return (None, ResultRule::default());
        };
        let (results, under) = self.merged(obj, RESULTS);
        let to = self.target(obj);
        let rule = ResultRule {
            ignore: self.is_unused(obj, USE_RESULTS.0),
            results,
            under: under.filter(|_| to.is_none()),
            to,
            ..ResultRule::default()
        };
        (self.selection(obj, ACTION_INPUT), rule)
    }

    /// `eventDataFilter`: the part of a payload that is merged. The specification has two names for its path.
    pub fn event_filter(&mut self, obj: Obj<'_>) -> EventFilter {
        const EITHER: (&str, &[&str]) = (
            "dataInputPath",
            &["inputPath", "outputPath", "resultPath", "data"],
        );
        let known = &[OUTPUT, EITHER, TARGET, USE_DATA];
        let Some(obj) = self.filter(obj, "eventDataFilter", &[FILTER], known) else {
            return EventFilter::default();
        };
        let wanted = match (obj.has(OUTPUT.0), obj.has(EITHER.0)) {
            (true, true) => {
                self.exclusive(obj, "'eventDataFilter'", &[OUTPUT.0, EITHER.0]);
                return EventFilter::default();
            }
            (_, true) => (EITHER.0, &[] as &[&str]),
            _ => (OUTPUT.0, EITHER.1),
        };
        let (data, under) = self.merged(obj, wanted);
        let mut names = std::iter::once(&wanted.0).chain(wanted.1);
        let node = names.find_map(|name| obj.get(name));
        let to = self.target(obj);
        EventFilter {
            ignore: self.is_unused(obj, USE_DATA.0),
            data,
            or_whole: node.is_some_and(|node| names_part_of_event(self, node)),
            under: under.filter(|_| to.is_none()),
            to,
            ..EventFilter::default()
        }
    }

    /// Where a value is put, which only later editions say.
    fn target(&mut self, obj: Obj<'_>) -> Option<PathId> {
        as_there(self, obj.node, &[TARGET.0]);
        self.path(obj, TARGET.0, VisibleVars::PLAIN)
    }

    /// Whether nothing of a value is used, which only later editions can say.
    fn is_unused(&mut self, obj: Obj<'_>, name: &'static str) -> bool {
        as_there(self, obj.node, &[name]);
        !self.flag(obj, name, true)
    }

    /// `errorDataFilter`: the part of an error that is put into the data. Without it, the error is stored under `error`
    /// (docs/language.md#decision-100).
    pub fn error_filter(&mut self, obj: Obj<'_>) -> Option<ErrorFilter> {
        let node = obj.get("errorDataFilter");
        let inner = self.filter(obj, "errorDataFilter", &[], &[OUTPUT]);
        let path = inner.and_then(|obj| self.named(obj, OUTPUT.0, OUTPUT.1));
        if let Some(path) = path.filter(|path| path.as_str().is_none()) {
            self.wrong_type(
                path,
                &format!("'{}'", OUTPUT.0),
                "an expression in a string",
            );
            return None;
        }
        let (Some(path), Some(text)) = (path, path.and_then(Node::as_str)) else {
            let place = node.unwrap_or(obj.node);
            return Some(ErrorFilter {
                data: None,
                to: self.member(place, "error"),
            });
        };
        // The specification shows the error as `error`, so the path begins inside it.
        let own = text.trim();
        let own = match own.strip_prefix("$.error") {
            Some(rest) if rest.is_empty() || rest.starts_with(['.', '[']) => format!("${rest}"),
            _ => own.to_owned(),
        };
        let location = self.location(path);
        let data = self.compile(&location, &own, VisibleVars::PLAIN)?;
        let to = match member_name(&own) {
            Some(name) => self.member(path, &name),
            None if own == "$" && text.trim() != "$" => self.member(path, "error"),
            None => None,
        };
        Some(ErrorFilter {
            data: Some(data),
            to,
        })
    }

    /// The path to one member of the data.
    fn member(&mut self, node: &Node, name: &str) -> Option<PathId> {
        let location = self.location(node);
        let name = name.replace('\\', "\\\\").replace('\'', "\\'");
        self.compile_path(&location, &format!("$['{name}']"), VisibleVars::PLAIN)
    }

    /// The filter's object, if it is present and valid.
    fn filter<'n>(
        &mut self,
        obj: Obj<'n>,
        name: &str,
        others: &[&str],
        properties: &[(&'static str, &[&'static str])],
    ) -> Option<Obj<'n>> {
        let node = self.named(obj, name, others)?;
        let known: Vec<&str> = properties
            .iter()
            .flat_map(|(name, others)| [name].into_iter().chain(others.iter()).copied())
            .collect();
        self.object(node, &format!("'{name}'"), &known)
    }

    fn selection(&mut self, obj: Obj<'_>, (name, others): (&str, &[&str])) -> Option<ExprId> {
        let node = self.named(obj, name, others)?;
        self.expression(node, &format!("'{name}'"), VisibleVars::PLAIN)
    }

    /// A selection that is merged.
    fn merged(
        &mut self,
        obj: Obj<'_>,
        (name, others): (&str, &[&str]),
    ) -> (Option<ExprId>, Option<Under>) {
        let Some(node) = self.named(obj, name, others) else {
            return (None, None);
        };
        let id = self.expression(node, &format!("'{name}'"), VisibleVars::PLAIN);
        (id, under(Some(node)))
    }
}
