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

/// All pages, with some content: the name of each, and its address.
async fn pages(dev: &Dev) -> Result<Vec<(&'static str, String)>> {
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
    let batch = dev
        .api
        .batch(&json!({"operation": "retry", "query": "status = faulted", "reason": "the bank is back"}))
        .await?;
    // It fails again.
    dev.api.faulted(&faulted).await?;
    let all = [
        ("overview", "/"),
        ("overview-day", "/?trend=day"),
        ("audit", "/audit"),
        ("audit-none", "/audit?by=nobody"),
        ("instances", "/instances"),
        ("instances-query", "/instances?query=workflow+%3D+order"),
        ("instances-wrong-query", "/instances?query=nonsense+%3D"),
        (
            "instances-sorted",
            "/instances?sort=-duration&top=1&since=1h",
        ),
        ("instance-faulted", "/instances/FAULTED"),
        ("instance-completed", "/instances/DONE"),
        ("instance-waiting", "/instances/WAITS"),
        ("instance-earlier", "/instances/FAULTED?at=5"),
        ("instance-none", "/instances/none"),
        ("batches", "/batches"),
        ("batch", "/batches/BATCH"),
        ("definitions", "/definitions"),
        ("definitions-old", "/definitions?old=1&q=order"),
        ("definition", "/definitions/order/1.0.0"),
        ("compare", "/definitions/order/1.0.0/compare?with=1.1.0"),
        ("deploy", "/deploy"),
        ("deploy-next", "/deploy?from=order%2F1.0.0"),
        ("deploy-files", "/deploy/files"),
        ("start", "/start/visit/1.0.0"),
        ("events", "/events"),
        ("schedules", "/schedules"),
        ("system", "/system"),
    ];
    let ids = [
        ("FAULTED", faulted),
        ("DONE", done),
        ("WAITS", waits),
        ("BATCH", batch),
    ];
    let named = |path: &str| {
        let put = |path: String, (name, id): &(&str, String)| path.replace(name, id);
        ids.iter().fold(path.to_owned(), put)
    };
    Ok(all.map(|(name, path)| (name, named(path))).to_vec())
}

const OPEN_ALL: &str =
    "document.querySelectorAll('details').forEach((one) => { one.open = true; })";

/// Opens one of [`pages`].
async fn open(browser: &Browser, name: &str, path: &str) -> Result<()> {
    match name {
        "instance-none" => browser.open_refused(path, 404).await,
        _ => browser.open(path).await,
    }
}

/// A server with everything that [`pages`] show.
async fn filled(stage: &Stage) -> Result<Dev> {
    let dev = stage.dev(&[ORDER, APPROVAL, HOURLY, VISIT]).await?;
    // The next version, which nothing runs with.
    let next = stage.document(ORDER).replace("1.0.0", "1.1.0");
    dev.api.deploy(&next).await?;
    Ok(dev)
}

pub async fn dark(stage: Stage) -> Result<()> {
    let dev = filled(&stage).await?;
    let browser = &stage.browser;
    let pages = pages(&dev).await?;
    browser.prefer("prefers-color-scheme", "dark").await?;
    for (name, path) in &pages {
        open(browser, name, path).await?;
        let ground = browser
            .run("return getComputedStyle(document.documentElement).backgroundColor")
            .await?;
        ensure!(ground == "rgb(15, 19, 27)", "{path} is not dark: {ground}");
        browser.look(&format!("{name}-dark")).await?;
        browser.run(OPEN_ALL).await?;
        browser.check().await?;
    }
    browser.prefer("prefers-color-scheme", "light").await?;
    for (name, path) in &pages {
        open(browser, name, path).await?;
        browser.look(&format!("{name}-light")).await?;
        browser.run(OPEN_ALL).await?;
        browser.check().await?;
        browser.look(&format!("{name}-unfolded")).await?;
    }
    Ok(())
}

/// Nothing is deployed, and nothing has run.
pub async fn empty(stage: Stage) -> Result<()> {
    let _dev = stage.dev(&[]).await?;
    let browser = &stage.browser;
    for (name, path) in [
        ("overview", "/"),
        ("audit", "/audit"),
        ("instances", "/instances"),
        ("batches", "/batches"),
        ("definitions", "/definitions"),
        ("events", "/events"),
        ("schedules", "/schedules"),
        ("system", "/system"),
    ] {
        browser.open(path).await?;
        browser.look(&format!("{name}-empty")).await?;
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
    let dev = filled(&stage).await?;
    let browser = &stage.browser;
    browser.resize(320, 640).await?;
    for (name, path) in pages(&dev).await? {
        open(browser, name, &path).await?;
        // Only parts of the page may scroll sideways, not the page itself.
        let wide = browser.run(TOO_WIDE).await?;
        ensure!(wide == "", "{path} is wider than the screen: {wide}");
        browser.look(&format!("{name}-narrow")).await?;
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
