//! Handlers of a state's actions: ways out of the state that are defined at its actions.

use swirl_model::workflow::{ActionHandler, Body, ListId, StateKind, Workflow};

/// The handlers of all actions that a state itself runs.
pub fn of_actions<'w>(workflow: &'w Workflow, kind: &StateKind) -> Vec<&'w ActionHandler> {
    let of_body = |body: &Body| match body {
        Body::Actions(list) => Some(*list),
        Body::Flow(_) => None,
    };
    let lists: Vec<ListId> = match kind {
        StateKind::Callback(callback) => vec![callback.actions],
        StateKind::Event(event) => event.entries.iter().map(|entry| entry.actions).collect(),
        StateKind::Foreach(foreach) => of_body(&foreach.body).into_iter().collect(),
        StateKind::Operation(list) => vec![*list],
        StateKind::Parallel(parallel) => {
            let bodies = parallel.branches.iter().map(|branch| &branch.body);
            bodies.filter_map(of_body).collect()
        }
        StateKind::Inject(_)
        | StateKind::Sleep(_)
        | StateKind::Switch(_)
        | StateKind::SwitchEvents(_) => Vec::new(),
    };
    let actions = lists.iter().flat_map(|list| &workflow[*list].actions);
    actions
        .flat_map(|action| &workflow[*action].on_errors)
        .collect()
}

#[cfg(test)]
mod tests {
    use super::super::{Format, render};
    use swirl_spec::resource::MapResources;

    #[test]
    fn transitions_of_actions_are_drawn() {
        let document = "name: t\nstates:\n\
            - {name: A, type: OPERATION, start: true, action-mode: SEQUENTIAL, actions: [{function: {name: f, type: custom}, retry: {match: busy, next-state: Late}}], next-state: Done}\n\
            - {name: Done, type: END}\n\
            - {name: Late, type: END}\n";
        let options = swirl_spec::Options::default();
        let reading = swirl_spec::read(document.as_bytes(), &MapResources::default(), &options);
        let workflow = reading.workflow.unwrap();
        let drawn = render(&workflow, Format::Mermaid);
        assert!(drawn.contains("s1 --> s3 : "), "{drawn}");
        assert!(drawn.contains("busy"), "{drawn}");
    }
}
