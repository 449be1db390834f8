//! Finds the positions of parts in a value, and splits values.

use jaq_core::ValR;
use jaq_json::Val;

use super::{V, both};
use crate::meter;
use crate::order::equal;

/// The positions of `part` in an array, or of a substring in a string (in characters).
pub(crate) fn indices(whole: &V, part: &V) -> ValR<V> {
    match (&whole.val, &part.val) {
        (Val::Null, _) => Ok(V::null()),
        (Val::Arr(_), Val::Arr(part)) if part.is_empty() => Ok(V::null()),
        (Val::Arr(whole), Val::Arr(part)) => {
            let windows = whole.windows(part.len()).enumerate();
            let same = |window: &[Val]| window.iter().zip(part.iter()).all(|(l, r)| equal(l, r));
            Ok(windows
                .filter(|(_, window)| same(window))
                .map(|(at, _)| V::from(at))
                .collect())
        }
        (Val::Arr(whole), part) => {
            let items = whole.iter().enumerate();
            Ok(items
                .filter(|(_, item)| equal(item, part))
                .map(|(at, _)| V::from(at))
                .collect())
        }
        (Val::TStr(_), Val::TStr(_)) => {
            let (whole, part) = (whole.try_str()?, part.try_str()?);
            if part.is_empty() {
                return Ok(V::null());
            }
            let starts = whole.char_indices().enumerate();
            // jq 1.6 continues after each match.
            let mut end = 0;
            let found = starts.filter(|(_, (at, _))| {
                let here = *at >= end && whole[*at..].starts_with(part);
                meter::work(if here { 1 + part.len() / 64 } else { 1 });
                if here {
                    end = at + part.len();
                }
                here
            });
            Ok(found.map(|(at, _)| V::from(at)).collect())
        }
        _ => Err(both(whole, part, "cannot be searched for each other")),
    }
}

/// The parts of a string between separators.
pub(crate) fn split(whole: &V, separator: &str) -> ValR<V> {
    let text = whole.try_str()?;
    let part = |part: &str| {
        meter::charge(32);
        jaq_std::ValT::as_sub_str(whole, part.as_bytes())
    };
    Ok(if text.is_empty() {
        V::array(Vec::new())
    } else if separator.is_empty() {
        text.char_indices()
            .map(|(at, c)| part(&text[at..at + c.len_utf8()]))
            .collect()
    } else {
        text.split(separator).map(part).collect()
    })
}
