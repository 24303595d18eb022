//! Room: journal (see broker/ARCHITECTURE.md).
