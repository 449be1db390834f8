//! Errors of stores.

pub type Result<T> = std::result::Result<T, Error>;

#[derive(Debug, Clone, thiserror::Error)]
pub enum Error {
    /// The store cannot be reached or is overloaded: trying again can help.
    #[error("the store is unavailable: {0}")]
    Unavailable(String),
    /// A stored record cannot be read: trying again cannot help.
    #[error("stored data of {what} is damaged: {reason}")]
    Damaged { what: String, reason: String },
    /// A limit of the store: trying again cannot help.
    #[error("{what} is {size} bytes large; the limit is {limit}")]
    TooLarge {
        what: String,
        size: usize,
        limit: usize,
    },
    /// The position to continue a listing from is unknown or comes from another store: trying again cannot help.
    #[error("there is no place '{0}' in this listing; begin it anew")]
    UnknownPlace(String),
}

impl Error {
    pub fn is_retryable(&self) -> bool {
        matches!(self, Error::Unavailable(_))
    }
}
