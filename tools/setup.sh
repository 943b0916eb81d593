# Sourced by tools/demo and tools/check: says what it does, installs what is missing, builds. Needs bash.
# Expects `set -euo pipefail`; leaves the working folder at the root of the tree.

cd "$(dirname "${BASH_SOURCE[0]}")/.."

say() { printf '\n== %s\n' "$*"; }

# install_missing PACKAGE...: asks apt only if dpkg does not know one of them.
install_missing() {
  local missing=() package
  for package in "$@"; do
    dpkg-query -W -f '${db:Status-Status}\n' "$package" 2>/dev/null | grep -qx installed || missing+=("$package")
  done
  [ ${#missing[@]} -eq 0 ] && return 0
  local sudo=()
  if [ "$(id -u)" -ne 0 ]; then sudo=(sudo); fi
  say "installing ${missing[*]}"
  "${sudo[@]}" apt-get -o DPkg::Lock::Timeout=300 -qq update
  "${sudo[@]}" env DEBIAN_FRONTEND=noninteractive apt-get -o DPkg::Lock::Timeout=300 -qq install -y \
    --no-install-recommends "${missing[@]}" >/dev/null
}

install_packages() {
  # shellcheck disable=SC2046
  install_missing $(grep -v '^#' tools/packages)
}

# build PRESET [TARGET...]
build() {
  local preset=$1
  shift
  local launcher=()
  if command -v ccache >/dev/null; then launcher=(-DCMAKE_CXX_COMPILER_LAUNCHER=ccache); fi
  cmake --preset "$preset" "${launcher[@]}" >build/"$preset".configure.log 2>&1 || {
    cat build/"$preset".configure.log
    return 1
  }
  if [ $# -gt 0 ]; then
    cmake --build --preset "$preset" --target "$@"
  else
    cmake --build --preset "$preset"
  fi
}

mkdir -p build
