//! A process to run, as the arguments of its call describe it.

use std::io;

use swirl_model::Data;
use swirl_ports::CallRequest;

use super::arguments::{listed, pairs};
use super::child::{self, Ended, Line};
use super::container::{self, Container};
use super::folders::{Folder, Folders};
use super::settings::{ProcessKind, Processes};
use crate::{CallError, CallErrorKind};

/// It has a folder of its own, which is removed with it.
pub(super) struct Job {
    words: Vec<String>,
    environment: Vec<(String, String)>,
    pub(super) stdin: Option<Vec<u8>>,
    container: Option<Container>,
    folder: Folder,
}

impl Job {
    pub(super) fn of(
        kind: ProcessKind,
        request: &CallRequest,
        settings: &Processes,
        folders: &Folders,
    ) -> Result<Job, CallError> {
        let arguments = &request.arguments;
        let folder = folders.make();
        let folder = folder.map_err(|error| no_folder(&error))?;
        let mut environment = pairs(arguments, "environment")?;
        let text = |name: &str| arguments.get(name).map(|value| value.to_text());
        let stdin = arguments.get("stdin").filter(|value| !value.is_null());
        let stdin = stdin.map(|value| value.to_text().into_bytes());
        let need = |name: &str| {
            text(name).ok_or_else(|| CallError::arguments(format!("`{name}` is missing")))
        };
        let mut container = None;
        let words = match kind {
            ProcessKind::Shell => {
                let mut words = ["sh", "-c"].map(str::to_owned).to_vec();
                words.extend([need("command")?, "sh".to_owned()]);
                words.extend(listed(arguments)?);
                words
            }
            ProcessKind::Script => {
                let language = need("language")?;
                let script = script(&language, &need("code")?, arguments, settings)?;
                let mut words = script.program.clone();
                for (name, text) in &script.files {
                    let path = folder.path().join(name);
                    std::fs::write(&path, text).map_err(|error| no_folder(&error))?;
                }
                let file = |name| folder.path().join(name).display().to_string();
                if let Some(name) = script.required {
                    words.extend(["--require".to_owned(), file(name)]);
                }
                words.push(file(script.files.first().map_or("", |(name, _)| name)));
                if !arguments.get("arguments").is_some_and(|it| it.is_object()) {
                    words.extend(listed(arguments)?);
                }
                words
            }
            ProcessKind::Container => {
                let variables = std::mem::take(&mut environment);
                let file = folder.path().join("environment");
                let text = container::environment(&variables)?;
                std::fs::write(&file, text).map_err(|error| no_folder(&error))?;
                let (words, own) =
                    container::command(request, settings, listed(arguments)?, &file)?;
                container = Some(own);
                words
            }
            ProcessKind::Mcp => return Err(CallError::arguments("it is called as `mcp`")),
        };
        Ok(Job {
            words,
            environment,
            stdin,
            container,
            folder,
        })
    }

    /// The command line.
    pub(super) fn shown(&self) -> String {
        self.words.join(" ")
    }

    pub(super) async fn run(mut self, limit: usize, what: &str) -> Result<Ended, CallError> {
        let line = Line {
            words: &self.words,
            environment: &self.environment,
            stdin: self.stdin.as_deref(),
            folder: self.folder.path(),
        };
        let ended = child::run(&line, limit, what).await?;
        if let Some(container) = self.container.take() {
            container.ended();
        }
        self.folder.close().await;
        Ok(ended)
    }
}

fn no_folder(error: &io::Error) -> CallError {
    let message = format!("a process gets a folder for temporary files, which fails: {error}");
    CallError::new(CallErrorKind::Connection, message)
}

/// The file that gives a script in JavaScript its variables.
const START: &str = "start.js";

/// A script, and what runs it.
struct Script<'s> {
    program: &'s Vec<String>,
    /// Their names and texts. The program gets the first one.
    files: Vec<(&'static str, String)>,
    /// The file that Node runs before the script.
    required: Option<&'static str>,
}

fn script<'s>(
    language: &str,
    code: &str,
    arguments: &Data,
    settings: &'s Processes,
) -> Result<Script<'s>, CallError> {
    let given = arguments.get("arguments").filter(|given| given.is_object());
    match language {
        "js" => {
            let is_module = code.lines().any(|line| {
                let line = line.trim_start();
                let imports = line.strip_prefix("import").map(str::trim_start);
                imports.is_some_and(|rest| {
                    rest.starts_with(['{', '*', '"', '\'']) || rest.contains(" from ")
                }) || line.starts_with("export ")
            });
            let name = if is_module { "script.mjs" } else { "script.js" };
            let mut files = vec![(name, code.to_owned())];
            if let Some(given) = given {
                // A line in the code itself would move its lines, and stand before its `'use strict'`.
                files.push((START, format!("Object.assign(globalThis, {given});\n")));
            }
            Ok(Script {
                program: &settings.javascript,
                required: (files.len() > 1).then_some(START),
                files,
            })
        }
        "python" => {
            let mut files = vec![("script.py", code.to_owned())];
            if let Some(given) = given {
                // Texts of JSON are texts of Python. A line in the code itself would stand before its `__future__`.
                let text = Data::string(given.to_string());
                let start = format!(
                    "import json, os, runpy\n\
                     code = os.path.join(os.path.dirname(__file__), 'script.py')\n\
                     runpy.run_path(code, json.loads({text}), '__main__')\n"
                );
                files.insert(0, ("start.py", start));
            }
            Ok(Script {
                program: &settings.python,
                files,
                required: None,
            })
        }
        other => {
            let message = format!("scripts in `{other}` can't be run");
            Err(CallError::arguments(message))
        }
    }
}
