//! `swirl deploy`

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use anyhow::{Context, bail};
use swirl_api::definitions::{
    DEPLOY, DeployQuery, Deployed, Deployment, Outcome, is_about_document,
};
use swirl_api::{Finding, Problem};
use swirl_deployment::GivenOr;
use swirl_deployment::fetch;
use swirl_documents::render::Colour;
use swirl_documents::source::Limits;
use swirl_functions::resources::{HttpOptions, HttpResources};
use swirl_presentation::timeline::clean;
use swirl_scenario::discover;
use swirl_spec::resource::{FileResources, ResourceError, Resources};

use crate::arguments::Reason;
use crate::client::{Server, findings_in, refusal};
use crate::definitions::{self, is_definition};
use crate::functions::{GivenArgs, of_folder};
use crate::terminal::{Output, Terminal};

/// Deploys definitions to a server.
///
/// A definition is immutable under its id and version: deploying the same content again changes nothing, and different
/// content is refused. Exit code 1 if some were refused.
///
/// All files are read first, then the definitions are deployed one after another. If the server fails in between, the
/// rest isn't tried; what is deployed stays, so the command can be run again. With '--output json' each file has its
/// outcome in 'done'.
///
/// Files that a definition refers to are sent with it; relative paths are relative to its folder. Documents that this
/// machine serves (`http://localhost/...`) are sent too. The server fetches documents from elsewhere on the web itself.
#[derive(Debug, clap::Args)]
#[command(after_long_help = "\
Examples:
  swirl deploy order.sw.yaml
  swirl deploy workflows/                       # all definitions of the folder
  swirl deploy *.sw.yaml --server http://127.0.0.1:9000")]
pub struct Args {
    /// Definitions, YAML or JSON; or folders, whose definitions are found recursively.
    #[arg(required = true, value_name = "FILE")]
    files: Vec<PathBuf>,

    #[command(flatten)]
    reason: Reason,

    #[command(flatten)]
    server: Server,

    #[command(flatten)]
    given: GivenArgs,
}

pub fn run(args: &Args, terminal: &Terminal) -> anyhow::Result<u8> {
    let given = args.given.resources()?;
    let files = definitions(&args.files)?;
    // All files are read before the first definition is deployed: one that is missing leaves nothing half done.
    let mut shared = BTreeMap::new();
    for folder in files.iter().filter_map(|(_, folder)| folder.as_deref()) {
        if !shared.contains_key(folder) {
            shared.insert(folder, [&given[..], &of_folder(folder)?].concat());
        }
    }
    let deployments = files.iter().map(|(file, folder)| {
        let read = swirl_documents::files::read_text(file);
        let document = read.with_context(|| format!("{} cannot be read", file.display()))?;
        let shared = folder.as_deref().and_then(|folder| shared.get(folder));
        let resources = files_of(&document, file, shared.unwrap_or(&given));
        Ok(Deployment {
            name: Some(file.display().to_string()),
            document,
            resources: resources.into_iter().collect(),
        })
    });
    let deployments = deployments.collect::<anyhow::Result<Vec<_>>>()?;
    args.server.run(async |client| {
        let mut all = Vec::new();
        // The last request failed. The others would, too.
        let mut failure = None;
        for deployment in &deployments {
            let name = deployment.name.clone().unwrap_or_default();
            if failure.is_some() {
                all.push(Row::new(name, Done::NotTried));
                continue;
            }
            let query = DeployQuery {
                reason: args.reason.asked().reason,
                ..DeployQuery::default()
            };
            let call = DEPLOY.ask().query(query).body(deployment);
            let answer = match client.ask(call).await {
                Ok(answer) => answer.0,
                Err(error) => {
                    let mut row = Row::new(name, Done::Unknown);
                    // The rows are the answer then, and an error would be a second one.
                    failure = Some(match terminal.output {
                        Output::Json => {
                            row.answer = Some(format!("{error:#}").into());
                            Ok(1)
                        }
                        _ => Err(error),
                    });
                    all.push(row);
                    continue;
                }
            };
            show(&name, deployment, &answer, terminal)?;
            all.push(match answer {
                Ok(deployed) => Row {
                    status: Some(match deployed.outcome {
                        Outcome::Unchanged => 200,
                        _ => 201,
                    }),
                    answer: Some(serde_json::to_value(deployed)?),
                    ..Row::new(name, Done::Deployed)
                },
                Err(problem) => {
                    failure = (!is_about_document(problem.status)).then_some(Ok(1));
                    let done = match problem.status {
                        500.. => Done::Unknown,
                        _ => Done::Refused,
                    };
                    Row {
                        status: Some(problem.status),
                        answer: Some(serde_json::to_value(problem)?),
                        ..Row::new(name, done)
                    }
                }
            });
        }
        if terminal.output == Output::Json {
            terminal.result(&format!("{}\n", serde_json::to_string_pretty(&all)?))?;
        }
        if let Some(told) = partly(&all) {
            terminal.message(&told);
        }
        let are_deployed = all.iter().all(|row| row.done == Done::Deployed);
        failure.unwrap_or(Ok(u8::from(!are_deployed)))
    })
}

