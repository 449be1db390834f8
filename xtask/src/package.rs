//! `cargo xtask package`: what users install without compiling. A Debian package with the `swirl` command and its systemd
//! units, and an archive of the command with its examples, with their checksums.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};

use crate::cargo;

/// The path of the command in the package. The units in `deploy/systemd` are for a command that was copied manually.
const BINARY: &str = "usr/bin/swirl";
const COPIED: &str = "/usr/local/bin/swirl";

/// Builds the command with optimisations for shipping, unless a built one is given, and packs it. Returns the paths of the
/// package, the archive and the checksums.
pub fn run(binary: Option<&Path>, folder: &Path) -> Result<Vec<PathBuf>> {
    let built = cargo::root().join("target/dist/swirl");
    let binary = match binary {
        Some(binary) => binary,
        None => {
            let args = ["build", "--locked", "--profile", "dist", "-p", "swirl-cli"];
            cargo::run(&args)?;
            &built
        }
    };
    fs::create_dir_all(folder).with_context(|| format!("cannot make {}", folder.display()))?;
    let root = cargo::root();
    let mut files = vec![
        pack(&root, binary, folder)?,
        archive(&root, binary, folder)?,
    ];
    files.push(checksums(&files, folder)?);
    Ok(files)
}

/// A `.tar.gz` that holds one folder: the command, the licence, and the examples that the README's tour runs.
fn archive(root: &Path, binary: &Path, folder: &Path) -> Result<PathBuf> {
    let name = format!("swirl-{}-{}", version(root)?, std::env::consts::ARCH);
    let stage = folder.join(format!("{name}.stage"));
    if stage.exists() {
        fs::remove_dir_all(&stage)?;
    }
    let put_at =
        |path: &str, content: &[u8], mode| put(&stage, &format!("{name}/{path}"), content, mode);
    put_at("swirl", &fs::read(binary)?, 0o755)?;
    for file in ["LICENSE", "README.md", "CHANGELOG.md"] {
        put_at(file, &fs::read(root.join(file))?, 0o644)?;
    }
    let examples = ignore::Walk::new(root.join("examples"));
    for entry in examples {
        let entry = entry?;
        let path = entry.path().strip_prefix(root)?;
        let is_code = path.starts_with("examples/demo-service");
        if entry.file_type().is_some_and(|kind| kind.is_file()) && !is_code {
            let content = fs::read(entry.path())?;
            put_at(&path.to_string_lossy(), &content, 0o644)?;
        }
    }
    let archive = folder.join(format!("{name}.tar.gz"));
    // Equal input gives an equal archive.
    let status = Command::new("tar")
        .args(["--sort=name", "--owner=0", "--group=0", "--numeric-owner"])
        .args(["--mtime=@0", "-czf"])
        .arg(&archive)
        .arg("-C")
        .args([&stage, Path::new(&name)])
        .env("GZIP", "-n")
        .status()
        .context("cannot run tar")?;
    if !status.success() {
        bail!("tar failed ({status})");
    }
    fs::remove_dir_all(&stage)?;
    Ok(archive)
}

/// `SHA256SUMS`, as `sha256sum --check` reads it.
fn checksums(files: &[PathBuf], folder: &Path) -> Result<PathBuf> {
    let names = files.iter().filter_map(|file| file.file_name());
    let done = Command::new("sha256sum")
        .arg("--")
        .args(names)
        .current_dir(folder)
        .output()
        .context("cannot run sha256sum")?;
    if !done.status.success() {
        bail!("sha256sum failed ({})", done.status);
    }
    let sums = folder.join("SHA256SUMS");
    fs::write(&sums, done.stdout)?;
    Ok(sums)
}

fn pack(root: &Path, binary: &Path, folder: &Path) -> Result<PathBuf> {
    let (version, architecture) = (version(root)?, architecture()?);
    let name = format!("swirl_{version}_{architecture}");
    let stage = folder.join(format!("{name}.stage"));
    if stage.exists() {
        fs::remove_dir_all(&stage)?;
    }
    put(&stage, BINARY, &fs::read(binary)?, 0o755)?;
    for unit in ["swirl-coordinator.service", "swirl-worker@.service"] {
        let text = fs::read_to_string(root.join("deploy/systemd").join(unit))?;
        if !text.contains(COPIED) {
            bail!("deploy/systemd/{unit} does not start {COPIED}");
        }
        let text = text.replace(COPIED, &format!("/{BINARY}"));
        let path = format!("usr/lib/systemd/system/{unit}");
        put(&stage, &path, text.as_bytes(), 0o644)?;
    }
    let licence = fs::read(root.join("LICENSE"))?;
    put(&stage, "usr/share/doc/swirl/copyright", &licence, 0o644)?;
    let readme = fs::read(root.join("deploy/README.md"))?;
    put(&stage, "usr/share/doc/swirl/README.md", &readme, 0o644)?;
    let size = size_of(&stage)?.div_ceil(1024);
    put(
        &stage,
        "DEBIAN/control",
        control(&version, &architecture, size).as_bytes(),
        0o644,
    )?;
    for (script, text) in [("postinst", RELOAD), ("postrm", RELOAD), ("prerm", STOP)] {
        put(&stage, &format!("DEBIAN/{script}"), text.as_bytes(), 0o755)?;
    }
    let package = folder.join(format!("{name}.deb"));
    let status = Command::new("dpkg-deb")
        .args(["--root-owner-group", "-Zxz", "--build"])
        .arg(&stage)
        .arg(&package)
        .status()
        .context("cannot run dpkg-deb: it comes with Debian and its relatives")?;
    if !status.success() {
        bail!("dpkg-deb failed ({status})");
    }
    fs::remove_dir_all(&stage)?;
    Ok(package)
}

