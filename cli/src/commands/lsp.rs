//! `swirl lsp`

use std::io::{self, BufRead, Read, stdin, stdout};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread::JoinHandle;

use anyhow::Context;
use crossbeam_channel::bounded;
use lsp_server::{Connection, Message};
use serde_json::json;
use swirl_authoring::lsp::{Session, Source, serve};
use swirl_deployment::RESOURCE_BYTES_MAX;
use swirl_spec::resource::{FileResources, Resources};
use url::Url;

use crate::terminal::Terminal;

/// Serves editors: findings as you type, completion, hover, rename and more.
///
/// It implements the Language Server Protocol on stdin and stdout. Editors start it; docs/editors.md explains how to
/// set up VS Code, JetBrains, Neovim and Helix.
///
/// Exit code 0 if the editor ended it, 2 if the input did not follow the protocol.
#[derive(Debug, clap::Args)]
#[command(after_long_help = "\
Examples:
  swirl lsp")]
pub struct Args {}

/// The largest message of an editor and its largest header, in bytes. A document may have one mebibyte.
const MESSAGE_BYTES_MAX: usize = 64 << 20;
const HEADER_BYTES_MAX: usize = 4 << 10;

/// Other documents in the folder of a document that an editor has open.
struct Files;

impl Source for Files {
    fn beside(&self, uri: &str) -> Box<dyn Resources> {
        let path = Url::parse(uri).ok().and_then(|uri| uri.to_file_path().ok());
        let folder = path.as_deref().and_then(Path::parent).map(PathBuf::from);
        Box::new(FileResources::new(folder.unwrap_or_default(), RESOURCE_BYTES_MAX).anywhere())
    }
}

pub fn run(_: &Args, _: &Terminal) -> anyhow::Result<u8> {
    let (connection, reader, writer) = connected();
    let (id, _) = connection
        .initialize_start()
        .context("the editor didn't send its first messages")?;
    let version = env!("CARGO_PKG_VERSION");
    let about = json!({
        "capabilities": Session::capabilities(),
        "serverInfo": {"name": "swirl", "version": version},
    });
    connection
        .initialize_finish(id, about)
        .context("the editor didn't send its first messages")?;
    serve(&connection, Arc::new(Files))?;
    drop(connection);
    for thread in [reader, writer] {
        let joined = thread
            .join()
            .map_err(|_| anyhow::anyhow!("a thread panicked"))?;
        joined.context("the editor could not be reached")?;
    }
    Ok(0)
}

type Transport = JoinHandle<io::Result<()>>;

/// A connection on stdin and stdout, with the threads that read and write. It replaces that of `lsp_server`, which
/// reserves as much memory as the header of a message asks for.
fn connected() -> (Connection, Transport, Transport) {
    let (sender, to_write) = bounded::<Message>(0);
    let (have_read, receiver) = bounded::<Message>(0);
    let reader = std::thread::spawn(move || {
        let mut stdin = stdin().lock();
        while let Some(message) = read(&mut stdin)? {
            let is_last = matches!(&message, Message::Notification(last) if last.method == "exit");
            have_read.send(message).map_err(io::Error::other)?;
            if is_last {
                break;
            }
        }
        Ok(())
    });
    let writer = std::thread::spawn(move || {
        let mut stdout = stdout().lock();
        to_write
            .into_iter()
            .try_for_each(|message| message.write(&mut stdout))
    });
    (Connection { sender, receiver }, reader, writer)
}

/// Reads a message; `None` is the end of the input.
fn read(input: &mut impl BufRead) -> io::Result<Option<Message>> {
    let invalid = |reason: String| Err(io::Error::new(io::ErrorKind::InvalidData, reason));
    let mut header = Vec::new();
    loop {
        let begin = header.len();
        let left = (HEADER_BYTES_MAX - begin) as u64;
        let mut rest = input.by_ref().take(left);
        match rest.read_until(b'\n', &mut header)? {
            0 if left == 0 => {
                return invalid(format!(
                    "the header of a message is larger than {HEADER_BYTES_MAX} bytes"
                ));
            }
            0 => return Ok(None),
            _ if &header[begin..] == b"\r\n" => break,
            _ => {}
        }
    }
    if let Some(length) = lengths(&header).find(|length| *length > MESSAGE_BYTES_MAX) {
        return invalid(format!(
            "a message claims to have {length} bytes; at most {MESSAGE_BYTES_MAX} are allowed"
        ));
    }
    Message::read(&mut header.chain(input))
}

/// The values of `Content-Length` in a header. What isn't a number is refused by the library.
fn lengths(header: &[u8]) -> impl Iterator<Item = usize> {
    header.split(|byte| *byte == b'\n').filter_map(|line| {
        let (name, value) = std::str::from_utf8(line).ok()?.split_once(':')?;
        let is_length = name.eq_ignore_ascii_case("content-length");
        is_length.then(|| value.trim().parse().ok()).flatten()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn method(message: &Message) -> &str {
        match message {
            Message::Notification(notification) => &notification.method,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn messages_follow_each_other() {
        let text = |method: &str| {
            let body = format!("{{\"jsonrpc\": \"2.0\", \"method\": \"{method}\"}}");
            format!("Content-Length: {}\r\n\r\n{body}", body.len())
        };
        let both = text("initialized") + &text("exit");
        let mut input = both.as_bytes();
        assert_eq!(method(&read(&mut input).unwrap().unwrap()), "initialized");
        assert_eq!(method(&read(&mut input).unwrap().unwrap()), "exit");
        assert!(read(&mut input).unwrap().is_none());
    }

    #[test]
    fn a_length_is_checked_before_there_is_memory_for_it() {
        let endless = format!("X: {}", "x".repeat(2 * HEADER_BYTES_MAX));
        for (text, part) in [
            ("Content-Length: 9000000000000000000\r\n\r\n{}", "at most"),
            ("content-length: 67108865\r\n\r\n{}", "at most"),
            ("Content-Length: -1\r\n\r\n{}", "invalid digit"),
            ("Content-Length: x\r\n\r\n{}", "invalid digit"),
            ("\r\n{}", "no Content-Length"),
            (endless.as_str(), "header"),
        ] {
            let error = read(&mut text.as_bytes()).unwrap_err();
            assert_eq!(error.kind(), io::ErrorKind::InvalidData, "{text}");
            assert!(error.to_string().contains(part), "{text}: {error}");
        }
    }
}
