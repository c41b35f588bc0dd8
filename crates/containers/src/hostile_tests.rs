//! What a node may answer whose root wants something of the host or of another node (S5).

use std::collections::HashMap;
use std::convert::Infallible;
use std::sync::Arc;

use bytes::Bytes;
use futures::{StreamExt as _, stream};
use hyper::body::Incoming;
use hyper::server::conn::http2;
use hyper_util::rt::{TokioExecutor, TokioIo};
use serde_json::json;
use tonic::body::Body;
use tonic::server::Grpc;
use tonic::{Request, Response, Status};
use tonic_prost::ProstCodec;
use tower::service_fn;

use crate::Node;
use crate::containerd::messages::{
    Arriving, ContentInfo, ContentInfoAnswer, Digest, Filters, Image, Images, Labels, PartOfContent,
    ReadContent,
};
use crate::containerd::{Client, Source};
use crate::copy::{copy, describe};
use crate::inventory::list;
use crate::oci::{self, Descriptor, INDEX, MANIFEST};

/// A node that has this says of every blob that another one writes it; others do not answer those who write.
const LOCKED: &str = "locked";

/// What the node says that it has: digest → bytes. It never sends what is empty.
type Store = Arc<HashMap<String, Bytes>>;

async fn answer(store: Store, request: http::Request<Incoming>) -> http::Response<Body> {
    let found = |digest: &str| store.get(digest).cloned().ok_or_else(|| Status::not_found("nothing"));
    match request.uri().path() {
        "/containerd.services.content.v1.Content/Info" => {
            let info = service_fn(move |request: Request<Digest>| {
                let Digest { digest } = request.into_inner();
                let info = found(&digest).map(|_| ContentInfo { digest, ..ContentInfo::default() });
                std::future::ready(info.map(|i| Response::new(ContentInfoAnswer { info: Some(i) })))
            });
            Grpc::new(ProstCodec::<ContentInfoAnswer, Digest>::default()).unary(info, request).await
        }
        "/containerd.services.content.v1.Content/Write" => match found(LOCKED) {
            Ok(_) => Status::unavailable("ref x locked for 1s").into_http(),
            Err(_) => std::future::pending().await,
        },
        "/containerd.services.images.v1.Images/List" => {
            let images = store.iter().map(|(digest, data)| {
                image(&Descriptor {
                    digest: digest.clone(),
                    size: data.len() as u64,
                    ..Descriptor::default()
                })
            });
            let images = Images { images: images.collect() };
            let list = service_fn(move |_: Request<Filters>| {
                std::future::ready(Ok::<_, Status>(Response::new(images.clone())))
            });
            Grpc::new(ProstCodec::<Images, Filters>::default()).unary(list, request).await
        }
        "/containerd.services.content.v1.Content/ListStatuses" => {
            let none =
                service_fn(async |_: Request<Filters>| Ok::<_, Status>(Response::new(Arriving::default())));
            Grpc::new(ProstCodec::<Arriving, Filters>::default()).unary(none, request).await
        }
        _ => {
            let read = service_fn(move |request: Request<ReadContent>| {
                let data = found(&request.into_inner().digest);
                let parts = data.map(|data| match data.is_empty() {
                    true => stream::pending().boxed(),
                    false => stream::iter([Ok(PartOfContent { offset: 0, data })]).boxed(),
                });
                std::future::ready(parts.map(Response::new))
            });
            Grpc::new(ProstCodec::<PartOfContent, ReadContent>::default())
                .server_streaming(read, request)
                .await
        }
    }
}

/// A node that has these blobs.
async fn client(store: HashMap<String, Bytes>) -> Client {
    let store = Arc::new(store);
    let dial = move || {
        let (own, other) = tokio::io::duplex(1 << 16);
        let store = store.clone();
        let service = hyper::service::service_fn(move |request| {
            let answered = answer(store.clone(), request);
            async move { Ok::<_, Infallible>(answered.await) }
        });
        tokio::spawn(
            http2::Builder::new(TokioExecutor::new()).serve_connection(TokioIo::new(other), service),
        );
        std::future::ready(Ok(own))
    };
    Client::connect(dial).await.expect("connect")
}

fn image(target: &Descriptor) -> Image {
    Image { name: "evil:v1".to_owned(), target: Some(target.into()), ..Image::default() }
}

/// What is said against an image of a node that has these blobs.
async fn refused(store: HashMap<String, Bytes>, target: Descriptor) -> String {
    let described = describe(&client(store).await, &image(&target)).await;
    format!("{:#}", described.err().expect("it is refused"))
}

fn blob(media_type: &str, data: &str) -> (Descriptor, (String, Bytes)) {
    let digest = oci::digest(data.as_bytes());
    let descriptor = Descriptor {
        media_type: media_type.to_owned(),
        digest: digest.clone(),
        size: data.len() as u64,
        ..Descriptor::default()
    };
    (descriptor, (digest, Bytes::copy_from_slice(data.as_bytes())))
}

const TRAP: &str = "sha256:../../../../../etc/shadow";

