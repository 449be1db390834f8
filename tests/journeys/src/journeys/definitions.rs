//! Definitions: deployed, started, deleted.

use anyhow::{Result, ensure};
use thirtyfour::Key;

use crate::browser::Browser;
use crate::definitions::{VISIT, greeting};
use crate::stage::Stage;
use crate::wait::until;

pub async fn correct(stage: Stage) -> Result<()> {
    let dev = stage.dev(&[]).await?;
    let browser = &stage.browser;
    browser.open("/").await?;
    browser
        .shows(&["Nothing has run yet", "swirl deploy order.sw.yaml"])
        .await?;
    browser.press("Show the definitions").await?;
    browser.shows(&["Nothing is deployed yet"]).await?;
    browser.press("Deploy a definition").await?;
    let label = "Document, in YAML or JSON";
    let good = greeting("1.0.0", "Hello");
    let wrong = good.replace("end: true", "transition: Nowhere");
    browser.fill(label, &wrong).await?;
    let reason = "Reason, for the audit log";
    browser.fill(reason, "the first one").await?;
    browser.press_refused("Check and deploy", 422).await?;
    browser
        .shows(&["unknown-state", "line 5", "Nowhere"])
        .await?;
    browser.picture("console-findings.png", 640).await?;
    let kept = browser.filled(label).await?;
    ensure!(kept.trim() == wrong.trim(), "the draft is lost: {kept}");
    let kept = browser.filled(reason).await?;
    ensure!(kept == "the first one", "the reason is lost: {kept}");
    browser.fill(label, &good).await?;
    browser.press("Check and deploy").await?;
    browser
        .shows(&[
            "The definition is deployed.",
            "greeting",
            "Start an instance",
        ])
        .await?;
    ensure!(browser.has("svg.chart").await?, "there is no picture");
    let listed = dev.api.get("/definitions").await?;
    ensure!(listed["definitions"][0]["id"] == "greeting", "{listed}");
    let log = dev.api.get("/audit").await?;
    ensure!(log["entries"][0]["reason"] == "the first one", "{log}");
    Ok(())
}

pub async fn write(stage: Stage) -> Result<()> {
    let dev = stage.dev(&[]).await?;
    let browser = &stage.browser;
    browser.open("/deploy").await?;
    browser.shows(&["Nothing has been checked yet."]).await?;
    let label = "Document, in YAML or JSON";
    let good = greeting("1.0.0", "Hello");
    browser
        .fill(label, &good.replace("end: true", "transition: Nowhere"))
        .await?;
    browser
        .shows(&["✕ 1 finding.", "unknown-state", "line 5", "Nowhere"])
        .await?;
    ensure!(
        browser.has(".cm-lint-marker-error").await?,
        "the line of the finding isn't marked"
    );
    browser.press("line 5").await?;
    let line = browser.run("return String(getSelection())").await?;
    let line = line.as_str().unwrap_or_default();
    ensure!(line.contains("Nowhere"), "not the line: {line}");
    // Typed over the selection.
    browser
        .keys("  - {name: Greet, type: inject, data: {text: Hi}, end: true}")
        .await?;
    browser
        .shows(&["✓ It can be deployed as greeting 1.0.0."])
        .await?;
    browser.lacks("unknown-state").await?;
    ensure!(
        !browser.has(".cm-lint-marker").await?,
        "a line is still marked"
    );
    let listed = dev.api.get("/definitions").await?;
    ensure!(listed["definitions"] == serde_json::json!([]), "{listed}");
    browser.press("Check and deploy").await?;
    browser.shows(&["The definition is deployed."]).await
}

/// What the editor offers, as soon as it offers something with these words.
async fn offers(browser: &Browser, words: &[&str]) -> Result<()> {
    let script = "return [...document.querySelectorAll('.cm-tooltip-autocomplete li')]
        .map((one) => one.textContent).join('\\n')";
    until(&format!("an offer of {words:?}"), async || {
        let offered = browser.run(script).await?;
        let offered = offered.as_str().unwrap_or_default();
        let has = |word: &&str| offered.lines().any(|line| line == *word);
        Ok(match words.iter().all(has) {
            true => Ok(()),
            false => Err(offered.to_owned()),
        })
    })
    .await?;
    browser.check().await
}

/// Chooses the first offer. Keys right after the list has appeared are not meant for it.
async fn take(browser: &Browser) -> Result<()> {
    until("a chosen offer", async || {
        browser.keys(Key::Down).await?;
        let chosen = browser.has(".cm-tooltip-autocomplete [aria-selected]");
        Ok(match chosen.await? {
            true => Ok(()),
            false => Err("nothing is chosen".to_owned()),
        })
    })
    .await?;
    browser.keys(Key::Enter).await?;
    Ok(())
}

