//! The journeys, with one line for each.

mod access;
mod checks;
mod definitions;
mod drafts;
mod events;
mod faults;
mod insight;
mod listing;
mod operate;
mod rewind;
mod ways;
mod workbench;

use anyhow::Result;
use futures::future::LocalBoxFuture;

use crate::stage::Stage;

pub struct Journey {
    pub name: &'static str,
    pub run: fn(Stage) -> LocalBoxFuture<'static, Result<()>>,
    /// The browser has scripts enabled.
    pub scripts: bool,
}

const fn journey(
    name: &'static str,
    run: fn(Stage) -> LocalBoxFuture<'static, Result<()>>,
) -> Journey {
    Journey {
        name,
        run,
        scripts: true,
    }
}

/// Those on the cluster come first: it takes longest to start.
pub const ALL: [Journey; 58] = [
    journey("sign in, and see what the token allows", |stage| {
        Box::pin(access::sign_in(stage))
    }),
    journey("sign in at the provider, and out again", |stage| {
        Box::pin(access::sign_in_at_provider(stage))
    }),
    journey("watch an instance while it runs on a cluster", |stage| {
        Box::pin(access::watch(stage))
    }),
    journey("find out why a message is a dead letter", |stage| {
        Box::pin(access::dead_letter(stage))
    }),
    journey("see how late the work is and who does it", |stage| {
        Box::pin(insight::system(stage))
    }),
    journey("see the same of a single process", |stage| {
        Box::pin(insight::of_dev(stage))
    }),
    journey("see in which states instances are", |stage| {
        Box::pin(insight::states(stage))
    }),
    journey("see how much began, ended and failed lately", |stage| {
        Box::pin(insight::trend(stage))
    }),
    journey("see what changed in the data", |stage| {
        Box::pin(insight::changes(stage))
    }),
    journey("see who did what, and why", |stage| {
        Box::pin(access::audit(stage))
    }),
    journey("find a faulted order by its search attribute", |stage| {
        Box::pin(faults::find(stage))
    }),
    journey("see which state failed and with what", |stage| {
        Box::pin(faults::inspect(stage))
    }),
    journey("edit the data of an instance, and retry", |stage| {
        Box::pin(faults::edit(stage))
    }),
    journey("see which branch failed, and with what", |stage| {
        Box::pin(workbench::branch(stage))
    }),
    journey("see what was compensated", |stage| {
        Box::pin(workbench::compensated(stage))
    }),
    journey("wind an instance back, step by step", |stage| {
        Box::pin(rewind::steps(stage))
    }),
    journey("retry twenty instances with a batch", |stage| {
        Box::pin(faults::batch(stage))
    }),
    journey("retry all failures of one kind", |stage| {
        Box::pin(faults::kind(stage))
    }),
    journey(
        "correct the data of many, and go back to a state",
        |stage| Box::pin(faults::patch(stage)),
    ),
    journey("sort a list, choose its columns, and tick all", |stage| {
        Box::pin(listing::columns(stage))
    }),
    journey("tick two instances, and cancel them", |stage| {
        Box::pin(listing::tick(stage))
    }),
    journey("tick an instance while the list changes", |stage| {
        Box::pin(listing::stay_ticked(stage))
    }),
    journey("save a view, use it, and remove it", |stage| {
        Box::pin(listing::views(stage))
    }),
    journey("send the event that an instance waits for", |stage| {
        Box::pin(events::send(stage))
    }),
    journey("see why another event did not match", |stage| {
        Box::pin(events::explain(stage))
    }),
    journey("deploy a wrong definition, and correct it", |stage| {
        Box::pin(definitions::correct(stage))
    }),
    journey("see the findings while writing a definition", |stage| {
        Box::pin(definitions::write(stage))
    }),
    journey("see the picture while writing a definition", |stage| {
        Box::pin(drafts::draw(stage))
    }),
    journey("deploy several files at once", |stage| {
        Box::pin(drafts::files(stage))
    }),
    journey("drop a file, and deploy it", |stage| {
        Box::pin(drafts::drop(stage))
    }),
    journey("try a definition before it is deployed", |stage| {
        Box::pin(drafts::rehearse(stage))
    }),
    journey("try a deployed definition", |stage| {
        Box::pin(drafts::rehearse_deployed(stage))
    }),
    journey("complete what is being written", |stage| {
        Box::pin(definitions::complete(stage))
    }),
    journey("write a definition with the keyboard alone", |stage| {
        Box::pin(definitions::keyboard(stage))
    }),
    journey("see the last answers of an instance that failed", |stage| {
        Box::pin(workbench::last_answers(stage))
    }),
    journey("start an instance with the form of its schema", |stage| {
        Box::pin(definitions::start(stage))
    }),
    journey("compare two versions, and delete the older one", |stage| {
        Box::pin(definitions::versions(stage))
    }),
    journey("deploy a file with it, then the next version", |stage| {
        Box::pin(definitions::files(stage))
    }),
    journey("pause a schedule", |stage| {
        Box::pin(operate::pause_schedule(stage))
    }),
    journey("cancel an instance with a reason", |stage| {
        Box::pin(operate::cancel(stage))
    }),
    journey("suspend and resume with the keyboard alone", |stage| {
        Box::pin(ways::keyboard(stage))
    }),
    journey("read every page in the dark", |stage| {
        Box::pin(ways::dark(stage))
    }),
    journey("read every page while it is empty", |stage| {
        Box::pin(ways::empty(stage))
    }),
    journey("find the way on a phone", |stage| {
        Box::pin(ways::phone(stage))
    }),
    journey("read every page on a narrow screen", |stage| {
        Box::pin(ways::narrow(stage))
    }),
    Journey {
        name: "skip a step without scripts",
        run: |stage| Box::pin(ways::without_scripts(stage)),
        scripts: false,
    },
    Journey {
        name: "wind an instance back without scripts",
        run: |stage| Box::pin(rewind::steps(stage)),
        scripts: false,
    },
    Journey {
        name: "see which branch failed without scripts",
        run: |stage| Box::pin(workbench::branch(stage)),
        scripts: false,
    },
    Journey {
        name: "tick two instances without scripts",
        run: |stage| Box::pin(listing::tick(stage)),
        scripts: false,
    },
    Journey {
        name: "retry all failures of one kind without scripts",
        run: |stage| Box::pin(faults::kind(stage)),
        scripts: false,
    },
    Journey {
        name: "save a view without scripts",
        run: |stage| Box::pin(listing::views(stage)),
        scripts: false,
    },
    Journey {
        name: "correct a wrong definition without scripts",
        run: |stage| Box::pin(definitions::correct(stage)),
        scripts: false,
    },
    Journey {
        name: "see the picture of a draft without scripts",
        run: |stage| Box::pin(drafts::draw_by_button(stage)),
        scripts: false,
    },
    Journey {
        name: "deploy several files without scripts",
        run: |stage| Box::pin(drafts::files(stage)),
        scripts: false,
    },
    Journey {
        name: "try a deployed definition without scripts",
        run: |stage| Box::pin(drafts::rehearse_deployed(stage)),
        scripts: false,
    },
    Journey {
        name: "see how much began, ended and failed lately without scripts",
        run: |stage| Box::pin(insight::trend(stage)),
        scripts: false,
    },
    Journey {
        name: "see what changed in the data without scripts",
        run: |stage| Box::pin(insight::changes(stage)),
        scripts: false,
    },
    journey("the checks find what is wrong with a page", |stage| {
        Box::pin(checks::find(stage))
    }),
];
