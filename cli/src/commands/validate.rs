//! `swirl validate`

use std::path::{Path, PathBuf};

use anyhow::Context;
use serde_json::{Value, json};
use swirl_authoring::{lint, sonataflow};
use swirl_deployment::fetch;
use swirl_deployment::{GivenOr, Loader, Locations, Missing, RESOURCE_BYTES_MAX};
use swirl_documents::codes;
use swirl_documents::diagnostic::{Code, Diagnostic, Severity};
use swirl_documents::render::{self, Colour, SarifFile};
use swirl_embedded::SystemClock;
use swirl_functions::types::{Checks, Settings as FunctionSettings};
use swirl_ports::Clock;
use swirl_scenario::discover;
use swirl_spec::resource::FileResources;
use swirl_spec::{Options, Reading};

use crate::arguments::{loader, secrets};
use crate::definitions::{self, is_definition};
use crate::functions::GivenArgs;
use crate::terminal::{Output, Terminal};

/// Checks definitions.
///
/// All findings are shown at once, each with its location, a code and a hint; 'swirl explain CODE' explains a code. It
/// also shows as which edition of the language a definition was read, and why.
///
/// The documents that describe functions are loaded, from files and from the web as a deployment would load them, and
/// the arguments of calls are checked against them. An unavailable document is reported, but doesn't make the
/// definition invalid. Definitions that nothing refers to are warnings; 'swirl lint' has more rules of this kind.
///
/// Exit code 0 if all are valid (warnings count only with --deny-warnings), 1 if some are not, 2 if a file could not be
/// read.
#[derive(Debug, clap::Args)]
#[command(after_long_help = "\
Examples:
  swirl validate order.sw.yaml
  swirl validate workflows/                     # the definitions in it, recursively
  swirl validate --deny-warnings order.sw.yaml  # no loose forms, nothing unused
  swirl validate workflows/ --output sarif > findings.sarif")]
pub struct Args {
    /// Files, or folders that are searched.
    #[arg(required = true, value_name = "PATH")]
    paths: Vec<PathBuf>,

    /// Exit with 1 also for warnings, and for missing files of functions.
    #[arg(long)]
    deny_warnings: bool,

    /// Don't load the documents that describe functions (OpenAPI, AsyncAPI, proto). Then calls aren't checked against
    /// them.
    #[arg(long)]
    offline: bool,

    /// A host from which documents may be fetched, in addition to this machine; may be repeated.
    #[arg(long, value_name = "HOST")]
    allow_host: Vec<String>,

    #[command(flatten)]
    given: GivenArgs,
}

/// A definition's file as it was read.
pub struct Read {
    pub file: PathBuf,
    /// The text to which lines and columns refer.
    pub text: String,
    pub reading: Reading,
    /// Documents of functions that were unavailable.
    pub missing: Vec<Missing>,
}

impl Read {
    /// Reads a definition, and looks for the documents that it refers to among files.
    ///
    /// # Errors
    /// The file itself cannot be read.
    pub fn file(file: &Path) -> anyhow::Result<Read> {
        Read::file_as(file, &[], true)
    }

    /// The same with given documents, by URI.
    ///
    /// # Errors
    /// The file itself cannot be read.
    pub fn file_with(file: &Path, given: &[(String, String)]) -> anyhow::Result<Read> {
        Read::file_as(file, given, false)
    }

    /// The same. `may_lack`: a document on the web that isn't there is only a warning, so the definition can't be run.
    ///
    /// # Errors
    /// The file itself cannot be read.
    pub fn file_as(
        file: &Path,
        given: &[(String, String)],
        may_lack: bool,
    ) -> anyhow::Result<Read> {
        let document = swirl_documents::files::read(file, swirl_documents::files::BYTES_MAX)
            .with_context(|| format!("{} cannot be read", file.display()))?;
        let folder = file.parent().unwrap_or(Path::new(""));
        let files = FileResources::new(folder, RESOURCE_BYTES_MAX).anywhere();
        let resources = GivenOr::new(given, files);
        let options = Options {
            now: Some(SystemClock.now()),
            may_lack_documents: may_lack,
            ..Options::default()
        };
        let reading = swirl_spec::read(&document, &resources, &options);
        let text = String::from_utf8_lossy(&document);
        let text = text.strip_prefix('\u{feff}').unwrap_or(&text).to_owned();
        Ok(Read {
            file: file.to_owned(),
            text,
            reading,
            missing: Vec::new(),
        })
    }

