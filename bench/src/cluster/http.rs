//! An HTTP/1.1 client that keeps its connection and uses little processor time, so that most of it is left to the
//! system under test.

use std::net::SocketAddr;

use anyhow::{Context, Result, bail};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

const ANSWER_BYTES_MAX: usize = 64 << 20;

pub struct Connection {
    stream: TcpStream,
    buffer: Vec<u8>,
}

impl Connection {
    pub async fn open(address: SocketAddr) -> Result<Connection> {
        let stream = TcpStream::connect(address).await?;
        stream.set_nodelay(true)?;
        Ok(Connection {
            stream,
            buffer: Vec::with_capacity(8 << 10),
        })
    }

    /// The status and the body of the answer.
    pub async fn request(
        &mut self,
        method: &str,
        path: &str,
        headers: &[(&str, &str)],
        body: &[u8],
    ) -> Result<(u16, Vec<u8>)> {
        let mut text = format!("{method} {path} HTTP/1.1\r\nhost: localhost\r\n");
        for (name, value) in headers {
            text.push_str(&format!("{name}: {value}\r\n"));
        }
        text.push_str(&format!("content-length: {}\r\n\r\n", body.len()));
        let mut request = text.into_bytes();
        request.extend_from_slice(body);
        self.stream.write_all(&request).await?;
        self.buffer.clear();
        loop {
            if let Some(answer) = self.answer()? {
                return Ok(answer);
            }
            if self.buffer.len() > ANSWER_BYTES_MAX {
                bail!("the answer is too long");
            }
            if self.stream.read_buf(&mut self.buffer).await? == 0 {
                bail!("the connection was closed in the middle of an answer");
            }
        }
    }

    fn answer(&self) -> Result<Option<(u16, Vec<u8>)>> {
        let Some(end) = find(&self.buffer, b"\r\n\r\n") else {
            return Ok(None);
        };
        let head = std::str::from_utf8(&self.buffer[..end])?;
        let status = head.split(' ').nth(1).and_then(|word| word.parse().ok());
        let status = status.context("an answer without a status")?;
        let length = head.lines().find_map(|line| {
            let (name, value) = line.split_once(':')?;
            let is_length = name.eq_ignore_ascii_case("content-length");
            is_length.then(|| value.trim().parse::<usize>().ok())?
        });
        let body = end + 4;
        let length = length.context("an answer without a length")?;
        let Some(body) = self.buffer.get(body..body + length) else {
            return Ok(None);
        };
        Ok(Some((status, body.to_vec())))
    }
}

fn find(text: &[u8], wanted: &[u8]) -> Option<usize> {
    text.windows(wanted.len()).position(|part| part == wanted)
}
