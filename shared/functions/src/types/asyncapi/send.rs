//! Sending a message over the protocol of its server.

use reqwest::Method;
use swirl_model::Data;
use url::Url;

use super::amqp::Amqp;
use super::compile::Sending;
use super::kafka::Kafka;
use super::mqtt::Mqtt;
use super::nats::Nats;
use super::receive::Waits;
use super::redis::Redis;
use super::server::{Protocol, Server};
use super::ws;
use crate::CallError;
use crate::auth::{Auth, Secret, Tokens};
use crate::exchange;
use crate::http::shown;
use crate::types::Clients;
use crate::types::rest::answer;
use crate::types::service::{Ask, IDEMPOTENCY_KEY};
use crate::watch::{self, Content};

/// Connections to brokers.
#[derive(Debug, Default)]
pub(crate) struct Brokers {
    pub(super) amqp: Amqp,
    pub(super) kafka: Kafka,
    pub(super) mqtt: Mqtt,
    pub(super) nats: Nats,
    pub(super) redis: Redis,
    pub(super) waits: Waits,
}

/// A message with all that a broker needs.
pub(super) struct Outgoing<'a> {
    /// Names it in errors.
    pub(super) what: String,
    pub(super) address: String,
    pub(super) payload: Vec<u8>,
    pub(super) content_type: String,
    pub(super) headers: Vec<(String, String)>,
    /// Kafka's key of the message, by which it chooses a partition.
    pub(super) partition_key: Option<String>,
    /// The same for each repeat of the call.
    pub(super) key: &'a str,
    /// Cut out of answers.
    pub(super) secrets: &'a [String],
}

impl Outgoing<'_> {
    /// The message in its final form. Its key is among the headers, under any name that its broker
    /// has for it.
    pub(super) fn seen(&self, server: &Server) -> watch::Sending {
        let own = [
            ("content-type", Some(self.content_type.as_str())),
            (IDEMPOTENCY_KEY, Some(self.key)),
            ("partition-key", self.partition_key.as_deref()),
        ];
        let own = own
            .into_iter()
            .filter_map(|(name, value)| Some((name.to_owned(), value?.to_owned())));
        watch::Sending {
            protocol: server.protocol.word(),
            target: self.what.clone(),
            headers: own.chain(self.headers.iter().cloned()).collect(),
            body: Content::Bytes(self.payload.clone()),
        }
    }
}

/// A request to a subject that no document describes.
pub(crate) struct Asking<'a> {
    /// `nats` or `tls`, with the credentials that hold if no others do.
    pub(crate) server: &'a Url,
    pub(crate) subject: &'a str,
    /// JSON.
    pub(crate) payload: Vec<u8>,
    pub(crate) headers: Vec<(String, String)>,
    /// The same for each repeat of the call.
    pub(crate) key: &'a str,
    /// Names it in errors.
    pub(crate) what: &'a str,
}

impl Brokers {
    /// Asks the service that replies on a subject; gives the reply's JSON, or its text.
    ///
    /// # Errors
    /// `connection` if no service replies.
    pub(crate) async fn ask(
        &self,
        asking: Asking<'_>,
        auth: Option<&Auth>,
        tokens: &Tokens,
    ) -> Result<Data, CallError> {
        let server = asking.server;
        let own = server.password().map(|password| Auth::Basic {
            username: decoded(server.username()),
            password: Secret::new(decoded(password)),
        });
        let outgoing = Outgoing {
            what: asking.what.to_owned(),
            address: asking.subject.to_owned(),
            payload: asking.payload,
            content_type: "application/json".to_owned(),
            headers: asking.headers,
            partition_key: None,
            key: asking.key,
            secrets: &[],
        };
        let address = format!(
            "{}:{}",
            server.host_str().unwrap_or_default(),
            server.port().unwrap_or(4222)
        );
        let place = (
            server.host_str().unwrap_or_default(),
            server.port().unwrap_or(4222),
        );
        exchange::note_message("nats", place, asking.subject, false);
        watch::sending(|| watch::Sending {
            protocol: "nats",
            target: asking.what.to_owned(),
            headers: outgoing.headers.clone(),
            body: Content::Bytes(outgoing.payload.clone()),
        })
        .await;
        let tls = server.scheme() == "tls";
        let auth = auth.or(own.as_ref());
        self.nats.ask(address, tls, &outgoing, auth, tokens).await
    }
}

