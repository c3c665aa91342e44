use super::*;
use hal::error::ErrorKind;
use std::collections::HashMap;
use std::process::Command;
use std::sync::atomic::AtomicUsize;

/// A folder that is removed when this value is dropped.
struct Folder(PathBuf);

impl Folder {
    fn new() -> Folder {
        static COUNT: AtomicUsize = AtomicUsize::new(0);
        let number = COUNT.fetch_add(1, Ordering::Relaxed);
        let name = format!("pygpu-cache-{}-{number}", std::process::id());
        let path = std::env::temp_dir().join(name);
        let _ = fs::remove_dir_all(&path);
        Folder(path)
    }

    fn cache(&self, limit: u64) -> CodeCache {
        CodeCache::new(&self.0, limit)
    }

    fn path(&self, key: &CodeKey) -> PathBuf {
        let (shard, name) = key.path();
        self.0.join(shard).join(name)
    }

    /// Returns all files.
    fn files(&self) -> Vec<PathBuf> {
        list(&self.0).flat_map(|shard| list(&shard.path())).map(|file| file.path()).collect()
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

fn key(text: &str) -> CodeKey {
    CodeKey::new(&Compilation { text, ..Default::default() }, "a compiler")
}

fn set_age(path: &Path, age: Duration) {
    let file = File::options().write(true).open(path).expect("the file");
    file.set_modified(SystemTime::now() - age).expect("its time");
}

#[test]
fn what_was_stored_is_loaded_again() {
    let folder = Folder::new();
    let (cache, other) = (folder.cache(1 << 20), folder.cache(1 << 20));
    for code in [&b""[..], b"code", &[0xa5; 100_000]] {
        cache.store(&key("text"), code);
        assert_eq!(cache.load(&key("text")).as_deref(), Some(code));
        assert_eq!(other.load(&key("text")).as_deref(), Some(code));
    }
    assert_eq!(cache.load(&key("another text")), None);
    assert_eq!(folder.files(), [folder.path(&key("text"))]);
}

#[test]
#[cfg(unix)]
fn only_the_user_can_read_it() {
    use std::os::unix::fs::PermissionsExt;
    let folder = Folder::new();
    folder.cache(1 << 20).store(&key("text"), b"code");
    let mode = |path: &Path| fs::metadata(path).expect("it is there").permissions().mode() & 0o777;
    let path = folder.path(&key("text"));
    assert_eq!(mode(&path), 0o600);
    assert_eq!(mode(path.parent().expect("a shard")), 0o700);
    assert_eq!(mode(&folder.0), 0o700);
}

/// Files that other users could have put in the folder are not opened, because they would be loaded
/// as code or block the reader.
#[cfg(unix)]
#[test]
fn entries_that_others_could_have_written_are_passed_over() {
    use std::os::unix::fs::{PermissionsExt, symlink};
    let folder = Folder::new();
    let cache = folder.cache(1 << 20);
    let [own, linked, open, pipe] = ["own", "linked", "open", "pipe"].map(key);
    for key in [&own, &linked, &open, &pipe] {
        cache.store(key, b"code");
    }
    let moved = folder.path(&linked).with_extension("moved");
    fs::rename(folder.path(&linked), &moved).expect("the entry");
    symlink(&moved, folder.path(&linked)).expect("a link");
    for mode in [0o620, 0o602, 0o666] {
        let mode = fs::Permissions::from_mode(mode);
        fs::set_permissions(folder.path(&open), mode).expect("the entry");
        assert_eq!(cache.load(&open), None);
    }
    fs::remove_file(folder.path(&pipe)).expect("the entry");
    let made = Command::new("mkfifo").arg(folder.path(&pipe)).status().expect("mkfifo");
    assert!(made.success());
    for key in [&linked, &pipe] {
        assert_eq!(cache.load(key), None);
    }
    assert_eq!(cache.load(&own).as_deref(), Some(b"code".as_slice()));
    // The next entries that are stored replace them.
    for key in [&linked, &open, &pipe] {
        cache.store(key, b"new");
        assert_eq!(cache.load(key).as_deref(), Some(b"new".as_slice()));
    }
}

/// Compilers read files there by path, even after earlier checks of them.
#[cfg(unix)]
#[test]
fn a_folder_for_files_is_the_users_alone() {
    use std::os::unix::fs::{PermissionsExt, symlink};
    let set_mode = |path: &Path, mode| {
        fs::set_permissions(path, fs::Permissions::from_mode(mode)).expect("the folder");
    };
    let folder = Folder::new();
    let cache = folder.cache(1 << 20);
    let found = cache.folder_for("files").expect("a folder");
    assert_eq!(found, fs::canonicalize(folder.0.join("files")).expect("the folder"));
    assert_eq!(fs::metadata(&found).expect("the folder").permissions().mode() & 0o777, 0o700);
    for path in [&found, &folder.0] {
        for mode in [0o720, 0o702] {
            set_mode(path, mode);
            assert_eq!(cache.folder_for("files"), None);
        }
        set_mode(path, 0o700);
    }
    // With the sticky bit, no other user can rename the folder.
    set_mode(&folder.0, 0o1777);
    assert_eq!(cache.folder_for("files").as_ref(), Some(&found));
    set_mode(&found, 0o1777);
    assert_eq!(cache.folder_for("files"), None);
    set_mode(&folder.0, 0o755);
    // A link is resolved before the checks.
    symlink("/tmp", folder.0.join("link")).expect("a link");
    assert_eq!(cache.folder_for("link"), None);
    fs::write(folder.0.join("file"), "").expect("a file");
    assert_eq!(cache.folder_for("file"), None);
    assert_eq!(folder.cache(0).folder_for("files"), None);
    assert_eq!(CodeCache::disabled().folder_for("files"), None);
}

#[test]
fn a_damaged_entry_is_absent_and_replaced() {
    let folder = Folder::new();
    let cache = folder.cache(1 << 20);
    let (key, path) = (key("text"), folder.path(&key("text")));
    cache.store(&key, b"the code");
    let whole = fs::read(&path).expect("the entry");
    let mut damaged: Vec<Vec<u8>> = (0..whole.len()).map(|end| whole[..end].to_vec()).collect();
    for place in 0..whole.len() {
        let mut one = whole.clone();
        one[place] ^= 1;
        damaged.push(one);
    }
    damaged.push([&whole[..], b"x"].concat());
    for bytes in damaged {
        fs::write(&path, &bytes).expect("the entry");
        assert_eq!(cache.load(&key), None, "{bytes:?}");
    }
    cache.store(&key, b"the code");
    assert_eq!(cache.load(&key).as_deref(), Some(&b"the code"[..]));
}

#[test]
fn an_entry_under_another_name_is_absent() {
    let folder = Folder::new();
    let cache = folder.cache(1 << 20);
    cache.store(&key("one"), b"code of one");
    cache.store(&key("two"), b"code of two");
    fs::copy(folder.path(&key("one")), folder.path(&key("two"))).expect("a copy");
    assert_eq!(cache.load(&key("two")), None);
}

/// Returns the code that a writer of the next test stores, different for each writer.
fn code_of(writer: u8) -> Vec<u8> {
    vec![writer; 40_000 + usize::from(writer)]
}

fn write_in_a_loop(folder: &Path, writer: u8) {
    let cache = CodeCache::new(folder, 1 << 20);
    for _ in 0..300 {
        cache.store(&key("text"), &code_of(writer));
    }
}

#[test]
fn readers_see_whole_entries_while_threads_and_processes_write() {
    let folder = Folder::new();
    let cache = folder.cache(1 << 20);
    let codes: Vec<_> = (0..5).map(code_of).collect();
    cache.store(&key("text"), &codes[4]);
    let mut processes: Vec<_> = (0..2)
        .map(|writer: u8| {
            Command::new(std::env::current_exe().expect("this program"))
                .args(["--exact", "compile::cache::tests::writer_process", "--ignored"])
                .env("PYGPU_TEST_CACHE", &folder.0)
                .env("PYGPU_TEST_WRITER", writer.to_string())
                .stdout(std::process::Stdio::piped())
                .spawn()
                .expect("a process")
        })
        .collect();
    std::thread::scope(|scope| {
        let threads: Vec<_> = (2..4)
            .map(|writer| {
                let folder = &folder.0;
                scope.spawn(move || write_in_a_loop(folder, writer))
            })
            .collect();
        loop {
            let running = threads.iter().any(|it| !it.is_finished())
                || processes.iter_mut().any(|it| it.try_wait().expect("a status").is_none());
            let code = cache.load(&key("text")).expect("an entry at every moment");
            assert!(codes.contains(&code), "{} bytes that no one stored", code.len());
            if !running {
                assert_ne!(code, codes[4], "no writer stored anything");
                break;
            }
        }
    });
    for process in processes {
        let output = process.wait_with_output().expect("a status");
        let text = String::from_utf8_lossy(&output.stdout);
        assert!(output.status.success() && text.contains("1 passed"), "{text}");
    }
    assert_eq!(folder.files(), [folder.path(&key("text"))]);
}

#[test]
#[ignore = "a process of readers_see_whole_entries_while_threads_and_processes_write"]
fn writer_process() {
    let variable = |name| std::env::var_os(name).expect(name).into_string().expect("text");
    let folder = PathBuf::from(variable("PYGPU_TEST_CACHE"));
    write_in_a_loop(&folder, variable("PYGPU_TEST_WRITER").parse().expect("a number"));
}

#[test]
fn without_a_writable_folder_nothing_is_kept_and_nothing_fails() {
    let folder = Folder::new();
    fs::write(&folder.0, "a file where the folder should be").expect("a file");
    let cache = folder.cache(1 << 20);
    for _ in 0..2 {
        cache.store(&key("text"), b"code");
        assert_eq!(cache.load(&key("text")), None);
    }
    assert!(cache.warned.load(Ordering::Relaxed));
    fs::remove_file(&folder.0).expect("the file");
    // The obstacle is removed, so the same cache works.
    cache.store(&key("text"), b"code");
    assert!(cache.load(&key("text")).is_some());
    let none = CodeCache::new("/proc/none/cache", 1 << 20);
    none.store(&key("text"), b"code");
    assert_eq!(none.load(&key("text")), None);
}

#[test]
fn what_was_not_used_for_longest_is_removed_first() {
    let folder = Folder::new();
    let cache = folder.cache(10_000);
    let code = [7; 900];
    let keys: Vec<_> = (0..10).map(|i| key(&i.to_string())).collect();
    for (i, key) in keys.iter().enumerate() {
        cache.store(key, &code);
        set_age(&folder.path(key), DAY * (20 - i as u32));
    }
    assert_eq!(folder.files().len(), 10);
    // Reading counts as use.
    assert!(cache.load(&keys[0]).is_some());
    cache.store(&key("new"), &code);
    let kept: Vec<_> = keys.iter().map(|key| cache.load(key).is_some()).collect();
    // 11 entries of 936 bytes; 9 fit in seven eighths of the limit.
    assert_eq!(kept[..4], [true, false, false, true], "{kept:?}");
    assert!(kept[4..].iter().all(|it| *it), "{kept:?}");
    assert!(cache.load(&key("new")).is_some());
}

#[test]
fn the_limit_holds() {
    let folder = Folder::new();
    let cache = folder.cache(50_000);
    for i in 0..200_usize {
        cache.store(&key(&i.to_string()), &vec![1; 500 + 37 * (i % 50)]);
        let total: u64 = folder.files().iter().map(|it| it.metadata().expect("it").len()).sum();
        assert!(total <= 50_000, "{total} bytes after {i}");
    }
    let before = folder.files().len();
    cache.store(&key("too large"), &[0; 50_000]);
    assert_eq!(folder.files().len(), before);
    assert!(before > 20, "{before}");
}

#[test]
fn what_interrupted_writers_left_is_removed_after_a_day_and_other_files_never() {
    let folder = Folder::new();
    folder.cache(1 << 20).store(&key("text"), b"code");
    let shard = folder.path(&key("text")).with_file_name("");
    let [fresh, stale, other] = ["1-1-1.tmp", "1-1-2.tmp", "notes"].map(|name| shard.join(name));
    let outside = folder.0.join("file.tmp");
    for path in [&fresh, &stale, &other, &outside] {
        fs::write(path, "x").expect("a file");
    }
    for path in [&stale, &other, &outside] {
        set_age(path, DAY * 2);
    }
    folder.cache(1 << 20).store(&key("text"), b"code");
    let there = [fresh, stale, other, outside].map(|path| path.exists());
    assert_eq!(there, [true, false, true, true]);
}

fn from(variables: &[(&str, &str)]) -> Result<CodeCache> {
    let variables: HashMap<_, _> = variables.iter().copied().collect();
    CodeCache::from_variables(|name| variables.get(name).map(OsString::from))
}

#[test]
fn the_environment_says_where_and_how_much() {
    let place = |variables: &[(&str, &str)]| {
        from(variables).expect("a cache").folder().map(|it| it.to_str().expect("text").to_owned())
    };
    let home = ("HOME", "/home/x");
    assert_eq!(place(&[]), None);
    assert_eq!(place(&[("HOME", "")]), None);
    assert_eq!(place(&[home]).as_deref(), Some("/home/x/.cache/pygpu"));
    let xdg = ("XDG_CACHE_HOME", "/c");
    assert_eq!(place(&[home, xdg]).as_deref(), Some("/c/pygpu"));
    assert_eq!(place(&[home, ("XDG_CACHE_HOME", "c")]).as_deref(), Some("/home/x/.cache/pygpu"));
    let own = ("PYGPU_CACHE_DIR", "/own");
    assert_eq!(place(&[home, xdg, own]).as_deref(), Some("/own"));
    assert_eq!(place(&[home, ("PYGPU_CACHE", "1")]).as_deref(), Some("/home/x/.cache/pygpu"));
    for off in ["0", "off", "FALSE", "no"] {
        assert_eq!(place(&[home, own, ("PYGPU_CACHE", off)]), None, "{off}");
    }
    assert_eq!(from(&[home]).expect("a cache").limit, 256 << 20);
    assert_eq!(from(&[home, ("PYGPU_CACHE_SIZE", "2K")]).expect("a cache").limit, 2048);
}

#[test]
fn a_bad_setting_is_named() {
    let bad =
        [("PYGPU_CACHE", "perhaps"), ("PYGPU_CACHE_DIR", "~/cache"), ("PYGPU_CACHE_SIZE", "-1")];
    for (name, value) in bad {
        let error = from(&[("HOME", "/home/x"), (name, value)]).expect_err("a bad value");
        assert_eq!(error.kind(), ErrorKind::InvalidArgument);
        assert!(
            error.detail().starts_with(&format!("{name} is {value:?}; allowed are ")),
            "{error}"
        );
    }
}
