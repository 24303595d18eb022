use super::*;
use std::ffi::OsString;

fn attempts(n: u64) -> Overrides {
    Overrides { max_attempts: Some(n), ..Overrides::default() }
}

fn resolve(flags: Overrides, environment: Overrides, file: Overrides) -> Settings {
    Settings::resolve(flags, environment, FileConfig { settings: file, ..FileConfig::default() }).unwrap()
}

#[test]
fn flags_go_before_the_environment_before_the_file_before_the_defaults() {
    let none = Overrides::default;
    let table = [
        (attempts(2), attempts(3), attempts(4), 2),
        (none(), attempts(3), attempts(4), 3),
        (none(), none(), attempts(4), 4),
        (none(), none(), none(), 5),
    ];
    for (flags, environment, file, expected) in table {
        assert_eq!(resolve(flags, environment, file).max_attempts, expected);
    }
}

#[test]
fn every_setting_passes_through_the_layers() {
    for setting in SETTINGS {
        let mut given = Overrides::default();
        setting.put(&setting.default_text(), &mut given).unwrap();
        assert_eq!(given.clone().over(Overrides::default()), given, "{}", setting.key);
        assert_eq!(Overrides::default().over(given.clone()), given, "{}", setting.key);
        assert_eq!(
            resolve(given, Overrides::default(), Overrides::default()),
            resolve(Overrides::default(), Overrides::default(), Overrides::default())
        );
    }
}

#[test]
fn without_a_file_there_are_the_built_in_policies_on_loopback() {
    let settings = resolve(Overrides::default(), Overrides::default(), Overrides::default());
    assert_eq!(settings.policies, crate::model::policy::ChannelPolicy::built_in());
    assert_eq!(settings.listen.to_string(), "127.0.0.1:7447");
    assert_eq!(settings.http_listen.to_string(), "127.0.0.1:7448");
    assert_eq!(settings.syncing, Syncing::Always);
    assert_eq!((settings.segment_bytes, settings.checkpoint_bytes), (64 << 20, 256 << 20));
    assert_eq!(settings.refuse_exposure(), Ok(()));
}

#[test]
fn a_flag_may_turn_an_interval_of_the_file_off() {
    let file = FileConfig::from_text("broker: { sync: interval, interval_ms: 20 }").unwrap().settings;
    let off = Overrides { sync: Some(SyncMode::Always), ..Overrides::default() };
    assert_eq!(
        resolve(Overrides::default(), Overrides::default(), file.clone()).syncing,
        Syncing::Interval { millis: 20 }
    );
    assert_eq!(resolve(off, Overrides::default(), file).syncing, Syncing::Always);
}

#[test]
fn the_environment_tells_all_its_faults_and_empty_variables_are_not_set() {
    let good = |name: &str| match name {
        "WEIR_LISTEN" => Some(OsString::from("[::1]:9")),
        "WEIR_SYNC" => Some(OsString::new()),
        _ => None,
    };
    let expected = Overrides { listen: Some("[::1]:9".parse().unwrap()), ..Overrides::default() };
    assert_eq!(Overrides::from_environment(good), Ok(expected));
    let bad = |name: &str| (name.ends_with("_MS") || name == "WEIR_INSECURE").then(|| OsString::from("-1"));
    let names: Vec<&str> = Overrides::from_environment(bad).unwrap_err().iter().map(|fault| fault.name).collect();
    let expected =
        ["WEIR_INSECURE", "WEIR_INTERVAL_MS", "WEIR_FAIL_GRACE_MS", "WEIR_SESSION_TIMEOUT_MS", "WEIR_DRAIN_LIMIT_MS"];
    assert_eq!(names, expected);
}

#[test]
fn variables_and_keys_go_by_one_name() {
    for setting in SETTINGS {
        assert_eq!(setting.env, format!("WEIR_{}", setting.key.to_ascii_uppercase()));
        assert_eq!(setting.flag, setting.key.replace('_', "-"));
        assert_eq!(Setting::of(setting.key).unwrap().key, setting.key);
    }
}

#[test]
fn two_listeners_cannot_share_an_address_unless_the_port_is_free_to_choose() {
    let both = |address: &str| Overrides {
        listen: Some(address.parse().unwrap()),
        http_listen: Some(address.parse().unwrap()),
        ..Overrides::default()
    };
    let conflict = Settings::resolve(both("127.0.0.1:1"), Overrides::default(), FileConfig::default());
    assert_eq!(conflict, Err(SettingsConflict::SameAddress("127.0.0.1:1".parse().unwrap())));
    resolve(both("127.0.0.1:0"), Overrides::default(), Overrides::default());
}

#[test]
fn an_address_that_others_reach_is_refused_unless_insecure_is_said() {
    let table = [
        ("127.0.0.1:1", true),
        ("127.8.8.8:1", true),
        ("[::1]:1", true),
        ("[::ffff:127.0.0.1]:1", true),
        ("0.0.0.0:1", false),
        ("[::]:1", false),
        ("10.0.0.1:1", false),
        ("[::ffff:10.0.0.1]:1", false),
    ];
    for (address, fine) in table {
        let address = address.parse().unwrap();
        for http in [false, true] {
            let mut given = Overrides::default();
            *(if http { &mut given.http_listen } else { &mut given.listen }) = Some(address);
            let settings = resolve(given.clone(), Overrides::default(), Overrides::default());
            assert_eq!(settings.refuse_exposure().is_ok(), fine, "{address}");
            if let Err(exposed) = settings.refuse_exposure() {
                assert_eq!(exposed.setting, if http { "http_listen" } else { "listen" });
                assert!(
                    exposed.to_string().contains(&address.to_string()) && exposed.to_string().contains("--insecure")
                );
            }
            given.insecure = Some(true);
            assert_eq!(resolve(given, Overrides::default(), Overrides::default()).refuse_exposure(), Ok(()));
        }
    }
}
