//! The memory of the control group (cgroup) that this process is in: of a container or a systemd service. The kernel keeps these
//! numbers; reading them touches no disk.

use crate::control::CgroupMemory;
use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

const ROOT: &str = "/sys/fs/cgroup";
const GROUPS: &str = "/proc/self/cgroup";

/// The names of a version's files, the folder of its hierarchy below the root, and its lines in `/proc/self/cgroup`.
struct Version {
    folder: &'static str,
    current: &'static str,
    most: &'static str,
    controller: &'static str,
}

const VERSIONS: [Version; 2] = [
    Version {
        folder: "",
        current: "memory.current",
        most: "memory.max",
        controller: "",
    },
    Version {
        folder: "memory",
        current: "memory.usage_in_bytes",
        most: "memory.limit_in_bytes",
        controller: "memory",
    },
];

/// A file that the first version has in the top folder of a hierarchy, which is the whole machine. The second version counts nothing there.
const TOP: &str = "release_agent";

/// The first version of control groups writes a number near this one if there is no limit.
const UNLIMITED: u64 = 1 << 62;

/// `None` if the system does not count the memory of this group. The whole machine is not counted, either.
pub fn memory() -> Option<CgroupMemory> {
    let groups = fs::read(GROUPS).ok()?;
    VERSIONS
        .iter()
        .find_map(|version| version.memory(Path::new(ROOT), &groups))
}

impl Version {
    fn memory(&self, root: &Path, groups: &[u8]) -> Option<CgroupMemory> {
        let folders = self.folders(root, groups)?;
        let group = folders.first()?;
        if group.join(TOP).exists() {
            return None;
        }
        let bytes = number(&group.join(self.current))?;
        let limits = folders.iter().filter_map(|folder| number(&folder.join(self.most)));
        Some(CgroupMemory {
            memory_bytes: bytes,
            memory_max_bytes: limits.min().filter(|limit| *limit < UNLIMITED),
        })
    }

    /// The folder of the group, and the folders of the groups around it. A container may see only its own group, at the root,
    /// although `/proc` has the path on the host.
    fn folders(&self, root: &Path, groups: &[u8]) -> Option<Vec<PathBuf>> {
        let path = groups.split(|byte| *byte == b'\n').find_map(|line| self.path(line))?;
        let top = root.join(self.folder);
        let folders = path.ancestors().map(|part| top.join(part));
        Some(
            folders
                .skip_while(|folder| !folder.join(self.current).exists())
                .collect(),
        )
    }

    /// The path in a line such as `4:memory:/shop` or `0::/shop`.
    fn path<'a>(&self, line: &'a [u8]) -> Option<&'a Path> {
        let mut parts = line.splitn(3, |byte| *byte == b':').skip(1);
        let controllers = parts.next()?;
        let ours = controllers
            .split(|byte| *byte == b',')
            .any(|name| name == self.controller.as_bytes());
        let path = Path::new(OsStr::from_bytes(parts.next()?));
        ours.then(|| path.strip_prefix("/").unwrap_or(path))
    }
}

/// `None` for "max", and if there is no such file.
fn number(path: &Path) -> Option<u64> {
    fs::read_to_string(path).ok()?.trim().parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The memory by each version, in a tree with these files.
    fn memory(groups: &str, files: &[(&str, &str)]) -> [Option<(u64, Option<u64>)>; 2] {
        let root = tempfile::tempdir().expect("a folder");
        for (path, text) in files {
            let path = root.path().join(path);
            fs::create_dir_all(path.parent().expect("it is below the root")).expect("a folder");
            fs::write(path, text).expect("a file");
        }
        VERSIONS.each_ref().map(|version| {
            let memory = version.memory(root.path(), groups.as_bytes())?;
            Some((memory.memory_bytes, memory.memory_max_bytes))
        })
    }

    #[test]
    fn the_group_counts_and_the_smallest_limit_around_it() {
        let files = [
            ("shop/memory.max", "600\n"),
            ("shop/memory.current", "70\n"),
            ("shop/web/memory.max", "max\n"),
            ("shop/web/memory.current", "50\n"),
        ];
        assert_eq!(memory("0::/shop/web\n", &files), [Some((50, Some(600))), None]);
    }

    #[test]
    fn a_container_sees_its_group_at_the_root() {
        let files = [("memory.current", "50\n"), ("memory.max", "max\n")];
        assert_eq!(memory("0::/\n", &files), [Some((50, None)), None]);
        let old = [
            ("memory/memory.usage_in_bytes", "50\n"),
            ("memory/memory.limit_in_bytes", "80\n"),
        ];
        let groups = "5:cpu,cpuacct:/\n4:memory:/docker/0123\n0::/docker/0123\n";
        assert_eq!(memory(groups, &old), [None, Some((50, Some(80)))]);
    }

    #[test]
    fn the_machine_is_no_group() {
        let files = [("memory/memory.usage_in_bytes", "50\n"), ("memory/release_agent", "\n")];
        assert_eq!(memory("4:memory:/\n0::/\n", &files), [None, None]);
    }

    #[test]
    fn the_first_version_has_a_number_for_no_limit() {
        let files = [
            ("memory/memory.usage_in_bytes", "50\n"),
            ("memory/memory.limit_in_bytes", "9223372036854771712\n"),
        ];
        assert_eq!(memory("4:memory:/\n0::/\n", &files)[1], Some((50, None)));
    }

    #[test]
    fn without_a_controller_there_is_no_number() {
        assert_eq!(memory("0::/\n", &[("cpu.max", "max 100000\n")]), [None, None]);
        assert_eq!(memory("", &[("memory.current", "50\n")]), [None, None]);
    }
}