/// With the keyboard alone: kinds of states, properties, and names of states.
pub async fn complete(stage: Stage) -> Result<()> {
    let _dev = stage.dev(&[]).await?;
    let browser = &stage.browser;
    browser.open("/deploy").await?;
    let label = "Document, in YAML or JSON";
    let begin = "id: greeting\nversion: 1.0.0\nspecVersion: '0.8'\nstates:\n";
    let last = "  - name: Last\n    type: inject\n    data: {}\n    end: true\n";
    let draft = format!("{begin}{last}  - name: First\n    data: {{}}\n    ");
    browser.fill(label, &draft).await?;
    browser.keys("ty").await?;
    offers(browser, &["type"]).await?;
    // Nothing is chosen yet, so Enter would begin a new line.
    ensure!(
        !browser
            .has(".cm-tooltip-autocomplete [aria-selected]")
            .await?,
        "something is chosen at once"
    );
    take(browser).await?;
    browser.chord(Key::Control, " ").await?;
    offers(browser, &["inject", "operation", "switch", "callback"]).await?;
    browser.keys("inj").await?;
    offers(browser, &["inject"]).await?;
    take(browser).await?;
    browser.keys(Key::Enter).await?;
    browser.keys("transition: ").await?;
    browser.chord(Key::Control, " ").await?;
    offers(browser, &["First", "Last"]).await?;
    // The first Escape closes the list, and Tab doesn't leave the editor yet.
    browser.keys(Key::Escape).await?;
    until("the end of the list", async || {
        let open = browser.has(".cm-tooltip-autocomplete").await?;
        Ok(if open {
            Err("it is open".to_owned())
        } else {
            Ok(())
        })
    })
    .await?;
    browser.keys("La").await?;
    offers(browser, &["Last"]).await?;
    take(browser).await?;
    let written = browser.filled(label).await?;
    ensure!(
        written == format!("{draft}type: inject\n    transition: Last"),
        "{written}"
    );
    browser
        .shows(&["✓ It can be deployed as greeting 1.0.0."])
        .await
}

/// With the keyboard alone: Tab indents, and after Escape it leaves.
pub async fn keyboard(stage: Stage) -> Result<()> {
    let _dev = stage.dev(&[]).await?;
    let browser = &stage.browser;
    browser.open("/deploy").await?;
    browser
        .shows(&["To leave the editor with the keyboard, press Escape, then Tab."])
        .await?;
    let label = "Document, in YAML or JSON";
    browser.press("Check and deploy").await?;
    browser.shows(&["There is nothing to deploy yet"]).await?;
    browser.keys("states:").await?;
    browser.keys(Key::Enter).await?;
    browser.keys(Key::Tab).await?;
    browser.keys("- name: Greet").await?;
    let written = browser.filled(label).await?;
    ensure!(written == "states:\n  - name: Greet", "{written:?}");
    let at = async || {
        browser
            .run("return document.activeElement.textContent.trim()")
            .await
    };
    browser.chord(Key::Control, "f").await?;
    ensure!(browser.has(".cm-search").await?, "Ctrl+F finds nothing");
    browser.check().await?;
    browser.keys("Greet").await?;
    browser.keys(Key::Escape).await?;
    ensure!(!browser.has(".cm-search").await?, "the search stays open");
    browser.keys(Key::Escape).await?;
    browser.keys(Key::Tab).await?;
    let there = at().await?;
    ensure!(there == "Files that it refers to", "Tab leads to {there}");
    browser.keys(Key::Tab).await?;
    let there = browser.run("return document.activeElement.name").await?;
    ensure!(there == "reason", "Tab leads to {there}");
    browser.keys(Key::Tab).await?;
    let there = at().await?;
    ensure!(there == "Check and deploy", "Tab leads to {there}");
    Ok(())
}

