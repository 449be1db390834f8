//! Queries the reader for its findings about a document with a value at some location.

use std::cell::RefCell;
use std::collections::{BTreeSet, HashMap};
use std::rc::Rc;

use serde_json::{Value, json};
use swirl_documents::codes;
use swirl_documents::diagnostic::{Diagnostic, Severity};
use swirl_spec::edition::Edition;
use swirl_spec::resource::MapResources;
use swirl_spec::{Options, read_as, vocabulary};

/// Unlike any word of the language, so that no finding suggests another word for it.
pub(super) const STAND_IN: &str = "zzqqxxkkww";

/// The reader's findings about values that are wrong at their location whatever the rest of the document contains. This
/// excludes findings that depend on other parts of the document, such as an undefined name.
const REFUSING: [codes::Code; 9] = [
    codes::BAD_BATCH_SIZE,
    codes::BAD_COUNT,
    codes::BAD_DURATION,
    codes::BAD_NUMBER,
    codes::EMPTY_LIST,
    codes::NUMBER_NOT_FINITE,
    codes::UNKNOWN_VALUE,
    codes::WRONG_TYPE,
    codes::ZERO_TIMEOUT,
];

/// The reader of an edition.
pub(super) struct Reader {
    edition: Edition,
    resources: MapResources,
    options: Options,
    /// Names to try as properties, in addition to those that the reader suggests.
    pub(super) names: BTreeSet<String>,
    /// Words to try as values, in addition to those that the reader suggests.
    words: Vec<&'static str>,
    /// The reader's findings for each document.
    said: RefCell<HashMap<String, Rc<Said>>>,
    /// The accepted words, by the property's name and the reader's finding about another word.
    accepted: RefCell<HashMap<Asked, Vec<String>>>,
}

/// The name of a property, and the message and hint of a finding about its value.
type Asked = (String, String, Option<String>);

/// A document, and the location in it at which values are tried.
#[derive(Debug, Clone)]
pub(super) struct TrialLocation {
    document: Value,
    pub(super) pointer: String,
}

impl TrialLocation {
    pub(super) fn root() -> TrialLocation {
        TrialLocation {
            document: Value::Null,
            pointer: String::new(),
        }
    }

    /// The document with this value at the location.
    fn with(&self, value: Value) -> Value {
        let mut document = self.document.clone();
        if let Some(place) = document.pointer_mut(&self.pointer) {
            *place = value;
        }
        document
    }

    /// The location of a property, in an object that also has `beside`.
    pub(super) fn property(&self, mut beside: Value, name: &str) -> TrialLocation {
        beside[name] = Value::Null;
        TrialLocation {
            document: self.with(beside),
            pointer: format!("{}/{name}", self.pointer),
        }
    }

    /// The location of the only item of a list.
    pub(super) fn item(&self) -> TrialLocation {
        TrialLocation {
            document: self.with(Value::Array(vec![Value::Null])),
            pointer: format!("{}/0", self.pointer),
        }
    }

    /// The same location, with this property in an enclosing object; `None` if that has it already.
    pub(super) fn beside_above(&self, name: &str, value: Value) -> Option<TrialLocation> {
        let holder = self.pointer.trim_end_matches("/0");
        let (above, _) = holder.rsplit_once('/')?;
        let mut place = self.clone();
        let above = place.document.pointer_mut(above)?.as_object_mut()?;
        if above.contains_key(name) {
            return None;
        }
        above.insert(name.to_owned(), value);
        Some(place)
    }

    /// The name of the property that holds the value, or the list that contains it.
    pub(super) fn name(&self) -> &str {
        let mut steps = self.pointer.rsplit('/');
        let name = steps.find(|step| step.parse::<usize>().is_err());
        name.unwrap_or_default()
    }

    /// The number of steps from the root.
    pub(super) fn depth(&self) -> usize {
        self.pointer.matches('/').count()
    }
}

/// The reader's findings.
pub(super) struct Said(Vec<Diagnostic>);

impl Reader {
    pub(super) fn new(
        edition: Edition,
        names: BTreeSet<String>,
        words: Vec<&'static str>,
    ) -> Reader {
        Reader {
            edition,
            words,
            resources: MapResources::default(),
            options: Options::default(),
            names,
            said: RefCell::default(),
            accepted: RefCell::default(),
        }
    }

    pub(super) fn try_value(&self, place: &TrialLocation, value: Value) -> Rc<Said> {
        let document = place.with(value).to_string();
        if let Some(said) = self.said.borrow().get(&document) {
            return said.clone();
        }
        let reading = read_as(
            self.edition,
            document.as_bytes(),
            &self.resources,
            &self.options,
        );
        let said = Rc::new(Said(match reading {
            Ok(reading) => reading.diagnostics.into_vec(),
            Err(finding) => vec![finding],
        }));
        self.said.borrow_mut().insert(document, said.clone());
        said
    }

