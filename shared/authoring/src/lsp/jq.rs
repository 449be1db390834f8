//! The jq functions, each with a one-sentence description.

/// Keywords of jq.
pub const KEYWORDS: [&str; 13] = [
    "and", "as", "catch", "def", "elif", "else", "end", "foreach", "if", "or", "reduce", "then",
    "try",
];

/// The functions that definitions use most, in alphabetical order.
const ABOUT: [(&str, &str); 77] = [
    ("abs", "the number without its sign"),
    (
        "add",
        "the sum of all items: numbers added, strings and lists joined, objects merged",
    ),
    (
        "all",
        "whether every item (or every output of the condition) is true",
    ),
    (
        "any",
        "whether some item (or some output of the condition) is true",
    ),
    ("arrays", "the input if it is a list, else nothing"),
    ("ascii_downcase", "the string in lower case, a to z"),
    ("ascii_upcase", "the string in upper case, A to Z"),
    ("booleans", "the input if it is true or false, else nothing"),
    (
        "capture",
        "the named groups of a match of the regular expression, as an object",
    ),
    ("ceil", "the number, rounded up"),
    ("combinations", "all ways to take one item of each list"),
    (
        "contains",
        "whether the argument is a part of the input: of a string, a list or an object",
    ),
    ("del", "the input without the values at the paths"),
    (
        "delpaths",
        "the input without the values at the listed paths",
    ),
    ("empty", "nothing: no output at all"),
    ("endswith", "whether the string ends with the argument"),
    ("error", "ends the evaluation with an error"),
    ("explode", "the code points of the text"),
    ("first", "the first output or item"),
    ("flatten", "lists in lists as one list"),
    ("floor", "the number, rounded down"),
    (
        "from_entries",
        "an object made of a list of keys and values",
    ),
    (
        "fromdate",
        "seconds since 1970 of a string such as `2024-11-05T08:15:30Z`",
    ),
    ("fromjson", "the value of the JSON text"),
    (
        "getpath",
        "the value at the path, a list of keys and indexes",
    ),
    (
        "group_by",
        "a list of lists: items with equal values of the expression",
    ),
    (
        "gsub",
        "the string with every match of the regular expression replaced",
    ),
    (
        "has",
        "whether the object has the key, or the list the index",
    ),
    ("implode", "the string of a list of code points"),
    ("in", "whether the input is a key of the argument"),
    (
        "index",
        "the first position of the string or item; null if there is none",
    ),
    ("indices", "all positions of the string or item"),
    ("inside", "whether the input is a part of the argument"),
    ("isempty", "whether the expression has no output"),
    (
        "join",
        "the items as one string, with the argument between them",
    ),
    (
        "keys",
        "the keys of the object, sorted; the indexes of the list",
    ),
    ("keys_unsorted", "the keys of the object, in its order"),
    ("last", "the last output or item"),
    (
        "length",
        "how many items, members or characters there are; of a number its amount",
    ),
    ("limit", "the first so many outputs of the expression"),
    (
        "ltrimstr",
        "the string without the argument at its beginning",
    ),
    ("map", "the list with the expression applied to each item"),
    (
        "map_values",
        "the object or list with the expression applied to each value",
    ),
    (
        "match",
        "the matches of the regular expression, with places and groups",
    ),
    ("max", "the greatest item"),
    (
        "max_by",
        "the item for which the expression gives the greatest value",
    ),
    ("min", "the least item"),
    (
        "min_by",
        "the item with the smallest value of the expression",
    ),
    ("not", "true for false and null, else false"),
    ("now", "the time in seconds since 1970"),
    ("nth", "the item or output with that number, from 0"),
    ("path", "the paths of what the expression leads to"),
    ("paths", "the paths of all values below the input"),
    ("pow", "the first argument to the power of the second"),
    (
        "range",
        "the numbers from 0 or the first argument to below the last",
    ),
    ("recurse", "the input and all values below it"),
    ("reverse", "the list from its end to its beginning"),
    ("round", "the number, rounded"),
    ("rtrimstr", "the string without the argument at its end"),
    ("scan", "the matches of the regular expression, as strings"),
    ("select", "the input if the condition is true, else nothing"),
    ("sort", "the list in order"),
    (
        "sort_by",
        "the list, sorted by the values of the expression",
    ),
    ("split", "the parts of the string between the separators"),
    ("startswith", "whether the string begins with the argument"),
    (
        "sub",
        "the string with the first match of the regular expression replaced",
    ),
    ("test", "whether the regular expression matches"),
    ("to_entries", "the object as a list of keys and values"),
    ("tojson", "the value as JSON text"),
    ("tonumber", "the number that the string represents"),
    ("tostring", "the value as a string; strings unchanged"),
    ("transpose", "rows as columns"),
    ("type", "the kind of the value, such as `object`"),
    ("unique", "the list in order, each item once"),
    (
        "unique_by",
        "one item for each distinct value of the expression",
    ),
    ("values", "the input if it isn't null, else nothing"),
    (
        "with_entries",
        "the object with the expression applied to each key and value",
    ),
];

pub fn about(name: &str) -> Option<&'static str> {
    let found = ABOUT
        .binary_search_by(|(known, _)| (*known).cmp(name))
        .ok()?;
    Some(ABOUT[found].1)
}

#[cfg(test)]
mod tests {
    use super::ABOUT;

    #[test]
    fn described_functions_exist() {
        assert!(ABOUT.is_sorted_by_key(|(name, _)| *name));
        for (name, _) in ABOUT {
            let found = swirl_expr::signatures().any(|(known, _)| known == name);
            assert!(found, "{name}");
        }
    }
}
