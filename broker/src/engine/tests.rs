//! The engine alone.
