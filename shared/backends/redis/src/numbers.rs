//! The numbers of a fork in their stored form: of fixed width, since every branch that ends reads and writes them.

use swirl_commit::Numbers;
use swirl_ports::Result;

use crate::connect::damaged;

/// As `NUMBERS` in `lua/numbers.lua`.
const BYTES: usize = 7 * 4 + 2 + 3 * 8;

pub(crate) fn encode(numbers: &Numbers) -> Vec<u8> {
    let mut out = Vec::with_capacity(BYTES);
    let mut add = |number: u32| out.extend(number.to_be_bytes());
    for number in [numbers.total, numbers.open, numbers.needed] {
        add(number);
    }
    for number in [
        numbers.notification_count,
        numbers.done,
        numbers.failed,
        numbers.live,
    ] {
        add(number);
    }
    out.extend([numbers.is_notified, numbers.is_closed].map(u8::from));
    for number in [stamp(&numbers.stamp), numbers.bytes, numbers.most] {
        out.extend(number.to_be_bytes());
    }
    out
}

pub(crate) fn decode(bytes: &[u8], what: &str) -> Result<Numbers> {
    read(bytes).ok_or_else(|| damaged(what, "the numbers of a fork aren't as they should be"))
}

/// 0 if the stamp isn't known.
pub(crate) fn stamp(text: &str) -> u64 {
    text.parse().unwrap_or_default()
}

fn read(bytes: &[u8]) -> Option<Numbers> {
    let (mut rest, is_whole) = (bytes, bytes.len() == BYTES);
    let mut short = || {
        let (number, left) = rest.split_first_chunk()?;
        rest = left;
        Some(u32::from_be_bytes(*number))
    };
    let (total, open, needed) = (short()?, short()?, short()?);
    let (notification_count, done, failed, live) = (short()?, short()?, short()?, short()?);
    let (flags, mut rest) = rest.split_first_chunk::<2>()?;
    let mut long = || {
        let (number, left) = rest.split_first_chunk()?;
        rest = left;
        Some(u64::from_be_bytes(*number))
    };
    let (stamp, bytes, most) = (long()?, long()?, long()?);
    is_whole.then(|| Numbers {
        total,
        open,
        needed,
        is_notified: flags[0] == 1,
        is_closed: flags[1] == 1,
        notification_count,
        done,
        failed,
        live,
        stamp: stamp.to_string(),
        bytes,
        most,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_read_as_they_were_written() {
        let numbers = Numbers {
            total: 10_000,
            open: 70_000,
            needed: 3,
            is_notified: true,
            is_closed: false,
            notification_count: 4,
            done: 5,
            failed: 6,
            live: 7,
            stamp: "1764576000123456".to_owned(),
            bytes: 1 << 40,
            most: 9,
        };
        let bytes = encode(&numbers);
        assert_eq!(bytes.len(), BYTES);
        assert_eq!(decode(&bytes, "it").unwrap(), numbers);
        assert!(decode(&bytes[1..], "it").is_err());
    }
}
