//! An on-disk cache of compiled code.
//!
//! An entry is a file that is written under a temporary name and then renamed, so that readers see
//! either all of it or nothing. It contains its length and a checksum, so that a damaged entry counts
//! as missing. An unreadable or unwritable cache is not an error: code is compiled again.

use super::Compilation;
use hal::environment;
use hal::error::{Error, Result};
use std::ffi::{OsStr, OsString};
use std::fmt::Write as _;
use std::fs::{self, File, Metadata, OpenOptions};
use std::io::{self, ErrorKind, Read, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, SystemTime};
use xxhash_rust::xxh3::Xxh3Default;

#[cfg(test)]
mod tests;

const DEFAULT_LIMIT: u64 = 256 << 20;
const DAY: Duration = Duration::from_secs(24 * 60 * 60);

/// The version of the format of entries and keys.
const VERSION: u32 = 2;
const MAGIC: [u8; 8] = *b"pygpucc\n";
/// The bytes of the header: magic, version, length of the code, checksum.
const HEADER: usize = 8 + 4 + 8 + 16;

/// The key of compiled code: a 128-bit hash (XXH3) of all inputs of its compilation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct CodeKey([u8; 16]);

impl CodeKey {
    /// Returns the key of a compilation by the compiler with this identity.
    pub fn new(compilation: &Compilation<'_>, identity: &str) -> CodeKey {
        let Compilation { text, name, target, options, names, headers } = *compilation;
        let mut hash = Xxh3Default::new();
        hash.update(&VERSION.to_le_bytes());
        hash.update(&[u8::from(headers)]);
        // Length prefixes keep the end of one string from being taken for the start of the next.
        let mut add = |strings: &[&str]| {
            hash.update(&(strings.len() as u64).to_le_bytes());
            for string in strings {
                hash.update(&(string.len() as u64).to_le_bytes());
                hash.update(string.as_bytes());
            }
        };
        add(&[text, name, target, identity]);
        add(options);
        add(names);
        CodeKey(hash.digest128().to_le_bytes())
    }

    /// Returns the checksum of an entry. It includes the key, so that an entry under another key's
    /// name is invalid.
    fn checksum(&self, code: &[u8]) -> [u8; 16] {
        let mut hash = Xxh3Default::new();
        hash.update(&self.0);
        hash.update(code);
        hash.digest128().to_le_bytes()
    }

    /// Returns the folder and the name of the entry's file.
    fn path(&self) -> (String, String) {
        let mut text = String::with_capacity(32);
        for byte in self.0 {
            // Writing to a String cannot fail.
            let _ = write!(text, "{byte:02x}");
        }
        let name = text.split_off(2);
        (text, name)
    }
}

/// A cache of compiled code as files in a folder of the user.
#[derive(Debug)]
pub struct CodeCache {
    /// The folder; `None` for a disabled cache.
    folder: Option<PathBuf>,
    limit: u64,
    /// The bytes that may be stored before the folder is scanned again.
    allowance: AtomicU64,
    warned: AtomicBool,
    /// The same, for entries that other users could have written.
    warned_of_others: AtomicBool,
}

impl CodeCache {
    /// Returns a cache in `folder`, which is created when it is needed, of at most `limit` bytes.
    pub fn new(folder: impl Into<PathBuf>, limit: u64) -> CodeCache {
        CodeCache {
            folder: Some(folder.into()),
            limit,
            allowance: AtomicU64::new(0),
            warned: AtomicBool::new(false),
            warned_of_others: AtomicBool::new(false),
        }
    }

    /// Returns a cache that stores nothing.
    pub fn disabled() -> CodeCache {
        CodeCache { folder: None, ..CodeCache::new("", 0) }
    }

    /// Returns the cache that the environment configures. It is in `PYGPU_CACHE_DIR` (an absolute
    /// path), else in `pygpu` in `XDG_CACHE_HOME` or `~/.cache`. Its size is at most
    /// `PYGPU_CACHE_SIZE` bytes (default: 256 MiB; K, M, G or T may follow). It is disabled by
    /// `PYGPU_CACHE=0`, `off`, `false` or `no`, and if there is no home directory.
    ///
    /// # Errors
    /// `InvalidArgument` that names the variable and its value if a value cannot be parsed.
    pub fn from_environment() -> Result<CodeCache> {
        CodeCache::from_variables(environment::trusted)
    }

