//! Packets between nodes of one bridge are nobody else's business.
//!
//! Where `bridge-nf-call-iptables` is on, as container engines have it, the kernel shows what crosses a bridge to the
//! host's firewalls, and their policy for what is forwarded may be to drop it. The switch that a bridge has of its own
//! cannot be used: the kernel asks whether either of the two is on. But frames with a VLAN tag are not shown
//! (`bridge-nf-filter-vlan-tagged` is off everywhere), and one with the number 0 means nothing to whoever gets it: it
//! only bears a priority, the kernel takes it off. So every frame gets such a tag where it comes in from a node, and
//! loses it where it goes out to one, so that programs in nodes see nothing of it. This
//! holds whatever firewall is started or restarted later, and packets between nodes take no place in the host's table of
//! connections. What leaves the bridge for the host has no tag any more and goes by the guards as ever.

use std::os::fd::{AsFd, FromRawFd, OwnedFd};

use anyhow::Result;
use netlink::{Direction, Netlink};
use nix::libc;

const BPF_PROG_LOAD: libc::c_int = 5;
const SCHED_CLS: u32 = 3;
/// The helpers `bpf_skb_vlan_push` and `bpf_skb_vlan_pop`.
const VLAN_PUSH: i32 = 18;
const VLAN_POP: i32 = 19;
/// Not decided here: the packet goes on.
const UNSPEC: i32 = -1;
const TAG: u16 = 0x8100;

/// As the kernel has it: what to do, the registers (destination in the low half), a distance, a number.
#[repr(C)]
struct Instruction {
    code: u8,
    registers: u8,
    offset: i16,
    number: i32,
}

const fn instruction(code: u8, register: u8, number: i32) -> Instruction {
    Instruction { code, registers: register, offset: 0, number }
}

/// `skb_vlan_push(packet, htons(TAG), 0); return UNSPEC;` with the packet in the first register to begin with.
static PUSH: [Instruction; 5] = [
    instruction(0xb7, 2, TAG.to_be() as i32),
    instruction(0xb7, 3, 0),
    instruction(0x85, 0, VLAN_PUSH),
    instruction(0xb7, 0, UNSPEC),
    instruction(0x95, 0, 0),
];

/// `skb_vlan_pop(packet); return UNSPEC;`.
static POP: [Instruction; 3] =
    [instruction(0x85, 0, VLAN_POP), instruction(0xb7, 0, UNSPEC), instruction(0x95, 0, 0)];

/// The head of `union bpf_attr`; the kernel takes the rest of it for zero.
#[repr(C)]
struct Load {
    kind: u32,
    instructions: u32,
    program: u64,
    license: u64,
    log_level: u32,
    log_size: u32,
    log: u64,
    version: u32,
    flags: u32,
}

fn load(program: &'static [Instruction]) -> std::io::Result<OwnedFd> {
    let load = Load {
        kind: SCHED_CLS,
        instructions: program.len() as u32,
        program: program.as_ptr() as u64,
        license: c"Apache-2.0".as_ptr() as u64,
        log_level: 0,
        log_size: 0,
        log: 0,
        version: 0,
        flags: 0,
    };
    // SAFETY: the kernel reads `load`, of the size that is given, and what it points to, which is static.
    let fd = unsafe { libc::syscall(libc::SYS_bpf, BPF_PROG_LOAD, &raw const load, size_of::<Load>()) };
    if fd < 0 {
        return Err(std::io::Error::last_os_error());
    }
    // SAFETY: the kernel has just given it to us, and nobody else knows of it.
    Ok(unsafe { OwnedFd::from_raw_fd(fd as i32) })
}

/// Of the cable with this index; it ends with the cable.
pub async fn tag(net: &Netlink, cable: u32) {
    let tagged: Result<()> = async {
        // Taken off before it is put on: no node ever sees one.
        net.pass_through(cable, Direction::Out, load(&POP)?.as_fd()).await?;
        net.pass_through(cable, Direction::In, load(&PUSH)?.as_fd()).await
    }
    .await;
    // The rules in others' firewalls do as well, until those are made anew.
    if let Err(e) = tagged {
        tracing::debug!("packets between nodes are shown to the host's firewalls: {e:#}");
    }
}
