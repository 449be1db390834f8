//! Errors: how conditions see them, which sets they match, and how handlers process them.

use swirl_model::Data;
use swirl_model::workflow::{
    ActionId, ErrorFilter, ErrorId, ErrorSet, ExprId, Language, Template, Throw,
};

use super::data::{eval, merge_to};
use super::flow::{Instance, Path};
use super::tests::exists;
use super::world::NEVER;

/// An error on the way to its handler.
#[derive(Debug, Clone, PartialEq)]
pub struct Fail {
    pub at: i64,
    pub name: String,
    pub code: Option<String>,
    /// Set only for errors of functions, because messages of the runtime's own errors aren't known here.
    pub message: Box<str>,
    /// The state in which it occurred.
    pub state: Option<Box<str>>,
    /// An action's handler leaves the state by a transition of its own.
    pub left_by: Option<(ActionId, usize)>,
}

/// The error at what only documents of DSL 1.0 have: the generator writes none.
pub const OF_TASKS: &str = "NotInThisReference";

impl Fail {
    pub fn named(name: &str) -> Fail {
        Fail {
            at: NEVER,
            name: name.to_owned(),
            code: None,
            message: Box::default(),
            state: None,
            left_by: None,
        }
    }

    pub fn timeout(name: &str, at: i64) -> Fail {
        Fail {
            at,
            code: Some("timeout".to_owned()),
            ..Fail::named(name)
        }
    }

    /// Type and status, if errors are described.
    fn described(&self) -> (&'static str, u16) {
        if self.code.as_deref() == Some("timeout") {
            return ("timeout", 408);
        }
        match self.name.as_str() {
            "InputValidation" | "OutputValidation" => ("validation", 400),
            "ExpressionError"
            | "ConditionNotBoolean"
            | "CollectionNotArray"
            | "MergeTypeMismatch"
            | "InvalidValue" => ("expression", 400),
            "SubflowNotFound" => ("configuration", 400),
            "FunctionError" => ("communication", 500),
            _ => ("runtime", 500),
        }
    }

    /// Errors in expressions occur immediately.
    pub fn at(mut self, at: i64) -> Fail {
        self.at = self.at.min(at);
        self
    }

    /// The error object (docs/language.md#decision-24).
    fn to_data(&self) -> Data {
        let text = |text: Option<&str>| text.map_or(Data::NULL, Data::string);
        let mut data = Data::object();
        data.set("name", Data::string(&*self.name));
        data.set("code", text(self.code.as_deref()));
        data.set("message", Data::string(&*self.message));
        data.set("status", Data::NULL);
        data.set("state", text(self.state.as_deref()));
        data
    }
}

impl Instance<'_> {
    /// The first set that an error matches. The set of all errors is tried last.
    pub fn first_fit<'s>(
        &self,
        sets: impl Iterator<Item = &'s ErrorSet>,
        fail: &Fail,
        path: &Path,
    ) -> Result<Option<usize>, Fail> {
        let mut any = None;
        for (index, set) in sets.enumerate() {
            match set {
                ErrorSet::Any => any = any.or(Some(index)),
                _ if self.fits(set, fail, path)? => return Ok(Some(index)),
                _ => {}
            }
        }
        Ok(any)
    }

    pub fn fits(&self, set: &ErrorSet, fail: &Fail, path: &Path) -> Result<bool, Fail> {
        Ok(match set {
            ErrorSet::Any => true,
            ErrorSet::These(list) => list.iter().any(|id| self.is(*id, fail)),
            ErrorSet::Except(list) => !list.iter().any(|id| self.is(*id, fail)),
            ErrorSet::TheseExcept(list, except) => {
                let is_of = |list: &[ErrorId]| list.iter().any(|id| self.is(*id, fail));
                is_of(list) && !is_of(except)
            }
            ErrorSet::Text(text) => fail.name == *text || fail.code.as_ref() == Some(text),
            ErrorSet::When(test) => self.holds_for(*test, fail, path)?,
        })
    }

    /// A condition over an error: with `error` in the data, and with plain names in languages that have them
    /// (docs/language.md#decision-27); in jq the error's members stand at the top.
    fn holds_for(&self, test: ExprId, fail: &Fail, path: &Path) -> Result<bool, Fail> {
        let mut error = fail.to_data();
        let code = match &fail.code {
            Some(code) if *code != fail.name => format!(" ({code})"),
            _ => String::new(),
        };
        let trace = format!("{}{code}: {}", fail.name, fail.message);
        error.set("trace", Data::string(trace));
        let mut data = match path.data.is_object() {
            true => path.data.clone(),
            false => Data::object(),
        };
        data.set("error", error.clone());
        let mut params = path.params.clone();
        if self.wf[test].language == Language::Jq {
            // docs/language.md#decision-106
            params.push(("data".into(), path.data.clone()));
            data = error.clone();
            data.set("error", error.clone());
        }
        if !matches!(self.wf[test].language, Language::Jq | Language::JsonPath) {
            params.push(("error".into(), error));
        }
        let found = eval(self.wf, test, &data, &params).map_err(|other| other.at(fail.at))?;
        Ok(exists(&found))
    }

    /// Matches by description, otherwise by code; without a code, by name (docs/language.md#decision-24).
    pub fn is(&self, id: ErrorId, fail: &Fail) -> bool {
        let def = &self.wf[id];
        if let Some(problem) = &def.problem {
            let (kind, status) = fail.described();
            let named = |wanted: &String| wanted.rsplit('/').next() == Some(kind);
            return problem.kind.as_ref().is_none_or(named)
                && problem.status.is_none_or(|wanted| wanted == status);
        }
        match &def.code {
            Some(code) => fail.code.as_ref() == Some(code),
            None => def.name == fail.name,
        }
    }

    /// Puts the handler's selection of its error into the data (docs/language.md#decision-100).
    pub fn keep(&self, filter: &ErrorFilter, fail: &Fail, path: &mut Path) -> Result<(), Fail> {
        let error = fail.to_data();
        let value = match filter.data {
            Some(selection) => {
                eval(self.wf, selection, &error, &path.params).map_err(|it| it.at(fail.at))?
            }
            None => error,
        };
        if value.is_null() {
            return Ok(());
        }
        merge_to(self.wf, &mut path.data, filter.to, &value).map_err(|it| it.at(fail.at))
    }
}

/// The error that a handler throws instead of another one.
pub fn thrown(throw: &Throw, fail: Fail) -> Fail {
    let kind = match &throw.kind {
        Some(Template::Literal(kind)) => Some(kind.to_text()),
        _ => None,
    };
    let last = kind.as_deref().and_then(|kind| kind.rsplit('/').next());
    let name = throw.name.as_deref().or(last).unwrap_or(&fail.name);
    Fail {
        at: fail.at,
        ..Fail::named(name)
    }
}
