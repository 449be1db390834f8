//! Definitions while they are written: their picture, several files, and trying them out.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, ensure};

use crate::definitions::greeting;
use crate::stage::Stage;
use crate::wait::until;

const LABEL: &str = "Document, in YAML or JSON";

/// The texts in the picture beside the editor.
const PICTURED: &str = "return document.querySelector('#pictured svg')?.textContent ?? ''";

async fn pictured(stage: &Stage, wanted: &str) -> Result<()> {
    until("the picture", async || {
        let there = stage.browser.run(PICTURED).await?;
        let there = there.as_str().unwrap_or_default();
        Ok(match there.contains(wanted) {
            true => Ok(()),
            false => Err(there.to_owned()),
        })
    })
    .await
}

/// The picture follows the text, and stays while that has errors.
pub async fn draw(stage: Stage) -> Result<()> {
    let _dev = stage.dev(&[]).await?;
    let browser = &stage.browser;
    browser.open("/deploy").await?;
    browser.shows(&["There is no picture yet"]).await?;
    let good = greeting("1.0.0", "Hello");
    browser.fill(LABEL, &good).await?;
    browser
        .shows(&["✓ It can be deployed as greeting 1.0.0."])
        .await?;
    pictured(&stage, "Greet").await?;
    browser.lacks("Out of date").await?;
    let wrong = good.replace("end: true", "transition: Nowhere");
    browser.fill(LABEL, &wrong).await?;
    browser
        .shows(&["✕ 1 finding.", "Out of date", "the last picture"])
        .await?;
    pictured(&stage, "Greet").await?;
    browser.picture("console-writing.png", 760).await?;
    browser
        .fill(LABEL, &good.replace("name: Greet,", "name: Welcome,"))
        .await?;
    pictured(&stage, "Welcome").await?;
    browser.lacks("Out of date").await?;
    browser.press("Check and deploy").await?;
    browser.shows(&["The definition is deployed."]).await?;
    // Another content under this version is a conflict, and can be drawn nevertheless.
    browser.open("/deploy").await?;
    browser.fill(LABEL, &good).await?;
    browser.shows(&["raise the version"]).await?;
    pictured(&stage, "Greet").await?;
    // On a phone it is below the editor.
    browser.resize(375, 780).await?;
    let below = browser
        .run(
            "const top = (one) => document.querySelector(one).getBoundingClientRect().top;
             return top('#pictured') > top('.cm-editor')",
        )
        .await?;
    ensure!(below == true, "the picture isn't below the editor");
    browser.check().await
}

pub async fn draw_by_button(stage: Stage) -> Result<()> {
    let _dev = stage.dev(&[]).await?;
    let browser = &stage.browser;
    browser.open("/deploy").await?;
    browser.fill(LABEL, &greeting("1.0.0", "Hello")).await?;
    browser.press("Check and show the picture").await?;
    browser
        .shows(&["✓ It can be deployed as greeting 1.0.0."])
        .await?;
    ensure!(
        browser.has("#pictured svg.chart").await?,
        "there is no picture"
    );
    let kept = browser.filled(LABEL).await?;
    ensure!(kept.contains("greeting"), "the draft is lost: {kept}");
    browser.press("Check and deploy").await?;
    browser.shows(&["The definition is deployed."]).await
}

fn written(folder: &Path, name: &str, text: &str) -> Result<PathBuf> {
    let path = folder.join(name);
    std::fs::write(&path, text)?;
    Ok(path)
}

/// Two definitions, of which one is wrong at first, with a file.
pub async fn files(stage: Stage) -> Result<()> {
    let dev = stage.dev(&[]).await?;
    let browser = &stage.browser;
    let folder = tempfile::tempdir()?;
    let with_texts =
        greeting("1.0.0", "Hello").replace("states:", "constants: texts.json\nstates:");
    let other = greeting("1.0.0", "Hi").replace("greeting", "other");
    let wrong = other.replace("end: true", "transition: Nowhere");
    let write = |name: &str, text: &str| written(folder.path(), name, text);
    let all = [
        write("greeting.sw.yaml", &with_texts)?,
        write("other.sw.yaml", &wrong)?,
        write("texts.json", "{\"hello\": \"Good day\"}")?,
        write("notes.txt", "nothing")?,
        write("greeting.scenario.yaml", "workflows: [greeting.sw.yaml]")?,
    ];
    browser.open("/deploy").await?;
    browser.press("Several files or a folder…").await?;
    let list = async || {
        browser.choose_files("Files", &all).await?;
        match browser.has_scripts() {
            true => Ok(()),
            false => browser.press("Show what is in them").await,
        }
    };
    list().await?;
    browser
        .shows(&[
            "✕ 1 of 2 definitions cannot be deployed.",
            "unknown-state",
            "File of greeting 1.0.0",
            "Other file",
            "Scenario, for “swirl test”",
        ])
        .await?;
    browser.lacks("Deploy all").await?;
    written(folder.path(), "other.sw.yaml", &other)?;
    list().await?;
    browser
        .shows(&["✓ All 2 definitions can be deployed."])
        .await?;
    browser.picture("console-files.png", 760).await?;
    browser
        .fill("Reason, for the audit log", "both at once")
        .await?;
    browser.press("Deploy all 2 definitions").await?;
    browser
        .shows(&["The definitions are deployed.", "greeting", "other"])
        .await?;
    let found = dev.api.get("/definitions/greeting").await?;
    ensure!(found["resources"][0] == "texts.json", "{found:#}");
    let log = dev.api.get("/audit").await?;
    ensure!(log["entries"][1]["reason"] == "both at once", "{log}");
    Ok(())
}

