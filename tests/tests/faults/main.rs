//! What goes wrong in the field, case by case; each test is one sentence about what is right then.

mod connection;
mod consumer;
mod consumers;
mod hop;
mod live;
mod panics;
mod poison;
mod refusal;
mod scene;
