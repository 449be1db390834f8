//! Detects connections that have become silent, for all protocols.
//!
//! A machine that loses power, or a balancer that forgets a connection, closes nothing. Without these options, a request
//! on such a connection waits for its whole time limit, and the connection is used again.

use std::io::{self, ErrorKind};
use std::time::Duration;

use socket2::{SockRef, TcpKeepalive};
use tokio::net::TcpStream;

/// The silence after which the other side is probed.
pub(crate) const KEEPALIVE: Duration = Duration::from_secs(15);
pub(crate) const KEEPALIVE_INTERVAL: Duration = Duration::from_secs(5);
/// The number of unanswered probes after which a connection counts as broken.
pub(crate) const KEEPALIVE_RETRIES: u32 = 3;

/// The time after which a connection counts as broken if the other side hasn't acknowledged what was sent.
pub(crate) const UNACKNOWLEDGED_MAX: Duration = Duration::from_secs(20);

/// Sets the options of a new connection.
pub(crate) fn watch_over(stream: &TcpStream) -> io::Result<()> {
    stream.set_nodelay(true)?;
    let socket = SockRef::from(stream);
    let keepalive = TcpKeepalive::new()
        .with_time(KEEPALIVE)
        .with_interval(KEEPALIVE_INTERVAL)
        .with_retries(KEEPALIVE_RETRIES);
    socket.set_tcp_keepalive(&keepalive)?;
    #[cfg(target_os = "linux")]
    socket.set_tcp_user_timeout(Some(UNACKNOWLEDGED_MAX))?;
    Ok(())
}

/// Whether an error of this kind means that the connection broke.
pub(crate) fn is_broken(kind: ErrorKind) -> bool {
    matches!(
        kind,
        ErrorKind::BrokenPipe
            | ErrorKind::ConnectionAborted
            | ErrorKind::ConnectionReset
            | ErrorKind::NotConnected
            | ErrorKind::TimedOut
            | ErrorKind::UnexpectedEof
    )
}

#[cfg(test)]
mod tests {
    use tokio::net::TcpListener;

    use super::*;

    /// The kernel gives up a connection on which nothing is acknowledged any more.
    #[tokio::test]
    async fn a_silent_connection_is_noticed() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let stream = TcpStream::connect(address).await.unwrap();
        watch_over(&stream).unwrap();
        let socket = SockRef::from(&stream);
        assert!(socket.keepalive().unwrap());
        assert!(socket.tcp_nodelay().unwrap());
        #[cfg(target_os = "linux")]
        {
            assert_eq!(socket.tcp_keepalive_time().unwrap(), KEEPALIVE);
            let unacknowledged = socket.tcp_user_timeout().unwrap();
            assert_eq!(unacknowledged, Some(UNACKNOWLEDGED_MAX));
        }
        assert!(is_broken(ErrorKind::TimedOut) && !is_broken(ErrorKind::ConnectionRefused));
    }
}
