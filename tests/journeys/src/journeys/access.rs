//! Journeys that need a cluster: tokens, workers, NATS.

use anyhow::{Context, Result, ensure};
use serde_json::json;

use crate::browser::{Browser, short};
use crate::definitions::{APPROVAL, DELIVERY};
use crate::stage::Stage;
use crate::wait::until;

pub async fn enter(browser: &Browser, token: &str) -> Result<()> {
    browser.fill("Token", token).await?;
    browser.press("Sign in").await
}

pub async fn sign_in(stage: Stage) -> Result<()> {
    let cluster = stage.cluster().await?;
    let browser = &stage.browser;
    browser.open("/instances?status=faulted").await?;
    browser
        .shows(&["Sign in to Swirl", "Enter your token"])
        .await?;
    browser.fill("Token", "made-up").await?;
    browser.press_refused("Sign in", 403).await?;
    browser.shows(&["You are not signed in"]).await?;

    enter(browser, &cluster.viewer).await?;
    crate::wait::until("the page that was wanted", async || {
        let address = browser.address().await?;
        let is_wanted = address.ends_with("/console/instances?status=faulted");
        Ok(if is_wanted { Ok(()) } else { Err(address) })
    })
    .await?;
    browser.open("/definitions").await?;
    browser.shows(&["Definitions"]).await?;
    browser.lacks("Deploy a definition").await?;
    ensure!(
        !browser
            .has("form[action$=pause], a[href='/console/deploy']")
            .await?,
        "a viewer is offered an action"
    );

    browser.press("Sign out").await?;
    browser.shows(&["Sign in to Swirl"]).await?;
    browser.open("/definitions").await?;
    browser.shows(&["Sign in to Swirl"]).await?;
    let admin = cluster.api.token.as_deref().context("no token")?;
    enter(browser, admin).await?;
    browser.shows(&["Deploy a definition"]).await
}

pub async fn sign_in_at_provider(stage: Stage) -> Result<()> {
    let cluster = stage.cluster().await?;
    let browser = &stage.browser;
    browser.open("/definitions").await?;
    browser.press("Sign in with localhost").await?;
    browser.shows(&["The provider"]).await?;
    browser.press("Continue as Ada").await?;
    until("the page that was wanted", async || {
        let address = browser.address().await?;
        let is_wanted = address.ends_with("/console/definitions");
        Ok(if is_wanted { Ok(()) } else { Err(address) })
    })
    .await?;
    browser.shows(&["Definitions"]).await?;
    let who = browser
        .run("return document.querySelector('.who b').textContent")
        .await?;
    ensure!(who == "ada", "signed in as {who}");
    let before = cluster.login.sign_outs();
    browser.press("Sign out").await?;
    browser.shows(&["Sign in to Swirl"]).await?;
    ensure!(
        cluster.login.sign_outs() == before + 1,
        "she is still signed in at the provider"
    );
    browser.open("/definitions").await?;
    browser.shows(&["Sign in to Swirl"]).await
}

pub async fn watch(stage: Stage) -> Result<()> {
    let cluster = stage.cluster().await?;
    cluster.api.deploy(&stage.document(DELIVERY)).await?;
    let browser = &stage.browser;
    browser.open("/start/delivery/1.0.0").await?;
    enter(browser, cluster.api.token.as_deref().context("no token")?).await?;
    let input = json!({"order": "o-417", "item": "book", "quantity": 2});
    browser
        .fill("Input, a JSON object", &input.to_string())
        .await?;
    browser.press("Start with this input").await?;
    browser
        .shows(&["It waits for the event “paid” in the state “Await payment”."])
        .await?;
    // It would be gone if the page were loaded again.
    browser.run("window.mark = 'same page'").await?;
    let event = |name: &str, source: &str| {
        json!({
            "specversion": "1.0", "id": format!("watch-{name}"), "type": format!("org.example.{name}"),
            "source": source, "order": "o-417", "data": {name: true},
        })
    };
    cluster.api.send(&event("paid", "/bank")).await?;
    browser
        .shows(&[
            "It waits for the event “delivered” in the state “Await delivery”.",
            "tracking",
        ])
        .await?;
    browser.picture("console-instance.png", 975).await?;
    cluster.api.send(&event("delivered", "/carrier")).await?;
    browser.shows(&["✓ completed", "Output"]).await?;
    let mark = browser.run("return window.mark").await?;
    ensure!(mark == "same page", "the page was loaded again: {mark}");
    Ok(())
}

