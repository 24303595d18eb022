//! Room: model (see broker/ARCHITECTURE.md).
