// SPDX-License-Identifier: Apache-2.0

// Package volume keeps evidence in a directory, usually a volume of its own.
//
// A record is written to a temporary file beside its place, synced, and linked
// to its name, which fails if the name is taken; then the directory is synced.
// So a record is there whole or not at all, also after the power failed, and two
// processes cannot both create it. The volume must have hard links: ext4, XFS,
// NFS and tmpfs do, FAT and some FUSE mounts do not. Ready finds out.
//
// The kernel knows no deadline for a file. A call whose context ends is left alone, and may
// still take effect; of such calls there are a few at most, and Close waits for them.
//
// The file driver of gocloud.dev is not used: it syncs nothing, and looks
// whether a name is free before it renames, so the second of two writers
// replaces the record of the first.
//
// Adapter. It uses the operating system and goroutines.
package volume
