//! Writes parameter values as text: OpenAPI's styles, which follow RFC 6570.
//!
//! These styles, except `deepObject`, have no form for an array or object inside an array or object, so that is
//! refused. A query parameter with an empty array or object is omitted.

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use serde_json::{Map, Value};

use super::operation::{Parameter, Style};

/// All characters except RFC 3986's unreserved ones.
const ENCODED: &AsciiSet = &NON_ALPHANUMERIC
    .remove(b'-')
    .remove(b'.')
    .remove(b'_')
    .remove(b'~');

/// With `allowReserved`, reserved characters stay too, except those that would end the value.
const ENCODED_RESERVED: &AsciiSet = &ENCODED
    .remove(b':')
    .remove(b'/')
    .remove(b'?')
    .remove(b'@')
    .remove(b'!')
    .remove(b'$')
    .remove(b'\'')
    .remove(b'(')
    .remove(b')')
    .remove(b'*')
    .remove(b',')
    .remove(b';')
    .remove(b'=');

pub(crate) fn encode(text: &str) -> String {
    utf8_percent_encode(text, ENCODED).to_string()
}

fn encode_value(text: &str, allow_reserved: bool) -> String {
    if !allow_reserved {
        return encode(text);
    }
    // Characters that are percent-encoded already stay unchanged.
    let mut pieces = text.split('%');
    let first = pieces.next().unwrap_or_default();
    let mut encoded = utf8_percent_encode(first, ENCODED_RESERVED).to_string();
    for piece in pieces {
        let is_triple = piece.len() >= 2 && piece.bytes().take(2).all(|b| b.is_ascii_hexdigit());
        encoded.push_str(if is_triple { "%" } else { "%25" });
        encoded.extend(utf8_percent_encode(piece, ENCODED_RESERVED));
    }
    encoded
}

/// The text of a scalar, or the reason why a value has none.
fn scalar(value: &Value) -> Result<String, String> {
    match value {
        Value::Null => Ok(String::new()),
        Value::Bool(_) | Value::Number(_) => Ok(value.to_string()),
        Value::String(text) => Ok(text.clone()),
        Value::Array(_) => Err("an array within a value has no form in its style".to_owned()),
        Value::Object(_) => Err("an object within a value has no form in its style".to_owned()),
    }
}

/// A list of texts: the items of an array, or the keys and values of an object, written as `k=v` or alternating.
fn list(
    value: &Value,
    explode: bool,
    encode: &dyn Fn(&str) -> String,
) -> Result<Vec<String>, String> {
    match value {
        Value::Array(items) => items
            .iter()
            .map(|item| Ok(encode(&scalar(item)?)))
            .collect(),
        Value::Object(members) => {
            let mut texts = Vec::new();
            for (key, member) in members {
                let (key, member) = (encode(key), encode(&scalar(member)?));
                match explode {
                    true => texts.push(format!("{key}={member}")),
                    false => texts.extend([key, member]),
                }
            }
            Ok(texts)
        }
        value => Ok(vec![encode(&scalar(value)?)]),
    }
}

/// The text that replaces `{name}` in the path.
pub(crate) fn path(parameter: &Parameter, value: &Value) -> Result<String, String> {
    if parameter.json {
        return Ok(encode(&value.to_string()));
    }
    let explode = parameter.explode;
    let texts = list(value, explode, &encode)?;
    Ok(match parameter.style {
        Style::Label => format!(".{}", texts.join(if explode { "." } else { "," })),
        Style::Matrix => {
            let name = encode(&parameter.name);
            let pair = |text: &String| match text.is_empty() {
                true => format!(";{name}"),
                false => format!(";{name}={text}"),
            };
            match (explode, value) {
                (true, Value::Object(_)) => texts.iter().map(|text| format!(";{text}")).collect(),
                (true, _) => texts.iter().map(pair).collect(),
                (false, _) => pair(&texts.join(",")),
            }
        }
        _ => texts.join(","),
    })
}

/// The value of a header. It isn't percent-encoded.
pub(crate) fn header(parameter: &Parameter, value: &Value) -> Result<String, String> {
    if parameter.json {
        return Ok(value.to_string());
    }
    Ok(list(value, parameter.explode, &str::to_owned)?.join(","))
}

