//! The commands by what one wants to do, as `swirl --help` lists them.

use std::fmt::Write as _;

use clap::Command;

const GROUPS: [(&str, &[&str]); 7] = [
    (
        "Write and check definitions",
        &[
            "new", "validate", "lint", "fmt", "diagram", "migrate", "schema", "explain", "lsp",
        ],
    ),
    (
        "Try them out on this machine",
        &["run", "test", "record", "replay", "dev", "demo-service"],
    ),
    (
        "Deploy and start",
        &[
            "deploy",
            "definition",
            "export",
            "start",
            "send-event",
            "schedule",
            "call",
        ],
    ),
    (
        "Look at instances",
        &["list", "get", "history", "events", "dead-letters", "audit"],
    ),
    (
        "Put instances right",
        &[
            "retry", "rerun", "skip", "suspend", "resume", "cancel", "move", "remove", "batch",
        ],
    ),
    ("Serve", &["coordinator", "worker", "doctor"]),
    ("Set up", &["config", "token", "completions"]),
];

/// The help of the whole program, with its commands in groups.
pub fn grouped(command: Command) -> Command {
    let mut text = String::new();
    for (title, names) in GROUPS {
        let _ = writeln!(text, "{title}:");
        for name in names {
            let found = command.find_subcommand(name);
            let about = found.and_then(Command::get_about).map(ToString::to_string);
            let _ = writeln!(text, "  {name:<14}{}", about.unwrap_or_default());
        }
        text.push('\n');
    }
    let template = format!(
        "{{before-help}}{{about-with-newline}}\n{{usage-heading}} {{usage}}\n\n{text}Options:\n{{options}}{{after-help}}\n"
    );
    command.help_template(template)
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::super::Cli;
    use super::*;

    #[test]
    fn each_command_is_in_one_group() {
        let command = Cli::command();
        let shown = command.get_subcommands().filter(|one| !one.is_hide_set());
        let all = shown.map(Command::get_name);
        let mut all: Vec<&str> = all.filter(|name| *name != "help").collect();
        let mut grouped: Vec<&str> = GROUPS
            .iter()
            .flat_map(|(_, names)| *names)
            .copied()
            .collect();
        all.sort_unstable();
        grouped.sort_unstable();
        assert_eq!(all, grouped);
    }

    #[test]
    fn the_help_shows_each_with_its_purpose() {
        let help = grouped(Cli::command()).render_help().to_string();
        assert!(
            help.contains("Put instances right:\n  retry         "),
            "{help}"
        );
        assert!(help.contains("\nOptions:\n"), "{help}");
    }
}
