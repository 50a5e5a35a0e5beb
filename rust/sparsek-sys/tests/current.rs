//! The checked-in bindings are those of the headers. `SPARSEK_BLESS=1 cargo test -p sparsek-sys --test current` rewrites them.
use std::path::Path;

fn generate(header: &Path) -> String {
    bindgen::Builder::default()
        .header(header.to_str().expect("a path in UTF-8"))
        .clang_arg("-std=c11")
        .allowlist_item("(spk|SPK)_.*")
        .blocklist_item("SPK_STRIDE_SHARED") // bindgen makes these an i32
        .blocklist_item("SPK_SCALE_ALL")
        .blocklist_item("SPK_SCALE_BLOCK")
        .blocklist_item("SPK_VERSION_NUMBER") // and this a u32, which spk_version_number is not
        .default_enum_style(bindgen::EnumVariation::NewType { is_bitfield: false, is_global: true })
        .prepend_enum_name(false)
        .generate_comments(false)
        .derive_default(false)
        .rust_edition(bindgen::RustEdition::Edition2024)
        .rust_target(bindgen::RustTarget::stable(85, 0).unwrap_or_default())
        .formatter(bindgen::Formatter::Prettyplease)
        .disable_header_comment()
        .raw_line("// Generated from sparsek/sparsek.h by tests/current.rs: do not edit.")
        .generate()
        .expect("the headers parse")
        .to_string()
}

#[test]
fn bindings_are_current() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR"));
    let path = folder.join("src/bindings.rs");
    let made = generate(&folder.join("sparsek/include/sparsek/sparsek.h"));
    if std::env::var_os("SPARSEK_BLESS").is_some() {
        std::fs::write(&path, &made).expect("writing the bindings");
    }
    let committed = std::fs::read_to_string(&path).expect("reading the bindings");
    let differs = committed.lines().zip(made.lines()).position(|(old, new)| old != new);
    assert!(
        committed == made,
        "src/bindings.rs is stale from line {:?}: SPARSEK_BLESS=1 rewrites it",
        differs.map(|i| i + 1)
    );
}
