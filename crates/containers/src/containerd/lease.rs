//! What is being made is held by a lease: when that ends and no image refers to it, containerd removes it.

use super::client::{Client, Error};
use super::messages::{Empty, Labels, Named, NewLease};

/// Also of a command that was killed: after this time nobody is still at work.
const LONGEST: jiff::SignedDuration = jiff::SignedDuration::from_hours(1);

pub struct Lease {
    id: String,
    outside: Client,
    /// Whatever is made through this one is held.
    pub client: Client,
}

impl Lease {
    pub async fn begin(client: &Client) -> Result<Lease, Error> {
        let id = format!("manykube-{}", uuid::Uuid::new_v4());
        let until = (jiff::Timestamp::now() + LONGEST).strftime("%Y-%m-%dT%H:%M:%SZ").to_string();
        let labels = Labels::from([("containerd.io/gc.expire".to_owned(), until)]);
        let message = NewLease { id: id.clone(), labels };
        client.call::<_, Empty>("/containerd.services.leases.v1.Leases/Create", message).await?;
        Ok(Lease { client: client.under(&id), outside: client.clone(), id })
    }

    /// When all went well what was made is an image's by now. `collect` waits until the rest is gone.
    pub async fn end(self, collect: bool) -> Result<(), Error> {
        let message = Named { name: self.id, sync: collect };
        self.outside.call::<_, Empty>("/containerd.services.leases.v1.Leases/Delete", message).await.map(drop)
    }
}
