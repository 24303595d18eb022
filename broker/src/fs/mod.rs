//! Room: fs (see broker/ARCHITECTURE.md).
