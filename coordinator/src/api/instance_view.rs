//! An instance in a response, with its scopes and without its history.

use serde_json::{Value, json};
use swirl_model::ids::InstanceId;
use swirl_model::instance::Instance;
use swirl_model::scope::Scope;
use swirl_presentation::Names;
use swirl_presentation::place::place;

use super::Api;
use super::listing;
use super::problem::Problem;

/// The maximum number of scopes of an instance in a response.
pub(super) const SCOPES_MAX: usize = 1_000;

/// An instance with its scopes that have not ended.
pub async fn shown(api: &Api, found: &(Instance, Vec<Scope>)) -> Result<Value, Problem> {
    let (instance, scopes) = found;
    let (header, state) = (&instance.header, &instance.state);
    let mut view = json!({
        "id": header.id.as_str(),
        "workflow": &*header.definition.workflow,
        "version": header.version,
        "status": state.status.as_str(),
        "suspended": state.suspended,
        "startedAt": format!("{:.3}", header.started_at),
        "scheduledAt": header.scheduled_at.map(|at| format!("{at:.3}")),
        "endedAt": state.ended_at.map(|at| format!("{at:.3}")),
        "key": header.key,
        "instanceKey": header.instance_key,
        "parent": header.parent.as_ref().map(|parent| parent.scope.instance.as_str()),
        "continuedFrom": header.continued_from.as_ref().map(InstanceId::as_str),
        "correlation": state.correlation,
        "input": Value::from(&header.input),
    });
    if let Some(output) = &state.output {
        view["output"] = Value::from(output);
    }
    if !state.attributes.is_empty() {
        view["attributes"] = listing::shown(&state.attributes);
    }
    if let Some(error) = &state.error {
        view["error"] = Value::from(&error.to_data());
    }
    view["scopes"] = json!([]);
    if !scopes.is_empty() {
        let definition = api.service.registry.get(&header.definition).await?;
        let open = scopes.iter().filter(|scope| !scope.ended());
        let left_out = open.clone().count().saturating_sub(SCOPES_MAX);
        let mut names = Names::new(&definition.workflow);
        scopes.iter().for_each(|scope| names.learn_scope(scope));
        let places: Vec<Value> = open
            .take(SCOPES_MAX)
            .map(|scope| {
                let mut place = place(&definition.workflow, scope);
                if let Some(name) = names.of(&scope.id) {
                    place["name"] = json!(name);
                }
                place
            })
            .collect();
        view["scopes"] = json!(places);
        if left_out > 0 {
            view["scopesLeftOut"] = json!(left_out);
        }
    }
    Ok(view)
}
