//! Room: read (see broker/ARCHITECTURE.md).