    /// The words that a property accepts, from the reader's finding about another word: those that it suggests, and
    /// words of other editions that it understands.
    pub(super) fn words(&self, place: &TrialLocation, finding: &Diagnostic) -> Vec<String> {
        // There are hundreds of words, and the same property is found in many objects.
        let (name, message) = (place.name().to_owned(), finding.message.clone());
        let asked = (name, message, finding.hint.clone());
        if let Some(words) = self.accepted.borrow().get(&asked) {
            return words.clone();
        }
        let mut words = quoted(&finding.message);
        words.extend(quoted(finding.hint.as_deref().unwrap_or_default()));
        words.extend(self.words.iter().map(|word| (*word).to_owned()));
        let mut once: Vec<String> = Vec::new();
        for word in words {
            let known = once.iter().any(|known| known.eq_ignore_ascii_case(&word));
            if !known && word != STAND_IN {
                once.push(word);
            }
        }
        once.retain(|word| self.try_value(place, json!(word)).refusal(place).is_none());
        self.accepted.borrow_mut().insert(asked, once.clone());
        once
    }

    /// The reader's name for an object that has `beside`, and the property names that it suggests. `None` if the reader
    /// doesn't compare the names.
    pub(super) fn compares(
        &self,
        place: &TrialLocation,
        beside: &Value,
    ) -> Option<(String, Vec<String>)> {
        let mut object = beside.clone();
        object[STAND_IN] = Value::Null;
        let said = self.try_value(place, object);
        let found = said.unknown_property(place, STAND_IN)?;
        let what = found.message.split(" has no property").next();
        let suggested = quoted(found.hint.as_deref().unwrap_or_default());
        Some((what.unwrap_or_default().to_owned(), suggested))
    }

    /// The names that an object may have in addition to its own, with any value.
    pub(super) fn taken(
        &self,
        place: &TrialLocation,
        beside: &Value,
        names: &BTreeSet<String>,
    ) -> BTreeSet<String> {
        let mut taken = BTreeSet::new();
        for value in [json!(STAND_IN), json!({}), json!(true)] {
            let said = self.try_value(place, with_names(beside, names, &value));
            let is_taken = |name: &&String| said.unknown_property(place, name).is_none();
            taken.extend(names.iter().filter(is_taken).cloned());
        }
        // Some are accepted only without the others, or beside another one.
        let mut whole = beside.clone();
        for name in [(); 2]
            .iter()
            .flat_map(|()| vocabulary::of_rules(self.edition))
        {
            if taken.contains(name) {
                continue;
            }
            let mut object = whole.clone();
            object[name] = json!(STAND_IN);
            let said = self.try_value(place, object.clone());
            if said.unknown_property(place, name).is_none() {
                taken.insert(name.to_owned());
                whole = object;
            }
        }
        taken
    }
}

/// An object with all of these names in addition to its own.
pub(super) fn with_names(beside: &Value, names: &BTreeSet<String>, value: &Value) -> Value {
    let mut object = beside.clone();
    for name in names {
        if object.get(name).is_none() {
            object[name] = value.clone();
        }
    }
    object
}

impl Said {
    /// The findings at the location itself.
    pub(super) fn at<'s, 'p: 's>(
        &'s self,
        pointer: &'p str,
    ) -> impl Iterator<Item = &'s Diagnostic> + use<'s, 'p> {
        self.0.iter().filter(move |found| found.pointer == pointer)
    }

    /// The reason why the value isn't valid at the location, if it isn't.
    pub(super) fn refusal(&self, place: &TrialLocation) -> Option<&Diagnostic> {
        let refuses = |found: &&Diagnostic| {
            found.severity == Severity::Error && REFUSING.contains(&found.code)
        };
        let mut here = self.0.iter().filter(|found| found.pointer == place.pointer);
        here.find(refuses)
    }

    /// Whether a property is refused because the object has no property with its name, and the reader's name for the
    /// object.
    pub(super) fn unknown_property(
        &self,
        place: &TrialLocation,
        name: &str,
    ) -> Option<&Diagnostic> {
        let at = format!("{}/{name}", place.pointer);
        let unknown = |found: &&Diagnostic| {
            found.pointer == at
                && found.code == codes::UNKNOWN_PROPERTY
                && found.severity == Severity::Error
        };
        self.0.iter().find(unknown)
    }

    /// The sets of properties of which one is missing.
    pub(super) fn missing(&self, place: &TrialLocation) -> Vec<Vec<String>> {
        self.groups(place, codes::MISSING_PROPERTY, |found| {
            found.hint.clone().unwrap_or_default()
        })
    }

    /// The sets of properties of which more than one is present.
    pub(super) fn exclusive(&self, place: &TrialLocation) -> Vec<Vec<String>> {
        self.groups(place, codes::EXCLUSIVE_PROPERTIES, |found| {
            found.message.clone()
        })
    }

    fn groups(
        &self,
        place: &TrialLocation,
        code: codes::Code,
        text: impl Fn(&Diagnostic) -> String,
    ) -> Vec<Vec<String>> {
        let at = self.at(&place.pointer);
        at.filter(|found| found.code == code && found.severity == Severity::Error)
            .map(|found| quoted(&text(found)))
            // A finding without a property, such as a branch without an end, is left to the reader.
            .filter(|set| !set.is_empty())
            .collect()
    }
}

/// The quoted words in a sentence.
pub(super) fn quoted(sentence: &str) -> Vec<String> {
    let parts = sentence.split('\'').skip(1).step_by(2);
    // In `end: true`, the property counts.
    parts
        .filter_map(|part| part.split(':').next())
        .filter(|word| !word.is_empty() && !word.contains(char::is_whitespace))
        .map(str::to_owned)
        .collect()
}
