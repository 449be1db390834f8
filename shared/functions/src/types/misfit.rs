//! An argument that a service would reject.

/// The reason why arguments don't fit, and which arguments.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Misfit {
    /// JSON pointer below the arguments; empty if it concerns all of them.
    pub(crate) at: String,
    /// The reason as a sentence.
    pub(crate) message: String,
}

impl Misfit {
    pub(crate) fn new(at: &str, message: String) -> Misfit {
        Misfit {
            at: at.to_owned(),
            message,
        }
    }
}

/// A misfit of the arguments as a whole.
impl From<String> for Misfit {
    fn from(message: String) -> Misfit {
        Misfit::new("", message)
    }
}

/// Only the sentences.
pub(crate) fn messages(misfits: Vec<Misfit>) -> Vec<String> {
    misfits.into_iter().map(|misfit| misfit.message).collect()
}

/// The JSON pointer of a member.
pub(crate) fn below(at: &str, name: &str) -> String {
    format!("{at}/{}", name.replace('~', "~0").replace('/', "~1"))
}
