//! What control planes tell each other, 24 bytes in one datagram.
//!
//! ```text
//!  0      4     5         6       7      8            16        20           24
//!  | MKV1 | 0   | standing| health| flags | term (u64) | vip     | successor |
//! ```
//! Numbers are in network order; a successor of 0.0.0.0 is none; flag 1: the sender holds the
//! address. As in VRRP (RFC 9568, 5.1.1.3) packets travel with a TTL of 255 and are dropped when
//! they arrive with less, so that none can come from outside the link, for example from a pod.

use std::net::Ipv4Addr;

use model::node_spec::Health;

pub const SIZE: usize = 24;
const MAGIC: [u8; 4] = *b"MKV1";
const HOLDER: u8 = 1;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Advert {
    /// Of the election that the holder won; from others, the highest they have seen.
    pub term: u64,
    pub standing: Standing,
    pub health: Health,
    pub holder: bool,
    /// The sender has just given the address up for this one.
    pub successor: Option<Ipv4Addr>,
}

/// How well a control plane would do as the holder (VRRP's priority).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Standing {
    /// Going down: not to be reckoned with any more (VRRP's priority 0).
    Leaving,
    /// Its API server does not answer.
    Down,
    /// Its API server has only just begun to answer.
    New,
    Fit,
}

impl Advert {
    /// `vip` says which election this belongs to.
    pub fn encode(&self, vip: Ipv4Addr) -> [u8; SIZE] {
        let mut packet = [0; SIZE];
        packet[..4].copy_from_slice(&MAGIC);
        packet[5] = self.standing as u8;
        packet[6] = self.health as u8;
        packet[7] = if self.holder { HOLDER } else { 0 };
        packet[8..16].copy_from_slice(&self.term.to_be_bytes());
        packet[16..20].copy_from_slice(&vip.octets());
        packet[20..].copy_from_slice(&self.successor.unwrap_or(Ipv4Addr::UNSPECIFIED).octets());
        packet
    }

    /// `None` for whatever is not an advertisement of this election.
    pub fn decode(packet: &[u8], vip: Ipv4Addr) -> Option<Advert> {
        let packet: &[u8; SIZE] = packet.try_into().ok()?;
        if packet[..4] != MAGIC || packet[16..20] != vip.octets() {
            return None;
        }
        let standing = [Standing::Leaving, Standing::Down, Standing::New, Standing::Fit];
        let health = [Health::Down, Health::Alive, Health::Ready];
        let successor = Ipv4Addr::from(<[u8; 4]>::try_from(&packet[20..]).ok()?);
        Some(Advert {
            term: u64::from_be_bytes(packet[8..16].try_into().ok()?),
            standing: *standing.get(usize::from(packet[5]))?,
            health: *health.get(usize::from(packet[6]))?,
            holder: packet[7] & HOLDER != 0,
            successor: (!successor.is_unspecified()).then_some(successor),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const VIP: Ipv4Addr = Ipv4Addr::new(192, 168, 49, 254);

    #[test]
    fn what_is_told_is_heard() {
        for standing in [Standing::Leaving, Standing::Down, Standing::New, Standing::Fit] {
            for health in [Health::Down, Health::Alive, Health::Ready] {
                for successor in [None, Some(Ipv4Addr::new(192, 168, 49, 3))] {
                    let advert = Advert { term: 1 << 40, standing, health, holder: true, successor };
                    assert_eq!(Advert::decode(&advert.encode(VIP), VIP), Some(advert));
                }
            }
        }
    }

    #[test]
    fn other_elections_are_not_ours() {
        let advert = Advert {
            term: 1,
            standing: Standing::Fit,
            health: Health::Ready,
            holder: false,
            successor: None,
        };
        assert_eq!(Advert::decode(&advert.encode(VIP), Ipv4Addr::new(10, 0, 0, 254)), None);
    }

    proptest! {
        #[test]
        fn noise_is_no_advert(noise in prop::collection::vec(any::<u8>(), 0..40)) {
            prop_assert_eq!(Advert::decode(&noise, VIP), None);
        }
    }
}