#[tokio::test]
async fn what_is_no_digest_is_not_asked_for() {
    let trap = json!({ "digest": TRAP, "size": 1 });
    let (config, stored) = blob("", "{}");
    for (config, layers) in [(json!(config), json!([trap])), (trap.clone(), json!([]))] {
        let text = json!({ "schemaVersion": 2, "config": config, "layers": layers }).to_string();
        let (manifest, own) = blob(MANIFEST, &text);
        let refused = refused([stored.clone(), own, (TRAP.into(), "x".into())].into(), manifest).await;
        assert!(refused.contains("is no digest"), "{refused}");
    }
    let (index, own) = blob(INDEX, &json!({ "manifests": [trap] }).to_string());
    assert!(refused([own].into(), index).await.contains("is no digest"));
    let target = Descriptor { digest: TRAP.to_owned(), size: 1, ..Descriptor::default() };
    assert!(refused(HashMap::new(), target).await.contains("is no digest"));
}

#[tokio::test]
async fn a_document_is_what_its_digest_says() {
    let (manifest, (digest, _)) = blob(MANIFEST, r#"{"schemaVersion":2}"#);
    for (data, says) in [
        (r#"{"schemaVersion":3}"#, "is something else"),
        (r#"{"schemaVersion":2} and more"#, "longer"),
        ("{}", "shorter"),
    ] {
        let refused = refused([(digest.clone(), data.into())].into(), manifest.clone()).await;
        assert!(refused.contains(says), "{refused}");
    }
    let long = Descriptor { size: oci::LONGEST_DOCUMENT + 1, ..manifest };
    assert!(refused(HashMap::new(), long).await.contains("is no document"));
}

#[tokio::test]
async fn no_image_is_without_end() {
    let some =
        |i: usize| json!({ "mediaType": MANIFEST, "digest": oci::digest(&i.to_le_bytes()), "size": 1 });
    let manifests: Vec<_> = (0..2000).map(some).collect();
    let (index, own) = blob(INDEX, &json!({ "manifests": manifests }).to_string());
    assert!(refused([own].into(), index).await.contains("more than 1000 blobs"));
    let large = |i: usize| {
        let size = oci::LONGEST_DOCUMENT;
        json!({ "mediaType": MANIFEST, "digest": oci::digest(&i.to_le_bytes()), "size": size })
    };
    let manifests: Vec<_> = (0..9).map(large).collect();
    let (index, own) = blob(INDEX, &json!({ "manifests": manifests }).to_string());
    assert!(refused([own].into(), index).await.contains("its documents have more than"));
}

#[tokio::test]
async fn half_an_image_is_not_copied() {
    let ours = if cfg!(target_arch = "aarch64") { "arm64" } else { "amd64" };
    let (layer, _) = blob("", "layer");
    for (architecture, lacks) in [(ours, true), ("other", false)] {
        let config =
            json!({ "os": "linux", "architecture": architecture, "rootfs": { "diff_ids": [layer.digest] } });
        let (config, stored) = blob("", &config.to_string());
        let manifest = json!({ "schemaVersion": 2, "config": config, "layers": [layer] }).to_string();
        let (target, own) = blob(MANIFEST, &manifest);
        let client = client([stored, own].into()).await;
        let (_, found) = describe(&client, &image(&target)).await.expect("it is described");
        assert_eq!(found, lacks.then(|| format!("layer {}", layer.digest)));
        if lacks {
            let node = Node { name: "m02".to_owned(), client };
            let two = [image(&target), image(&target)];
            let said = copy(&two, &node, &node).await.expect_err("it is refused").to_string();
            let one = format!("node m02 lacks layer {} of evil:v1: pull it again there", layer.digest);
            assert_eq!(said, format!("{one}; {one}"));
        }
    }
    let (config, _) = blob("", "{}");
    let (target, own) = blob(MANIFEST, &json!({ "schemaVersion": 2, "config": config }).to_string());
    let (_, found) = describe(&client([own].into()).await, &image(&target)).await.expect("it is described");
    assert_eq!(found, Some(format!("the configuration {}", config.digest)));
}

#[tokio::test]
async fn nothing_is_waited_for_without_end() {
    let (manifest, (digest, _)) = blob(MANIFEST, "{}");
    let said = refused([(digest, Bytes::new())].into(), manifest.clone()).await;
    assert!(said.contains("no part of a blob within"), "{said}");
    for (store, says) in [
        (HashMap::new(), "no answer about a blob within"),
        ([(LOCKED.to_owned(), Bytes::new())].into(), "locked for"),
    ] {
        let data = Source::Data("{}".into());
        let put = client(store).await.put_content(&manifest, data, Labels::new()).await;
        let said = put.expect_err("it fails").to_string();
        assert!(said.contains(says), "{said}");
    }
}

#[tokio::test]
async fn an_odd_image_hides_no_other() {
    let (config, _) = blob("", "{}");
    let (target, own) = blob("", &json!({ "schemaVersion": 2, "config": config }).to_string());
    let other = (oci::digest(b"other"), "{}".into());
    let node =
        Node { name: "m02".to_owned(), client: client([own, other, (TRAP.into(), "x".into())].into()).await };
    let found = list(&node).await.expect("a list");
    assert_eq!(found.keys().collect::<Vec<_>>(), [&config.digest], "{target:?}");
}
