//! Signals that a process must end.

/// Completes on Ctrl-C, or when the process receives a signal to end. Listens from now on.
///
/// # Errors
/// Signals cannot be listened to.
pub fn stop() -> std::io::Result<impl Future<Output = ()>> {
    #[cfg(unix)]
    let mut terminated = tokio::signal::unix::signal(tokio::signal::unix::SignalKind::terminate())?;
    Ok(async move {
        #[cfg(unix)]
        tokio::select! {
            _ = terminated.recv() => {}
            _ = tokio::signal::ctrl_c() => {}
        }
        #[cfg(not(unix))]
        let _ = tokio::signal::ctrl_c().await;
    })
}

/// Completes on `stop`, or when other processes of the installation write a format that this one cannot read.
pub async fn until_outdated(stop: impl Future<Output = ()>, redis: swirl_redis::Redis) {
    tokio::select! {
        () = stop => {}
        found = redis.outdated() => tracing::error!(
            format = found,
            own = crate::connect::format(),
            "a newer build writes records that this one cannot read: stopping; run the newer build here too"
        ),
    }
}
