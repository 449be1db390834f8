//! Evaluates the definition's expressions over a scope.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use swirl_expr::{EvalError, PathError};
use swirl_model::error::names;
use swirl_model::time::IsoDuration;
use swirl_model::workflow::{
    ActionKind, AuthId, AuthScheme, Count, ExprId, ExprSource, PathId, Period, StateId, Template,
    TextPart, shown,
};
use swirl_model::{Data, WorkflowError};

use crate::definition::{Definition, names as names_of, sees_error, variables};
use crate::scope::env::Env;
use crate::scope::task_view::TaskView;

/// The values that expressions see besides their input.
pub(crate) struct View<'a> {
    pub def: &'a Definition,
    pub env: &'a Env,
    pub header: &'a swirl_model::instance::Header,
    pub params: &'a [(std::sync::Arc<str>, Data)],
    pub last_error: Option<&'a WorkflowError>,
    /// In a workflow of tasks.
    pub task: TaskView<'a>,
    /// The error that a condition tests. It is visible as `$error`, and by plain names in languages that have them.
    pub error: Option<Data>,
}

impl View<'_> {
    /// Evaluates to at most one value, or `None`.
    pub fn eval(&self, id: ExprId, input: &Data) -> Result<Option<Data>, WorkflowError> {
        self.eval_with(id, input, None)
    }

    /// Evaluates a collection. If the expression has several outputs, they are its elements
    /// (docs/language.md#decision-60).
    pub fn collection(&self, id: ExprId, input: &Data) -> Result<Data, WorkflowError> {
        let program = &self.def.programs[id.0 as usize];
        let vars = self.vars(id, |name| program.uses_var(name), None)?;
        match program.one(input, &vars, &self.expr_env()) {
            Err(EvalError::ManyOutputs) => {
                let source = &self.def.workflow[id];
                let names = names_of(&self.def.workflow, source);
                let outputs = program.outputs(&names, input, &vars, &self.expr_env());
                outputs.map_err(|error| expression_error(&error, &source.text))
            }
            _ => self.value(id, input),
        }
    }

    /// Evaluates to one value; no value counts as null (docs/language.md#decision-60).
    pub fn value(&self, id: ExprId, input: &Data) -> Result<Data, WorkflowError> {
        Ok(self.eval(id, input)?.unwrap_or_default())
    }

    pub fn eval_with(
        &self,
        id: ExprId,
        input: &Data,
        args: Option<&Data>,
    ) -> Result<Option<Data>, WorkflowError> {
        let program = &self.def.programs[id.0 as usize];
        let vars = self.vars(id, |name| program.uses_var(name), args)?;
        program
            .one(input, &vars, &self.expr_env())
            .map_err(|error| match error {
                // jq's messages quote the values that an operation failed on.
                EvalError::Message(_) if uses_secrets(program) => {
                    EvalError::Message("it failed, on a value that may hold a secret".to_owned())
                }
                error => error,
            })
            .map_err(|error| expression_error(&error, &self.def.workflow[id].text))
    }

    /// Returns the value at a path, or null if there is none.
    pub fn get(&self, path: PathId, data: &Data) -> Result<Data, WorkflowError> {
        let program = &self.def.paths[path.0 as usize];
        let vars = self.path_vars(path)?;
        program
            .get(data, &vars, &self.expr_env())
            .map_err(|error| path_error(&error, &self.def.workflow[path].text))
    }

    /// Sets the value at a path, and creates missing parents.
    pub fn set(&self, path: PathId, data: &Data, value: Data) -> Result<Data, WorkflowError> {
        let program = &self.def.paths[path.0 as usize];
        let vars = self.path_vars(path)?;
        let mut data = data.clone();
        program
            .set(&mut data, value, &vars, &self.expr_env())
            .map_err(|error| path_error(&error, &self.def.workflow[path].text))?;
        Ok(data)
    }

    fn expr_env(&self) -> swirl_expr::Env {
        swirl_expr::Env {
            now_ms: self.env.now.0,
            limits: self.expr_limits(),
        }
    }

    pub fn expr_limits(&self) -> swirl_expr::Limits {
        let mut limits = self.def.limits;
        if let Some(bounds) = self.env.bounds {
            limits.spent_max = Some(bounds.spent_max);
        }
        limits
    }

    fn path_vars(&self, path: PathId) -> Result<Vec<Data>, WorkflowError> {
        let source = &self.def.workflow[path];
        let used = |name: &str| name != "SECRETS" && source.text.contains(&format!("${name}"));
        self.variables(source, used, None)
    }

    fn vars(
        &self,
        id: ExprId,
        used: impl Fn(&str) -> bool,
        args: Option<&Data>,
    ) -> Result<Vec<Data>, WorkflowError> {
        if used("SECRETS") || used("secrets") {
            self.check_secrets(id)?;
        }
        self.variables(&self.def.workflow[id], used, args)
    }

    fn variables(
        &self,
        source: &ExprSource,
        used: impl Fn(&str) -> bool,
        args: Option<&Data>,
    ) -> Result<Vec<Data>, WorkflowError> {
        let names = variables(&self.def.workflow);
        let mut vars = Vec::with_capacity(names.len() + 1 + source.params.len());
        for name in names {
            vars.push(match *name {
                _ if !used(name) => Data::NULL,
                "authorization" => self.authorization()?,
                name if self.def.workflow.tasks.is_some() => {
                    self.task.variable(name, self.def, self.header, self.env)
                }
                "CONST" => self.def.workflow.constants.clone(),
                "SECRETS" => self.env.secrets.clone(),
                "WORKFLOW" => self.workflow(),
                _ => args.cloned().unwrap_or_default(),
            });
        }
        if sees_error(source.language) {
            vars.push(self.error.clone().unwrap_or_default());
        }
        for param in &source.params {
            let known = self.params.iter().rev().find(|(name, _)| name == param);
            vars.push(known.map(|(_, value)| value.clone()).unwrap_or_default());
        }
        Ok(vars)
    }

    /// `$authorization`: the credentials of the task's call. The parameter of those that a server has a part in is known
    /// only together with the call's answer.
    fn authorization(&self) -> Result<Data, WorkflowError> {
        let Some(id) = self.task.state.and_then(|id| self.auth_of(id)) else {
            return Ok(Data::NULL);
        };
        let auth = &self.def.workflow[id];
        // Credentials aren't made of themselves.
        let view = View {
            task: TaskView {
                state: None,
                ..self.task
            },
            error: None,
            ..*self
        };
        let kept = self.task.run.and_then(|run| run.input.as_ref());
        let input = kept.or(self.task.data).cloned().unwrap_or_default();
        let properties = view.template(&auth.properties, &input)?;
        let text = |name: &str| {
            properties
                .get(name)
                .map(|it| it.to_text())
                .unwrap_or_default()
        };
        let (scheme, parameter) = match auth.scheme {
            AuthScheme::Basic => {
                let pair = format!("{}:{}", text("username"), text("password"));
                ("Basic", Some(STANDARD.encode(pair)))
            }
            AuthScheme::Bearer => ("Bearer", Some(text("token"))),
            AuthScheme::Digest => ("Digest", self.sent_parameter()),
            AuthScheme::OAuth2 => ("Bearer", self.sent_parameter()),
        };
        let mut shown = Data::object();
        shown.set("scheme", Data::string(scheme));
        if let Some(parameter) = parameter {
            shown.set("parameter", Data::string(parameter));
        }
        Ok(shown)
    }

    /// What stands behind the scheme in the header that the call sent.
    fn sent_parameter(&self) -> Option<String> {
        let (_, parameter) = self.env.credentials.as_deref()?.split_once(' ')?;
        Some(parameter.to_owned())
    }

    /// The credentials of a task's call.
    fn auth_of(&self, id: StateId) -> Option<AuthId> {
        let workflow = &self.def.workflow;
        let list = workflow[id].kind.action_lists().into_iter().next()?;
        match &workflow[*workflow[list].actions.first()?].kind {
            ActionKind::Call(call) => workflow[call.function].auth,
            _ => None,
        }
    }

    fn check_secrets(&self, id: ExprId) -> Result<(), WorkflowError> {
        let program = &self.def.programs[id.0 as usize];
        for name in &program.secrets().names {
            if self.env.secrets.get(name).is_none() {
                return Err(WorkflowError::new(
                    names::SECRET_NOT_FOUND,
                    format!("the secret '{name}' has no value here; give it to the worker"),
                ));
            }
        }
        Ok(())
    }

    /// `$WORKFLOW` (docs/language.md#decision-15).
    fn workflow(&self) -> Data {
        let workflow = &self.def.workflow;
        let mut data = Data::object();
        data.set("id", Data::string(&*workflow.id));
        data.set(
            "name",
            workflow.name.as_deref().map_or(Data::NULL, Data::string),
        );
        data.set("version", Data::string(&*self.header.version));
        data.set("instanceId", Data::string(self.header.id.as_str()));
        data.set(
            "startedAt",
            Data::string(self.header.started_at.to_string()),
        );
        let scheduled_at = self.header.scheduled_at;
        let scheduled_at = scheduled_at.map_or(Data::NULL, |at| Data::string(at.to_string()));
        data.set("scheduledAt", scheduled_at);
        data.set("input", self.header.input.clone());
        if let Some(key) = &self.header.instance_key {
            data.set("key", Data::string(&**key));
        }
        if let Some(error) = self.last_error {
            data.set("error", error.to_data());
        }
        data
    }

    pub fn template(&self, template: &Template, input: &Data) -> Result<Data, WorkflowError> {
        Ok(match template {
            Template::Literal(data) => data.clone(),
            Template::Expression(id) => self.value(*id, input)?,
            Template::Text(parts) => {
                let mut text = String::new();
                for part in parts {
                    match part {
                        TextPart::Text(part) => text.push_str(part),
                        TextPart::Expression(id) => {
                            text.push_str(&self.value(*id, input)?.to_text());
                        }
                    }
                }
                Data::string(text)
            }
            Template::Loose(id, text) => match self.eval(*id, input) {
                Ok(Some(value)) => value,
                Ok(None) | Err(_) => Data::string(text.as_str()),
            },
            Template::Array(items) => Data::array(
                items
                    .iter()
                    .map(|item| self.template(item, input))
                    .collect::<Result<_, _>>()?,
            ),
            Template::Object(members) => {
                let mut data = Data::object();
                for (key, value) in members {
                    data.set(key, self.template(value, input)?);
                }
                data
            }
        })
    }

    /// A whole number, `min` or more.
    pub fn count(
        &self,
        count: Count,
        input: &Data,
        what: &str,
        min: u32,
    ) -> Result<u32, WorkflowError> {
        let id = match count {
            Count::Fixed(count) => return Ok(count),
            Count::Expression(id) => id,
        };
        let value = self.value(id, input)?;
        let text = value.to_text();
        let whole = text.parse::<u32>().ok().filter(|count| *count >= min);
        whole.ok_or_else(|| {
            let message = format!("{what} must be a whole number of {min} or more, but is {value}");
            WorkflowError::new(names::INVALID_VALUE, message)
        })
    }

    /// A length of time, from a duration or an expression.
    pub fn period(&self, period: &Period, input: &Data) -> Result<IsoDuration, WorkflowError> {
        let id = match period {
            Period::Fixed(duration) => return Ok(*duration),
            Period::Expression(id) => *id,
        };
        let value = self.value(id, input)?;
        let text = value.as_str().unwrap_or_default();
        IsoDuration::parse(text.trim()).map_err(|_| {
            let source = shorten(&self.def.workflow[id].text);
            let gave = if uses_secrets(&self.def.programs[id.0 as usize]) {
                value.kind_in_words().to_owned()
            } else {
                shorten(&value.to_string())
            };
            let message = format!("'{source}' gave {gave} instead of an ISO 8601 duration");
            WorkflowError::new(names::EXPRESSION_ERROR, message)
        })
    }

    /// Evaluates a condition to true or false. Null counts as false (docs/language.md#decision-16), and a list of
    /// matches from a JSONPath counts as true unless it is empty.
    pub fn condition(&self, id: ExprId, input: &Data) -> Result<bool, WorkflowError> {
        let value = self.value(id, input)?;
        if self.def.programs[id.0 as usize].yields_list() {
            return Ok(value.as_array().is_some_and(|found| !found.is_empty()));
        }
        if value.is_null() {
            return Ok(false);
        }
        value.as_bool().ok_or_else(|| {
            let text = &self.def.workflow[id].text;
            let gave = if uses_secrets(&self.def.programs[id.0 as usize]) {
                value.kind_in_words().to_owned()
            } else {
                shorten(&value.to_string())
            };
            let message = format!("the condition '{text}' gave {gave} instead of true or false");
            WorkflowError::new(names::CONDITION_NOT_BOOLEAN, message)
        })
    }
}

pub(crate) fn uses_secrets(program: &swirl_expr::Program) -> bool {
    program.uses_var("SECRETS") || program.uses_var("secrets")
}

fn expression_error(error: &EvalError, text: &str) -> WorkflowError {
    WorkflowError::new(
        names::EXPRESSION_ERROR,
        format!("in '{}': {error}", shorten(text)),
    )
}

fn path_error(error: &PathError, text: &str) -> WorkflowError {
    let name = match error {
        PathError::Mismatch { .. } => names::MERGE_TYPE_MISMATCH,
        _ => names::EXPRESSION_ERROR,
    };
    WorkflowError::new(name, format!("in '{}': {error}", shorten(text)))
}

/// Long texts are truncated in messages.
pub(crate) fn shorten(text: &str) -> String {
    shown(text, 200)
}
