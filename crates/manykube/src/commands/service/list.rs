//! `service list`.

use anyhow::Result;
use k8s_openapi::api::core::v1::Service;
use kube::api::{Api, ListParams};
use kube::{Client, ResourceExt as _};
use model::{Fault, Reason};
use serde_json::{Value, json};

use super::url::Ports;
use super::{common, print};
use crate::ctx::Ctx;
use crate::table::{self, Format};

pub const HEADERS: [&str; 4] = ["NAMESPACE", "NAME", "TARGET PORT", "URL"];
pub const FORMAT: &str = "http://{{.IP}}:{{.Port}}";

#[derive(Debug, Clone, clap::Args)]
pub struct Args {
    /// table or json
    #[arg(short, long, value_enum, default_value_t, value_name = "FORMAT")]
    pub output: Format,
    /// Only this namespace
    #[arg(short, long)]
    pub namespace: Option<String>,
}

struct Row {
    namespace: String,
    name: String,
    ports: Vec<String>,
    urls: Vec<String>,
}

pub fn run(ctx: &Ctx, args: &Args) -> Result<u8> {
    let cluster = common::load(ctx)?;
    let ip = common::node(&cluster, None)?.ip;
    let services = ctx.run(async {
        let client = common::healthy_client(ctx, &cluster).await?;
        services(&client, args.namespace.as_deref().filter(|n| !n.is_empty())).await
    })?;
    let row = |service: &Service| {
        let ports = Ports::of(service);
        Ok::<_, Fault>(Row {
            namespace: service.namespace().unwrap_or_default(),
            name: service.name_any(),
            ports: ports.names(),
            urls: ports.urls(ip, FORMAT, false, "")?,
        })
    };
    let rows: Vec<Row> = services.iter().map(row).collect::<Result<_, _>>()?;
    match args.output {
        Format::Json => print(&json(&rows).to_string()),
        Format::Table => print(&text(&rows)),
    }
    Ok(0)
}

pub async fn services(client: &Client, namespace: Option<&str>) -> Result<Vec<Service>> {
    let api: Api<Service> = match namespace {
        Some(namespace) => Api::namespaced(client.clone(), namespace),
        None => Api::all(client.clone()),
    };
    Ok(api.list(&ListParams::default()).await.map_err(failed)?.items)
}

pub fn failed(e: kube::Error) -> Fault {
    Fault::new(Reason::ServiceList, format!("Failed to get the services: {e}"))
}

fn json(rows: &[Row]) -> Value {
    if rows.is_empty() {
        return Value::Null;
    }
    rows.iter()
        .map(|r| json!({ "Namespace": r.namespace, "Name": r.name, "URLs": r.urls, "PortNames": r.ports }))
        .collect()
}

fn text(rows: &[Row]) -> String {
    let cells = |r: &Row| vec![r.namespace.clone(), r.name.clone(), r.ports.join("\n"), r.urls.join("\n")];
    table::render(&HEADERS, &rows.iter().map(cells).collect::<Vec<_>>())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row() -> Row {
        let strings = |list: &[&str]| list.iter().map(|s| (*s).to_owned()).collect();
        Row {
            namespace: "default".into(),
            name: "web".into(),
            ports: strings(&["http/80", "443"]),
            urls: strings(&["http://192.168.49.2:30080", "http://192.168.49.2:30443"]),
        }
    }

    #[test]
    fn golden() {
        assert_eq!(
            text(&[row()]),
            "\
┌───────────┬──────┬─────────────┬───────────────────────────┐
│ NAMESPACE │ NAME │ TARGET PORT │            URL            │
├───────────┼──────┼─────────────┼───────────────────────────┤
│ default   │ web  │ http/80     │ http://192.168.49.2:30080 │
│           │      │ 443         │ http://192.168.49.2:30443 │
└───────────┴──────┴─────────────┴───────────────────────────┘
"
        );
        assert_eq!(json(&[]).to_string(), "null");
        assert_eq!(
            json(&[row()]).to_string(),
            r#"[{"Namespace":"default","Name":"web","URLs":["http://192.168.49.2:30080","http://192.168.49.2:30443"],"PortNames":["http/80","443"]}]"#
        );
    }
}
