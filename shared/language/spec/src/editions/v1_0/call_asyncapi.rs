//! `call: asyncapi` (DSL 1.0, "AsyncAPI Call").
//!
//! The function's metadata have `server` (a name), `variables`, `protocol`, and `channel` if it names no operation.

use swirl_documents::codes;
use swirl_documents::source::Node;
use swirl_model::Data;
use swirl_model::messages::MESSAGES_MAX;
use swirl_model::workflow::{
    Consume, EachEvent, Enough, EventRead, FunctionKind, Listen, MessageRule, StateKind, Template,
};

use super::Reader;
use super::called::Called;
use super::value::DEFINITION;
use crate::build::ctx::Obj;

const WITH: &[&str] = &[
    "document",
    "channel",
    "operation",
    "server",
    "protocol",
    "message",
    "subscription",
    "authentication",
];
/// When a subscription has enough messages.
const ENOUGH: [&str; 3] = ["amount", "until", "while"];
const PROTOCOLS: [&str; 19] = [
    "amqp",
    "amqp1",
    "anypointmq",
    "googlepubsub",
    "http",
    "ibmmq",
    "jms",
    "kafka",
    "mercure",
    "mqtt",
    "mqtt5",
    "nats",
    "pulsar",
    "redis",
    "sns",
    "solace",
    "sqs",
    "stomp",
    "ws",
];

impl Reader<'_, '_> {
    pub fn asyncapi_call(&mut self, task: Obj<'_>) -> Option<StateKind> {
        let obj = self.with(task, "asyncapi", WITH, &["document"])?;
        let mut metadata = Data::object();
        let document = obj.get("document").map(|node| self.described_by(node));
        let operation = self.one_of(obj, ["operation", "channel"]);
        let deed = self.one_of(obj, ["message", "subscription"]);
        let server = match obj.get("server") {
            Some(node) => self.asyncapi_server(node, &mut metadata),
            None => Some(()),
        };
        if let Some(word) = self.word(obj, "protocol", &PROTOCOLS) {
            metadata.set("protocol", Data::string(word));
        }
        let auth = self.auth_of(obj);
        let operation = operation.and_then(|(word, node)| {
            let name = self.string(node, &format!("'{word}'"))?;
            if word == "channel" {
                metadata.set("channel", Data::string(name.as_str()));
            }
            Some(name)
        });
        let (deed, node) = deed?;
        let is_subscription = deed == "subscription";
        let action = if is_subscription {
            "subscribe"
        } else {
            "publish"
        };
        metadata.set("action", Data::string(action));
        let (arguments, subscription) = match is_subscription {
            true => (
                Some(Template::Object(Vec::new())),
                Some(self.subscription(node)),
            ),
            false => (self.asyncapi_message(node), None),
        };
        let (uri, resource_auth) = document??;
        let operation = operation?;
        server?;
        let called = Called {
            kind: FunctionKind::Asyncapi,
            operation: format!("{uri}#{operation}"),
            resource_auth,
            auth: auth?,
            metadata,
            arguments: arguments?,
            timeout: None,
        };
        let Some(subscription) = subscription else {
            return Some(self.calling(task, called));
        };
        let (rule, each) = subscription?;
        let stepwise = rule.is_stepwise.then_some(rule.enough);
        let call = self.call_of(task, called, Some(Box::new(rule)));
        Some(match each {
            None => StateKind::Operation(call),
            each => StateKind::Listen(Box::new(Listen {
                source: Some(call),
                stepwise,
                to: Consume::default(),
                until: None,
                read: EventRead::default(),
                each,
            })),
        })
    }

