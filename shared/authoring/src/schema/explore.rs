//! Explores the objects of a definition, from the top down to the last property, and the values that each of their
//! properties may have.

use std::collections::{BTreeSet, HashMap};

use serde_json::{Value, json};
use swirl_documents::codes;

use super::ask::{Reader, STAND_IN, TrialLocation, with_names};
use super::known::{LanguageObject, Pair, Property, Required};
use super::shape::{List, Object, Shape, scalars};
use super::spelling::spellings;

/// The depth of the exploration. Deeper values may be anything.
const DEPTH_MAX: usize = 24;

/// Identifies an object: the property that holds it, the reader's name for it, the word of its variant, and its
/// properties.
type Signature = (String, String, String, BTreeSet<String>);

/// The objects found so far, without duplicates.
pub(super) struct Explorer<'r> {
    reader: &'r Reader,
    pub(super) objects: Vec<LanguageObject>,
    by_signature: Vec<(Signature, usize)>,
    /// The names that the reader accepts in an object, by the property that holds it, its current properties, and the
    /// reader's name and suggestions for it.
    taken: HashMap<(String, String, String, Vec<String>), BTreeSet<String>>,
}

/// The properties found for an object, and the reader's name for it.
struct Compared {
    what: String,
    names: BTreeSet<String>,
}

