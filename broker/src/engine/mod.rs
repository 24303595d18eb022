//! Room: engine (see broker/ARCHITECTURE.md).
