//! Room: journal (see broker/ARCHITECTURE.md).

pub(crate) mod entry;
