//! The stored history: a list whose elements contain the lines of one commit, or some of them. An element costs a
//! script little more than a single line would: `<number of lines> <line>\n<line>..`.

use redis::Cmd;
use swirl_model::event::HistoryEntry;
use swirl_model::ids::InstanceId;
use swirl_ports::Result;

use crate::connect::damaged;
use crate::record::{USUAL_BYTES, encode_to};
use crate::reply::json;

/// The limits of an element. It takes no more lines once it has this many bytes, and it is dropped as a whole.
const LINES: usize = 100;
const BYTES: usize = 64 * 1024;

/// Adds the number of lines, the number of elements, and the elements. `limit`: the maximum size of a line in bytes.
pub(crate) fn add(
    call: &mut Cmd,
    history: &[HistoryEntry],
    id: &InstanceId,
    limit: usize,
) -> Result<()> {
    let elements = elements(history, id, limit)?;
    call.arg(history.len()).arg(elements.len()).arg(elements);
    Ok(())
}

/// The elements that contain these lines.
pub(crate) fn elements(
    history: &[HistoryEntry],
    id: &InstanceId,
    limit: usize,
) -> Result<Vec<Vec<u8>>> {
    let (mut elements, mut rest) = (Vec::new(), history);
    while !rest.is_empty() {
        let (mut text, mut lines) = (Vec::with_capacity(USUAL_BYTES), 0);
        while let Some(entry) = rest.get(lines)
            && lines < LINES
            && text.len() < BYTES
        {
            add_line(&mut text, lines, entry, id, limit)?;
            lines += 1;
        }
        elements.push(with_number(lines, text));
        rest = &rest[lines..];
    }
    Ok(elements)
}

fn add_line(
    text: &mut Vec<u8>,
    place: usize,
    entry: &HistoryEntry,
    id: &InstanceId,
    limit: usize,
) -> Result<()> {
    if place > 0 {
        text.push(b'\n');
    }
    encode_to(text, entry, || format!("the history of {id}"), limit)
}

fn with_number(lines: usize, mut text: Vec<u8>) -> Vec<u8> {
    text.splice(0..0, format!("{lines} ").into_bytes());
    text
}

/// The single element that contains these lines, however many they are. It replaces an existing element.
pub(crate) fn element(history: &[HistoryEntry], id: &InstanceId, limit: usize) -> Result<Vec<u8>> {
    let mut text = Vec::new();
    for (place, entry) in history.iter().enumerate() {
        add_line(&mut text, place, entry, id, limit)?;
    }
    Ok(with_number(history.len(), text))
}

/// The newest lines of a list of elements, oldest first.
pub(crate) fn read(
    elements: &[Vec<u8>],
    id: &InstanceId,
    newest: u64,
) -> Result<Vec<HistoryEntry>> {
    let what = || format!("the history of {id}");
    let mut history = Vec::new();
    for element in elements {
        let short = || damaged(what(), "an element has a wrong number of lines");
        let at = element.iter().position(|byte| *byte == b' ');
        let (count, text) = element.split_at(at.ok_or_else(short)?);
        let count = std::str::from_utf8(count).ok();
        let count: usize = count.and_then(|text| text.parse().ok()).ok_or_else(short)?;
        let before = history.len();
        for line in text[1..].split(|byte| *byte == b'\n') {
            history.push(json(line, &what())?);
        }
        if history.len() - before != count {
            return Err(short());
        }
    }
    let surplus = history
        .len()
        .saturating_sub(usize::try_from(newest).unwrap_or(usize::MAX));
    history.drain(..surplus);
    Ok(history)
}

#[cfg(test)]
mod tests {
    use redis::Arg;
    use swirl_model::event::Event;
    use swirl_model::ids::ScopeId;
    use swirl_model::time::Timestamp;

    use super::*;

    fn entries(count: u32) -> Vec<HistoryEntry> {
        let entry = |fork| HistoryEntry {
            data: None,
            at: Timestamp(i64::from(fork)),
            scope: ScopeId::root(),
            event: Event::Joined {
                fork,
                in_state: None,
            },
            data_until: None,
        };
        (0..count).map(entry).collect()
    }

    fn added(history: &[HistoryEntry]) -> Vec<Vec<u8>> {
        let mut call = Cmd::new();
        add(&mut call, history, &InstanceId::new("a"), 1_000).unwrap();
        let args = call.args_iter();
        let args = args.filter_map(|arg| match arg {
            Arg::Simple(arg) => Some(arg.to_vec()),
            _ => None,
        });
        args.collect()
    }

    #[test]
    fn written_history_is_read_back() {
        for (lines, elements) in [(0, 0), (1, 1), (100, 1), (101, 2), (350, 4)] {
            let history = entries(lines);
            let args = added(&history);
            assert_eq!(args[0], lines.to_string().as_bytes());
            assert_eq!(args[1], elements.to_string().as_bytes());
            assert_eq!(args.len(), 2 + elements);
            let id = InstanceId::new("a");
            assert_eq!(read(&args[2..], &id, 1_000).unwrap(), history);
            let newest = read(&args[2..], &id, 3).unwrap();
            assert_eq!(newest, history[history.len().saturating_sub(3)..]);
        }
    }

    #[test]
    fn a_missing_line_is_detected() {
        let args = added(&entries(3));
        let text = String::from_utf8(args[2].clone()).unwrap();
        let id = InstanceId::new("a");
        for bad in [
            text.replacen('3', "2", 1),
            text.replacen('3', "4", 1),
            text.replacen('3', "", 1),
            text.rsplit_once('\n').unwrap().0.to_owned(),
            "3".to_owned(),
            String::new(),
        ] {
            let found = read(&[bad.clone().into_bytes()], &id, 10);
            assert!(found.is_err(), "{bad}");
        }
    }
}
