//! The dependency rule: which crates of the workspace a crate may use, and which crates stay free of IO.
//! `ARCHITECTURE.md` gives the reasons.
//!
//! Dev-dependencies are not restricted: tests may combine crates that the program may not.

use anyhow::Result;
use cargo_metadata::{DependencyKind, Metadata, Package};

use crate::cargo;
use crate::finding::Finding;

/// The crates of the workspace that a crate may use.
struct Row {
    name: &'static str,
    uses: &'static [&'static str],
    /// It may use the backends, which are listed in [`BACKENDS`].
    backends: bool,
}

const fn row(name: &'static str, uses: &'static [&'static str]) -> Row {
    Row {
        name,
        uses,
        backends: false,
    }
}

/// A crate that assembles a system.
const fn top(name: &'static str, uses: &'static [&'static str]) -> Row {
    Row {
        name,
        uses,
        backends: true,
    }
}

/// Every crate in this folder is a backend. It may use [`BACKEND_USES`] and has no row.
const BACKENDS: &str = "shared/backends/";
const BACKEND_USES: [&str; 3] = ["swirl-commit", "swirl-model", "swirl-ports"];

/// The floors, from the lowest. A crate uses crates of its own floor and of lower ones. Floors that are in one list don't
/// use each other.
const FLOORS: [&[&str]; 7] = [
    &["shared/language/", "shared/content/"],
    &["shared/execution/"],
    &["shared/backends/", "shared/functions/"],
    &["shared/service/"],
    &["shared/process/"],
    &["shared/authoring/", "shared/testing/"],
    &["console/", "worker/"],
];

/// Crates in this folder contain only tests. They may use everything and have no row.
const TESTS: &str = "tests/";

/// One line per crate, in alphabetical order.
const ROWS: [Row; 34] = [
    row("swirl-access", &["swirl-model"]),
    row("swirl-api", &["swirl-access", "swirl-model"]),
    row(
        "swirl-assembly",
        &["swirl-ports", "swirl-runtime", "swirl-service"],
    ),
    row(
        "swirl-authoring",
        &[
            "swirl-documents",
            "swirl-expr",
            "swirl-model",
            "swirl-presentation",
            "swirl-spec",
        ],
    ),
    top(
        "swirl-bench",
        &[
            "swirl-assembly",
            "swirl-cli",
            "swirl-demo-service",
            "swirl-engine",
            "swirl-expr",
            "swirl-model",
            "swirl-ports",
            "swirl-runtime",
            "swirl-servers",
            "swirl-service",
            "swirl-spec",
            "swirl-virtual-time",
        ],
    ),
    top(
        "swirl-cli",
        &[
            "swirl-api",
            "swirl-assembly",
            "swirl-authoring",
            "swirl-config",
            "swirl-connections",
            "swirl-coordinator",
            "swirl-coverage",
            "swirl-demo-service",
            "swirl-deployment",
            "swirl-documents",
            "swirl-engine",
            "swirl-expr",
            "swirl-functions",
            "swirl-migrate",
            "swirl-model",
            "swirl-ports",
            "swirl-presentation",
            "swirl-recording",
            "swirl-runtime",
            "swirl-scenario",
            "swirl-service",
            "swirl-spec",
            "swirl-telemetry",
            "swirl-virtual-time",
            "swirl-worker",
        ],
    ),
    row("swirl-commit", &["swirl-model", "swirl-ports"]),
    row(
        "swirl-config",
        &[
            "swirl-access",
            "swirl-documents",
            "swirl-functions",
            "swirl-model",
            "swirl-ports",
            "swirl-runtime",
        ],
    ),
    top(
        "swirl-connections",
        &[
            "swirl-assembly",
            "swirl-config",
            "swirl-engine",
            "swirl-functions",
            "swirl-model",
            "swirl-ports",
            "swirl-runtime",
            "swirl-telemetry",
        ],
    ),
    row(
        "swirl-console",
        &[
            "swirl-api",
            "swirl-authoring",
            "swirl-http-server",
            "swirl-model",
            "swirl-presentation",
        ],
    ),
    row("swirl-content", &[]),
    top(
        "swirl-coordinator",
        &[
            "swirl-access",
            "swirl-api",
            "swirl-assembly",
            "swirl-config",
            "swirl-connections",
            "swirl-console",
            "swirl-content",
            "swirl-deployment",
            "swirl-engine",
            "swirl-functions",
            "swirl-http-server",
            "swirl-instance-query",
            "swirl-model",
            "swirl-ports",
            "swirl-presentation",
            "swirl-runtime",
            "swirl-service",
            "swirl-telemetry",
        ],
    ),
    row(
        "swirl-coverage",
        &[
            "swirl-documents",
            "swirl-engine",
            "swirl-model",
            "swirl-presentation",
            "swirl-scenario",
        ],
    ),
    row("swirl-demo-service", &[]),
    row(
        "swirl-deployment",
        &[
            "swirl-api",
            "swirl-documents",
            "swirl-engine",
            "swirl-functions",
            "swirl-model",
            "swirl-ports",
            "swirl-runtime",
            "swirl-service",
            "swirl-spec",
        ],
    ),
    row("swirl-documents", &["swirl-model"]),
    row("swirl-engine", &["swirl-expr", "swirl-model"]),
    row("swirl-expr", &["swirl-model"]),
    row(
        "swirl-functions",
        &[
            "swirl-content",
            "swirl-documents",
            "swirl-expr",
            "swirl-model",
            "swirl-ports",
            "swirl-spec",
        ],
    ),
    row("swirl-http-server", &[]),
    row("swirl-instance-query", &["swirl-model", "swirl-ports"]),
    row(
        "swirl-migrate",
        &["swirl-documents", "swirl-expr", "swirl-model", "swirl-spec"],
    ),
    row("swirl-model", &[]),
    row("swirl-ports", &["swirl-model"]),
    row("swirl-presentation", &["swirl-api", "swirl-model"]),
    row(
        "swirl-recording",
        &[
            "swirl-api",
            "swirl-coverage",
            "swirl-documents",
            "swirl-engine",
            "swirl-migrate",
            "swirl-model",
            "swirl-ports",
            "swirl-presentation",
            "swirl-scenario",
            "swirl-spec",
            "swirl-virtual-time",
        ],
    ),
    row(
        "swirl-runtime",
        &["swirl-engine", "swirl-model", "swirl-ports"],
    ),
    row(
        "swirl-scenario",
        &[
            "swirl-api",
            "swirl-deployment",
            "swirl-documents",
            "swirl-engine",
            "swirl-expr",
            "swirl-functions",
            "swirl-migrate",
            "swirl-model",
            "swirl-ports",
            "swirl-presentation",
            "swirl-service",
            "swirl-spec",
            "swirl-virtual-time",
        ],
    ),
    row(
        "swirl-service",
        &[
            "swirl-api",
            "swirl-content",
            "swirl-engine",
            "swirl-model",
            "swirl-ports",
            "swirl-runtime",
        ],
    ),
    // Expressions are compiled at deployment, so that an invalid one is refused with its location.
    row(
        "swirl-spec",
        &["swirl-documents", "swirl-expr", "swirl-model"],
    ),
    row(
        "swirl-telemetry",
        &["swirl-model", "swirl-ports", "swirl-runtime"],
    ),
    top(
        "swirl-virtual-time",
        &[
            "swirl-assembly",
            "swirl-engine",
            "swirl-model",
            "swirl-ports",
            "swirl-runtime",
            "swirl-service",
        ],
    ),
    top(
        "swirl-worker",
        &[
            "swirl-assembly",
            "swirl-config",
            "swirl-connections",
            "swirl-deployment",
            "swirl-functions",
            "swirl-http-server",
            "swirl-model",
            "swirl-ports",
            "swirl-runtime",
            "swirl-service",
            "swirl-telemetry",
        ],
    ),
    row("xtask", &[]),
];

/// Crates that do no IO and know no executor, ...
const PURE: [&str; 8] = [
    "swirl-commit",
    "swirl-documents",
    "swirl-engine",
    "swirl-expr",
    "swirl-migrate",
    "swirl-model",
    "swirl-runtime",
    "swirl-spec",
];
/// ... so they must not depend on these.
const IMPURE: [&str; 5] = ["async-nats", "hyper", "redis", "reqwest", "tokio"];

pub fn check() -> Result<Vec<Finding>> {
    let metadata = cargo::members()?;
    let mut findings = edges(&metadata);
    for name in PURE
        .into_iter()
        .filter(|name| package(&metadata, name).is_some())
    {
        let args = [
            "tree", "-p", name, "-e", "normal", "--target", "all", "--prefix", "depth", "-f", "{p}",
        ];
        findings.extend(impure(name, &cargo::output(&args)?));
    }
    Ok(findings)
}

fn package<'a>(metadata: &'a Metadata, name: &str) -> Option<&'a Package> {
    metadata
        .packages
        .iter()
        .find(|package| package.name.as_str() == name)
}