fn decoded(text: &str) -> String {
    let text = percent_encoding::percent_decode_str(text);
    text.decode_utf8_lossy().into_owned()
}

pub(super) fn what(server: &Server, method: &Method, address: &str) -> String {
    match server.protocol {
        Protocol::Http => format!("{method} {}", shown(&target(&server.url, address))),
        Protocol::Ws => format!("message to {}", shown(&target(&server.url, address))),
        _ => format!(
            "message to `{address}` at {}:{}",
            server.host(),
            server.port()
        ),
    }
}

pub(super) fn target(server: &Url, address: &str) -> Url {
    let mut url = server.clone();
    let path = server.path().trim_end_matches('/');
    url.set_path(&format!("{path}/{}", address.trim_start_matches('/')));
    url
}

pub(super) async fn send(
    clients: &Clients,
    sending: &Sending,
    outgoing: &Outgoing<'_>,
    auth: Option<&Auth>,
) -> Result<Data, CallError> {
    let brokers = &clients.brokers;
    let server = &sending.server;
    if server.protocol != Protocol::Http {
        allowed(clients, server, &outgoing.what).await?;
    }
    let gate = clients.services.http().gate();
    match sending.server.protocol {
        Protocol::Amqp { tls } => {
            let sent = brokers.amqp.send(sending, outgoing, auth, tls, gate).await;
            sent.map(|()| Data::NULL)
        }
        Protocol::Http => http(clients, sending, outgoing, auth).await,
        Protocol::Kafka { tls } => {
            let kafka = brokers.kafka.send(sending, outgoing, auth, tls, gate);
            kafka.await.map(|()| Data::NULL)
        }
        Protocol::Mqtt { tls, version } => {
            let mqtt = brokers.mqtt.send(sending, outgoing, auth, tls, version);
            mqtt.await.map(|()| Data::NULL)
        }
        Protocol::Nats { tls } => {
            let tokens = clients.services.tokens();
            brokers
                .nats
                .send(sending, outgoing, auth, tls, tokens)
                .await
        }
        Protocol::Redis { tls } => {
            let sent = brokers.redis.send(sending, outgoing, auth, tls).await;
            sent.map(|()| Data::NULL)
        }
        Protocol::Ws => ws::send(clients, sending, outgoing, auth).await,
    }
}

/// Whether calls may reach a server.
pub(super) async fn allowed(
    clients: &Clients,
    server: &Server,
    what: &str,
) -> Result<(), CallError> {
    let gate = clients.services.http().gate();
    let checked = gate.check(&server.host(), server.port()).await;
    checked.map_err(|refused| CallError::arguments(format!("{what}: {refused}")))
}

async fn http(
    clients: &Clients,
    sending: &Sending,
    outgoing: &Outgoing<'_>,
    auth: Option<&Auth>,
) -> Result<Data, CallError> {
    let url = target(&sending.server.url, &outgoing.address);
    let mut headers = vec![
        ("accept", "application/json, */*;q=0.1"),
        ("content-type", outgoing.content_type.as_str()),
        (IDEMPOTENCY_KEY, outgoing.key),
    ];
    headers.extend(
        outgoing
            .headers
            .iter()
            .map(|(name, value)| (name.as_str(), value.as_str())),
    );
    let ask = Ask {
        method: sending.bindings.method.clone(),
        url: &url,
        headers: &headers,
        body: Some(&outgoing.payload),
        what: &outgoing.what,
        secrets: outgoing.secrets,
    };
    let reply = clients.services.ask(&ask, auth).await?;
    let data = answer::data(&reply.answer, &outgoing.what, &reply.secrets, "")?;
    Ok(data)
}
