# The usual ways in. Each target installs the packages that it misses (root or sudo); the build
# folders and their options are those of CMakePresets.json.

SHELL := /bin/bash
.DEFAULT_GOAL := build
.PHONY: build run test browser model asan tsan lint format clean

build:
	@scripts/setup.sh build
	@scripts/build.sh release

# Runs the two short plans; prints the comparison and says where records, page and plots are.
run:
	@scripts/setup.sh build plot
	@scripts/build.sh release kvmark
	@build/bin/kvmark run configs/quickstart.yaml configs/codecs.yaml

test:
	@scripts/setup.sh build plot check
	@scripts/build.sh release
	@scripts/test.sh release

# Opens pages of reports in headless Chromium and uses them.
browser:
	@scripts/setup.sh build browser plot
	@scripts/build.sh release kvmark
	@tests/browser/run.py --kvmark build/bin/kvmark

# The real model, SmolLM2-135M-Instruct, into models/.
model:
	@scripts/setup.sh model
	@scripts/fetch_model.sh

asan:
	@scripts/setup.sh build
	@scripts/build.sh asan
	@scripts/test.sh asan

# Data races can only be where threads meet: the pool and the engines. How a format encodes does not
# matter to them, so that some of the formats stand for all.
tsan:
	@scripts/setup.sh build
	@scripts/build.sh tsan test_engines_core test_engines_cpu
	@GTEST_FILTER='-*asym*:*_g64*:*_g128*:*fp8*:*bf16*' scripts/test.sh tsan -L '^engines_(core|cpu)$$'

lint:
	@scripts/setup.sh build lint check
	@scripts/build.sh release kvmark_version
	@scripts/lint.sh

format:
	@scripts/setup.sh lint check
	@git ls-files -z '*.cc' '*.h' '*.cu' '*.cuh' '*.js' | xargs -0 clang-format-14 -i

clean:
	rm -rf build build-debug build-asan build-tsan
