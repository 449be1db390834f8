//! Sends a message, over the protocol of its server.

use swirl_model::Data;

use super::compile::Sending;
use super::outgoing::Outgoing;
use super::server::Protocol;
use super::{kept, ws};
use crate::CallError;
use crate::auth::Auth;
use crate::types::Clients;
use crate::types::rest::answer;
use crate::types::service::{Ask, IDEMPOTENCY_KEY};

pub(super) async fn send(
    clients: &Clients,
    sending: &Sending,
    outgoing: &Outgoing<'_>,
    auth: Option<&Auth>,
) -> Result<Data, CallError> {
    kept::renewing(|| once(clients, sending, outgoing, auth)).await
}

async fn once(
    clients: &Clients,
    sending: &Sending,
    outgoing: &Outgoing<'_>,
    auth: Option<&Auth>,
) -> Result<Data, CallError> {
    let brokers = &clients.brokers;
    let server = &sending.server;
    let gate = clients.services.http().gate();
    if server.protocol != Protocol::Http {
        server.allowed(gate, &outgoing.what).await?;
    }
    match server.protocol {
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
            let mqtt = brokers
                .mqtt
                .send(sending, outgoing, auth, tls, version, gate);
            mqtt.await.map(|()| Data::NULL)
        }
        Protocol::Nats { tls } => {
            let tokens = clients.services.tokens();
            brokers
                .nats
                .send(sending, outgoing, auth, tls, tokens, gate)
                .await
        }
        Protocol::Redis { tls } => {
            let sent = brokers.redis.send(sending, outgoing, auth, tls, gate).await;
            sent.map(|()| Data::NULL)
        }
        Protocol::Ws => ws::send(clients, sending, outgoing, auth).await,
    }
}

async fn http(
    clients: &Clients,
    sending: &Sending,
    outgoing: &Outgoing<'_>,
    auth: Option<&Auth>,
) -> Result<Data, CallError> {
    let url = sending.server.target(&outgoing.address);
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
        follows: true,
        what: &outgoing.what,
        secrets: outgoing.secrets,
    };
    let reply = clients.services.ask(&ask, auth).await?;
    let data = answer::data(&reply.answer, &outgoing.what, &reply.secrets, "")?;
    Ok(data)
}
