//! The functions of a definition, compiled.

use swirl_model::workflow::{Function, FunctionKind, Workflow};

use super::{CompileResult, Compiled, Documents, Settings, TYPES, word};
use crate::problem::{FaultyPart, Problem, Site};

/// The functions of a definition as their types have compiled them, in the order of the definition.
#[derive(Default)]
pub struct CompiledFunctions(Vec<CompileResult>);

impl CompiledFunctions {
    /// `resources`: the documents that the functions refer to, by URI.
    pub fn new(
        workflow: &Workflow,
        resources: &[(String, String)],
        settings: &Settings,
    ) -> CompiledFunctions {
        let documents = Documents {
            resources,
            settings,
        };
        let functions = workflow.functions.iter();
        let mut results: Vec<CompileResult> = functions
            .map(|function| Err(no_caller(&function.kind).into()))
            .collect();
        for kind in &TYPES {
            let (places, own): (Vec<usize>, Vec<&Function>) = (workflow.functions.iter())
                .enumerate()
                .filter(|(_, function)| word(&function.kind) == kind.word)
                .unzip();
            for (place, result) in places.into_iter().zip((kind.compile)(&own, &documents)) {
                results[place] = result;
            }
        }
        CompiledFunctions(results)
    }

    /// Drops the documents that only checks need.
    pub(crate) fn release_documents(&mut self) {
        for result in &mut self.0 {
            if let Ok(function) = result
                && let Err(reason) = function.release_documents()
            {
                *result = Err(reason.into());
            }
        }
    }

    /// The functions that cannot be called. Those of type `expression` are evaluated by the engine.
    pub fn problems(&self, workflow: &Workflow) -> Vec<Problem> {
        let functions = workflow.functions.iter().zip(&self.0);
        let refused = functions
            .enumerate()
            .filter_map(|(at, (function, result))| {
                let is_called = function.kind != FunctionKind::Expression;
                let (part, reason) = match result {
                    Ok(compiled) => (FaultyPart::default(), compiled.unusable()?.to_owned()),
                    Err(why) => (why.part, why.reason.clone()),
                };
                let site = Site::Operation(part);
                let before = workflow.functions[..at].iter();
                let before = before
                    .filter(|known| known.name == function.name && known.place == function.place);
                let problem = Problem {
                    nth: before.count(),
                    ..Problem::of(function, reason, site)
                };
                Some(problem).filter(|_| is_called)
            });
        refused.collect()
    }

    /// The functions that are deployed although nothing says where their services are.
    pub fn unaddressed(&self, workflow: &Workflow) -> Vec<Problem> {
        let functions = workflow.functions.iter().zip(&self.0);
        let found = functions.filter_map(|(function, result)| {
            let message = result.as_ref().ok()?.unaddressed()?.to_owned();
            let site = Site::Operation(FaultyPart::Document);
            Some(Problem::of(function, message, site))
        });
        found.collect()
    }

    pub(crate) fn get(&self, place: usize) -> Option<&Compiled> {
        self.0.get(place)?.as_ref().ok()
    }

    /// All functions, without those that cannot be called.
    pub(crate) fn into_callable(self) -> impl Iterator<Item = Option<Compiled>> {
        let functions = self.0.into_iter().map(Result::ok);
        functions.map(|function| function.filter(|function| function.unusable().is_none()))
    }
}

/// The reason why functions of a type that isn't in the table cannot be called.
pub(crate) fn no_caller(kind: &FunctionKind) -> String {
    let known: Vec<_> = TYPES
        .iter()
        .map(|known| format!("`{}`", known.word))
        .collect();
    format!(
        "functions of type `{}` aren't called by this version; it calls {}",
        kind.as_str(),
        known.join(", ")
    )
}

impl std::fmt::Debug for CompiledFunctions {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} compiled functions", self.0.len())
    }
}
