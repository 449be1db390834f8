//! Documents generated from the table: the reference page and the default file.

use super::kind::{Raw, Value, ValueKind};
use super::setting::{Process, Setting};
use super::show;
use super::table;

const HEAD: &str = "\
# Configuration

`swirl worker` and `swirl coordinator` are configured by one file, by environment variables and by
flags. A setting has the same name everywhere: `redis.url` in the file is `SWIRL_REDIS_URL` as a
variable and `--redis-url` as a flag. **Flags win over variables, variables over the file, the file
over the defaults.**

The file is TOML, YAML or JSON (by its ending): `--config FILE`, else `SWIRL_CONFIG`, else
`/etc/swirl/swirl.toml` if it is there. One file serves both processes: each takes what it needs.

```sh
swirl config default > swirl.toml        # every setting with its default, commented out
swirl config check --config swirl.toml   # the values in force, and where each comes from
```

- **Unknown names are refused**, and so is every value that is not valid, all at once and with their
  places. Variables that begin with `SWIRL_` and are not settings only cause a warning:
  Kubernetes adds some for a service that is called swirl. An empty variable counts as not set.
- **Lists** are written with commas in variables and flags, and a flag may be given again; **maps** as
  `NAME=VALUE,NAME=VALUE`.
- **Durations** are `500ms`, `30s`, `5m`, `1h30m`, `7d` or ISO 8601; **sizes** `512KiB`, `64MiB`, `10GiB`
  or a number of bytes. **Addresses** are `127.0.0.1:8080` or `[::]:8080`.
- **Secrets** are better in files than in variables and flags, which other programs can see:
  each has a setting that names a file. No secret is ever shown or logged.
- **Relative paths** are relative to the folder that the process was started in.

This page is made by `swirl config reference` from the table that the program reads.
";

/// The page `docs/configuration.md`.
pub fn reference() -> String {
    let mut page = HEAD.to_owned();
    let mut section = None;
    for setting in table::settings() {
        if section != Some(setting.section()) {
            section = Some(setting.section());
            let (title, about) = match setting.section() {
                "" => ("General", "All processes of an installation."),
                name => (name, table::section(name)),
            };
            page.push_str(&format!(
                "\n## {title}\n\n{about}\n\n| setting | type | default | |\n| --- | --- | --- | --- |\n"
            ));
        }
        page.push_str(&row(setting));
    }
    page
}

fn row(setting: &Setting) -> String {
    let default = match default(setting) {
        Some(default) => format!("`{default}`"),
        None => String::new(),
    };
    let mut help = setting.help.to_owned();
    if setting.secret {
        help.push_str(" Secret.");
    }
    let users = setting.used_by;
    if users.len() < Process::ALL.len()
        && users.iter().all(|user| user.as_str() != setting.section())
    {
        let users: Vec<&str> = users.iter().map(|user| user.as_str()).collect();
        help.push_str(&format!(" ({} only)", users.join(", ")));
    }
    format!(
        "| `{}` | {} | {default} | {help} |\n",
        setting.key,
        setting.kind.words()
    )
}

/// A file with all settings, commented out.
pub fn default_file() -> String {
    let mut text = String::from(
        "# Swirl's configuration. Everything is commented out, and shows the default where there is\n\
         # one. The same names do as variables (SWIRL_REDIS_URL) and flags (--redis-url), which win\n\
         # over this file. 'swirl config check' shows what holds.\n",
    );
    let mut section = "";
    for setting in table::settings() {
        if section != setting.section() {
            section = setting.section();
            let about = table::section(section).replace('`', "'");
            text.push_str(&format!("\n# {about}\n[{section}]\n"));
        }
        text.push('\n');
        let help = format!("{} ({})", setting.help, setting.kind.words()).replace('`', "'");
        for line in wrap(&help, 96) {
            text.push_str(&format!("# {line}\n"));
        }
        let value = match default(setting) {
            Some(default) => default,
            None => example(&setting.kind).to_owned(),
        };
        text.push_str(&format!("#{} = {value}\n", setting.name()));
    }
    text
}

/// The value in TOML notation.
fn default(setting: &Setting) -> Option<String> {
    let text = setting.default?;
    let value = setting.kind.check(&Raw::Text(text.to_owned())).ok()?;
    Some(show::toml(&match value {
        Value::Flag(flag) => flag.into(),
        Value::Ratio(ratio) => ratio.into(),
        Value::Number(number) if matches!(setting.kind, ValueKind::Count { .. }) => number.into(),
        Value::List(items) => items.into(),
        _ => text.into(),
    }))
}

fn example(kind: &ValueKind) -> &'static str {
    match kind {
        ValueKind::List(_) => "[]",
        ValueKind::Map => "{}",
        ValueKind::Tokens => {
            "[{ name = \"ci\", hash = \"blake3:...\", roles = [\"deployer\"], namespaces = [] }]"
        }
        _ => "\"\"",
    }
}

fn wrap(text: &str, width: usize) -> Vec<String> {
    let mut lines = vec![String::new()];
    for word in text.split(' ') {
        let last = lines.len() - 1;
        if !lines[last].is_empty() && lines[last].chars().count() + word.chars().count() >= width {
            lines.push(word.to_owned());
        } else {
            if !lines[last].is_empty() {
                lines[last].push(' ');
            }
            lines[last].push_str(word);
        }
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::file;
    use std::path::Path;

    #[test]
    fn the_page_matches_the_table() {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/configuration.md");
        let page = std::fs::read_to_string(path).unwrap_or_default();
        assert!(
            page == reference(),
            "docs/configuration.md is out of date: swirl config reference > docs/configuration.md"
        );
    }

    #[test]
    fn the_default_file_is_valid_with_and_without_its_comments() {
        let text = default_file();
        let (found, problems) = file::read(Path::new("a.toml"), text.as_bytes());
        assert!(found.is_empty() && problems.is_empty(), "{problems:?}");
        let live: String = text
            .lines()
            .map(|line| match line.strip_prefix('#') {
                Some(setting) if !setting.starts_with(' ') => format!("{setting}\n"),
                _ => format!("{line}\n"),
            })
            .collect();
        let (found, problems) = file::read(Path::new("a.toml"), live.as_bytes());
        assert!(problems.is_empty(), "{problems:?}");
        assert_eq!(found.len(), table::settings().count());
        for found in found {
            if found.setting.default.is_some() {
                let checked = found.setting.kind.check(&found.raw);
                assert!(checked.is_ok(), "{}: {checked:?}", found.setting.key);
            }
        }
    }
}
