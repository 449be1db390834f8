//! Exchanges messages with one editor.
//!
//! Requests are answered immediately and in order. A second thread computes findings and diagrams, one at a time. It
//! analyses a text after a short pause in typing, so intermediate texts are never analysed.

use std::sync::Arc;
use std::time::{Duration, Instant};

use crossbeam_channel::{Receiver, Sender, after, bounded, never, select};
use lsp_server::{Connection, Message, Notification, Request, RequestId, Response};
use serde_json::Value;

use super::{DIAGRAM, Done, Drawing, Job, Session, Source};

/// A text is analysed after a pause in typing of this length.
const QUIET: Duration = Duration::from_millis(60);
/// The longest wait for such a pause, so that findings appear even without one.
const WAIT_MAX: Duration = Duration::from_millis(600);
/// The maximum number of pending diagrams. Further requests are refused.
const DRAWINGS_MAX: usize = 8;

/// The editor disconnected without `exit`.
#[derive(Debug, thiserror::Error)]
#[error("the editor has gone")]
pub struct Gone;

enum Work {
    Analyse(Job),
    Draw(RequestId, Drawing),
}

enum Finished {
    Analysed(Box<Done>),
    Drawn(RequestId, Value),
}

/// Serves an initialised editor until it exits or disconnects.
///
/// # Errors
/// The editor accepts no more messages.
pub fn serve(connection: &Connection, source: Arc<dyn Source>) -> Result<(), Gone> {
    let (work, to_do) = bounded(DRAWINGS_MAX + 1);
    let (finished, results) = bounded(DRAWINGS_MAX + 1);
    std::thread::scope(|scope| {
        scope.spawn(move || perform(&to_do, &finished));
        let mut server = Server {
            session: Session::new(source),
            connection,
            work,
            analyses: 0,
            drawings: 0,
            changed: None,
        };
        server.run(&results)
    })
}

/// The second thread. It ends together with the server.
fn perform(to_do: &Receiver<Work>, finished: &Sender<Finished>) {
    for work in to_do {
        let result = match work {
            Work::Analyse(job) => Finished::Analysed(Box::new(job.run())),
            Work::Draw(id, drawing) => Finished::Drawn(id, drawing.run()),
        };
        if finished.send(result).is_err() {
            return;
        }
    }
}

struct Server<'c> {
    session: Session,
    connection: &'c Connection,
    work: Sender<Work>,
    /// Whether an analysis is running. There is at most one.
    analyses: usize,
    drawings: usize,
    /// The times of the first and the last change that isn't analysed yet.
    changed: Option<(Instant, Instant)>,
}

impl Server<'_> {
    fn run(&mut self, results: &Receiver<Finished>) -> Result<(), Gone> {
        loop {
            let due = match self.due() {
                Some(wait) => after(wait),
                None => never(),
            };
            select! {
                recv(self.connection.receiver) -> message => match message {
                    Ok(message) => {
                        if self.message(message)? {
                            return Ok(());
                        }
                    }
                    Err(_) => return Ok(()),
                },
                recv(results) -> result => match result {
                    Ok(result) => self.result(result)?,
                    Err(_) => return Err(Gone),
                },
                recv(due) -> _ => self.analyse()?,
            }
        }
    }

    /// The time until the next analysis, if one is due.
    fn due(&self) -> Option<Duration> {
        let (first, last) = self.changed.filter(|_| self.analyses == 0)?;
        let at = (last + QUIET).min(first + WAIT_MAX);
        Some(at.saturating_duration_since(Instant::now()))
    }

    fn analyse(&mut self) -> Result<(), Gone> {
        match self.session.job() {
            Some(job) => {
                self.analyses += 1;
                let now = Instant::now();
                self.changed = self.session.has_job().then_some((now, now));
                self.work.send(Work::Analyse(job)).map_err(|_| Gone)
            }
            None => {
                self.changed = None;
                Ok(())
            }
        }
    }

    fn result(&mut self, result: Finished) -> Result<(), Gone> {
        match result {
            Finished::Analysed(done) => {
                self.analyses -= 1;
                if let Some(params) = self.session.take(*done) {
                    let method = "textDocument/publishDiagnostics".to_owned();
                    self.send(Notification { method, params }.into())?;
                }
                Ok(())
            }
            Finished::Drawn(id, picture) => {
                self.drawings -= 1;
                self.send(Response::new_ok(id, picture).into())
            }
        }
    }

    /// Handles a message. Returns true if it was the last one.
    fn message(&mut self, message: Message) -> Result<bool, Gone> {
        match message {
            Message::Request(request) => {
                if self
                    .connection
                    .handle_shutdown(&request)
                    .map_err(|_| Gone)?
                {
                    return Ok(true);
                }
                self.request(request)?;
            }
            Message::Notification(notification) if notification.method == "exit" => {
                return Ok(true);
            }
            Message::Notification(Notification { method, params }) => {
                self.session.notify(&method, &params);
                if self.session.has_job() {
                    let now = Instant::now();
                    let first = self.changed.map_or(now, |(first, _)| first);
                    self.changed = Some((first, now));
                }
            }
            // We send no requests, so this is not an answer.
            Message::Response(_) => {}
        }
        Ok(false)
    }

    fn request(&mut self, request: Request) -> Result<(), Gone> {
        let Request { id, method, params } = request;
        let refused = |id, (code, message)| Response::new_err(id, code, message);
        if method == DIAGRAM {
            let drawing = match self.session.drawing(&params) {
                Ok(_) if self.drawings == DRAWINGS_MAX => Err((
                    super::REQUEST_FAILED,
                    "too many pictures are being drawn".to_owned(),
                )),
                drawing => drawing,
            };
            return match drawing {
                Ok(drawing) => {
                    self.drawings += 1;
                    self.work.send(Work::Draw(id, drawing)).map_err(|_| Gone)
                }
                Err(refusal) => self.send(refused(id, refusal).into()),
            };
        }
        let response = match self.session.answer(&method, &params) {
            Ok(result) => Response::new_ok(id, result),
            Err(refusal) => refused(id, refusal),
        };
        self.send(response.into())
    }

    fn send(&self, message: Message) -> Result<(), Gone> {
        self.connection.sender.send(message).map_err(|_| Gone)
    }
}
