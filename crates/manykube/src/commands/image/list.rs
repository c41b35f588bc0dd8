//! `image ls`: in four formats, which are minikube's.

use anyhow::Result;
use containers::{Listed, reference};

use super::args::ListArgs;
use super::{cluster, stores};
use crate::commands::print;
use crate::core::containers::list;
use crate::ctx::Ctx;
use crate::table;

/// Characters of an id in a table.
const SHORT_ID: usize = 13;

pub async fn run(ctx: &Ctx, args: &ListArgs) -> Result<()> {
    let cluster = cluster(ctx)?;
    let images = list(&stores(ctx, &cluster, &args.node).await?).await?;
    print(&match args.format.as_str() {
        "table" => table(&images),
        "json" => format!("{}\n", serde_json::to_string(&images)?),
        "yaml" => serde_saphyr::to_string(&images)?,
        // minikube takes every other word for this one.
        _ => short(&images),
    });
    Ok(())
}

fn short(images: &[Listed]) -> String {
    let mut tags: Vec<&String> = images.iter().flat_map(|i| &i.repo_tags).collect();
    tags.sort_by(|a, b| b.cmp(a));
    tags.iter().map(|t| format!("{t}\n")).collect()
}

fn table(images: &[Listed]) -> String {
    let mut rows: Vec<Vec<String>> = Vec::new();
    for image in images {
        let size = image::human_size(image.size.parse().unwrap_or(0));
        let id: String = image.id.chars().take(SHORT_ID).collect();
        for tag in &image.repo_tags {
            let (path, tag) = reference::parts(tag);
            rows.push(vec![path.to_owned(), tag.unwrap_or("<none>").to_owned(), id.clone(), size.clone()]);
        }
    }
    rows.sort();
    table::render(&["Image", "Tag", "Image ID", "Size"], &rows)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample() -> Vec<Listed> {
        let image = |id: &str, tags: &[&str]| Listed {
            id: id.repeat(16),
            repo_digests: vec![],
            repo_tags: tags.iter().map(|t| (*t).to_owned()).collect(),
            size: "1000".into(),
        };
        vec![
            image("abcd", &["registry.k8s.io/pause:3.10", "registry.k8s.io/pause:3.9"]),
            image("0123", &["a.b/c:1"]),
        ]
    }

    #[test]
    fn short_is_one_name_a_line_the_last_first() {
        assert_eq!(short(&sample()), "registry.k8s.io/pause:3.9\nregistry.k8s.io/pause:3.10\na.b/c:1\n");
    }

    #[test]
    fn a_table_has_a_row_for_each_name() {
        let text = table(&sample());
        assert!(text.contains("│ registry.k8s.io/pause │ 3.10 │ abcdabcdabcda │"), "{text}");
        assert_eq!(text.matches("abcdabcdabcda").count(), 2);
    }
}
