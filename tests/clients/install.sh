#!/bin/bash
# Installs the pinned clients outside the source tree and prints the folder. The lock file decides every version and
# checksum; no package's install script runs. The Node 22 that npm's `node` package stands for comes as its platform package.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
sum=$(cat "$here/package.json" "$here/package-lock.json" "$here/.npmrc" | sha256sum | cut -c1-16)
folder=${ACP_AGENT_TEST_CACHE:-/var/tmp/acp-agent-tests-$(id -u)}/clients-$sum
mkdir -p "$(dirname "$folder")"
exec 9>"$folder.lock"
flock 9
if [ ! -e "$folder/complete" ]; then
  rm -rf "$folder"
  mkdir "$folder"
  cp "$here/package.json" "$here/package-lock.json" "$here/.npmrc" "$folder/"
  # `npm install`, not `ci`: a platform package of a dependency that the lock rightly lists but a registry does not offer
  # must not fail the platforms it offers. That nothing else was resolved is checked right after.
  for attempt in 1 2 3; do
    if (cd "$folder" && npm install --ignore-scripts --no-audit --no-fund --loglevel=error >&2); then break; fi
    if [ $attempt = 3 ]; then echo "tests/clients: npm install failed" >&2; exit 1; fi
    sleep 3
  done
  # Another npm writes the lock in another style; what was resolved must be the same.
  resolved='import json, sys
print("\n".join(sorted("%s %s %s" % (path, package.get("version"), package.get("integrity"))
                       for path, package in json.load(open(sys.argv[1]))["packages"].items())))'
  if ! diff <(/usr/bin/python3 -c "$resolved" "$here/package-lock.json") \
      <(/usr/bin/python3 -c "$resolved" "$folder/package-lock.json") >&2; then
    echo "tests/clients: npm resolved other versions than package-lock.json" >&2
    exit 1
  fi
  touch "$folder/complete"
fi
echo "$folder"