/// Shows the answer for a file, with the errors, or the warnings about what was deployed.
fn show(
    name: &str,
    deployment: &Deployment,
    answer: &Result<Deployed, Problem>,
    terminal: &Terminal,
) -> anyhow::Result<()> {
    let found: &[Finding] = match answer {
        Ok(deployed) => deployed.diagnostics.as_deref().unwrap_or_default(),
        Err(problem) => {
            terminal.message(&format!("{name}: {}", refusal(problem)));
            &problem.more.diagnostics
        }
    };
    if !found.is_empty() {
        let ansi = match terminal.colours() {
            true => Colour::Ansi,
            false => Colour::No,
        };
        terminal.message(&findings_in(name, &deployment.document, found, ansi));
    }
    if let Ok(deployed) = answer
        && terminal.output == Output::Text
    {
        let (id, version) = (clean(&deployed.id), clean(&deployed.version));
        let word = match deployed.outcome {
            Outcome::Unchanged => "is deployed already",
            _ => "is deployed",
        };
        terminal.result(&format!("{name}: {id}:{version} {word}\n"))?;
    }
    Ok(())
}

/// Says of several files which are deployed and which are not, unless all are.
fn partly(all: &[Row]) -> Option<String> {
    let of = |done: Done| {
        let rows = all.iter().filter(|row| row.done == done);
        rows.map(|row| &*row.file).collect::<Vec<_>>()
    };
    let deployed = of(Done::Deployed);
    if all.len() < 2 || deployed.len() == all.len() {
        return None;
    }
    let mut told = format!("{} of {} are deployed", deployed.len(), all.len());
    for (done, words) in [
        (Done::Refused, "refused"),
        (Done::Unknown, "unknown, because the server failed"),
        (Done::NotTried, "not tried"),
    ] {
        let files = of(done);
        if !files.is_empty() {
            told += &format!("\n  {words}: {}", files.join(", "));
        }
    }
    if !of(Done::Unknown).is_empty() {
        told += "\nRun the command again: what is already deployed doesn't change.";
    }
    Some(told)
}

/// The outcome for a file, in JSON.
#[derive(serde::Serialize)]
struct Row {
    file: String,
    done: Done,
    /// The status of the answer, and the answer.
    status: Option<u16>,
    answer: Option<serde_json::Value>,
}

#[derive(Debug, Clone, Copy, PartialEq, serde::Serialize)]
#[serde(rename_all = "kebab-case")]
enum Done {
    Deployed,
    Refused,
    /// The request failed.
    Unknown,
    NotTried,
}

impl Row {
    fn new(file: String, done: Done) -> Row {
        Row {
            file,
            done,
            status: None,
            answer: None,
        }
    }
}

/// The given files, and all definitions in the given folders, each with its folder.
fn definitions(given: &[PathBuf]) -> anyhow::Result<Vec<(PathBuf, Option<PathBuf>)>> {
    let mut files = Vec::new();
    for path in given {
        if !path.is_dir() {
            files.push((path.clone(), None));
            continue;
        }
        let mut found = Vec::new();
        discover::collect(path, &mut found, &is_definition)?;
        if found.is_empty() {
            bail!(
                "{} contains no definition; {}",
                path.display(),
                definitions::WHAT
            );
        }
        let in_folder = |file| (file, Some(path.clone()));
        files.extend(found.into_iter().map(in_folder));
    }
    Ok(files)
}

