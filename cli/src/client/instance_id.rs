//! Finds the instance that a command names by its id, the beginning of an id, or a business key.

use std::fmt::Write;

use anyhow::bail;
use serde_json::Value;
use swirl_presentation::timeline::shown;

use super::Client;

/// The length of an id, in digits.
const DIGITS: usize = 24;
/// The number of instances listed when a name is ambiguous.
const NAMED_MAX: usize = 5;

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
        let limit = (NAMED_MAX + 1).to_string();
        let query = [("prefix", name), ("limit", &limit)];
        let answer = self.get(&["instances"], &query).await?;
        if answer.refused() {
            return Ok(name.to_owned());
        }
        let found = answer.body["instances"].as_array();
        chosen(name, found.map_or(&[], Vec::as_slice))
    }
}

fn may_begin_an_id(name: &str) -> bool {
    let is_digit = |c: char| c.is_ascii_digit() || ('a'..='f').contains(&c);
    (1..DIGITS).contains(&name.len()) && name.chars().all(is_digit)
}

fn chosen(name: &str, found: &[Value]) -> anyhow::Result<String> {
    let ids: Vec<String> = found.iter().map(|one| shown(&one["id"])).collect();
    match &ids[..] {
        [] => Ok(name.to_owned()),
        [id] => Ok(id.clone()),
        ids if ids.iter().any(|id| id == name) => Ok(name.to_owned()),
        _ => {
            let mut list = String::new();
            for one in found.iter().take(NAMED_MAX) {
                let (id, workflow) = (shown(&one["id"]), shown(&one["workflow"]));
                let (version, status) = (shown(&one["version"]), shown(&one["status"]));
                let _ = write!(list, "\n  {id}  {workflow}:{version}  {status}");
            }
            if found.len() > NAMED_MAX {
                list.push_str("\n  …");
            }
            bail!("several ids begin with '{name}': give more digits{list}")
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn found(ids: &[&str]) -> Vec<Value> {
        let one =
            |id: &&str| json!({"id": id, "workflow": "order", "version": "1", "status": "running"});
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
        several ids begin with '2f': give more digits
          2f1  order:1  running
          2f2  order:1  running
          2f3  order:1  running
          2f4  order:1  running
          2f5  order:1  running
          …
        ");
    }
}
