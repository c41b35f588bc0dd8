//! serde over the tree. Every error gets the place of the innermost value it is about.

use std::rc::Rc;

use serde::de::value::StrDeserializer;
use serde::de::{self, Deserialize, DeserializeSeed, IntoDeserializer, Visitor};
use serde::forward_to_deserialize_any;
use serde_json::Value;

use super::error::Error;
use super::scalar;
use super::tree::{Data, Key, Tree};

pub fn from_tree<'t, T: Deserialize<'t>>(tree: &'t Tree) -> Result<T, Error> {
    T::deserialize(De(tree)).map_err(|e| e.at(tree.span))
}

#[derive(Clone, Copy)]
struct De<'t>(&'t Tree);

impl<'t> De<'t> {
    /// The text of an unquoted word.
    fn word(self) -> Option<&'t str> {
        match &self.0.data {
            Data::Scalar { text, plain: true } => Some(text),
            _ => None,
        }
    }
}

macro_rules! integers {
    ($($method:ident)*) => {
        $(fn $method<V: Visitor<'t>>(self, visitor: V) -> Result<V::Value, Error> {
            let number = self.word().and_then(scalar::integer);
            match number.map(|n| (u64::try_from(n), i64::try_from(n))) {
                Some((Ok(n), _)) => visitor.visit_u64(n),
                Some((_, Ok(n))) => visitor.visit_i64(n),
                _ => self.deserialize_any(visitor),
            }
        })*
    };
}

impl<'t> de::Deserializer<'t> for De<'t> {
    type Error = Error;

    fn deserialize_any<V: Visitor<'t>>(self, visitor: V) -> Result<V::Value, Error> {
        match &self.0.data {
            Data::List(items) => visitor.visit_seq(List(items.iter())),
            Data::Map(entries) => visitor.visit_map(Entries { rest: entries.iter(), value: None }),
            Data::Scalar { text, plain: false } => visitor.visit_str(text),
            Data::Scalar { text, plain: true } => match scalar::value(text) {
                Value::Null => visitor.visit_unit(),
                Value::Bool(b) => visitor.visit_bool(b),
                Value::Number(n) => match (n.as_u64(), n.as_i64(), n.as_f64()) {
                    (Some(n), ..) => visitor.visit_u64(n),
                    (_, Some(n), _) => visitor.visit_i64(n),
                    (.., n) => visitor.visit_f64(n.unwrap_or(0.0)),
                },
                _ => visitor.visit_str(text),
            },
        }
    }

    /// Any word is a text where a text is wanted: `version: 1.30` is not 1.3.
    fn deserialize_str<V: Visitor<'t>>(self, visitor: V) -> Result<V::Value, Error> {
        match self.0.text() {
            Some(text) if !self.0.is_null() => visitor.visit_str(text),
            _ => self.deserialize_any(visitor),
        }
    }

    fn deserialize_string<V: Visitor<'t>>(self, visitor: V) -> Result<V::Value, Error> {
        self.deserialize_str(visitor)
    }

    fn deserialize_bool<V: Visitor<'t>>(self, visitor: V) -> Result<V::Value, Error> {
        match (self.word().and_then(scalar::boolean), self.0.text()) {
            (Some(b), _) => visitor.visit_bool(b),
            (None, Some(text)) if !self.0.is_null() => visitor.visit_str(text),
            _ => self.deserialize_any(visitor),
        }
    }

    integers! { deserialize_u8 deserialize_u16 deserialize_u32 deserialize_u64 deserialize_i64 }

    fn deserialize_option<V: Visitor<'t>>(self, visitor: V) -> Result<V::Value, Error> {
        if self.0.is_null() { visitor.visit_none() } else { visitor.visit_some(self) }
    }

    /// A key with nothing behind it is an empty list or mapping: so it is when its lines are commented out.
    fn deserialize_seq<V: Visitor<'t>>(self, visitor: V) -> Result<V::Value, Error> {
        if self.0.is_null() { visitor.visit_seq(List([].iter())) } else { self.deserialize_any(visitor) }
    }

    fn deserialize_map<V: Visitor<'t>>(self, visitor: V) -> Result<V::Value, Error> {
        if self.0.is_null() {
            visitor.visit_map(Entries { rest: [].iter(), value: None })
        } else {
            self.deserialize_any(visitor)
        }
    }

    fn deserialize_struct<V: Visitor<'t>>(
        self,
        _: &'static str,
        _: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Error> {
        match &self.0.data {
            // Derived structs also take lists, field by field; nobody means that.
            Data::List(_) => Err(de::Error::invalid_type(de::Unexpected::Seq, &"a mapping")),
            _ => self.deserialize_map(visitor),
        }
    }

    fn deserialize_enum<V: Visitor<'t>>(
        self,
        name: &'static str,
        variants: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Error> {
        match self.0.text() {
            Some(text) if !self.0.is_null() => {
                let word: StrDeserializer<'_, Error> = text.into_deserializer();
                word.deserialize_enum(name, variants, visitor)
            }
            _ => Err(de::Error::custom(format!("expected one of {}", variants.join(", ")))),
        }
    }

    fn deserialize_newtype_struct<V: Visitor<'t>>(
        self,
        _: &'static str,
        visitor: V,
    ) -> Result<V::Value, Error> {
        visitor.visit_newtype_struct(self)
    }

    forward_to_deserialize_any! {
        <V: Visitor<'t>>
        i8 i16 i32 f32 f64 char bytes byte_buf unit unit_struct tuple tuple_struct identifier ignored_any
    }
}

