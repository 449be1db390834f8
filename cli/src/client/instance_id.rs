//! Finds the instance that a command names by its id, the beginning of an id, or a business key.

use std::fmt::Write;

use anyhow::bail;
use swirl_api::instance::{InstanceSummary, LIST, ListQuery};
use swirl_presentation::timeline::clean;

use super::Client;

/// The length of an id, in digits.
const DIGITS: usize = 24;
/// The number of instances listed when a name is ambiguous.
const NAMED_MAX: u32 = 5;

impl Client {
    /// Resolves the beginning of an id to the only instance whose id begins with it. An unknown name stays unchanged,
    /// so that the server refuses it.
    ///
    /// # Errors
    /// No server answers, or several ids begin with it.
    pub async fn instance(&self, name: &str) -> anyhow::Result<String> {
        if !may_begin_an_id(name) {
            return Ok(name.to_owned());
        }
        let query = ListQuery {
            prefix: Some(name.to_owned()),
            limit: Some(NAMED_MAX + 1),
            ..ListQuery::default()
        };
        match self.ask(LIST.ask().query(query)).await?.0 {
            Ok(found) => chosen(name, &found.instances),
            Err(_) => Ok(name.to_owned()),
        }
    }
}

fn may_begin_an_id(name: &str) -> bool {
    let is_digit = |c: char| c.is_ascii_digit() || ('a'..='f').contains(&c);
    (1..DIGITS).contains(&name.len()) && name.chars().all(is_digit)
}

fn chosen(name: &str, found: &[InstanceSummary]) -> anyhow::Result<String> {
    match found {
        [] => Ok(name.to_owned()),
        [one] => Ok(one.id.clone()),
        all if all.iter().any(|one| one.id == name) => Ok(name.to_owned()),
        all => {
            let (mut list, shown) = (String::new(), NAMED_MAX as usize);
            for one in all.iter().take(shown) {
                let (id, workflow, version) = (&one.id, &one.workflow, &one.version);
                let line = format!("{id}  {workflow}:{version}  {}", one.status);
                let _ = write!(list, "\n  {}", clean(&line));
            }
            if all.len() > shown {
                list.push_str("\n  …");
            }
            bail!("several ids begin with '{name}': use more digits{list}")
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn found(ids: &[&str]) -> Vec<InstanceSummary> {
        let one = |id: &&str| {
            let one = json!({"id": id, "workflow": "order", "version": "1", "status": "running",
                "suspended": false, "startedAt": "2024-01-31T09:00:00Z"});
            serde_json::from_value(one).unwrap()
        };
        ids.iter().map(one).collect()
    }

    #[test]
    fn beginnings_of_ids_are_recognised() {
        for (name, expected) in [
            ("2f6c", true),
            ("2", true),
            ("2f6c0d9b31a84e572f6c0d9", true),
            ("2f6c0d9b31a84e572f6c0d9b", false),
            ("", false),
            ("2F", false),
            ("orders/7", false),
            ("order", false),
        ] {
            assert_eq!(may_begin_an_id(name), expected, "{name}");
        }
    }

    #[test]
    fn an_ambiguous_beginning_is_an_error() {
        assert_eq!(chosen("2f", &[]).unwrap(), "2f");
        assert_eq!(chosen("2f", &found(&["2f6c"])).unwrap(), "2f6c");
        assert_eq!(chosen("2f", &found(&["2f6c", "2f"])).unwrap(), "2f");
        let many = ["2f1", "2f2", "2f3", "2f4", "2f5", "2f6"];
        let error = chosen("2f", &found(&many)).unwrap_err().to_string();
        insta::assert_snapshot!(error, @"
        several ids begin with '2f': use more digits
          2f1  order:1  running
          2f2  order:1  running
          2f3  order:1  running
          2f4  order:1  running
          2f5  order:1  running
          …
        ");
    }
}
