//! `try`, `raise` and retry policies (DSL 1.0, "Try", "Catch", "Raise", "Error", "Retry").

use swirl_documents::codes;
use swirl_documents::source::Node;
use swirl_model::workflow::{
    Backoff, CaughtError, Period, Raise, StateKind, TaskRetry, Template, Try,
};

use super::Reader;
use super::tasks::List;
use super::value::DEFINITION;
use crate::build::ctx::Obj;

const CATCH: &[&str] = &["errors", "as", "when", "exceptWhen", "retry", "do", "then"];
const POLICY: &[&str] = &["when", "exceptWhen", "delay", "limit", "backoff", "jitter"];
const BACKOFF: [&str; 3] = ["constant", "linear", "exponential"];

impl Reader<'_, '_> {
    pub fn try_task(
        &mut self,
        list: &mut List,
        place: usize,
        node: &Node,
        task: Obj<'_>,
    ) -> Option<StateKind> {
        let body = self.tasks(node, "'try'");
        let Some(node) = task.get("catch") else {
            self.missing(task, "a task with 'try'", &["catch"]);
            return None;
        };
        let obj = self.object(node, "'catch'", CATCH)?;
        let filter = match obj.get("errors") {
            Some(node) => self.caught(node),
            None => Some(CaughtError::default()),
        };
        let variable = self.variable(obj.get("as"), "'as'", "error");
        let outside = self.params.len();
        self.params.push(variable.clone());
        let when = obj
            .get("when")
            .and_then(|node| self.expr(node, "'when'", DEFINITION));
        let except = obj.get("exceptWhen");
        let except_when = except.and_then(|node| self.expr(node, "'exceptWhen'", DEFINITION));
        let retry = match obj.get("retry") {
            None => Some(None),
            Some(node) => self.retry(node, outside).map(Some),
        };
        let handler = obj.get("do").map(|node| self.tasks(node, "'do'"));
        self.params.truncate(outside);
        let then = match obj.get("then") {
            None => Some(None),
            Some(node) => self.directive(list, place, node).map(Some),
        };
        Some(StateKind::Try(Box::new(Try {
            body,
            filter: filter?,
            variable,
            when,
            except_when,
            retry: retry?,
            handler,
            then: then?,
        })))
    }

    /// A policy or the name of one.
    fn retry(&mut self, node: &Node, visible: usize) -> Option<TaskRetry> {
        let named = match node.as_str() {
            Some(name) => Some(self.named(node, name, "retry", |reuse| &reuse.retries)?),
            None => None,
        };
        self.retry_policy(named.as_ref().unwrap_or(node), visible)
    }

    fn caught(&mut self, node: &Node) -> Option<CaughtError> {
        let obj = self.object(node, "'errors'", &["with"])?;
        let Some(node) = obj.get("with") else {
            return Some(CaughtError::default());
        };
        let known = &["type", "status", "instance", "title", "detail", "details"];
        let obj = self.object(node, "'with'", known)?;
        if obj.has("detail") && obj.has("details") {
            self.exclusive(obj, "'with'", &["detail", "details"]);
        }
        for member in node.members().unwrap_or_default() {
            if self.is_expression(member.value(), DEFINITION) {
                let message = format!("'{}' is compared as it is written", member.key());
                let hint = "write a condition in 'when' instead".to_owned();
                self.warn(
                    member.value(),
                    codes::EXPRESSION_NOT_EVALUATED,
                    message,
                    hint,
                );
            }
        }
        if node.members().is_some_and(<[_]>::is_empty) {
            let names = &known[..5];
            self.missing(obj, "'with'", names);
        }
        let status = match obj.get("status") {
            Some(node) => self.status(node).map(Some),
            None => Some(None),
        };
        let kind = self.opt_string(obj, "type");
        let mut text = |name: &str| {
            let node = obj.get(name)?;
            self.any_text(node, &format!("'{name}'"))
        };
        Some(CaughtError {
            kind,
            title: text("title"),
            detail: text("detail").or_else(|| text("details")),
            instance: text("instance"),
            status: status?,
        })
    }

    fn status(&mut self, node: &Node) -> Option<u16> {
        let (wanted, range) = ("a whole number such as 503", 0..=i64::from(u16::MAX));
        let status = self.whole(node, "'status'", wanted, range, codes::BAD_NUMBER)?;
        u16::try_from(status).ok()
    }

    pub fn raise(&mut self, node: &Node) -> Option<StateKind> {
        let obj = self.object(node, "'raise'", &["error"])?;
        let Some(node) = obj.get("error") else {
            self.missing(obj, "'raise'", &["error"]);
            return None;
        };
        let named = match node.as_str() {
            Some(name) => Some(self.named(node, name, "error", |reuse| &reuse.errors)?),
            None => None,
        };
        let raise = self.error_definition(named.as_ref().unwrap_or(node))?;
        Some(StateKind::Raise(raise))
    }

