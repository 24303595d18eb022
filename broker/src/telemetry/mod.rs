//! Room: telemetry (see broker/ARCHITECTURE.md).
