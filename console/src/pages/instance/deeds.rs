//! An operator's actions on an instance. A form that is refused, or that asks what would change, comes back with what was
//! filled in.

use axum::extract::{Path, Query, State};
use axum::http::{HeaderMap, StatusCode};
use swirl_api::actions::{
    ActionPreview, CANCEL, Continuation, Continued, Json, MIGRATE, Move, RERUN, RESUME, RETRY,
    SKIP, SUSPEND,
};
use swirl_api::definitions::LIST;
use swirl_api::instance::{GET, InstanceId};
use swirl_api::{Instance, PageQuery};
use swirl_model::Data;

use super::look::Look;
use super::{render, root};
use crate::answer::{Answer, Failure, go_to};
use crate::asking::segment;
use crate::console::Console;
use crate::pages::changes::{Row, row};
use crate::visitor::{Form, Visitor};

/// A form that comes back.
#[derive(Default)]
pub struct Draft {
    action: String,
    /// Why it was refused; otherwise empty.
    pub title: &'static str,
    pub detail: String,
    /// The changes that it would make.
    pub preview: Option<Preview>,
    fields: Vec<(&'static str, String)>,
}

pub struct Preview {
    pub rows: Vec<Row>,
    pub is_cut: bool,
}

/// How many definitions are looked through for other versions.
const DEFINITIONS_MAX: u32 = 1_000;

const FIELDS: [&str; 5] = ["data", "state", "version", "reason", "result"];

impl Draft {
    fn of(action: &str, form: &Form) -> Draft {
        let fields = FIELDS.iter();
        let fields = fields.map(|field| (*field, form.get(field).to_owned()));
        Draft {
            action: action.to_owned(),
            fields: fields.collect(),
            ..Draft::default()
        }
    }

    pub fn is_of(&self, action: &str) -> bool {
        self.action == action
    }

