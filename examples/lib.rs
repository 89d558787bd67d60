//! Programs that show acemq at work; each runs on the embedded broker unless `ACEMQ_URL` names another one.
//!
//! - `quickstart`: the shortest service
//! - `orders`: what becomes of messages that are handled, fail, are refused or cannot be read
//! - `publish`: confirmed publishes, and one that no queue takes
