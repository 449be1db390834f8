//! Messages over AMQP 0.9.1, the version that RabbitMQ supports.
//!
//! The operator declares exchanges and queues, except for a temporary queue while a call waits on an exchange. A sent
//! message counts as delivered when the broker has confirmed it. A received message is acknowledged when it is stored
//! as the call's result; otherwise it returns to its queue.

use std::sync::Arc;
use std::time::Duration;

use futures::StreamExt as _;
use lapin::message::Delivery;
use lapin::options::{
    BasicAckOptions, BasicConsumeOptions, BasicPublishOptions, BasicQosOptions,
    ConfirmSelectOptions, QueueBindOptions, QueueDeclareOptions,
};
use lapin::types::{AMQPValue, FieldTable};
use lapin::uri::{AMQPAuthority, AMQPQueryString, AMQPScheme, AMQPUri, AMQPUserInfo};
use lapin::{BasicProperties, Channel, Confirmation, Connection, ConnectionProperties, ErrorKind};
use percent_encoding::percent_decode_str;
use swirl_model::messages::MESSAGES_MAX;

use super::came::{Came, Took};
use super::compile::Sending;
use super::gated::{Gated, TlsStart, way_to};
use super::incoming::Incoming;
use super::kept::Kept;
use super::mqtt::basic;
use super::outgoing::Outgoing;
use super::pace::Pace;
use crate::auth::{Auth, Secret};
use crate::egress::Gate;
use crate::{CallError, CallErrorKind};

/// The time limit for connecting.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);

/// The silence after which both sides consider a connection broken.
const HEARTBEAT_S: u16 = 20;

/// The time limit for the broker to read an acknowledgement.
const SETTLE_TIMEOUT: Duration = Duration::from_secs(5);

/// The credentials that brokers by default accept only from this machine.
const GUEST: &str = "guest";

/// Closes a channel or a connection properly.
const OK: u16 = 200;

#[derive(Debug, Default)]
pub(super) struct Amqp {
    kept: Kept<Key, Arc<Link>>,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct Key {
    host: String,
    port: u16,
    tls: bool,
    vhost: String,
    login: Option<(String, Secret)>,
}

/// A connection with everything that it needs.
struct Link {
    connection: Connection,
    /// For a connection over TLS, or of a subscription.
    _relay: Option<Gated>,
}

impl Key {
    fn of(sending: &Sending, auth: Option<&Auth>, tls: bool, what: &str) -> Result<Key, CallError> {
        let server = &sending.server;
        let path = server.url.path().trim_start_matches('/');
        let vhost = match (&sending.bindings.amqp.vhost, path) {
            (Some(vhost), _) => vhost.clone(),
            (None, "") => "/".to_owned(),
            (None, path) => percent_decode_str(path).decode_utf8_lossy().into_owned(),
        };
        Ok(Key {
            host: server.host(),
            port: server.port(),
            tls,
            vhost,
            login: basic(auth, "AMQP", what)?,
        })
    }

    async fn connect(
        &self,
        gate: &Gate,
        pace: Option<&Arc<Pace>>,
    ) -> Result<Arc<Link>, (CallErrorKind, String)> {
        let broken = |reason: String| (CallErrorKind::Connection, reason);
        let guest = || (GUEST.to_owned(), Secret::new(GUEST));
        let (username, password) = self.login.clone().unwrap_or_else(guest);
        let start = self.tls.then_some(TlsStart::AtOnce);
        let way = way_to(gate, &self.host, self.port, start, pace).await;
        let (address, relay) = way.map_err(|reason| broken(format!("no connection: {reason}")))?;
        let uri = AMQPUri {
            scheme: AMQPScheme::AMQP,
            authority: AMQPAuthority {
                userinfo: AMQPUserInfo {
                    username,
                    password: password.expose().to_owned(),
                },
                host: address.ip().to_string(),
                port: address.port(),
            },
            vhost: self.vhost.clone(),
            query: AMQPQueryString {
                heartbeat: Some(HEARTBEAT_S),
                ..AMQPQueryString::default()
            },
        };
        let properties = ConnectionProperties::default().with_connection_name("swirl".into());
        let connected = Connection::connect_uri(uri, properties);
        let connected = tokio::time::timeout(CONNECT_TIMEOUT, connected).await;
        let failed = relay.as_ref().and_then(Gated::failed);
        match (connected, failed) {
            (Ok(Ok(connection)), _) => Ok(Arc::new(Link {
                connection,
                _relay: relay,
            })),
            (_, Some(reason)) => Err(broken(format!("no connection: {reason}"))),
            (Ok(Err(error)), None) => Err((kind(&error), format!("no connection: {error}"))),
            (Err(_), None) => Err(broken("no connection in time".to_owned())),
        }
    }
}

impl Amqp {
    /// With a pace, its connection is its own.
    async fn channel(
        &self,
        key: &Key,
        gate: &Gate,
        pace: Option<&Arc<Pace>>,
        what: &str,
    ) -> Result<(Arc<Link>, Channel), CallError> {
        let is_alive = |kept: Arc<Link>| async move { kept.connection.status().connected() };
        let connect = key.connect(gate, pace);
        let connected = match pace {
            None => self.kept.get(key, is_alive, connect).await,
            Some(_) => connect.await,
        };
        let link = connected
            .map_err(|(kind, reason)| CallError::new(kind, format!("{what}: {reason}")))?;
        let channel = link.connection.create_channel().await;
        let channel = channel.map_err(|error| failed(what, &error))?;
        Ok((link, channel))
    }

