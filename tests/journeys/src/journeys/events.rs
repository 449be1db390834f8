//! Events: sent, and explained.

use anyhow::{Result, ensure};
use serde_json::json;

use crate::browser::short;
use crate::definitions::APPROVAL;
use crate::stage::Stage;

fn approved(order: &str) -> String {
    let event = json!({
        "specversion": "1.0", "id": format!("e-{order}"), "source": "/desk", "type": "org.example.approved",
        "order": order, "data": {"by": "Ada"},
    });
    format!("{event:#}")
}

/// Three presses from the overview.
pub async fn send(stage: Stage) -> Result<()> {
    let dev = stage.dev(&[APPROVAL]).await?;
    let id = dev.api.start("approval", &json!({"order": "a-1"})).await?;
    dev.api.waiting(&id).await?;
    let browser = &stage.browser;
    browser.open("/").await?;
    browser.press(&short(&id)).await?;
    browser
        .shows(&[
            "It waits for the event “approved”",
            "org.example.approved",
            "with order = a-1",
        ])
        .await?;
    browser.press("Send this event… approved").await?;
    let draft = browser.filled("A CloudEvent, as JSON").await?;
    for part in [
        "\"type\": \"org.example.approved\"",
        "\"source\": \"/desk\"",
        "\"order\": \"a-1\"",
    ] {
        ensure!(draft.contains(part), "{part} is not in {draft}");
    }
    browser.press("Send").await?;
    browser
        .shows(&["The event was sent.", "It reached"])
        .await?;
    browser
        .press_in("//section[@role='status']", &short(&id))
        .await?;
    browser.shows(&["✓ completed"]).await?;
    browser.lacks("Send this event…").await
}

pub async fn explain(stage: Stage) -> Result<()> {
    let dev = stage.dev(&[APPROVAL]).await?;
    for order in ["a-1", "a-2"] {
        let id = dev.api.start("approval", &json!({"order": order})).await?;
        dev.api.waiting(&id).await?;
    }
    let browser = &stage.browser;
    browser.open("/events").await?;
    browser
        .fill("A CloudEvent, as JSON", &approved("a-3"))
        .await?;
    browser.press("Explain").await?;
    browser
        .shows(&[
            "Nothing would receive it.",
            "Not received by, and why",
            "a-1",
            "a-2",
        ])
        .await?;
    browser.picture("console-explain.png", 760).await?;
    // The text is still there to be corrected, and nothing was sent.
    let draft = browser.filled("A CloudEvent, as JSON").await?;
    browser
        .fill("A CloudEvent, as JSON", &draft.replace("a-3", "a-2"))
        .await?;
    browser.press("Explain").await?;
    browser
        .shows(&["waits for it in Await approval", "a-1"])
        .await?;
    browser
        .shows(&["No event has been received yet", "swirl send-event"])
        .await
}
