//! Calls of methods need no import, so a type whose `impl` blocks are in many files may be one ring of them all. This
//! finds those calls: of `self`, of parameters, and of their fields and plain results, if the type is one of the crate.

use std::collections::{BTreeMap, BTreeSet};

use anyhow::Result;
use regex::Regex;

use super::File;
use super::rings::Uses;

/// A method, or a function of a type.
struct Method<'t> {
    path: &'t str,
    /// The type that it returns, if that is plain.
    returns: Option<String>,
}

/// The types of a crate. Types of the same name count as one.
#[derive(Default)]
struct Types<'t> {
    methods: BTreeMap<(String, String), Vec<Method<'t>>>,
    fields: BTreeMap<(String, String), String>,
}

/// A function with its text, and the type that it belongs to.
struct Function<'t> {
    path: &'t str,
    of: Option<String>,
    name: String,
    signature: String,
    body: String,
}

/// Adds the files whose methods each file calls.
pub(super) fn add<'t>(files: &[File<'t>], uses: &mut Uses<'t>) -> Result<()> {
    let reader = Reader::new()?;
    let mut types = Types::default();
    let mut functions = Vec::new();
    for file in files {
        reader.fields(&file.code, &mut types);
        functions.extend(reader.functions(file));
    }
    for function in &functions {
        if let Some(of) = &function.of {
            let key = (of.clone(), function.name.clone());
            types.methods.entry(key).or_default().push(Method {
                path: function.path,
                returns: reader.returned(&function.signature, of),
            });
        }
    }
    for function in &functions {
        let targets = reader.called(function, &types);
        let uses = uses.entry(function.path).or_default();
        uses.extend(targets.into_iter().filter(|path| *path != function.path));
    }
    Ok(())
}

impl<'t> Types<'t> {
    /// The file of a method, unless the caller's own file has one of that name or there are several.
    fn file(&self, of: &str, method: &str, caller: &str) -> Option<&Method<'t>> {
        let found = self.methods.get(&(of.to_owned(), method.to_owned()))?;
        let own = found.iter().find(|method| method.path == caller);
        let paths: BTreeSet<&str> = found.iter().map(|method| method.path).collect();
        own.or(found.first().filter(|_| paths.len() == 1))
    }
}

/// Reads code that rustfmt has formatted.
struct Reader {
    block: Regex,
    function: Regex,
    structure: Regex,
    field: Regex,
    parameter: Regex,
    root: Regex,
    next: Regex,
    plain: Regex,
}

impl Reader {
    fn new() -> Result<Reader> {
        Ok(Reader {
            block: Regex::new(
                r"^(?:pub(?:\([^)]*\))? )?(?:unsafe )?(?:impl\b(?:<[^{]*?>)? (?:[^{]* for )?|trait )&?(?:\w+::)*(\w+)",
            )?,
            function: Regex::new(
                r"^( *)(?:pub(?:\([^)]*\))? )?(?:(?:default|const|async|unsafe) )*fn (\w+)",
            )?,
            structure: Regex::new(
                r"(?m)^(?:pub(?:\([^)]*\))? )?struct (\w+)[^;{]*\{\n((?:    .*\n|\n)*)\}",
            )?,
            field: Regex::new(r"(?m)^    (?:pub(?:\([^)]*\))? )?(\w+): (.+?),?$")?,
            parameter: Regex::new(r"\b(\w+): ([^,)]+)")?,
            root: Regex::new(r"(?:^|[^.\w:])(\w+)(::)?")?,
            next: Regex::new(r"^\s*\.\s*(\w+)(\s*(?:::<[^>]*>)?\s*\()?")?,
            plain: Regex::new(r"^(?:&|'\w+ |mut |impl |dyn |Arc<|Box<|Rc<)*(?:\w+::)*([A-Z]\w*)")?,
        })
    }

    fn plain(&self, text: &str) -> Option<String> {
        self.plain
            .captures(text.trim())
            .map(|found| found[1].to_owned())
    }