    /// The messages that are taken, and what is done with each.
    fn subscription(&mut self, node: &Node) -> Option<(MessageRule, Option<EachEvent>)> {
        let obj = self.object(node, "'subscription'", &["filter", "consume", "foreach"])?;
        let each = obj.get("foreach").map(|node| self.each_event(node));
        let has_tasks = |each: &EachEvent| each.body.is_some() || each.export.is_some();
        let is_stepwise = matches!(&each, Some(Some(each)) if has_tasks(each));
        let filter = obj.get("filter");
        let filter = filter.map(|node| self.expr(node, "'filter'", DEFINITION));
        let Some(node) = obj.get("consume") else {
            self.missing(obj, "'subscription'", &["consume"]);
            return None;
        };
        let obj = self.object(node, "'consume'", &["for", "amount", "while", "until"])?;
        let span = obj.get("for").map(|node| self.length(node, "'for'"));
        let given: Vec<&str> = ENOUGH.into_iter().filter(|name| obj.has(name)).collect();
        let enough = match given.as_slice() {
            ["amount"] => self.amount(obj.get("amount")?).map(Enough::Amount),
            [word] => {
                let node = obj.get(word)?;
                let test = self.expr(node, &format!("'{word}'"), DEFINITION);
                let how = if *word == "while" {
                    Enough::While
                } else {
                    Enough::Until
                };
                test.map(how)
            }
            [] => {
                self.missing(obj, "'consume'", &ENOUGH);
                None
            }
            several => {
                self.exclusive(obj, "'consume'", several);
                None
            }
        };
        let rule = MessageRule {
            filter: filter.map_or(Some(None), |found| found.map(Some))?,
            span: span.map_or(Some(None), |found| found.map(Some))?,
            enough: enough?,
            is_stepwise,
        };
        Some((rule, each.map_or(Some(None), |found| found.map(Some))?))
    }

    fn amount(&mut self, node: &Node) -> Option<u32> {
        let wanted = format!("a whole number from 1 to {MESSAGES_MAX}");
        let range = 1..=MESSAGES_MAX as i64;
        let amount = self.whole(node, "'amount'", &wanted, range, codes::BAD_COUNT)?;
        u32::try_from(amount).ok()
    }

    /// The one of two properties that is given.
    fn one_of<'n>(
        &mut self,
        obj: Obj<'n>,
        names: [&'static str; 2],
    ) -> Option<(&'static str, &'n Node)> {
        let given = names.map(|name| obj.node.get(name).map(|node| (name, node)));
        match given {
            [Some(one), None] | [None, Some(one)] => Some(one),
            [None, None] => {
                self.missing(obj, "'with'", &names);
                None
            }
            [Some(_), Some(_)] => {
                self.exclusive(obj, "'with'", &names);
                None
            }
        }
    }

    fn asyncapi_server(&mut self, node: &Node, metadata: &mut Data) -> Option<()> {
        let obj = self.object(node, "'server'", &["name", "variables"])?;
        let mut name = self.need_string(obj, "'server'", "name");
        if let (Some(text), Some(node)) = (&name, obj.get("name"))
            && (text.contains("://") || text.contains("${"))
        {
            let message =
                format!("'name' cannot be '{text}': it is the name of a server of the document");
            let hint = "the operator's 'functions.servers' gives other addresses".to_owned();
            self.error(node, codes::BAD_NAME, message, hint);
            name = None;
        }
        if let Some(node) = obj.get("variables") {
            self.asyncapi_variables(node)?;
            metadata.set("variables", node.to_data());
        }
        metadata.set("server", Data::string(name?));
        Some(())
    }

    fn asyncapi_variables(&mut self, node: &Node) -> Option<()> {
        let Some(members) = node.members() else {
            self.wrong_type(node, "'variables'", "an object");
            return None;
        };
        for member in members {
            let node = member.value();
            let is_text = node.is_number() || node.as_str().is_some();
            if !is_text || node.as_str().is_some_and(|text| text.contains("${")) {
                let hint = "the server is chosen when the workflow is deployed".to_owned();
                let message = format!(
                    "the variable '{}' must be a string without expressions",
                    member.key()
                );
                self.error(node, codes::WRONG_TYPE, message, hint);
                return None;
            }
        }
        Some(())
    }

    /// The message: its payload and its headers.
    fn asyncapi_message(&mut self, node: &Node) -> Option<Template> {
        let obj = self.object(node, "'message'", &["payload", "headers"])?;
        let mut parts = Vec::new();
        for name in ["payload", "headers"] {
            let Some(node) = obj.get(name) else {
                continue;
            };
            let is_map = node.members().is_some() || self.is_expression(node, DEFINITION);
            if name == "headers" && !is_map {
                self.wrong_type(node, "'headers'", "an object");
                return None;
            }
            parts.push((name.to_owned(), self.value(node, DEFINITION, true)?));
        }
        Some(Template::Object(parts))
    }
}
