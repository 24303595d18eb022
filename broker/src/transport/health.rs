//! `grpc.health.v1`: SERVING only while the broker takes everything.

use crate::broker::{Broker, Health};
use std::time::Duration;
use tonic_health::ServingStatus;
use tonic_health::server::HealthReporter;

/// How often the broker's health is looked at.
const LOOK: Duration = Duration::from_millis(100);
/// The server as a whole, as the protocol of health checks names it.
const WHOLE: &str = "";

/// The services that a check may ask for. All of them stand and fall with the broker.
const SERVICES: [&str; 7] = [
    WHOLE,
    "weir.v1.AdminService",
    "weir.v1.ChannelService",
    "weir.v1.ConsumeService",
    "weir.v1.ExecutionService",
    "weir.v1.GroupService",
    "weir.v1.PublishService",
];

/// Says of every service that it does not serve. A reporter starts with SERVING, so this comes before the first look.
pub(super) async fn set_not_serving(reporter: &HealthReporter) {
    set(reporter, ServingStatus::NotServing).await;
}

/// Follows the broker's health, for ever.
pub(super) async fn follow(broker: Broker, reporter: HealthReporter) {
    let mut looks = tokio::time::interval(LOOK);
    let mut told = ServingStatus::NotServing;
    loop {
        looks.tick().await;
        let now = match broker.health() {
            Health::Serving => ServingStatus::Serving,
            Health::Draining | Health::Failed(_) | Health::Closed => ServingStatus::NotServing,
        };
        if now != told {
            set(&reporter, now).await;
            told = now;
        }
    }
}

async fn set(reporter: &HealthReporter, status: ServingStatus) {
    for service in SERVICES {
        reporter.set_service_status(service, status).await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use prost::Message as _;
    use std::collections::BTreeSet;

    #[test]
    fn every_service_of_the_api_has_a_health_of_its_own() {
        let set = service_names(weir_proto::FILE_DESCRIPTOR_SET);
        let told: BTreeSet<_> = SERVICES.into_iter().filter(|name| !name.is_empty()).map(str::to_owned).collect();
        assert_eq!(told, set);
    }

    /// The full names of the services in an encoded descriptor set, without the descriptor types: file = 1,
    /// package = 2, service = 6, name = 1.
    fn service_names(encoded: &[u8]) -> BTreeSet<String> {
        let set = Set::decode(encoded).unwrap();
        set.files
            .iter()
            .flat_map(|file| file.services.iter().map(|service| format!("{}.{}", file.package, service.name)))
            .collect()
    }

    #[derive(prost::Message)]
    struct Set {
        #[prost(message, repeated, tag = "1")]
        files: Vec<File>,
    }

    #[derive(prost::Message)]
    struct File {
        #[prost(string, tag = "2")]
        package: String,
        #[prost(message, repeated, tag = "6")]
        services: Vec<Service>,
    }

    #[derive(prost::Message)]
    struct Service {
        #[prost(string, tag = "1")]
        name: String,
    }
}
