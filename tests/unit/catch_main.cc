// SPDX-License-Identifier: Apache-2.0
#define STOPLOG_CATCH_MAIN
#include "catch_shim.h"
#if STOPLOG_CATCH_V3
int main(int argc, char** argv) { return Catch::Session().run(argc, argv); }
#endif
