//! serde's complaints in our words, with a place.

use std::fmt;

use serde::de::{self, Expected, Unexpected};

use crate::source::Span;
use crate::suggest::hint;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Error {
    pub message: String,
    pub span: Option<Span>,
}

impl Error {
    /// The innermost place is the best one: one that is known stays.
    pub fn at(mut self, span: Span) -> Error {
        self.span.get_or_insert(span);
        self
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for Error {}

fn found(unexpected: &Unexpected<'_>) -> String {
    match unexpected {
        Unexpected::Str(text) if text.chars().count() > 40 => {
            format!("the text {:?}…", text.chars().take(40).collect::<String>())
        }
        Unexpected::Str(text) => format!("the text {text:?}"),
        Unexpected::Unit | Unexpected::Option => "nothing".to_owned(),
        Unexpected::Seq => "a list".to_owned(),
        Unexpected::Map => "a mapping".to_owned(),
        Unexpected::Unsigned(n) => n.to_string(),
        Unexpected::Signed(n) => n.to_string(),
        Unexpected::Float(n) => n.to_string(),
        Unexpected::Bool(b) => b.to_string(),
        other => other.to_string(),
    }
}

fn wanted(expected: &dyn Expected) -> String {
    let text = expected.to_string();
    match text.as_str() {
        "a string" => "a text".to_owned(),
        "a boolean" => "true or false".to_owned(),
        "a sequence" => "a list".to_owned(),
        "a map" => "a mapping".to_owned(),
        "u8" | "u16" | "u32" | "u64" => "a whole number that fits".to_owned(),
        _ => text,
    }
}

impl de::Error for Error {
    fn custom<T: fmt::Display>(message: T) -> Error {
        Error { message: message.to_string(), span: None }
    }

    fn invalid_type(unexpected: Unexpected<'_>, expected: &dyn Expected) -> Error {
        Error::custom(format!("expected {}, found {}", wanted(expected), found(&unexpected)))
    }

    fn invalid_value(unexpected: Unexpected<'_>, expected: &dyn Expected) -> Error {
        Error::invalid_type(unexpected, expected)
    }

    fn unknown_field(field: &str, known: &'static [&'static str]) -> Error {
        let short: String = field.chars().take(60).collect();
        Error::custom(format!("unknown key {short:?}{}", hint(field, known)))
    }

    fn unknown_variant(variant: &str, known: &'static [&'static str]) -> Error {
        let short: String = variant.chars().take(60).collect();
        let choices = if known.len() <= 8 { String::new() } else { hint(variant, known) };
        Error::custom(format!("{short:?} is none of {}{choices}", known.join(", ")))
    }

    fn missing_field(field: &'static str) -> Error {
        Error::custom(format!("the key {field:?} is missing"))
    }
}
