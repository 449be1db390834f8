//! The frame around each page: navigation, the visitor's name, permissions.

use swirl_api::overview::ME;

use crate::asking::{Refusal, segment};
use crate::visitor::{Visitor, has_role};

pub struct Shell {
    pub title: String,
    /// The current entry of the navigation.
    pub at: &'static str,
    pub csrf: String,
    pub namespace: String,
    pub version: String,
    /// Empty if the server requires no token.
    pub name: String,
    pub roles: String,
    pub may_operate: bool,
    pub may_deploy: bool,
    pub may_rehearse: bool,
    /// A sentence about the action that was just performed.
    pub done: &'static str,
    /// The page polls for changes.
    pub live: bool,
    /// The address of the hints about changes, which it waits for instead; empty if there are none.
    pub hints: String,
}

impl Shell {
    pub async fn new(
        visitor: &Visitor,
        at: &'static str,
        title: impl Into<String>,
    ) -> Result<Shell, Refusal> {
        let me = visitor.asking.ask(ME.ask()).await?;
        let may = |role: &str| has_role(&me, role);
        Ok(Shell {
            title: title.into(),
            at,
            csrf: visitor.csrf.clone(),
            roles: me.roles.join(", "),
            may_operate: may("operator"),
            may_deploy: may("deployer"),
            may_rehearse: may("deployer") && me.rehearsals,
            namespace: me.namespace,
            version: me.version,
            name: me.name.unwrap_or_default(),
            done: "",
            live: false,
            hints: String::new(),
        })
    }

    /// Shows the action that a form has just performed: one of the words that [`done`] knows.
    #[must_use]
    pub fn with_done(mut self, word: Option<&str>) -> Shell {
        self.done = word.map_or("", done);
        self
    }

    /// Lets the page of this instance be notified of changes.
    #[must_use]
    pub fn with_hints(mut self, id: &str) -> Shell {
        self.hints = format!("/console/instances/{}/hints", segment(id));
        self.with_news()
    }

    #[must_use]
    pub fn with_news(mut self) -> Shell {
        self.live = true;
        self
    }
}

/// Anybody can put any word into an address, so only known ones lead to a sentence.
fn done(word: &str) -> &'static str {
    match word {
        "cancel" => "The instance is being cancelled.",
        "suspend" => "The instance is suspended.",
        "resume" => "It continues.",
        "retry" => "The instance continues at the step that failed.",
        "skip" => "The result was accepted, and the instance continues after the step that failed.",
        "rerun" => "The instance continues at the state that you chose.",
        "migrate" => "The instance is moved to the other version.",
        "started" => "The instance is started.",
        "deployed" => "The definition is deployed.",
        "deployed-files" => "The definitions are deployed.",
        "unchanged" => "This definition was deployed before: nothing has changed.",
        "activated" => "This version is current now: new instances start with it.",
        "deleted" => "The version is deleted: no new instances of it start.",
        "batch" => "The batch is created, and begins now.",
        "batch-pause" => "The batch is paused.",
        "batch-resume" => "The batch continues.",
        "batch-stop" => "The batch is stopped.",
        "view-saved" => "The view is saved, for everybody who uses this namespace.",
        "view-removed" => "The view is removed.",
        "schedule-pause" => "The schedule is paused.",
        "schedule-resume" => "The schedule starts instances again.",
        "fire" => "An instance is started.",
        "sent-again" => "The message was sent again.",
        "dropped" => "The message was dropped.",
        _ => "",
    }
}