/// Encoded names and values for the query, a cookie or a form.
pub(crate) fn pairs(parameter: &Parameter, value: &Value) -> Result<Vec<(String, String)>, String> {
    let encode_value = |text: &str| encode_value(text, parameter.allow_reserved);
    if parameter.json {
        let name = encode(&parameter.name);
        return Ok(vec![(name, encode_value(&value.to_string()))]);
    }
    let writing = Writing {
        style: parameter.style,
        explode: parameter.explode,
        name: &encode,
        value: &encode_value,
        brackets: ("%5B", "%5D"),
        delimiter: match parameter.style {
            Style::SpaceDelimited => "%20",
            Style::PipeDelimited => "%7C",
            Style::TabDelimited => "%09",
            _ => ",",
        },
    };
    writing.pairs(&parameter.name, value)
}

/// Names and values for the parts of a multipart body, which aren't encoded.
pub(crate) fn parts(
    name: &str,
    (style, explode): (Style, bool),
    value: &Value,
) -> Result<Vec<(String, String)>, String> {
    let writing = Writing {
        style,
        explode,
        name: &str::to_owned,
        value: &str::to_owned,
        brackets: ("[", "]"),
        delimiter: match style {
            Style::SpaceDelimited => " ",
            Style::PipeDelimited => "|",
            Style::TabDelimited => "\t",
            _ => ",",
        },
    };
    writing.pairs(name, value)
}

/// How a style writes names and values.
struct Writing<'a> {
    style: Style,
    explode: bool,
    name: &'a dyn Fn(&str) -> String,
    value: &'a dyn Fn(&str) -> String,
    brackets: (&'a str, &'a str),
    delimiter: &'a str,
}