    pub(super) async fn send(
        &self,
        sending: &Sending,
        outgoing: &Outgoing<'_>,
        auth: Option<&Auth>,
        tls: bool,
        gate: &Gate,
    ) -> Result<(), CallError> {
        let what = &outgoing.what;
        let wrong = |error: lapin::Error| failed(what, &error);
        let key = Key::of(sending, auth, tls, what)?;
        let binding = &sending.bindings.amqp;
        let mut headers = FieldTable::default();
        for (name, value) in &outgoing.headers {
            headers.insert(
                name.as_str().into(),
                AMQPValue::LongString(value.as_str().into()),
            );
        }
        let mut properties = BasicProperties::default()
            .with_content_type(outgoing.content_type.as_str().into())
            .with_message_id(outgoing.key.into())
            .with_delivery_mode(if binding.is_transient { 1 } else { 2 })
            .with_headers(headers);
        if let Some(priority) = binding.priority {
            properties = properties.with_priority(priority);
        }
        if let Some(expiration) = binding.expiration {
            properties = properties.with_expiration(expiration.to_string().into());
        }
        let (_, channel) = self.channel(&key, gate, None, what).await?;
        let confirming = channel.confirm_select(ConfirmSelectOptions::default());
        confirming.await.map_err(wrong)?;
        let options = BasicPublishOptions {
            mandatory: binding.mandatory.unwrap_or(binding.exchange.is_empty()),
            immediate: false,
        };
        let routing_key = binding.queue.as_ref().unwrap_or(&outgoing.address);
        let published = channel
            .basic_publish(
                binding.exchange.as_str().into(),
                routing_key.as_str().into(),
                options,
                &outgoing.payload,
                properties,
            )
            .await
            .map_err(wrong)?;
        let refused = |reason: &str| {
            let message = format!("{what}: the broker refused it: {reason}");
            Err(CallError::new(CallErrorKind::Failed, message))
        };
        match published.await.map_err(wrong)? {
            Confirmation::Ack(None) | Confirmation::NotRequested => Ok(()),
            Confirmation::Ack(Some(_)) | Confirmation::Nack(Some(_)) => {
                refused("no queue accepts it")
            }
            Confirmation::Nack(None) => refused("it couldn't keep it"),
        }
    }

    pub(super) async fn receive(
        &self,
        sending: &Sending,
        incoming: &Incoming<'_>,
        auth: Option<&Auth>,
        tls: bool,
        gate: &Gate,
    ) -> Result<(), CallError> {
        let what = &incoming.what;
        let wrong = |error: lapin::Error| failed(what, &error);
        let key = Key::of(sending, auth, tls, what)?;
        // Messages that aren't taken yet are counted by RabbitMQ, and bounded in bytes by the pace.
        let pace = incoming.takes_many().then_some(&incoming.pace);
        let (link, channel) = self.channel(&key, gate, pace, what).await?;
        // Other messages stay with the broker.
        let wanted = match incoming.takes_first() {
            false => u16::try_from(MESSAGES_MAX).unwrap_or(u16::MAX),
            true => 1,
        };
        let prefetching = channel.basic_qos(wanted, BasicQosOptions::default());
        prefetching.await.map_err(wrong)?;
        let queue = self
            .queue(&channel, sending, incoming)
            .await
            .map_err(wrong)?;
        let consuming = channel.basic_consume(
            queue.as_str().into(),
            "".into(),
            BasicConsumeOptions::default(),
            FieldTable::default(),
        );
        let mut consumer = consuming.await.map_err(wrong)?;
        incoming.is_waiting();
        let mut last = None;
        let mut result = Ok(());
        while let Some(next) = incoming.next(consumer.next()).await {
            let delivery = match next {
                Some(Ok(delivery)) => delivery,
                Some(Err(error)) => return Err(failed(what, &error)),
                None => return Err(incoming.broken("the broker ended the wait")),
            };
            let took = read_delivery(&delivery, incoming).and_then(|came| incoming.take(came));
            match took {
                Ok(Took::Dropped) => {
                    let dropped = delivery.acker.ack(BasicAckOptions::default());
                    dropped.await.map_err(wrong)?;
                    continue;
                }
                Ok(Took::Kept) => {
                    last = Some(delivery.acker);
                    continue;
                }
                Ok(Took::Last) => {}
                // Of a failed subscription, the messages return to the queue.
                Err(error) if incoming.takes_many() => return Err(error),
                Err(error) => result = Err(error),
            }
            last = Some(delivery.acker);
            break;
        }
        let Some(acker) = last else {
            return result;
        };
        let watch = incoming.stored.watch();
        // Beside the call, whose result is stored when it has ended.
        tokio::spawn(async move {
            let ack = watch.stored().await;
            let settled = async {
                if ack.is_some() {
                    // And all before it.
                    acker.ack(BasicAckOptions { multiple: true }).await?;
                }
                // The broker answers after it has read the acknowledgement. Without one, it gives the messages to
                // others.
                channel.close(OK, "OK".into()).await
            };
            match tokio::time::timeout(SETTLE_TIMEOUT, settled).await {
                Ok(Ok(())) => {}
                Ok(Err(error)) => {
                    tracing::warn!(%error, "a message may come again: it is not acknowledged");
                }
                Err(_) => {
                    tracing::warn!("a message may come again: its acknowledgement took too long");
                }
            }
            drop((ack, consumer, link));
        });
        result
    }