    /// Checks the built-in operations.
    fn check_operations(&mut self) {
        let partial = self.reading.partial.as_deref();
        let workflow = self.reading.workflow.as_ref().or(partial);
        if let (Some(workflow), Some(root)) = (workflow, &self.reading.root) {
            let found = Locations::new(root).built_in(workflow);
            self.reading.diagnostics.extend(found);
        }
    }

    /// Finds definitions that are never used. Existing documents often have some, and they are harmless. So they are
    /// warnings here, and ignored at deployment.
    fn check_unused(&mut self) {
        let (Some(workflow), Some(root)) = (&self.reading.workflow, &self.reading.root) else {
            return;
        };
        let mut found = lint::lint(workflow, root, &[]);
        found.retain(|finding| finding.rule.name == lint::UNUSED_DEFINITION.name);
        for finding in found {
            let code = Code::of_rule(finding.rule.name);
            let warning = Diagnostic::at(Severity::Warning, code, finding.place, finding.message);
            let diagnostics = &mut self.reading.diagnostics;
            diagnostics.push(warning.with_hint(finding.hint));
        }
    }

    /// Loads the documents that describe the functions, and checks the calls against them.
    fn check_calls(&mut self, loader: &Loader, given: &[(String, String)]) {
        let partial = self.reading.partial.as_deref();
        let workflow = self.reading.workflow.as_ref().or(partial);
        let (Some(workflow), Some(root)) = (workflow, &self.reading.root) else {
            return;
        };
        let folder = self.file.parent().unwrap_or(Path::new(""));
        let files = FileResources::new(folder, RESOURCE_BYTES_MAX).anywhere();
        let (resources, missing) = loader.documents(workflow, files, given);
        let checks = Checks::new(workflow, &resources, &FunctionSettings::default());
        let known = &self.reading.diagnostics;
        let found = Locations::new(root).checked(workflow, &checks, &missing, known);
        self.reading.diagnostics.extend(found);
        self.missing = missing;
    }

    fn valid(&self) -> bool {
        self.reading.workflow.is_some() && !self.reading.diagnostics.has_errors()
    }

    /// Whether `--deny-warnings` fails. A missing file of a function is the definition's own fault; a document on the
    /// web may only be unreachable.
    fn denied(&self) -> bool {
        let mut findings = self.reading.diagnostics.iter();
        let lost = |missing: &Missing| !fetch::is_http(&missing.uri);
        findings.any(|finding| finding.severity == Severity::Warning)
            || self.missing.iter().any(lost)
    }
}

/// Returns the definitions that these paths name, including those in folders. `trouble` gets the files that could not
/// be read.
pub(super) fn definitions(paths: &[PathBuf], trouble: &mut impl FnMut(String)) -> Vec<PathBuf> {
    let mut files = Vec::new();
    for path in paths {
        let before = files.len();
        match discover::collect(path, &mut files, &is_definition) {
            Err(error) => trouble(error.to_string()),
            Ok(()) if files.len() == before => trouble(format!(
                "{}: this folder contains no definitions; {}",
                path.display(),
                definitions::WHAT
            )),
            Ok(()) => {}
        }
    }
    files
}

/// Fetches the documents of functions, unless that is switched off.
pub(super) fn loader_unless(offline: bool, hosts: &[String]) -> anyhow::Result<Option<Loader>> {
    if offline {
        return Ok(None);
    }
    let mut loader = loader(hosts, FunctionSettings::default())?;
    loader.secrets = secrets(&[])?;
    Ok(Some(loader))
}

