//! A manifest of the user's: looked at before anything is made with it. Pure.

use anyhow::{Context, Result, bail, ensure};
use serde_json::Value;

use crate::yaml;

/// The objects of a file as kubectl takes them: documents, and lists of objects among them.
pub fn objects(text: &str) -> Result<Vec<Value>> {
    let mut objects = Vec::new();
    for (number, document) in (1..).zip(yaml::from_documents(text)?) {
        take(document, &mut objects).with_context(|| format!("document {number}"))?;
    }
    ensure!(!objects.is_empty(), "it has no objects");
    Ok(objects)
}

fn take(document: Value, into: &mut Vec<Value>) -> Result<()> {
    let word = |pointer: &str| document.pointer(pointer).and_then(Value::as_str).unwrap_or_default();
    for (pointer, name) in [("/apiVersion", "apiVersion"), ("/kind", "kind")] {
        ensure!(!word(pointer).is_empty(), "an object without {name}");
    }
    if word("/kind") == "List" {
        let Some(items) = document["items"].as_array() else { bail!("a List without items") };
        return items.iter().try_for_each(|item| take(item.clone(), into));
    }
    ensure!(!word("/metadata/name").is_empty(), "a {} without a name", word("/kind"));
    into.push(document);
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    const GOOD: &str = "
apiVersion: v1
kind: Namespace
metadata: { name: net }
---
# nothing
---
apiVersion: v1
kind: List
items:
- { apiVersion: v1, kind: ServiceAccount, metadata: { name: net, namespace: net } }
- { apiVersion: apps/v1, kind: DaemonSet, metadata: { name: net, namespace: net } }
";

    #[test]
    fn documents_and_lists() {
        let kinds: Vec<String> =
            objects(GOOD).unwrap().iter().map(|o| o["kind"].as_str().unwrap().to_owned()).collect();
        assert_eq!(kinds, ["Namespace", "ServiceAccount", "DaemonSet"]);
    }

    #[test]
    fn what_is_no_manifest_says_why() {
        for (text, why) in [
            ("", "it has no objects"),
            ("---\n---\n", "it has no objects"),
            ("hello", "document 1: an object without apiVersion"),
            ("apiVersion: v1\n", "document 1: an object without kind"),
            (&format!("{GOOD}---\napiVersion: v1\nkind: Pod\n"), "document 3: a Pod without a name"),
            ("apiVersion: v1\nkind: List\n", "document 1: a List without items"),
        ] {
            assert_eq!(format!("{:#}", objects(text).unwrap_err()), why);
        }
        assert!(objects("a: [1\n").is_err());
        assert!(objects("\u{7f}ELF\u{1}").is_err());
    }
}
