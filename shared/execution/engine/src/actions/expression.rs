//! An expression function as an action (0.8, "Using Functions for Expression Evaluation"). Its input is the action's
//! data, and `$args` has its arguments (docs/language.md#decision-17).

use swirl_model::scope::ListRun;
use swirl_model::workflow::{Action, ExprId, Template};

use crate::scope::{Ctx, Next, Step};

impl Ctx<'_> {
    pub(crate) fn attempt_expression(
        &mut self,
        run: ListRun,
        action: &Action,
        expression: ExprId,
        arguments: Option<&Template>,
    ) -> Step {
        self.list(run);
        let result = self.action_data(action).and_then(|data| {
            let view = self.view();
            let args = arguments
                .map(|template| view.template(template, &data))
                .transpose()?;
            view.eval_with(expression, &data, args.as_ref())
        });
        Ok(match result {
            Ok(result) => Next::Done(Some(result.unwrap_or_default())),
            Err(error) => Next::failed(error),
        })
    }
}