pub fn run(args: &Args, terminal: &Terminal) -> anyhow::Result<u8> {
    let mut unreadable = false;
    let mut trouble = |message: String| {
        unreadable = true;
        terminal.message(&format!("error: {message}"));
    };
    let files = definitions(&args.paths, &mut trouble);
    let given = args.given.resources()?;
    let loader = loader_unless(args.offline, &args.allow_host)?;
    let mut reads = Vec::new();
    let mut valid = true;
    for file in files {
        match Read::file_as(&file, &given, true) {
            Ok(mut read) => {
                read.check_operations();
                read.check_unused();
                if let Some(loader) = &loader {
                    read.check_calls(loader, &given);
                }
                valid &= read.valid() && !(args.deny_warnings && read.denied());
                if terminal.output == Output::Text {
                    terminal.result(&human(&read, terminal.colours()))?;
                } else {
                    reads.push(read);
                }
            }
            Err(error) => trouble(format!("{error:#}")),
        }
    }
    match terminal.output {
        Output::Text => {}
        Output::Json => terminal.result(&as_json(&reads, unreadable))?,
        Output::Sarif => terminal.result(&sarif(&reads))?,
    }
    Ok(match (unreadable, valid) {
        (true, _) => 2,
        (false, false) => 1,
        (false, true) => 0,
    })
}

/// The findings, and a summary line.
pub fn human(read: &Read, colour: bool) -> String {
    let name = read.file.display().to_string();
    let findings = read.reading.diagnostics.as_slice();
    let ansi = if colour { Colour::Ansi } else { Colour::No };
    let mut text = render::human(&name, &read.text, findings, ansi);
    let verdict = match (
        read.valid(),
        findings.iter().any(|f| f.severity == Severity::Warning),
    ) {
        (false, _) => "invalid",
        (true, true) => "valid, with warnings",
        (true, false) if !read.missing.is_empty() => "valid, as far as it was checked",
        (true, false) => "valid",
    };
    let edition = match &read.reading.edition {
        Some(detected) => format!("edition {}, because {}", detected.edition, detected.why),
        None => "of no known edition".to_owned(),
    };
    for missing in &read.missing {
        let reason = &missing.reason;
        text.push_str(&format!(
            "{name}: note: the document of a function is unavailable, so its calls were not checked: \
             {reason}\n"
        ));
    }
    let unmarked = findings
        .iter()
        .filter(|finding| finding.code == codes::EXPRESSION_NOT_MARKED)
        .count();
    text.push_str(&format!("{name}: {verdict} ({edition})\n"));
    if unmarked > 0 {
        let what = match unmarked {
            1 => "1 text looks like an expression, and is sent as it is written".to_owned(),
            count => {
                format!("{count} texts look like expressions, and are sent as they are written")
            }
        };
        text.push_str(&format!("{name}: ATTENTION: {what}\n"));
    }
    if let Ok(rewritten) = sonataflow::rewrite(&read.text)
        && !rewritten.changes.is_empty()
    {
        let places = match rewritten.changes.len() {
            1 => "1 place is".to_owned(),
            count => format!("{count} places are"),
        };
        text.push_str(&format!(
            "{name}: hint: {places} written for SonataFlow; 'swirl migrate --from sonataflow {name}' rewrites them\n"
        ));
    }
    text
}

/// `unreadable`: a file or folder could not be read, so not everything that was asked for is valid.
fn as_json(reads: &[Read], unreadable: bool) -> String {
    let files: Vec<Value> = reads
        .iter()
        .map(|read| {
            let name = read.file.display().to_string();
            let text = render::json(&name, read.reading.diagnostics.as_slice());
            let mut file: Value = serde_json::from_str(&text).unwrap_or_default();
            let edition = read.reading.edition.as_ref();
            file["edition"] = json!(edition.map(|detected| detected.edition.as_str()));
            file["because"] = json!(edition.map(|detected| &detected.why));
            if !read.missing.is_empty() {
                let missing = read.missing.iter();
                let rows = missing.map(|one| json!({"uri": one.uri, "reason": one.reason}));
                file["notChecked"] = rows.collect();
            }
            file
        })
        .collect();
    let valid = !unreadable && reads.iter().all(Read::valid);
    format!("{:#}\n", json!({"valid": valid, "files": files}))
}