fn edges(metadata: &Metadata) -> Vec<Finding> {
    let root = &metadata.workspace_root;
    let folder = |package: &Package| {
        let path = package
            .manifest_path
            .strip_prefix(root)
            .unwrap_or(&package.manifest_path);
        path.as_str().replace('\\', "/")
    };
    let backends: Vec<&str> = metadata
        .packages
        .iter()
        .filter(|package| folder(package).starts_with(BACKENDS))
        .map(|package| package.name.as_str())
        .collect();
    let floor_of = |name: &str| {
        let mut all = metadata.packages.iter();
        let found = all.find(|package| package.name.as_str() == name);
        found.and_then(|package| floor(&folder(package)))
    };
    let mut findings = Vec::new();
    for package in metadata
        .packages
        .iter()
        .filter(|package| !folder(package).starts_with(TESTS))
    {
        let name = package.name.as_str();
        let uses: Vec<&str> = package
            .dependencies
            .iter()
            .filter(|dep| dep.kind != DependencyKind::Development)
            .map(|dep| dep.name.as_str())
            .filter(|dep| {
                metadata
                    .packages
                    .iter()
                    .any(|other| other.name.as_str() == *dep)
            })
            .collect();
        findings.extend(edges_of(name, &uses, &backends));
        let own = floor_of(name);
        let above = uses.iter().filter(|used| !may_rest_on(own, floor_of(used)));
        findings.extend(above.map(|used| {
            let message = format!("may not use {used}, which lies on a floor above or beside it");
            Finding::new(name, message)
        }));
    }
    for row in ROWS
        .iter()
        .filter(|row| package(metadata, row.name).is_none())
    {
        findings.push(Finding::new(
            row.name,
            "has a row in xtask/src/deps.rs and doesn't exist",
        ));
    }
    findings
}