impl<'r> Explorer<'r> {
    pub(super) fn new(reader: &'r Reader) -> Explorer<'r> {
        Explorer {
            reader,
            objects: Vec::new(),
            by_signature: Vec::new(),
            taken: HashMap::new(),
        }
    }

    /// The definition itself, with these properties.
    pub(super) fn definition(&mut self, names: &[&str]) -> usize {
        let place = TrialLocation::root();
        let names = names.iter().map(|name| (*name).to_owned()).collect();
        let compared = Compared {
            what: String::new(),
            names: self.reader.taken(&place, &json!({}), &names),
        };
        let index = self.known(&place, compared, &json!({}), "");
        self.objects[index].is_open = true;
        index
    }

    fn shape(&mut self, place: &TrialLocation) -> Shape {
        if place.depth() >= DEPTH_MAX {
            return Shape::anything();
        }
        let (mut shape, mut is_silent) = scalars(self.reader, place);
        let mut accepts = |value: Value| {
            let said = self.reader.try_value(place, value);
            is_silent &= said.at(&place.pointer).next().is_none();
            said.refusal(place).is_none()
        };
        let (empty, full) = (accepts(json!([])), accepts(json!([STAND_IN])));
        let mut object = accepts(json!({}));
        if full {
            let items = self.shape(&place.item());
            if !object && let Some(Object::Known(one)) = items.objects.first() {
                // Some readers accept a single value as a list of one.
                let one = self.objects[*one].sample.clone();
                object = self.reader.try_value(place, one).refusal(place).is_none();
            }
            shape.list = Some(List {
                items: Box::new(items),
                may_be_empty: empty,
            });
        }
        if object {
            shape.objects = vec![self.object(place)];
        }
        let items = shape.list.as_ref().is_some_and(|list| list.items.anything);
        let deep = place.depth() + 1 >= DEPTH_MAX;
        if is_silent && shape.objects == [Object::Free] && (items || deep) {
            return Shape::anything();
        }
        shape
    }

    fn object(&mut self, place: &TrialLocation) -> Object {
        let base = self.compared(place, &json!({}));
        for (property, words) in self.words(place, base.as_ref()) {
            if let Some(variants) = self.variants(place, &property, &words) {
                let missing = self.reader.try_value(place, json!({})).missing(place);
                let is_required = missing.iter().any(|set| *set == [property.as_str()]);
                let absent = base.filter(|_| !is_required);
                return Object::Known(self.varied(place, absent, &property, variants));
            }
        }
        if base.as_ref().is_some_and(|base| self.is_torn(place, base)) {
            return Object::Free;
        }
        match base {
            None => Object::Free,
            Some(compared) => Object::Known(self.known(place, compared, &json!({}), "")),
        }
    }

    /// Whether one of the properties turns it into another object, in which other properties aren't allowed. A schema
    /// without a deciding word can't express that.
    fn is_torn(&self, place: &TrialLocation, base: &Compared) -> bool {
        let suggested = self.reader.compares(place, &json!({}));
        let suggested = suggested.map(|(_, names)| names).unwrap_or_default();
        suggested.iter().any(|name| !base.names.contains(name))
    }

    /// The names that the reader accepts in an object that has `beside`; `None` if it doesn't compare them.
    fn compared(&mut self, place: &TrialLocation, beside: &Value) -> Option<Compared> {
        let (what, suggested) = self.reader.compares(place, beside)?;
        let holder = place.name().to_owned();
        let key = (holder, beside.to_string(), what.clone(), suggested);
        let names = match self.taken.get(&key) {
            Some(names) => names.clone(),
            None => {
                let mut names = self.reader.names.clone();
                names.extend(key.3.iter().flat_map(|name| spellings(name)));
                let names = self.reader.taken(place, beside, &names);
                self.taken.insert(key, names.clone());
                names
            }
        };
        Some(Compared { what, names })
    }

    /// The properties that accept only certain words, and these words.
    fn words(&self, place: &TrialLocation, base: Option<&Compared>) -> Vec<(String, Vec<String>)> {
        let names = base.map_or(&self.reader.names, |base| &base.names);
        let whole = with_names(&json!({}), names, &json!(STAND_IN));
        let said = self.reader.try_value(place, whole);
        let mut all = Vec::new();
        for name in names {
            let at = format!("{}/{name}", place.pointer);
            let mut found = said.at(&at);
            let Some(found) = found.find(|found| found.code == codes::UNKNOWN_VALUE) else {
                continue;
            };
            let beside = place.property(json!({}), name);
            let mut words = self.reader.words(&beside, found);
            words.retain(|word| word != name);
            all.push((name.clone(), words));
        }
        all
    }

    /// The variants of an object, which differ in the word of a property.
    fn variants(
        &mut self,
        place: &TrialLocation,
        property: &str,
        words: &[String],
    ) -> Option<Vec<(String, Compared)>> {
        let of_word = |word: &String| {
            let beside = json!({property: word});
            let (what, suggested) = self.reader.compares(place, &beside)?;
            let below = suggested.iter().map(|name| {
                let child = place.property(beside.clone(), name);
                self.reader.compares(&child, &json!({}))
            });
            let below: Vec<_> = below.collect();
            Some((what, suggested, below))
        };
        let all: Option<Vec<_>> = words.iter().map(of_word).collect();
        let all = all?;
        if all.iter().all(|other| Some(other) == all.first()) {
            return None;
        }
        let words = words.iter().map(|word| {
            let compared = self.compared(place, &json!({property: word}))?;
            Some((word.clone(), compared))
        });
        words.collect()
    }

    fn varied(
        &mut self,
        place: &TrialLocation,
        absent: Option<Compared>,
        property: &str,
        variants: Vec<(String, Compared)>,
    ) -> usize {
        let what = variants[0].1.what.clone();
        let names = variants.iter().flat_map(|(_, one)| one.names.clone());
        let by = format!("by {property}");
        let signature = (place.name().to_owned(), what.clone(), by, names.collect());
        if let Some(index) = self.found(&signature) {
            return index;
        }
        let index = self.objects.len();
        self.objects.push(LanguageObject {
            what,
            ..LanguageObject::default()
        });
        self.by_signature.push((signature, index));
        let mut all = Vec::new();
        for (word, compared) in variants {
            let beside = json!({property: word});
            let of_word = self.known(place, compared, &beside, &word);
            all.push((word, of_word));
        }
        if let Some(absent) = absent {
            // The variant without the property.
            let absent = self.known(place, absent, &json!({}), "");
            all.push((String::new(), absent));
        }
        self.objects[index].sample = self.objects[all[0].1].sample.clone();
        self.objects[index].variants = Some((property.to_owned(), all));
        index
    }

    fn found(&self, signature: &Signature) -> Option<usize> {
        let mut all = self.by_signature.iter();
        all.find(|(known, _)| known == signature)
            .map(|(_, index)| *index)
    }

    /// Explores an object. Required properties come first, so that the others are tried in an object that can be read.
    fn known(
        &mut self,
        place: &TrialLocation,
        compared: Compared,
        beside: &Value,
        word: &str,
    ) -> usize {
        let Compared { what, names } = compared;
        let name = place.name().to_owned();
        let signature = (name, what.clone(), word.to_owned(), names.clone());
        if let Some(index) = self.found(&signature) {
            return index;
        }
        let index = self.objects.len();
        self.objects.push(LanguageObject {
            what,
            sample: beside.clone(),
            ..LanguageObject::default()
        });
        self.by_signature.push((signature, index));
        let mut least = beside.clone();
        let mut missing: Vec<Vec<String>> = Vec::new();
        let mut shapes: Vec<(String, Shape)> = Vec::new();
        // Some are reported as missing only when others are present.
        loop {
            let said = self.reader.try_value(place, least.clone());
            let mut further = said.missing(place);
            further.retain(|set| !missing.contains(set));
            if further.is_empty() {
                break;
            }
            for set in &further {
                let Some(name) = set.iter().find(|name| names.contains(*name)) else {
                    continue;
                };
                if beside.get(name).is_some() || least.get(name).is_some() {
                    continue;
                }
                let shape = self.shape(&place.property(least.clone(), name));
                if let Some(sample) = self.samples(&shape).into_iter().next() {
                    least[name] = sample;
                }
                shapes.push((name.clone(), shape));
            }
            missing.append(&mut further);
        }
        self.objects[index].sample = least.clone();
        for name in &names {
            if shapes.iter().any(|(known, _)| known == name) {
                continue;
            }
            let shape = self.property(place, &least, &missing, name);
            shapes.push((name.clone(), shape));
        }
        shapes.sort_by(|(one, _), (other, _)| one.cmp(other));
        let required = self.required(place, &least, &missing, &shapes, beside);
        let required_for = self.required_for(place, &least, &shapes, beside);
        let exclusive = self.exclusive(place, &least, &missing, &shapes);
        let properties = shapes.into_iter().map(|(name, shape)| {
            let is_other_editions = self.is_other_editions(place, &least, &name, &shape);
            Property {
                name,
                shape,
                is_other_editions,
            }
        });
        let properties = properties.collect();
        let known = &mut self.objects[index];
        known.properties = properties;
        known.required = required;
        known.required_for = required_for;
        known.exclusive = exclusive;
        index
    }

    /// Explores the values of a property beside the required ones, once for each alternative set of required
    /// properties.
    fn property(
        &mut self,
        place: &TrialLocation,
        least: &Value,
        missing: &[Vec<String>],
        name: &str,
    ) -> Shape {
        let own = |set: &&Vec<String>| set.iter().any(|member| member == name);
        let mut others = least.clone();
        if let (Some(set), Some(members)) = (missing.iter().find(own), others.as_object_mut()) {
            // Only one of them may be present.
            members.retain(|other, _| !set.contains(other));
        }
        let mut shape = self.shape(&place.property(others.clone(), name));
        let compares = |beside: &Value| {
            let place = place.property(beside.clone(), name);
            self.reader.compares(&place, &json!({}))
        };
        let usual = compares(&others);
        let mut further = Vec::new();
        for set in missing.iter().filter(|set| set.len() > 1 && !own(set)) {
            for other in set
                .iter()
                .filter(|other| least.get(other.as_str()).is_none())
            {
                let mut beside = others.clone();
                if let Some(members) = beside.as_object_mut() {
                    members.retain(|other, _| !set.contains(other));
                    members.insert(other.clone(), json!([{}]));
                }
                if compares(&beside) != usual {
                    further.push(beside);
                }
            }
        }
        for beside in further {
            shape = shape.or(self.shape(&place.property(beside, name)));
        }
        shape
    }

    fn samples(&self, shape: &Shape) -> Vec<Value> {
        shape.samples(&|index| self.objects[index].sample.clone())
    }

    /// The sets of which one property is required. A property in whose presence none of a set is missing belongs to the
    /// set.
    fn required(
        &self,
        place: &TrialLocation,
        least: &Value,
        missing: &[Vec<String>],
        shapes: &[(String, Shape)],
        beside: &Value,
    ) -> Vec<Required> {
        let mut all = Vec::new();
        for set in missing {
            let mut without = least.clone();
            if let Some(members) = without.as_object_mut() {
                members.retain(|name, _| !set.contains(name));
            }
            let is_missed = |object: Value| {
                self.reader
                    .try_value(place, object)
                    .missing(place)
                    .contains(set)
            };
            if !is_missed(without.clone()) || self.is_said_above(place, &without, set) {
                continue;
            }
            // A property that is missing because of a word is required for that word.
            let other_words = shapes.iter().flat_map(|(name, shape)| {
                let words = match without.get(name) {
                    Some(_) if beside.get(name).is_none() => shape.words(),
                    _ => &[],
                };
                words.iter().map(move |word| (name, word))
            });
            let mut other_words = other_words.map(|(name, word)| {
                let mut object = without.clone();
                object[name] = json!(word);
                object
            });
            if other_words.any(|object| !is_missed(object)) {
                continue;
            }
            let helps = |(name, shape): &&(String, Shape)| {
                self.samples(shape).into_iter().any(|sample| {
                    let mut with = without.clone();
                    with[name] = sample;
                    !is_missed(with)
                })
            };
            let others = shapes.iter().filter(|(name, _)| beside.get(name).is_none());
            let of_set = others.filter(helps).map(|(name, _)| name.clone());
            let marks = self.marks(&without, shapes, set).into_iter();
            let required = Required {
                own: of_set.collect(),
                of_items: marks
                    .filter(|(list, name)| {
                        let mut with = without.clone();
                        with[list][0][name] = json!(true);
                        !is_missed(with)
                    })
                    .collect(),
            };
            let is_any = !required.own.is_empty() || !required.of_items.is_empty();
            if is_any && !all.contains(&required) {
                all.push(required);
            }
        }
        all
    }

    /// The flags of items in the object's lists: the list, and the flag's name.
    fn marks(
        &self,
        object: &Value,
        shapes: &[(String, Shape)],
        set: &[String],
    ) -> Vec<(String, String)> {
        let mut all = Vec::new();
        for (list, shape) in shapes {
            let items = shape.list.as_ref().map(|list| &list.items.objects);
            let item = object[list].as_array().and_then(|items| items.first());
            // An object that is being explored has no sample yet.
            if item.is_some_and(|item| item.is_object() || item.is_null())
                && let Some(Object::Known(index)) = items.and_then(|objects| objects.first())
            {
                let known = &self.objects[*index];
                let variants = known.variants.iter().flat_map(|(_, variants)| variants);
                let variants = variants.map(|(_, index)| &self.objects[*index]);
                let properties = variants.chain([known]).flat_map(|known| &known.properties);
                let flags = properties.filter(|property| property.shape.boolean);
                let mut names: BTreeSet<&String> = flags.map(|property| &property.name).collect();
                if names.is_empty() {
                    // It is being explored: a branch has states, which have branches.
                    names.extend(self.reader.names.iter().chain(set));
                }
                all.extend(names.into_iter().map(|name| (list.clone(), name.clone())));
            }
        }
        all
    }

    /// The sets that are missing only beside a word.
    fn required_for(
        &self,
        place: &TrialLocation,
        least: &Value,
        shapes: &[(String, Shape)],
        beside: &Value,
    ) -> Vec<(String, String, Vec<String>)> {
        let missed = |object: &Value| {
            let said = self.reader.try_value(place, object.clone());
            said.missing(place)
        };
        let always = missed(least);
        let mut all = Vec::new();
        for (name, shape) in shapes {
            if beside.get(name).is_some() {
                continue;
            }
            for word in shape.words() {
                let mut object = least.clone();
                object[name] = json!(word);
                for set in missed(&object) {
                    if always.contains(&set) {
                        continue;
                    }
                    let helps = |(other, shape): &&(String, Shape)| {
                        object.get(other).is_none()
                            && self.samples(shape).into_iter().any(|sample| {
                                let mut with = object.clone();
                                with[other] = sample;
                                !missed(&with).contains(&set)
                            })
                    };
                    let of_set = shapes.iter().filter(helps).map(|(name, _)| name.clone());
                    let of_set: Vec<String> = of_set.collect();
                    if !of_set.is_empty() {
                        all.push((name.clone(), word.clone(), of_set));
                    }
                }
            }
        }
        all
    }

    /// Whether one of a set may be missing because an enclosing object provides it: a state's `end` applies to its
    /// entries.
    fn is_said_above(&self, place: &TrialLocation, object: &Value, set: &[String]) -> bool {
        set.iter().any(|name| {
            let Some(above) = place.beside_above(name, json!(true)) else {
                return false;
            };
            let mut object = object.clone();
            object[STAND_IN] = Value::Null;
            let said = self.reader.try_value(&above, object);
            let is_read = said.unknown_property(&above, STAND_IN).is_some();
            is_read && !said.missing(&above).iter().any(|missed| missed == set)
        })
    }

    /// The pairs that the reader refuses whatever their values are, unless the value of one is empty.
    fn exclusive(
        &self,
        place: &TrialLocation,
        least: &Value,
        missing: &[Vec<String>],
        shapes: &[(String, Shape)],
    ) -> Vec<Pair> {
        let mut whole = least.clone();
        for (name, shape) in shapes {
            if let Some(sample) = self.samples(shape).into_iter().next() {
                whole[name] = sample;
            }
        }
        // If each of several properties could be the missing one, having several may be too many.
        let mut groups = self.reader.try_value(place, whole).exclusive(place);
        groups.extend(missing.iter().cloned());
        let mut pairs: Vec<Pair> = Vec::new();
        for group in groups {
            for (at, one) in group.iter().enumerate() {
                for other in &group[at + 1..] {
                    let names = [one, other];
                    if pairs
                        .iter()
                        .any(|pair| names.iter().all(|name| pair.names.contains(name)))
                    {
                        continue;
                    }
                    let [Some(first), Some(second)] = names.map(|name| self.values(name, shapes))
                    else {
                        continue;
                    };
                    let refused = |a: &Value, b: &Value| {
                        let mut both = least.clone();
                        both[one] = a.clone();
                        both[other] = b.clone();
                        let said = self.reader.try_value(place, both);
                        let groups = said.exclusive(place);
                        groups
                            .iter()
                            .any(|all| all.contains(one) && all.contains(other))
                    };
                    if first.iter().all(|a| second.iter().all(|b| refused(a, b))) {
                        let ignored = |it: &dyn Fn(&Value) -> bool| -> Vec<Value> {
                            // Serialisers write null or an empty value for unset properties.
                            let nothing = [json!(false), Value::Null, json!("")].into_iter();
                            nothing.filter(|value| !it(value)).collect()
                        };
                        let nothing = [
                            ignored(&|a: &Value| second.iter().all(|b| refused(a, b))),
                            ignored(&|b: &Value| first.iter().all(|a| refused(a, b))),
                        ];
                        pairs.push(Pair {
                            names: names.map(Clone::clone),
                            nothing,
                        });
                    }
                }
            }
        }
        pairs.sort_by(|one, other| one.names.cmp(&other.names));
        pairs.dedup_by(|one, other| one.names == other.names);
        pairs
    }

    /// Non-empty values of a property, if there are any.
    fn values(&self, name: &str, shapes: &[(String, Shape)]) -> Option<Vec<Value>> {
        let (_, shape) = shapes.iter().find(|(known, _)| known == name)?;
        let mut values = self.samples(shape);
        values.retain(|value| !value.is_null() && *value != json!(false) && *value != json!(""));
        (!values.is_empty()).then_some(values)
    }

    fn is_other_editions(
        &self,
        place: &TrialLocation,
        least: &Value,
        name: &str,
        shape: &Shape,
    ) -> bool {
        let at = format!("{}/{name}", place.pointer);
        let samples = self.samples(shape);
        !samples.is_empty()
            && samples.into_iter().all(|sample| {
                let mut with = least.clone();
                with[name] = sample;
                let said = self.reader.try_value(place, with);
                said.at(&at)
                    .any(|found| found.code == codes::OTHER_EDITIONS_NAME)
            })
    }
}
