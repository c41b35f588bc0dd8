use std::os::fd::{AsRawFd, BorrowedFd};

use anyhow::{Context, Result};
use futures::StreamExt;
use rtnetlink::packet_core::{NLM_F_ACK, NLM_F_CREATE, NLM_F_REQUEST, NetlinkMessage, NetlinkPayload};
use rtnetlink::packet_route::RouteNetlinkMessage;
use rtnetlink::packet_route::tc::{
    TcAttribute, TcBpfFlags, TcFilterBpf, TcFilterBpfOption, TcHandle, TcMessage, TcOption,
};

use crate::{EEXIST, Netlink, errno};

const ALL_PROTOCOLS: u16 = 0x0003;
const FIRST: u16 = 1;

impl Netlink {
    /// Lets all that comes in by this link pass through a BPF program first, which belongs to the link from then on.
    /// The one of an earlier call is replaced.
    pub async fn pass_through(&self, index: u32, program: BorrowedFd<'_>, name: &str) -> Result<()> {
        let link = i32::try_from(index).context("a link's index")?;
        let made = self.handle.qdisc().add(link).ingress().execute().await;
        if let Err(e) = made
            && errno(&e) != Some(EEXIST)
        {
            return Err(e).with_context(|| format!("make an ingress for link {index}"));
        }
        let mut filter = TcMessage::with_index(link);
        filter.header.handle = TcHandle { major: 0, minor: 1 };
        filter.header.parent = TcHandle { major: TcHandle::INGRESS.major, minor: 0 };
        filter.header.info = u32::from(TcHandle { major: FIRST, minor: ALL_PROTOCOLS.to_be() });
        let options = [
            TcFilterBpfOption::ProgFd(program.as_raw_fd().try_into()?),
            TcFilterBpfOption::ProgName(name.to_owned()),
            TcFilterBpfOption::Flags(TcBpfFlags::DirectAction),
        ];
        filter.attributes = vec![
            TcAttribute::Kind(TcFilterBpf::KIND.to_owned()),
            TcAttribute::Options(options.into_iter().map(TcOption::Bpf).collect()),
        ];
        let mut request = NetlinkMessage::from(RouteNetlinkMessage::NewTrafficFilter(filter));
        request.header.flags = NLM_F_REQUEST | NLM_F_ACK | NLM_F_CREATE;
        let mut answers = self.handle.clone().request(request).context("ask for a filter")?;
        while let Some(answer) = answers.next().await {
            if let NetlinkPayload::Error(refusal) = answer.payload
                && refusal.code.is_some()
            {
                return Err(refusal.to_io()).with_context(|| format!("put a program on link {index}"));
            }
        }
        Ok(())
    }
}
