//! A frame: the records that one change wrote, with its number, its length and a checksum.

use std::fs::File;
use std::io::{self, BufReader, Read, Seek, SeekFrom};
use std::path::Path;

use xxhash_rust::xxh3::{Xxh3, xxh3_64};

/// Begins each frame. The first byte never occurs in UTF-8 text, so a frame can be found behind damaged ones.
const MAGIC: [u8; 4] = [0xf5, b'S', b'W', b'1'];
/// The magic bytes, the length of the payload, the number, the time, the checksum.
const HEAD: usize = 4 + 4 + 8 + 8 + 8;
/// The part of the head that the checksum covers.
const CHECKED: usize = HEAD - 8;
/// Stands for the length of the value if the record is removed.
const REMOVED: u32 = u32::MAX;

fn checksum(file: u32, head: &[u8], payload: &[u8]) -> u64 {
    // A frame is valid only in its own file.
    let mut hash = Xxh3::with_seed(u64::from(file));
    hash.update(head);
    hash.update(payload);
    hash.digest()
}

/// The checksum of a single value, for values that are read on their own.
fn value_sum(value: &[u8]) -> [u8; 4] {
    (xxh3_64(value) as u32).to_le_bytes()
}

/// A frame that is being made.
pub(super) struct Draft {
    bytes: Vec<u8>,
}

impl Draft {
    pub fn new() -> Draft {
        Draft {
            bytes: vec![0; HEAD],
        }
    }

    pub fn len(&self) -> usize {
        self.bytes.len()
    }

    pub fn is_empty(&self) -> bool {
        self.bytes.len() == HEAD
    }

    pub fn clear(&mut self) {
        self.bytes.truncate(HEAD);
    }

    /// Adds a record, or its removal. Returns the position of the value in the frame.
    pub fn push(&mut self, key: &str, value: Option<&[u8]>) -> io::Result<usize> {
        let length = |bytes: &[u8]| {
            let length = u32::try_from(bytes.len());
            length
                .ok()
                .filter(|length| *length != REMOVED)
                .ok_or_else(|| io::Error::other(format!("the record {key} has more than 4 GiB")))
        };
        let key_len = length(key.as_bytes())?;
        let value_len = value.map_or(Ok(REMOVED), length)?;
        self.bytes.extend(key_len.to_le_bytes());
        self.bytes.extend(value_len.to_le_bytes());
        self.bytes.extend(key.as_bytes());
        if let Some(value) = value {
            self.bytes.extend(value_sum(value));
            self.bytes.extend(value);
        }
        Ok(self.bytes.len() - value.map_or(0, <[u8]>::len))
    }

    /// Completes the frame.
    pub fn seal(&mut self, file: u32, number: u64, at_ms: u64) -> io::Result<&[u8]> {
        let (head, payload) = self.bytes.split_at_mut(HEAD);
        let length = u32::try_from(payload.len());
        let length = length.map_err(|_| io::Error::other("a change has more than 4 GiB"))?;
        head[..4].copy_from_slice(&MAGIC);
        head[4..8].copy_from_slice(&length.to_le_bytes());
        head[8..16].copy_from_slice(&number.to_le_bytes());
        head[16..24].copy_from_slice(&at_ms.to_le_bytes());
        let sum = checksum(file, &head[..CHECKED], payload);
        head[CHECKED..].copy_from_slice(&sum.to_le_bytes());
        Ok(&self.bytes)
    }
}

struct Head {
    length: u32,
    number: u64,
    at_ms: u64,
    sum: u64,
}

fn u32_at(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_le_bytes(bytes.get(at..at + 4)?.try_into().ok()?))
}

fn u64_at(bytes: &[u8], at: usize) -> Option<u64> {
    Some(u64::from_le_bytes(bytes.get(at..at + 8)?.try_into().ok()?))
}

impl Head {
    fn read(bytes: &[u8]) -> Option<Head> {
        if !bytes.starts_with(&MAGIC) {
            return None;
        }
        Some(Head {
            length: u32_at(bytes, 4)?,
            number: u64_at(bytes, 8)?,
            at_ms: u64_at(bytes, 16)?,
            sum: u64_at(bytes, 24)?,
        })
    }
}

/// A frame that was read.
pub(super) struct Frame {
    pub number: u64,
    pub at_ms: u64,
    /// The position of the payload in the file.
    pub start: u64,
    pub payload: Vec<u8>,
}

