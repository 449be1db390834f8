//! Every document that a definition refers to is fetched only once, on each path by which definitions are read, and with
//! its credentials.
#![allow(clippy::unwrap_used, reason = "a test")]

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use axum::Router;
use axum::extract::State;
use axum::http::{HeaderMap, HeaderValue, StatusCode, Uri};
use serde_json::{Value, json};
use swirl_assembly::System;
use swirl_deployment::{
    Deployer, DocumentReader, Loader, Outcome, RESOURCE_BYTES_MAX, Reader, Source, functions_file,
};
use swirl_embedded::{Embedded, MemoryQueue, SystemClock};
use swirl_functions::Settings;
use swirl_functions::http::HttpConfig;
use swirl_functions::resources::Hosts;
use swirl_model::workflow::FunctionKind;
use swirl_runtime::Registry;
use swirl_service::StartRequest;
use swirl_spec::resource::{FUNCTIONS_URI, FileResources, NAMESPACE_FUNCTIONS_URI};

/// The number of requests for each path.
type Fetches = Arc<Mutex<BTreeMap<String, usize>>>;

/// Two functions and their arguments need the same description, and two parts of that document are in other documents.
async fn answer(State(fetches): State<Fetches>, uri: Uri) -> String {
    let path = uri.path().to_owned();
    let answer = match path.as_str() {
        "/input.json" => json!({"type": "object"}),
        _ => description(),
    };
    *fetches.lock().unwrap().entry(path).or_default() += 1;
    answer.to_string()
}

fn description() -> Value {
    let operation = |id: &str| {
        json!({"get": {"operationId": id, "parameters": [
            {"name": "a", "in": "query", "schema": {"$ref": "#/components/schemas/A"}}],
            "responses": {"200": {"description": "good"}}}})
    };
    json!({"openapi": "3.0.3", "info": {"title": "t", "version": "1"},
        "servers": [{"url": "http://127.0.0.1:1"}],
        "components": {"schemas": {"A": {"type": "string"}}},
        "paths": {"/one": operation("one"), "/two": operation("two")}})
}

struct Rig {
    fetches: Fetches,
    document: String,
    loader: Arc<Loader>,
}

impl Rig {
    async fn new() -> Rig {
        let fetches = Fetches::default();
        let router = Router::new().fallback(answer).with_state(fetches.clone());
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let base = format!("http://{}", listener.local_addr().unwrap());
        tokio::spawn(async move { axum::serve(listener, router).await });
        let document = json!({
            "id": "w", "version": "1", "specVersion": "0.8",
            "functions": [
                {"name": "one", "operation": format!("{base}/api.json#one")},
                {"name": "two", "operation": format!("{base}/api.json#two")}],
            "dataInputSchema": format!("{base}/input.json"),
            "states": [{"name": "A", "type": "operation", "end": true, "actions": [
                {"functionRef": {"refName": "one", "arguments": {"a": "x"}}},
                {"functionRef": {"refName": "two", "arguments": {"a": "y"}}}]}],
        });
        let hosts = Hosts::parse(&[] as &[&str]).unwrap();
        let (http, clock) = (HttpConfig::default(), Arc::new(SystemClock));
        Rig {
            fetches,
            document: document.to_string(),
            loader: Arc::new(Loader::new(hosts, http, Settings::default(), clock).unwrap()),
        }
    }

    fn source(&self) -> Source {
        Source::new("w.sw.json".to_owned(), self.document.clone())
    }

