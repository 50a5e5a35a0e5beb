//! `src/*/generated.rs` is what `rust/generate.py` writes from the tables of the library that is linked.
use std::path::Path;
use std::process::Command;

#[test]
fn generated_files_are_current() {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../generate.py");
    let Some(root) = std::env::var_os("SPARSEK_ROOT") else { return };
    let library = Path::new(&root).join("lib/libsparsek.so");
    if !script.exists() || !library.exists() {
        return; // in the crate's package, or with a library of another form
    }
    let ended =
        Command::new("python3").arg("-B").arg(script).arg("--check").arg(library).output().expect("python3 runs");
    assert!(ended.status.success(), "{}", String::from_utf8_lossy(&ended.stderr));
}
