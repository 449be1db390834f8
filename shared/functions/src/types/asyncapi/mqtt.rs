//! Messages over MQTT 3.1.1 and 5.
//!
//! Each call has exclusive use of a connection, which the next call can reuse; so dropping a call also drops its
//! message. A message counts as delivered when the broker has acknowledged it (quality of service 1, the default, and
//! 2), or when it has been written (0).

use std::hash::{BuildHasher as _, Hasher as _, RandomState};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use futures::FutureExt as _;
use rumqttc::v5::mqttbytes::QoS as QoS5;
use rumqttc::v5::mqttbytes::v5::{
    Packet as Packet5, PubAckReason, PubRecReason, PublishProperties,
};
use rumqttc::{Outgoing as Written, Packet, QoS, v5};
use tokio::sync::Semaphore;

use super::compile::Sending;
use super::gated::{Gated, TlsStart, way_to};
use super::kept;
use super::outgoing::Outgoing;
use super::server::{MqttVersion, Server};
use crate::auth::{Auth, Secret};
use crate::egress::Gate;
use crate::types::service::TRACEPARENT;
use crate::{CallError, CallErrorKind};

/// The maximum number of messages in flight. Further calls queue, which counts towards their time limit.
const CONNECTIONS_MAX: usize = 256;

/// The maximum number of connections kept for later calls.
const IDLE_MAX: usize = 64;

/// How long an idle connection is kept. The broker gets no answers on it.
const IDLE: Duration = Duration::from_secs(15);

/// The broker closes a connection after a silence of one and a half times this.
const KEEP_ALIVE: Duration = Duration::from_secs(10);

/// The limit for connecting, in seconds.
const CONNECT_TIMEOUT_S: u64 = 5;

/// The largest packet that MQTT allows.
const PACKET_BYTES_MAX: usize = 256 * 1024 * 1024;

/// The maximum number of events that are read from a kept connection.
const EVENTS_MAX: usize = 32;

/// The largest answer of a broker to a sender.
const ANSWER_BYTES_MAX: usize = 64 * 1024;

#[derive(Debug)]
pub(super) struct Mqtt {
    places: Semaphore,
    idle: Mutex<Vec<(Key, Session, Instant)>>,
}

impl Default for Mqtt {
    fn default() -> Mqtt {
        Mqtt {
            places: Semaphore::new(CONNECTIONS_MAX),
            idle: Mutex::default(),
        }
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Key {
    host: String,
    port: u16,
    tls: bool,
    version: MqttVersion,
    login: Option<(String, Secret)>,
}

/// A connection, which is made when it is first used.
#[derive(Debug)]
pub(super) struct Session {
    pub(super) link: Link,
    /// For a connection over TLS.
    relay: Option<Gated>,
}

pub(super) enum Link {
    V4(rumqttc::AsyncClient, Box<rumqttc::EventLoop>),
    V5(v5::AsyncClient, Box<v5::EventLoop>),
}

impl Mqtt {
    pub(super) async fn send(
        &self,
        sending: &Sending,
        outgoing: &Outgoing<'_>,
        auth: Option<&Auth>,
        tls: bool,
        version: MqttVersion,
        gate: &Gate,
    ) -> Result<(), CallError> {
        let what = &outgoing.what;
        let is_asked = |(name, _): &(String, String)| name != TRACEPARENT;
        if version == MqttVersion::V4 && outgoing.headers.iter().any(is_asked) {
            let message = format!("{what}: MQTT 3 has no headers");
            return Err(CallError::arguments(message));
        }
        let key = Key::of(&sending.server, auth, tls, version, what)?;
        // The semaphore is never closed, and if it were, continuing would do no harm.
        let _place = self.places.acquire().await.ok();
        // The broker may have closed the connection meanwhile.
        let mut kept = self.take(&key).filter(|_| kept::may_reuse());
        if let Some(session) = &mut kept
            && !session.is_alive().await
        {
            kept = None;
        }
        let mut session = match kept {
            Some(session) => {
                kept::reused();
                session
            }
            None => {
                let session = open(&key, ANSWER_BYTES_MAX, gate).await;
                session.map_err(|failure| failure.error(what))?
            }
        };
        let sent = session.publish(sending, outgoing).await;
        sent.map_err(|failure| failure.error(what))?;
        self.keep(key, session);
        Ok(())
    }

    fn take(&self, key: &Key) -> Option<Session> {
        let mut idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner);
        idle.retain(|(_, _, since)| since.elapsed() < IDLE);
        let at = idle.iter().rposition(|(known, ..)| known == key)?;
        Some(idle.remove(at).1)
    }

    fn keep(&self, key: Key, session: Session) {
        let mut idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner);
        if idle.len() >= IDLE_MAX {
            idle.remove(0);
        }
        idle.push((key, session, Instant::now()));
    }
}

