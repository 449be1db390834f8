//! What is looked at in the configuration of a stream: whether it suits, and whether it has only hints.

use async_nats::jetstream::ErrorCode;
use async_nats::jetstream::context::{CreateStreamError, CreateStreamErrorKind};
use async_nats::jetstream::stream::{Config, RetentionPolicy};

/// Whether a stream has only hints: tasks, lanes or joins.
pub(crate) fn is_hints(wanted: &Config) -> bool {
    wanted.retention == RetentionPolicy::WorkQueue
}

/// Whether the server or the account has no room for a stream.
pub(crate) fn lacks_room(error: &CreateStreamError) -> bool {
    let code = match error.kind() {
        CreateStreamErrorKind::JetStream(reason) => reason.error_code(),
        _ => return false,
    };
    let no_room = [
        ErrorCode::INSUFFICIENT_RESOURCES,
        ErrorCode::STORAGE_RESOURCES_EXCEEDED,
        ErrorCode::MEMORY_RESOURCES_EXCEEDED,
        ErrorCode::CLUSTER_NO_PEERS,
    ];
    no_room.contains(&code)
}

/// The problem of an existing stream; `None` if the stream is suitable.
pub fn check(wanted: &Config, found: &Config) -> Option<String> {
    if found.retention != wanted.retention {
        return Some(format!(
            "its retention is {:?} but must be {:?}",
            found.retention, wanted.retention
        ));
    }
    let missing = wanted
        .subjects
        .iter()
        .find(|subject| !found.subjects.contains(subject));
    if let Some(missing) = missing {
        return Some(format!(
            "it doesn't have the subject {missing}, only {}",
            found.subjects.join(", ")
        ));
    }
    if found.no_ack {
        return Some("it must acknowledge messages to publishers (no_ack is set)".to_owned());
    }
    if found.sealed {
        return Some("it is sealed".to_owned());
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_settings_that_affect_correctness_are_checked() {
        let wanted = Config {
            subjects: vec!["a.>".to_owned()],
            retention: RetentionPolicy::WorkQueue,
            ..Config::default()
        };
        let mut found = Config {
            num_replicas: 3,
            subjects: vec!["a.>".to_owned(), "b".to_owned()],
            ..wanted.clone()
        };
        assert_eq!(check(&wanted, &found), None);
        found.retention = RetentionPolicy::Limits;
        assert!(check(&wanted, &found).is_some_and(|reason| reason.contains("retention")));
        found.retention = RetentionPolicy::WorkQueue;
        found.subjects = vec!["b".to_owned()];
        assert!(check(&wanted, &found).is_some_and(|reason| reason.contains("a.>")));
    }
}
