//! What a start waits for: `all`, `none`, or a list.

use std::borrow::Cow;
use std::fmt;

use model::cluster::WaitFor;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::{Error, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct WaitList(pub Vec<WaitFor>);

impl Serialize for WaitList {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self.0.as_slice() {
            [] => serializer.serialize_str("none"),
            list if list == WaitFor::ALL => serializer.serialize_str("all"),
            list => serializer.collect_seq(list.iter().map(|w| w.as_str())),
        }
    }
}

struct Read;

impl<'de> Visitor<'de> for Read {
    type Value = WaitList;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let words: Vec<&str> = WaitFor::ALL.iter().map(|w| w.as_str()).collect();
        write!(f, "all, none, or a list of {}", words.join(", "))
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<WaitList, E> {
        match text {
            "all" => Ok(WaitList(WaitFor::ALL.to_vec())),
            "none" => Ok(WaitList(Vec::new())),
            _ => Err(E::invalid_value(serde::de::Unexpected::Str(text), &self)),
        }
    }

    fn visit_bool<E: Error>(self, all: bool) -> Result<WaitList, E> {
        self.visit_str(if all { "all" } else { "none" })
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<WaitList, A::Error> {
        let mut list: Vec<WaitFor> = Vec::new();
        while let Some(item) = items.next_element()? {
            list.push(item);
        }
        list.sort();
        list.dedup();
        Ok(WaitList(list))
    }
}

impl<'de> Deserialize<'de> for WaitList {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<WaitList, D::Error> {
        deserializer.deserialize_any(Read)
    }
}

impl JsonSchema for WaitList {
    fn schema_name() -> Cow<'static, str> {
        "Wait".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        let words: Vec<&str> = WaitFor::ALL.iter().map(|w| w.as_str()).collect();
        json_schema!({
            "anyOf": [{ "enum": ["all", "none", true, false] }, { "type": "array", "items": { "enum": words } }]
        })
    }
}
