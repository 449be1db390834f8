//! The queues in NATS, for reports.

use anyhow::Result;
use async_nats::jetstream;
use futures::TryStreamExt;

/// The waiting messages, to tell a lost task from one whose turn hasn't come: a line for each consumer of each stream.
pub(crate) async fn queues(nats: &async_nats::Client) -> Result<String> {
    let mut lines = vec!["queues:".to_owned()];
    let context = jetstream::new(nats.clone());
    let mut streams = context.streams();
    while let Some(stream) = streams.try_next().await? {
        let (name, messages) = (&stream.config.name, stream.state.messages);
        lines.push(format!("  {name}: {messages} messages"));
        let consumers = context.get_stream_no_info(name).await?;
        let mut consumers = consumers.consumers();
        while let Some(consumer) = consumers.try_next().await? {
            lines.push(format!(
                "    {}: {} not delivered, {} delivered and not acknowledged",
                consumer.name, consumer.num_pending, consumer.num_ack_pending
            ));
        }
    }
    Ok(lines.join("\n"))
}