struct List<'t>(std::slice::Iter<'t, Rc<Tree>>);

impl<'t> de::SeqAccess<'t> for List<'t> {
    type Error = Error;

    fn next_element_seed<T: DeserializeSeed<'t>>(&mut self, seed: T) -> Result<Option<T::Value>, Error> {
        let Some(tree) = self.0.next() else { return Ok(None) };
        seed.deserialize(De(tree)).map(Some).map_err(|e| e.at(tree.span))
    }
}

struct Entries<'t> {
    rest: std::slice::Iter<'t, (Key, Rc<Tree>)>,
    value: Option<(&'t Key, &'t Tree)>,
}

impl<'t> de::MapAccess<'t> for Entries<'t> {
    type Error = Error;

    fn next_key_seed<K: DeserializeSeed<'t>>(&mut self, seed: K) -> Result<Option<K::Value>, Error> {
        let Some((key, tree)) = self.rest.next() else { return Ok(None) };
        self.value = Some((key, tree));
        let word: StrDeserializer<'t, Error> = key.text.as_str().into_deserializer();
        seed.deserialize(word).map(Some).map_err(|e| e.at(key.span))
    }

    fn next_value_seed<V: DeserializeSeed<'t>>(&mut self, seed: V) -> Result<V::Value, Error> {
        let Some((key, tree)) = self.value.take() else {
            return Err(de::Error::custom("a value without a key"));
        };
        // Where there is nothing to point at, the key says what it is about.
        let span = if tree.is_null() { key.span } else { tree.span };
        seed.deserialize(De(tree)).map_err(|e| e.at(span))
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use serde::Deserialize;

    use super::*;
    use crate::yaml::load;

    #[derive(Debug, PartialEq, Deserialize)]
    #[serde(deny_unknown_fields)]
    struct Sample {
        name: String,
        #[serde(default)]
        count: Option<u32>,
        #[serde(default)]
        flag: bool,
        #[serde(default)]
        list: Vec<u16>,
        #[serde(default)]
        map: BTreeMap<String, String>,
        #[serde(default)]
        any: Option<Value>,
    }

    fn read(text: &str) -> Result<Sample, (usize, usize, String)> {
        from_tree(&load(text).unwrap()).map_err(|e| {
            let at = e.span.unwrap().start;
            (at.line, at.column, e.message)
        })
    }

    #[test]
    fn values() {
        let got = read(
            "name: 1.30\ncount:\nmap: {a: yes, b: 010, c: ''}\nlist:\nany: {x: [yes, 010, 'no', 1.5]}\n",
        );
        let got = got.unwrap();
        assert_eq!((got.name.as_str(), got.count), ("1.30", None));
        assert_eq!((got.map["a"].as_str(), got.map["b"].as_str(), got.map["c"].as_str()), ("yes", "010", ""));
        assert_eq!(got.any.unwrap(), serde_json::json!({ "x": [true, 8, "no", 1.5] }));
    }

    #[test]
    fn errors_have_places() {
        for (text, line, column, message) in [
            ("name: a\ncuont: 1\n", 2, 1, "unknown key \"cuont\": did you mean \"count\"?"),
            ("name: a\ncount: many\n", 2, 8, "expected a whole number that fits, found the text \"many\""),
            ("name: a\ncount: -1\n", 2, 8, "expected a whole number that fits, found -1"),
            ("name: a\ncount: \"1\"\n", 2, 8, "expected a whole number that fits, found the text \"1\""),
            ("name: a\nflag: yes\n", 2, 7, "expected true or false, found the text \"yes\""),
            ("name: a\nlist:\n  - 1\n  - 70000\n", 4, 5, "expected a whole number that fits, found 70000"),
            ("name: a\nlist: {a: 1}\n", 2, 7, "expected a list, found a mapping"),
            ("name: a\nmap: {a: [1]}\n", 2, 10, "expected a text, found a list"),
            ("name: a\nmap: {a: }\n", 2, 7, "expected a text, found nothing"),
            ("name:\n", 1, 1, "expected a text, found nothing"),
            ("count: 1\n", 1, 1, "the key \"name\" is missing"),
            ("[a]\n", 1, 1, "expected a mapping, found a list"),
            ("word\n", 1, 1, "expected struct Sample, found the text \"word\""),
        ] {
            assert_eq!(read(text), Err((line, column, message.to_owned())), "{text}");
        }
    }
}
