#!/bin/sh
# Installs Proctor as systemd services, and removes them: `make install-systemd`, `make uninstall-systemd`.
#
#   PREFIX   where the program is installed (/opt/proctor)
#   DESTDIR  a root folder for the units instead of this machine's, as packagers need it; the program, which cannot
#            be moved once it is installed, is then left to them
#   PROGRAM  no: the units only
#   PYTHON   the interpreter, which the services must be able to read (/usr/bin/python3)
set -eu

here=$(cd "$(dirname "$0")" && pwd)
project=$(cd "$here/../.." && pwd)
prefix=${PREFIX:-/opt/proctor}
root=${DESTDIR:-}
units=$root/etc/systemd/system
program=$root$prefix

reload() { # only on the machine itself, and only where systemd runs
  if [ -z "$root" ] && [ -d /run/systemd/system ]; then systemctl daemon-reload; fi
}

install_program() {
  python=${PYTHON:-/usr/bin/python3}
  "$python" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null || {
    echo "$python is no Python 3.11 or newer; name one: make install-systemd PYTHON=/usr/bin/python3.12" >&2
    exit 1
  }
  "$python" -m venv "$program"
  "$program/bin/python" -m pip install -qq --disable-pip-version-check --require-hashes \
    --requirement "$project/requirements.lock" --requirement "$project/deploy/requirements-build.lock"
  "$program/bin/python" -m pip install -qq --disable-pip-version-check --no-deps --no-build-isolation \
    --force-reinstall "$project"
}

install_units() {
  install -d -m 755 "$units"
  install -d -m 700 "$root/etc/proctor"
  for unit in "$here"/*.service "$here"/*.target; do
    sed "s|/opt/proctor|$prefix|g" "$unit" >"$units/$(basename "$unit")"
    chmod 644 "$units/$(basename "$unit")"
  done
  reload
}

uninstall() {
  if [ -z "$root" ] && [ -d /run/systemd/system ]; then
    systemctl disable --now proctor.target 'proctor-worker@*.service' proctor-flower.service proctor-metrics.service proctor-serve.service || true
  fi
  for unit in "$here"/*.service "$here"/*.target; do rm -f "$units/$(basename "$unit")"; done
  # Only what was made here is removed: an environment with our command in it.
  if [ -f "$program/pyvenv.cfg" ] && [ -x "$program/bin/proctor" ]; then rm -rf "$program"; fi
  reload
}

case ${1:-} in
install)
  [ -n "$root" ] || [ "${PROGRAM:-yes}" = no ] || install_program
  install_units
  echo "installed into $units; write the URL of Redis into $root/etc/proctor/redis-url (mode 0600), and"
  echo "USER:PASSWORD into $root/etc/proctor/flower-auth; then: systemctl enable --now proctor.target"
  ;;
uninstall)
  uninstall
  echo "removed from $units; $root/etc/proctor and the data in /var/lib/private/proctor are left"
  ;;
*)
  echo "usage: install.sh install|uninstall" >&2
  exit 2
  ;;
esac
