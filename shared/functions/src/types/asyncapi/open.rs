//! Subscriptions that go on behind the calls of their task: each call takes one message, and while the task processes it,
//! the next ones come.
//!
//! A subscription is part of this process. If its task goes on in another one, another subscription begins there, and what
//! this one has received is lost. So queues of AMQP, which keep their messages, have none: there each call takes one from
//! the queue.

use std::sync::Arc;

use swirl_model::Data;
use swirl_model::messages::Consumes;
use swirl_ports::{CallRequest, LastExchange, Stored};
use tokio::time::Instant;

use super::buffer::Buffer;
use super::compile::Sending;
use super::incoming::Incoming;
use super::receive::receive;
use super::subscriptions::{Key, Open};
use crate::auth::Auth;
use crate::types::Clients;
use crate::{CallError, CallErrorKind};

/// Takes the next message of a subscription, which begins with its first call. An empty list: no more come.
///
/// # Errors
/// The subscription fails; the next call begins it anew.
pub(super) async fn take(
    clients: &Clients,
    sending: &Arc<Sending>,
    request: &CallRequest,
    rule: &dyn Consumes,
    number: u32,
    address: &str,
    auth: Option<&Auth>,
) -> Result<Data, CallError> {
    let key = (request.scope.clone(), number);
    let what = sending.server.message_from(address);
    let buffer = open(clients, &key, sending, request, rule, address, auth, &what)?;
    let _use = buffer.in_use();
    let taken = buffer.next(rule, sending, &what).await;
    let subscriptions = &clients.brokers.subscriptions;
    let taken = taken.inspect_err(|_| subscriptions.end(&key, &buffer))?;
    let Some((number, message)) = taken else {
        return Ok(Data::array(Vec::new()));
    };
    let (watch, own) = (request.stored.watch(), buffer.clone());
    // Beside the call, whose result is stored when it has ended. If it isn't, the next call takes the message.
    tokio::spawn(async move {
        let ack = watch.stored().await;
        if ack.is_some() {
            own.forget(number);
        }
        drop(ack);
    });
    Ok(Data::array(vec![message]))
}

#[expect(clippy::too_many_arguments, reason = "all of a call")]
fn open(
    clients: &Clients,
    key: &Key,
    sending: &Arc<Sending>,
    request: &CallRequest,
    rule: &dyn Consumes,
    address: &str,
    auth: Option<&Auth>,
    what: &str,
) -> Result<Arc<Buffer>, CallError> {
    let mut all = clients.brokers.subscriptions.all();
    if let Some(open) = all.get(key) {
        return Ok(open.buffer.clone());
    }
    let Some(own) = clients.own.upgrade() else {
        let reason = format!("{what}: this process is ending");
        return Err(CallError::new(CallErrorKind::Connection, reason));
    };
    let limit = clients.services.http().config().response_bytes_max;
    let ends = rule.span().map(|span| Instant::now() + span);
    let buffer = Arc::new(Buffer::new(limit));
    let request = CallRequest {
        last_exchange: LastExchange::default(),
        stored: Stored::default(),
        consumes: None,
        ..request.clone()
    };
    let (sending, auth, address) = (sending.clone(), auth.cloned(), address.to_owned());
    let (kept, known) = (buffer.clone(), key.clone());
    let task = tokio::spawn(async move {
        let received = async {
            let server = &sending.server;
            let incoming = Incoming::kept(server, address, &request, limit, &kept, ends);
            kept.ends(receive(&own, &sending, &incoming, auth.as_ref()).await);
            // The messages that have come are still taken.
            std::future::pending::<()>().await;
        };
        tokio::select! {
            () = received => {}
            () = kept.is_unused() => {}
        }
        let left = kept.len();
        if left > 0 {
            tracing::warn!(scope = %known.0, left, "messages of a subscription are lost: its task didn't take them in time");
        }
        own.brokers.subscriptions.end(&known, &kept);
    });
    let open = Open {
        buffer: buffer.clone(),
        task: task.abort_handle(),
    };
    all.insert(key.clone(), open);
    Ok(buffer)
}