/// A floor and its place among those of the same height. Crates that lie on none, such as `cli`, are above all of them.
fn floor(folder: &str) -> Option<(usize, usize)> {
    let folder = format!("{folder}/");
    let mut heights = FLOORS.iter().enumerate();
    heights.find_map(|(height, beside)| {
        let place = beside.iter().position(|floor| folder.starts_with(floor));
        Some((height, place?))
    })
}

fn may_rest_on(own: Option<(usize, usize)>, used: Option<(usize, usize)>) -> bool {
    match (own, used) {
        (None, _) => true,
        (Some(_), None) => false,
        (Some(own), Some(used)) => own == used || used.0 < own.0,
    }
}

/// The used crates that `name` must not use.
fn edges_of(name: &str, uses: &[&str], backends: &[&str]) -> Vec<Finding> {
    let row = ROWS.iter().find(|row| row.name == name);
    if row.is_none() && !backends.contains(&name) {
        let message = "is not in the table of layers: add a row in xtask/src/deps.rs";
        return vec![Finding::new(name, message)];
    }
    let allowed = |used: &str| match row {
        None => BACKEND_USES.contains(&used),
        Some(row) => row.uses.contains(&used) || row.backends && backends.contains(&used),
    };
    uses.iter()
        .filter(|used| !allowed(used))
        .map(|used| {
            let message = format!("may not use {used} (the dependency rule, ARCHITECTURE.md)");
            Finding::new(name, message)
        })
        .collect()
}