    fn fields(&self, code: &str, types: &mut Types<'_>) {
        for found in self.structure.captures_iter(code) {
            for field in self.field.captures_iter(&found[2]) {
                if let Some(of) = self.plain(&field[2]) {
                    types
                        .fields
                        .insert((found[1].to_owned(), field[1].to_owned()), of);
                }
            }
        }
    }

    fn functions<'t>(&self, file: &File<'t>) -> Vec<Function<'t>> {
        let mut found = Vec::new();
        let mut of: Option<String> = None;
        let mut lines = file.code.lines().peekable();
        while let Some(line) = lines.next() {
            if let Some(block) = self.block.captures(line) {
                of = Some(block[1].to_owned());
            } else if line == "}" {
                of = None;
            }
            let Some(function) = self.function.captures(line) else {
                continue;
            };
            let indent = &function[1];
            let (mut text, mut line) = (line.to_owned(), line);
            let end = format!("{indent}}}");
            while !(line == end
                || line.ends_with(';') && !text.contains('{')
                || line.ends_with("}") && text.lines().count() == 1)
            {
                let Some(more) = lines.next() else { break };
                line = more;
                text.push('\n');
                text.push_str(line);
            }
            let (signature, body) = text.split_once('{').unwrap_or((&text, ""));
            found.push(Function {
                path: file.path,
                of: of.clone().filter(|_| !indent.is_empty()),
                name: function[2].to_owned(),
                signature: signature.to_owned(),
                body: body.to_owned(),
            });
        }
        found
    }

    fn returned(&self, signature: &str, of: &str) -> Option<String> {
        let (_, returned) = signature.split_once("-> ")?;
        let plain = self.plain(returned)?;
        Some(if plain == "Self" {
            of.to_owned()
        } else {
            plain
        })
    }

    /// The files of the methods that a function calls.
    fn called<'t>(&self, function: &Function<'t>, types: &Types<'t>) -> BTreeSet<&'t str> {
        let mut known: BTreeMap<&str, String> = BTreeMap::new();
        for parameter in self.parameter.captures_iter(&function.signature) {
            let (Some(name), Some(of)) = (parameter.get(1), self.plain(&parameter[2])) else {
                continue;
            };
            known.insert(name.as_str(), of);
        }
        if let Some(of) = &function.of {
            known.insert("self", of.clone());
        }
        let mut targets = BTreeSet::new();
        for root in self.root.captures_iter(&function.body) {
            let (Some(all), Some(name)) = (root.get(0), root.get(1)) else {
                continue;
            };
            let rest = &function.body[all.end()..];
            if root.get(2).is_some() {
                let of = match (name.as_str(), &function.of) {
                    ("Self", Some(of)) => of,
                    (name, _) => name,
                };
                let method = rest
                    .split(|c: char| !c.is_alphanumeric() && c != '_')
                    .next();
                let method = types.file(of, method.unwrap_or_default(), function.path);
                targets.extend(method.map(|method| method.path));
            } else if let Some(of) = known.get(name.as_str()) {
                self.follow(of.clone(), rest, function.path, types, &mut targets);
            }
        }
        targets
    }

    /// Follows `.field.method().method()`.
    fn follow<'t>(
        &self,
        mut of: String,
        mut rest: &str,
        caller: &str,
        types: &Types<'t>,
        targets: &mut BTreeSet<&'t str>,
    ) {
        while let Some(next) = self.next.captures(rest) {
            rest = &rest[next[0].len()..];
            let name = &next[1];
            let returned = if next.get(2).is_some() {
                let Some(method) = types.file(&of, name, caller) else {
                    return;
                };
                targets.insert(method.path);
                rest = behind_arguments(rest);
                method.returns.clone()
            } else {
                types.fields.get(&(of, name.to_owned())).cloned()
            };
            let Some(returned) = returned else { return };
            of = returned;
        }
    }
}

/// The text after the bracket that is open at its start is closed.
fn behind_arguments(text: &str) -> &str {
    let mut depth = 1;
    for (at, c) in text.char_indices() {
        match c {
            '(' => depth += 1,
            ')' => depth -= 1,
            _ => {}
        }
        if depth == 0 {
            return &text[at + 1..];
        }
    }
    ""
}
