//! The stored history: a list whose elements contain the lines of one commit, or some of them. An element costs a
//! script little more than a single line would: `<number of lines> <line>\n<line>..`.

use redis::Cmd;
use swirl_model::event::HistoryEntry;
use swirl_model::ids::InstanceId;
use swirl_ports::Result;

use crate::connect::damaged;
use crate::record::encode;
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
    let mut elements: Vec<(usize, Vec<u8>)> = Vec::new();
    for entry in history {
        let line = encode(entry, || format!("the history of {id}"), limit)?;
        match elements.last_mut() {
            Some((lines, text)) if *lines < LINES && text.len() < BYTES => {
                text.push(b'\n');
                text.extend_from_slice(&line);
                *lines += 1;
            }
            _ => elements.push((1, line)),
        }
    }
    let with_number = |(lines, text): (usize, Vec<u8>)| {
        let mut element = format!("{lines} ").into_bytes();
        element.extend_from_slice(&text);
        element
    };
    Ok(elements.into_iter().map(with_number).collect())
}

/// The single element that contains these lines, however many they are. It replaces an existing element.
pub(crate) fn element(history: &[HistoryEntry], id: &InstanceId, limit: usize) -> Result<Vec<u8>> {
    let mut element = format!("{} ", history.len()).into_bytes();
    for (place, entry) in history.iter().enumerate() {
        if place > 0 {
            element.push(b'\n');
        }
        element.extend(encode(entry, || format!("the history of {id}"), limit)?);
    }
    Ok(element)
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
