//! The connections to brokers. All calls share them.

use swirl_model::Data;
use tokio::sync::Semaphore;
use url::Url;

use super::amqp::Amqp;
use super::kafka::Kafka;
use super::kept;
use super::mqtt::Mqtt;
use super::nats::Nats;
use super::outgoing::Outgoing;
use super::redis::Redis;
use super::subscriptions::Subscriptions;
use crate::CallError;
use crate::auth::{Auth, Secret, Tokens};
use crate::egress::Gate;
use crate::exchange;
use crate::watch::{self, Content};

/// The maximum number of calls that wait for a message. Further ones queue, which counts towards their time limit.
const WAITS_MAX: usize = 256;

#[derive(Debug)]
pub(super) struct Waits(pub(super) Semaphore);

impl Default for Waits {
    fn default() -> Waits {
        Waits(Semaphore::new(WAITS_MAX))
    }
}

/// Connections to brokers.
#[derive(Debug, Default)]
pub(crate) struct Brokers {
    pub(super) amqp: Amqp,
    pub(super) kafka: Kafka,
    pub(super) mqtt: Mqtt,
    pub(super) nats: Nats,
    pub(super) redis: Redis,
    pub(super) waits: Waits,
    pub(crate) subscriptions: Subscriptions,
}

/// A request to a subject without a document.
pub(crate) struct Asking<'a> {
    /// `nats` or `tls`. Its credentials are used if there are no others.
    pub(crate) server: &'a Url,
    pub(crate) subject: &'a str,
    /// The payload as JSON.
    pub(crate) payload: Vec<u8>,
    pub(crate) headers: Vec<(String, String)>,
    /// Each repeat of the call has the same key.
    pub(crate) key: &'a str,
    /// The request's name in errors.
    pub(crate) what: &'a str,
}

impl Brokers {
    /// Sends a request on a subject, and returns the reply's JSON, or its text.
    ///
    /// # Errors
    /// `connection` if no service replies.
    pub(crate) async fn ask(
        &self,
        asking: Asking<'_>,
        auth: Option<&Auth>,
        tokens: &Tokens,
        gate: &Gate,
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
        let (host, port) = place;
        let ask = || {
            let server = (host.to_owned(), port);
            self.nats.ask(server, tls, &outgoing, auth, tokens, gate)
        };
        kept::renewing(ask).await
    }
}

fn decoded(text: &str) -> String {
    let text = percent_encoding::percent_decode_str(text);
    text.decode_utf8_lossy().into_owned()
}
