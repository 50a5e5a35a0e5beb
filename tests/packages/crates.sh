#!/usr/bin/env bash
# The three crates as they would be published, build/crates/*.crate: each with its licence and its README, and small enough for crates.io.
# Usage: crates.sh [--check]     (--check: and compiles sparsek from its package alone, with the library that $SPARSEK_ROOT names, or builds)
set -euo pipefail
cd "$(dirname "$0")/../.."
root=$PWD
crates=$root/build/crates
rm -rf "$crates"
mkdir -p "$crates/unpacked"
version=$(sed -n 's/^version = "\([0-9.]*\)".*/\1/p' rust/Cargo.toml)
# Until the first two are published the third, a workspace of its own, finds them here.
beside=(--config "patch.crates-io.sparsek.path=\"$root/rust/sparsek\"" --config "patch.crates-io.sparsek-sys.path=\"$root/rust/sparsek-sys\"")
(cd rust && cargo package --quiet --locked --allow-dirty --workspace --no-verify --target-dir "$crates/target" 2>"$crates/log") || { cat "$crates/log"; exit 1; }
(cd rust/burn-sparse && cargo package --quiet --locked --allow-dirty --no-verify --target-dir "$crates/target" "${beside[@]}" 2>"$crates/log") ||
    { cat "$crates/log"; exit 1; }
for name in sparsek-sys sparsek burn-sparse; do
    crate=$crates/$name-$version.crate
    cp "$crates/target/package/$name-$version.crate" "$crates/"
    tar -xzf "$crate" -C "$crates/unpacked"
    for file in Cargo.toml README.md src/lib.rs; do
        [ -s "$crates/unpacked/$name-$version/$file" ] || { echo "crates: $name has no $file"; exit 1; }
    done
    find "$crates/unpacked/$name-$version" -maxdepth 2 -name LICENSE -exec cmp -s LICENSE {} \; -print | grep -q . || { echo "crates: $name has no licence"; exit 1; }
    [ "$(stat -c %s "$crate")" -lt 10000000 ] || { echo "crates: $name is larger than crates.io takes"; exit 1; }
    [ -z "$(find "$crates/unpacked/$name-$version" -type l)" ] || { echo "crates: $name has links"; exit 1; }
done
rm -rf "$crates/target"
[ "${1:-}" = --check ] || { echo "crates: three packages of version $version"; exit 0; }

# burn-sparse stays out: all of Burn would be compiled for it.
cargo check --quiet --manifest-path "$crates/unpacked/sparsek-$version/Cargo.toml" --target-dir "$crates/target" --all-features \
    --config "patch.crates-io.sparsek-sys.path=\"$crates/unpacked/sparsek-sys-$version\""
echo "crates: three packages of version $version; sparsek compiles from its own"
