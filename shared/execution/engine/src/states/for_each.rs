//! `for` (DSL 1.0, "For"): iterations one after another, in the same scope.

use swirl_model::error::names;
use swirl_model::scope::{Frame, Iteration};
use swirl_model::workflow::For;
use swirl_model::{Data, WorkflowError};

use super::{At, Kind};
use crate::scope::{Next, Step};

impl Kind for For {
    fn begin(&self, at: &mut At<'_, '_>) -> Step {
        let items = at.view().template(&self.items, at.data())?;
        let Some(list) = items.as_array() else {
            let message = format!("'in' must give a list, and gives {}", items.kind_in_words());
            return Err(WorkflowError::new(names::COLLECTION_NOT_ARRAY, message));
        };
        at.check_data(&items, "the list of 'for'")?;
        if list.is_empty() {
            return at.done();
        }
        let iteration = Iteration {
            items,
            index: 0,
            steps: at.steps(),
        };
        at.push_frame(Some(iteration.clone()), None)?;
        if at.workflow()[self.body].states.is_empty() {
            // Only the condition is evaluated, over the same data for each item.
            let items = iteration.items.as_array().unwrap_or_default();
            for (index, item) in items.iter().enumerate() {
                if !goes_on(self, at, Data(item.clone()), index as u32)? {
                    break;
                }
            }
            at.pop_frame();
            return at.done();
        }
        iterate(self, at, &iteration)
    }

    fn left(&self, at: &mut At<'_, '_>, frame: &Frame) -> Step {
        // An error from here on is the loop's own.
        at.return_to(frame);
        let Some(mut iteration) = frame.iteration.clone() else {
            return Ok(Next::Block);
        };
        iteration.index += 1;
        let next = iteration.clone();
        at.change_frame(|frame| frame.iteration = Some(next));
        iterate(self, at, &iteration)
    }
}

/// Whether an iteration begins. Sets its variables.
fn goes_on(each: &For, at: &mut At<'_, '_>, item: Data, index: u32) -> Result<bool, WorkflowError> {
    at.see_params(vec![
        (each.item.clone(), item),
        (each.index.clone(), Data::int(i64::from(index))),
    ]);
    match each.test {
        Some(test) => at.view().condition(test, at.data()),
        None => Ok(true),
    }
}

/// Begins an iteration with the current data, or ends the loop.
fn iterate(each: &For, at: &mut At<'_, '_>, iteration: &Iteration) -> Step {
    let items = iteration.items.as_array().unwrap_or_default();
    let Some(item) = items.get(iteration.index as usize) else {
        at.pop_frame();
        return at.done();
    };
    if !goes_on(each, at, Data(item.clone()), iteration.index)? {
        at.pop_frame();
        return at.done();
    }
    // The list bounds the loop, so its iterations together count as one step.
    at.set_steps(iteration.steps);
    Ok(Next::Tasks(each.body))
}
