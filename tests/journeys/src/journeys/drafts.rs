//! Definitions while they are written: their picture, and several files.

use std::path::{Path, PathBuf};

use anyhow::{Result, ensure};

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
