//! Services of a cluster whose network is not ours: for each address of theirs one of ours, until Ctrl-C.

use std::net::{Ipv4Addr, SocketAddrV4};
use std::sync::Arc;

use anyhow::{Context as _, Result};
use drivers::docker::inside::Signals;
use tokio::net::TcpListener;

use super::ways::Ways;
use super::{Call, door, doorman};
use crate::background;
use crate::report::{Event, Style};
use crate::state::profile;

/// `said` is what `service` printed there: addresses, one in a line.
pub async fn forward(call: &Call<'_>, said: &[u8]) -> Result<u8> {
    let said = String::from_utf8_lossy(said);
    let ways = door::ways(&call.ctx.home, &call.ctx.profile, &call.engine);
    let ways = Arc::new(ways.context("there is no way into the cluster's network")?);
    let file = profile::require(&call.ctx.home, &call.ctx.profile)?;
    let others: Vec<Ipv4Addr> = file.cluster.nodes.iter().map(|node| node.ip).collect();
    let mut any = false;
    for line in said.lines() {
        match address(line) {
            Some(there) => {
                let listener =
                    TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.context("listen on loopback")?;
                let here = listener.local_addr().context("find the port")?;
                println!("{}", line.replacen(&there.to_string(), &here.to_string(), 1));
                // A port of a service is every node's: the one that is named may be down.
                let to = [*there.ip()].into_iter().chain(others.iter().copied());
                let to = to.map(|ip| SocketAddrV4::new(ip, there.port())).collect();
                tokio::spawn(serve(listener, ways.clone(), to));
                any = true;
            }
            None => println!("{line}"),
        }
    }
    if any {
        let message = "These addresses are there for as long as this command runs: end it with Ctrl-C";
        call.ctx.emit(Event::info(Style::Notice, message));
        // A terminal that goes away, too: it no longer ends a process that had a command run.
        Signals::listen().context("wait for the end")?.next().await;
    }
    Ok(0)
}

async fn serve(listener: TcpListener, ways: Arc<Ways>, to: Vec<SocketAddrV4>) {
    let each = |client| {
        tokio::spawn(doorman::hand_on(client, ways.clone(), to.clone()));
    };
    background::take(&listener, each).await;
}

/// The address in a line like `http://192.168.49.2:30080`.
fn address(line: &str) -> Option<SocketAddrV4> {
    let is_part = |c: char| c.is_ascii_digit() || c == '.' || c == ':';
    line.split("://").nth(1)?.split(|c| !is_part(c)).next()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_in_urls() {
        let of = |line| address(line).map(|a| a.to_string());
        assert_eq!(of("http://192.168.49.2:30080").as_deref(), Some("192.168.49.2:30080"));
        assert_eq!(of("https://192.168.49.2:30080/x").as_deref(), Some("192.168.49.2:30080"));
        assert_eq!(of("no node port"), None);
    }
}
