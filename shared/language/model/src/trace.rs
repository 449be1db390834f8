//! An instance's place in traces.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

use crate::CloudEvent;
use crate::ids::InstanceId;

/// The links between an instance and its cause. They are stored with the header, so that all processes agree.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Trace {
    /// The first instance of the chain of parents and continuations; `None` if it is this instance. Its id names the
    /// trace.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub root: Option<InstanceId>,
    /// The request or event that started the first instance of the chain.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cause: Option<TraceContext>,
}

impl Trace {
    pub fn is_empty(&self) -> bool {
        *self == Trace::default()
    }
}

/// A span somewhere, as the W3C Trace Context names it. Serialized as a `traceparent`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TraceContext {
    pub trace: u128,
    pub span: u64,
    pub sampled: bool,
}

/// A text that is not a valid `traceparent`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("a traceparent looks like 00-<32 hexadecimal digits>-<16 hexadecimal digits>-01")]
pub struct TraceContextError;

impl TraceContext {
    /// The distributed tracing extension of CloudEvents. An invalid one is ignored.
    pub fn of(event: &CloudEvent) -> Option<TraceContext> {
        if event.attributes.is_empty() {
            return None;
        }
        event.attribute("traceparent")?.parse().ok()
    }
}

impl fmt::Display for TraceContext {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let flags = u8::from(self.sampled);
        write!(f, "00-{:032x}-{:016x}-{flags:02x}", self.trace, self.span)
    }
}

impl FromStr for TraceContext {
    type Err = TraceContextError;

    /// Later versions may append fields: the known ones are read.
    fn from_str(text: &str) -> Result<TraceContext, TraceContextError> {
        let mut fields = text.trim().split('-');
        let mut field = |digits: usize| {
            let is_hex = |c: char| c.is_ascii_digit() || ('a'..='f').contains(&c);
            let field = fields.next().ok_or(TraceContextError)?;
            match field.len() == digits && field.chars().all(is_hex) {
                true => u128::from_str_radix(field, 16).map_err(|_| TraceContextError),
                false => Err(TraceContextError),
            }
        };
        let (version, trace, span, flags) = (field(2)?, field(32)?, field(16)?, field(2)?);
        let span = u64::try_from(span).map_err(|_| TraceContextError)?;
        let is_over = fields.next().is_none();
        if version == 0xff || version == 0 && !is_over || trace == 0 || span == 0 {
            return Err(TraceContextError);
        }
        Ok(TraceContext {
            trace,
            span,
            sampled: flags & 1 == 1,
        })
    }
}

impl Serialize for TraceContext {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for TraceContext {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<TraceContext, D::Error> {
        let text = String::deserialize(deserializer)?;
        text.parse().map_err(de::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn traceparents() {
        let text = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";
        let context: TraceContext = text.parse().unwrap();
        assert_eq!(context.span, 0x00f0_67aa_0ba9_02b7);
        assert!(context.sampled);
        assert_eq!(context.to_string(), text);
        let later = "cc-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-00-what";
        assert!(!later.parse::<TraceContext>().unwrap().sampled);
        for bad in [
            "",
            "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7",
            "00-4BF92F3577B34DA6A3CE929D0E0E4736-00f067aa0ba902b7-01",
            "00-00000000000000000000000000000000-00f067aa0ba902b7-01",
            "00-4bf92f3577b34da6a3ce929d0e0e4736-0000000000000000-01",
            "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01-what",
            "ff-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01",
            "00-+bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01",
        ] {
            assert!(bad.parse::<TraceContext>().is_err(), "{bad}");
        }
    }
}