/// Files are dropped on the page.
pub async fn drop(stage: Stage) -> Result<()> {
    let _dev = stage.dev(&[]).await?;
    let browser = &stage.browser;
    browser.open("/deploy/files").await?;
    browser.shows(&["Or drop files or a folder here."]).await?;
    let text = serde_json::Value::from(greeting("1.0.0", "Hello"));
    let script = format!(
        "const dataTransfer = new DataTransfer();
         dataTransfer.items.add(new File([{text}], 'greeting.sw.yaml'));
         const options = {{ dataTransfer, bubbles: true, cancelable: true }};
         document.getElementById('drop').dispatchEvent(new DragEvent('drop', options));"
    );
    browser.run(&script).await?;
    browser
        .shows(&[
            "✓ The definition can be deployed.",
            "Definition greeting 1.0.0",
        ])
        .await?;
    browser.press("Deploy the definition").await?;
    browser.shows(&["The definitions are deployed."]).await
}

/// Calls a function, then waits for an event.
const ORDER: &str = "id: order
version: 1.0.0
specVersion: '0.8'
functions: [{name: charge, operation: 'http://bank.example/charge.json#charge'}]
events: [{name: Paid, type: paid, source: /bank}]
states:
  - name: Charge
    type: operation
    actions: [{functionRef: {refName: charge, arguments: {sum: '${ .sum }'}}}]
    transition: Wait
  - name: Wait
    type: event
    onEvents: [{eventRefs: [Paid], actions: []}]
    end: true
";

const MOCKS: &str = "functions: {charge: {return: {receipt: '${ .sum }'}}}
events: [{at: P1D, event: {type: paid, source: /bank, data: {paid: true}}}]
";

const CIRCLE: &str = "id: circle
version: 1.0.0
specVersion: '0.8'
states:
  - {name: A, type: inject, data: {}, transition: B}
  - {name: B, type: inject, data: {}, transition: A}
";

/// From a draft to a scenario that passes.
pub async fn rehearse(stage: Stage) -> Result<()> {
    let dev = stage.dev(&[]).await?;
    let browser = &stage.browser;
    browser.open("/deploy").await?;
    browser.fill(LABEL, ORDER).await?;
    browser.press("Try it").await?;
    browser.fill("Input, as JSON", "{\"sum\": ").await?;
    browser.press_refused("Run it", 400).await?;
    browser.shows(&["the input is not valid JSON"]).await?;
    browser.fill("Input, as JSON", "{\"sum\": 7}").await?;
    browser.press("Run it").await?;
    browser
        .shows(&[
            "✕ the function 'charge' was called",
            "A beginning for the mocks",
        ])
        .await?;
    let begun = browser.filled("Mocks").await?;
    ensure!(begun.contains("charge:"), "no beginning: {begun}");
    browser.fill("Mocks", MOCKS).await?;
    browser.press("Run it").await?;
    browser
        .shows(&[
            "✓ order 1.0.0 completed after P1D of virtual time.",
            "receipt",
            "Calls (1)",
            "History",
        ])
        .await?;
    browser
        .picture_of("console-rehearsal.png", "#tried")
        .await?;
    ensure!(
        browser.has("#tried svg.chart").await?,
        "there is no picture of the path"
    );
    let listed = dev.api.get("/definitions").await?;
    ensure!(listed["definitions"] == serde_json::json!([]), "{listed}");
    if browser.has_scripts() {
        let text = browser
            .run("return document.querySelector('#tried [name=scenario]').value")
            .await?;
        passes(&stage, text.as_str().unwrap_or_default())?;
    }

    // One that never ends.
    browser.open("/deploy").await?;
    browser.fill(LABEL, CIRCLE).await?;
    browser.press("Try it").await?;
    browser.press("Run it").await?;
    browser.shows(&["✕", "without ever waiting"]).await?;
    browser.lacks("Save as a scenario file").await
}

/// `swirl test` passes.
fn passes(stage: &Stage, text: &str) -> Result<()> {
    let folder = tempfile::tempdir()?;
    let file = written(folder.path(), "order.scenario.yaml", text)?;
    let output = Command::new(stage.swirl()).arg("test").arg(&file).output();
    let output = output.context("swirl test")?;
    let said = String::from_utf8_lossy(&output.stdout);
    ensure!(output.status.success(), "{said}\n{text}");
    Ok(())
}

/// A deployed definition.
pub async fn rehearse_deployed(stage: Stage) -> Result<()> {
    let document = greeting("1.0.0", "Hello");
    let dev = stage.dev(&[&document]).await?;
    let browser = &stage.browser;
    browser.open("/definitions/greeting/1.0.0").await?;
    browser.press("Run it").await?;
    browser
        .shows(&["✓ greeting 1.0.0 completed", "Save as a scenario file"])
        .await?;
    let found = dev.api.get("/instances").await?;
    ensure!(found["instances"] == serde_json::json!([]), "{found}");
    Ok(())
}