    fn from_variables(variable: impl Fn(&str) -> Option<OsString>) -> Result<CodeCache> {
        let [on, folder, size] = ["PYGPU_CACHE", "PYGPU_CACHE_DIR", "PYGPU_CACHE_SIZE"];
        let enabled =
            environment::parse(on, variable(on), environment::SWITCH, environment::switch)?;
        let limit =
            environment::parse(size, variable(size), environment::BYTES, environment::bytes)?;
        let path = |name| variable(name).map(PathBuf::from).filter(|it| !it.as_os_str().is_empty());
        let chosen = path(folder);
        if let Some(chosen) = chosen.as_ref().filter(|it| !it.is_absolute()) {
            let detail = format!("{folder} is {chosen:?}; allowed are absolute paths");
            return Err(Error::invalid("open", detail));
        }
        // The XDG base directory specification requires relative paths to be ignored.
        let absolute = |name| path(name).filter(|it| it.is_absolute());
        let chosen = chosen
            .or_else(|| absolute("XDG_CACHE_HOME").map(|it| it.join("pygpu")))
            .or_else(|| absolute("HOME").map(|it| it.join(".cache/pygpu")));
        match chosen {
            Some(chosen) if enabled != Some(false) => {
                Ok(CodeCache::new(chosen, limit.map_or(DEFAULT_LIMIT, |it| it as u64)))
            }
            Some(_) => Ok(CodeCache::disabled()),
            None => {
                log::debug!("compiled code is not kept: there is no HOME");
                Ok(CodeCache::disabled())
            }
        }
    }

    /// Returns the folder; `None` for a disabled cache.
    pub fn folder(&self) -> Option<&Path> {
        self.folder.as_deref()
    }

    /// The bytes that it keeps at most.
    pub fn limit(&self) -> u64 {
        self.limit
    }

    /// Returns a folder with this name for files that compilers read by path, and creates it if
    /// necessary. Returns `None` if the cache is disabled, or if other users could write to the
    /// folder or replace it.
    pub fn folder_for(&self, name: &str) -> Option<PathBuf> {
        let folder = self.folder.as_ref().filter(|_| self.limit > 0)?.join(name);
        let made = create_folders(&folder).and_then(|()| fs::canonicalize(&folder));
        let trusted = made.and_then(|it| nobody_else_writes(&it).map(|()| it));
        trusted.inspect_err(|error| log::debug!("{} is not used: {error}", folder.display())).ok()
    }

    /// Returns the code stored under a key; `None` if there is no valid entry.
    pub fn load(&self, key: &CodeKey) -> Option<Vec<u8>> {
        let (shard, name) = key.path();
        let path = self.folder.as_ref()?.join(shard).join(name);
        match read(&path, key) {
            Ok(code) => Some(code),
            Err(error) => {
                if error.kind() == ErrorKind::PermissionDenied
                    && !self.warned_of_others.swap(true, Ordering::Relaxed)
                {
                    log::warn!("compiled code in {} is not used: {error}", path.display());
                } else if error.kind() != ErrorKind::NotFound {
                    log::debug!("compiled code in {} is not used: {error}", path.display());
                }
                None
            }
        }
    }

    /// Stores code under a key, and replaces an existing entry. On failure nothing is stored, and the
    /// first failure is logged as a warning.
    pub fn store(&self, key: &CodeKey, code: &[u8]) {
        let Some(folder) = &self.folder else { return };
        let bytes = (HEADER + code.len()) as u64;
        if bytes > self.limit {
            log::debug!("{bytes} bytes of compiled code do not fit a cache of {}", self.limit);
            return;
        }
        if let Err(error) = write(folder, key, code) {
            let path = folder.display();
            if self.warned.swap(true, Ordering::Relaxed) {
                log::debug!("compiled code is not kept in {path}: {error}");
            } else {
                log::warn!("compiled code is not kept in {path}: {error}");
            }
            return;
        }
        let spent = self
            .allowance
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| left.checked_sub(bytes));
        if spent.is_err() {
            let total = tidy(folder, self.limit);
            // Other processes also store entries, so this one may use only part of the remaining
            // space.
            let allowance = self.limit.saturating_sub(total).min(self.limit / 16);
            self.allowance.store(allowance, Ordering::Relaxed);
        }
    }
}

