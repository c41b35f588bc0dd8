//! What the steps of one plan make once and use together, however many nodes it is about.

use std::cell::{Cell, OnceCell, RefCell};
use std::collections::BTreeSet;
use std::time::Duration;

use anyhow::Result;
use bootstrap::api::Nodes;
use bootstrap::{Identity, Pki, pki};
use image::NodeImage;
use model::{Cluster, Home};

use super::channel::Machines;
use super::images;

#[derive(Default)]
pub struct Shared {
    nodes: OnceCell<Nodes>,
    pki: OnceCell<Pki>,
    checked: RefCell<BTreeSet<String>>,
    booting: Cell<u32>,
}

impl Shared {
    /// The cluster's Node objects.
    pub fn nodes(&self, home: &Home, cluster: &Cluster, driver: &Machines) -> Result<&Nodes> {
        if let Some(nodes) = self.nodes.get() {
            return Ok(nodes);
        }
        let identity = Identity::load(home, &cluster.name)?;
        let client = driver.client(&identity, cluster)?;
        Ok(self.nodes.get_or_init(|| Nodes::new(client)))
    }

    /// All certificates. Looking at each takes longer the more nodes there are.
    pub fn pki(&self, home: &Home, cluster: &Cluster) -> Result<&Pki> {
        if let Some(pki) = self.pki.get() {
            return Ok(pki);
        }
        let read_node = |machine: &str, path: &str| drivers::machine::files::read(home, machine, path);
        pki::restore_signing_key(home, cluster, &read_node)?;
        let pki = pki::ensure(home, cluster, crate::host::now())?;
        Ok(self.pki.get_or_init(|| pki))
    }

    /// A damaged image must not become a node, nor many.
    pub fn check(&self, image: &NodeImage) -> Result<()> {
        if !self.checked.borrow().contains(&image.name) {
            image.check().map_err(images::damaged)?;
            self.checked.borrow_mut().insert(image.name.clone());
        }
        Ok(())
    }

    /// One more machine boots until what is returned is dropped.
    pub fn boots(&self) -> Booting<'_> {
        self.booting.set(self.booting.get() + 1);
        Booting { count: &self.booting }
    }
}

pub struct Booting<'a> {
    count: &'a Cell<u32>,
}

impl Booting<'_> {
    /// Between two looks at an agent: all together ask it a hundred times a second, because what the
    /// asking costs is missing where they boot.
    pub fn pause(&self) -> Duration {
        Duration::from_millis(10) * self.count.get()
    }
}

impl Drop for Booting<'_> {
    fn drop(&mut self) {
        self.count.set(self.count.get() - 1);
    }
}
