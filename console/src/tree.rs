//! JSON as a tree that can be opened and closed, without script.

use serde_json::Value;

/// Limits: members shown in total, depth, and length of a text.
const NODES_MAX: usize = 2_000;
const DEPTH_MAX: usize = 64;
const TEXT_CHARS_MAX: usize = 2_000;
/// How deep a tree is open at first.
const OPEN_DEPTH: usize = 2;

/// HTML, with everything escaped.
pub fn tree(value: &Value) -> String {
    let mut html = String::from("<div class=\"tree\">");
    let mut left = NODES_MAX;
    node(&mut html, None, value, 0, &mut left);
    if left == 0 {
        html.push_str("<p class=\"dim\">This is not all: there is too much for one page. The API has the rest.</p>");
    }
    html.push_str("</div>");
    html
}

pub fn escape(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '"' => escaped.push_str("&quot;"),
            '\'' => escaped.push_str("&#39;"),
            c => escaped.push(c),
        }
    }
    escaped
}

fn node(html: &mut String, name: Option<&str>, value: &Value, depth: usize, left: &mut usize) {
    if *left == 0 {
        return;
    }
    *left -= 1;
    let name = match name {
        Some(name) => format!("<span class=\"key\">{}</span> ", escape(name)),
        None => String::new(),
    };
    let members: Vec<(String, &Value)> = match value {
        Value::Object(all) => all
            .iter()
            .map(|(name, value)| (name.clone(), value))
            .collect(),
        Value::Array(all) => {
            let all = all.iter().enumerate();
            all.map(|(index, value)| (index.to_string(), value))
                .collect()
        }
        leaf => {
            html.push_str(&format!(
                "<div class=\"leaf\">{name}{}</div>",
                of_leaf(leaf)
            ));
            return;
        }
    };
    let (count, word) = (
        members.len(),
        if value.is_array() { "list" } else { "object" },
    );
    if count == 0 || depth >= DEPTH_MAX {
        let word = if count == 0 {
            "empty"
        } else {
            "too deep for a page"
        };
        html.push_str(&format!(
            "<div class=\"leaf\">{name}<span class=\"dim\">{word}</span></div>"
        ));
        return;
    }
    let open = if depth < OPEN_DEPTH && count <= 50 {
        " open"
    } else {
        ""
    };
    html.push_str(&format!(
        "<details{open}><summary>{name}<span class=\"dim\">{word} of {count}</span></summary><div class=\"below\">"
    ));
    for (name, value) in members {
        node(html, Some(&name), value, depth + 1, left);
    }
    html.push_str("</div></details>");
}

fn of_leaf(value: &Value) -> String {
    match value {
        Value::String(text) => {
            let cut: String = text.chars().take(TEXT_CHARS_MAX).collect();
            let more = if cut.len() < text.len() { "…" } else { "" };
            format!("<span class=\"string\">{}{more}</span>", escape(&cut))
        }
        Value::Number(number) => format!(
            "<span class=\"number\">{}</span>",
            escape(&number.to_string())
        ),
        Value::Bool(value) => format!("<span class=\"word\">{value}</span>"),
        _ => "<span class=\"word\">null</span>".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_tree_is_escaped_and_bounded() {
        let html =
            tree(&json!({"<b>": "<script>alert('1')</script>", "list": [1, true, null, {}, []]}));
        assert!(
            !html.contains("<b>") && !html.contains("<script>"),
            "{html}"
        );
        assert!(
            html.contains("list of 5") && html.contains("object of 2"),
            "{html}"
        );
        let many: Vec<u32> = (0..5_000).collect();
        let html = tree(&json!(many));
        assert!(html.contains("This is not all") && html.len() < 500_000);
        let mut deep = json!(1);
        for _ in 0..100 {
            deep = json!({ "a": deep });
        }
        assert!(tree(&deep).contains("too deep"));
        let long = tree(&json!("é".repeat(5_000)));
        assert!(long.contains('…') && long.chars().count() < 3_000);
    }
}