    /// Checks that each document was fetched this often since the last check.
    fn assert_fetched(&self, times: usize, way: &str) {
        let fetches = std::mem::take(&mut *self.fetches.lock().unwrap());
        let wanted = ["/api.json", "/input.json"].map(|path| (path.to_owned(), times));
        let wanted = wanted.into_iter().filter(|(_, times)| *times > 0);
        assert_eq!(fetches, wanted.collect(), "{way}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_deployment_fetches_each_document_once() {
    let rig = Rig::new().await;
    let store = Arc::new(Embedded::memory());
    let registry = Arc::new(Registry::new(store.clone(), rig.loader.lower()));
    let queue = Arc::new(MemoryQueue::default());
    let clock = Arc::new(SystemClock);
    let system = System::new(store.clone(), store.clone(), queue, clock, registry);
    let deployer = Deployer::new(system.service(), store.clone());
    let remote = DocumentReader::remote(rig.loader.clone());
    let trusted = Arc::new(remote.trusted(std::path::Path::new("")));
    let remote: Arc<dyn Reader> = Arc::new(remote);

    let outcome = deployer
        .check(remote.clone(), rig.source())
        .await
        .unwrap()
        .outcome;
    assert!(matches!(outcome, Outcome::New(_)), "{outcome:?}");
    rig.assert_fetched(1, "a check");

    let outcome = deployer.deploy(remote.clone(), rig.source(), false).await;
    let Ok((Outcome::New(id), _)) = outcome else {
        panic!("{outcome:?}")
    };
    rig.assert_fetched(1, "a deployment");

    // The contents may have changed.
    let outcome = deployer.deploy(remote, rig.source(), false).await;
    assert!(
        matches!(outcome, Ok((Outcome::Unchanged(_), _))),
        "{outcome:?}"
    );
    rig.assert_fetched(1, "the same deployment again");

    let outcome = deployer.deploy(trusted, rig.source(), true).await;
    assert!(
        matches!(outcome, Ok((Outcome::Unchanged(_), _))),
        "{outcome:?}"
    );
    rig.assert_fetched(1, "a file of a watched folder");

    // This process has compiled it. Another process reads it from the store.
    let start = StartRequest {
        workflow: "w".to_owned(),
        input: swirl_model::Data::object(),
        ..StartRequest::default()
    };
    system.service().start(start).await.unwrap().unwrap();
    let other = Registry::new(store.clone(), rig.loader.lower());
    other.get(&id).await.unwrap();
    rig.assert_fetched(0, "the definition in use");
}

/// The way in which `swirl run` and `swirl validate` read them.
#[tokio::test(flavor = "multi_thread")]
async fn commands_fetch_each_document_once() {
    let rig = Rig::new().await;
    let (loader, document) = (rig.loader.clone(), rig.document.clone());
    let read = move || {
        let files = FileResources::new("", RESOURCE_BYTES_MAX).anywhere();
        loader
            .read("w", document.as_bytes(), Some(files), &[])
            .unwrap()
            .deployment
    };
    let deployment = tokio::task::spawn_blocking(read).await.unwrap();
    rig.assert_fetched(1, "swirl run");

    let loader = rig.loader.clone();
    let documents = move || {
        let files = FileResources::new("", RESOURCE_BYTES_MAX).anywhere();
        loader.documents(&deployment.workflow, files, &deployment.resources)
    };
    let (found, missing) = tokio::task::spawn_blocking(documents).await.unwrap();
    assert_eq!((found.len(), missing), (1, Vec::new()));
    rig.assert_fetched(0, "documents that are there already");
}

/// A function of a catalog, for whoever knows the password.
async fn guarded(headers: HeaderMap, uri: Uri) -> Result<String, StatusCode> {
    let given = headers.get("authorization").map(HeaderValue::as_bytes);
    match uri.path() {
        "/functions/one/1.0.0/function.yaml" if given == Some(b"Basic bWU6MTIz") => {
            Ok("set: {n: 1}".to_owned())
        }
        _ => Err(StatusCode::UNAUTHORIZED),
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_document_is_fetched_with_its_credentials() {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let base = format!("http://{}", listener.local_addr().unwrap());
    let router = Router::new().fallback(guarded);
    tokio::spawn(async move { axum::serve(listener, router).await });
    let rig = Rig::new().await;
    for (password, expected) in [("123", true), ("no", false)] {
        let document = json!({
            "document": {"dsl": "1.0.3", "namespace": "t", "name": "w", "version": "1.0.0"},
            "use": {"catalogs": {"own": {"endpoint": {"uri": base, "authentication":
                {"basic": {"username": "me", "password": password}}}}}},
            "do": [{"a": {"call": "one:1.0.0@own"}}],
        });
        let loader = rig.loader.clone();
        let read = tokio::task::spawn_blocking(move || {
            let text = document.to_string();
            let loaded = loader.read("w", text.as_bytes(), None, &[]);
            loaded.map(|loaded| loaded.deployment.resources)
        });
        let found = read.await.unwrap();
        let uri = format!("{base}/functions/one/1.0.0/function.yaml");
        match (found, expected) {
            (Ok(found), true) => assert_eq!(found, [(uri, "set: {n: 1}".to_owned())]),
            (Err(_), false) => {}
            (found, _) => panic!("{password}: {found:?}"),
        }
    }
}

/// The setting `functions.given` of a coordinator.
#[tokio::test(flavor = "multi_thread")]
async fn a_namespace_has_functions_for_the_early_editions() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("given.yaml");
    let given = "[{name: double, type: expression, operation: '{n: (.n * 2)}'}]";
    std::fs::write(&file, given).unwrap();
    let hosts = Hosts::parse(&[] as &[&str]).unwrap();
    let (http, clock) = (HttpConfig::default(), Arc::new(SystemClock));
    let mut loader = Loader::new(hosts, http, Settings::default(), clock).unwrap();
    let document = "{id: t, name: t, version: 1.0.0, functions: [{name: double, resource: 'a.yaml#double', type: rest}], \
                    states: [{name: A, type: OPERATION, actionMode: SEQUENTIAL, start: {kind: DEFAULT}, \
                    actions: [{functionRef: {refName: double}}], end: {kind: DEFAULT}}]}";
    loader.given = vec![functions_file(&file, NAMESPACE_FUNCTIONS_URI).unwrap()];
    let deployment = loader
        .read("t", document.as_bytes(), None, &[])
        .unwrap()
        .deployment;
    let function = &deployment.workflow.functions[0];
    assert_eq!(function.kind, FunctionKind::Expression);
    // It is stored with the definition.
    let stored = deployment.resources.iter();
    assert!(
        stored
            .clone()
            .any(|(_, content)| content.contains(".n * 2"))
    );
    // Functions that come with the document count first.
    let own = given.replace("* 2", "* 3");
    let sent = [(FUNCTIONS_URI.to_owned(), own)];
    let deployment = loader
        .read("t", document.as_bytes(), None, &sent)
        .unwrap()
        .deployment;
    assert_eq!(deployment.workflow.functions[0].operation, "{n: (.n * 3)}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_document_that_is_not_there_is_asked_once_in_a_deployment() {
    let fetches = Fetches::default();
    let seen = fetches.clone();
    let missing = move |uri: Uri| {
        let mut fetches = seen.lock().unwrap();
        *fetches.entry(uri.path().to_owned()).or_default() += 1;
        std::future::ready(StatusCode::NOT_FOUND)
    };
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let base = format!("http://{}", listener.local_addr().unwrap());
    tokio::spawn(async move { axum::serve(listener, Router::new().fallback(missing)).await });
    let rig = Rig::new().await;
    let uri = format!("{base}/f.yaml");
    let document = json!({
        "document": {"dsl": "1.0.3", "namespace": "t", "name": "w", "version": "1.0.0"},
        "do": [{"a": {"call": uri}}, {"b": {"call": uri}}],
    });
    for expected in [1, 2] {
        let (loader, text) = (rig.loader.clone(), document.to_string());
        let read = move || loader.read("w", text.as_bytes(), None, &[]).map(drop);
        let refused = tokio::task::spawn_blocking(read).await.unwrap();
        assert!(refused.is_err());
        let fetches = fetches.lock().unwrap().clone();
        assert_eq!(fetches, BTreeMap::from([("/f.yaml".to_owned(), expected)]));
    }
}
