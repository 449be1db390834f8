//! Determines the edition of the language in which a document is written.
//!
//! `specVersion` (`schema-version` or `schemaVersion` in older editions) states it. If it is missing or misleading, the
//! shape of the document decides: its parts (`facts`) are searched for signs of certain editions (`signs`).

mod facts;
mod signs;
#[cfg(test)]
mod tests;

use std::fmt;

use swirl_documents::source::{Node, NodeKind};

pub(crate) use self::facts::is_conventional;
use self::facts::{Facts, has_free_names};
use self::signs::SIGNS;

/// An edition of the language.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Edition {
    /// 0.1, early draft (October 2019).
    V0_1Early,
    /// 0.1 (November 2019).
    V0_1,
    /// 0.1 as released (April 2020).
    V0_1Release,
    /// The draft with `tasks` (May 2020).
    Tasks,
    V0_5,
    V0_6,
    V0_7,
    V0_8,
    V0_9,
    /// DSL 1.0.
    V1_0,
}

impl Edition {
    pub const ALL: [Edition; 10] = [
        Edition::V0_1Early,
        Edition::V0_1,
        Edition::V0_1Release,
        Edition::Tasks,
        Edition::V0_5,
        Edition::V0_6,
        Edition::V0_7,
        Edition::V0_8,
        Edition::V0_9,
        Edition::V1_0,
    ];

    /// The name of the edition.
    pub const fn as_str(self) -> &'static str {
        match self {
            Edition::V0_1Early => "0.1 (early draft)",
            Edition::V0_1 => "0.1",
            Edition::V0_1Release => "0.1 (release)",
            Edition::Tasks => "tasks draft",
            Edition::V0_5 => "0.5",
            Edition::V0_6 => "0.6",
            Edition::V0_7 => "0.7",
            Edition::V0_8 => "0.8",
            Edition::V0_9 => "0.9",
            Edition::V1_0 => "1.0",
        }
    }
}

impl fmt::Display for Edition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// The detected edition, and the reason.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Detected {
    pub edition: Edition,
    /// A clause that completes "it is read as edition ... because".
    pub why: String,
    /// Other editions that are equally possible.
    pub also: Vec<Edition>,
    /// The version property, if it names no edition, or one whose documents look different.
    pub misled_by: Option<&'static str>,
}

/// A version that is not an edition.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UnknownEdition {
    /// The property that contains it.
    pub property: &'static str,
    pub version: String,
}

pub(crate) const VERSIONS: [&str; 3] = ["specVersion", "schemaVersion", "schema-version"];

/// The later generation of the language, which is a different one. `document.dsl` names its version.
pub const DSL: &str = "dsl";

/// The editions of an ambiguous document without a version key, most likely first. From 0.7 on, the language requires a
/// version key.
const LIKELY: [Edition; 9] = [
    Edition::V0_6,
    Edition::V0_8,
    Edition::V0_7,
    Edition::V0_5,
    Edition::V0_1Release,
    Edition::Tasks,
    Edition::V0_1,
    Edition::V0_1Early,
    Edition::V0_9,
];

/// The same for a document with `specVersion`, which the language has from 0.7 on, if its value names no edition.
const LIKELY_WITH_SPEC_VERSION: [Edition; 9] = [
    Edition::V0_8,
    Edition::V0_7,
    Edition::V0_9,
    Edition::V0_6,
    Edition::V0_5,
    Edition::V0_1Release,
    Edition::Tasks,
    Edition::V0_1,
    Edition::V0_1Early,
];

