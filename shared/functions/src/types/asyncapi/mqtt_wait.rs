//! Waiting for a message over MQTT.
//!
//! Each wait has its own connection and session, which end with it. The broker delivers the message that it retained
//! for the topic, if there is one, otherwise the next one.

use rumqttc::v5::mqttbytes::QoS as QoS5;
use rumqttc::v5::mqttbytes::v5::{Packet as Packet5, SubscribeReasonCode as Reason5};
use rumqttc::{Packet, QoS, SubscribeReasonCode, v5};

use super::compile::Sending;
use super::incoming::{Came, Incoming};
use super::mqtt::{Failure, Key, Session, failure_4, failure_5, open, refused};
use super::server::MqttVersion;
use crate::auth::Auth;
use crate::{CallError, CallErrorKind};

/// The maximum size of a packet's topic and properties.
const BESIDE_BYTES_MAX: usize = 256 * 1024;

pub(super) async fn receive(
    sending: &Sending,
    incoming: &Incoming<'_>,
    auth: Option<&Auth>,
    tls: bool,
    version: MqttVersion,
) -> Result<Came, CallError> {
    let what = &incoming.what;
    let key = Key::of(&sending.server, auth, tls, version, what)?;
    let limit = incoming.bytes_max.saturating_add(BESIDE_BYTES_MAX);
    let session = open(&key, limit).map_err(|failure| failure.error(what))?;
    let qos = sending.bindings.qos;
    let came = match session {
        Session::V4(client, events) => receive_4(client, *events, qos, incoming).await,
        Session::V5(client, events) => receive_5(client, *events, qos, incoming).await,
    };
    came.map_err(|failure| failure.error(what))
}

async fn receive_4(
    client: rumqttc::AsyncClient,
    mut events: rumqttc::EventLoop,
    qos: u8,
    incoming: &Incoming<'_>,
) -> Result<Came, Failure> {
    let qos = match qos {
        0 => QoS::AtMostOnce,
        1 => QoS::AtLeastOnce,
        _ => QoS::ExactlyOnce,
    };
    let queued = client.subscribe(incoming.address.clone(), qos).await;
    queued.map_err(|error| Failure(CallErrorKind::Arguments, error.to_string()))?;
    loop {
        match events.poll().await.map_err(|error| failure_4(&error))? {
            rumqttc::Event::Incoming(Packet::SubAck(ack)) => {
                if ack.return_codes.contains(&SubscribeReasonCode::Failure) {
                    return Err(refused("Failure"));
                }
                incoming.is_waiting();
            }
            rumqttc::Event::Incoming(Packet::Publish(message)) => {
                return Ok(Came::of(&message.payload));
            }
            _ => {}
        }
    }
}

async fn receive_5(
    client: v5::AsyncClient,
    mut events: v5::EventLoop,
    qos: u8,
    incoming: &Incoming<'_>,
) -> Result<Came, Failure> {
    let qos = match qos {
        0 => QoS5::AtMostOnce,
        1 => QoS5::AtLeastOnce,
        _ => QoS5::ExactlyOnce,
    };
    let queued = client.subscribe(incoming.address.clone(), qos).await;
    queued.map_err(|error| Failure(CallErrorKind::Arguments, error.to_string()))?;
    loop {
        match events.poll().await.map_err(|error| failure_5(&error))? {
            v5::Event::Incoming(Packet5::SubAck(ack)) => {
                let mut codes = ack.return_codes.iter();
                if let Some(code) = codes.find(|code| !matches!(code, Reason5::Success(_))) {
                    return Err(refused(&format!("{code:?}")));
                }
                incoming.is_waiting();
            }
            v5::Event::Incoming(Packet5::Publish(message)) => {
                return Ok(Came::of(&message.payload));
            }
            _ => {}
        }
    }
}
