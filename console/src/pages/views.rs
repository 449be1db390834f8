//! Saving and removing views, which the page of instances lists.

use swirl_api::views::{REMOVE, SAVE, View, ViewName};

use super::search::{FIELDS, address};
use crate::answer::{Answer, go_to};
use crate::visitor::{Form, Visitor};

pub async fn save(visitor: Visitor, form: Form) -> Answer {
    let given = |name| Some(form.get(name)).filter(|value| !value.is_empty());
    let text = |name| given(name).map(str::to_owned);
    let view = View {
        name: form.get("name").to_owned(),
        workflow: text("workflow"),
        status: given("status").map(Into::into),
        key: text("key"),
        query: text("query"),
    };
    visitor.asking.ask(SAVE.ask().body(&view)).await?;
    let fields = FIELDS.into_iter();
    let fields = fields.filter_map(|name| Some((name, given(name)?)));
    let fields: Vec<_> = fields.chain([("done", "view-saved")]).collect();
    go_to(&address(&fields))
}

pub async fn remove(visitor: Visitor, form: Form) -> Answer {
    let view = ViewName {
        name: form.get("name").to_owned(),
    };
    let call = REMOVE.at(&view).query(form.reason_query());
    visitor.asking.ask(call).await?;
    go_to(&address(&[("done", "view-removed")]))
}
