//! The list of instances: ticked instances, and saved views.

use anyhow::{Result, ensure};
use serde_json::json;

use crate::browser::short;
use crate::definitions::{APPROVAL, ORDER};
use crate::server::Dev;
use crate::stage::Stage;

async fn approvals(dev: &Dev, count: usize) -> Result<Vec<String>> {
    let mut ids = Vec::new();
    for number in 1..=count {
        let order = json!({"order": format!("a-{number}")});
        ids.push(dev.api.start("approval", &order).await?);
    }
    for id in &ids {
        dev.api.waiting(id).await?;
    }
    Ok(ids)
}

/// With and without scripts.
pub async fn tick(stage: Stage) -> Result<()> {
    let dev = stage.dev(&[APPROVAL]).await?;
    let ids = approvals(&dev, 4).await?;
    let browser = &stage.browser;
    browser.open("/instances").await?;
    for id in &ids[..2] {
        browser.tick(&format!("Tick {}", short(id))).await?;
    }
    browser.press("Act on the ticked ones…").await?;
    browser.choose("What to do", "Cancel").await?;
    browser
        .fill("Reason, for the histories", "ordered twice")
        .await?;
    browser.press("Show what it would act on").await?;
    browser
        .shows(&[
            "Cancel: 2 instances",
            "Nothing has been done yet",
            &short(&ids[0]),
            &short(&ids[1]),
        ])
        .await?;
    browser.lacks(&short(&ids[2])).await?;
    browser.press("Cancel").await?;
    let there = |found: &serde_json::Value| found["status"] == "cancelled";
    for id in &ids[..2] {
        dev.api.instance(id, "cancelled", there).await?;
    }
    let address = browser.address().await?;
    browser.go(&address).await?;
    browser
        .shows(&["2 of 2 instances processed", "ordered twice"])
        .await?;
    for id in &ids[2..] {
        let found = dev.api.waiting(id).await?;
        ensure!(found["status"] == "running", "{found:#}");
    }
    Ok(())
}

/// The page looks for news every three seconds, and would lose what is ticked.
pub async fn stay_ticked(stage: Stage) -> Result<()> {
    let dev = stage.dev(&[APPROVAL]).await?;
    let ids = approvals(&dev, 1).await?;
    let browser = &stage.browser;
    browser.open("/instances").await?;
    browser.tick(&format!("Tick {}", short(&ids[0]))).await?;
    // The focus alone would keep the page as it is.
    browser.run("document.activeElement.blur()").await?;
    let late = approvals(&dev, 1).await?;
    let looked = "const { promise, resolve } = Promise.withResolvers();
        setTimeout(() => resolve(document.querySelectorAll('.tick [name=instance]:checked').length), 4000);
        return promise";
    ensure!(browser.run(looked).await? == 1, "the tick is lost");
    browser.lacks(&short(&late[0])).await?;
    browser.tick(&format!("Tick {}", short(&ids[0]))).await?;
    browser.run("document.activeElement.blur()").await?;
    browser.shows(&[&short(&late[0])]).await
}

pub async fn views(stage: Stage) -> Result<()> {
    let dev = stage.dev(&[APPROVAL]).await?;
    approvals(&dev, 1).await?;
    let browser = &stage.browser;
    browser.open("/instances").await?;
    browser
        .fill("Query", "workflow = approval and started > -1h")
        .await?;
    browser.press("Show").await?;
    browser.press("Save this view…").await?;
    browser.fill("Name of the view", "New approvals").await?;
    browser.press("Save the view").await?;
    browser
        .shows(&["The view is saved", "Saved views New approvals"])
        .await?;
    browser.open("/instances").await?;
    ensure!(browser.filled("Query").await?.is_empty());
    browser.press("New approvals").await?;
    browser.shows(&["◷ waiting"]).await?;
    let query = browser.filled("Query").await?;
    ensure!(query == "workflow = approval and started > -1h", "{query}");
    browser.picture("console-views.png", 460).await?;
    ensure!(
        browser.has(".views a[aria-current]").await?,
        "the view isn't marked"
    );
    browser.press("Remove a view…").await?;
    browser.choose("View to remove", "New approvals").await?;
    browser.press("Remove the view").await?;
    browser.shows(&["The view is removed."]).await?;
    browser.lacks("New approvals").await?;
    let left = dev.api.get("/views").await?;
    ensure!(left["views"] == json!([]), "{left:#}");
    Ok(())
}

/// Sorts, hides, chooses columns, ticks all: the same with any list.
pub async fn columns(stage: Stage) -> Result<()> {
    let dev = stage.dev(&[ORDER, APPROVAL]).await?;
    for (order, amount) in [("o-1", 20), ("o-2", 250_000), ("o-3", 3)] {
        let input = json!({"order": order, "amount": amount});
        let id = dev.api.start("order", &input).await?;
        match amount {
            250_000 => dev.api.faulted(&id).await?,
            _ => dev.api.completed(&id).await?,
        };
    }
    let waits = dev.api.start("approval", &json!({"order": "a-1"})).await?;
    dev.api.waiting(&waits).await?;
    let browser = &stage.browser;
    browser.open("/instances?workflow=approval").await?;
    browser
        .shows(&["◷ waiting", "Await approval", "approved (order a-1)"])
        .await?;
    browser.open("/instances?workflow=order").await?;
    let order = async || {
        let names = browser
            .run("return [...document.querySelectorAll('td.name')].map((one) => one.textContent.trim()).join(' ')")
            .await?;
        anyhow::Ok(names.as_str().unwrap_or_default().to_owned())
    };
    ensure!(order().await? == "o-3 o-2 o-1", "{}", order().await?);
    browser.press("amount").await?;
    ensure!(order().await? == "o-3 o-1 o-2", "{}", order().await?);
    browser.press("amount").await?;
    ensure!(order().await? == "o-2 o-1 o-3", "{}", order().await?);
    ensure!(browser.has("th[aria-sort=descending]").await?);
    browser.press("Columns…").await?;
    browser
        .run("for (const one of document.querySelectorAll('fieldset input')) one.checked = ['id', 'status'].includes(one.value)")
        .await?;
    browser.press("Show these columns").await?;
    browser.shows(&["Id", "Status"]).await?;
    browser.lacks("Duration").await?;
    // This browser keeps them.
    browser.open("/instances?status=faulted").await?;
    browser.shows(&["o-2"]).await?;
    browser.lacks("Duration").await?;
    browser.press("Columns…").await?;
    browser.press("Back to the default").await?;
    browser.shows(&["Duration"]).await?;
    browser.open("/instances").await?;
    browser.tick("Tick all on this page").await?;
    let count = browser
        .run("return document.querySelectorAll('td.tick input[name=instance]:checked').length")
        .await?;
    ensure!(count == 4, "{count} are ticked");
    browser.choose("Started", "last 15 minutes").await?;
    browser.choose("Workflow", "order").await?;
    browser.press("Show").await?;
    browser.shows(&["o-1", "o-3"]).await?;
    browser.lacks("a-1").await?;
    browser.picture("console-list.png", 420).await
}
