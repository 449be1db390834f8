//! The order of what parallel scopes did at one instant.

use swirl_model::ids::ScopeId;
use swirl_model::time::Timestamp;

/// Puts what parallel scopes did at one instant into the order of branches and iterations
/// (docs/language.md#decision-71): a timer or an event may have reached a later one first. A scope and those inside of it
/// keep their order, since one waits for the other.
pub(crate) fn in_document_order<T>(
    all: &mut [T],
    when_and_where: impl Fn(&T) -> (Timestamp, &ScopeId),
) {
    for end in 1..all.len() {
        let mut index = end;
        while index > 0 {
            let (before, scope_before) = when_and_where(&all[index - 1]);
            let (at, scope) = when_and_where(&all[index]);
            if before != at || !is_earlier(scope, scope_before) {
                break;
            }
            all.swap(index - 1, index);
            index -= 1;
        }
    }
}

/// Whether a scope is before another one in the document, and neither is inside of the other.
fn is_earlier(one: &ScopeId, other: &ScopeId) -> bool {
    let numbers = |scope: &ScopeId| {
        let parts = scope.as_str().split('.').skip(1);
        parts
            .map(|part| part.parse().unwrap_or(u32::MAX))
            .collect::<Vec<u32>>()
    };
    let (one, other) = (numbers(one), numbers(other));
    let mut pairs = one.iter().zip(&other);
    pairs.find(|(a, b)| a != b).is_some_and(|(a, b)| a < b)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parallel_scopes_are_in_the_order_of_the_document() {
        let mut all = [
            (1, "r.0.10"),
            (2, "r.0.10"),
            (2, "r.0.2"),
            (2, "r.0.2.0.0"),
            (2, "r.0.1"),
            (2, "r"),
            (2, "r.1.1"),
            (2, "r.1.0"),
            (3, "r.1.0"),
        ]
        .map(|(at, scope)| (Timestamp(at), ScopeId::new(scope)));
        in_document_order(&mut all, |(at, scope)| (*at, scope));
        let order: Vec<&str> = all.iter().map(|(_, scope)| scope.as_str()).collect();
        let expected = [
            "r.0.10",
            "r.0.1",
            "r.0.2",
            "r.0.2.0.0",
            "r.0.10",
            "r",
            "r.1.0",
            "r.1.1",
            "r.1.0",
        ];
        assert_eq!(order, expected);
    }
}