pub async fn audit(stage: Stage) -> Result<()> {
    let cluster = stage.cluster().await?;
    cluster.api.deploy(&stage.document(APPROVAL)).await?;
    let order = json!({"order": "a-audit"});
    let id = cluster.api.start("approval", &order).await?;
    cluster.api.waiting(&id).await?;
    let browser = &stage.browser;
    browser.open(&format!("/instances/{id}")).await?;
    enter(browser, cluster.api.token.as_deref().context("no token")?).await?;
    browser.press("Cancel…").await?;
    browser
        .fill("Reason, for the history", "it was ordered twice")
        .await?;
    browser.press("Cancel the instance").await?;
    browser.shows(&["The instance is being cancelled."]).await?;
    browser.press("Audit").await?;
    browser
        .shows(&[
            "admin",
            "cancelled it",
            "it was ordered twice",
            "approval 1.0.0",
        ])
        .await?;
    browser.choose("Action", "deployed a version").await?;
    browser.press("Show").await?;
    browser.shows(&["approval 1.0.0"]).await?;
    browser.lacks("it was ordered twice").await?;
    browser.press("Show all").await?;
    browser.fill("Id", &id).await?;
    browser.press("Show").await?;
    browser.picture("console-audit.png", 560).await?;
    browser.press(&short(&id)).await?;
    browser
        .shows(&[&id, "because: it was ordered twice"])
        .await?;

    browser.press("Sign out").await?;
    browser.open("/instances").await?;
    enter(browser, &cluster.viewer).await?;
    browser.shows(&["Instances"]).await?;
    ensure!(
        !browser.has("a[href='/console/audit'], .tick").await?,
        "a viewer is offered the audit log or an action"
    );
    Ok(())
}

pub async fn dead_letter(stage: Stage) -> Result<()> {
    let cluster = stage.cluster().await?;
    let nats = async_nats::connect(&cluster.nats).await?;
    // The event has no id.
    let event = json!({"specversion": "1.0", "source": "/bank", "type": "org.example.paid"});
    nats.publish("swirl.events.bank", event.to_string().into())
        .await?;
    nats.flush().await?;
    let letter = async || {
        until("a dead letter", async || {
            let found = cluster.api.get("/dead-letters").await?;
            let number = found["deadLetters"][0]["sequence"].to_string();
            Ok(match number.as_str() {
                "null" => Err(found.to_string()),
                _ => Ok(number),
            })
        })
        .await
    };
    let number = letter().await?;
    let browser = &stage.browser;
    browser.open("/events").await?;
    enter(browser, cluster.api.token.as_deref().context("no token")?).await?;
    browser.shows(&["Dead letters", "org.example.paid"]).await?;
    browser.press(&format!("{number}, show it")).await?;
    browser
        .shows(&["not a CloudEvent", "swirl.events.bank", "/bank"])
        .await?;
    // It still has none, so it becomes a dead letter again, with another number.
    browser.press("Send again as it is…").await?;
    browser
        .fill_in(
            "//details[@open]",
            "Reason, for the audit log",
            "perhaps it has an id now",
        )
        .await?;
    browser.press("Send it again").await?;
    browser.shows(&["The message was sent again."]).await?;
    let next = until("another number", async || {
        let next = letter().await?;
        Ok(if next == number { Err(next) } else { Ok(next) })
    });
    let next = next.await?;
    browser.open(&format!("/dead-letters/{next}")).await?;
    let label = "Message";
    let wrong = browser.filled(label).await?;
    anyhow::ensure!(
        wrong.contains("org.example.paid"),
        "not the message: {wrong}"
    );
    browser
        .press_refused("Send the corrected message", 400)
        .await?;
    browser
        .shows(&["It was not sent: the attribute 'id' is missing"])
        .await?;
    let kept = browser.filled(label).await?;
    anyhow::ensure!(kept == wrong, "the correction is lost: {kept}");
    let corrected =
        json!({"specversion": "1.0", "id": "b-1", "source": "/bank", "type": "org.example.paid"});
    browser.fill(label, &corrected.to_string()).await?;
    browser
        .fill("Reason, for the audit log", "the id was missing")
        .await?;
    browser.press("Send the corrected message").await?;
    browser
        .shows(&["The message was sent again.", "There are no dead letters"])
        .await?;
    until("the corrected event", async || {
        let found = cluster.api.get("/events").await?;
        let mut events = found["events"].as_array().into_iter().flatten();
        let is_there = events.any(|event| event["id"] == "b-1");
        Ok(if is_there {
            Ok(())
        } else {
            Err(found.to_string())
        })
    })
    .await?;
    nats.publish("swirl.events.bank", event.to_string().into())
        .await?;
    nats.flush().await?;
    let third = letter().await?;
    browser.open(&format!("/dead-letters/{third}")).await?;
    browser.press("Drop…").await?;
    browser
        .fill_in(
            "//details[@open]",
            "Reason, for the audit log",
            "the bank sends it anew",
        )
        .await?;
    browser.press("Drop the message").await?;
    browser
        .shows(&["The message was dropped.", "There are no dead letters"])
        .await?;
    browser.press("Audit").await?;
    browser
        .shows(&[
            "sent a dead letter again",
            "perhaps it has an id now",
            "the id was missing",
            "dropped a dead letter",
            "the bank sends it anew",
        ])
        .await
}
