//! Protocol settings in a document: the bindings of channels, operations and messages.

use reqwest::Method;

use super::document::{Document, FoundOperation};
use super::server::Protocol;
use crate::types::rest::Node;

/// They apply if the server has the protocol in question.
#[derive(Debug)]
pub(super) struct Bindings {
    /// For HTTP.
    pub(super) method: Method,
    /// For MQTT: 0, 1 or 2.
    pub(super) qos: u8,
    /// For MQTT.
    pub(super) retain: bool,
    /// For NATS: if several waits have the same group, only one of them gets a message.
    pub(super) group: Option<String>,
    pub(super) amqp: Amqp,
    /// For Kafka: takes precedence over the channel's address.
    pub(super) topic: Option<String>,
}

#[derive(Debug, Default)]
pub(super) struct Amqp {
    /// Empty for the default exchange, where a routing key is the name of a queue.
    pub(super) exchange: String,
    /// Takes precedence over the channel's address.
    pub(super) queue: Option<String>,
    /// Takes precedence over the one in the server's URL.
    pub(super) vhost: Option<String>,
    /// Whether a message that no queue takes is an error. If the document doesn't say, this is an error only on the
    /// default exchange.
    pub(super) mandatory: Option<bool>,
    /// Whether a message is lost when the broker restarts.
    pub(super) is_transient: bool,
    pub(super) priority: Option<u8>,
    /// In milliseconds.
    pub(super) expiration: Option<u64>,
}

impl Bindings {
    pub(super) fn read(
        document: &Document,
        found: &FoundOperation<'_>,
        protocol: Protocol,
    ) -> Result<Bindings, String> {
        let mut bindings = Bindings {
            method: Method::POST,
            qos: 1,
            retain: false,
            group: None,
            amqp: Amqp::default(),
            topic: None,
        };
        let name = match protocol {
            Protocol::Amqp { .. } => "amqp",
            Protocol::Http => "http",
            Protocol::Kafka { .. } => "kafka",
            Protocol::Mqtt { .. } => "mqtt",
            Protocol::Nats { .. } => "nats",
            // Redis defines no bindings.
            Protocol::Redis { .. } => return Ok(bindings),
            Protocol::Ws => "ws",
        };
        if let Some(all) = document.trait_member(&found.operation, "bindings")?
            && let Some(own) = document.member(&all, name)?
        {
            bindings.operation(&own, protocol)?;
        }
        if let Some(all) = document.member(&found.channel, "bindings")?
            && let Some(own) = document.member(&all, name)?
        {
            bindings.channel(document, &own, protocol)?;
        }
        Ok(bindings)
    }

    fn operation(&mut self, own: &Node<'_>, protocol: Protocol) -> Result<(), String> {
        match protocol {
            Protocol::Http => {
                if own.get("query").is_some() {
                    return Err(format!(
                        "{}: `query` of the HTTP binding isn't supported; describe the \
                         operation in OpenAPI and use a function of type `rest`",
                        own.at
                    ));
                }
                if let Some(method) = own.text("method") {
                    self.method = Method::from_bytes(method.to_ascii_uppercase().as_bytes())
                        .map_err(|_| {
                            format!("{}: `{method}` is not a valid HTTP method", own.at)
                        })?;
                }
            }
            Protocol::Mqtt { .. } => {
                if let Some(qos) = own.get("qos") {
                    let found = qos.value.as_u64().filter(|qos| *qos <= 2);
                    let found = found.ok_or_else(|| format!("{}: it is 0, 1 or 2", qos.at))?;
                    self.qos = found as u8;
                }
                self.retain = own.flag("retain").unwrap_or(false);
            }
            Protocol::Nats { .. } => self.group = own.text("queue").map(str::to_owned),
            Protocol::Amqp { .. } => {
                let amqp = &mut self.amqp;
                amqp.mandatory = own.flag("mandatory");
                amqp.is_transient = match own.get("deliveryMode").map(|mode| mode.value.as_u64()) {
                    None | Some(Some(2)) => false,
                    Some(Some(1)) => true,
                    Some(_) => return Err(format!("{}/deliveryMode: it is 1 or 2", own.at)),
                };
                if let Some(priority) = own.get("priority") {
                    let found = priority.value.as_u64().and_then(|it| u8::try_from(it).ok());
                    let found = found.ok_or_else(|| format!("{}: it is 0 to 255", priority.at))?;
                    amqp.priority = Some(found);
                }
                if let Some(expiration) = own.get("expiration") {
                    let found = expiration.value.as_u64();
                    let wrong = || format!("{}: it is a number of milliseconds", expiration.at);
                    amqp.expiration = Some(found.ok_or_else(wrong)?);
                }
            }
            Protocol::Kafka { .. } | Protocol::Redis { .. } | Protocol::Ws => {}
        }
        Ok(())
    }

    fn channel(
        &mut self,
        document: &Document,
        own: &Node<'_>,
        protocol: Protocol,
    ) -> Result<(), String> {
        match protocol {
            Protocol::Amqp { .. } => {
                let (exchange, queue) = (
                    document.member(own, "exchange")?,
                    document.member(own, "queue")?,
                );
                let amqp = &mut self.amqp;
                let part = match own.text("is") {
                    None | Some("routingKey") => {
                        if let Some(exchange) = &exchange {
                            amqp.exchange = exchange.text("name").unwrap_or_default().to_owned();
                        }
                        exchange
                    }
                    Some("queue") => {
                        let name = queue.as_ref().and_then(|queue| queue.text("name"));
                        amqp.queue = name.map(str::to_owned);
                        queue
                    }
                    Some(other) => {
                        return Err(format!(
                            "{}/is: `{other}` is not a valid kind of channel; write `queue` or \
                             `routingKey`",
                            own.at
                        ));
                    }
                };
                let vhost = part.and_then(|part| part.text("vhost"));
                amqp.vhost = vhost.map(str::to_owned);
            }
            Protocol::Kafka { .. } => self.topic = own.text("topic").map(str::to_owned),
            Protocol::Ws => {
                if own.get("query").is_some() {
                    return Err(format!(
                        "{}: `query` of the WebSocket binding isn't supported",
                        own.at
                    ));
                }
            }
            Protocol::Http
            | Protocol::Mqtt { .. }
            | Protocol::Nats { .. }
            | Protocol::Redis { .. } => {}
        }
        Ok(())
    }
}
