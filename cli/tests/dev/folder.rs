//! Definitions follow the changes of files in the folder.

use std::path::Path;

use serde_json::{Value, json};

use crate::dev::http::JSON;
use crate::dev::process::{Dev, command};

fn write(folder: &Path, name: &str, state: &str) {
    let document = format!(
        "id: {name}\nversion: '1'\nspecVersion: '0.8'\nstates:\n  \
         - {{name: {state}, type: sleep, duration: PT1H, end: true}}\n"
    );
    std::fs::write(folder.join(format!("{name}.sw.yaml")), document).unwrap();
}

async fn started(dev: &Dev, workflow: &str) -> Value {
    let path = format!("/api/v1/workflows/{workflow}/instances");
    let id = dev.post(&path, &[JSON], "{}").await.is(201)["id"].clone();
    let path = format!("/api/v1/instances/{}", id.as_str().unwrap());
    dev.until(&path, "asleep", |instance| {
        instance["scopes"][0]["state"].is_string()
    })
    .await
}

#[tokio::test(flavor = "multi_thread")]
async fn definitions_follow_replaced_and_removed_files() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path();
    for name in ["one", "two", "three"] {
        write(path, name, "First");
    }
    let dev = Dev::start(path).await;

    // It has no instances, so it is replaced.
    write(path, "one", "Changed");
    dev.said("one:1 is deployed and replaces its previous content")
        .await;
    let instance = started(&dev, "one").await;
    assert_eq!(instance["scopes"][0]["state"], "Changed", "{instance:#}");

    // It has an instance, so the previous content stays until that has ended.
    let old = started(&dev, "two").await;
    write(path, "two", "Changed");
    dev.said("1 instances of two:1 run or have failed").await;
    let other = started(&dev, "two").await;
    assert_eq!(other["scopes"][0]["state"], "First", "{other:#}");
    for instance in [&old, &other] {
        let cancel = format!(
            "/api/v1/instances/{}/cancel",
            instance["id"].as_str().unwrap()
        );
        dev.post(&cancel, &[JSON], "").await.is(202);
    }
    dev.said("two:1 is deployed and replaces its previous content")
        .await;
    let new = started(&dev, "two").await;
    assert_eq!(new["scopes"][0]["state"], "Changed", "{new:#}");

    // The definition of a removed file starts no more instances.
    std::fs::remove_file(path.join("two.sw.yaml")).unwrap();
    dev.said("two:1 starts no new instances; 1 instances continue to their end")
        .await;
    let start = "/api/v1/workflows/two/instances";
    dev.post(start, &[JSON], "{}")
        .await
        .refused(404, "unknown-workflow");
    dev.kill();

    // The same if it was removed while no process watched.
    std::fs::remove_file(path.join("three.sw.yaml")).unwrap();
    let dev = Dev::of(command(path)).await;
    let listed = dev.get("/api/v1/definitions").await.is(200);
    let all = listed["definitions"].as_array().unwrap();
    let names: Vec<&Value> = all.iter().map(|row| &row["id"]).collect();
    assert_eq!(names, [&json!("one")], "{listed:#}");
    // It is active again with its file.
    write(path, "three", "First");
    dev.said("three:1 is deployed").await;
    started(&dev, "three").await;
}
