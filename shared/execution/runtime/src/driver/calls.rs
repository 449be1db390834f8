//! The call of a scope. It begins when a commit says that it is in flight, and is dropped when a commit says that it
//! isn't.

use std::sync::Arc;

use futures::FutureExt;
use swirl_engine::{Env, pending_request};
use swirl_model::event::{Event, HistoryEntry};
use swirl_model::redact::Redactor;
use swirl_ports::call::CallAuth;
use swirl_ports::{CallRequest, LastExchange, Stored};

use super::record::{RecordedCall, shown_arguments};
use super::{Call, Driver, Run, Running};
use crate::Error;
use crate::observe::{CallOutcome, Called, Cause};

impl Driver {
    /// Starts or drops the call so that it matches the record.
    pub(super) async fn follow_call(&self, run: &mut Run, env: &Env) -> Result<(), Error> {
        let pending = if run.closed {
            None
        } else {
            run.scope.pending_call()
        };
        if run.call.as_ref().map(|running| running.call) == pending {
            return Ok(());
        }
        if let Some(running) = run.call.take() {
            self.called(run, &running, CallOutcome::Abandoned);
        }
        let Some(call) = pending else { return Ok(()) };
        let env = &self.env_of_call(run, env).await;
        let permit = self.permit_of(run).await;
        let request = permit.counting(|| pending_request(&run.def, &run.header, &run.scope, env));
        drop(permit);
        let Some(request) = request else {
            return Ok(());
        };
        let function = request.as_ref().map(|request| request.function).ok();
        if let (Some(function), true) = (function, run.left.take() == Some(call)) {
            // Before the service is called again.
            let entry = HistoryEntry {
                at: env.now,
                scope: run.scope.id.clone(),
                event: Event::CallRepeated {
                    function: run.def.workflow[function].name.clone(),
                    call,
                },
                data: None,
                data_until: None,
            };
            self.store.note(&run.header.id, entry).await?;
        }
        run.recorded_call = match &request {
            Ok(request) if run.recorder.is_on() => {
                let shown = shown_arguments(run, request, env);
                let kept = shown.map(|shown| run.recorder.kept(shown, &run.redactor));
                Some(RecordedCall::new(call, kept, request))
            }
            _ => None,
        };
        let (last_exchange, stored) = (LastExchange::default(), Stored::default());
        let future: Call = match request {
            Ok(request) => {
                let auth = request.auth.map(|auth| CallAuth {
                    name: auth.name,
                    scheme: auth.scheme,
                    properties: auth.properties,
                });
                let request = CallRequest {
                    definition: run.header.definition.clone(),
                    function: Arc::new(run.def.workflow[request.function].clone()),
                    scope: run.lease.scope.clone(),
                    arguments: request.arguments,
                    selection_set: request.selection_set,
                    key: request.key,
                    at: env.now,
                    auth,
                    secrets: run.redactor.clone(),
                    trace: self.observer.as_ref().map(|observer| {
                        let token = run.lease.token;
                        let cause = Cause::Call { call, token };
                        observer.context(&run.header, &run.scope.id, cause)
                    }),
                    last_exchange: last_exchange.clone(),
                    stored: stored.clone(),
                    consumes: request.consumes,
                };
                let caller = self.caller.clone();
                async move { caller.call(request).await }.boxed()
            }
            Err(error) => futures::future::ready(Err(error)).boxed(),
        };
        run.call = Some(Running {
            call,
            function,
            from: self.clock.now(),
            last_exchange,
            stored,
            future,
        });
        Ok(())
    }

    /// Reads the secrets again for another call under the same lease, since they may have been rotated meanwhile.
    async fn env_of_call(&self, run: &mut Run, env: &Env) -> Env {
        if !std::mem::take(&mut run.has_fresh_secrets) {
            run.secrets = self.secrets_of(&run.def).await;
            run.redactor = Arc::new(Redactor::of(&run.secrets));
        }
        Env {
            secrets: run.secrets.clone(),
            ..env.clone()
        }
    }

    pub(super) fn called(&self, run: &Run, running: &Running, outcome: CallOutcome<'_>) {
        let (Some(observer), Some(function)) = (&self.observer, running.function) else {
            return;
        };
        observer.called(Called {
            header: &run.header,
            scope: &run.scope.id,
            call: running.call,
            token: run.lease.token,
            function: &run.def.workflow[function],
            from: running.from,
            to: self.clock.now(),
            exchange: running.last_exchange.get(),
            outcome,
        });
    }
}
