//! Definitions while they are written: their picture.

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
