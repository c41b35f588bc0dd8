//! YAML as a tree that remembers where everything stood, within bounds: no file, however made, takes
//! much time or memory. The parser is the one that serde-saphyr stands on; its own way to typed values
//! is not used, because checks that come later need the places as well.

mod de;
mod error;
mod load;
mod path;
mod scalar;
mod tree;

pub use de::from_tree;
pub use error::Error;
pub use load::{MAX_BYTES, load};
pub(crate) use path::at;
pub use path::{Path, Step};
pub use tree::{Data, Tree};
