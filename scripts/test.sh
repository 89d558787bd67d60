#!/usr/bin/env bash
set -euo pipefail

usage() {
    cat <<'END'
Runs everything that has to pass.

  scripts/test.sh [--quick] [--only STEP]... [FILTER...]

  --quick      leave out what needs a server, by name: ACEMQ_TEST_WITHOUT=rabbitmq3,rabbitmq4,postgres,mariadb
  --only STEP  run this step; may be given several times
  FILTER       run the tests whose names contain it, and only them

Steps, in this order; the first that fails ends the run:

  servers      find RabbitMQ 3.x and 4.x, PostgreSQL and MariaDB; on Debian, as root, install what is missing
  format       rustfmt
  lints        clippy on everything, warnings are errors
  features     clippy on the library with each of its features alone, and with none
  tests        all tests; each starts its own servers on free ports, and touches no other
  doctests     the examples in the documentation
  docs         the documentation builds without warnings
  examples     each example runs on the embedded broker and ends with success

Variables:

  ACEMQ_TEST_WITHOUT             servers to leave out; a run in CI may not have any
  ACEMQ_TEST_RABBITMQ_3, _4      root directories of RabbitMQ installations; / is this machine's own
  ACEMQ_TEST_RABBITMQ_4_RELEASE  the Debian release to take 4.x from where this machine has none (trixie)
  ACEMQ_TEST_MYSQL               the server program of a MySQL (mysqld), to use in the place of MariaDB
  ACEMQ_TEST_CACHE               where that is kept (~/.cache/acemq-tests)
  ACEMQ_TEST_KEEP=1              keep the directories of test servers, with their logs
END
}

give_up() { # SENTENCE
    echo "scripts/test.sh: $1" >&2
    exit 1
}

all_steps=(servers format lints features tests doctests docs examples)
steps=()
filters=()
while [ $# -gt 0 ]; do
    case $1 in
        -h | --help)
            usage
            exit 0
            ;;
        --quick) export ACEMQ_TEST_WITHOUT=rabbitmq3,rabbitmq4,postgres,mariadb ;;
        --only)
            [ $# -gt 1 ] || give_up "--only needs one of: ${all_steps[*]}"
            case " ${all_steps[*]} " in
                *" $2 "*) steps+=("$2") ;;
                *) give_up "there is no step $2; the steps are: ${all_steps[*]}" ;;
            esac
            shift
            ;;
        --)
            shift
            filters+=("$@")
            break
            ;;
        -*) give_up "there is no option $1; -h lists them" ;;
        *) filters+=("$1") ;;
    esac
    shift
done
if [ ${#steps[@]} = 0 ]; then
    steps=("${all_steps[@]}")
    # Whoever names tests wants those.
    [ ${#filters[@]} = 0 ] || steps=(servers tests)
elif [[ " ${steps[*]} " == *" tests "* && " ${steps[*]} " != *" servers "* ]]; then
    steps=(servers "${steps[@]}")
fi

cd "$(dirname "${BASH_SOURCE[0]}")/.."
# shellcheck source=scripts/servers.sh
source scripts/servers.sh

locked=()
if [ -n "${CI:-}" ]; then
    # A skipped test looks like one that passed.
    if [ -n "${ACEMQ_TEST_WITHOUT:-}" ]; then
        give_up "ACEMQ_TEST_WITHOUT is set, and a run in CI leaves nothing out"
    fi
    locked=(--locked)
    # Nothing is built twice here, and incremental builds cost room and time.
    export CARGO_INCREMENTAL=0
fi
command -v cargo >/dev/null || give_up "cargo is missing; https://rustup.rs installs it"

# --- The steps ------------------------------------------------------------------------------------------------------

step_servers() { provide_servers; }

step_format() { cargo fmt --all --check; }

step_lints() { cargo clippy "${locked[@]}" --workspace --all-targets --all-features -- -D warnings; }

# Clippy rather than check, as it alone denies warnings without building the dependencies anew.
step_features() {
    local feature features
    features=$(awk '/^\[/ { here = $1 == "[features]" } here && $2 == "=" && $1 != "default" { print $1 }' acemq/Cargo.toml)
    echo "no feature"
    cargo clippy "${locked[@]}" --quiet -p acemq --no-default-features -- -D warnings
    for feature in $features; do
        echo "$feature"
        cargo clippy "${locked[@]}" --quiet -p acemq --no-default-features --features "$feature" -- -D warnings
    done
}

# One binary after the other, as `cargo test` does: each shares its servers among its tests, and two cores run no more
# than one set of brokers well.
step_tests() {
    # Some tests run the examples; `--tests` alone does not build them.
    cargo build "${locked[@]}" --workspace --all-features --examples
    cargo test "${locked[@]}" --workspace --all-features --tests -- "${filters[@]}"
}

step_doctests() { cargo test "${locked[@]}" --workspace --all-features --doc; }

step_docs() { RUSTDOCFLAGS="-D warnings" cargo doc "${locked[@]}" --workspace --all-features --no-deps; }

# A service is told to end after a moment; success is what it has to end with, too.
step_examples() {
    local example programs
    cargo build "${locked[@]}" --quiet --workspace --all-features --examples
    programs=$(target_directory)/debug/examples
    for example in examples/*.rs; do
        example=$(basename "$example" .rs)
        [ "$example" != lib ] || continue
        echo "--- $example"
        ACEMQ_URL=memory://$example timeout --preserve-status --kill-after=20 5 "$programs/$example" </dev/null ||
            give_up "the example $example ended with $?"
    done
}

target_directory() {
    cargo metadata --no-deps --format-version 1 | sed 's/.*"target_directory":"\([^"]*\)".*/\1/'
}

# --- The run --------------------------------------------------------------------------------------------------------

step=
finish() {
    local status=$?
    clean_up_after_packages
    if [ $status != 0 ] && [ -n "$step" ]; then
        printf '\n=== %s FAILED after %s s ===\n' "$step" $((SECONDS - start)) >&2
    fi
}
trap finish EXIT

times=()
for step in "${steps[@]}"; do
    printf '\n=== %s ===\n' "$step"
    start=$SECONDS
    # Not in a condition: there `set -e` would not hold inside the step.
    "step_$step"
    times+=("$(printf '%6d s  %s' $((SECONDS - start)) "$step")")
done

step=
printf '\n=== passed in %s s ===\n' "$SECONDS"
printf '%s\n' "${times[@]}"
if [ -n "${ACEMQ_TEST_WITHOUT:-}" ]; then
    printf '\nLEFT OUT, by name: what needs %s\n' "${ACEMQ_TEST_WITHOUT//,/, }"
fi
