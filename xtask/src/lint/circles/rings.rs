//! Rings of three or more files, each of which uses the next one.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

/// The files that each file uses.
pub(super) type Uses<'t> = BTreeMap<&'t str, BTreeSet<&'t str>>;

/// Files that can all reach each other, along a ring of three or more.
pub(super) struct Ring<'t> {
    pub files: BTreeSet<&'t str>,
    /// The shortest ring, beginning with its first file. If several are equally short, the first one by name.
    pub shortest: Vec<&'t str>,
}

impl Ring<'_> {
    pub fn message(&self) -> String {
        let way: Vec<&str> = self
            .shortest
            .iter()
            .chain(self.shortest.first())
            .copied()
            .collect();
        let more = match self.files.len() - self.shortest.len() {
            0 => String::new(),
            _ => {
                let files: Vec<&str> = self.files.iter().copied().collect();
                format!("; all of it: {}", files.join(", "))
            }
        };
        format!("is in a ring: {}{more}", way.join(" uses "))
    }
}

/// All rings, in the order of their files. Two files that only use each other aren't a ring.
pub(super) fn find<'t>(uses: &Uses<'t>) -> Vec<Ring<'t>> {
    let mut ways: Vec<Vec<&str>> = Vec::new();
    for (one, others) in uses {
        for other in others {
            ways.extend(way_around(uses, one, other));
        }
    }
    let mut rings: Vec<Ring<'t>> = Vec::new();
    for way in ways {
        let mut files: BTreeSet<&str> = way.iter().copied().collect();
        let mut shortest = way;
        // Rings that share a file are merged.
        for ring in rings
            .extract_if(.., |ring| !ring.files.is_disjoint(&files))
            .collect::<Vec<_>>()
        {
            files.extend(ring.files);
            if (ring.shortest.len(), &ring.shortest) < (shortest.len(), &shortest) {
                shortest = ring.shortest;
            }
        }
        rings.push(Ring { files, shortest });
    }
    rings.sort_by(|one, other| one.files.cmp(&other.files));
    rings
}

/// The shortest ring that begins with these two files and includes a third one. The result begins with the first name.
fn way_around<'t>(uses: &Uses<'t>, first: &'t str, second: &'t str) -> Option<Vec<&'t str>> {
    let mut before: BTreeMap<&str, &str> = BTreeMap::from([(second, first)]);
    let mut open = VecDeque::from([second]);
    while let Some(file) = open.pop_front() {
        for next in uses.get(file).into_iter().flatten() {
            if *next == first && file != second {
                let mut way = vec![file];
                while way[way.len() - 1] != first {
                    way.push(before[way[way.len() - 1]]);
                }
                way.reverse();
                let least = way.iter().enumerate().min_by_key(|(_, file)| **file);
                let at = least.map_or(0, |(at, _)| at);
                way.rotate_left(at);
                return Some(way);
            }
            if *next != first && !before.contains_key(next) {
                before.insert(next, file);
                open.push_back(next);
            }
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(uses: &[(&'static str, &[&'static str])]) -> Vec<String> {
        let uses = uses
            .iter()
            .map(|(file, all)| (*file, all.iter().copied().collect()));
        find(&uses.collect()).iter().map(Ring::message).collect()
    }

    #[test]
    fn pairs_are_no_rings() {
        assert_eq!(
            found(&[("a", &["b", "c"]), ("b", &["a"]), ("c", &["a"])]),
            [""; 0]
        );
        assert_eq!(
            found(&[("a", &["b"]), ("b", &["c"]), ("c", &["d"])]),
            [""; 0]
        );
    }

    #[test]
    fn a_pair_may_be_part_of_a_ring() {
        let ring = [("c", &["a"][..]), ("a", &["b"]), ("b", &["a", "c"])];
        assert_eq!(found(&ring), ["is in a ring: a uses b uses c uses a"]);
    }

    #[test]
    fn rings_that_touch_are_one() {
        let rings = [
            ("a", &["b"][..]),
            ("b", &["c"]),
            ("c", &["d"]),
            ("d", &["a", "e"]),
            ("e", &["f"]),
            ("f", &["d"]),
            ("x", &["y"]),
            ("y", &["z"]),
            ("z", &["x", "a"]),
        ];
        assert_eq!(
            found(&rings),
            [
                "is in a ring: d uses e uses f uses d; all of it: a, b, c, d, e, f",
                "is in a ring: x uses y uses z uses x"
            ]
        );
    }
}
