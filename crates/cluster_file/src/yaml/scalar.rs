//! What an unquoted word is when nothing says what it should be: as Kubernetes' own reader has it,
//! which is YAML 1.1 (`yes` is true, `0644` is octal), because patches go there unchanged.

use serde_json::{Number, Value};

pub fn is_null(text: &str) -> bool {
    matches!(text, "" | "~" | "null" | "Null" | "NULL")
}

/// For fields that are booleans: only the two words, so that nobody wonders about the others.
pub fn boolean(text: &str) -> Option<bool> {
    match text {
        "true" | "True" | "TRUE" => Some(true),
        "false" | "False" | "FALSE" => Some(false),
        _ => None,
    }
}

fn loose_boolean(text: &str) -> Option<bool> {
    match text.to_ascii_lowercase().as_str() {
        "true" | "yes" | "on" | "y" => Some(true),
        "false" | "no" | "off" | "n" => Some(false),
        _ => None,
    }
}

/// Decimal, without the leading zero that would make it octal to some readers.
pub fn integer(text: &str) -> Option<i128> {
    let digits = text.strip_prefix(['-', '+']).unwrap_or(text);
    let good = (1..=30).contains(&digits.len())
        && digits.bytes().all(|b| b.is_ascii_digit())
        && (digits == "0" || !digits.starts_with('0'));
    if good { text.parse().ok() } else { None }
}

fn loose_integer(text: &str) -> Option<i128> {
    let (negative, digits) = match text.strip_prefix('-') {
        Some(rest) => (true, rest),
        None => (false, text.strip_prefix('+').unwrap_or(text)),
    };
    let radix = |digits: &str, radix| {
        let good = !digits.is_empty() && digits.bytes().all(|b| b.is_ascii_alphanumeric());
        i128::from_str_radix(digits, radix).ok().filter(|_| good)
    };
    let number = if let Some(hex) = digits.strip_prefix("0x") {
        radix(hex, 16)
    } else if let Some(octal) = digits.strip_prefix("0o") {
        radix(octal, 8)
    } else if digits.len() > 1 && digits.starts_with('0') && digits.bytes().all(|b| b.is_ascii_digit()) {
        radix(digits, 8)
    } else {
        return integer(text);
    }?;
    Some(if negative { -number } else { number })
}

fn float(text: &str) -> Option<f64> {
    let good = text.bytes().all(|b| b.is_ascii_digit() || matches!(b, b'.' | b'e' | b'E' | b'+' | b'-'))
        && text.bytes().any(|b| b.is_ascii_digit());
    text.parse::<f64>().ok().filter(|f| good && f.is_finite())
}

pub fn value(text: &str) -> Value {
    if is_null(text) {
        return Value::Null;
    }
    if let Some(b) = loose_boolean(text) {
        return b.into();
    }
    if let Some(i) = loose_integer(text) {
        let number = i64::try_from(i).map(Number::from).or_else(|_| u64::try_from(i).map(Number::from));
        if let Ok(number) = number {
            return number.into();
        }
    }
    float(text).and_then(Number::from_f64).map_or_else(|| text.into(), Value::Number)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn words_as_kubernetes_reads_them() {
        for (text, want) in [
            ("", json!(null)),
            ("~", json!(null)),
            ("yes", json!(true)),
            ("Off", json!(false)),
            ("12", json!(12)),
            ("-3", json!(-3)),
            ("0644", json!(420)),
            ("0x1F", json!(31)),
            ("0o17", json!(15)),
            ("1.5", json!(1.5)),
            ("1e3", json!(1000.0)),
            ("18446744073709551615", json!(u64::MAX)),
            ("v1.30", json!("v1.30")),
            (".inf", json!(".inf")),
            ("infinity", json!("infinity")),
            ("nan", json!("nan")),
            ("089", json!(89.0)),
            ("1_000", json!("1_000")),
            ("-", json!("-")),
            ("0x", json!("0x")),
        ] {
            assert_eq!(value(text), want, "{text}");
        }
    }

    #[test]
    fn strict_ones() {
        assert_eq!((integer("10"), integer("-1"), integer("0")), (Some(10), Some(-1), Some(0)));
        for bad in ["", "010", "1.0", "0x1", "1e3", "ten", "+", "1 ", &"9".repeat(200)] {
            assert_eq!(integer(bad), None, "{bad}");
        }
        assert_eq!((boolean("true"), boolean("yes")), (Some(true), None));
    }
}
