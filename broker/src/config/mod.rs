//! Room: config (see broker/ARCHITECTURE.md).