/// Makes systemd notice new and removed units.
const RELOAD: &str =
    "#!/bin/sh\nset -e\nif [ -d /run/systemd/system ]; then systemctl daemon-reload; fi\n";

/// Stops running units before the command is removed. After an upgrade, the operator restarts them.
const STOP: &str = "#!/bin/sh\nset -e\nif [ \"$1\" = remove ] && [ -d /run/systemd/system ]; then\n  \
                    systemctl stop swirl-coordinator.service 'swirl-worker@*.service' || true\nfi\n";

fn control(version: &str, architecture: &str, kib: u64) -> String {
    format!(
        "Package: swirl\nVersion: {version}\nArchitecture: {architecture}\nMaintainer: Swirl <swirl@localhost>\n\
         Installed-Size: {kib}\nDepends: libc6 (>= 2.34), libgcc-s1, ca-certificates\n\
         Suggests: redis-server, nats-server\nSection: net\nPriority: optional\n\
         Description: runtime for Serverless Workflow definitions\n \
         Runs definitions durably: in one process, or as a cluster on NATS and Redis. The units\n \
         swirl-coordinator and swirl-worker@ are installed and not started: they need /etc/swirl/swirl.toml\n \
         (swirl config default writes one).\n"
    )
}

fn put(stage: &Path, path: &str, content: &[u8], mode: u32) -> Result<()> {
    let file = stage.join(path);
    if let Some(parent) = file.parent() {
        fs::create_dir_all(parent)?;
        // Regardless of the umask, because these are system folders.
        for folder in parent.ancestors().take_while(|folder| *folder != stage) {
            fs::set_permissions(folder, fs::Permissions::from_mode(0o755))?;
        }
    }
    fs::set_permissions(stage, fs::Permissions::from_mode(0o755))?;
    fs::write(&file, content).with_context(|| format!("cannot write {}", file.display()))?;
    fs::set_permissions(&file, fs::Permissions::from_mode(mode))?;
    Ok(())
}

fn size_of(folder: &Path) -> Result<u64> {
    let mut size = 0;
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        size += match entry.metadata()?.is_dir() {
            true => size_of(&entry.path())?,
            false => entry.metadata()?.len(),
        };
    }
    Ok(size)
}

fn version(root: &Path) -> Result<String> {
    let manifest: toml::Table = fs::read_to_string(root.join("Cargo.toml"))?.parse()?;
    let version = manifest
        .get("workspace")
        .and_then(|workspace| workspace.get("package")?.get("version")?.as_str());
    Ok(version
        .context("Cargo.toml has no workspace.package.version")?
        .to_owned())
}

/// The architecture in Debian's notation.
fn architecture() -> Result<String> {
    let asked = Command::new("dpkg")
        .arg("--print-architecture")
        .output()
        .context("cannot run dpkg: it comes with Debian and its relatives")?;
    let text = String::from_utf8(asked.stdout)?;
    Ok(text.trim().to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_archive_has_the_command_and_the_examples() {
        let folder = tempfile::tempdir().unwrap();
        let binary = folder.path().join("built");
        fs::write(&binary, "#!/bin/sh\necho swirl 0\n").unwrap();
        let archive = archive(&cargo::root(), &binary, folder.path()).unwrap();
        let sums = checksums(std::slice::from_ref(&archive), folder.path()).unwrap();
        let unpack = |arguments: &[&str]| {
            let mut command = Command::new("tar");
            let command = command.args(arguments).current_dir(folder.path());
            assert!(command.status().unwrap().success());
        };
        unpack(&["-xzf", archive.to_str().unwrap()]);
        let name = archive.file_name().unwrap().to_str().unwrap();
        let inside = folder.path().join(name.trim_end_matches(".tar.gz"));
        let run = Command::new(inside.join("swirl")).output().unwrap();
        assert_eq!(run.stdout, b"swirl 0\n");
        assert!(inside.join("examples/hello/hello.sw.yaml").exists());
        assert!(!inside.join("examples/demo-service").exists());
        let sums = fs::read_to_string(sums).unwrap();
        assert!(sums.trim_end().ends_with(&format!("  {name}")), "{sums}");
    }

    #[test]
    fn a_package_can_be_unpacked() {
        if Command::new("dpkg-deb").arg("--version").output().is_err() {
            eprintln!("left out: dpkg-deb is not installed");
            return;
        }
        let folder = tempfile::tempdir().unwrap();
        let binary = folder.path().join("built");
        fs::write(&binary, "#!/bin/sh\necho swirl 0\n").unwrap();
        let package = pack(&cargo::root(), &binary, folder.path()).unwrap();
        let into = folder.path().join("unpacked");
        let done = Command::new("dpkg-deb")
            .arg("--raw-extract")
            .args([&package, &into])
            .status()
            .unwrap();
        assert!(done.success());
        let installed = into.join(BINARY);
        assert_eq!(fs::read(&installed).unwrap(), fs::read(&binary).unwrap());
        let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
        assert_eq!(mode(&installed), 0o755);
        for unit in ["swirl-coordinator.service", "swirl-worker@.service"] {
            let path = into.join("usr/lib/systemd/system").join(unit);
            let text = fs::read_to_string(&path).unwrap();
            assert!(text.contains("ExecStart=/usr/bin/swirl "), "{text}");
            assert_eq!(mode(&path), 0o644);
        }
        let control = fs::read_to_string(into.join("DEBIAN/control")).unwrap();
        assert!(control.contains("Package: swirl\n"), "{control}");
        assert!(!package.with_extension("stage").exists());
        let run = Command::new(&installed).output().unwrap();
        assert_eq!(run.stdout, b"swirl 0\n");
    }
}
