//! The store of messages that could not be processed.

use async_trait::async_trait;
use swirl_model::time::Timestamp;

/// A message, and the reason why it could not be processed.
#[derive(Debug, Clone)]
pub struct DeadLetter {
    pub sequence: u64,
    pub at: Timestamp,
    /// `event` or `task`.
    pub kind: String,
    /// The subject that the message was sent to.
    pub subject: String,
    pub reason: String,
    pub headers: Vec<(String, String)>,
    pub payload: Vec<u8>,
    /// The data of the message was dropped, so it cannot be sent again.
    pub is_cut: bool,
}

/// A dead letter as listings show it.
pub type Row = swirl_api::dead_letters::DeadLetter;

/// Makes the row of a letter.
pub type Pick = fn(&DeadLetter) -> Row;

/// The store of dead letters.
#[async_trait]
pub trait DeadLetters: Send + Sync {
    /// Returns the rows of dead letters from this sequence number on, oldest first, and whether there may be more. There
    /// are fewer than `limit` if the letters are large. No letter is kept longer than its row takes.
    async fn list(
        &self,
        from: u64,
        limit: usize,
        pick: Pick,
    ) -> swirl_ports::Result<(Vec<Row>, bool)>;
    async fn get(&self, sequence: u64) -> swirl_ports::Result<Option<DeadLetter>>;
    /// Sends the message to its original subject. It stays a dead letter.
    async fn send_again(&self, letter: DeadLetter) -> swirl_ports::Result<()>;
    /// Returns false if there is no such dead letter.
    async fn remove(&self, sequence: u64) -> swirl_ports::Result<bool>;
}