fn sarif(reads: &[Read]) -> String {
    let names: Vec<String> = reads
        .iter()
        .map(|read| read.file.display().to_string())
        .collect();
    let files: Vec<SarifFile<'_>> = reads
        .iter()
        .zip(&names)
        .map(|(read, name)| SarifFile {
            name,
            diagnostics: read.reading.diagnostics.as_slice(),
        })
        .collect();
    render::sarif(env!("CARGO_PKG_VERSION"), &files)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Read {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("w.sw.yaml");
        std::fs::write(&file, text).unwrap();
        Read {
            file: "w.sw.yaml".into(),
            ..Read::file(&file).unwrap()
        }
    }

    const GOOD: &str = "id: w\nversion: 1.0.0\nspecVersion: '0.8'\nstates:\n  - {name: A, type: inject, data: {a: 1}, end: true}\n";

    #[test]
    fn a_valid_definition_is_reported() {
        insta::assert_snapshot!(human(&read(GOOD), false), @"w.sw.yaml: valid (edition 0.8, because 'specVersion' is '0.8')");
    }

    #[test]
    fn an_invalid_definition_is_reported() {
        let read = read(&GOOD.replace("end: true", "transitoin: B"));
        insta::assert_snapshot!(human(&read, false), @r#"
        w.sw.yaml:5:43: error[unknown-property]: a state of type 'inject' has no property 'transitoin'
        5 |   - {name: A, type: inject, data: {a: 1}, transitoin: B}
          |                                           ^
          = hint: did you mean 'transition'?

        w.sw.yaml: 1 error
        w.sw.yaml: invalid (edition 0.8, because 'specVersion' is '0.8')
        "#);
        let json: Value = serde_json::from_str(&as_json(&[read], false)).unwrap();
        assert_eq!(json["valid"], false);
        assert_eq!(json["files"][0]["edition"], "0.8");
    }

    #[test]
    fn what_could_not_be_read_is_not_valid() {
        for (reads, unreadable, valid) in [
            (vec![read(GOOD)], false, true),
            (vec![read(GOOD)], true, false),
            (vec![], true, false),
        ] {
            let json: Value = serde_json::from_str(&as_json(&reads, unreadable)).unwrap();
            assert_eq!(json["valid"], valid, "{unreadable}");
        }
    }

    #[test]
    fn unused_definitions_are_warnings() {
        let unused = GOOD.replace("states:", "errors: [{name: Refused, code: '402'}]\nstates:");
        let mut read = read(&unused);
        assert!(read.valid() && !read.denied());
        read.check_unused();
        assert!(read.valid() && read.denied());
        insta::assert_snapshot!(human(&read, false), @r"
        w.sw.yaml:4:10: warning[unused-definition]: nothing refers to the error 'Refused'
        4 | errors: [{name: Refused, code: '402'}]
          |          ^
          = hint: remove it, or use it

        w.sw.yaml: 1 warning
        w.sw.yaml: valid, with warnings (edition 0.8, because 'specVersion' is '0.8')
        ");
    }

    #[test]
    fn each_place_written_as_for_sonataflow_counts() {
        let text = "id: w\nversion: 1.0.0\nspecVersion: '0.8'\nfunctions: [{name: f, type: custom, operation: sysout}]\nstates: [{name: A, type: operation, actions: [{functionRef: {refName: f, arguments: {a: .b, c: 'Hello {{ .d }}'}}}], end: true}]\n";
        let shown = human(&read(text), false);
        assert!(
            shown.contains("ATTENTION: 2 texts look like expressions"),
            "{shown}"
        );
        assert!(
            shown.contains("hint: 2 places are written for SonataFlow"),
            "{shown}"
        );
    }

    #[test]
    fn sarif_contains_all_files() {
        let bad = read(&GOOD.replace("end: true", "transitoin: B"));
        let sarif: Value = serde_json::from_str(&sarif(&[read(GOOD), bad])).unwrap();
        assert_eq!(sarif["version"], "2.1.0");
        assert!(!sarif["runs"][0]["results"].as_array().unwrap().is_empty());
    }
}
