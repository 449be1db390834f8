//! YAML: printed by `pretty_yaml`, which keeps comments.

use pretty_yaml::config::{FormatOptions, LanguageOptions, LayoutOptions};
use yaml_parser::SyntaxKind;

use super::{Error, WIDTH};

pub fn print(text: &str) -> Result<String, Error> {
    let options = FormatOptions {
        layout: LayoutOptions {
            print_width: WIDTH,
            ..LayoutOptions::default()
        },
        language: LanguageOptions {
            brace_spacing: false,
            trailing_comma: false,
            // In a block text this would change the value.
            trim_trailing_whitespaces: false,
            // The directive that switches formatting off has our own name, not the library's.
            ignore_comment_directive: "swirl-fmt-ignore".to_owned(),
            ..LanguageOptions::default()
        },
    };
    pretty_yaml::format_text(text, &options).map_err(|error| Error::Unprintable(error.to_string()))
}

/// All comments, in order.
pub fn comments(text: &str) -> Result<Vec<String>, Error> {
    let tree = yaml_parser::parse(text).map_err(|error| Error::Unprintable(error.to_string()))?;
    let tokens = tree.descendants_with_tokens();
    let tokens = tokens.filter_map(|element| element.into_token());
    let comments = tokens.filter(|token| token.kind() == SyntaxKind::COMMENT);
    Ok(comments
        .map(|token| token.text().trim_end().to_owned())
        .collect())
}
