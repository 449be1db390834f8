//! An argument that a service would refuse.

/// The reason why arguments don't fit, with the arguments concerned.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Misfit {
    /// JSON pointer below the arguments; empty for all of them.
    pub(crate) at: String,
    /// A sentence.
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

/// Of the arguments as a whole.
impl From<String> for Misfit {
    fn from(message: String) -> Misfit {
        Misfit::new("", message)
    }
}

/// The sentences alone.
pub(crate) fn messages(misfits: Vec<Misfit>) -> Vec<String> {
    misfits.into_iter().map(|misfit| misfit.message).collect()
}

/// The JSON pointer of a member.
pub(crate) fn below(at: &str, name: &str) -> String {
    format!("{at}/{}", name.replace('~', "~0").replace('/', "~1"))
}
