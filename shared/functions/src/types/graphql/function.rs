//! `graphql` as a function type.

use std::collections::HashMap;
use std::sync::Arc;

use async_trait::async_trait;
use reqwest::Method;
use serde_json::{Map, Value};
use swirl_model::Data;
use swirl_model::workflow::Function;
use swirl_ports::CallRequest;
use swirl_spec::graphql;
use url::Url;

use super::introspection::Types;
use super::query::{self, OperationKind};
use super::schema::Schema;
use super::{answer, check};
use crate::CallError;
use crate::http::shown;
use crate::types::fits::did_you_mean;
use crate::types::service::{Ask, IDEMPOTENCY_KEY, TRACEPARENT, addressed, in_time};
use crate::types::{
    Clients, CompileResult, Compiled, CompiledFunction, Context, Documents, FunctionType, Misfit,
    StaticValue, Unaddressed,
};
use crate::watch;

/// The key in a function's metadata with the types of its arguments, by name, as GraphQL writes them.
const ARGUMENT_TYPES: &str = "argumentTypes";

/// Old servers, from before GraphQL over HTTP was specified, know only the second type.
const ACCEPT: &str = "application/graphql-response+json, application/json;q=0.9";

pub(crate) const TYPE: FunctionType = FunctionType {
    word: "graphql",
    document: |_| None,
    compile,
};

struct GraphqlFunction {
    endpoint: Url,
    kind: OperationKind,
    field: String,
    types: Types,
    /// Only for checks.
    schema: Option<Arc<Schema>>,
    /// The request's name in errors.
    what: String,
}

fn compile(functions: &[&Function], documents: &Documents<'_>) -> Vec<CompileResult> {
    let mut schemas: HashMap<&str, Option<Arc<Schema>>> = HashMap::new();
    let mut schema_of = |function: &Function| {
        let answer = documents.get(endpoint(function)?)?;
        let known = schemas.entry(answer);
        let schema = known.or_insert_with(|| Schema::read(answer).ok().map(Arc::new));
        schema.clone()
    };
    let mut compile = |function: &Function| {
        let (read, unaddressed) = read(function, documents)?;
        let compiled = Box::new(GraphqlFunction {
            schema: schema_of(function),
            ..read
        }) as Compiled;
        Ok(match unaddressed {
            Some(reason) => Unaddressed::wrap(compiled, reason),
            None => compiled,
        })
    };
    functions.iter().map(|function| compile(function)).collect()
}

/// The address at which a function's service can be queried for its schema; `None` if the definition states the types.
pub(crate) fn endpoint(function: &Function) -> Option<&str> {
    let endpoint = function.operation.split('#').next()?;
    let is_given = function.metadata.get(ARGUMENT_TYPES).is_some();
    Some(endpoint).filter(|_| !is_given)
}

/// Also the reason why it cannot be called, if nothing says where the service is.
fn read(
    function: &Function,
    documents: &Documents<'_>,
) -> Result<(GraphqlFunction, Option<String>), String> {
    let operation = &function.operation;
    let parts: Vec<&str> = operation.split('#').collect();
    let &[endpoint, kind, field] = &parts[..] else {
        return Err(format!(
            "the operation `{operation}` must be the URL of a GraphQL endpoint, `#query#` or \
             `#mutation#`, and a field"
        ));
    };
    let kind = match kind {
        "query" => OperationKind::Query,
        "mutation" => OperationKind::Mutation,
        other => {
            return Err(format!(
                "the operation is `query` or `mutation`, not `{other}`"
            ));
        }
    };
    if !graphql::is_name(field) {
        return Err(format!("`{field}` cannot be the name of a GraphQL field"));
    }
    let (endpoint, unaddressed) = addressed(function, documents, endpoint, "the endpoint")?;
    let compiled = GraphqlFunction {
        what: format!("POST {}: {} `{field}`", shown(&endpoint), kind.as_str()),
        types: match argument_types(&function.metadata)? {
            Some(given) => Types::given(given),
            None => Types::unknown(),
        },
        schema: None,
        endpoint,
        kind,
        field: field.to_owned(),
    };
    Ok((compiled, unaddressed))
}

