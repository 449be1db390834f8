//! The service that workflows call. It answers immediately, and uses as little processor time as possible for an HTTP
//! server.

use std::net::SocketAddr;

use anyhow::Result;
use serde_json::json;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

const ANSWER: &[u8] =
    b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: 11\r\n\r\n{\"value\":1}";

/// Serves until the runtime ends.
pub async fn start() -> Result<SocketAddr> {
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    let address = listener.local_addr()?;
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            tokio::spawn(async move {
                // A client may disconnect.
                let _ = serve(stream).await;
            });
        }
    });
    Ok(address)
}

async fn serve(mut stream: TcpStream) -> Result<()> {
    stream.set_nodelay(true)?;
    let mut buffer = Vec::with_capacity(4 << 10);
    while stream.read_buf(&mut buffer).await? > 0 {
        while let Some(length) = whole(&buffer) {
            buffer.drain(..length);
            stream.write_all(ANSWER).await?;
        }
    }
    Ok(())
}

/// The length of the first request, if it is complete.
fn whole(buffer: &[u8]) -> Option<usize> {
    let end = buffer.windows(4).position(|part| part == b"\r\n\r\n")? + 4;
    let head = std::str::from_utf8(&buffer[..end]).ok()?;
    let body = head.lines().find_map(|line| {
        let (name, value) = line.split_once(':')?;
        let is_length = name.eq_ignore_ascii_case("content-length");
        is_length.then(|| value.trim().parse::<usize>().ok())?
    });
    let length = end + body.unwrap_or(0);
    (buffer.len() >= length).then_some(length)
}

/// Its OpenAPI document.
pub fn document(address: SocketAddr) -> String {
    json!({
        "openapi": "3.0.3",
        "info": {"title": "steps", "version": "1"},
        "servers": [{"url": format!("http://{address}")}],
        "paths": {"/step": {"post": {
            "operationId": "step",
            "requestBody": {"required": true, "content": {"application/json": {"schema": {
                "type": "object", "properties": {"n": {"type": "integer"}},
            }}}},
            "responses": {"200": {"description": "done"}},
        }}},
    })
    .to_string()
}
