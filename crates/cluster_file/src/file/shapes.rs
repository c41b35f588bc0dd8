//! JSON Schema of values that Rust's types do not show. The parser is the judge: these are for editors.

use model::node_config::Binary;
use schemars::{Schema, SchemaGenerator, json_schema};

type Generator<'a> = &'a mut SchemaGenerator;

pub fn cluster_name(_: Generator<'_>) -> Schema {
    json_schema!({ "type": ["string", "null"], "minLength": 2, "maxLength": 40, "pattern": "^[A-Za-z0-9]([A-Za-z0-9.-]*[A-Za-z0-9])?$" })
}

pub fn node_name(_: Generator<'_>) -> Schema {
    json_schema!({ "type": ["string", "null"], "maxLength": 22, "pattern": "^[a-z0-9]([a-z0-9-]*[a-z0-9])?$" })
}

pub fn name_prefix(_: Generator<'_>) -> Schema {
    json_schema!({ "type": ["string", "null"], "maxLength": 19, "pattern": "^[a-z0-9][a-z0-9-]*$" })
}

/// A number as well, because `1.37` is one to editors.
pub fn version(_: Generator<'_>) -> Schema {
    json_schema!({ "type": ["string", "number", "null"], "examples": ["v1.37.1", "1.36", "stable"] })
}

pub fn runtime(_: Generator<'_>) -> Schema {
    json_schema!({ "enum": ["containerd", "docker", "cri-o", null] })
}

pub fn size(_: Generator<'_>) -> Schema {
    json_schema!({ "type": ["string", "integer", "null"], "examples": ["4g", "4Gi", 4096] })
}

pub fn hours(_: Generator<'_>) -> Schema {
    json_schema!({ "type": ["string", "null"], "pattern": "^[1-9][0-9]*h$" })
}

pub fn mode(_: Generator<'_>) -> Schema {
    json_schema!({ "type": ["string", "integer", "null"], "pattern": "^(0o)?[0-7]{3,4}$" })
}

pub fn cidr(_: Generator<'_>) -> Schema {
    json_schema!({ "type": ["string", "null"], "pattern": "^[0-9]+\\.[0-9]+\\.[0-9]+\\.[0-9]+/[0-9]+$" })
}

pub fn proxy_mode(_: Generator<'_>) -> Schema {
    json_schema!({ "enum": ["iptables", "ipvs", "nftables", "none", null] })
}

fn list(pattern: &str) -> Schema {
    json_schema!({ "type": ["array", "null"], "items": { "type": "string", "pattern": pattern } })
}

pub fn taints(_: Generator<'_>) -> Schema {
    list("^[^=:]+(=[^:]*)?:(NoSchedule|PreferNoSchedule|NoExecute)$")
}

pub fn mounts(_: Generator<'_>) -> Schema {
    list("^[^:]+:/[^:]+(:(ro|rw))?$")
}

pub fn ports(_: Generator<'_>) -> Schema {
    list("^([0-9.]+:)?[0-9]+:[0-9]+(/(tcp|udp|sctp))?$")
}

/// Numbers and booleans as well: the parser takes any word as text.
pub fn labels(_: Generator<'_>) -> Schema {
    json_schema!({
        "type": ["object", "null"],
        "additionalProperties": { "type": ["string", "number", "boolean"] }
    })
}

pub fn binaries(_: Generator<'_>) -> Schema {
    json_schema!({
        "type": ["object", "null"],
        "propertyNames": { "enum": Binary::WORDS },
        "additionalProperties": { "type": "string" }
    })
}