impl Key {
    pub(super) fn of(
        server: &Server,
        auth: Option<&Auth>,
        tls: bool,
        version: MqttVersion,
        what: &str,
    ) -> Result<Key, CallError> {
        let login = basic(auth, "MQTT", what)?;
        Ok(Key {
            host: server.host(),
            port: server.port(),
            tls,
            version,
            login,
        })
    }
}

/// User and password, for a protocol that has no other credentials.
pub(super) fn basic(
    auth: Option<&Auth>,
    protocol: &str,
    what: &str,
) -> Result<Option<(String, Secret)>, CallError> {
    match auth {
        None => Ok(None),
        Some(Auth::Basic { username, password }) => Ok(Some((username.clone(), password.clone()))),
        Some(other) => {
            let scheme = other.scheme();
            let message =
                format!("{what}: {protocol} takes auth of scheme `basic`, not `{scheme}`");
            Err(CallError::new(CallErrorKind::Auth, message))
        }
    }
}

pub(super) struct Failure(pub(super) CallErrorKind, pub(super) String);

impl Failure {
    pub(super) fn error(self, what: &str) -> CallError {
        CallError::new(self.0, format!("{what}: {}", self.1))
    }
}

/// `bytes_max`: the largest packet that the broker may send.
pub(super) async fn open(key: &Key, bytes_max: usize, gate: &Gate) -> Result<Session, Failure> {
    let broken = |reason: String| Failure(CallErrorKind::Connection, reason);
    // The broker disconnects a client when another one with the same id connects.
    let id = format!("swirl{:016x}", RandomState::new().build_hasher().finish());
    let start = key.tls.then_some(TlsStart::AtOnce);
    let way = way_to(gate, &key.host, key.port, start, None).await;
    let (address, relay) = way.map_err(broken)?;
    let (host, port) = (address.ip().to_string(), address.port());
    let link = match key.version {
        MqttVersion::V4 => {
            let mut options = rumqttc::MqttOptions::new(id, &host, port);
            options
                .set_keep_alive(KEEP_ALIVE)
                .set_max_packet_size(bytes_max, PACKET_BYTES_MAX);
            if let Some((user, password)) = &key.login {
                options.set_credentials(user, password.expose());
            }
            let (client, mut events) = rumqttc::AsyncClient::new(options, 4);
            events
                .network_options
                .set_connection_timeout(CONNECT_TIMEOUT_S);
            Link::V4(client, Box::new(events))
        }
        MqttVersion::V5 => {
            let mut options = v5::MqttOptions::new(id, &host, port);
            options
                .set_keep_alive(KEEP_ALIVE)
                .set_connection_timeout(CONNECT_TIMEOUT_S)
                .set_max_packet_size(Some(bytes_max.min(PACKET_BYTES_MAX) as u32));
            if let Some((user, password)) = &key.login {
                options.set_credentials(user, password.expose());
            }
            let (client, events) = v5::AsyncClient::new(options, 4);
            Link::V5(client, Box::new(events))
        }
    };
    Ok(Session { link, relay })
}

impl Session {
    /// Whether the connection is alive, as far as is known at this moment.
    async fn is_alive(&mut self) -> bool {
        // So that events which have arrived become visible.
        tokio::task::yield_now().await;
        for _ in 0..EVENTS_MAX {
            let ended = match &mut self.link {
                Link::V4(_, events) => events.poll().now_or_never().map(|it| it.is_err()),
                Link::V5(_, events) => events.poll().now_or_never().map(|it| it.is_err()),
            };
            match ended {
                None => return true,
                Some(true) => return false,
                Some(false) => {}
            }
        }
        false
    }

    async fn publish(&mut self, sending: &Sending, outgoing: &Outgoing<'_>) -> Result<(), Failure> {
        let published = match &mut self.link {
            Link::V4(client, events) => publish_4(client, events, sending, outgoing).await,
            Link::V5(client, events) => publish_5(client, events, sending, outgoing).await,
        };
        published.map_err(|failure| self.because(failure))
    }

    /// If the relay could not be used, the client doesn't know why.
    pub(super) fn because(&self, failure: Failure) -> Failure {
        match self.relay.as_ref().and_then(Gated::failed) {
            Some(reason) => Failure(CallErrorKind::Connection, reason),
            None => failure,
        }
    }
}

