//! Errors of stores.

pub type Result<T> = std::result::Result<T, Error>;

#[derive(Debug, Clone, thiserror::Error)]
pub enum Error {
    /// The store cannot be reached or is overloaded. Retrying can help.
    #[error("the store is unavailable: {0}")]
    Unavailable(String),
    /// A stored record cannot be read. Retrying can't help.
    #[error("stored data of {what} is damaged: {reason}")]
    Damaged { what: String, reason: String },
    /// A limit of the store is exceeded. Retrying can't help.
    #[error("{what} is {size} bytes large; the limit is {limit}")]
    TooLarge {
        what: String,
        size: usize,
        limit: usize,
    },
    /// The position from which to continue a listing is unknown or comes from another store. Retrying can't help.
    #[error("'{0}' is not a position in this listing; start from the first page")]
    UnknownPlace(String),
}

impl Error {
    pub fn is_retryable(&self) -> bool {
        matches!(self, Error::Unavailable(_))
    }
}
