//! Room: transport (see broker/ARCHITECTURE.md).
