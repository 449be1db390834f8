//! An instance in a response, with its scopes and without its history.

use serde_json::Value;
use swirl_api::Instance;
use swirl_model::instance::Instance as Stored;
use swirl_model::scope::Scope;
use swirl_presentation::Names;
use swirl_presentation::place::place;

use super::Api;
use super::listing;
use super::problem::Problem;

/// The maximum number of scopes of an instance in a response.
pub(super) const SCOPES_MAX: usize = 1_000;

/// An instance with its scopes that have not ended.
pub async fn shown(
    api: &Api,
    (instance, scopes): &(Stored, Vec<Scope>),
) -> Result<Instance, Problem> {
    let (header, state) = (&instance.header, &instance.state);
    let mut view = Instance {
        id: header.id.to_string(),
        workflow: header.definition.workflow.to_string(),
        version: header.version.to_string(),
        status: state.status.into(),
        suspended: state.suspended,
        started_at: header.started_at.into(),
        scheduled_at: header.scheduled_at.map(Into::into),
        ended_at: state.ended_at.map(Into::into),
        key: header.key.as_ref().map(ToString::to_string),
        instance_key: header.instance_key.as_ref().map(ToString::to_string),
        parent: header
            .parent
            .as_ref()
            .map(|parent| parent.scope.instance.to_string()),
        continued_from: header.continued_from.as_ref().map(ToString::to_string),
        correlation: Some(
            state
                .correlation
                .iter()
                .map(|(name, value)| (name.to_string(), value.clone()))
                .collect(),
        ),
        input: Value::from(&header.input),
        output: state.output.as_ref().map(Value::from),
        attributes: listing::shown(&state.attributes),
        error: state.error.as_ref().map(Into::into),
        scopes: Vec::new(),
        scopes_left_out: None,
        at: None,
        entry: None,
        entries_left_out: None,
    };
    if !scopes.is_empty() {
        let definition = api.service.registry.get(&header.definition).await?;
        let open = scopes.iter().filter(|scope| !scope.ended());
        let left_out = open.clone().count().saturating_sub(SCOPES_MAX);
        view.scopes_left_out = Some(left_out).filter(|left_out| *left_out > 0);
        let mut names = Names::new(&definition.workflow);
        scopes.iter().for_each(|scope| names.learn_scope(scope));
        let places = open.take(SCOPES_MAX).map(|scope| {
            let mut place = place(&definition.workflow, scope);
            place.name = names.name_of(&scope.id);
            place
        });
        view.scopes = places.collect();
    }
    Ok(view)
}
