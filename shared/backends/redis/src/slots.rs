//! The slots of Redis Cluster: which one a command belongs to, and which master serves it.

use redis::{Arg, Cmd};

pub(crate) const SLOTS: usize = 16_384;

/// The slot of a command's first key; `None` if the command has no key. All keys of a command share one hash tag.
pub(crate) fn slot_of(cmd: &Cmd) -> Option<u16> {
    let mut args = cmd.args_iter().map(|arg| match arg {
        Arg::Simple(arg) => arg,
        _ => &[][..],
    });
    let key = match args.next()? {
        b"EVAL" | b"EVALSHA" | b"FCALL" => {
            let count = args.nth(1)?;
            (count != b"0").then(|| args.next())??
        }
        b"CLUSTER" | b"CONFIG" | b"FUNCTION" | b"INFO" | b"PING" | b"SCAN" | b"TIME" => {
            return None;
        }
        _ => args.next()?,
    };
    Some(slot(key))
}

/// The slot of a key, by its hash tag if it has one.
pub(crate) fn slot(key: &[u8]) -> u16 {
    let tag = || {
        let open = key.iter().position(|byte| *byte == b'{')?;
        let rest = &key[open + 1..];
        let close = rest.iter().position(|byte| *byte == b'}')?;
        (close > 0).then(|| &rest[..close])
    };
    crc16(tag().unwrap_or(key)) % SLOTS as u16
}

/// CRC-16/XMODEM, as the cluster specification demands.
fn crc16(bytes: &[u8]) -> u16 {
    bytes.iter().fold(0, |crc, byte| {
        (0..8).fold(crc ^ u16::from(*byte) << 8, |crc: u16, _| {
            let shifted = crc << 1;
            if crc & 0x8000 == 0 {
                shifted
            } else {
                shifted ^ 0x1021
            }
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_belong_to_the_slot_of_their_first_key() {
        // The check value of the specification, and what CLUSTER KEYSLOT answers.
        assert_eq!(crc16(b"123456789"), 0x31c3);
        assert_eq!((slot(b"foo"), slot(b"bar")), (12_182, 5_061));
        assert_eq!(slot(b"a{foo}b"), 12_182);
        assert_eq!(slot(b"foo{}"), crc16(b"foo{}") % 16_384);
        assert_eq!(slot(b"{foo"), crc16(b"{foo") % 16_384);
        let of = |words: &[&str]| {
            let mut cmd = Cmd::new();
            cmd.arg(words);
            slot_of(&cmd)
        };
        assert_eq!(of(&["GET", "foo"]), Some(12_182));
        assert_eq!(of(&["FCALL", "f", "2", "{foo}1", "{foo}2"]), Some(12_182));
        assert_eq!(of(&["EVALSHA", "x", "0", "foo"]), None);
        assert_eq!(of(&["TIME"]), None);
        assert_eq!(of(&["FUNCTION", "LOAD", "foo"]), None);
    }
}