fn read(path: &Path, key: &CodeKey) -> io::Result<Vec<u8>> {
    let damaged = || io::Error::new(ErrorKind::InvalidData, "it is damaged or of another version");
    let mut file = open_own(path)?;
    let metadata = file.metadata()?;
    let mut header = [0; HEADER];
    file.read_exact(&mut header)?;
    let (magic, rest) = header.split_at(MAGIC.len());
    let (version, rest) = rest.split_at(4);
    let (length, checksum) = rest.split_at(8);
    // The length is compared with the file's size before it is used, so that a wrong length cannot
    // cause a large allocation.
    let expected = metadata.len().saturating_sub(HEADER as u64);
    if magic != MAGIC || version != VERSION.to_le_bytes() || length != expected.to_le_bytes() {
        return Err(damaged());
    }
    let mut code = Vec::new();
    code.try_reserve_exact(usize::try_from(expected).unwrap_or(usize::MAX))?;
    (&file).take(expected).read_to_end(&mut code)?;
    if key.checksum(&code) != checksum {
        return Err(damaged());
    }
    mark_used(&file, &metadata);
    Ok(code)
}

/// Opens a file that no other user can have written. The checksum of an entry does not prevent other
/// users from creating valid ones.
#[cfg(unix)]
fn open_own(path: &Path) -> io::Result<File> {
    use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
    let refused = |what: &str| Err(io::Error::new(ErrorKind::PermissionDenied, what));
    // Links are not followed, and opening a pipe does not wait for its other end.
    let flags = libc::O_NOFOLLOW | libc::O_NONBLOCK;
    let file = match OpenOptions::new().read(true).custom_flags(flags).open(path) {
        Err(error) if error.raw_os_error() == Some(libc::ELOOP) => return refused("it is a link"),
        result => result?,
    };
    let metadata = file.metadata()?;
    // SAFETY: the call does not have preconditions.
    let user = unsafe { libc::geteuid() };
    if !metadata.is_file() {
        refused("it is not a regular file")
    } else if metadata.uid() != user {
        refused("it belongs to another user")
    } else if metadata.mode() & 0o022 != 0 {
        refused("others can write it")
    } else {
        Ok(file)
    }
}

#[cfg(not(unix))]
fn open_own(path: &Path) -> io::Result<File> {
    File::open(path)
}

/// Fails if other users could write to a folder or replace it, because its path could then refer to
/// something else after this check.
#[cfg(unix)]
fn nobody_else_writes(folder: &Path) -> io::Result<()> {
    use std::os::unix::fs::MetadataExt;
    // SAFETY: the call does not have preconditions.
    let user = unsafe { libc::geteuid() };
    for (above, path) in folder.ancestors().enumerate() {
        let metadata = fs::symlink_metadata(path)?;
        let owned = metadata.uid() == user || (above > 0 && metadata.uid() == 0);
        // In a folder with the sticky bit, only the owner of a file can rename it.
        let sticky = above > 0 && metadata.mode() & 0o1000 != 0;
        if !metadata.is_dir() || !owned || (metadata.mode() & 0o022 != 0 && !sticky) {
            let what = format!("others can write {}", path.display());
            return Err(io::Error::new(ErrorKind::PermissionDenied, what));
        }
    }
    Ok(())
}

#[cfg(not(unix))]
fn nobody_else_writes(_: &Path) -> io::Result<()> {
    Ok(())
}

/// Updates the time of last use, at most once a day, so that most reads do not write.
fn mark_used(file: &File, metadata: &Metadata) {
    if is_older_than_a_day(metadata)
        && let Err(error) = file.set_modified(SystemTime::now())
    {
        log::debug!("compiled code keeps its time of last use: {error}");
    }
}

