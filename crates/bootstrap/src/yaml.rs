//! The only file that names the YAML crate. Kubernetes reads YAML 1.1 through JSON, so that is the
//! dialect here: `0755` is octal, `yes` is a boolean and is quoted when it is meant as a word.

use anyhow::{Context, Result};
use serde_json::Value;

/// Long flags stay on one line: folded strings are legal but unreadable in a manifest.
const NEVER_FOLD: usize = usize::MAX;

pub fn to_string(value: &Value) -> Result<String> {
    let options = serde_saphyr::ser_options! {
        min_fold_chars: NEVER_FOLD,
        folded_wrap_chars: NEVER_FOLD,
        compact_list_indent: true,
    };
    serde_saphyr::to_string_with_options(value, options).context("write YAML")
}

/// One stream of many documents, each under its `---`.
pub fn to_documents(values: &[Value]) -> Result<String> {
    let mut text = String::new();
    for value in values {
        text.push_str("---\n");
        text.push_str(to_string(value)?.trim_end());
        text.push('\n');
    }
    Ok(text)
}

/// The documents of a stream; empty ones are left out.
pub fn from_documents(text: &str) -> Result<Vec<Value>> {
    let options = serde_saphyr::options! { legacy_octal_numbers: true };
    let values: Vec<Value> = serde_saphyr::from_multiple_with_options(text, options).context("read YAML")?;
    Ok(values.into_iter().filter(|v| !v.is_null()).collect())
}
