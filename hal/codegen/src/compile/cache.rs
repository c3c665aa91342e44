//! An on-disk cache of compiled code.
//!
//! An entry is a file that is written under another name and then renamed, so that readers
//! see all of it or nothing; it carries its length and a checksum, so that a damaged one
//! counts as absent. A cache that cannot be read or written is no error: code is compiled
//! again.

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

/// Changes with the form of entries and of keys.
const VERSION: u32 = 2;
const MAGIC: [u8; 8] = *b"pygpucc\n";
/// Magic, version, length of the code, checksum.
const HEADER: usize = 8 + 4 + 8 + 16;

/// What compiled code is kept under: a hash of 128 bits (XXH3) of everything that it was made from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct CodeKey([u8; 16]);

impl CodeKey {
    /// The key of a compilation by the compiler of this identity.
    pub fn new(compilation: &Compilation<'_>, identity: &str) -> CodeKey {
        let Compilation { text, name, target, options, names, headers } = *compilation;
        let mut hash = Xxh3Default::new();
        hash.update(&VERSION.to_le_bytes());
        hash.update(&[u8::from(headers)]);
        // Lengths in front keep the end of one string from being the start of the next.
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

    /// The checksum of an entry: of the key too, so that a file under another's name is none.
    fn checksum(&self, code: &[u8]) -> [u8; 16] {
        let mut hash = Xxh3Default::new();
        hash.update(&self.0);
        hash.update(code);
        hash.digest128().to_le_bytes()
    }

    /// Folder and name of its file.
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

/// Files of compiled code in a folder of the user.
#[derive(Debug)]
pub struct CodeCache {
    /// `None`: nothing is kept.
    folder: Option<PathBuf>,
    limit: u64,
    /// Bytes that may be stored before the folder is looked through again.
    allowance: AtomicU64,
    warned: AtomicBool,
    /// The same of entries that others could have written.
    warned_of_others: AtomicBool,
}

impl CodeCache {
    /// A cache in `folder`, which is made when it is needed, of at most `limit` bytes.
    pub fn new(folder: impl Into<PathBuf>, limit: u64) -> CodeCache {
        CodeCache {
            folder: Some(folder.into()),
            limit,
            allowance: AtomicU64::new(0),
            warned: AtomicBool::new(false),
            warned_of_others: AtomicBool::new(false),
        }
    }

    /// A cache that keeps nothing.
    pub fn disabled() -> CodeCache {
        CodeCache { folder: None, ..CodeCache::new("", 0) }
    }

    /// The cache of the environment: in `PYGPU_CACHE_DIR` (an absolute path), else in `pygpu`
    /// below `XDG_CACHE_HOME` or `~/.cache`; of at most `PYGPU_CACHE_SIZE` bytes (256 MiB; K,
    /// M, G or T may follow); none with `PYGPU_CACHE=0`, `off`, `false` or `no`, and none
    /// without a home.
    ///
    /// # Errors
    /// `InvalidArgument` that names the variable and its value if one cannot be read.
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
        // The XDG base directory specification has relative paths ignored.
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

    /// The folder; `None` if nothing is kept.
    pub fn folder(&self) -> Option<&Path> {
        self.folder.as_deref()
    }

    /// A folder of this name for files that compilers read by their paths, which is made if it is not
    /// there; `None` if nothing is kept, or if others could write it or put another one in its place.
    pub fn folder_for(&self, name: &str) -> Option<PathBuf> {
        let folder = self.folder.as_ref().filter(|_| self.limit > 0)?.join(name);
        let made = create_folders(&folder).and_then(|()| fs::canonicalize(&folder));
        let trusted = made.and_then(|it| nobody_else_writes(&it).map(|()| it));
        trusted.inspect_err(|error| log::debug!("{} is not used: {error}", folder.display())).ok()
    }

    /// The code kept under a key; `None` if there is none that is whole.
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

    /// Keeps code under a key, in place of what was there. Where that fails, nothing is kept,
    /// and the first failure is logged as a warning.
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
            // Other processes store too, so only part of what is left.
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
    // The length is that of the file before it is believed: a wrong one allocates nothing.
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

/// Opens a file that nobody but the user can have written: the checksum of an entry keeps nobody
/// from making one.
#[cfg(unix)]
fn open_own(path: &Path) -> io::Result<File> {
    use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
    let refused = |what: &str| Err(io::Error::new(ErrorKind::PermissionDenied, what));
    // No link is followed, and nobody waits for the other end of a pipe.
    let flags = libc::O_NOFOLLOW | libc::O_NONBLOCK;
    let file = match OpenOptions::new().read(true).custom_flags(flags).open(path) {
        Err(error) if error.raw_os_error() == Some(libc::ELOOP) => return refused("it is a link"),
        result => result?,
    };
    let metadata = file.metadata()?;
    // SAFETY: the call has no preconditions.
    let user = unsafe { libc::geteuid() };
    if !metadata.is_file() {
        refused("it is no regular file")
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

/// Fails for a folder that others could write, or could give its name to another one: then a path
/// does not stay what was looked at.
#[cfg(unix)]
fn nobody_else_writes(folder: &Path) -> io::Result<()> {
    use std::os::unix::fs::MetadataExt;
    // SAFETY: the call has no preconditions.
    let user = unsafe { libc::geteuid() };
    for (above, path) in folder.ancestors().enumerate() {
        let metadata = fs::symlink_metadata(path)?;
        let owned = metadata.uid() == user || (above > 0 && metadata.uid() == 0);
        // In a folder with the sticky bit, only a file's owner gives its name away.
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

/// Sets the time of last use, once a day: reading should not write each time.
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
        // What cannot be removed now is removed as stale later.
        let _ = fs::remove_file(&temporary);
    }
    written
}

/// A new file in the folder. The name is unlike others' on this machine by process, time and
/// count; if another machine has it, the next is tried.
///
/// Not the crate `tempfile`: with `rustix` below it, it takes 15 s to compile, twice in a build with
/// code ahead of time, and names and modes are all that is needed of it.
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

/// Removes what interrupted writers left, and the entries that were not used for longest
/// until an eighth of the limit is free again, if there is too much. Gives the bytes left.
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
                // Another process may have been faster.
                let _ = fs::remove_file(file.path());
            }
        }
    }
    let mut total = entries.iter().map(|entry| entry.1).sum();
    if total > limit {
        entries.sort();
        // The newest is what was stored last.
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
