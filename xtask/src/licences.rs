//! Checks licences, duplicate versions and sources of dependencies.
//!
//! The rules are in `deny.toml`, in cargo-deny's own syntax. cargo-deny is run if it is installed. Building it takes
//! minutes, so the rules that the file uses are also implemented here. A key that isn't implemented here is an error.

use std::collections::{BTreeMap, BTreeSet};

use anyhow::{Context, Result, bail};
use cargo_metadata::semver::{Version, VersionReq};
use cargo_metadata::{Metadata, Package};
use serde::Deserialize;
use spdx::{Expression, Licensee, ParseMode};

use crate::cargo;
use crate::finding::Finding;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Rules {
    graph: Graph,
    /// Only for cargo-deny, because it needs a database.
    #[serde(rename = "advisories")]
    _advisories: Option<Advisories>,
    licenses: Licences,
    bans: Bans,
    /// Only its presence is checked, because its rules are always applied.
    #[serde(rename = "sources")]
    _sources: Sources,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Graph {
    targets: Vec<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
#[expect(dead_code, reason = "cargo-deny reads them")]
struct Advisories {
    yanked: Level,
    unmaintained: String,
    #[serde(default)]
    ignore: Vec<Ignored>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
#[expect(dead_code, reason = "cargo-deny reads them")]
struct Ignored {
    id: String,
    reason: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Licences {
    allow: Vec<String>,
    #[serde(default)]
    exceptions: Vec<Exception>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Exception {
    #[serde(rename = "crate")]
    package: String,
    allow: Vec<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
struct Bans {
    multiple_versions: Level,
    #[serde(default)]
    skip: Vec<Skip>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Skip {
    /// As `name@version`.
    #[serde(rename = "crate")]
    package: String,
    /// For human readers; required.
    #[serde(rename = "reason")]
    _reason: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
#[expect(
    dead_code,
    reason = "that both are denied is all that they can say here"
)]
struct Sources {
    unknown_registry: Level,
    unknown_git: Level,
}

/// Only `deny` is accepted, because nobody reads warnings.
#[derive(Deserialize)]
#[serde(rename_all = "lowercase")]
enum Level {
    Deny,
}

/// A package that is built for at least one of the targets.
struct Built {
    name: String,
    version: Version,
    licence: Option<String>,
    /// It comes from crates.io or from this workspace.
    known_source: bool,
}

pub fn check() -> Result<Vec<Finding>> {
    let path = cargo::root().join("deny.toml");
    let text = std::fs::read_to_string(&path).context("deny.toml")?;
    let rules = parse(&text).context("deny.toml")?;
    let mut built: BTreeMap<String, Built> = BTreeMap::new();
    for target in &rules.graph.targets {
        for package in reachable(&cargo::graph(target)?) {
            built
                .entry(package.id.repr.clone())
                .or_insert_with(|| Built {
                    name: package.name.to_string(),
                    version: package.version.clone(),
                    licence: package.license.clone().or_else(|| from_file(package)),
                    known_source: match &package.source {
                        Some(source) => source.is_crates_io(),
                        None => package.manifest_path.starts_with(cargo::root()),
                    },
                });
        }
    }
    let built: Vec<Built> = built.into_values().collect();
    if cargo::has("deny") {
        cargo::run(&["deny", "check", "licenses", "bans", "sources"])?;
        if has_advisories() {
            cargo::run(&["deny", "--offline", "check", "advisories"])?;
        } else {
            println!("advisories are not checked: 'cargo deny fetch' gets their database");
        }
    }
    judge(&rules, &built)
}

/// The licence of a package that specifies a file instead of a name. Only one licence is recognised by its text.
fn from_file(package: &Package) -> Option<String> {
    let path = package.license_file()?;
    let text = std::fs::read_to_string(path).ok()?;
    is_apache(&text).then(|| "Apache-2.0".to_owned())
}

fn is_apache(text: &str) -> bool {
    let mut lines = text.lines().map(str::trim).filter(|line| !line.is_empty());
    lines.next() == Some("Apache License")
        && lines.next() == Some("Version 2.0, January 2004")
        && text.contains("END OF TERMS AND CONDITIONS")
}

/// Whether cargo-deny has its database.
fn has_advisories() -> bool {
    let home = std::env::var_os("CARGO_HOME").map(std::path::PathBuf::from);
    let home =
        home.or_else(|| Some(std::path::PathBuf::from(std::env::var_os("HOME")?).join(".cargo")));
    home.is_some_and(|home| home.join("advisory-dbs").is_dir())
}

fn parse(text: &str) -> Result<Rules> {
    let rules: Rules = toml::from_str(text)?;
    if rules.graph.targets.is_empty() {
        bail!("graph.targets is empty: nothing would be checked");
    }
    Ok(rules)
}

/// The packages that a build of the workspace can need. The metadata also lists others.
fn reachable(metadata: &Metadata) -> Vec<&Package> {
    let nodes = metadata.resolve.iter().flat_map(|resolve| &resolve.nodes);
    let edges: BTreeMap<_, _> = nodes.map(|node| (&node.id, &node.deps)).collect();
    let mut seen = BTreeSet::new();
    let mut open: Vec<_> = metadata.workspace_members.iter().collect();
    while let Some(id) = open.pop() {
        if seen.insert(id) {
            open.extend(
                edges
                    .get(id)
                    .into_iter()
                    .flat_map(|deps| deps.iter())
                    .map(|dep| &dep.pkg),
            );
        }
    }
    metadata
        .packages
        .iter()
        .filter(|package| seen.contains(&package.id))
        .collect()
}

fn judge(rules: &Rules, built: &[Built]) -> Result<Vec<Finding>> {
    let mut findings = Vec::new();
    let allowed = licensees(&rules.licenses.allow)?;
    for package in built {
        let place = format!("{} {}", package.name, package.version);
        let mut allowed = allowed.clone();
        let exceptions = rules.licenses.exceptions.iter();
        for exception in exceptions.filter(|exception| exception.package == package.name) {
            allowed.extend(licensees(&exception.allow)?);
        }
        if let Some(message) = refused(package.licence.as_deref(), &allowed) {
            findings.push(Finding::new(&place, message));
        }
        if !package.known_source {
            findings.push(Finding::new(
                &place,
                "comes neither from crates.io nor from this workspace",
            ));
        }
    }
    for exception in &rules.licenses.exceptions {
        if !built
            .iter()
            .any(|package| package.name == exception.package)
        {
            let message = format!(
                "the exception for {} is not needed: remove it",
                exception.package
            );
            findings.push(Finding::new("deny.toml", message));
        }
    }
    findings.extend(doubled(&rules.bans, built)?);
    Ok(findings)
}

fn licensees(names: &[String]) -> Result<Vec<Licensee>> {
    let parse = |name: &String| Licensee::parse(name).with_context(|| format!("licence '{name}'"));
    names.iter().map(parse).collect()
}

/// The reason why a package's licence isn't allowed, or `None` if it is allowed.
fn refused(licence: Option<&str>, allowed: &[Licensee]) -> Option<String> {
    let Some(licence) = licence else {
        return Some("states no licence".to_owned());
    };
    match Expression::parse_mode(licence, ParseMode::LAX) {
        Err(error) => Some(format!(
            "its licence '{licence}' cannot be read: {}",
            error.reason
        )),
        Ok(read) if read.evaluate(|wanted| allowed.iter().any(|it| it.satisfies(wanted))) => None,
        Ok(_) => Some(format!(
            "its licence '{licence}' is not allowed by deny.toml"
        )),
    }
}

fn doubled(bans: &Bans, built: &[Built]) -> Result<Vec<Finding>> {
    let Level::Deny = bans.multiple_versions;
    let mut findings = Vec::new();
    let mut skipped: BTreeSet<(&str, &Version)> = BTreeSet::new();
    for skip in &bans.skip {
        let (name, version) = skip
            .package
            .split_once('@')
            .with_context(|| format!("'{}' in bans.skip: expected name@version", skip.package))?;
        let wanted = VersionReq::parse(version)
            .with_context(|| format!("the version of '{}' in bans.skip", skip.package))?;
        let count = built.iter().filter(|package| package.name == name).count();
        let hits = built
            .iter()
            .filter(|it| it.name == name && wanted.matches(&it.version));
        let before = skipped.len();
        skipped.extend(hits.map(|package| (package.name.as_str(), &package.version)));
        if count < 2 || skipped.len() == before {
            let message = format!("'{}' in bans.skip is not needed: remove it", skip.package);
            findings.push(Finding::new("deny.toml", message));
        }
    }
    let mut versions: BTreeMap<&str, BTreeSet<&Version>> = BTreeMap::new();
    for package in built {
        if !skipped.contains(&(package.name.as_str(), &package.version)) {
            versions
                .entry(&package.name)
                .or_default()
                .insert(&package.version);
        }
    }
    for (name, versions) in versions
        .into_iter()
        .filter(|(_, versions)| versions.len() > 1)
    {
        let versions: Vec<String> = versions.into_iter().map(ToString::to_string).collect();
        let message = format!(
            "is built in versions {}: see 'cargo tree -i {name}@{}', or skip it in deny.toml with a reason",
            versions.join(" and "),
            versions[0],
        );
        findings.push(Finding::new(name, message));
    }
    Ok(findings)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rules(skip: &str) -> Rules {
        let text = format!(
            "[graph]\ntargets = [\"x\"]\n[licenses]\nallow = [\"MIT\", \"Apache-2.0\"]\n\
             exceptions = [{{ crate = \"odd\", allow = [\"CDLA-Permissive-2.0\"] }}]\n\
             [bans]\nmultiple-versions = \"deny\"\nskip = [{skip}]\n\
             [sources]\nunknown-registry = \"deny\"\nunknown-git = \"deny\"\n"
        );
        parse(&text).unwrap()
    }

    #[test]
    fn a_licence_file_is_recognised_by_its_whole_text() {
        let text = "\n   Apache License\n  Version 2.0, January 2004\n 1. ...\nEND OF TERMS AND CONDITIONS\n";
        assert!(is_apache(text));
        assert!(!is_apache(&text.replace("2.0", "1.1")));
        assert!(!is_apache(&text.replace("END OF TERMS", "AND SO ON")));
    }

    fn built(name: &str, version: &str, licence: Option<&str>) -> Built {
        Built {
            name: name.to_owned(),
            version: Version::parse(version).unwrap(),
            licence: licence.map(ToOwned::to_owned),
            known_source: true,
        }
    }

    fn messages(rules: &Rules, built: &[Built]) -> Vec<String> {
        judge(rules, built)
            .unwrap()
            .iter()
            .map(ToString::to_string)
            .collect()
    }

    /// The crate for which the rules have an exception.
    fn odd() -> Built {
        built("odd", "1.0.0", Some("CDLA-Permissive-2.0"))
    }

    #[test]
    fn licences_are_expressions() {
        let rules = rules("");
        for good in [
            "MIT",
            "MIT OR GPL-3.0",
            "Apache-2.0/MIT",
            "MIT AND Apache-2.0",
        ] {
            assert_eq!(
                messages(&rules, &[odd(), built("a", "1.0.0", Some(good))]),
                [""; 0],
                "{good}"
            );
        }
        for bad in [
            None,
            Some("GPL-3.0"),
            Some("MIT AND GPL-3.0"),
            Some("nonsense"),
        ] {
            assert_eq!(
                messages(&rules, &[odd(), built("a", "1.0.0", bad)]).len(),
                1,
                "{bad:?}"
            );
        }
    }

    #[test]
    fn an_exception_is_only_for_its_crate_and_must_be_needed() {
        let other = built("other", "1.0.0", Some("CDLA-Permissive-2.0"));
        assert_eq!(messages(&rules(""), &[odd(), other]).len(), 1);
        assert_eq!(
            messages(&rules(""), &[]),
            ["deny.toml: the exception for odd is not needed: remove it"]
        );
    }

    #[test]
    fn doubled_versions_are_found_unless_skipped() {
        let two = [
            odd(),
            built("a", "1.2.0", Some("MIT")),
            built("a", "0.9.1", Some("MIT")),
        ];
        assert_eq!(messages(&rules(""), &two).len(), 1);
        let skip = "{ crate = \"a@0.9\", reason = \"b is not there yet\" }";
        assert_eq!(messages(&rules(skip), &two), [""; 0]);
        assert_eq!(
            messages(&rules(skip), &two[..2]),
            ["deny.toml: 'a@0.9' in bans.skip is not needed: remove it"]
        );
    }

    #[test]
    fn unknown_sources_are_found() {
        let git = Built {
            known_source: false,
            ..built("a", "1.0.0", Some("MIT"))
        };
        assert_eq!(messages(&rules(""), &[odd(), git]).len(), 1);
    }

    #[test]
    fn an_unimplemented_rule_is_rejected() {
        assert!(parse("[graph]\ntargets = [\"x\"]\nexclude = []").is_err());
    }
}
