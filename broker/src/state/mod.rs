//! Room: state (see broker/ARCHITECTURE.md).
