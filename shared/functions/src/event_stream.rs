//! Streams of server-sent events, as they come in.

pub(crate) const MEDIA_TYPE: &str = "text/event-stream";

pub(crate) struct StreamEvent<'t> {
    pub(crate) id: Option<&'t str>,
    pub(crate) data: Option<String>,
}

/// Complete events that have data or an id.
pub(crate) fn events(text: &str) -> impl Iterator<Item = StreamEvent<'_>> {
    let mut data: Vec<&str> = Vec::new();
    let mut id = None;
    let lines = text.lines().chain(std::iter::once(""));
    lines.filter_map(move |line| {
        let (field, value) = line.split_once(':').unwrap_or((line, ""));
        let value = value.strip_prefix(' ').unwrap_or(value);
        match field {
            "data" => data.push(value),
            "id" => id = Some(value),
            "" if line.is_empty() && (!data.is_empty() || id.is_some()) => {
                let lines = std::mem::take(&mut data);
                let data = (!lines.is_empty()).then(|| lines.join("\n"));
                return Some(StreamEvent {
                    id: id.take(),
                    data,
                });
            }
            _ => {}
        }
        None
    })
}

/// The end of the last complete event in a stream, if it is after the known bytes.
pub(crate) fn last_end(stream: &[u8], known: usize) -> Option<usize> {
    let is_end = |end: &usize| {
        let text = &stream[..*end];
        text.ends_with(b"\n\n") || text.ends_with(b"\n\r\n")
    };
    (known + 1..=stream.len()).rev().find(is_end)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_are_read_with_any_line_ends() {
        let text = ": note\nevent: message\ndata: {\"a\":\ndata: 1}\n\nid: 7\ndata:{\"b\":2}\r\n\r\nid: 8\n\ndata\n\n";
        let found = events(text).map(|event| (event.id, event.data));
        let expected = [
            (None, Some("{\"a\":\n1}")),
            (Some("7"), Some("{\"b\":2}")),
            (Some("8"), None),
            (None, Some("")),
        ];
        let expected = expected.map(|(id, data)| (id, data.map(str::to_owned)));
        assert_eq!(found.collect::<Vec<_>>(), expected);
    }

    #[test]
    fn events_end_with_an_empty_line() {
        let stream = b"data: 1\n\ndata: 2\r\n\r\ndata: 3\n";
        assert_eq!(last_end(stream, 0), Some(20));
        assert_eq!(last_end(stream, 19), Some(20));
        assert_eq!(last_end(stream, 20), None);
        assert_eq!(last_end(&stream[..19], 8), Some(9));
        assert_eq!(last_end(b"", 0), None);
    }
}