    /// The values that were filled in; empty in other forms.
    pub fn get(&self, action: &str, field: &str) -> &str {
        let mut fields = self.fields.iter().filter(|_| self.is_of(action));
        let found = fields.find(|(name, _)| *name == field);
        found.map_or("", |(_, value)| value)
    }
}

enum Done {
    /// With the word for the page that follows.
    Accepted(&'static str),
    Shown(ActionPreview),
}

pub async fn operate(
    visitor: Visitor,
    Path((id, action)): Path<(String, String)>,
    State(console): State<Console>,
    headers: HeaderMap,
    form: Form,
) -> Answer {
    let instance = InstanceId { id };
    let mut draft = Draft::of(&action, &form);
    let failure = match act(&visitor, &instance, &action, &form).await {
        Ok(Done::Accepted(word)) => {
            let at = segment(&instance.id);
            return go_to(&format!("/console/instances/{at}?done={word}"));
        }
        Ok(Done::Shown(preview)) => {
            let status = StatusCode::OK;
            let look = Query(Look::default());
            let draft = previewed(draft, preview);
            return render(
                visitor,
                instance.id,
                look,
                console,
                headers,
                (draft, status),
            )
            .await;
        }
        Err(failure) => failure,
    };
    let is_kept = matches!(
        failure.status,
        StatusCode::BAD_REQUEST | StatusCode::CONFLICT | StatusCode::UNPROCESSABLE_ENTITY
    );
    if !is_kept {
        return Err(failure);
    }
    (draft.title, draft.detail) = (failure.title(), failure.detail.clone());
    let again = (draft, failure.status);
    let look = Query(Look::default());
    render(visitor, instance.id, look, console, headers, again)
        .await
        .map_err(|_| failure)
}

fn previewed(mut draft: Draft, preview: ActionPreview) -> Draft {
    if !preview.fits {
        draft.title = "That is not possible now";
        draft.detail = preview.reason.unwrap_or_default();
    }
    let data = preview.data;
    let is_cut = data.as_ref().is_some_and(|data| !data.complete);
    let rows = data.and_then(|data| data.changes).unwrap_or_default();
    draft.preview = Some(Preview {
        rows: rows.into_iter().map(row).collect(),
        is_cut,
    });
    draft
}

async fn act(
    visitor: &Visitor,
    instance: &InstanceId,
    action: &str,
    form: &Form,
) -> Result<Done, Failure> {
    let (asking, reason) = (&visitor.asking, form.reason_query());
    let (simple, word) = match action {
        "cancel" => (&CANCEL, "cancel"),
        "suspend" => (&SUSPEND, "suspend"),
        "resume" => (&RESUME, "resume"),
        "migrate" => {
            let body = Move {
                version: form.get("version").trim().to_owned(),
                dry_run: false,
            };
            let call = MIGRATE.at(instance).body(&body);
            asking.ask(call.query(reason)).await?;
            return Ok(Done::Accepted("migrate"));
        }
        "skip" => {
            let result = Json(parsed("result", form.given("result").unwrap_or("null"))?);
            let call = SKIP.at(instance).body(&result);
            asking.ask(call.query(reason)).await?;
            return Ok(Done::Accepted("skip"));
        }
        "retry" => return go_on(visitor, instance, form, Continuation::default()).await,
        "rerun" => {
            let with = Continuation {
                state: Some(form.get("state").to_owned()),
                ..Continuation::default()
            };
            return go_on(visitor, instance, form, with).await;
        }
        "edit" => {
            let with = edited(visitor, instance, form).await?;
            return go_on(visitor, instance, form, with).await;
        }
        _ => return Err(Failure::not_found("unknown action")),
    };
    asking.ask(simple.at(instance).query(reason)).await?;
    Ok(Done::Accepted(word))
}

/// Continues it, at a state or at what failed.
async fn go_on(
    visitor: &Visitor,
    instance: &InstanceId,
    form: &Form,
    with: Continuation,
) -> Result<Done, Failure> {
    let (route, word) = match with.state {
        None => (&RETRY, "retry"),
        Some(_) => (&RERUN, "rerun"),
    };
    let call = route.at(instance).query(form.reason_query());
    let continued = visitor.asking.ask(call.body(&Some(with))).await?;
    Ok(match continued {
        Continued::Accepted(_) => Done::Accepted(word),
        Continued::Preview(preview) => Done::Shown(preview),
    })
}

pub fn parsed(what: &str, text: &str) -> Result<Data, Failure> {
    Data::parse(text.as_bytes()).map_err(|error| {
        let detail = format!("the {what} is not valid JSON: {error}");
        Failure::new(StatusCode::BAD_REQUEST, detail)
    })
}

/// The body for an instance that continues with the changes made in the form. Unchanged data is left out: the instance
/// may have failed where no other data can be set.
async fn edited(
    visitor: &Visitor,
    instance: &InstanceId,
    form: &Form,
) -> Result<Continuation, Failure> {
    let mut with = Continuation {
        state: form.given("state").map(str::to_owned),
        version: form.given("version").map(str::to_owned),
        dry_run: form.get("do") == "show",
        ..Continuation::default()
    };
    if let Some(data) = form.given("data") {
        let data = parsed("data", data)?;
        let found = visitor.asking.ask(GET.at(instance)).await?;
        let root = root(&found.scopes).and_then(|root| root.data.as_ref());
        with.data =
            Some(Json(data)).filter(|Json(data)| root != Some(&serde_json::Value::from(data)));
    }
    Ok(with)
}

/// The other versions of a workflow, the newest first; none if there are too many definitions to look through.
pub async fn versions(visitor: &Visitor, found: &Instance) -> Option<Vec<String>> {
    let query = PageQuery {
        limit: Some(DEFINITIONS_MAX),
        ..PageQuery::default()
    };
    let all = visitor.asking.ask(LIST.ask().query(query)).await.ok()?;
    let heads = all.definitions.into_iter().rev().map(|one| one.head);
    let others = heads.filter(|head| head.id == found.workflow && head.version != found.version);
    all.complete
        .then(|| others.map(|head| head.version).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_draft_belongs_to_its_form() {
        let form = Form::of(&[("data", "{"), ("reason", "why"), ("csrf", "secret")]);
        let draft = Draft::of("edit", &form);
        assert!(draft.is_of("edit") && !draft.is_of("skip"));
        assert_eq!(
            (draft.get("edit", "data"), draft.get("edit", "reason")),
            ("{", "why")
        );
        assert_eq!(
            (draft.get("skip", "reason"), draft.get("edit", "csrf")),
            ("", "")
        );
    }

    #[test]
    fn a_preview_says_why_it_is_not_possible() {
        let preview = |fits: bool| ActionPreview {
            id: "i".to_owned(),
            operation: "edit".to_owned(),
            dry_run: true,
            fits,
            code: None,
            reason: Some("it runs".to_owned()),
            data: None,
        };
        let refused = previewed(Draft::default(), preview(false));
        assert_eq!(refused.detail, "it runs");
        let fits = previewed(Draft::default(), preview(true));
        assert!(fits.title.is_empty() && fits.preview.unwrap().rows.is_empty());
    }
}
