//! The JSON Schema, for editors: they complete and check a file as it is written.

use schemars::generate::SchemaSettings;
use serde_json::Value;

use crate::file::ClusterFile;

pub fn schema() -> Value {
    let generator = SchemaSettings::draft2020_12().into_generator();
    generator.into_root_schema_for::<ClusterFile>().to_value()
}

#[cfg(test)]
mod tests {
    /// `UPDATE_SCHEMA=1 cargo test -p cluster_file schema` writes it anew.
    #[test]
    fn the_committed_schema_is_that_of_the_types() {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/cluster.schema.json");
        let text = serde_json::to_string_pretty(&super::schema()).unwrap() + "\n";
        if std::env::var_os("UPDATE_SCHEMA").is_some() {
            std::fs::write(path, &text).unwrap();
        }
        let committed = std::fs::read_to_string(path).unwrap_or_default();
        assert!(
            committed == text,
            "docs/cluster.schema.json is old: run UPDATE_SCHEMA=1 cargo test -p cluster_file schema"
        );
    }
}
