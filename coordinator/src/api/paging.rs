//! Listings in pages: the number of rows, their size, and the position to continue from.

use axum::http::StatusCode;
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::problem::Problem;

/// The maximum and the default number of rows of a page.
pub const LIMIT_MAX: usize = 1000;
const LIMIT: usize = 100;
/// A page ends when its rows have this size. The last one may exceed it.
pub const BYTES_MAX: usize = 4 << 20;
/// The first character of a cursor into a listing. No id begins with it.
pub const CURSOR: char = '~';

/// The requested number of rows.
pub fn limit(asked: Option<u32>) -> Result<usize, Problem> {
    number("limit", asked, LIMIT, LIMIT_MAX)
}

/// A parameter that is a number from 1 to a maximum.
pub fn number(
    name: &str,
    asked: Option<u32>,
    default: usize,
    max: usize,
) -> Result<usize, Problem> {
    let number = asked.map_or(default, |asked| asked as usize);
    if (1..=max).contains(&number) {
        return Ok(number);
    }
    let detail = format!("'{name}' must be from 1 to {max}");
    Err(Problem::bad_request("invalid-query", detail))
}

/// The position after which a page begins.
pub fn place<P: DeserializeOwned>(after: Option<&str>) -> Result<Option<P>, Problem> {
    let Some(after) = after else {
        return Ok(None);
    };
    let place = after.strip_prefix(CURSOR).map(serde_json::from_str);
    match place {
        Some(Ok(place)) => Ok(Some(place)),
        _ => Err(Problem::new(
            StatusCode::BAD_REQUEST,
            "unknown-place",
            "'after' must be the 'next' of another page of the same listing",
        )),
    }
}

/// The value of `after` for the next page.
pub fn next<P: Serialize>(place: &P) -> Option<String> {
    let place = serde_json::to_string(place).ok()?;
    Some(format!("{CURSOR}{place}"))
}

/// The rows of a page, and the position of the last one unless they are all. `rows` has one more than the limit if there
/// are more.
pub fn page<R, P: Serialize, V: Serialize>(
    mut rows: Vec<R>,
    limit: usize,
    place: impl Fn(&R) -> P,
    shown: impl Fn(&R) -> V,
) -> (Vec<V>, Option<String>) {
    let (mut bytes, mut page) = (0, Vec::new());
    for row in rows.iter().take(limit) {
        let row = shown(row);
        bytes += serde_json::to_vec(&row).map_or(0, |row| row.len());
        page.push(row);
        if bytes >= BYTES_MAX {
            break;
        }
    }
    let next = cut(&mut rows, page.len(), place);
    (page, next)
}

/// Removes the rows beyond a page. If there were any, returns the position of the page's last row.
pub fn cut<R, P: Serialize>(
    rows: &mut Vec<R>,
    limit: usize,
    place: impl Fn(&R) -> P,
) -> Option<String> {
    let is_more = rows.len() > limit;
    rows.truncate(limit);
    rows.last()
        .filter(|_| is_more)
        .and_then(|last| next(&place(last)))
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::*;

    #[test]
    fn pages_follow_each_other() {
        let page = |after: Option<&str>| {
            let after: Option<u32> = place(after).unwrap();
            let mut rows: Vec<u32> = (1..=5)
                .filter(|row| after.is_none_or(|a| *row > a))
                .collect();
            let next = cut(&mut rows, 2, |row| *row);
            (rows, next)
        };
        let (mut all, mut next) = page(None);
        while let Some(after) = next {
            let (rows, further) = page(Some(&after));
            all.extend(rows);
            next = further;
        }
        assert_eq!(all, [1, 2, 3, 4, 5]);
    }

    #[test]
    fn large_rows_make_short_pages() {
        let all: Vec<usize> = (1..=5).collect();
        let large = |row: &usize| Value::String("x".repeat(row * BYTES_MAX / 3));
        let (rows, next) = page(all.clone(), 4, |row| *row, large);
        assert_eq!((rows.len(), next.as_deref()), (2, Some("~2")));
        let (rows, next) = page(all[2..].to_vec(), 4, |row| *row, large);
        assert_eq!((rows.len(), next.as_deref()), (1, Some("~3")));
        let (rows, next) = page(all[4..].to_vec(), 4, |row| *row, large);
        assert_eq!((rows.len(), next), (1, None));
    }

    #[test]
    fn an_invalid_position_is_refused() {
        for wrong in ["", "5", "~", "~x", "~[1]"] {
            assert!(place::<u32>(Some(wrong)).is_err(), "{wrong}");
        }
        assert!(limit(Some(0)).is_err() && limit(Some(1001)).is_err());
        assert_eq!(limit(None).ok(), Some(LIMIT));
    }
}
