# SPDX-License-Identifier: Apache-2.0
# What the fuzz targets use of the large rooms: instrumented, all of them takes
# twice as long to compile. A file that is missing here fails to link by name.
set(STOPLOG_FUZZ_base
  clock escape fd glob hash hash_speed interrupt json json_parse memfd
  parallel relpath result strings sys_file sys_lock sys_node sys_process
  temp_file units unix_socket width)
set(STOPLOG_FUZZ_fs
  beneath deep_paths draft_view drift extent_list extents fd_cache frames generations
  held_content history journal journal_changes lent_objects past ranges
  real records replay restore segments standing state state_apply
  state_base state_base_links state_past state_snapshot)
