//! Other ways of using the console: with the keyboard, in dark mode, on a narrow screen, without scripts.

use anyhow::{Result, ensure};
use serde_json::json;
use thirtyfour::Key;

use crate::browser::{Browser, short};
use crate::definitions::{APPROVAL, HOURLY, ORDER, VISIT};
use crate::server::Dev;
use crate::stage::Stage;

/// Waits until the control with this name has the focus.
async fn focus_comes(browser: &Browser, name: &str) -> Result<()> {
    crate::wait::until(name, async || {
        let now = focused(browser).await?;
        Ok(if now == name { Ok(()) } else { Err(now) })
    })
    .await
}

/// The name of the focused element, as soon as its focus is visible.
async fn focused(browser: &Browser) -> Result<String> {
    let found = browser
        .run(
            "const one = document.activeElement;
             const { outlineStyle, outlineWidth } = getComputedStyle(one);
             const isSeen = outlineStyle !== 'none' && parseFloat(outlineWidth) >= 2;
             const name = (one.labels?.[0] ?? one).textContent.replace(/\\s+/g, ' ').trim();
             return isSeen || one === document.body ? name : `nothing shows the focus of ${name}`",
        )
        .await?;
    Ok(found.as_str().unwrap_or_default().to_owned())
}

/// Presses Tab until the element with this name has the focus.
async fn tab_to(browser: &Browser, name: &str) -> Result<()> {
    const TABS_MAX: usize = 60;
    let mut names = Vec::new();
    for _ in 0..TABS_MAX {
        browser.keys(Key::Tab).await?;
        let at = focused(browser).await?;
        ensure!(!at.starts_with("nothing shows"), "{at}");
        if at == name {
            return Ok(());
        }
        names.push(at);
    }
    anyhow::bail!("Tab never leads to “{name}”, only to {names:?}")
}

pub async fn keyboard(stage: Stage) -> Result<()> {
    let dev = stage.dev(&[APPROVAL]).await?;
    let id = dev.api.start("approval", &json!({"order": "a-1"})).await?;
    dev.api.waiting(&id).await?;
    let browser = &stage.browser;
    browser.open("/instances").await?;
    // The first stop skips the navigation.
    browser.keys(Key::Tab).await?;
    ensure!(focused(browser).await? == "Skip to the content");
    browser.keys(Key::Enter).await?;
    tab_to(browser, &short(&id)).await?;
    // The page checks for changes, and the focus stays where it is.
    let script = "const main = document.querySelector('main');
        main.firstElementChild.dataset.old = 'yes';
        return main.dataset.live";
    ensure!(browser.run(script).await? == "3", "this page is not live");
    crate::wait::until("news", async || {
        let old = browser.has("main [data-old]").await?;
        Ok(if old {
            Err("the old page".to_owned())
        } else {
            Ok(())
        })
    })
    .await?;
    ensure!(focused(browser).await? == short(&id), "the focus is lost");
    browser.keys(Key::Enter).await?;
    browser.shows(&[&id]).await?;

    tab_to(browser, "Suspend…").await?;
    browser.keys(Key::Enter).await?;
    focus_comes(browser, "Reason, for the history").await?;
    browser.keys(Key::Escape).await?;
    ensure!(focused(browser).await? == "Suspend…", "Escape leads back");
    browser.keys(Key::Enter).await?;
    focus_comes(browser, "Reason, for the history").await?;
    browser.keys("over lunch").await?;
    tab_to(browser, "Suspend").await?;
    browser.keys(Key::Space).await?;
    browser
        .shows(&[
            "The instance is suspended.",
            "‖ suspended",
            "because: over lunch",
        ])
        .await?;
    tab_to(browser, "Resume…").await?;
    browser.keys(Key::Enter).await?;
    focus_comes(browser, "Reason, for the history").await?;
    browser.keys(Key::Enter).await?;
    browser
        .shows(&[
            "It continues.",
            "◷ waiting",
            "It waits for the event “approved”",
        ])
        .await
}

/// All pages, with some content.
async fn pages(dev: &Dev) -> Result<Vec<String>> {
    let order = json!({"order": "<o>", "amount": 250_000});
    let faulted = dev.api.start("order", &order).await?;
    dev.api.faulted(&faulted).await?;
    let done = dev
        .api
        .start("order", &json!({"order": "o-2", "amount": 5}))
        .await?;
    dev.api.completed(&done).await?;
    let waits = dev.api.start("approval", &json!({"order": "a-1"})).await?;
    dev.api.waiting(&waits).await?;
    dev.api
        .save_view(&json!({"name": "Orders that failed", "workflow": "order", "status": "faulted"}))
        .await?;
    Ok([
        "/".to_owned(),
        "/audit".to_owned(),
        "/audit?by=nobody".to_owned(),
        "/instances".to_owned(),
        "/instances?query=workflow+%3D+order".to_owned(),
        "/instances?query=nonsense+%3D".to_owned(),
        format!("/instances/{faulted}"),
        format!("/instances/{done}"),
        format!("/instances/{waits}"),
        format!("/instances/{faulted}?at=5"),
        "/batches".to_owned(),
        "/instances?sort=-duration&top=1&since=1h".to_owned(),
        "/definitions".to_owned(),
        "/definitions?old=1&q=order".to_owned(),
        "/definitions/order/1.0.0".to_owned(),
        "/deploy".to_owned(),
        "/deploy/files".to_owned(),
        "/start/visit/1.0.0".to_owned(),
        "/events".to_owned(),
        "/schedules".to_owned(),
        "/system".to_owned(),
    ]
    .to_vec())
}

