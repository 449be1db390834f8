//! What a request has done, for the audit log. A handler marks its response with the action that it has carried out. The
//! gate, which knows the caller, writes the entry before the response is sent.

use axum::response::Response;
use swirl_api::Audit;
use swirl_service::Audited;

use super::Api;

/// The actions of a request that are still to be written.
#[derive(Clone, Default)]
struct Actions(Vec<Audited>);

/// Marks a response: its request has carried out this action, whether it succeeded as a whole or not.
pub(super) fn audited(mut response: Response, action: Audited) -> Response {
    let extensions = response.extensions_mut();
    let Actions(actions) = extensions.get_or_insert_default::<Actions>();
    actions.push(action);
    response
}

/// Writes the actions of a response into the audit log.
pub(super) async fn write(api: &Api, audit: &Audit, by: Option<&str>, response: &mut Response) {
    let Some(Actions(actions)) = response.extensions_mut().remove::<Actions>() else {
        return;
    };
    let Some(auditing) = &api.auditing else {
        return;
    };
    for action in actions {
        let now = api.service.clock.now();
        auditing.note(now, by, audit, action).await;
    }
}