/// The edition that the document states, unless that is misleading; otherwise the edition whose shape it has.
///
/// # Errors
/// The document states an edition that doesn't exist, and shows no other signs of its edition.
pub fn detect(root: &Node) -> Result<Detected, UnknownEdition> {
    if let Some(version) = root.get("document").and_then(|node| node.get(DSL)) {
        return of_the_dsl(version.raw());
    }
    // A document of tasks that doesn't say its version.
    let has_list = root.get("do").is_some_and(|node| node.items().is_some());
    if has_list && root.get("states").is_none() {
        return Ok(Detected {
            edition: Edition::V1_0,
            why: "it has 'do', and no 'states'".to_owned(),
            also: Vec::new(),
            misled_by: None,
        });
    }
    for property in VERSIONS {
        let Some(node) = root.get(property) else {
            continue;
        };
        if !matches!(node.kind(), NodeKind::String | NodeKind::Number) {
            continue;
        }
        let version = node.raw().trim();
        let mut shape = Shape::of(root);
        let named = by_version(version);
        shape.is_early = named.is_none_or(|named| named < Edition::V0_5);
        if matches!(named, None | Some(Edition::V0_8)) && root.get("id").is_some() {
            // A vendor's own function type doesn't make it a document of 0.9 (docs/language.md#decision-97).
            shape
                .found
                .retain(|(_, why)| !why.starts_with(FUNCTION_TYPE));
        }
        let Some(named) = named else {
            let detected = by_shape_though(root, &shape, property, version);
            return detected.ok_or_else(|| UnknownEdition {
                property,
                version: version.to_owned(),
            });
        };
        let detected = against_version(&shape, property, version, named);
        return Ok(
            detected.unwrap_or_else(|| by_version_and_shape(&shape, property, version, named))
        );
    }
    Ok(by_shape(root))
}

/// The version of the DSL: all of 1.0 are one edition (docs/editions/1.0.md).
fn of_the_dsl(version: &str) -> Result<Detected, UnknownEdition> {
    let known = semver::Version::parse(version).ok();
    let is_early = version.starts_with("1.0.0-alpha1");
    match known.filter(|version| version.major == 1 && version.minor == 0 && !is_early) {
        Some(_) => Ok(Detected {
            edition: Edition::V1_0,
            why: format!("'document.dsl' is '{version}'"),
            also: Vec::new(),
            misled_by: None,
        }),
        None => Err(UnknownEdition {
            property: DSL,
            version: version.to_owned(),
        }),
    }
}

/// Editions that differ so much that a document of one can't be mistaken for a document of another.
fn generation(edition: Edition) -> u8 {
    match edition {
        Edition::V0_1Early | Edition::V0_1 => 0,
        Edition::V0_1Release | Edition::Tasks => 1,
        Edition::V0_5 => 2,
        Edition::V0_6 | Edition::V0_7 | Edition::V0_8 | Edition::V0_9 => 3,
        Edition::V1_0 => 4,
    }
}

/// A version that names no edition is ignored: the shape decides, as if there were no version
/// (docs/language.md#decision-97). Returns `None` if nothing looks like a workflow.
fn by_shape_though(
    root: &Node,
    shape: &Shape,
    property: &'static str,
    version: &str,
) -> Option<Detected> {
    let likely = match property {
        "specVersion" => &LIKELY_WITH_SPEC_VERSION,
        _ => &LIKELY,
    };
    let (edition, also) = shape.best(likely);
    let is_workflow = root.get("states").is_some() || root.get("tasks").is_some();
    if !is_workflow && shape.score(edition) == 0 {
        return None;
    }
    let why = reasons(root, shape, edition, likely);
    Some(Detected {
        edition,
        why: format!("{why}, though '{property}' is '{version}', which names no edition"),
        also,
        misled_by: Some(property),
    })
}

/// A version of another generation than the document's shape. If the shape is clear, it is more reliable
/// (docs/language.md#decision-97).
fn against_version(
    shape: &Shape,
    property: &'static str,
    version: &str,
    named: Edition,
) -> Option<Detected> {
    let (edition, _) = shape.best(&LIKELY);
    // "0.1" was the name of the drafts and of the release.
    let is_named = |edition: &Edition| {
        generation(*edition) == generation(named)
            || named == Edition::V0_1 && generation(*edition) < 2
    };
    if is_named(&edition) {
        return None;
    }
    let is_other = |of: &Edition| generation(*of) == generation(edition);
    let count = |speaks: &dyn Fn(&[Edition]) -> bool| {
        let found = shape.found.iter();
        found.filter(|(of, _)| speaks(of)).count()
    };
    let against = count(&|of| of.contains(&edition) && !of.iter().any(is_named));
    let of_named = count(&|of| of.iter().any(is_named) && !of.iter().any(is_other));
    let is_clear = match named {
        // The release shares many words with 0.5. They count if something is only of 0.5.
        Edition::V0_1 => {
            let kebab = |of: &[Edition]| of.iter().any(is_kebab);
            let shared = count(&|of| of.contains(&edition) && !kebab(of));
            shared > 2 && against > of_named
        }
        _ => against > 2 && of_named == 0,
    };
    // Only the draft has 'tasks'.
    let is_clear = shape.has_tasks || is_clear;
    is_clear.then(|| Detected {
        edition,
        why: format!(
            "{}, though '{property}' is '{version}'",
            shape.reasons(edition, &LIKELY)
        ),
        also: Vec::new(),
        misled_by: Some(property),
    })
}