fn argument_types(metadata: &Data) -> Result<Option<HashMap<String, String>>, String> {
    let Some(types) = metadata.get(ARGUMENT_TYPES) else {
        return Ok(None);
    };
    let Value::Object(members) = Value::from(&types) else {
        return Err(format!("`metadata.{ARGUMENT_TYPES}` must be an object"));
    };
    let mut given = HashMap::new();
    for (name, value) in members {
        let text = value.as_str().filter(|text| graphql::is_type(text));
        let (Some(text), true) = (text, graphql::is_name(&name)) else {
            return Err(format!(
                "`metadata.{ARGUMENT_TYPES}.{name}` must be a GraphQL type, such as `[ID!]!`"
            ));
        };
        given.insert(name, text.to_owned());
    }
    Ok(Some(given))
}

#[async_trait]
impl CompiledFunction for GraphqlFunction {
    async fn call(
        &self,
        clients: &Clients,
        request: &CallRequest,
        context: &Context<'_>,
    ) -> Result<Data, CallError> {
        let refuse = |reason: String| CallError::arguments(format!("{}: {reason}", self.what));
        let arguments = match Value::from(&request.arguments) {
            Value::Null => Map::new(),
            Value::Object(members) => members,
            _ => return Err(refuse("the arguments must be an object".to_owned())),
        };
        let selection = request.selection_set.as_deref().unwrap_or_default();
        let selection = graphql::selection_set(selection)
            .map_err(|reason| refuse(format!("the selection set: {reason}")))?;
        if let Some(name) = arguments.keys().find(|name| !graphql::is_name(name)) {
            return Err(refuse(format!(
                "`{name}` cannot be the name of an argument"
            )));
        }
        let trace = request.trace.map(|trace| trace.to_string());
        let exchange = async {
            let types = if arguments.is_empty() {
                Arc::default()
            } else {
                let question = super::introspection::Question {
                    services: &clients.services,
                    endpoint: &self.endpoint,
                    kind: self.kind,
                    field: &self.field,
                    auth: context.auth,
                };
                watch::aside(self.types.get(&question)).await?
            };
            let body = query::body(self.kind, &self.field, arguments, selection, &types)
                .map_err(refuse)?;
            let mut headers = vec![
                ("accept", ACCEPT),
                ("content-type", "application/json"),
                (IDEMPOTENCY_KEY, &request.key),
            ];
            headers.extend(trace.as_ref().map(|trace| (TRACEPARENT, trace.as_str())));
            let ask = Ask {
                method: Method::POST,
                url: &self.endpoint,
                headers: &headers,
                body: Some(&body),
                follows: true,
                what: &self.what,
                secrets: request.secrets.expose(),
            };
            let reply = clients.services.ask(&ask, context.auth).await?;
            let result = answer::data(&reply, &self.what);
            if result.as_ref().is_err_and(answer::is_refused) {
                // The service's schema may have changed.
                self.types.forget().await;
            }
            result
        };
        in_time(context.timeout, &self.what, exchange).await
    }

    fn release_documents(&mut self) -> Result<(), String> {
        self.schema = None;
        Ok(())
    }

    fn check(&self, arguments: &StaticValue) -> Vec<Misfit> {
        if let Some(types) = self.types.types_known() {
            return check::given(types, arguments);
        }
        let Some(schema) = &self.schema else {
            return Vec::new();
        };
        let roots = schema.roots(self.kind);
        match roots.and_then(|roots| roots.get(&self.field)) {
            Some(field) => check::arguments(schema, field, arguments),
            None => {
                let known = roots.iter().flat_map(|roots| roots.keys());
                let hint = did_you_mean(&self.field, known.map(String::as_str));
                let (kind, field) = (self.kind.as_str(), &self.field);
                vec![format!("the service has no {kind} `{field}`{hint}").into()]
            }
        }
    }

    fn check_selection(&self, set: &str) -> Vec<String> {
        let Some(schema) = &self.schema else {
            return Vec::new();
        };
        let field = schema.roots(self.kind).and_then(|all| all.get(&self.field));
        match field {
            Some(field) => check::selection(schema, &self.field, field, &graphql::selected(set)),
            None => Vec::new(),
        }
    }
}