fn is_older_than_a_day(metadata: &Metadata) -> bool {
    metadata.modified().is_ok_and(|it| it.elapsed().is_ok_and(|age| age > DAY))
}

fn write(folder: &Path, key: &CodeKey, code: &[u8]) -> io::Result<()> {
    let (shard, name) = key.path();
    let shard = folder.join(shard);
    let (mut file, temporary) = match create_temporary(&shard) {
        Err(error) if error.kind() == ErrorKind::NotFound => {
            create_folders(&shard)?;
            create_temporary(&shard)?
        }
        other => other?,
    };
    let mut header = Vec::with_capacity(HEADER);
    header.extend(MAGIC);
    header.extend(VERSION.to_le_bytes());
    header.extend((code.len() as u64).to_le_bytes());
    header.extend(key.checksum(code));
    let written = file
        .write_all(&header)
        .and_then(|()| file.write_all(code))
        .and_then(|()| fs::rename(&temporary, shard.join(name)));
    if written.is_err() {
        // If it cannot be removed now, it is removed as stale later.
        let _ = fs::remove_file(&temporary);
    }
    written
}

/// Creates a new file in the folder. Its name is unique on this machine by process, time and count;
/// if another machine has created the same name, the next one is tried.
///
/// The crate `tempfile` is not used: with its dependency `rustix` it takes 15 s to compile, twice in
/// a build with ahead-of-time code, and only names and modes would be used.
fn create_temporary(folder: &Path) -> io::Result<(File, PathBuf)> {
    static COUNT: AtomicU64 = AtomicU64::new(0);
    let mut options = OpenOptions::new();
    options.write(true).create_new(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    loop {
        let now = SystemTime::UNIX_EPOCH.elapsed().map_or(0, |it| it.as_nanos());
        let count = COUNT.fetch_add(1, Ordering::Relaxed);
        let path = folder.join(format!("{}-{now}-{count}.tmp", std::process::id()));
        match options.open(&path) {
            Err(error) if error.kind() == ErrorKind::AlreadyExists => {}
            result => return Ok((result?, path)),
        }
    }
}

fn create_folders(folder: &Path) -> io::Result<()> {
    let mut builder = fs::DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.create(folder)
}

/// Removes files left by interrupted writers. If the total exceeds the limit, also removes the least
/// recently used entries until an eighth of the limit is free. Returns the remaining bytes.
fn tidy(folder: &Path, limit: u64) -> u64 {
    let mut entries = Vec::new();
    for shard in list(folder).filter(|it| is_hexadecimal(&it.file_name(), 2)) {
        for file in list(&shard.path()) {
            let (name, Ok(metadata)) = (file.file_name(), file.metadata()) else { continue };
            if !metadata.is_file() {
                continue;
            }
            if is_hexadecimal(&name, 30) {
                let used = metadata.modified().unwrap_or(SystemTime::UNIX_EPOCH);
                entries.push((used, metadata.len(), file.path()));
            } else if name.to_string_lossy().ends_with(".tmp") && is_older_than_a_day(&metadata) {
                // Another process may have removed it first.
                let _ = fs::remove_file(file.path());
            }
        }
    }
    let mut total = entries.iter().map(|entry| entry.1).sum();
    if total > limit {
        entries.sort();
        // The newest entry was stored last, and is kept.
        entries.pop();
        for (_, bytes, path) in entries {
            if total <= limit - limit / 8 {
                break;
            }
            if fs::remove_file(path).is_ok() {
                total -= bytes;
            }
        }
    }
    total
}

fn list(folder: &Path) -> impl Iterator<Item = fs::DirEntry> + use<> {
    fs::read_dir(folder).into_iter().flatten().flatten()
}

fn is_hexadecimal(name: &OsStr, length: usize) -> bool {
    let name = name.as_encoded_bytes();
    name.len() == length && name.iter().all(|it| matches!(it, b'0'..=b'9' | b'a'..=b'f'))
}
