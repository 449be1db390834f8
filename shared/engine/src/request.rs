//! The function call that a scope has in flight, with evaluated arguments.
//!
//! Arguments may contain secrets, so a request is created where the call is made and is never stored.

use std::sync::Arc;

use swirl_model::ids::InstanceId;
use swirl_model::instance::Header;
use swirl_model::scope::{ActionStep, Scope};
use swirl_model::workflow::{ActionKind, AuthId, AuthScheme, FunctionId};
use swirl_model::{Data, WorkflowError};

use crate::definition::Definition;
use crate::env::Env;
use crate::eval::View;

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
        bounds: None,
        room: None,
    };
    let view = View {
        def,
        env: &env,
        header,
        params: &scope.params,
        last_error: scope.last_error.as_ref(),
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
        Ok(Request {
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
    let header = Header {
        id: InstanceId::new(""),
        definition: def.id.clone(),
        version: def.id.version.to_string(),
        input: Data::NULL,
        started_at: env.now,
        parent: None,
        continued_from: None,
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
        error: None,
    };
    auth(&view, id, &Data::NULL)
}
