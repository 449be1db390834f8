//! Handlers of a state's actions: ways out of the state that are defined at its actions.

use swirl_model::workflow::{ActionHandler, StateKind, Workflow};

/// The handlers of all actions that a state itself runs.
pub fn of_actions<'w>(workflow: &'w Workflow, kind: &StateKind) -> Vec<&'w ActionHandler> {
    let lists = kind.action_lists();
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