impl Writing<'_> {
    fn pairs(&self, name: &str, value: &Value) -> Result<Vec<(String, String)>, String> {
        let name = (self.name)(name);
        match value {
            Value::Object(members) if self.style == Style::DeepObject => {
                let mut pairs = Vec::new();
                self.deep(&name, members, &mut pairs)?;
                Ok(pairs)
            }
            Value::Object(members) if self.explode => members
                .iter()
                .map(|(key, member)| Ok(((self.name)(key), (self.value)(&scalar(member)?))))
                .collect(),
            Value::Array(items) if self.explode => items
                .iter()
                .map(|item| Ok((name.clone(), (self.value)(&scalar(item)?))))
                .collect(),
            Value::Array(_) | Value::Object(_) => {
                let texts = list(value, false, self.value)?;
                match texts.is_empty() {
                    true => Ok(Vec::new()),
                    false => Ok(vec![(name, texts.join(self.delimiter))]),
                }
            }
            value => Ok(vec![(name, (self.value)(&scalar(value)?))]),
        }
    }

    /// `name[a][b]=1`; an array repeats its name. JSON's own nesting limit bounds the depth.
    fn deep(
        &self,
        name: &str,
        members: &Map<String, Value>,
        pairs: &mut Vec<(String, String)>,
    ) -> Result<(), String> {
        let (open, close) = self.brackets;
        for (key, member) in members {
            let name = format!("{name}{open}{}{close}", (self.name)(key));
            match member {
                Value::Object(members) => self.deep(&name, members, pairs)?,
                Value::Array(items) => {
                    for item in items {
                        pairs.push((name.clone(), (self.value)(&scalar(item)?)));
                    }
                }
                member => pairs.push((name, (self.value)(&scalar(member)?))),
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::operation::Location;
    use super::*;

    fn parameter(style: Style, explode: bool) -> Parameter {
        Parameter {
            name: "color".to_owned(),
            location: Location::Query,
            required: false,
            style,
            explode,
            allow_reserved: false,
            json: false,
            secret: false,
        }
    }

    fn query(parameter: &Parameter, value: &Value) -> String {
        let pairs = pairs(parameter, value).unwrap();
        pairs
            .iter()
            .map(|(k, v)| format!("{k}={v}"))
            .collect::<Vec<_>>()
            .join("&")
    }

    /// The table "Style Examples" of the specification, with percent-encoding.
    #[test]
    fn the_styles_of_the_specification() {
        let scalar = json!("blue");
        let array = json!(["blue", "black", "brown"]);
        let object = json!({"R": 100, "G": 200, "B": 150});
        let path_table = [
            (
                Style::Simple,
                false,
                "blue",
                "blue,black,brown",
                "R,100,G,200,B,150",
            ),
            (
                Style::Simple,
                true,
                "blue",
                "blue,black,brown",
                "R=100,G=200,B=150",
            ),
            (
                Style::Label,
                false,
                ".blue",
                ".blue,black,brown",
                ".R,100,G,200,B,150",
            ),
            (
                Style::Label,
                true,
                ".blue",
                ".blue.black.brown",
                ".R=100.G=200.B=150",
            ),
            (
                Style::Matrix,
                false,
                ";color=blue",
                ";color=blue,black,brown",
                ";color=R,100,G,200,B,150",
            ),
            (
                Style::Matrix,
                true,
                ";color=blue",
                ";color=blue;color=black;color=brown",
                ";R=100;G=200;B=150",
            ),
        ];
        for (style, explode, one, list, map) in path_table {
            let parameter = parameter(style, explode);
            for (value, expected) in [(&scalar, one), (&array, list), (&object, map)] {
                assert_eq!(
                    path(&parameter, value).unwrap(),
                    expected,
                    "{style:?} {explode}"
                );
            }
        }
        let query_table = [
            (
                Style::Form,
                false,
                "color=blue,black,brown",
                "color=R,100,G,200,B,150",
            ),
            (
                Style::Form,
                true,
                "color=blue&color=black&color=brown",
                "R=100&G=200&B=150",
            ),
            (
                Style::SpaceDelimited,
                false,
                "color=blue%20black%20brown",
                "color=R%20100%20G%20200%20B%20150",
            ),
            (
                Style::PipeDelimited,
                false,
                "color=blue%7Cblack%7Cbrown",
                "color=R%7C100%7CG%7C200%7CB%7C150",
            ),
            (
                Style::TabDelimited,
                false,
                "color=blue%09black%09brown",
                "color=R%09100%09G%09200%09B%09150",
            ),
            (
                Style::DeepObject,
                true,
                "color=blue&color=black&color=brown",
                "color%5BR%5D=100&color%5BG%5D=200&color%5BB%5D=150",
            ),
        ];
        for (style, explode, list, map) in query_table {
            let parameter = parameter(style, explode);
            for (value, expected) in [(&scalar, "color=blue"), (&array, list), (&object, map)] {
                assert_eq!(query(&parameter, value), expected, "{style:?} {explode}");
            }
        }
        for (explode, map) in [(false, "R,100,G,200,B,150"), (true, "R=100,G=200,B=150")] {
            let parameter = parameter(Style::Simple, explode);
            assert_eq!(header(&parameter, &array).unwrap(), "blue,black,brown");
            assert_eq!(header(&parameter, &object).unwrap(), map);
        }
    }

    #[test]
    fn values_are_encoded_and_delimiters_are_not() {
        let list = json!(["a,b", "c d&e"]);
        assert_eq!(
            query(&parameter(Style::Form, false), &list),
            "color=a%2Cb,c%20d%26e"
        );
        assert_eq!(
            path(&parameter(Style::Simple, false), &json!("a/b?c#é%")).unwrap(),
            "a%2Fb%3Fc%23%C3%A9%25"
        );
        assert_eq!(
            path(&parameter(Style::Matrix, false), &json!("")).unwrap(),
            ";color"
        );
        assert_eq!(query(&parameter(Style::Form, true), &json!([])), "");
        assert_eq!(query(&parameter(Style::Form, false), &json!({})), "");
    }

    #[test]
    fn reserved_characters_stay_where_they_are_allowed() {
        let mut parameter = parameter(Style::Form, true);
        parameter.allow_reserved = true;
        assert_eq!(
            query(&parameter, &json!("/a?b=c,d e&f#g+h%2Fi%zé")),
            "color=/a?b=c,d%20e%26f%23g%2Bh%2Fi%25z%C3%A9"
        );
    }

    #[test]
    fn nesting_needs_deep_object_or_json() {
        let nested = json!({"a": {"b": [1, 2]}, "c": true});
        assert_eq!(
            query(&parameter(Style::DeepObject, true), &nested),
            "color%5Ba%5D%5Bb%5D=1&color%5Ba%5D%5Bb%5D=2&color%5Bc%5D=true"
        );
        for style in [Style::Form, Style::PipeDelimited] {
            assert!(pairs(&parameter(style, true), &nested).is_err());
        }
        assert!(path(&parameter(Style::Simple, false), &json!([[1]])).is_err());
        let mut json = parameter(Style::Form, true);
        json.json = true;
        assert_eq!(
            query(&json, &json!({"a": [1]})),
            "color=%7B%22a%22%3A%5B1%5D%7D"
        );
    }
}
