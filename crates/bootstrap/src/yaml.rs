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

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn read(text: &str) -> Value {
        from_documents(text).unwrap().remove(0)
    }

    #[test]
    fn words_that_yaml_1_1_takes_for_booleans_are_quoted() {
        let text =
            to_string(&json!({ "a": "yes", "b": "on", "c": "y", "d": "no", "e": "true", "f": "null" }))
                .unwrap();
        insta::assert_snapshot!(text);
        assert_eq!(read("a: yes\nb: on\nc: 'yes'"), json!({ "a": true, "b": true, "c": "yes" }));
    }

    #[test]
    fn strings_that_look_like_numbers_are_quoted() {
        let text =
            to_string(&json!({ "a": "1.10", "b": "0755", "c": "1e3", "d": "10.96.0.0/12", "e": "1_000" }));
        insta::assert_snapshot!(text.unwrap());
    }

    #[test]
    fn modes_are_octal() {
        assert_eq!(read("defaultMode: 0755"), json!({ "defaultMode": 493 }));
    }

    #[test]
    fn long_strings_stay_whole() {
        let flag = "--tls-cipher-suites=".to_owned() + &"TLS_X, ".repeat(60);
        let value = json!({ "command": [flag.trim_end()], "script": "a\n  b\nc\n" });
        let text = to_string(&value).unwrap();
        assert!(text.lines().any(|l| l.contains(flag.trim_end())), "{text}");
        assert_eq!(read(&text), value);
    }

    #[test]
    fn a_key_given_twice_is_an_error() {
        assert!(from_documents("a: 1\na: 2\n").is_err());
    }

    #[test]
    fn empty_documents_are_left_out() {
        assert_eq!(from_documents("---\n---\na: 1\n---\n# nothing\n---\nb: 2\n").unwrap().len(), 2);
        assert_eq!(to_documents(&[json!({ "a": 1 }), json!({ "b": 2 })]).unwrap(), "---\na: 1\n---\nb: 2\n");
    }
}
