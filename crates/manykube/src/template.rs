//! The part of Go's templates that scripts use with `--format`: text and fields, `{{.Host}}`.

/// Fills the fields in. An error says what is not understood.
pub fn render(template: &str, field: &dyn Fn(&str) -> Option<String>) -> Result<String, String> {
    let mut out = String::new();
    let mut rest = template;
    while let Some((text, tail)) = rest.split_once("{{") {
        let (action, tail) = tail.split_once("}}").ok_or("an opening {{ has no closing }}")?;
        // Dashes trim the white space outside, as in Go.
        let (action, text) = match action.strip_prefix("- ") {
            Some(a) => (a, text.trim_end()),
            None => (action, text),
        };
        let (action, tail) = match action.strip_suffix(" -") {
            Some(a) => (a, tail.trim_start()),
            None => (action, tail),
        };
        out += text;
        out += &evaluate(action.trim(), field)?;
        rest = tail;
    }
    out += rest;
    Ok(out)
}

fn evaluate(action: &str, field: &dyn Fn(&str) -> Option<String>) -> Result<String, String> {
    if action.starts_with("/*") && action.ends_with("*/") {
        return Ok(String::new());
    }
    if let Some(text) = action.strip_prefix('"').and_then(|t| t.strip_suffix('"')) {
        return Ok(text.replace("\\n", "\n").replace("\\t", "\t"));
    }
    match action.strip_prefix('.') {
        Some(name) if !name.is_empty() && name.bytes().all(|b| b.is_ascii_alphanumeric()) => {
            field(name).ok_or_else(|| format!("there is no field {action}"))
        }
        _ => Err(format!("only fields are understood, not {{{{{action}}}}}")),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn field(name: &str) -> Option<String> {
        match name {
            "Host" => Some("Running".into()),
            "Name" => Some("demo".into()),
            _ => None,
        }
    }

    #[test]
    fn fields_and_text() {
        for (template, want) in [
            ("{{.Host}}", "Running"),
            ("{{.Name}}:{{ .Host }}\n", "demo:Running\n"),
            ("a {{- .Host -}} b", "aRunningb"),
            ("plain", "plain"),
            ("", ""),
            ("{{/* x */}}{{.Name}}{{\"\\n\"}}", "demo\n"),
        ] {
            assert_eq!(render(template, &field).as_deref(), Ok(want), "{template}");
        }
    }

    #[test]
    fn errors_say_what_is_not_understood() {
        for (template, want) in [
            ("{{.Frob}}", "there is no field .Frob"),
            ("{{if .Host}}x{{end}}", "only fields are understood, not {{if .Host}}"),
            ("{{.Host", "an opening {{ has no closing }}"),
            ("{{}}", "only fields are understood, not {{}}"),
        ] {
            assert_eq!(render(template, &field).unwrap_err(), want);
        }
    }

    proptest! {
        #[test]
        fn no_template_makes_it_panic(template in "[{}.a-zA-Z \\-\"/*]{0,40}") {
            let _ = render(&template, &field);
        }
    }
}
