//! The only place here that names the YAML library.

use anyhow::{Context as _, Result};
use serde_json::{Map, Value};

pub fn parse(text: &str) -> Result<Value> {
    if text.trim().is_empty() {
        return Ok(Value::Object(Map::new()));
    }
    let options = serde_saphyr::options! { legacy_octal_numbers: true };
    let value: Value = serde_saphyr::from_str_with_options(text, options).context("not valid YAML")?;
    match value {
        Value::Null => Ok(Value::Object(Map::new())),
        Value::Object(_) => Ok(value),
        _ => anyhow::bail!("not a YAML mapping"),
    }
}

pub fn render(value: &Value) -> Result<String> {
    // Certificates are long single tokens: folding them would only make them hard to copy.
    let options = serde_saphyr::ser_options! { prefer_block_scalars: false, compact_list_indent: true };
    serde_saphyr::to_string_with_options(value, options).context("write YAML")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn awkward_strings_survive() {
        for text in
            ["yes", "on", "0755", "1e3", "null", "~", "a: b", "# no", "", "line\nline", "2026-11-15", "é"]
        {
            let value = serde_json::json!({ "k": text, "l": [text] });
            assert_eq!(parse(&render(&value).unwrap()).unwrap(), value, "{text}");
        }
    }

    #[test]
    fn long_data_stays_on_one_line() {
        let value = serde_json::json!({ "certificate-authority-data": "QUJD".repeat(400), "args": "a b ".repeat(60) });
        let text = render(&value).unwrap();
        assert_eq!(text.lines().count(), 2, "{text}");
        assert_eq!(parse(&text).unwrap(), value);
    }

    #[test]
    fn empty_files_are_empty_mappings() {
        assert_eq!(parse("").unwrap(), serde_json::json!({}));
        assert_eq!(parse("---\n").unwrap(), serde_json::json!({}));
        assert!(parse("- a\n").is_err());
        assert!(parse("a: [").is_err());
    }
}