async fn publish_4(
    client: &rumqttc::AsyncClient,
    events: &mut rumqttc::EventLoop,
    sending: &Sending,
    outgoing: &Outgoing<'_>,
) -> Result<(), Failure> {
    let qos = match sending.bindings.qos {
        0 => QoS::AtMostOnce,
        1 => QoS::AtLeastOnce,
        _ => QoS::ExactlyOnce,
    };
    let (topic, payload) = (outgoing.address.clone(), outgoing.payload.clone());
    let queued = client
        .publish(topic, qos, sending.bindings.retain, payload)
        .await;
    queued.map_err(|error| Failure(CallErrorKind::Arguments, error.to_string()))?;
    loop {
        match events.poll().await.map_err(|error| failure_4(&error))? {
            rumqttc::Event::Outgoing(Written::Publish(_)) if qos == QoS::AtMostOnce => break,
            rumqttc::Event::Incoming(Packet::PubAck(_)) if qos == QoS::AtLeastOnce => break,
            rumqttc::Event::Incoming(Packet::PubComp(_)) => break,
            _ => {}
        }
    }
    Ok(())
}

async fn publish_5(
    client: &v5::AsyncClient,
    events: &mut v5::EventLoop,
    sending: &Sending,
    outgoing: &Outgoing<'_>,
) -> Result<(), Failure> {
    let qos = match sending.bindings.qos {
        0 => QoS5::AtMostOnce,
        1 => QoS5::AtLeastOnce,
        _ => QoS5::ExactlyOnce,
    };
    let mut user_properties = outgoing.headers.clone();
    user_properties.push(("Idempotency-Key".to_owned(), outgoing.key.to_owned()));
    let properties = PublishProperties {
        content_type: Some(outgoing.content_type.clone()),
        user_properties,
        ..PublishProperties::default()
    };
    let (topic, payload) = (outgoing.address.clone(), outgoing.payload.clone());
    let queued = client
        .publish_with_properties(topic, qos, sending.bindings.retain, payload, properties)
        .await;
    queued.map_err(|error| Failure(CallErrorKind::Arguments, error.to_string()))?;
    loop {
        match events.poll().await.map_err(|error| failure_5(&error))? {
            v5::Event::Outgoing(Written::Publish(_)) if qos == QoS5::AtMostOnce => break,
            v5::Event::Incoming(Packet5::PubAck(ack)) => match ack.reason {
                PubAckReason::Success | PubAckReason::NoMatchingSubscribers => break,
                reason => return Err(refused(&format!("{reason:?}"))),
            },
            v5::Event::Incoming(Packet5::PubRec(ack)) => match ack.reason {
                PubRecReason::Success | PubRecReason::NoMatchingSubscribers => {}
                reason => return Err(refused(&format!("{reason:?}"))),
            },
            v5::Event::Incoming(Packet5::PubComp(_)) => break,
            _ => {}
        }
    }
    Ok(())
}

pub(super) fn failure_4(error: &rumqttc::ConnectionError) -> Failure {
    use rumqttc::ConnectReturnCode::{BadUserNamePassword, NotAuthorized};
    let kind = match error {
        rumqttc::ConnectionError::ConnectionRefused(BadUserNamePassword | NotAuthorized) => {
            CallErrorKind::Auth
        }
        _ => CallErrorKind::Connection,
    };
    Failure(kind, error.to_string())
}

pub(super) fn failure_5(error: &v5::ConnectionError) -> Failure {
    use v5::ConnectionError::{ConnectionRefused, MqttState};
    use v5::mqttbytes::v5::ConnectReturnCode::{BadUserNamePassword, NotAuthorized};
    let kind = match error {
        ConnectionRefused(BadUserNamePassword | NotAuthorized) => CallErrorKind::Auth,
        MqttState(v5::StateError::OutgoingPacketTooLarge { .. }) => CallErrorKind::Limit,
        _ => CallErrorKind::Connection,
    };
    Failure(kind, error.to_string())
}

/// The name of a reason other than success.
pub(super) fn refused(reason: &str) -> Failure {
    let kind = match reason {
        "NotAuthorized" => CallErrorKind::Auth,
        _ => CallErrorKind::Failed,
    };
    Failure(kind, format!("the broker refused it: {reason}"))
}

impl std::fmt::Debug for Link {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Link::V4(..) => "MQTT 3.1.1",
            Link::V5(..) => "MQTT 5",
        })
    }
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
            version: MqttVersion::V5,
            login: None,
        };
        let mut session = open(&key, 1_024, &refusing(1)).await.ok().unwrap();
        let Link::V5(_, events) = &mut session.link else {
            panic!("{session:?}");
        };
        let failure = failure_5(&events.poll().await.unwrap_err());
        let refused = session.because(failure).1;
        assert!(
            refused.contains("a server of this installation"),
            "{refused}"
        );
    }
}
