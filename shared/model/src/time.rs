use serde::{Deserialize, Serialize};
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize)]
pub struct Timestamp(pub i64);
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
pub struct IsoDuration { pub months: u32, pub millis: u64 }
impl IsoDuration { pub fn add_to(&self, at: Timestamp) -> Timestamp { Timestamp(at.0 + self.millis as i64) } }
