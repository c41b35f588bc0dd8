//! `--vip`: who holds the virtual address. kube-vip is an image, so it is looked for before anything
//! is made that cannot work without it.

use std::time::Duration;

use bootstrap::registry::{self, Reference};
use model::{Fault, Reason, VipBy};

use super::Args;
use super::values::usage;

#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum Holder {
    Agent,
    KubeVip,
}

/// A part of the name that kube-vip's image has, wherever it comes from.
const KUBE_VIP: &str = "/kube-vip:";
const PATIENCE: Duration = Duration::from_secs(10);

/// Combinations of flags that cannot be.
pub fn check(args: &Args) -> Result<(), Fault> {
    match (args.vip, &args.vip_image) {
        (Some(Holder::KubeVip), _) | (_, None) => Ok(()),
        _ => Err(usage("--vip-image is kube-vip's image: it goes with --vip=kube-vip")),
    }
}

/// How a cluster that is not there yet gets its holder. `images` are those of its node image.
pub async fn choose(args: &Args, images: &[String]) -> Result<VipBy, Fault> {
    if args.vip != Some(Holder::KubeVip) {
        return Ok(VipBy::Agent);
    }
    let image = match choose_image(args.vip_image.as_deref(), images)? {
        Image::There(image) => image,
        Image::Elsewhere(image, reference) => {
            pullable(&reference).await.map_err(|why| {
                let message =
                    format!("The image {image} is not in the node image, and it cannot be pulled: {why}");
                Fault::new(Reason::InetRepo, message)
                    .advice("Use --vip=agent, which needs no image, or name another one with --vip-image")
            })?;
            image
        }
    };
    Ok(VipBy::KubeVip { image })
}

async fn pullable(image: &Reference) -> Result<(), String> {
    if image.is_local() {
        return Err(format!("{} means each node itself there", image.host));
    }
    registry::can_pull(image, PATIENCE).await.map_err(|e| e.to_string())
}

#[derive(Debug, PartialEq, Eq)]
enum Image {
    There(String),
    Elsewhere(String, Reference),
}

fn choose_image(asked: Option<&str>, images: &[String]) -> Result<Image, Fault> {
    match asked.filter(|a| !a.is_empty()) {
        Some(asked) if images.iter().any(|i| i == asked) => Ok(Image::There(asked.to_owned())),
        Some(asked) => match Reference::parse(asked) {
            Some(reference) => Ok(Image::Elsewhere(asked.to_owned(), reference)),
            None => Err(usage(format!(
                "--vip-image={asked} does not say where the image is: REGISTRY/NAME:TAG does"
            ))),
        },
        None => match images.iter().find(|i| i.contains(KUBE_VIP)) {
            Some(image) => Ok(Image::There(image.clone())),
            None => {
                Err(usage("--vip=kube-vip: the node image has no kube-vip image, and --vip-image names none")
                    .advice(
                        "Name one that can be pulled with --vip-image, or use --vip=agent, which needs none",
                    ))
            }
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::commands::start::desired::tests::args;

    #[test]
    fn flags() {
        assert!(check(&args("")).is_ok() && check(&args("--vip=agent")).is_ok());
        assert!(check(&args("--vip=kube-vip --vip-image=r.example/kube-vip:v1")).is_ok());
        for line in ["--vip-image=r.example/kube-vip:v1", "--vip=agent --vip-image=r.example/kube-vip:v1"] {
            assert_eq!(check(&args(line)).unwrap_err().reason, Reason::Usage, "{line}");
        }
    }

    #[test]
    fn an_image_that_is_there_or_may_be_had() {
        let mine = "registry.example/kube-vip/kube-vip:v1.0.3".to_owned();
        let images = ["registry.example/pause:3".to_owned(), mine.clone()];
        assert_eq!(choose_image(None, &images), Ok(Image::There(mine.clone())));
        assert_eq!(choose_image(Some(&mine), &images), Ok(Image::There(mine.clone())));
        assert!(matches!(choose_image(Some(&mine), &[]), Ok(Image::Elsewhere(..))));
        for asked in
            [None, Some(""), Some("kube-vip"), Some("kube-vip/kube-vip:v1"), Some("r.example/kube-vip")]
        {
            let fault = choose_image(asked, &images[..1]).unwrap_err();
            assert_eq!(fault.reason, Reason::Usage);
            assert!(!fault.message.contains('\n'));
        }
    }

    #[tokio::test]
    async fn what_cannot_be_pulled_is_one_sentence() {
        for host in ["127.0.0.1:5000", "localhost"] {
            let line = format!("--vip=kube-vip --vip-image={host}/kube-vip:v1");
            let fault = choose(&args(&line), &[]).await.unwrap_err();
            assert_eq!(fault.reason.exit_code(), 40);
            assert!(fault.message.contains("cannot be pulled") && !fault.message.contains('\n'), "{fault}");
        }
    }
}
