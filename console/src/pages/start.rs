//! Starting an instance, with a form made from the schema of its input.

use askama::Template;
use axum::extract::{Path, Query};
use axum::http::StatusCode;
use serde::Deserialize;
use swirl_api::actions::Json;
use swirl_api::definitions::{self, Version};
use swirl_api::instance::{GET, InstanceId};
use swirl_api::schedules::Workflow;
use swirl_api::start::{START, StartQuery};
use swirl_model::Data;

use super::instance::parsed;
use crate::answer::{Answer, go_to, with_status};
use crate::asking::segment;
use crate::form::{Field, fields, fill, filled};
use crate::shell::Shell;
use crate::visitor::{Form, Visitor, draw};

#[derive(Template)]
#[template(path = "start.html")]
struct Page {
    shell: Shell,
    id: String,
    version: String,
    path: String,
    fields: Vec<Field>,
    json: String,
    /// The types of the events that start it.
    events: Vec<String>,
    /// The same form sent again starts the same instance.
    key: String,
    refused: String,
}

impl Page {
    async fn new(
        visitor: &Visitor,
        id: &str,
        version: &str,
    ) -> Result<Page, crate::answer::Failure> {
        let shell = Shell::new(visitor, "definitions", format!("Start {id}")).await?;
        let at = Version {
            id: id.to_owned(),
            version: version.to_owned(),
        };
        let found = visitor.asking.ask(definitions::GET.at(&at)).await?;
        Ok(Page {
            shell,
            path: format!("{}/{}", segment(id), segment(version)),
            id: id.to_owned(),
            version: version.to_owned(),
            fields: fields(&found.input_schema.unwrap_or_default()),
            json: "{}".to_owned(),
            events: found.events,
            key: format!("console-{}", &draw()?[..32]),
            refused: String::new(),
        })
    }
}

#[derive(Deserialize, Default)]
pub struct Like {
    /// The instance whose input is there to be edited.
    #[serde(default)]
    like: Option<String>,
}

pub async fn show(
    visitor: Visitor,
    Path((id, version)): Path<(String, String)>,
    Query(Like { like }): Query<Like>,
) -> Answer {
    let mut page = Page::new(&visitor, &id, &version).await?;
    if let Some(like) = like {
        let found = visitor.asking.ask(GET.at(&InstanceId { id: like })).await?;
        fill(&mut page.fields, &found.input);
        page.json = format!("{:#}", found.input);
    }
    with_status(StatusCode::OK, &page)
}

pub async fn start(
    visitor: Visitor,
    Path((id, version)): Path<(String, String)>,
    form: Form,
) -> Answer {
    let mut page = Page::new(&visitor, &id, &version).await?;
    for field in &mut page.fields {
        field.value = form.get(&field.id).to_owned();
    }
    page.json = form.get("json").to_owned();
    page.key = form.get("key").to_owned();
    let input = match form.get("by") {
        "json" => parsed("input", &page.json).map_err(|failure| failure.detail),
        _ => filled(&page.fields, &form).map(Data::from),
    };
    let input = match input {
        Ok(input) => input,
        Err(wrong) => {
            page.refused = wrong;
            return with_status(StatusCode::BAD_REQUEST, &page);
        }
    };
    let query = StartQuery {
        version: Some(version),
        wait: None,
    };
    let call = START.at(&Workflow { id }).query(query).body(&Json(input));
    match visitor.asking.ask(call.key(&page.key)).await {
        Ok(begun) => {
            let id = segment(begun.id());
            go_to(&format!("/console/instances/{id}?done=started"))
        }
        Err(refusal) => {
            let is_about_it = matches!(
                refusal.status,
                StatusCode::BAD_REQUEST | StatusCode::UNPROCESSABLE_ENTITY | StatusCode::CONFLICT
            );
            if !is_about_it {
                return Err(refusal.into());
            }
            page.refused = refusal.problem.detail;
            with_status(refusal.status, &page)
        }
    }
}
