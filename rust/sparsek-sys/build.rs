//! Finds the library, or builds it from the sources beside this file. In this order: the installation under $SPARSEK_ROOT;
//! what pkg-config finds; the bundled sources, linked statically (not where $SPARSEK_SYSTEM is 1).
use std::env;
use std::path::{Path, PathBuf};

/// What the bundled sources are. An installed library must be of this minor version.
const VERSION: &str = "0.2.0";

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    println!("cargo:rerun-if-env-changed=SPARSEK_ROOT");
    println!("cargo:rerun-if-env-changed=SPARSEK_SYSTEM");
    println!("cargo:rerun-if-env-changed=DOCS_RS");
    if env::var_os("DOCS_RS").is_some() {
        return; // documentation links nothing
    }
    if let Some(root) = env::var_os("SPARSEK_ROOT") {
        return link_root(Path::new(&root));
    }
    let found = pkg_config::Config::new().range_version(VERSION.."0.3").probe("sparsek");
    match found {
        Ok(library) => {
            for path in library.include_paths {
                println!("cargo:include={}", path.display());
            }
        }
        Err(why) if env::var_os("SPARSEK_SYSTEM").is_some_and(|value| value == "1") => {
            panic!("no installed sparsek, and SPARSEK_SYSTEM = 1 forbids to build one: {why}")
        }
        Err(_) => build_bundled(),
    }
}

/// An installation (`cmake --install ... --prefix ROOT`).
fn link_root(root: &Path) {
    let header = root.join("include/sparsek/sparsek.h");
    assert!(header.is_file(), "SPARSEK_ROOT = {}: there is no include/sparsek/sparsek.h in it", root.display());
    let mut folders = vec![root.join("lib"), root.join("lib64")];
    let triplet = env::var("CARGO_CFG_TARGET_ARCH").map(|arch| root.join(format!("lib/{arch}-linux-gnu")));
    folders.extend(triplet);
    let holds_library =
        |folder: &&PathBuf| folder.join("libsparsek.so").is_file() || folder.join("libsparsek.dylib").is_file();
    let Some(folder) = folders.iter().find(holds_library) else {
        panic!("SPARSEK_ROOT = {}: no libsparsek in its lib folders", root.display());
    };
    println!("cargo:rustc-link-search=native={}", folder.display());
    println!("cargo:rustc-link-lib=dylib=sparsek");
    println!("cargo:include={}", root.join("include").display());
}

/// The C sources. SQLite, Jansson and zlib come from the system, through pkg-config.
fn build_bundled() {
    let source = Path::new("sparsek");
    println!("cargo:rerun-if-changed=sparsek");
    let built = cmake::Config::new(source)
        .profile("Release")
        .define("SPARSEK_PROGRAMS", "OFF")
        .define("SPARSEK_TESTS", "OFF")
        .define("SPARSEK_WERROR", "OFF")
        .define("SPARSEK_LIBXSMM", "OFF")
        .build_target("sparsek_internal")
        .build();
    println!("cargo:rustc-link-search=native={}", built.join("build/src").display());
    println!("cargo:rustc-link-lib=static=sparsek_internal");
    for name in ["sqlite3", "jansson", "zlib"] {
        pkg_config::probe_library(name).unwrap_or_else(|why| panic!("the bundled sources need {name}: {why}"));
    }
    for name in ["gomp", "pthread", "m", "dl"] {
        println!("cargo:rustc-link-lib=dylib={name}");
    }
    let include = env::current_dir().map(|folder| folder.join("sparsek/include"));
    println!("cargo:include={}", include.expect("the current folder").display());
}
