//! A message that has come.

/// The outcome of a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Took {
    /// The filter doesn't let it through, or it is kept here: the broker may forget it.
    Dropped,
    Kept,
    /// No more are needed.
    Last,
}

/// A received message.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Came {
    pub(super) payload: Vec<u8>,
    /// As far as the protocol has some.
    pub(super) headers: Vec<(String, String)>,
    /// The protocol's own correlation id, if it has one.
    pub(super) correlation: Option<String>,
}

impl Came {
    pub(super) fn of(payload: &[u8]) -> Came {
        Came {
            payload: payload.to_vec(),
            ..Came::default()
        }
    }

    /// The bytes of its parts.
    pub(super) fn bytes(&self) -> usize {
        let headers = self.headers.iter();
        let headers = headers.map(|(name, value)| name.len() + value.len());
        self.payload.len().saturating_add(headers.sum())
    }
}
