use super::*;

fn target(text: &str) -> Target {
    text.parse().unwrap_or_else(|error| panic!("{text}: {error}"))
}

fn fit(code: &str, device: &str) -> Option<u32> {
    target(code).fit(&target(device))
}

#[test]
fn targets_are_read_and_written_alike() {
    for text in ["sm_53", "sm_90", "sm_90a", "sm_100", "sm_120f", "gfx803", "gfx90a", "gfx1201"] {
        assert_eq!(target(text).to_string(), text);
    }
    assert_eq!(target("gfx90a:xnack-").to_string(), "gfx90a:xnack-");
    assert_eq!(target("gfx90a:xnack-:sramecc+").to_string(), "gfx90a:sramecc+:xnack-");
    let capability = Target::Cuda { major: 12, minor: 1, suffix: None };
    assert_eq!(target("sm_121"), capability);
}

#[test]
fn what_is_no_target_is_refused_with_what_is_allowed() {
    let refused = [
        "",
        "foo",
        "sm_",
        "sm_9",
        "sm_1000",
        "sm_9x",
        "sm_90aa",
        "sm_90b",
        "SM_90",
        "90",
        "gfx",
        "gfx9",
        "gfx90",
        "gfx90g",
        "gfx90A",
        "gfx10300",
        "gfx90a:",
        "gfx90a:xnack",
        "gfx90a:wave+",
        "gfx90a:xnack+:xnack-",
        "gfx90a xnack-",
        "gfxé1",
        "smé",
    ];
    for text in refused {
        let error = text.parse::<Target>().expect_err(text);
        let detail = error.detail();
        assert!(detail.contains(&format!("{text:?}")) && detail.contains(TARGETS), "{detail}");
    }
}

#[test]
fn lists_take_commas_semicolons_and_blanks() {
    let names = |list: &str| -> Vec<String> {
        Target::parse_list(list).expect(list).iter().map(Target::to_string).collect()
    };
    assert_eq!(
        names(" gfx90a ,sm_90;; gfx90a\tgfx90a:xnack- "),
        ["gfx90a", "sm_90", "gfx90a:xnack-"]
    );
    assert_eq!(names(" ; "), [""; 0]);
    assert!(Target::parse_list("gfx90a,foo").is_err());
}

#[test]
fn nvidia_devices_run_code_of_their_major_version_and_no_newer_minor() {
    assert!(fit("sm_80", "sm_86") < fit("sm_86", "sm_86"));
    for (code, device) in [("sm_90", "sm_90"), ("sm_80", "sm_89"), ("sm_120", "sm_121")] {
        assert!(fit(code, device).is_some(), "{code} on {device}");
    }
    for (code, device) in [("sm_86", "sm_80"), ("sm_80", "sm_90"), ("sm_90", "sm_100")] {
        assert_eq!(fit(code, device), None, "{code} on {device}");
    }
    // Code of one architecture alone, and integrated GPUs.
    assert!(fit("sm_90", "sm_90") < fit("sm_90a", "sm_90"));
    for (code, device) in [("sm_80", "sm_87"), ("sm_87", "sm_89"), ("sm_100a", "sm_103")] {
        assert_eq!(fit(code, device), None, "{code} on {device}");
    }
    assert!(fit("sm_87", "sm_87").is_some());
}

#[test]
fn amd_devices_run_code_whose_features_are_theirs() {
    let device = "gfx90a:sramecc+:xnack-";
    let names = ["gfx90a", "gfx90a:xnack-", "gfx90a:sramecc+:xnack-"];
    let fits = names.map(|code| fit(code, device));
    assert!(fits.iter().all(Option::is_some) && fits.is_sorted(), "{fits:?}");
    for code in ["gfx90a:xnack+", "gfx90a:sramecc-:xnack-", "gfx908", "gfx90c", "sm_90"] {
        assert_eq!(fit(code, device), None, "{code}");
    }
    // A device that does not say how a feature is set runs what leaves it open.
    assert!(fit("gfx90a", "gfx90a").is_some());
    assert_eq!(fit("gfx90a:xnack-", "gfx90a"), None);
    assert!(fit("gfx1030", "gfx1030").is_some());
}
