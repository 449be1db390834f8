//! The instances in each state of a definition, for those who can't see the picture.

use swirl_api::definitions::{Occupancy, States};
use url::form_urlencoded::Serializer;

pub struct Occupied {
    pub rows: Vec<Row>,
    /// The number of instances that were counted.
    pub counted: usize,
    /// There are more.
    pub is_cut: bool,
}

pub struct Row {
    /// Empty: none that is known.
    pub state: String,
    pub instances: Occupancy,
    /// The address of those that failed; empty if no query can name the state.
    pub failed_path: String,
}

impl Occupied {
    /// Only states with instances have a row.
    pub fn new(found: States) -> Occupied {
        let (workflow, version) = (found.workflow, found.version);
        let states = found.states.into_iter().map(|one| Row {
            failed_path: failed_path(&workflow, &version, &one.state),
            state: one.state,
            instances: one.instances,
        });
        let mut rows: Vec<Row> = states.collect();
        rows.push(Row {
            state: String::new(),
            instances: found.elsewhere,
            failed_path: String::new(),
        });
        rows.retain(|row| row.instances.running + row.instances.faulted > 0);
        Occupied {
            rows,
            counted: found.counted,
            is_cut: !found.complete,
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
        let state = |name: &str, mut figures: serde_json::Value| {
            figures["state"] = json!(name);
            figures
        };
        let found = json!({
            "workflow": "order", "version": "1",
            "states": [state("A", figures(2, 1)), state("B", figures(0, 0))],
            "elsewhere": figures(1, 0), "counted": 4, "complete": false,
        });
        let occupied = Occupied::new(serde_json::from_value(found).unwrap());
        let rows = occupied.rows.iter().map(|row| {
            (
                row.state.as_str(),
                row.instances.running,
                row.instances.faulted,
            )
        });
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
