//! A message on its way to a broker or a service.

use super::server::Server;
use crate::types::service::IDEMPOTENCY_KEY;
use crate::watch::{self, Content};

/// A message with everything that a broker needs.
pub(super) struct Outgoing<'a> {
    /// The message's name in errors.
    pub(super) what: String,
    pub(super) address: String,
    pub(super) payload: Vec<u8>,
    pub(super) content_type: String,
    pub(super) headers: Vec<(String, String)>,
    /// The message's Kafka key, which determines the partition.
    pub(super) partition_key: Option<String>,
    /// Each repeat of the call has the same key.
    pub(super) key: &'a str,
    /// These are removed from answers.
    pub(super) secrets: &'a [String],
}

impl Outgoing<'_> {
    /// The message in its final form. Its key is among the headers, under the names that brokers have for it.
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