const OPEN_ALL: &str =
    "document.querySelectorAll('details').forEach((one) => { one.open = true; })";

pub async fn dark(stage: Stage) -> Result<()> {
    let dev = stage.dev(&[ORDER, APPROVAL, HOURLY, VISIT]).await?;
    let browser = &stage.browser;
    browser.prefer("prefers-color-scheme", "dark").await?;
    for page in pages(&dev).await? {
        browser.open(&page).await?;
        let ground = browser
            .run("return getComputedStyle(document.documentElement).backgroundColor")
            .await?;
        ensure!(ground == "rgb(15, 19, 27)", "{page} is not dark: {ground}");
        browser.run(OPEN_ALL).await?;
        browser.check().await?;
    }
    browser.prefer("prefers-color-scheme", "light").await?;
    for page in pages(&dev).await? {
        browser.open(&page).await?;
        browser.run(OPEN_ALL).await?;
        browser.check().await?;
    }
    Ok(())
}

/// The navigation folds away, with and without scripts; dates have labels.
pub async fn phone(stage: Stage) -> Result<()> {
    let dev = stage.dev(&[ORDER]).await?;
    let id = dev
        .api
        .start("order", &json!({"order": "o-1", "amount": 5}))
        .await?;
    dev.api.completed(&id).await?;
    let browser = &stage.browser;
    browser.resize(375, 780).await?;
    browser.open("/instances").await?;
    let folded = browser
        .run("return document.querySelector('.side').getBoundingClientRect().height")
        .await?;
    let height = folded.as_f64().unwrap_or(f64::MAX);
    ensure!(height < 80.0, "the navigation takes {height} pixels");
    let label = browser
        .run(
            "const cell = document.querySelector('td[data-label=Started]');
             return getComputedStyle(cell, '::before').content",
        )
        .await?;
    ensure!(label == "\"Started\"", "a date has the label {label}");
    browser.press("Menu").await?;
    browser.check().await?;
    browser.press("Definitions").await?;
    browser.shows(&["order", "current"]).await
}

/// The elements that make the page wider than the screen, if any.
const TOO_WIDE: &str = "
    const { scrollWidth, clientWidth } = document.documentElement;
    if (scrollWidth <= clientWidth) return '';
    return [...document.querySelectorAll('main *')]
        .filter((one) => one.getBoundingClientRect().right > clientWidth)
        .map((one) => `${Math.round(one.getBoundingClientRect().right)} ${one.outerHTML.slice(0, 100)}`)
        .slice(0, 5).join('\\n') || `${scrollWidth}`";

pub async fn narrow(stage: Stage) -> Result<()> {
    let dev = stage.dev(&[ORDER, APPROVAL, HOURLY, VISIT]).await?;
    let browser = &stage.browser;
    browser.resize(320, 640).await?;
    for page in pages(&dev).await? {
        browser.open(&page).await?;
        // Only parts of the page may scroll sideways, not the page itself.
        let wide = browser.run(TOO_WIDE).await?;
        ensure!(wide == "", "{page} is wider than the screen: {wide}");
    }
    Ok(())
}

pub async fn without_scripts(stage: Stage) -> Result<()> {
    let dev = stage.dev(&[ORDER]).await?;
    let input = json!({"order": "o-1", "amount": 250_000});
    let id = dev.api.start("order", &input).await?;
    dev.api.faulted(&id).await?;
    let browser = &stage.browser;
    browser.open("/instances?status=faulted").await?;
    // A script would show how long ago that was.
    browser.shows(&["✕ faulted", "T", "Z"]).await?;
    browser.lacks("ago").await?;
    browser.press("o-1").await?;
    browser.press("Skip the step…").await?;
    browser.fill("Result", "{\"payment\": 77}").await?;
    browser
        .fill("Reason, for the history", "paid in cash")
        .await?;
    browser.press("Skip the step").await?;
    browser.shows(&["The result was accepted"]).await?;
    let done = dev.api.completed(&id).await?;
    ensure!(done["output"]["payment"] == 77, "{done:#}");
    browser.open(&format!("/instances/{id}")).await?;
    browser
        .shows(&["✓ completed", "because: paid in cash", "77"])
        .await
}
