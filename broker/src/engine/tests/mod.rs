//! The engine alone: no runtime, no disk, no sleep. Time is a number, and a restart is a second engine from what a
//! checkpoint and the frames after it hold.

mod completing;
mod executions;
mod groups;
mod harness;
mod publishing;
mod restarts;
mod searching;
mod streams;
mod unreadable;
