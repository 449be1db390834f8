//! Saving and removing views, which the page of instances lists.

use serde_json::{Map, Value};

use super::instances::{FIELDS, address};
use crate::answer::{Answer, go_to};
use crate::visitor::{Form, Visitor};

pub async fn save(visitor: Visitor, form: Form) -> Answer {
    let given = FIELDS.map(|name| (name, form.get(name)));
    let given: Vec<(&str, &str)> = given
        .into_iter()
        .filter(|(_, value)| !value.is_empty())
        .collect();
    let mut view: Map<String, Value> = given
        .iter()
        .map(|(name, value)| ((*name).to_owned(), Value::from(*value)))
        .collect();
    view.insert("name".to_owned(), form.get("name").into());
    let headers = [("content-type", "application/json")];
    let body = Value::Object(view).to_string();
    visitor
        .asking
        .post(&["views"], &[], &headers, &body)
        .await?;
    let mut given = given;
    given.push(("done", "view-saved"));
    go_to(&address(&given))
}

pub async fn remove(visitor: Visitor, form: Form) -> Answer {
    visitor
        .asking
        .delete(&["views", form.get("name")], &form.reason())
        .await?;
    go_to(&address(&[("done", "view-removed")]))
}
