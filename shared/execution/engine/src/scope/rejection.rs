//! The reasons why an input doesn't apply.

#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Rejection {
    #[error("the scope has ended")]
    Ended,
    #[error("the timer is no longer armed")]
    TimerDisarmed,
    #[error("the call is no longer in progress")]
    CallOver,
    #[error("nothing waits for this event any more")]
    WaitOver,
    #[error("the task doesn't take this event")]
    NotTaken,
    #[error("the fork is over")]
    ForkOver,
    #[error("something newer is known already")]
    Outdated,
    #[error("nothing has failed here")]
    NotFaulted,
    #[error("there is no such state")]
    UnknownState,
    #[error("no action has failed here, and only an action can be given a result")]
    NothingToSkip,
    #[error(
        "a branch has failed, which has its own data: rerun the state with the data that you want"
    )]
    NothingToEdit,
    #[error("only instances of DSL 1.0 have a context")]
    NoContext,
    #[error("the data is larger than a path of execution may have")]
    DataTooLarge,
    #[error("the state runs only for compensation or before the workflow's timeout")]
    NotOfMainFlow,
    #[error("this path of execution cannot continue by itself")]
    Blocked,
    #[error("it names something that the definition lacks")]
    Damaged,
}