pub async fn start(stage: Stage) -> Result<()> {
    let dev = stage.dev(&[VISIT]).await?;
    let browser = &stage.browser;
    browser.open("/definitions").await?;
    browser.press("Start visit 1.0.0").await?;
    browser.shows(&["As it is in your passport"]).await?;
    browser.fill("Your name", "Ada").await?;
    browser.fill("Age", "old").await?;
    browser.choose("Size of the room", "large").await?;
    browser.press_refused("Start", 400).await?;
    browser.shows(&["“Age” must be a number"]).await?;
    ensure!(
        browser.filled("Your name").await? == "Ada",
        "the form is lost"
    );
    browser.fill("Age", "36").await?;
    browser.press("Start").await?;
    browser
        .shows(&["The instance is started.", "✓ completed"])
        .await?;
    let found = dev.api.get("/instances").await?;
    let id = found["instances"][0]["id"].as_str().unwrap_or_default();
    let found = dev.api.completed(id).await?;
    let expected =
        serde_json::json!({"name": "Ada", "age": 36, "size": "large", "breakfast": false});
    ensure!(found["input"] == expected, "{found:#}");

    // Again with one change.
    browser.press("Start another with its input…").await?;
    ensure!(
        browser.filled("Your name").await? == "Ada",
        "the input is lost"
    );
    browser.fill("Your name", "Grace").await?;
    browser.press("Start").await?;
    browser
        .shows(&["The instance is started.", "Grace", "36"])
        .await
}

pub async fn versions(stage: Stage) -> Result<()> {
    let documents = [greeting("1.0.0", "Hello"), greeting("1.1.0", "Welcome")];
    let dev = stage.dev(&documents.each_ref().map(String::as_str)).await?;
    let browser = &stage.browser;
    browser.open("/definitions").await?;
    browser.shows(&["1.1.0 current", "on request"]).await?;
    browser.lacks("1.0.0").await?;
    browser.open("/definitions?old=1").await?;
    browser.shows(&["1.1.0 current", "1.0.0"]).await?;
    browser.open("/definitions/greeting/1.1.0").await?;
    browser.shows(&["Welcome", "Digest"]).await?;
    ensure!(browser.has("svg.chart").await?, "there is no picture");
    browser.press("Compare with 1.0.0").await?;
    browser
        .shows(&["1.0.0 → 1.1.0", "− removed", "Hello", "+ added", "Welcome"])
        .await?;
    let changed =
        "return document.querySelectorAll('.difference .added, .difference .removed').length";
    ensure!(
        browser.run(changed).await? == 4,
        "not only the version and the text have changed"
    );
    let pictures = "return document.querySelectorAll('svg.chart').length";
    ensure!(browser.run(pictures).await? == 2, "not both pictures");
    browser.picture("console-versions.png", 760).await?;
    browser.press("The other way round").await?;
    browser.shows(&["1.1.0 → 1.0.0"]).await?;
    browser.open("/definitions/greeting/1.0.0").await?;
    browser.shows(&["Hello"]).await?;
    browser.press("Start an instance").await?;
    browser.press("Start with this input").await?;
    browser.shows(&["greeting 1.0.0", "✓ completed"]).await?;
    browser.press("greeting 1.0.0").await?;
    browser.press("Delete…").await?;
    browser
        .shows(&["No new instances of this version will start."])
        .await?;
    browser.press("Delete this version").await?;
    browser
        .shows(&["The version is deleted", "1.1.0 current"])
        .await?;
    let found = dev.api.get("/definitions/greeting").await?;
    ensure!(found["version"] == "1.1.0", "{found:#}");
    Ok(())
}

/// A definition with a file, and its next version.
pub async fn files(stage: Stage) -> Result<()> {
    let dev = stage.dev(&[]).await?;
    let browser = &stage.browser;
    browser.open("/definitions").await?;
    browser.press("Begin with an example").await?;
    let label = "Document, in YAML or JSON";
    let document = browser.filled(label).await?;
    ensure!(document.contains("id: greeting"), "{document}");
    let document = document.replace("states:", "constants: texts.json\nstates:");
    browser.fill(label, &document).await?;
    browser.press_refused("Check and deploy", 422).await?;
    browser.shows(&["texts.json"]).await?;
    browser.press("Files that it refers to").await?;
    browser.fill("Name of file 1", "texts.json").await?;
    browser
        .fill("Content of file 1", "{\"hello\": \"Good day\"}")
        .await?;
    browser.press("Check and deploy").await?;
    browser
        .shows(&["The definition is deployed.", "Greets a person by name."])
        .await?;
    browser.press("texts.json").await?;
    browser.shows(&["Good day"]).await?;
    browser.press("Edit as a new version").await?;
    let document = browser.filled(label).await?;
    ensure!(document.contains("version: 1.0.1"), "{document}");
    browser.press("Check and deploy").await?;
    browser
        .shows(&["The definition is deployed.", "1.0.1 current", "Versions"])
        .await?;
    let found = dev.api.get("/definitions/greeting").await?;
    ensure!(found["resources"][0] == "texts.json", "{found:#}");
    browser.press("1.0.0").await?;
    browser.press("Make it current…").await?;
    browser.press("Make this version current").await?;
    browser
        .shows(&["This version is current now", "1.0.0 current"])
        .await
}