/// The files that a document refers to, by URI. Files that cannot be found are left to the server, which reports them.
fn files_of(document: &str, file: &Path, given: &[(String, String)]) -> Vec<(String, String)> {
    let folder = file.parent().unwrap_or(Path::new(""));
    let files = OnlyFiles(FileResources::new(folder, Limits::default().bytes_max).anywhere());
    let files = GivenOr::new(given, files);
    let reading = swirl_spec::read(document.as_bytes(), &files, &swirl_spec::Options::default());
    let used = reading.resources_used.iter();
    let mut found: Vec<(String, String)> = used
        .map(|(uri, content)| (uri.clone(), String::from_utf8_lossy(content).into_owned()))
        .collect();
    if let Some(workflow) = &reading.workflow {
        fetch::find(workflow, &files, &mut found);
    }
    found
}

struct OnlyFiles(FileResources);

impl Resources for OnlyFiles {
    fn fetch(&self, uri: &str, base: Option<&str>) -> Result<Vec<u8>, ResourceError> {
        // By default, documents are fetched only from this machine.
        if fetch::is_http(uri)
            && let Ok(http) = HttpResources::new(HttpOptions::default())
            && let Ok(content) = http.get(uri)
        {
            return Ok(content);
        }
        if fetch::is_http(uri) || base.is_some_and(fetch::is_http) {
            return Err(ResourceError::Failed {
                uri: uri.to_owned(),
                reason: "the server fetches it".to_owned(),
            });
        }
        self.0.fetch(uri, base)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn folders_are_expanded_to_their_definitions() {
        let folder = tempfile::tempdir().unwrap();
        let inner = folder.path().join("inner");
        std::fs::create_dir(&inner).unwrap();
        assert!(definitions(&[folder.path().to_owned()]).is_err());
        for name in ["b.sw.yaml", "a.txt"] {
            std::fs::write(inner.join(name), "").unwrap();
        }
        let given = [folder.path().to_owned(), PathBuf::from("x.yaml")];
        let found = definitions(&given).unwrap();
        let in_folder = (inner.join("b.sw.yaml"), Some(folder.path().to_owned()));
        assert_eq!(found, [in_folder, (PathBuf::from("x.yaml"), None)]);
    }

    #[test]
    fn several_files_are_told_apart() {
        let row = |file: &str, done| Row::new(file.to_owned(), done);
        let (a, b) = (row("a", Done::Deployed), row("b", Done::Deployed));
        assert_eq!(partly(&[a, b]), None);
        assert_eq!(partly(&[row("a", Done::Refused)]), None);
        let rows = [
            row("a", Done::Deployed),
            row("b", Done::Refused),
            row("c", Done::Unknown),
            row("d", Done::NotTried),
            row("e", Done::NotTried),
        ];
        assert_eq!(
            partly(&rows).unwrap(),
            "1 of 5 are deployed\n  refused: b\n  unknown, because the server failed: c\n  not tried: d, e\n\
             Run the command again: what is already deployed doesn't change."
        );
    }

    #[test]
    fn referenced_files_are_included() {
        let folder = tempfile::tempdir().unwrap();
        let constants = folder.path().join("constants.json");
        std::fs::write(&constants, "{\"a\": 1}").unwrap();
        let file = folder.path().join("w.sw.yaml");
        let document = "id: w\nversion: '1'\nspecVersion: '0.8'\nname: w\nconstants: constants.json\nstart: a\nstates:\n  - {name: a, type: inject, data: {}, end: true}\n";
        std::fs::write(&file, document).unwrap();
        let found = files_of(document, &file, &[]);
        assert_eq!(
            found,
            [("constants.json".to_owned(), "{\"a\": 1}".to_owned())]
        );
        let web = document.replace("constants.json", "https://example.org/c.json");
        assert_eq!(files_of(&web, &file, &[]), []);
    }
}