/// "0.1" was the name of four editions, documents of 0.9 often state 0.8, some of 0.8 state 0.9, and some of 0.6 state 0.7
/// or 0.8 (docs/language.md#decision-97).
fn by_version_and_shape(
    shape: &Shape,
    property: &'static str,
    version: &str,
    named: Edition,
) -> Detected {
    let says = format!("'{property}' is '{version}'");
    let certain = match named {
        Edition::V0_7 => shape.of_0_6_for_certain().map(|why| (Edition::V0_6, why)),
        Edition::V0_8 => shape.of_0_6_clearly().map(|why| (Edition::V0_6, why)),
        Edition::V0_9 => shape.of_0_8_for_certain().map(|why| (Edition::V0_8, why)),
        _ => None,
    };
    if let Some((edition, why)) = certain {
        return Detected {
            edition,
            why: format!("{why}, though {says}"),
            also: Vec::new(),
            misled_by: Some(property),
        };
    }
    let among: &[Edition] = match named {
        Edition::V0_1 => &[
            Edition::V0_1Release,
            Edition::Tasks,
            Edition::V0_1,
            Edition::V0_1Early,
        ],
        Edition::V0_8 => &[Edition::V0_8, Edition::V0_9],
        named => {
            return Detected {
                edition: named,
                why: says,
                also: Vec::new(),
                misled_by: None,
            };
        }
    };
    let (edition, also) = shape.best(among);
    let why = match shape.reasons(edition, among) {
        // The version itself decides.
        _ if edition == Edition::V0_8 => says,
        reasons if reasons.is_empty() => says,
        reasons if named == Edition::V0_1 => format!("{says}, and {reasons}"),
        reasons => format!("{reasons}, though {says}"),
    };
    let also = if named == Edition::V0_1 {
        also
    } else {
        Vec::new()
    };
    Detected {
        edition,
        why,
        also,
        misled_by: None,
    }
}

/// The properties that exist only in some editions.
pub(crate) fn signs() -> impl Iterator<Item = &'static str> {
    SIGNS.iter().map(|sign| sign.property)
}

/// The words that exist only in some editions.
pub(crate) fn words() -> impl Iterator<Item = &'static str> {
    SIGNS.iter().filter_map(|sign| sign.keyword())
}

/// The words of a property that identify documents of an edition.
pub(crate) fn words_of(edition: Edition, property: &str) -> impl Iterator<Item = &'static str> {
    let all = SIGNS.iter();
    all.filter(move |sign| sign.property == property && sign.of.contains(&edition))
        .filter_map(|sign| sign.keyword())
}

/// Releases: 0.8.1 and v0.8 belong to edition 0.8.
fn by_version(version: &str) -> Option<Edition> {
    let version = version.trim_start_matches(['v', 'V']);
    let mut parts = version.split('.');
    let edition = match (parts.next()?, parts.next()?) {
        ("0", "1") => Edition::V0_1,
        ("0", "5") => Edition::V0_5,
        ("0", "6") => Edition::V0_6,
        ("0", "7") => Edition::V0_7,
        ("0", "8") => Edition::V0_8,
        ("0", "9") => Edition::V0_9,
        _ => return None,
    };
    let patch = match parts.next() {
        None | Some("x") => true,
        Some(patch) => !patch.is_empty() && patch.bytes().all(|byte| byte.is_ascii_digit()),
    };
    (patch && parts.next().is_none()).then_some(edition)
}

fn by_shape(root: &Node) -> Detected {
    let shape = Shape::of(root);
    let (edition, also) = shape.best(&LIKELY);
    Detected {
        edition,
        why: reasons(root, &shape, edition, &LIKELY),
        also,
        misled_by: None,
    }
}

fn reasons(root: &Node, shape: &Shape, edition: Edition, among: &[Edition]) -> String {
    match shape.reasons(edition, among) {
        reasons if !reasons.is_empty() => reasons,
        _ if root.get("states").is_some() => {
            "it has 'states', and nothing that only older editions have".to_owned()
        }
        _ => "nothing in it is of an older edition".to_owned(),
    }
}