/// A record in a frame.
pub(super) struct Pair<'a> {
    pub key: &'a str,
    /// The value and its position in the file; `None` if the record is removed.
    pub value: Option<(&'a [u8], u64)>,
}

impl Frame {
    /// The records. `None` if the payload isn't a list of records.
    pub fn pairs(&self) -> Option<Vec<Pair<'_>>> {
        let (mut pairs, mut at) = (Vec::new(), 0);
        while at < self.payload.len() {
            let key_len = u32_at(&self.payload, at)? as usize;
            let value_len = u32_at(&self.payload, at + 4)?;
            let key = self.payload.get(at + 8..at + 8 + key_len)?;
            let key = std::str::from_utf8(key).ok()?;
            at += 8 + key_len;
            let value = if value_len == REMOVED {
                None
            } else {
                at += 4;
                let value = self.payload.get(at..at + value_len as usize)?;
                let place = self.start + at as u64;
                at += value.len();
                Some((value, place))
            };
            pairs.push(Pair { key, value });
        }
        Some(pairs)
    }
}

pub(super) enum Next {
    Frame(Frame),
    /// The file ends after the last frame.
    End,
    /// What follows is no frame.
    Broken,
}

/// Reads the frames of a file one after another.
pub(super) struct Reader {
    input: BufReader<File>,
    file: u32,
    /// The end of the last frame that was read.
    pub end: u64,
    pub size: u64,
}

impl Reader {
    /// Reads from `start` on.
    pub fn new(mut input: File, file: u32, start: u64) -> io::Result<Reader> {
        let size = input.metadata()?.len();
        input.seek(SeekFrom::Start(start))?;
        Ok(Reader {
            input: BufReader::with_capacity(1 << 20, input),
            file,
            end: start,
            size,
        })
    }

    pub fn next(&mut self) -> io::Result<Next> {
        let rest = self.size.saturating_sub(self.end);
        if rest == 0 {
            return Ok(Next::End);
        }
        if rest < HEAD as u64 {
            return Ok(Next::Broken);
        }
        let mut bytes = [0; HEAD];
        self.input.read_exact(&mut bytes)?;
        let Some(head) = Head::read(&bytes) else {
            return Ok(Next::Broken);
        };
        if u64::from(head.length) > rest - HEAD as u64 {
            return Ok(Next::Broken);
        }
        let mut payload = vec![0; head.length as usize];
        self.input.read_exact(&mut payload)?;
        if checksum(self.file, &bytes[..CHECKED], &payload) != head.sum {
            return Ok(Next::Broken);
        }
        let start = self.end + HEAD as u64;
        self.end = start + payload.len() as u64;
        Ok(Next::Frame(Frame {
            number: head.number,
            at_ms: head.at_ms,
            start,
            payload,
        }))
    }

    /// Moves to the next valid frame behind a broken one. Returns false if there is none.
    pub fn skip(&mut self) -> io::Result<bool> {
        self.input.seek(SeekFrom::Start(self.end))?;
        let mut rest = Vec::new();
        self.input.read_to_end(&mut rest)?;
        let is_frame = |at: usize| {
            let Some(head) = Head::read(&rest[at..]) else {
                return false;
            };
            let payload = rest.get(at + HEAD..at + HEAD + head.length as usize);
            payload.is_some_and(|payload| {
                checksum(self.file, &rest[at..at + CHECKED], payload) == head.sum
            })
        };
        let begins = rest.iter().enumerate().skip(1);
        let found = begins
            .filter(|(_, byte)| **byte == MAGIC[0])
            .find(|(at, _)| is_frame(*at));
        let Some((at, _)) = found else {
            return Ok(false);
        };
        self.end += at as u64;
        self.input.seek(SeekFrom::Start(self.end))?;
        Ok(true)
    }
}

/// Reads a single value and checks it.
pub(super) fn read_value(file: &mut File, place: u64, length: u32) -> io::Result<Vec<u8>> {
    let mut bytes = vec![0; 4 + length as usize];
    file.seek(SeekFrom::Start(place.saturating_sub(4)))?;
    file.read_exact(&mut bytes)?;
    let value = bytes.split_off(4);
    if bytes != value_sum(&value) {
        return Err(damaged("its checksum is wrong".to_owned()));
    }
    Ok(value)
}

pub(super) fn damaged(reason: String) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, reason)
}

/// Makes a file's name durable.
pub(super) fn sync_folder(folder: &Path) -> io::Result<()> {
    // A folder can't be opened as a file elsewhere.
    #[cfg(unix)]
    File::open(folder)?.sync_all()?;
    Ok(())
}
