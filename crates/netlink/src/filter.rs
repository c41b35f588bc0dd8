use std::os::fd::{AsRawFd, BorrowedFd};

use anyhow::{Context, Result};
use futures::StreamExt;
use rtnetlink::packet_core::{
    NLM_F_ACK, NLM_F_CREATE, NLM_F_EXCL, NLM_F_REQUEST, NetlinkMessage, NetlinkPayload,
};
use rtnetlink::packet_route::RouteNetlinkMessage;
use rtnetlink::packet_route::tc::{
    TcAttribute, TcBpfFlags, TcFilterBpf, TcFilterBpfOption, TcHandle, TcMessage, TcOption,
};

use crate::{EEXIST, Netlink};

const ALL_PROTOCOLS: u16 = 0x0003;
const FIRST: u16 = 1;
/// What filters of both directions hang on.
const PLACE: TcHandle = TcHandle { major: TcHandle::INGRESS.major, minor: 0 };

/// Which packets of a link, seen from this side.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Direction {
    In,
    Out,
}

impl Netlink {
    /// Lets all packets pass through a BPF program first, which belongs to the link from then on. The one of an
    /// earlier call is replaced.
    pub async fn pass_through(
        &self,
        index: u32,
        direction: Direction,
        program: BorrowedFd<'_>,
    ) -> Result<()> {
        let link = i32::try_from(index).context("a link's index")?;
        let mut place = TcMessage::with_index(link);
        (place.header.parent, place.header.handle) = (TcHandle::INGRESS, PLACE);
        place.attributes = vec![TcAttribute::Kind("clsact".to_owned())];
        match self.order(RouteNetlinkMessage::NewQueueDiscipline(place), NLM_F_CREATE | NLM_F_EXCL).await {
            Err(e) if e.raw_os_error() != Some(EEXIST) => {
                return Err(e).with_context(|| format!("make a place for filters on link {index}"));
            }
            _ => {}
        }
        let mut filter = TcMessage::with_index(link);
        let minor = match direction {
            Direction::In => TcHandle::MIN_INGRESS,
            Direction::Out => TcHandle::MIN_EGRESS,
        };
        filter.header.parent = TcHandle { minor, ..PLACE };
        filter.header.handle = TcHandle { major: 0, minor: 1 };
        filter.header.info = u32::from(TcHandle { major: FIRST, minor: ALL_PROTOCOLS.to_be() });
        let options = [
            TcFilterBpfOption::ProgFd(program.as_raw_fd().try_into()?),
            TcFilterBpfOption::ProgName("manykube".to_owned()),
            TcFilterBpfOption::Flags(TcBpfFlags::DirectAction),
        ];
        filter.attributes = vec![
            TcAttribute::Kind(TcFilterBpf::KIND.to_owned()),
            TcAttribute::Options(options.into_iter().map(TcOption::Bpf).collect()),
        ];
        let made = self.order(RouteNetlinkMessage::NewTrafficFilter(filter), NLM_F_CREATE).await;
        made.with_context(|| format!("put a program on link {index}"))
    }

    /// What the kernel only says yes or no to.
    async fn order(&self, message: RouteNetlinkMessage, flags: u16) -> std::io::Result<()> {
        let mut request = NetlinkMessage::from(message);
        request.header.flags = NLM_F_REQUEST | NLM_F_ACK | flags;
        let mut answers = self.handle.clone().request(request).map_err(std::io::Error::other)?;
        while let Some(answer) = answers.next().await {
            if let NetlinkPayload::Error(refusal) = answer.payload
                && refusal.code.is_some()
            {
                return Err(refusal.to_io());
            }
        }
        Ok(())
    }
}