/// The paths by which a forbidden package gets into a dependency tree, from the output of `cargo tree --prefix depth`:
/// each line has a depth and a package. A repeated package has no subtree, because its first occurrence has shown the
/// path already.
fn impure(name: &str, tree: &str) -> Vec<Finding> {
    let mut way: Vec<&str> = Vec::new();
    let mut findings = Vec::new();
    let mut seen: Vec<&str> = Vec::new();
    for line in tree.lines() {
        let digits = line.len() - line.trim_start_matches(|c: char| c.is_ascii_digit()).len();
        let (depth, rest) = line.split_at(digits);
        let (Ok(depth), Some(package)) = (depth.parse::<usize>(), rest.split(' ').next()) else {
            continue;
        };
        way.truncate(depth);
        way.push(package);
        if IMPURE.contains(&package) && !seen.contains(&package) {
            seen.push(package);
            let message = format!(
                "must stay free of {package}; it comes by {}",
                way.join(" -> ")
            );
            findings.push(Finding::new(name, message));
        }
    }
    findings
}

#[cfg(test)]
mod tests {
    use super::*;

    fn places(findings: &[Finding]) -> Vec<String> {
        findings.iter().map(ToString::to_string).collect()
    }

    #[test]
    fn the_table_is_in_order() {
        assert!(ROWS.is_sorted_by_key(|row| row.name));
        assert!(ROWS.iter().all(|row| row.uses.is_sorted()));
    }

    #[test]
    fn a_layer_uses_only_lower_ones() {
        assert!(edges_of("swirl-engine", &["swirl-expr", "swirl-model"], &[]).is_empty());
        assert_eq!(
            places(&edges_of("swirl-model", &["swirl-engine"], &[])),
            ["swirl-model: may not use swirl-engine (the dependency rule, ARCHITECTURE.md)"]
        );
    }

    #[test]
    fn only_assembling_crates_use_a_backend() {
        let backends = ["swirl-embedded"];
        assert!(edges_of("swirl-virtual-time", &backends, &backends).is_empty());
        assert_eq!(edges_of("swirl-runtime", &backends, &backends).len(), 1);
        assert!(edges_of("swirl-embedded", &["swirl-ports"], &backends).is_empty());
        assert_eq!(
            edges_of("swirl-embedded", &["swirl-engine"], &backends).len(),
            1
        );
    }

    #[test]
    fn a_floor_rests_on_lower_ones() {
        let rests = |own, used| may_rest_on(floor(own), floor(used));
        assert!(rests("shared/execution/engine", "shared/language/expr"));
        assert!(rests("shared/language/spec", "shared/language/expr"));
        assert!(rests("cli", "shared/service/service"));
        assert!(!rests("shared/language/spec", "shared/execution/engine"));
        assert!(!rests("shared/functions", "shared/backends/redis"));
        assert!(!rests("shared/process/config", "cli"));
    }

    #[test]
    fn a_crate_without_a_row_is_found() {
        assert_eq!(edges_of("swirl-new", &[], &["swirl-embedded"]).len(), 1);
    }

    #[test]
    fn the_path_to_an_impure_package_is_shown() {
        let tree = "0swirl-engine v0.1.0 (x)\n1serde v1.0.1\n2serde_core v1\n1h2x v1\n2hyper v1.0\n3tokio v1\n1hyper v1.0 (*)\n";
        assert_eq!(
            places(&impure("swirl-engine", tree)),
            [
                "swirl-engine: must stay free of hyper; it comes by swirl-engine -> h2x -> hyper",
                "swirl-engine: must stay free of tokio; it comes by swirl-engine -> h2x -> hyper -> tokio",
            ]
        );
        assert!(impure("swirl-engine", "0swirl-engine v0.1.0\n1tokio-util v0.7\n").is_empty());
    }
}
