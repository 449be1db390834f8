//! The function call that a scope has in flight, with evaluated arguments.
//!
//! Arguments may contain secrets, so a request is created where the call is made and is never stored.

use std::sync::Arc;
use std::time::Duration;

use swirl_model::ids::InstanceId;
use swirl_model::instance::Header;
use swirl_model::messages::Consumes;
use swirl_model::scope::{ActionStep, Scope};
use swirl_model::workflow::{ActionKind, AuthId, AuthScheme, FunctionId, Template};
use swirl_model::{Data, WorkflowError};

use super::subscription::Consumer;
use crate::definition::Definition;
use crate::scope::env::Env;
use crate::scope::eval::View;
use crate::scope::task_view::TaskView;

#[derive(Debug, Clone)]
pub struct Request {
    pub call: u32,
    pub function: FunctionId,
    pub arguments: Data,
    pub selection_set: Option<String>,
    /// The idempotency key. A call that is repeated after a crash has the same key. A retry has another one, unless the
    /// outcome of the call was unknown (docs/language.md#decision-95).
    pub key: String,
    pub auth: Option<Auth>,
    /// Of a call that takes messages.
    pub consumes: Option<Arc<dyn Consumes>>,
}

/// An `auth` definition with evaluated properties.
#[derive(Clone)]
pub struct Auth {
    pub name: String,
    pub scheme: AuthScheme,
    pub properties: Data,
}

impl std::fmt::Debug for Auth {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Auth({}, {:?}, ...)", self.name, self.scheme)
    }
}

/// Returns the scope's pending call, or `None` if it has none. An error is used as the outcome of the call.
pub fn pending_request(
    def: &Arc<Definition>,
    header: &Header,
    scope: &Scope,
    env: &Env,
) -> Option<Result<Request, WorkflowError>> {
    scope.pending_call()?;
    let run = scope.list()?;
    let ActionStep::Call { call, at } = run.step else {
        return None;
    };
    let action = &def.workflow[*def.workflow[run.list].actions.get(run.index as usize)?];
    let ActionKind::Call(kind) = &action.kind else {
        return None;
    };
    // The arguments see the time at which the attempt began.
    let env = Env {
        now: at,
        secrets: env.secrets.clone(),
        ..Env::default()
    };
    let view = View {
        def,
        env: &env,
        header,
        params: &scope.params,
        last_error: scope.last_error.as_ref(),
        task: TaskView::of(scope),
        error: None,
    };
    let request = || {
        let data = match action.from {
            Some(filter) => view.value(filter, &scope.data)?,
            None => scope.data.clone(),
        };
        let arguments = match &kind.arguments {
            Some(template) => view.template(template, &data)?,
            None => data.clone(),
        };
        let selection_set = match &kind.selection_set {
            Some(template) => Some(view.template(template, &data)?.to_text()),
            None => None,
        };
        let auth = match def.workflow[kind.function].auth {
            Some(id) => Some(auth(&view, id, &data)?),
            None => None,
        };
        let consumes = match &kind.subscription {
            Some(rule) => {
                let frame = scope.frames.last().and_then(|frame| frame.listen.as_ref());
                let source = frame
                    .and_then(|run| run.source)
                    .filter(|_| rule.is_stepwise);
                let span = match source {
                    Some(source) => source
                        .ends
                        .map(|ends| ends.0.saturating_sub(at.0).max(0) as u64),
                    None => {
                        let span = rule.span.as_ref().map(|span| view.period(span, &data));
                        span.transpose()?.map(|span| span.millis_from(at))
                    }
                };
                Some(Arc::new(Consumer {
                    def: def.clone(),
                    header: header.clone(),
                    scope: scope.clone(),
                    env: env.clone(),
                    rule: (**rule).clone(),
                    span: span.map(Duration::from_millis),
                    subscription: source.map(|source| source.number),
                }) as Arc<dyn Consumes>)
            }
            None => None,
        };
        Ok(Request {
            consumes,
            call,
            function: kind.function,
            arguments,
            selection_set,
            key: format!(
                "{}-{}-{}-{:x}",
                header.id,
                scope.id,
                run.key.unwrap_or(call),
                header.started_at.0
            ),
            auth,
        })
    };
    Some(request())
}

fn auth(view: &View<'_>, id: AuthId, data: &Data) -> Result<Auth, WorkflowError> {
    let auth = &view.def.workflow[id];
    Ok(Auth {
        name: auth.name.clone(),
        scheme: auth.scheme,
        properties: view.template(&auth.properties, data)?,
    })
}

/// Evaluates an `auth` definition without an instance, for the documents that a deployment fetches. Its expressions see
/// constants, the secrets and the clock of `env`; data, input and instance are null.
pub fn auth_without_instance(
    def: &Definition,
    id: AuthId,
    env: &Env,
) -> Result<Auth, WorkflowError> {
    without_instance(def, env, &Data::NULL, |view| auth(view, id, &Data::NULL))
}

/// Evaluates the arguments of a task's call without an instance. The expressions see what those of
/// [`auth_without_instance`] see, and the task's input.
pub fn arguments_without_instance(
    def: &Definition,
    arguments: &Template,
    input: &Data,
    env: &Env,
) -> Result<Data, WorkflowError> {
    without_instance(def, env, input, |view| view.template(arguments, input))
}

fn without_instance<R>(
    def: &Definition,
    env: &Env,
    input: &Data,
    evaluate: impl FnOnce(&View<'_>) -> R,
) -> R {
    let header = Header {
        id: InstanceId::new(""),
        definition: def.id.clone(),
        version: def.id.version.to_string(),
        input: input.clone(),
        started_at: env.now,
        parent: None,
        continued_from: None,
        scheduled_at: None,
        key: None,
        instance_key: None,
        timeout: None,
        depth: 0,
        hops: 0,
        trace: Default::default(),
        retention: Default::default(),
    };
    let view = View {
        def,
        env,
        header: &header,
        params: &[],
        last_error: None,
        task: TaskView {
            data: Some(input),
            ..TaskView::default()
        },
        error: None,
    };
    evaluate(&view)
}
