//! Flags of components, as a mapping of mappings or as minikube's `component.flag=value`.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt;

use model::node_config::{Component, ExtraConfig, check_flag};
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::{Error, MapAccess, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize};

#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
#[serde(transparent)]
pub struct ExtraConfigValue(pub ExtraConfig);

impl ExtraConfigValue {
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

#[derive(PartialEq, Eq, PartialOrd, Ord)]
struct Flag(String);

impl<'de> Deserialize<'de> for Flag {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Flag, D::Error> {
        let text = String::deserialize(deserializer)?;
        check_flag(&text).map_err(D::Error::custom)?;
        Ok(Flag(text))
    }
}

/// One line of the short form.
struct Item(Component, String, String);

impl<'de> Deserialize<'de> for Item {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Item, D::Error> {
        let text = String::deserialize(deserializer)?;
        let (component, flag, value) = Component::parse_option(&text).map_err(D::Error::custom)?;
        Ok(Item(component, flag, value))
    }
}

struct Read;

impl<'de> Visitor<'de> for Read {
    type Value = ExtraConfigValue;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a mapping like {kubelet: {max-pods: 50}}, or a list of kubelet.max-pods=50")
    }

    fn visit_unit<E: Error>(self) -> Result<ExtraConfigValue, E> {
        Ok(ExtraConfigValue::default())
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<ExtraConfigValue, A::Error> {
        let mut config = ExtraConfig::new();
        while let Some((component, flags)) = map.next_entry::<Component, BTreeMap<Flag, String>>()? {
            // An empty mapping says nothing, and would not survive being written.
            if !flags.is_empty() {
                config.insert(component, flags.into_iter().map(|(flag, value)| (flag.0, value)).collect());
            }
        }
        Ok(ExtraConfigValue(config))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<ExtraConfigValue, A::Error> {
        let mut config = ExtraConfig::new();
        while let Some(Item(component, flag, value)) = list.next_element()? {
            config.entry(component).or_default().insert(flag, value);
        }
        Ok(ExtraConfigValue(config))
    }
}

impl<'de> Deserialize<'de> for ExtraConfigValue {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<ExtraConfigValue, D::Error> {
        deserializer.deserialize_any(Read)
    }
}

impl JsonSchema for ExtraConfigValue {
    fn schema_name() -> Cow<'static, str> {
        "ExtraConfig".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        let flags = json_schema!({
            "type": ["object", "null"],
            "additionalProperties": { "type": ["string", "number", "boolean"] }
        });
        json_schema!({
            "anyOf": [
                {
                    "type": ["object", "null"],
                    "propertyNames": { "enum": Component::WORDS },
                    "additionalProperties": flags
                },
                { "type": "array", "items": { "type": "string", "pattern": "^[a-z-]+\\.[^=]+=.*$" } }
            ]
        })
    }
}
