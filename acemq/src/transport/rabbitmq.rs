//! RabbitMQ, by lapin.
