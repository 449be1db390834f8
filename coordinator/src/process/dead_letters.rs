//! Dead letters in JetStream, for the API.

use async_trait::async_trait;
use swirl_nats::{Letter, Streams};
use swirl_ports::{Error, Result};

use crate::api::{DeadLetter, DeadLetters, Pick, Row};

pub struct Kept(swirl_nats::DeadLetters);

impl Kept {
    pub fn new(streams: Streams) -> Kept {
        Kept(swirl_nats::DeadLetters::new(streams))
    }
}

fn letter(letter: Letter) -> DeadLetter {
    DeadLetter {
        sequence: letter.sequence,
        at: letter.at,
        kind: letter.kind,
        subject: letter.subject,
        reason: letter.reason,
        headers: letter.headers,
        payload: letter.payload.into(),
        is_cut: letter.is_cut,
    }
}

fn unavailable(error: swirl_nats::Error) -> Error {
    Error::Unavailable(error.to_string())
}

#[async_trait]
impl DeadLetters for Kept {
    async fn list(&self, from: u64, limit: usize, pick: Pick) -> Result<(Vec<Row>, bool)> {
        let pick = |found| pick(&letter(found));
        let found = self.0.list(from, limit, pick).await.map_err(unavailable)?;
        Ok((found.letters, found.has_more))
    }

    async fn get(&self, sequence: u64) -> Result<Option<DeadLetter>> {
        let found = self.0.get(sequence).await.map_err(unavailable)?;
        Ok(found.map(letter))
    }

    async fn send_again(&self, letter: DeadLetter) -> Result<()> {
        let letter = Letter {
            sequence: letter.sequence,
            at: letter.at,
            kind: letter.kind,
            subject: letter.subject,
            reason: letter.reason,
            headers: letter.headers,
            payload: letter.payload.into(),
            is_cut: letter.is_cut,
        };
        self.0.send_again(&letter).await.map_err(unavailable)
    }

    async fn remove(&self, sequence: u64) -> Result<bool> {
        self.0.remove(sequence).await.map_err(unavailable)
    }
}