    pub fn error_definition(&mut self, node: &Node) -> Option<Raise> {
        let known = &["type", "status", "instance", "title", "detail"];
        let obj = self.object(node, "an error", known)?;
        for name in ["type", "status"] {
            if !obj.has(name) {
                self.missing(obj, "an error", &[name]);
            }
        }
        let kind = obj.get("type");
        let kind = kind.and_then(|node| self.uri(node, "'type'", false));
        let status = obj.get("status").and_then(|node| match node.as_str() {
            Some(text) if text.contains("${") => self.value(node, DEFINITION, false),
            _ => self.status(node).map(|_| Template::Literal(node.to_data())),
        });
        let mut text = |name: &str| {
            let node = obj.get(name)?;
            self.any_text(node, &format!("'{name}'"))?;
            self.text_value(node, DEFINITION, false)
        };
        let (title, detail, instance) = (text("title"), text("detail"), text("instance"));
        if let Some(node) = obj.get("instance")
            && let Some(Template::Literal(text)) = &instance
            && !text
                .as_str()
                .is_none_or(|text| text.is_empty() || text.starts_with('/'))
        {
            let message = "'instance' is the JSON Pointer of a part of the document".to_owned();
            let hint = "write it as '/do/0/pay', or remove it: the task's own is the default";
            self.error(node, codes::UNKNOWN_VALUE, message, hint.to_owned());
        }
        Some(Raise {
            kind: kind?,
            status: status?,
            title,
            detail,
            instance,
        })
    }

    /// `visible`: the number of variables that are there before an error is.
    pub fn retry_policy(&mut self, node: &Node, visible: usize) -> Option<TaskRetry> {
        let obj = self.object(node, "a retry policy", POLICY)?;
        let when = obj
            .get("when")
            .and_then(|node| self.expr(node, "'when'", DEFINITION));
        let except = obj.get("exceptWhen");
        let except_when = except.and_then(|node| self.expr(node, "'exceptWhen'", DEFINITION));
        let mut policy = TaskRetry {
            when,
            except_when,
            delay: obj
                .get("delay")
                .and_then(|node| self.length(node, "'delay'")),
            ..TaskRetry::default()
        };
        if let Some(node) = obj.get("backoff")
            && let Some(obj) = self.object(node, "'backoff'", &BACKOFF)
        {
            let given: Vec<&str> = BACKOFF.into_iter().filter(|name| obj.has(name)).collect();
            match given.as_slice() {
                ["linear"] => policy.backoff = Backoff::Linear,
                ["exponential"] => policy.backoff = Backoff::Exponential,
                ["constant"] => {}
                [] => self.missing(obj, "'backoff'", &BACKOFF),
                several => self.exclusive(obj, "'backoff'", several),
            }
            for name in given {
                if let Some(node) = obj.get(name)
                    && !node.is_null()
                {
                    self.open_object(node, &format!("'{name}'"), &[]);
                }
            }
        }
        if let Some(node) = obj.get("jitter")
            && let Some(obj) = self.object(node, "'jitter'", &["from", "to"])
        {
            policy.jitter = self.jitter(obj);
        }
        if let Some(node) = obj.get("limit") {
            self.limit(node, &mut policy, visible);
        }
        if policy.delay.is_none() && policy.retries_max.is_none() && policy.within.is_none() {
            let message = "the retry has neither a delay nor a limit".to_owned();
            let hint = "add 'delay' or 'limit': attempts are at least 100 ms apart".to_owned();
            self.warn(node, codes::ENDLESS_RETRY, message, hint);
        }
        Some(policy)
    }

    fn jitter(&mut self, obj: Obj<'_>) -> Option<(Period, Period)> {
        for name in ["from", "to"] {
            if !obj.has(name) {
                self.missing(obj, "'jitter'", &[name]);
            }
        }
        let from = obj.get("from").and_then(|node| self.length(node, "'from'"));
        let to = obj.get("to").and_then(|node| self.length(node, "'to'"));
        let (from, to) = (from?, to?);
        if let (Some(low), Some(high)) = (from.fixed(), to.fixed())
            && low.millis > high.millis
        {
            let message = "'from' is longer than 'to'".to_owned();
            self.error(
                obj.node,
                codes::BAD_DURATION,
                message,
                "exchange them".to_owned(),
            );
        }
        Some((from, to))
    }

    fn limit(&mut self, node: &Node, policy: &mut TaskRetry, visible: usize) {
        let Some(obj) = self.object(node, "'limit'", &["attempt", "duration"]) else {
            return;
        };
        policy.within = obj
            .get("duration")
            .and_then(|node| self.length(node, "'duration'"));
        let Some(node) = obj.get("attempt") else {
            return;
        };
        let Some(obj) = self.object(node, "'attempt'", &["count", "duration"]) else {
            return;
        };
        // It is evaluated when an attempt begins, before there is an error.
        let own = self.params.split_off(visible);
        policy.attempt = obj
            .get("duration")
            .and_then(|node| self.length(node, "'duration'"));
        self.params.extend(own);
        if let Some(node) = obj.get("count") {
            let (wanted, range) = ("a whole number of 0 or more", 0..=i64::from(u32::MAX));
            let count = self.whole(node, "'count'", wanted, range, codes::BAD_NUMBER);
            policy.retries_max = count.and_then(|count| u32::try_from(count).ok());
        }
    }
}
