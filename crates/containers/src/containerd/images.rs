//! Images: names of what is in the content store.

use tonic::Streaming;

use super::client::{Client, Error};
use super::messages::{
    Descriptor as Wire, Empty, Envelope, FieldMask, Filters, Image, Images, Named, OneImage, UpdateImage,
};
use crate::oci::Descriptor;

const METHODS: [&str; 5] = [
    "/containerd.services.images.v1.Images/Get",
    "/containerd.services.images.v1.Images/List",
    "/containerd.services.images.v1.Images/Create",
    "/containerd.services.images.v1.Images/Update",
    "/containerd.services.images.v1.Images/Delete",
];

impl Client {
    pub async fn image(&self, name: &str) -> Result<Option<Image>, Error> {
        let message = Named { name: name.to_owned(), sync: false };
        match self.call::<_, OneImage>(METHODS[0], message).await {
            Ok(answer) => Ok(answer.image),
            Err(e) if e.is_not_found() => Ok(None),
            Err(e) => Err(e),
        }
    }

    pub async fn images(&self) -> Result<Vec<Image>, Error> {
        Ok(self.call::<_, Images>(METHODS[1], Filters::default()).await?.images)
    }

    /// A name means this from now on, whatever it meant before.
    pub async fn name_image(&self, image: Image) -> Result<(), Error> {
        let message = OneImage { image: Some(image.clone()) };
        match self.call::<_, OneImage>(METHODS[2], message).await {
            Err(e) if e.is_already_there() => {
                let paths = vec!["target".to_owned(), "labels".to_owned()];
                let message = UpdateImage { image: Some(image), mask: Some(FieldMask { paths }) };
                self.call::<_, OneImage>(METHODS[3], message).await.map(drop)
            }
            other => other.map(drop),
        }
    }

    /// Whether there was such a name. What nothing refers to any more is gone when this returns.
    pub async fn remove_image(&self, name: &str) -> Result<bool, Error> {
        let message = Named { name: name.to_owned(), sync: true };
        match self.call::<_, Empty>(METHODS[4], message).await {
            Ok(_) => Ok(true),
            Err(e) if e.is_not_found() => Ok(false),
            Err(e) => Err(e),
        }
    }

    /// What happens to images from now on.
    pub async fn image_events(&self) -> Result<Streaming<Envelope>, Error> {
        let filters = vec!["topic~=/images/".to_owned()];
        self.listen("/containerd.services.events.v1.Events/Subscribe", Filters { filters }).await
    }
}

impl From<&Descriptor> for Wire {
    fn from(d: &Descriptor) -> Wire {
        Wire {
            media_type: d.media_type.clone(),
            digest: d.digest.clone(),
            size: i64::try_from(d.size).unwrap_or(i64::MAX),
            annotations: Default::default(),
        }
    }
}

impl From<&Wire> for Descriptor {
    fn from(d: &Wire) -> Descriptor {
        Descriptor {
            media_type: d.media_type.clone(),
            digest: d.digest.clone(),
            size: d.size.unsigned_abs(),
            ..Descriptor::default()
        }
    }
}
