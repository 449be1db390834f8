//! Tells whether a request had a new connection, which the HTTP client doesn't reveal.
//!
//! The client connects within the request's own future if it finds no kept connection. If one becomes free meanwhile,
//! the client takes that one and goes on connecting elsewhere, so such a connection isn't counted.

use std::cell::Cell;
use std::pin::Pin;
use std::task::{Context, Poll};

use tower::{Layer, Service};

tokio::task_local! {
    static IS_FRESH: Cell<bool>;
}

/// Makes a request. Also returns whether a connection was made for it.
pub(crate) async fn noted<F: Future>(request: F) -> (F::Output, bool) {
    let noted = async {
        let result = request.await;
        (result, IS_FRESH.with(Cell::get))
    };
    IS_FRESH.scope(Cell::new(false), noted).await
}

/// A layer of the client's connector.
#[derive(Debug, Clone)]
pub(crate) struct Noting;

#[derive(Debug, Clone)]
pub(crate) struct NotingConnector<S>(S);

impl<S> Layer<S> for Noting {
    type Service = NotingConnector<S>;

    fn layer(&self, connector: S) -> NotingConnector<S> {
        NotingConnector(connector)
    }
}

impl<S, R> Service<R> for NotingConnector<S>
where
    S: Service<R>,
    S::Future: Send + 'static,
{
    type Response = S::Response;
    type Error = S::Error;
    type Future = Pin<Box<dyn Future<Output = Result<S::Response, S::Error>> + Send>>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), S::Error>> {
        self.0.poll_ready(context)
    }

    fn call(&mut self, target: R) -> Self::Future {
        let connecting = self.0.call(target);
        Box::pin(async {
            let connected = connecting.await;
            // Outside of a request, the connection is for later ones.
            let _ = IS_FRESH.try_with(|is_fresh| is_fresh.set(true));
            connected
        })
    }
}
