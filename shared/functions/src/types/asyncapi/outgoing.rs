//! A message on its way to a broker or a service.

use super::server::Server;
use crate::types::service::IDEMPOTENCY_KEY;
use crate::watch::{self, Content};

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
            protocol: server.protocol.as_str(),
            target: self.what.clone(),
            headers: own.chain(self.headers.iter().cloned()).collect(),
            body: Content::Bytes(self.payload.clone()),
        }
    }
}
