//! The instances in each state of a definition, for those who can't see the picture.

use serde_json::Value;
use url::form_urlencoded::Serializer;

use crate::answer::{list, text};

pub struct Occupied {
    pub rows: Vec<Row>,
    /// The number of instances that were counted.
    pub counted: u64,
    /// There are more.
    pub is_cut: bool,
}

pub struct Row {
    /// Empty: none that is known.
    pub state: String,
    pub running: u64,
    pub waiting: u64,
    pub suspended: u64,
    pub faulted: u64,
    /// The address of those that failed; empty if no query can name the state.
    pub failed_path: String,
}

impl Occupied {
    /// Of an answer of the API. Only states with instances have a row.
    pub fn new(id: &str, version: &str, found: &Value) -> Occupied {
        let states = list(found, "states").iter();
        let mut rows: Vec<Row> = states
            .map(|one| Row::new(one, failed_path(id, version, &text(one, "state"))))
            .collect();
        rows.push(Row::new(&found["elsewhere"], String::new()));
        rows.retain(|row| row.running + row.faulted > 0);
        Occupied {
            rows,
            counted: found["counted"].as_u64().unwrap_or_default(),
            is_cut: found["complete"] == false,
        }
    }
}

impl Row {
    fn new(one: &Value, failed_path: String) -> Row {
        let figure = |name: &str| one[name].as_u64().unwrap_or_default();
        Row {
            state: text(one, "state"),
            running: figure("running"),
            waiting: figure("waiting"),
            suspended: figure("suspended"),
            faulted: figure("faulted"),
            failed_path,
        }
    }
}

fn failed_path(id: &str, version: &str, state: &str) -> String {
    let query = query(&[("workflow", id), ("version", version), ("state", state)]);
    query.map(|query| address(&query)).unwrap_or_default()
}

fn address(query: &str) -> String {
    let query = Serializer::new(String::new())
        .append_pair("query", query)
        .finish();
    format!("/console/instances?{query}")
}

/// The faulted instances with these values; `None` if a value cannot be quoted.
fn query(fields: &[(&str, &str)]) -> Option<String> {
    let mut query = "status = faulted".to_owned();
    for (name, value) in fields {
        let mark = ['"', '\'']
            .into_iter()
            .find(|mark| !value.contains(*mark))?;
        query.push_str(&format!(" and {name} = {mark}{value}{mark}"));
    }
    Some(query)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn states_without_instances_have_no_row() {
        let figures = |running: u32, faulted: u32| json!({"running": running, "waiting": 0, "suspended": 0, "faulted": faulted});
        let state = |name: &str, mut figures: Value| {
            figures["state"] = json!(name);
            figures
        };
        let found = json!({
            "states": [state("A", figures(2, 1)), state("B", figures(0, 0))],
            "elsewhere": figures(1, 0), "counted": 4, "complete": false,
        });
        let occupied = Occupied::new("order", "1", &found);
        let rows = occupied
            .rows
            .iter()
            .map(|row| (row.state.as_str(), row.running, row.faulted));
        assert_eq!(rows.collect::<Vec<_>>(), [("A", 2, 1), ("", 1, 0)]);
        assert!(occupied.is_cut && occupied.counted == 4);
        assert_eq!(
            occupied.rows[0].failed_path,
            "/console/instances?query=status+%3D+faulted+and+workflow+%3D+%22order%22+and+version+%3D+%221%22+and+state+%3D+%22A%22"
        );
    }

    #[test]
    fn names_are_quoted_with_what_they_lack() {
        let state = |name: &str| query(&[("state", name)]);
        assert_eq!(
            state("say \"hi\"").unwrap(),
            "status = faulted and state = 'say \"hi\"'"
        );
        assert_eq!(state("it's \"odd\""), None);
    }
}