/// The signs that a document has.
struct Shape {
    /// It has tasks and no states: only the draft with tasks is like that.
    has_tasks: bool,
    /// A key is in kebab-case, as in the drafts of 2019 and in no other edition.
    has_kebab: bool,
    /// A name is one that 0.9 doesn't allow.
    has_free_names: bool,
    /// It has an `id`, which 0.9 doesn't have.
    has_id: bool,
    /// Nothing says that it is of 0.5 or later.
    is_early: bool,
    found: Vec<(&'static [Edition], String)>,
}

/// The prefixes of signs that are function types.
const FUNCTION_TYPE: &str = "a function has 'type:";

/// The sign of errors as before 0.9, which has an object there.
const ERROR_LIST: &str = "its 'errors' is a list";

/// Whether it is one of the two drafts in kebab-case.
fn is_kebab(edition: &Edition) -> bool {
    matches!(edition, Edition::V0_1Early | Edition::V0_1)
}

impl Shape {
    fn of(root: &Node) -> Shape {
        let facts = Facts::of(root);
        let mut has_kebab = false;
        let mut found: Vec<(&'static [Edition], String)> = Vec::new();
        for sign in SIGNS {
            let Some(why) = sign.found(&facts) else {
                continue;
            };
            has_kebab |= sign.property.contains('-');
            found.push((sign.of, why));
        }
        if facts.texts.braces {
            // Later editions have other names, and this one has different expressions than all of them.
            for _ in 0..2 {
                let why = "its expressions are in '{{ }}'".to_owned();
                found.push((&[Edition::V0_5], why));
            }
        }
        if facts.texts.dollar {
            let of = &[Edition::V0_6, Edition::V0_7, Edition::V0_8, Edition::V0_9];
            found.push((of, "its expressions are in '${ }'".to_owned()));
        }
        let has_tasks = root.get("tasks").is_some() && root.get("states").is_none();
        Shape {
            has_tasks,
            has_kebab,
            has_free_names: has_free_names(&facts),
            has_id: root.get("id").is_some(),
            is_early: true,
            found,
        }
    }

    /// A sign that no document of 0.7 has: errors that are described at their handlers, or a subflow state. The reader
    /// of 0.6 accepts the names of later editions, but not their handlers.
    fn of_0_6_for_certain(&self) -> Option<&str> {
        let has = |why: &str| self.found.iter().any(|(_, found)| found == why);
        if has("an error handler has 'errorRef'") || has("an error handler has 'errorRefs'") {
            return None;
        }
        let signs = [
            "an error handler has 'error'",
            "a state has 'type: subflow'",
        ];
        signs.into_iter().find(|why| has(why))
    }

    /// Several signs that 0.6 has and later editions don't, in a document without anything that came later. One old word
    /// or two don't make a document one of 0.6: 0.8 reads them, with a warning.
    fn of_0_6_clearly(&self) -> Option<&str> {
        let is_later = |of: &[Edition]| of.contains(&Edition::V0_8) || of.contains(&Edition::V0_9);
        let is_of_0_6 = |of: &[Edition]| of.contains(&Edition::V0_6);
        let found = || self.found.iter();
        let mut only = found().filter(|(of, _)| is_of_0_6(of) && !is_later(of));
        let is_clear =
            only.clone().count() > 2 && !found().any(|(of, _)| is_later(of) && !is_of_0_6(of));
        only.next()
            .filter(|_| is_clear)
            .map(|(_, why)| why.as_str())
    }

    /// A sign that no document of 0.9 has, in a document without anything that only 0.9 has. Most signs need an `id`
    /// next to them.
    fn of_0_8_for_certain(&self) -> Option<&str> {
        let is_of = |of: &[Edition], edition| of.contains(&edition);
        let is_only_of_0_9 = |of: &[Edition]| is_of(of, Edition::V0_9) && !is_of(of, Edition::V0_8);
        if self.found.iter().any(|(of, _)| is_only_of_0_9(of)) {
            return None;
        }
        let list = self.found.iter().find(|(_, why)| why == ERROR_LIST);
        if list.is_some() || !self.has_id {
            return list.map(|(_, why)| why.as_str());
        }
        let mut found = self.found.iter();
        let found = found.find(|(of, _)| is_of(of, Edition::V0_8) && !is_of(of, Edition::V0_9));
        let names = "it has 'id', and names that 0.9 doesn't allow";
        found
            .map(|(_, why)| why.as_str())
            .or(self.has_free_names.then_some(names))
    }

    /// Something that became another property in 0.5. Whatever else such a document has in common with 0.5, it isn't of
    /// that edition, unless it has those other properties too.
    fn is_before_0_5(&self) -> bool {
        let has = |why: &&str| self.found.iter().any(|(_, found)| found == why);
        let before = [
            "a state has 'eventsActions'",
            "a state has 'onError'",
            "an event has 'correlationToken'",
        ];
        let since = ["a state has 'onEvents'", "a state has 'onErrors'"];
        // Documents of 0.5 have it too, if they were written in the summer before, together with conditions and retries
        // of 0.5.
        let has_resource = self.is_early && has(&"a function has 'resource'");
        let of_summer = [
            "the 'condition' of a condition is a string",
            "it has 'retries'",
        ];
        let is_before = before.iter().any(has) || has_resource && !of_summer.iter().any(has);
        is_before && !since.iter().any(has)
    }

    fn score(&self, edition: Edition) -> usize {
        let found = self.found.iter().filter(|(of, _)| of.contains(&edition));
        // A sign of a single edition counts more than a shared one.
        found.map(|(of, _)| if of.len() == 1 { 2 } else { 1 }).sum()
    }

    /// Keys are in kebab-case throughout the document or not at all. If none shows it, a sign that only the drafts of
    /// 2019 have (such as a timeout that is a number) counts, as long as there is no sign that only other editions
    /// have.
    fn is_kebab(&self) -> bool {
        let only = self.found.iter().any(|(of, _)| of.iter().all(is_kebab));
        let never = self.found.iter().any(|(of, _)| !of.iter().any(is_kebab));
        self.has_kebab || only && !never
    }

    /// The edition with the most signs, and all others with the same number. If there are several, the first one in
    /// `among` is chosen.
    fn best(&self, among: &[Edition]) -> (Edition, Vec<Edition>) {
        let kebab = self.is_kebab();
        let mut among: Vec<Edition> = among.to_vec();
        if among.iter().any(|edition| is_kebab(edition) == kebab) {
            among.retain(|edition| is_kebab(edition) == kebab);
        }
        if among.contains(&Edition::Tasks) && !self.has_tasks {
            among.retain(|edition| *edition != Edition::Tasks);
        }
        if self.is_before_0_5() {
            among.retain(|edition| *edition != Edition::V0_5);
        }
        // No other edition has 'tasks', whatever the case of its words.
        if among.contains(&Edition::Tasks) && self.has_tasks {
            among.retain(|edition| *edition == Edition::Tasks);
        }
        // A document with names that 0.9 refuses belongs to 0.9 only if it says so elsewhere.
        if self.has_free_names && !self.found.iter().any(|(of, _)| *of == [Edition::V0_9]) {
            among.retain(|edition| *edition != Edition::V0_9);
        }
        let scores = among.iter().map(|edition| self.score(*edition));
        let most = scores.max().unwrap_or_default();
        let mut best = among.iter().copied();
        let mut best = best.by_ref().filter(|edition| self.score(*edition) == most);
        // A document without any sign is hardly a workflow, so a list of all editions would not help.
        if most == 0 && among.contains(&Edition::V0_8) {
            return (Edition::V0_8, Vec::new());
        }
        let first = best.next().unwrap_or(Edition::V0_8);
        (first, best.collect())
    }

    /// The most significant signs of an edition: those shared with the fewest others.
    fn reasons(&self, edition: Edition, among: &[Edition]) -> String {
        let others = |of: &[Edition]| of.iter().filter(|of| among.contains(of)).count();
        let mut reasons: Vec<(usize, &str)> = self
            .found
            .iter()
            .filter(|(of, _)| of.contains(&edition) && others(of) < among.len())
            .map(|(of, why)| (others(of), why.as_str()))
            .collect();
        reasons.sort_by_key(|(others, _)| *others);
        reasons.dedup();
        reasons.truncate(2);
        let reasons: Vec<&str> = reasons.into_iter().map(|(_, why)| why).collect();
        reasons.join(" and ")
    }
}
