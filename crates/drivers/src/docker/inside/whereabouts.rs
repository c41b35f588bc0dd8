//! Where is the engine, as seen from here? Found by asking a process there, not by how it is reached.

use std::path::Path;

use anyhow::{Context, Result, bail};
use serde::{Deserialize, Serialize};

use super::{Engine, Errand, Input, Luggage, Place};

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Whereabouts {
    /// It sees the files that we see.
    pub files: bool,
    /// Its bridges are in our network.
    pub network: bool,
}

/// What a process knows of where it is.
#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Here {
    boot: String,
    network: String,
    pub landmark: bool,
}

impl Here {
    pub fn look(landmark: bool) -> Result<Here> {
        let network = std::fs::read_link("/proc/self/ns/net").context("find the own network")?;
        Ok(Here { boot: crate::boot_id(), network: network.to_string_lossy().into_owned(), landmark })
    }
}

impl Engine {
    /// `home` is a directory of ours.
    pub async fn whereabouts(&self, home: &Path) -> Result<Whereabouts> {
        let errand = Errand {
            argv: Vec::new(),
            env: Vec::new(),
            dir: "/".into(),
            home: Place::Same(home.to_owned()),
            luggage: Luggage::default(),
            input: Input::Nothing,
            keep: true,
        };
        let answer = self.run(errand).await.context("ask where the engine is")?;
        let said = String::from_utf8_lossy(&answer.said);
        let Ok(there) = serde_json::from_str::<Here>(&said) else {
            bail!("the engine cannot tell where it is: {}", said.trim());
        };
        let here = Here::look(true)?;
        Ok(Whereabouts {
            files: there.landmark && there.boot == here.boot,
            network: there.boot == here.boot && there.network == here.network,
        })
    }
}
