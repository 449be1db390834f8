//! Streams of server-sent events, as they come in.

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
    fn events_end_with_an_empty_line() {
        let stream = b"data: 1\n\ndata: 2\r\n\r\ndata: 3\n";
        assert_eq!(last_end(stream, 0), Some(20));
        assert_eq!(last_end(stream, 19), Some(20));
        assert_eq!(last_end(stream, 20), None);
        assert_eq!(last_end(&stream[..19], 8), Some(9));
        assert_eq!(last_end(b"", 0), None);
    }
}