    async fn queue(
        &self,
        channel: &Channel,
        sending: &Sending,
        incoming: &Incoming<'_>,
    ) -> lapin::Result<String> {
        let binding = &sending.bindings.amqp;
        if binding.exchange.is_empty() {
            return Ok(binding.queue.clone().unwrap_or(incoming.address.clone()));
        }
        let options = QueueDeclareOptions {
            exclusive: true,
            auto_delete: true,
            ..QueueDeclareOptions::default()
        };
        let own = channel
            .queue_declare("".into(), options, FieldTable::default())
            .await?;
        channel
            .queue_bind(
                own.name().clone(),
                binding.exchange.as_str().into(),
                incoming.address.as_str().into(),
                QueueBindOptions::default(),
                FieldTable::default(),
            )
            .await?;
        Ok(own.name().to_string())
    }
}

fn read_delivery(delivery: &Delivery, incoming: &Incoming<'_>) -> Result<Came, CallError> {
    let properties = &delivery.properties;
    let coding = properties.content_encoding().as_ref();
    let coding = coding.map(|coding| coding.as_str());
    let payload = swirl_content::decode(coding, delivery.data.clone(), incoming.bytes_max);
    let payload = payload.map_err(|error| {
        let message = format!("{}: {error}", incoming.what);
        CallError::new(CallErrorKind::Response, message)
    })?;
    let headers = properties.headers().as_ref();
    let headers = headers.into_iter().flat_map(|headers| headers.inner());
    let texts = headers.filter_map(|(name, value)| Some((name.to_string(), text(value)?)));
    let correlation = properties.correlation_id().as_ref();
    Ok(Came {
        payload,
        headers: texts.collect(),
        correlation: correlation.map(|id| id.to_string()),
    })
}

/// A header's value, if it is a single one.
fn text(value: &AMQPValue) -> Option<String> {
    Some(match value {
        AMQPValue::Boolean(value) => value.to_string(),
        AMQPValue::ShortShortInt(value) => value.to_string(),
        AMQPValue::ShortShortUInt(value) => value.to_string(),
        AMQPValue::ShortInt(value) => value.to_string(),
        AMQPValue::ShortUInt(value) => value.to_string(),
        AMQPValue::LongInt(value) => value.to_string(),
        AMQPValue::LongUInt(value) => value.to_string(),
        AMQPValue::LongLongInt(value) => value.to_string(),
        AMQPValue::ShortString(value) => value.to_string(),
        AMQPValue::LongString(value) => value.to_string(),
        _ => return None,
    })
}

fn kind(error: &lapin::Error) -> CallErrorKind {
    match error.kind() {
        // Access was refused.
        ErrorKind::ProtocolError(error) if error.get_id() == 403 => CallErrorKind::Auth,
        // The broker is stopping, or an operator closed the connection.
        ErrorKind::ProtocolError(error) if error.get_id() == 320 => CallErrorKind::Connection,
        ErrorKind::ProtocolError(_) => CallErrorKind::Failed,
        _ => CallErrorKind::Connection,
    }
}

fn failed(what: &str, error: &lapin::Error) -> CallError {
    CallError::new(kind(error), format!("{what}: {error}"))
}

#[cfg(test)]
mod tests {
    use super::super::gated::refusing;
    use super::*;

    #[tokio::test]
    async fn over_tls_only_permitted_addresses_are_reached() {
        let key = Key {
            host: "localhost".to_owned(),
            port: 1,
            tls: true,
            vhost: "/".to_owned(),
            login: None,
        };
        let (_, refused) = key.connect(&refusing(1), None).await.err().unwrap();
        assert!(
            refused.contains("a server of this installation"),
            "{refused}"
        );
    }
}
