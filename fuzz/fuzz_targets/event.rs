//! Any message as a CloudEvent, structured or binary: reading it must not panic, and what is read can
//! be written and is the same when it is read again.

#![no_main]

use libfuzzer_sys::fuzz_target;
use swirl_service::{keys, read_message};
use swirl_model::CloudEvent;
use swirl_nats::Template;

fuzz_target!(|message: &[u8]| {
    // Lines `name: value`, an empty one, then the body; without an empty line all is the body.
    let at = message.windows(2).position(|two| two == b"\n\n");
    let (head, body) = match at {
        Some(at) => (&message[..at], &message[at + 2..]),
        None => (&b""[..], message),
    };
    let Ok(head) = std::str::from_utf8(head) else {
        return;
    };
    let headers = head.lines().filter_map(|line| line.split_once(": "));
    let event = match read_message(headers, body) {
        Ok(event) => event,
        Err(error) => {
            assert!(!error.to_string().is_empty());
            return;
        }
    };
    assert!(!event.id.is_empty() && !event.source.is_empty() && !event.kind.is_empty());
    assert!(!keys(&event, &[]).is_empty());
    if let Ok(template) = Template::parse("swirl.events.{type}") {
        let subject = template.subject(&event);
        assert!(
            !subject.contains([' ', '\t', '\r', '\n', '*', '>']),
            "NATS refuses the subject {subject:?}"
        );
        assert!(
            subject.split('.').all(|token| !token.is_empty()),
            "{subject:?}"
        );
    }
    let stored = serde_json::to_vec(&event).expect("an event is JSON");
    let restored: CloudEvent = serde_json::from_slice(&stored).expect("it was just written");
    assert_eq!(restored, event);
    // As it is published, and as another process reads it.
    match read_message(std::iter::empty(), &stored) {
        Ok(again) => assert_eq!(again, event),
        Err(error) => panic!("{error}: {}", String::from_utf8_lossy(&stored)),
    }
});
