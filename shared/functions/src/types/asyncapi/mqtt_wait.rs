//! Waiting for a message over MQTT.
//!
//! Each wait has its own connection and session, which end with it. The broker delivers the message that it retained
//! for the topic first, if there is one.

use rumqttc::v5::mqttbytes::QoS as QoS5;
use rumqttc::v5::mqttbytes::v5::{Packet as Packet5, SubscribeReasonCode as Reason5};
use rumqttc::{Packet, QoS, SubscribeReasonCode, v5};

use super::came::{Came, Took};
use super::compile::Sending;
use super::incoming::Incoming;
use super::mqtt::{Failure, Key, Link, failure_4, failure_5, open, refused};
use super::server::MqttVersion;
use crate::auth::Auth;
use crate::egress::Gate;
use crate::{CallError, CallErrorKind};

/// The maximum size of a packet's topic and properties.
const BESIDE_BYTES_MAX: usize = 256 * 1024;

/// Why no more messages are taken.
enum Wrong {
    /// Of the subscription itself.
    Own(CallError),
    Session(Failure),
}

pub(super) async fn receive(
    sending: &Sending,
    incoming: &Incoming<'_>,
    auth: Option<&Auth>,
    tls: bool,
    version: MqttVersion,
    gate: &Gate,
) -> Result<(), CallError> {
    let what = &incoming.what;
    let key = Key::of(&sending.server, auth, tls, version, what)?;
    let limit = incoming.bytes_max.saturating_add(BESIDE_BYTES_MAX);
    let session = open(&key, limit, gate).await;
    let mut session = session.map_err(|failure| failure.error(what))?;
    let qos = sending.bindings.qos;
    let taken = match &mut session.link {
        Link::V4(client, events) => receive_4(client, events, qos, incoming).await,
        Link::V5(client, events) => receive_5(client, events, qos, incoming).await,
    };
    // An error of the subscription itself stays as it is.
    match taken {
        Ok(()) => Ok(()),
        Err(Wrong::Own(error)) => Err(error),
        Err(Wrong::Session(failure)) => Err(session.because(failure).error(what)),
    }
}

async fn receive_4(
    client: &rumqttc::AsyncClient,
    events: &mut rumqttc::EventLoop,
    qos: u8,
    incoming: &Incoming<'_>,
) -> Result<(), Wrong> {
    let qos = match qos {
        0 => QoS::AtMostOnce,
        1 => QoS::AtLeastOnce,
        _ => QoS::ExactlyOnce,
    };
    let queued = client.subscribe(incoming.address.clone(), qos).await;
    queued.map_err(|error| Wrong::Session(Failure(CallErrorKind::Arguments, error.to_string())))?;
    loop {
        let Some(event) = incoming.next(events.poll()).await else {
            return Ok(());
        };
        match event.map_err(|error| Wrong::Session(failure_4(&error)))? {
            rumqttc::Event::Incoming(Packet::SubAck(ack)) => {
                if ack.return_codes.contains(&SubscribeReasonCode::Failure) {
                    return Err(Wrong::Session(refused("Failure")));
                }
                incoming.is_waiting();
            }
            rumqttc::Event::Incoming(Packet::Publish(message)) => {
                let took = incoming.take(Came::of(&message.payload));
                if took.map_err(Wrong::Own)? == Took::Last {
                    return Ok(());
                }
            }
            _ => {}
        }
    }
}

async fn receive_5(
    client: &v5::AsyncClient,
    events: &mut v5::EventLoop,
    qos: u8,
    incoming: &Incoming<'_>,
) -> Result<(), Wrong> {
    let qos = match qos {
        0 => QoS5::AtMostOnce,
        1 => QoS5::AtLeastOnce,
        _ => QoS5::ExactlyOnce,
    };
    let queued = client.subscribe(incoming.address.clone(), qos).await;
    queued.map_err(|error| Wrong::Session(Failure(CallErrorKind::Arguments, error.to_string())))?;
    loop {
        let Some(event) = incoming.next(events.poll()).await else {
            return Ok(());
        };
        match event.map_err(|error| Wrong::Session(failure_5(&error)))? {
            v5::Event::Incoming(Packet5::SubAck(ack)) => {
                let mut codes = ack.return_codes.iter();
                if let Some(code) = codes.find(|code| !matches!(code, Reason5::Success(_))) {
                    return Err(Wrong::Session(refused(&format!("{code:?}"))));
                }
                incoming.is_waiting();
            }
            v5::Event::Incoming(Packet5::Publish(message)) => {
                let properties = message.properties.unwrap_or_default();
                let correlation = properties.correlation_data;
                let correlation = correlation.map(|id| String::from_utf8_lossy(&id).into_owned());
                let came = Came {
                    headers: properties.user_properties,
                    correlation,
                    ..Came::of(&message.payload)
                };
                if incoming.take(came).map_err(Wrong::Own)? == Took::Last {
                    return Ok(());
                }
            }
            _ => {}
        }
    }
}
