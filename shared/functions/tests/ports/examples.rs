//! The demo service provides everything that the examples call.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use swirl_functions::Caller;
use swirl_functions::Settings;
use swirl_functions::http::{Http, HttpConfig};
use swirl_functions::types::custom::Connectors;
use swirl_model::ids::DefinitionId;
use swirl_spec::resource::MapResources;

fn definitions() -> Vec<PathBuf> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples");
    let folders = std::fs::read_dir(root)
        .unwrap()
        .map(|entry| entry.unwrap().path());
    let files = folders.filter(|path| path.is_dir()).flat_map(|folder| {
        let files = std::fs::read_dir(folder).unwrap();
        files.map(|entry| entry.unwrap().path()).collect::<Vec<_>>()
    });
    let mut found: Vec<_> = files
        .filter(|path| path.to_string_lossy().ends_with(".sw.yaml"))
        .collect();
    found.sort();
    found
}

#[test]
fn all_functions_of_all_examples_can_be_called() {
    const URI: &str = "http://127.0.0.1:8090/openapi.json";
    let resources = [(URI.to_owned(), swirl_demo_service::openapi().to_string())];
    let settings = Settings {
        connectors: Connectors::parse(&["price=nats://127.0.0.1:4222/functions.price"]).unwrap(),
        ..Settings::default()
    };
    let caller = Caller::with_settings(Http::new(HttpConfig::default()).unwrap(), settings);
    let mut called = BTreeSet::new();
    let all = definitions();
    for path in &all {
        // Its functions are in a file beside it; scenarios run it with them.
        if path.with_file_name("functions.yaml").exists() {
            continue;
        }
        let text = std::fs::read(path).unwrap();
        let reading = swirl_spec::read(&text, &MapResources::default(), &Default::default());
        let Some(workflow) = reading.workflow else {
            panic!("{}: {:#?}", path.display(), reading.diagnostics);
        };
        // Examples of other editions may use function types that a user adds.
        if workflow.edition != "0.8" {
            let mut codes = reading
                .diagnostics
                .iter()
                .map(|finding| finding.code.as_str());
            assert!(
                codes.all(|code| code == "function-type-unknown"),
                "{}: {:#?}",
                path.display(),
                reading.diagnostics
            );
            continue;
        }
        let mut findings = reading.diagnostics.iter();
        assert!(
            findings.all(|finding| finding.code.as_str() == "function-type-unknown"),
            "{}: {:#?}",
            path.display(),
            reading.diagnostics
        );
        for needed in Caller::needs(&workflow) {
            assert_eq!(needed.uri, URI, "{}", path.display());
        }
        let id = DefinitionId {
            workflow: workflow.id.as_str().into(),
            version: "1.0.0".into(),
        };
        let prepared = caller.prepare(&id, &workflow, &resources);
        assert_eq!(prepared, Ok(()), "{}", path.display());
        called.extend(
            workflow
                .functions
                .iter()
                .map(|function| function.operation.clone()),
        );
    }
    assert!(
        all.len() >= 10 && called.contains(&format!("{URI}#chargeOrder")),
        "{all:?}"
    );
}
