// SPDX-License-Identifier: Apache-2.0
#include "cli/command.h"

int main(int argc, char** argv) {
  return stoplog::cli::run_program({argv + (argc > 0 ? 1 : 0), argv + argc});
}
