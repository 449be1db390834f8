//! The differences between two JSON values, for people: what was added, changed and removed, with paths.

use serde_json::Value;
use swirl_api::changes::{Change, ChangeKind};
use swirl_model::redact::CUT;

/// Limits: differences that are listed, the depth to which members are compared, and the length of a shown value.
const CHANGES_MAX: usize = 200;
const DEPTH_MAX: usize = 32;
const TEXT_CHARS_MAX: usize = 1_000;

/// The differences between two values.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub struct Changes {
    pub all: Vec<Change>,
    /// There are more.
    pub is_cut: bool,
}

/// Compares an older value with a newer one. Secrets that were cut out of the older value count as unchanged.
pub fn changes(before: &Value, after: &Value) -> Changes {
    let mut changes = Changes::default();
    changes.compare(&mut String::new(), before, after, 0);
    changes
}

impl Changes {
    fn compare(&mut self, path: &mut String, before: &Value, after: &Value, depth: usize) {
        if before == after || self.is_cut || is_hidden(before, after) {
            return;
        }
        match (before, after) {
            (Value::Object(before), Value::Object(after)) if depth < DEPTH_MAX => {
                for (name, old) in before {
                    let new = after.get(name);
                    self.within(path, name, Some(old), new, depth);
                }
                for (name, new) in after {
                    if !before.contains_key(name) {
                        self.within(path, name, None, Some(new), depth);
                    }
                }
            }
            (Value::Array(before), Value::Array(after)) if depth < DEPTH_MAX => {
                self.elements(path, before, after, depth);
            }
            _ => self.add(path, Some(before), Some(after)),
        }
    }

    /// Elements that both arrays begin or end with are the same; the others are compared in their order.
    fn elements(&mut self, path: &mut String, before: &[Value], after: &[Value], depth: usize) {
        let same = |(old, new): &(&Value, &Value)| old == new;
        let first = before.iter().zip(after).take_while(same).count();
        let (old, new) = (&before[first..], &after[first..]);
        let last = old.iter().rev().zip(new.iter().rev());
        let last = last.take_while(same).count();
        let (old, new) = (&old[..old.len() - last], &new[..new.len() - last]);
        for at in 0..old.len().max(new.len()) {
            if self.is_cut {
                return;
            }
            let name = (first + at).to_string();
            self.within(path, &name, old.get(at), new.get(at), depth);
        }
    }

    fn within(
        &mut self,
        path: &mut String,
        name: &str,
        before: Option<&Value>,
        after: Option<&Value>,
        depth: usize,
    ) {
        let length = path.len();
        path.push('/');
        path.push_str(&name.replace('~', "~0").replace('/', "~1"));
        match (before, after) {
            (Some(before), Some(after)) => self.compare(path, before, after, depth + 1),
            (before, after) => self.add(path, before, after),
        }
        path.truncate(length);
    }

    fn add(&mut self, path: &str, before: Option<&Value>, after: Option<&Value>) {
        if self.all.len() >= CHANGES_MAX {
            self.is_cut = true;
            return;
        }
        self.all.push(Change {
            path: path.to_owned(),
            kind: match (before, after) {
                (None, _) => ChangeKind::Added,
                (_, None) => ChangeKind::Removed,
                _ => ChangeKind::Changed,
            },
            before: before.map(shown),
            after: after.map(shown),
        });
    }
}

fn shown(value: &Value) -> String {
    crate::text::cut(&value.to_string(), TEXT_CHARS_MAX)
}

/// Whether the older value is the newer one without its secrets.
fn is_hidden(before: &Value, after: &Value) -> bool {
    let Value::String(before) = before else {
        return false;
    };
    if before == CUT {
        return true;
    }
    let (Some((begin, _)), Some((_, end)), Value::String(after)) =
        (before.split_once(CUT), before.rsplit_once(CUT), after)
    else {
        return false;
    };
    after.len() >= begin.len() + end.len() && after.starts_with(begin) && after.ends_with(end)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn told(before: Value, after: Value) -> Vec<String> {
        let changes = changes(&before, &after);
        assert!(!changes.is_cut);
        let texts = changes.all.into_iter().map(|change| {
            let (before, after) = (change.before, change.after);
            let [before, after] = [before, after].map(Option::unwrap_or_default);
            format!("{} {} {before}>{after}", change.kind.as_str(), change.path)
        });
        texts.collect()
    }

    #[test]
    fn members_are_added_changed_and_removed() {
        let before = json!({"a": 1, "b": {"c": [1, 2], "d~/": null}, "gone": [true]});
        let after = json!({"a": 1, "b": {"c": [1, 3], "d~/": "x"}, "new": {"e": 1}});
        assert_eq!(
            told(before, after),
            [
                "changed /b/c/1 2>3",
                "changed /b/d~0~1 null>\"x\"",
                "removed /gone [true]>",
                "added /new >{\"e\":1}",
            ]
        );
        assert_eq!(told(json!(1), json!(1)), [""; 0]);
        assert_eq!(told(json!(1), json!([1])), ["changed  1>[1]"]);
    }

    #[test]
    fn elements_that_move_are_not_changes() {
        assert_eq!(told(json!([1, 2, 3]), json!([0, 1, 2, 3])), ["added /0 >0"]);
        assert_eq!(told(json!([1, 2, 3]), json!([1, 3])), ["removed /1 2>"]);
        assert_eq!(
            told(json!([1, 2, 3]), json!([1, 5, 6, 3])),
            ["changed /1 2>5", "added /2 >6"]
        );
    }

    #[test]
    fn hidden_secrets_are_not_changes() {
        let before = json!({"a": "***", "b": "Bearer ***!", "c": "Bearer ***!"});
        let after = json!({"a": 7, "b": "Bearer x!", "c": "other"});
        assert_eq!(
            told(before, after),
            ["changed /c \"Bearer ***!\">\"other\""]
        );
    }

    #[test]
    fn the_list_and_its_values_are_bounded() {
        let many: Vec<usize> = (0..CHANGES_MAX + 1).collect();
        let found = changes(&json!([]), &json!(many));
        assert!(found.is_cut && found.all.len() == CHANGES_MAX);
        let found = changes(&json!(null), &json!("é".repeat(5_000)));
        let after = found.all[0].after.as_deref().unwrap();
        assert!(after.chars().count() <= TEXT_CHARS_MAX + 1, "{after}");
        let nested = |leaf: i32| (0..100).fold(json!(leaf), |inner, _| json!({ "a": inner }));
        let found = changes(&nested(1), &nested(2));
        assert_eq!(found.all[0].path, "/a".repeat(DEPTH_MAX));
    }
}
